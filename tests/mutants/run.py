"""Does the suite find bugs? Runs tests on a copy of the tree with each mutant of mutants.json.

    python -m tests.mutants.run               # every mutant
    python -m tests.mutants.run 3 17          # some
    python -m tests.mutants.run --exhaustive  # and the exhaustive tests on those that are missed
    python -m tests.mutants.run --file tests/mutants/printed.json  # those of another list

The suite runs once without a mutant: tests that fail in a copy are left out from then on, and what
the compilers made is kept. Each mutant gets a fresh copy of the tree, and a cache with nothing of
our own code in it. The tests beside the mutated file run first, then all, until one fails. Work is
kept in the folder of --work, not in the repository.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from tests.mutants.edits import STORED, NotFoundError, apply, stored
from validation import ROOT

COMPILED = ("*.cubin", "*.sass.json")  # the compilers' part of the cache
LIMIT_S = 1800.0  # the suite takes less; a mutant that makes it longer is found, too
FOUND, BY_EXHAUSTIVE, MISSED = "found by the fast suite", "only by the exhaustive", "missed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("numbers", nargs="*", type=int, help="of mutants; all if left out")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "mutants")
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--file", type=Path, default=STORED, help="the list of mutants")
    options = parser.parse_args()
    work = options.work.resolve()
    mutants = stored(options.file)
    chosen = options.numbers or [n for n, each in enumerate(mutants) if not each.equivalent]
    if not (work / "compiled").exists():
        fresh(work)
        tests_fail(work, ["--maxfail=99", "-rf"])
        keep_compiled(work)
    counts = defaultdict(Counter)
    for number in chosen:
        mutant, begin = mutants[number], time.monotonic()
        verdict = verdict_on(work, mutant, with_exhaustive=options.exhaustive)
        counts[mutant.package, mutant.language][verdict] += 1
        print(number, verdict, f"{time.monotonic() - begin:.0f} s", mutant, flush=True)
    print(table(counts))
    return 0


def verdict_on(work, mutant, *, with_exhaustive):
    tree = fresh(work)
    try:
        near = beside(apply(tree, mutant).relative_to(tree))
    except NotFoundError:
        return "not found"
    if mutant.language == "c" and not built(tree):
        return "not built"
    if any(tests_fail(work, which) for which in ([[near]] if near else []) + [[]]):
        return FOUND
    if with_exhaustive and tests_fail(work, ["-m", "exhaustive"]):
        return BY_EXHAUSTIVE
    return MISSED


def beside(file):
    """The folder of tests that mirrors a file of the product, or the nearest above it."""
    folders = (Path("tests") / folder for folder in file.parents)
    found = next(str(folder) for folder in folders if (ROOT / folder).is_dir())
    return "" if found == "tests" else found


def fresh(work):
    """A copy of what git knows of, with built libraries, and a cache of compiled code alone."""
    tree, cache = work / "tree", work / "cache"
    for folder in (tree, cache):
        shutil.rmtree(folder, ignore_errors=True)
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    libraries = (str(path.relative_to(ROOT)) for path in ROOT.glob("[at]*/**/*.so"))
    for name in (*filter(None, listed.split("\0")), *libraries):
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    for command in (["git", "init", "-q"], ["git", "add", "-A"]):  # some tests ask git
        subprocess.run(command, cwd=tree, check=True)
    shutil.copytree(work / "compiled", cache) if (work / "compiled").exists() else cache.mkdir()
    return tree


def keep_compiled(work):
    (work / "compiled").mkdir()
    failed = re.findall(r"^FAILED (\S+)", (work / "pytest.log").read_text(), re.MULTILINE)
    (work / "failed.txt").write_text("\n".join(failed), encoding="utf-8")
    for pattern in COMPILED:
        for path in (work / "cache").glob(pattern):
            shutil.copy2(path, work / "compiled" / path.name)


def built(tree):
    command = [sys.executable, "-m", "toolkit.native"]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    return subprocess.run(command, cwd=tree, env=environment, check=False).returncode == 0


def tests_fail(work, arguments):
    """True if tests fail, or do not end."""
    environment = os.environ | {
        "PYTHONPATH": str(work / "tree"),
        "GEMM_LADDER_CACHE": str(work / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=short", "--hypothesis-seed=0"]
    command += ["-p", "no:cacheprovider", "--ignore=tests/mutants", *arguments]
    if (failed := work / "failed.txt").exists():
        command += [f"--deselect={name}" for name in failed.read_text("utf-8").split()]
    with (work / "pytest.log").open("a", encoding="utf-8") as log:
        try:
            done = subprocess.run(
                command, cwd=work / "tree", env=environment, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return True
    return done.returncode not in (0, 5)  # 5: nothing was selected


def table(counts):
    """The verdicts per package and language, as Markdown."""
    verdicts = sorted({verdict for row in counts.values() for verdict in row})
    lines = [["package", "language", "mutants", *verdicts], ["---"] * (3 + len(verdicts))]
    for (package, language), row in counts.items():
        lines.append([package, language, str(row.total()), *(str(row[v]) for v in verdicts)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
