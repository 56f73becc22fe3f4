"""Errors of predicted times, as the benchmark computes them and the pages state them."""

import re
from functools import cache

import pytest

from analysis.comparison import accuracy
from analysis.comparison.accuracy import (
    ACCURACIES,
    DEFAULT_DEVICE,
    RECORDED,
    accuracies,
    device_of,
)
from analysis.comparison.held_out import HELD_OUT, HeldOut
from analysis.devices import DEVICES, find_device
from analysis.timing.predicted import Resource
from benchmarks import errors_by_limiter
from benchmarks.prediction_errors import (
    LIMIT_S,
    PARTS,
    TRIAL_PARTS,
    mean_error,
    measured,
    on_trial,
    ratio,
    recorded_trial,
)
from benchmarks.recorded_tables import SHORT_S
from toolkit.store.recorded_runs import recorded_run
from validation import ROOT
from validation.timing.timed_launches import TIMED
from validation.timing.trial_launches import TRIALS

NO_LIMIT_S = 600.0


@cache
def cells(part):
    """Predictions of one part of the benchmark, given with its options."""
    name, *options = part.split()
    if name in TRIAL_PARTS:
        (gpu,) = options[1:]
        device = recorded_trial(gpu)["device"]
        return tuple(cell | {"device": device} for cell in on_trial(name, gpu, NO_LIMIT_S))
    return tuple(PARTS[name](LIMIT_S))


def compared(one):
    """The launches of an entry: of the recorded runs the longer ones, of "ladder" the held-out."""
    return [
        cell
        for cell in cells(one.part)
        if ratio(cell) is not None
        and cell.get("device", "h200") == one.device
        and (one.part != RECORDED or cell["measured_dirty_s"] >= SHORT_S)
        and (one.part != "ladder" or cell["held_out"])
    ]


@pytest.mark.parametrize("one", [one for one in ACCURACIES if one.part == RECORDED])
def test_the_benchmark_computes_the_errors_of_the_recorded_runs(one):
    assert_as_computed(one)


@pytest.mark.exhaustive
@pytest.mark.parametrize("one", [one for one in ACCURACIES if one.part != RECORDED])
def test_the_benchmark_computes_the_other_errors(one):
    assert_as_computed(one)


def assert_as_computed(one):
    found = compared(one)
    assert len(found) == one.launches
    assert round(mean_error(found), 3) == one.mean_error


@pytest.mark.parametrize("one", ACCURACIES)
def test_every_error_stands_in_the_documents_with_how_it_was_obtained(one):
    validation = (ROOT / "docs" / "validation.md").read_text("utf-8")
    how = "held-out" if one.is_held_out else "fitted"
    row = (
        f"| {find_device(one.device).name} | {one.launches} | {one.what} | "
        f"{100 * one.mean_error:.1f}% | {how} | `{one.command}` |"
    )
    assert row in validation


def test_held_out_errors_come_first_and_own_ones_alone():
    found = accuracies(find_device("h200"))
    assert {one.device for one in found} == {"h200"}
    assert [one.is_held_out for one in found] == [True, True, False, False]


def test_a_device_without_measurements_has_those_of_its_architecture():
    assert [one.device for one in accuracies(find_device("rtx-a6000"))] == ["rtx-3090"]
    assert accuracies(find_device("l40s")) == ()


def test_the_default_device_is_the_best_validated_one_with_a_recorded_run():
    recorded = [key for key in DEVICES if recorded_run(key)]
    assert recorded == [key for key in DEVICES if is_compared_with_its_run(key)]
    # held out: (48 · 14.8 % + 26 · 3.7 %) / 74 = 10.9 % on an H200, 16.0 % on an H100 SXM
    assert (recorded, DEFAULT_DEVICE.key) == (["h100-sxm", "h200"], "h200")


def is_compared_with_its_run(key):
    return any((one.device, one.part) == (key, RECORDED) for one in ACCURACIES)


@pytest.mark.parametrize(
    ("architecture", "key"),
    [
        ("sm_90", "h200"),
        ("sm_90a", "h200"),
        ("sm_86", "rtx-3090"),  # the RTX A6000 was not measured
        ("sm_75", "t4"),
        ("sm_100f", "b200"),
        ("sm_87", None),
        ("nonsense", None),
    ],
)
def test_the_device_of_an_architecture_is_its_best_validated_one(architecture, key):
    assert device_of(architecture) is (DEVICES[key] if key else None)


