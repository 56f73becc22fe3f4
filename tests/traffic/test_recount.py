"""Runs that counted the same on several GPUs, merged: medians of what they counted of traffic."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from analysis.errors import InputError
from analysis.result import Profile, Record
from toolkit.ncu import INSTRUCTIONS, TRAFFIC
from toolkit.recorded import recorded_run

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from recount import COUNTED_ANEW, merged

READS = "dram__bytes_read.sum"


@cache
def run() -> Profile:
    """The smallest shape of the run that ships."""
    whole = recorded_run("h200")
    assert whole is not None
    shape = whole.records[0].shape
    return replace(whole, records=tuple(r for r in whole.records if r.shape == shape))


def times(factor: int) -> Profile:
    """The run as if so many times as much had been counted, of everything."""

    def scaled(record: Record) -> Record:
        if record.counted is None:
            return record
        counters = {name: factor * value for name, value in record.counted.counters.items()}
        return replace(record, counted=replace(record.counted, counters=counters))

    return replace(run(), records=tuple(map(scaled, run().records)))


def test_traffic_is_the_median_and_all_else_stays() -> None:
    found = merged(run(), [times(2), times(5)])
    checked = 0
    for before, after in zip(run().records, found.records, strict=True):
        if before.counted is None:
            assert after == before
            continue
        assert after.counted is not None
        for name in TRAFFIC:
            assert after.counted.counters[name] == 2 * before.counted.counters[name]
        for name in INSTRUCTIONS:
            if name in before.counted.counters:
                assert after.counted.counters[name] == before.counted.counters[name]
        notes = [note for note in after.notes if note.startswith(COUNTED_ANEW)]
        assert len(notes) == 1
        assert "median of 3 counts" in notes[0]
        scores = {score.counter: score for score in after.scores}
        assert scores[READS].measured == after.counted.counters[READS]  # it is scored anew
        checked += 1
    assert checked > 15


def test_what_was_not_counted_anew_stays() -> None:
    of_old = tuple(replace(r, notes=()) if r.label == "tiled" else r for r in run().records)
    found = merged(replace(run(), records=of_old), [times(3), times(3)]).records
    before = {record.label: record for record in of_old}
    after = {record.label: record for record in found}
    assert after["tiled"] == before["tiled"]
    assert after["vectorized"] != before["vectorized"]


def test_runs_that_do_not_belong_together_are_refused() -> None:
    other_device = recorded_run("h100-sxm")
    assert other_device is not None
    with pytest.raises(InputError, match=r"H200 .*, another of NVIDIA H100"):
        merged(run(), [other_device])
    fewer = replace(run(), records=tuple(r for r in run().records if r.label != "tiled"))
    with pytest.raises(InputError, match="not every run counted tiled at "):
        merged(run(), [fewer])
