"""Forty mutants of the folders that decide the printed times and counters, drawn with a seed.

    python -m tests.mutants.printed           # draw them again; exits with 1 if others are stored

They are drawn from the sources of one commit, which git still has when the product has changed.
"""

import io
import random
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import replace
from itertools import islice
from pathlib import Path

from tests.mutants.edits import PACKAGES, SUFFIXES, store, stored
from tests.mutants.generate import draw, sites_of
from validation import ROOT

SEED = 143
COMMIT = "acc0fa85"
FOLDERS = ("toolkit/execution", "analysis/timing", "analysis/traffic")
MUTANTS = 40
DRAWN = Path(__file__).with_name("printed.json")


def main():
    found = drawn()
    for number, each in enumerate(found):
        print(number, each)
    if not DRAWN.exists():
        store(found, DRAWN)
    return 0 if found == as_drawn() else 1


def as_drawn():
    """The stored mutants, without the reasons why some are equivalent."""
    return [replace(each, equivalent="") for each in stored(DRAWN)]


def drawn():
    """The mutants that the seed chooses among all sites of the folders, in Python and in C."""
    command = ["git", "archive", COMMIT, *PACKAGES]
    packed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        root = Path(folder)
        sites = [
            site
            for package in FOLDERS
            for language in SUFFIXES
            for site in sites_of(root, package, language)
        ]
        return list(islice(draw(root, sites, random.Random(SEED), set()), MUTANTS))


if __name__ == "__main__":
    sys.exit(main())
