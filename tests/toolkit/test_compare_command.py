"""`compare` as a user and a CI job meet it."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from analysis.metrics import WARP_INSTRUCTIONS
from analysis.result import Interval, Measured, Predicted, Profile, Record
from toolkit import profile, save
from toolkit.cli import app


@pytest.fixture(scope="module")
def simulated() -> Profile:
    return profile([64], ["naive-coalesced", "tiled"], executor="simulate", seed=1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulated: Profile) -> Path:
    """A folder with a.json, and c.json in which a kernel's traffic grew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pycuda", None)
    save(simulated, "a.json")
    save(replace(simulated, seed=2), "b.json")
    save(changed(simulated), "c.json")
    return tmp_path


def changed(made: Profile) -> Profile:
    """Tiled executes one warp instruction more."""

    def one_more(record: Record) -> Record:
        if record.label != "tiled" or record.simulated is None:
            return record
        counters = dict(record.simulated.counters)
        counters[WARP_INSTRUCTIONS] += 1
        return replace(record, simulated=replace(record.simulated, counters=counters))

    return replace(made, records=tuple(map(one_more, made.records)))


def timed(made: Profile, seconds: float, **more: Any) -> Profile:
    """Every record with a median of so many seconds, known to 0.1%."""
    values: dict[str, Any] = {
        "clock": "CUDA events",
        "l2": "flushed",
        "samples_s": (seconds,) * 20,
        "median_s": seconds,
        "interval_s": Interval(low=0.999 * seconds, high=1.001 * seconds),
        "flop_per_s": 1 / seconds,
        "stopped_by": "precision",
    }
    measured = Measured(**(values | more))
    return replace(made, records=tuple(replace(r, measured=measured) for r in made.records))


def foreseen(made: Profile, seconds: float, **more: Any) -> Profile:
    """Every record with a predicted time."""
    values: dict[str, Any] = {
        "time_s": seconds, "cycles": 1.0, "clock_hz": 1e9, "launch_s": 0.0, "flop_per_s": 1.0,
        "l2": "flushed", "limiter": "issue", "limiter_share": 0.5, "next_limiter": "FP32",
        "next_share": 0.4, "bounds": (), "gap": (), "constants": "c", "basis": "b",
        "is_fitted": False,
    }  # fmt: skip
    predicted = Predicted(**(values | more))
    return replace(made, records=tuple(replace(r, predicted=predicted) for r in made.records))


def compare(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["compare", *arguments])


def refused(*arguments: str, code: int = 1) -> str:
    """The last line on standard error, of a command that fails with that code."""
    result = compare(*arguments)
    assert result.exit_code == code, result.output
    return str(result.stderr.splitlines()[-1]).removeprefix("error: ")


def test_equal_counts_pass() -> None:
    result = compare("a.json", "b.json", "--fail-on", "counts")
    assert result.exit_code == 0
    assert re.search(r"^Counts: \d+ compared in 2 records; none changed\.$", result.stdout, re.M)
    assert result.stderr == ""


def test_a_change_is_named_and_fails_only_where_asked() -> None:
    result = compare("a.json", "c.json")
    assert result.exit_code == 0
    assert "1 changed, in tiled." in result.stdout
    assert re.search(r"^ tiled +warp instructions +[\d,]+ +[\d,]+ +\+", result.stdout, re.M)
    said = refused("a.json", "c.json", "--fail-on", "counts", code=3)
    assert said.startswith(f"--fail-on counts: tiled at 64x64x64: {WARP_INSTRUCTIONS} (simulated) ")


def test_a_slower_time_fails_where_asked(simulated: Profile) -> None:
    save(timed(simulated, 1e-3), "d.json")
    save(timed(simulated, 1.1e-3), "e.json")
    assert compare("d.json", "e.json", "--fail-on", "counts").exit_code == 0
    assert compare("e.json", "d.json", "--fail-on", "counts,time").exit_code == 0  # faster
    assert refused("d.json", "e.json", "--fail-on", "counts,time", code=3) == (
        "--fail-on time: naive-coalesced at 64x64x64: slower, 1.000 ms → 1.100 ms (and 1 more)"
    )


def test_a_gate_that_compares_nothing_does_not_pass(simulated: Profile) -> None:
    save(timed(simulated, 1e-3), "d.json")
    save(timed(simulated, 1e-3, l2="warm"), "e.json")
    for files in (("a.json", "b.json"), ("d.json", "e.json")):
        assert refused(*files, "--fail-on", "time") == (
            "--fail-on time: no time of a GPU could be compared (predicted ones are compared, and "
            "hold nothing): profile both sides alike"
        )
    assert "L2 was flushed before and warm after" in compare("d.json", "e.json").stdout


