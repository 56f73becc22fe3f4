"""Runs that counted the same on several GPUs, merged: medians of what they counted of traffic."""

from dataclasses import replace
from functools import cache

import pytest

from analysis.comparison.scorecard import TRAFFIC_COUNTED
from analysis.errors import InputError
from benchmarks.recount import SEVERAL, merged
from benchmarks.traffic_tables import shipped_run
from toolkit.gpu.nsight_compute.ncu import INSTRUCTIONS, TRAFFIC

READS = "dram__bytes_read.sum"


@cache
def run():
    """The smallest shape of the run that ships."""
    whole = shipped_run("h200")
    assert whole is not None
    shape = whole.records[0].shape
    return replace(whole, records=tuple(r for r in whole.records if r.shape == shape))


def times(factor):
    """The run as if so many times as much had been counted, of everything."""

    def scaled(record):
        if record.counted is None:
            return record
        counters = {name: factor * value for name, value in record.counted.counters.items()}
        return replace(record, counted=replace(record.counted, counters=counters))

    return replace(run(), records=tuple(map(scaled, run().records)))


def with_notes(given, *notes):
    return replace(given, records=tuple(replace(r, notes=notes) for r in given.records))


def of_one_gpu(factor):
    day = "Monday" if factor < 3 else "Friday"
    return with_notes(times(factor), f"{TRAFFIC_COUNTED}on {day}, {factor} times")


def test_traffic_is_the_median_and_all_else_stays():
    found = merged(of_one_gpu(1), [of_one_gpu(2), of_one_gpu(5)])
    checked = 0
    for before, after in zip(run().records, found.records, strict=True):
        if before.counted is None:
            continue
        assert after.counted is not None
        for name in TRAFFIC:
            assert after.counted.counters[name] == 2 * before.counted.counters[name]
        for name in INSTRUCTIONS:
            if name in before.counted.counters:
                assert after.counted.counters[name] == before.counted.counters[name]
        when = "on Monday, on Friday, the median of 3"
        each = "on Monday, 1 times; on Monday, 2 times; on Friday, 5 times"
        assert after.notes == (f"{TRAFFIC_COUNTED}{when} {SEVERAL} ({each})",)
        scores = {score.counter: score for score in after.scores}
        assert scores[READS].measured == after.counted.counters[READS]  # it is scored anew
        checked += 1
    assert checked > 15


def test_what_was_not_counted_anew_stays():
    whole = of_one_gpu(1)
    of_old = tuple(replace(r, notes=()) if r.label == "tiled" else r for r in whole.records)
    found = merged(replace(whole, records=of_old), [of_one_gpu(3), of_one_gpu(3)]).records
    before = {record.label: record for record in of_old}
    after = {record.label: record for record in found}
    assert after["tiled"] == before["tiled"]
    assert after["vectorized"] != before["vectorized"]


def without(counter):
    def bare(record):
        if record.counted is None:
            return record
        counters = {n: v for n, v in record.counted.counters.items() if n != counter}
        return replace(record, counted=replace(record.counted, counters=counters))

    whole = of_one_gpu(1)
    return replace(whole, records=tuple(map(bare, whole.records)))


def without_label(label):
    whole = of_one_gpu(1)
    return replace(whole, records=tuple(r for r in whole.records if r.label != label))


def of_another_kernel():
    def renamed(record):
        if record.counted is None:
            return record
        kernels = tuple(replace(kernel, name="other") for kernel in record.counted.kernels)
        return replace(record, counted=replace(record.counted, kernels=kernels))

    whole = of_one_gpu(1)
    return replace(whole, records=tuple(map(renamed, whole.records)))


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        (lambda: shipped_run("h100-sxm"), r"H200 .*, another of NVIDIA H100"),
        (lambda: replace(of_one_gpu(1), seed=run().seed + 1), "matrices of seed"),
        (lambda: without_label("tiled"), "tiled at .* not counted anew in every run"),
        (lambda: with_notes(times(2)), "not counted anew in every run"),
        (of_another_kernel, "launches another kernel in one run"),
        (lambda: without(READS), f"one run did not count {READS}"),
        (lambda: merged(of_one_gpu(1), [of_one_gpu(2)] * 2), "a median of several already"),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(other, complaint):
    with pytest.raises(InputError, match=complaint):
        merged(of_one_gpu(1), [of_one_gpu(2), other()])


def test_an_even_number_of_runs_is_refused():
    with pytest.raises(InputError, match="2 runs: take an odd number"):
        merged(of_one_gpu(1), [of_one_gpu(2)])
