"""Stages of a record, and the failures that end it."""

from dataclasses import replace

import pytest

from analysis.devices import find_device
from analysis.l2_state import L2State
from analysis.problem import Gemm, parse_shape
from kernels import parse_selection
from tests.records_by_hand import check, predicted, resources
from toolkit.gpu.sampling import Series
from toolkit.profiling.record import (
    failed,
    planned,
    with_check,
    with_measurement,
    with_resources,
)

DEVICE = find_device("rtx-3090")


def plan(text, m=64, n=64, k=64):
    return planned(parse_selection(text), Gemm(m=m, n=n, k=k), DEVICE)


def test_the_predicted_time_of_a_wrong_result_is_not_trusted():
    record = replace(plan("tiled"), predicted=predicted(2e-6))
    assert record.trusted_prediction == predicted(2e-6)
    assert with_check(record, check(passed=False)).trusted_prediction is None
    assert failed(record, "no resources").trusted_prediction is None
    assert with_check(record, check()).trusted_prediction == predicted(2e-6)


def measured(record=None, **series):
    record = record or plan("tiled")
    return with_measurement(record, Series(**series), clock="CUDA events", l2=L2State.DIRTY)


def test_a_plan_holds_geometry_and_theory():
    record = plan("tiled:tile=16")
    assert (record.variant, record.label, record.rung) == ("tiled", "tiled:tile=16", 4)
    assert record.parameters == {"tile": 16}
    assert (record.geometry.grid, record.geometry.block) == ((4, 4, 1), (16, 16, 1))  # 64 / 16
    assert record.theory.flop == 2 * 64**3
    assert (record.status, record.notes) == ("ok", ())


def test_a_reference_has_neither():
    record = plan("cublas")
    assert (record.rung, record.geometry, record.theory) == (None, None, None)
    assert record.status == "ok"


def test_padding_is_said_and_counted():
    record = plan("vectorized", m=5, n=7, k=9)
    assert record.shape == parse_shape("5x7x9")
    assert record.executed_shape == parse_shape("5x8x12")
    assert record.notes[0].startswith("padded with zeros to 5x8x12, because N and K must be")
    assert record.theory.flop == 2 * 5 * 8 * 12


def test_a_shape_that_a_rung_cannot_take_is_skipped():
    record = plan("one-block")
    assert record.status == "skipped"
    assert record.reason.startswith("one-block cannot take 64x64x64")
    assert record.theory is None


def test_a_rung_that_is_newer_than_the_device_is_skipped():
    selection = parse_selection("tiled")
    new = replace(selection, variant=replace(selection.variant, since=90))
    record = planned(new, parse_shape("64"), DEVICE)
    assert (record.status, record.theory, record.geometry) == ("skipped", None, None)
    assert record.reason == (
        f"tiled needs sm_90 or later, and {DEVICE.name} is sm_86: choose another device or another "
        "rung"
    )


def test_resources_bring_occupancy_and_waves():
    record = with_resources(plan("tiled", 1024, 1024, 64), resources(), DEVICE)
    assert record.occupancy.blocks_per_sm == 1  # 1024 of 1536 threads
    assert record.waves == pytest.approx(1024 / 82)  # (1024 / 32)² blocks on 82 SMs


def test_a_note_of_the_compiler_is_added_to_the_notes():
    record = with_resources(plan("vectorized", n=7), resources(note="for a relative"), DEVICE)
    assert [note.split()[0] for note in record.notes] == ["padded", "for"]


def test_resources_beyond_the_device_fail():
    record = with_resources(plan("tiled"), resources(static_shared_bytes=2**20), DEVICE)
    assert record.status == "failed"
    assert record.resources is not None
    assert record.occupancy is None


def test_a_right_result_is_kept():
    record = with_check(plan("tiled"), check())
    assert (record.status, record.reason) == ("ok", None)
    assert record.check is not None


@pytest.mark.parametrize(
    ("ratio", "reason"),
    [
        (1234.5, "wrong result: the error of C[1][2] is 1.23e+03 times its bound"),
        (None, "wrong result: C[1][2] is not a number, or infinitely far off"),
    ],
)
def test_a_wrong_result_fails_in_words(ratio, reason):
    record = with_check(plan("tiled"), check(passed=False, worst_ratio=ratio))
    assert (record.status, record.reason) == ("failed", reason)


def test_a_failed_record_stays_failed_when_its_result_is_right():
    record = with_check(failed(plan("tiled"), "earlier"), check())
    assert (record.status, record.reason) == ("failed", "earlier")


def test_a_measurement_is_the_median_of_its_samples():
    series = {"samples_s": [1.0, 4.0, 2.0], "peer_s": [2.0, 4.0, 2.0], "stopped_by": "time limit"}
    record = measured(plan("vectorized", m=5, n=7, k=9), **series)
    assert record.measured.median_s == 2.0
    assert record.measured.samples_s == (1.0, 4.0, 2.0)
    assert record.measured.interval_s is None  # six samples are the fewest
    assert record.measured.flop_per_s == 2 * 5 * 7 * 9 / 2.0  # without the padding
    assert record.measured.relative_to_cublas.peer == "cublas"
    assert record.measured.relative_to_cublas.median == 1.0  # of 2, 1 and 1


def test_the_ratio_is_of_the_samples_that_have_a_pair():
    record = measured(samples_s=[1.0, 2.0, 9.0], peer_s=[3.0, 6.0])
    assert record.measured.relative_to_cublas.median == 3.0
    assert record.measured.samples_s == (1.0, 2.0, 9.0)


def test_without_a_peer_there_is_no_ratio():
    record = measured(samples_s=[1.0])
    assert record.measured.relative_to_cublas is None


def test_a_series_that_failed_fails_the_record_whatever_it_sampled():
    record = measured(samples_s=[1.0], error="launch: gone")
    assert (record.status, record.reason, record.measured) == ("failed", "launch: gone", None)


def test_a_series_of_nothing_is_skipped():
    record = measured(stopped_by="interrupt")
    assert (record.status, record.measured) == ("skipped", None)
    assert record.reason == "interrupted before it was timed"
