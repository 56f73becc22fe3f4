"""`tune` as a user meets it: whole files, one line per mistake, nothing measured without a GPU."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.reports.tuned_by_hand import TUNING
from tests.toolkit.cli.commands import interrupted, invoke, refused
from validation import ROOT

MADE_UP_GPU = ROOT / "tests" / "toolkit" / "tuning" / "made_up_gpu"


@pytest.fixture(autouse=True)
def data(folder, monkeypatch):
    """An empty data folder."""
    monkeypatch.setenv("GEMM_LADDER_DATA", str(folder / "data"))


def test_without_a_gpu_it_ranks_writes_both_files_and_keeps_nothing(folder):
    done = invoke("tune tiled --shape 64,33x65x31 --device t4 --seed 1")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("should be fastest") == 2
    assert "no GPU is used, so predicted times rank configurations" in done.stderr
    record = json.loads((folder / "tuning.json").read_text())
    assert record["schema_version"] == 1
    assert [str(one["shape"]["k"]) for one in record["shapes"]] == ["64", "31"]
    assert "tiled tuned on NVIDIA T4" in (folder / "tuning.html").read_text()
    assert not (folder / "data").exists()


def test_json_is_the_record_that_is_stored(folder):
    done = invoke("tune tiled:tile=16 --shape 64 --json --seed 1")
    assert done.stdout == (folder / "tuning.json").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("tilde", "unknown variant 'tilde': did you mean 'tiled'?"),
        ("cublas", "cublas has no parameters of its own to tune"),
        (
            "coarsened-1d:bk=4,tm=4",
            "coarsened-1d has no legal configuration with these values: bk",
        ),
        ("tiled:tile=5", "tiled: tile = 5 is not legal: choose one of 8, 16, 32"),
        ("tiled --shape 64,4x", "shape '4x' is not understood"),
        ("tiled --device h2000", "unknown device 'h2000'"),
        ("tiled --html no/where.html", "cannot write no/where.html"),
        ("tiled:", "'tiled:': '' is not a setting: write name=integer, as in tiled:tile=16"),
    ],
)
def test_a_mistake_is_one_line(arguments, message):
    assert refused(f"tune {arguments}").startswith(message)


COMMAND = "tune coarsened-1d --shape 48 --seed 1 --seconds 0.05 --cache cache"
FILE = Path("cache") / "coarsened-1d-48x48x48-h100-sxm.json.journal"


@pytest.fixture
def stopped(folder):
    """Outcome of a run that gets Ctrl-C once a configuration is timed."""
    with_a_gpu = {"PYTHONPATH": f"{MADE_UP_GPU}{os.pathsep}{ROOT}"}
    return interrupted("-m", "toolkit", *COMMAND.split(), environment=with_a_gpu, when=FILE.exists)


@pytest.mark.exhaustive  # 7 s: test_tune.py does it in this process
def test_ctrl_c_keeps_what_was_measured(stopped, folder):
    status, _, said = stopped
    assert status == 1
    assert (
        f"of 6 configurations of 48x48x48 are kept in {folder / FILE}: repeat the command" in said
    )
    assert said.splitlines()[-1] == "error: interrupted: only the cache was written"
    assert not (folder / "tuning.json").exists()


def test_what_was_measured_is_kept_for_the_dispatcher(folder, monkeypatch):
    monkeypatch.setattr("toolkit.tuning.tune.tune", lambda *_, **__: TUNING)
    file = folder / "data" / "tuned.json"
    done = invoke("tune coarsened-1d --shape 64")
    assert done.exit_code == 0, done.output
    assert f"kept 1 in {file}" in done.stderr
    (entry,) = json.loads(file.read_text())["entries"]
    assert entry["parameters"] == {"bk": 8, "tm": 8}  # of the winner


def test_the_documented_example_lists_every_configuration_of_its_command():
    document = (ROOT / "docs" / "tuning.md").read_text(encoding="utf-8")
    command = re.search(r"^\$ python -m toolkit tune (.*)$", document, re.MULTILINE)
    done = invoke("tune " + command[1].replace("4096", "64"))  # the same space, sooner
    assert done.exit_code == 0
    pattern = r"^ +(\d+) +(\d+) +[\d.]+ .s "  # bk, tm and a time
    assert sorted(re.findall(pattern, document, re.MULTILINE)) == sorted(
        re.findall(pattern, done.stdout, re.MULTILINE)
    )
    assert len(re.findall(pattern, document, re.MULTILINE)) == 6
    for sentence in re.findall(r"^  - (.*)$", document, re.MULTILINE):
        assert sentence in done.stdout