def test_predicted_times_are_compared_and_hold_nothing(simulated: Profile) -> None:
    save(foreseen(simulated, 1e-3), "d.json")
    save(foreseen(simulated, 1.1e-3, limiter="L1"), "e.json")
    result = compare("d.json", "e.json", "--fail-on", "counts")
    assert result.exit_code == 0
    assert "Predicted times: 2 compared; 2 changed, in naive-coalesced and tiled." in result.stdout
    assert re.search(r"^ tiled +1\.000 ms +1\.100 ms +\+10\.0 % +issue → L1", result.stdout, re.M)
    assert refused("d.json", "e.json", "--fail-on", "time") == (
        "--fail-on time: no time of a GPU could be compared (predicted ones are compared, and hold "
        "nothing): profile both sides alike"
    )
    save(foreseen(simulated, 1e-3), "f.json")
    assert "Predicted times: 2 compared; none changed." in compare("d.json", "f.json").stdout


def test_a_kernel_that_is_no_longer_right_fails_whatever_is_held(simulated: Profile) -> None:
    records = tuple(
        replace(r, status="failed", reason="wrong result") if r.label == "tiled" else r
        for r in simulated.records
    )
    save(replace(simulated, records=records), "d.json")
    for kind in ("counts", "time"):
        said = refused("a.json", "d.json", "--fail-on", kind, code=3)
        assert said == f"--fail-on {kind}: tiled at 64x64x64: failed: wrong result"


@pytest.mark.parametrize("kinds", ["", "speed", "counts,times", "counts;time"])
def test_unknown_kinds_are_wrong_usage(kinds: str) -> None:
    result = compare("a.json", "b.json", "--fail-on", kinds)
    assert result.exit_code == 2
    assert "counts, time" in result.stderr


def test_json_is_a_document_with_a_version() -> None:
    result = compare("a.json", "c.json", "--json")
    document = json.loads(result.stdout)
    assert document["schema_version"] == 2
    assert (document["counts"], document["times"]) == ("changed", "not compared")
    (change,) = next(p for p in document["pairs"] if p["label"] == "tiled")["counts"]
    assert change["name"] == WARP_INSTRUCTIONS
    assert change["after"] - change["before"] == 1
    assert compare("a.json", "c.json", "--json").stdout == result.stdout  # stable
    assert compare("a.json", "c.json", "--json", "--fail-on", "counts").exit_code == 3


def test_a_page_is_written_and_nothing_it_reads_is_overwritten() -> None:
    result = compare("a.json", "c.json", "--html", "page.html")
    assert result.exit_code == 0
    assert result.stderr == "wrote page.html\n"
    assert Path("page.html").read_text(encoding="utf-8").endswith("</html>")
    before = Path("a.json").read_bytes()
    assert "has that name" in refused("a.json", "c.json", "--html", "a.json")
    assert Path("a.json").read_bytes() == before


def test_bad_files_are_one_line(folder: Path) -> None:
    text = Path("a.json").read_text(encoding="utf-8")
    Path("cut.json").write_text(text[: len(text) // 2], encoding="utf-8")
    Path("foreign.json").write_text('{"name": "something else"}', encoding="utf-8")
    assert refused("a.json", "cut.json").startswith("cut.json: it is no JSON: line ")
    assert "it is no profile of this toolkit" in refused("foreign.json", "a.json")
    assert refused("a.json", "absent.json") == "absent.json: there is no such file"
    assert "are one file: give two profiles" in refused("a.json", "./a.json")


def test_nothing_in_common_says_what_there_is() -> None:
    save(profile([32], ["tiled"], executor="theory"), "d.json")
    assert refused("a.json", "d.json") == (
        "the profiles have no shape in common: the first has 64x64x64, the second 32x32x32: "
        "profile the same --shape"
    )


def test_another_device_says_what_is_not_compared(simulated: Profile) -> None:
    save(profile([64], ["tiled"], executor="simulate", device="rtx-a6000", seed=1), "d.json")
    result = compare("a.json", "d.json", "--fail-on", "counts")
    assert result.exit_code == 0  # of one architecture: the same machine code
    assert "note: the devices differ, NVIDIA GeForce RTX 3090 and NVIDIA RTX A6000" in result.stdout
    assert "note: only in the first profile: naive-coalesced at 64 × 64 × 64" in result.stdout


def test_another_tile_changes_theory_machine_code_and_registers(folder: Path) -> None:
    made = profile([64], ["tiled:tile=16"], executor="simulate", seed=1)
    renamed = tuple(replace(record, label="tiled") for record in made.records)
    save(replace(made, records=renamed), "d.json")
    document = json.loads(compare("a.json", "d.json", "--json").stdout)
    names = {(c["grade"], c["name"]) for pair in document["pairs"] for c in pair["counts"]}
    assert ("theory", "global loads of A: elements") in names  # K/16 instead of K/32
    assert ("simulated", WARP_INSTRUCTIONS) in names
    assert ("compiled", "static shared bytes") in names
    assert any(c["lines"] for pair in document["pairs"] for c in pair["counts"])