def test_parts_are_those_of_the_benchmark():
    assert {one.part.split()[0] for one in ACCURACIES} <= {*PARTS, *TRIAL_PARTS}


# By limiter.


def cell(limiter, predicted_s, measured_s=1.0, **more):
    return {
        "timed_on": "t4",
        "limiter": limiter,
        "predicted_s": predicted_s,
        "measured_dirty_s": measured_s,
        **more,
    }


def test_errors_are_means_by_device_kind_and_limiter():
    found = errors_by_limiter.held_out(
        {
            "final": [
                cell("DRAM", 1.2),
                cell("DRAM", 1.9, 2.0),
                cell("L2", 1.0),
                {"timed_on": "t4", "left_out": "too long", "measured_dirty_s": 1.0},
            ],
            "ladder": [cell("DRAM", 1.1, held_out=True), cell("DRAM", 3.0, held_out=False)],
            "published": [cell("DRAM", 1.5)],
        }
    )
    assert [(one.kernels, one.limiter, one.launches, one.mean_error) for one in found] == [
        ("ladder", "DRAM", 2, 0.3),  # (0.1 + 0.5) / 2; a fitted one is left out
        ("other kernels", "DRAM", 2, 0.125),  # (0.2 + 0.05) / 2
        ("other kernels", "L2", 1, 0.0),
    ]


def test_the_table_is_written_as_it_is_read():
    text = errors_by_limiter.TABLE.read_text("utf-8")
    assert errors_by_limiter.written(HELD_OUT, text) == text


@pytest.mark.parametrize("one", [one for one in ACCURACIES if one.is_held_out])
def test_errors_by_limiter_have_the_mean_of_all(one):
    rows = [x for x in HELD_OUT if (x.device, x.kernels) == (one.device, one.kernels)]
    assert sum(x.launches for x in rows) == one.launches
    mean = sum(x.launches * x.mean_error for x in rows) / one.launches
    assert mean == pytest.approx(one.mean_error, abs=0.001)  # both are rounded


@pytest.mark.exhaustive
def test_the_benchmark_computes_the_errors_by_limiter():
    trials = [one.part for one in ACCURACIES if one.part.startswith("final")]
    parts = {
        "final": [c | {"timed_on": c["device"]} for part in trials for c in cells(part)],
        "ladder": cells("ladder"),
        "published": cells("published"),
    }
    assert tuple(errors_by_limiter.held_out(parts)) == HELD_OUT


def test_launches_are_alike_by_device_kind_and_limiter(monkeypatch):
    rows = (
        HeldOut("h200", "other kernels", Resource.DRAM, 5, 0.1),
        HeldOut("h200", "other kernels", Resource.L2, 4, 0.2),
        HeldOut("h200", "ladder", Resource.L2, 9, 0.3),
    )
    monkeypatch.setattr(accuracy, "HELD_OUT", rows)
    device = find_device("h200")
    assert accuracy.held_out_like(device, Resource.DRAM, is_rung=False) == rows[0]
    assert accuracy.held_out_like(device, Resource.L2, is_rung=False) is None  # fewer than five
    assert accuracy.held_out_like(device, Resource.L2, is_rung=True) == rows[2]
    assert accuracy.held_out_like(find_device("h100-sxm"), Resource.DRAM, is_rung=False) is None


def _of_parts():
    """Key of the device, part and kernel of each timed launch of kernels outside the ladder."""
    for one in TIMED:
        yield from (("h200", "kernels", one) for _ in one.cases)
    for key, gpu in (("h200", "h200"), ("h100-sxm", "h100")):
        timed = measured(recorded_trial(gpu), "trial")
        for one in TRIALS:
            yield from ((key, one.part, one) for case in one.cases if case.name in timed)


@pytest.mark.parametrize("entry", [one for one in ACCURACIES if "outside the ladder" in one.what])
def test_entries_state_how_many_kernels_and_launches_were_timed(entry):
    part = entry.part.split()[0]
    of = [
        (one.file, one.kernel)
        for key, where, one in _of_parts()
        if (key, where) == (entry.device, part)
    ]
    assert entry.what == f"{len(set(of))} kernels outside the ladder"
    assert entry.launches == len(of)


def test_the_page_states_one_number_of_fitted_kernels():
    page = ROOT.joinpath("docs/validation.md").read_text(encoding="utf-8")
    kernels = f"{len({(one.file, one.kernel) for one in TIMED})}"
    assert set(re.findall(r"(?:\| |the )(\d+) other kernels", page)) == {kernels}
    assert f"58 launches of {kernels} kernels" in page
