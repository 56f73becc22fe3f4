"""Recorded runs: package data that is compressed, checked when it is read, and made again alike."""

import lzma
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.comparison.scorecard import disagreements, scores
from analysis.errors import InputError, RecordError
from benchmarks.resimulate import resimulated
from benchmarks.traffic_tables import shipped_run
from reports import render
from tests.refusals import refusal
from toolkit.store import recorded_runs as recorded
from toolkit.store.profile_json import load, save
from toolkit.store.recorded_runs import amend, recorded_run, run_beside, ship, ship_model


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A package that ships nothing yet."""
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def one_record(tmp_path_factory):
    run = shipped_run("h200")
    path = tmp_path_factory.mktemp("run") / "profile.json"
    first = run.records[0]
    of_it = tuple(one for one in run.listings if one.label == first.label)
    save(replace(run, records=(first,), listings=of_it), path)
    return path


@pytest.fixture
def source(one_record, tmp_path_factory):
    """A profile.json of a run on an H200, of one record."""
    return Path(shutil.copy(one_record, tmp_path_factory.mktemp("run")))


def test_a_page_needs_the_measured_part_of_a_run_alone():
    whole = recorded_run("h200")
    predicted = [
        replace(record, measured=None, counted=None, errors=())
        for record in whole.records
        if str(record.shape) == "512x512x512" and record.rung in (4, 5)
    ]
    profile = replace(whole, executor="simulate", records=tuple(predicted))
    beside = run_beside(profile)
    assert len(predicted) == 2
    assert not any(record.simulated for record in beside.records)
    page = render(profile, recorded=beside)
    assert page == render(profile, recorded=whole)
    assert page != render(profile)
    assert run_beside(whole) is None


def test_a_device_without_a_run_has_none():
    assert recorded_run("t4") is None
    assert recorded_run("no-such-device") is None


@pytest.mark.parametrize("device", ["h100-sxm", "h200"])
def test_no_exact_counter_of_a_shipped_run_is_apart(device):
    """From simulated to hardware, of all launches that both have; waits may take their time."""
    run = shipped_run(device)
    both = [record for record in run.records if record.simulated and record.counted]
    assert len({record.variant for record in both}) > 15
    assert len({record.shape for record in both}) == 7
    mismatches = [
        (record.label, str(record.shape), one.counter, one.simulated, one.measured)
        for record in both
        for one in disagreements(scores(record))
    ]
    assert mismatches == []


def test_what_is_shipped_comes_back_equal_and_small(source, folder):
    path = ship(source)
    assert path == folder / "h200.json.xz"
    assert recorded_run("h200") == load(source)
    assert path.stat().st_size < source.stat().st_size / 2


def test_a_caller_may_change_what_it_gets(source, folder):
    ship(source)
    recorded_run("h200").records[0].parameters["tile"] = -1
    assert recorded_run("h200") == load(source)


def test_the_same_profile_gives_the_same_bytes(source, folder):
    first = ship(source).read_bytes()
    assert ship(source).read_bytes() == first


def test_the_model_changes_no_file_of_measurements(tmp_path):
    run = shipped_run("h200")
    record = next(record for record in run.records if record.predicted and record.measured)
    run = replace(run, records=(record,), listings=())
    save(run, tmp_path / "profile.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorded, "FOLDER", tmp_path)
        _only_the_model_changes(run, record, ship(tmp_path / "profile.json"))


def _only_the_model_changes(run, record, path):
    before = path.read_bytes()
    assert load(path).records[0].measured == record.measured
    assert load(path).records[0].predicted is None
    slower = replace(record.predicted, time_s=2 * record.predicted.time_s)
    changed = replace(run, records=(replace(record, predicted=slower),))
    assert ship_model(changed).name == "h200.model.json.xz"
    assert path.read_bytes() == before
    assert recorded_run("h200") == changed


def test_a_model_of_other_launches_is_refused(source, folder):
    ship(source)
    run = load(source)
    ship_model(replace(run, records=()))
    assert "it is of other launches than the run" in refusal(RecordError, recorded_run, "h200")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:200], "its compressed data is cut short, or goes on after its end"),
        (lambda data: data + b"x", "its compressed data is cut short, or goes on after its end"),
        (lambda data: data[:200] + b"\0\0\0\0" + data[204:], "it cannot be unpacked: Corrupt"),
        (lambda data: b"", "it is not JSON: line 1"),
        (lambda data: lzma.compress(b"{}"), "it is not a profile of this toolkit"),
        (lambda data: lzma.compress(b"\xff"), "byte 0 is not UTF-8"),
    ],
)
def test_damaged_package_data_is_told_in_one_line(damage, message, source, folder):
    path = ship(source)
    path.write_bytes(damage(path.read_bytes()))
    said = refusal(RecordError, recorded_run, "h200")
    assert said.startswith(f"{path}: {message}")
    assert said.endswith("; it came with the package: install that again")


def test_a_text_without_end_is_refused(path_of_bomb):
    assert "it unpacks to more than any profile has" in refusal(RecordError, load, path_of_bomb)


@pytest.fixture
def path_of_bomb(tmp_path, monkeypatch):
    from toolkit.store import profile_json as store

    monkeypatch.setattr(store, "MOST_BYTES", 1000)
    path = tmp_path / "bomb.json.xz"
    path.write_bytes(lzma.compress(b" " * 100_000))
    return path


@pytest.mark.parametrize(
    "change", [{"executor": "simulate"}, {"executor": "theory"}, {"status": "interrupted"}]
)
def test_only_complete_runs_of_a_gpu_are_shipped(change, source, folder):
    save(replace(load(source), **change), source)
    assert "give a complete one of executor gpu" in refusal(InputError, ship, source)
    assert list(folder.iterdir()) == []


def test_the_command_says_what_it_wrote_or_why_not(source, folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["recorded", str(source)])
    recorded.main()
    assert capsys.readouterr().out == f"wrote {folder / 'h200.json.xz'}\n"
    for arguments, message in (
        (["absent"], "error: absent: No such file or directory: check the path"),
        ([], "usage"),
        (["--help"], "usage"),
    ):
        monkeypatch.setattr(sys, "argv", ["recorded", *arguments])
        with pytest.raises(SystemExit, match=message):
            recorded.main()


def test_a_later_run_takes_the_place_of_some_variants(source, folder):
    shipped = replace(shipped_run("h200"), listings=())
    one = next(record for record in shipped.records if record.measured)
    stale = replace(one, shape=replace(one.shape, k=1))  # not measured again
    other = replace(one, label="kept", rung=None)
    save(replace(shipped, records=(other, stale, one)), source)
    ship(source)
    later = folder / "later.json"
    save(replace(shipped, records=(replace(one, title="Again"),), created="2030-01-02"), later)
    assert amend(later, [one.label]) == folder / "h200.json.xz"
    found = recorded_run("h200")
    again, kept = found.records  # a rung comes before all else
    assert (again.label, kept.label) == (one.label, "kept")
    assert again.shape == one.shape
    assert again.title == "Again"
    assert again.notes[-1] == "measured on 2030-01-02, after the others"
    assert found.created == shipped.created


def test_a_later_run_without_the_variant_changes_nothing(source, folder):
    before = ship(source).read_bytes()
    assert "tiled not measured at a shipped shape" in refusal(InputError, amend, source, ["tiled"])
    assert (folder / "h200.json.xz").read_bytes() == before


def test_only_a_shipped_run_can_be_amended(source, folder):
    assert "no run of a GPU of its kind is shipped" in refusal(InputError, amend, source, ["cpu"])


@pytest.mark.exhaustive  # 2 s of nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs the nvcc of that run")
def test_a_run_is_simulated_anew_alike():
    run = shipped_run("h200")
    before = next(record for record in run.records if record.simulated and record.measured)
    after = resimulated(replace(run, records=(before,))).records[0]
    shipped = before.simulated.counters
    assert {name: after.simulated.counters[name] for name in shipped} == shipped
    assert after.simulated.compiler == before.simulated.compiler
