"""The model of traffic against the hardware counters of the recorded run, rung by rung.

The run's kernels were compiled by nvcc, those simulated here by NVRTC: registers and with them
the blocks of an SM differ a little, which is part of what a reader without a GPU gets.
"""

from dataclasses import replace
from functools import cache

import pytest

from analysis.problem import Gemm, parse_shape
from benchmarks.traffic_tables import (
    COUNTERS,
    PROMISED,
    SHIPPED,
    counted_launches,
    modelled_launches,
    ratio,
    shipped_ratios,
    shipped_run,
    shipped_table,
)
from kernels import LADDER
from tests.rungs import without_times
from tests.sampling import sampled
from toolkit.execution.sanitizer import Checked
from validation import ROOT

SQUARES = tuple(Gemm(m=n, n=n, k=n) for n in (512, 1024, 2048, 4096, 8192))
RAGGED = parse_shape("4097x4095x4093")

ANEW = [variant.name for variant in LADDER[:7] if not variant.max_extent]  # simulated anew
# What the model misses by more, as it ships: validation/README.md says why. Rules that only one
# rung confirmed had kept them within the bounds.
MISSED_READS = {
    ("coarsened-1d", SQUARES[3]),  # 1.12 on the H100, 1.11 on the H200; before 1.05, 1.04
    ("coarsened-1d", SQUARES[4]),
    ("coarsened-2d", SQUARES[3]),
    ("vectorized", SQUARES[3]),
    ("wide-thread-tile", SQUARES[0]),  # 0.84 on both; before 0.97
    ("wide-thread-tile", SQUARES[1]),  # 0.78 on both; before 0.97
    ("wide-thread-tile", SQUARES[2]),
    ("wide-thread-tile", SQUARES[3]),
    ("wide-thread-tile", SQUARES[4]),
    ("naive-uncoalesced", SQUARES[4]),
}
MISSED = {
    ("h100-sxm", "L2 reads"): MISSED_READS | {("fenced", SQUARES[0])},  # 0.90; before 0.93
    ("h200", "L2 reads"): MISSED_READS,
    ("h100-sxm", "DRAM reads"): {  # 1.22 and 1.23; before decision 119 within 15%
        ("tall-thread-tile", SQUARES[1]),
        ("realigned", SQUARES[1]),
    },
    ("h100-sxm", "DRAM writes"): {
        ("naive-uncoalesced", SQUARES[4]),
        ("realigned", SQUARES[1]),  # 1.26; before decision 119 within 15%
    },
    ("h200", "DRAM writes"): {
        ("double-buffered", SQUARES[2]),
        ("naive-uncoalesced", SQUARES[4]),
    },
}
# 1.16 at the ragged shape in L2 reads, 0.80 in DRAM writes; both within 10% and 15% before.
MISSED_ANEW = {("coarsened-1d", RAGGED), ("naive-uncoalesced", RAGGED)}
MOST_MISSED = 0.30


def recorded():
    return shipped_run("h200")


@pytest.fixture(autouse=True)
def counted_alone(monkeypatch):
    """Neither timed nor checked by the sanitizer, which takes several times as long."""
    nothing = Checked(kernel="", findings=(), executed_blocks=0, blocks=0, tools=())
    without_times(monkeypatch)
    monkeypatch.setattr("toolkit.profiling.on_simulator.check_rung", lambda *_: nothing)


@cache
def modelled(key):
    (record,) = (one for one in recorded().records if (one.label, one.shape) == key)
    return modelled_launches(replace(recorded(), records=(record,)))[key]


@cache
def counted():
    return counted_launches(recorded())


@pytest.mark.parametrize(
    ("label", "shape"),
    sampled(
        [
            pytest.param(label, shape, id=f"{label} {shape}")
            for label in ANEW
            for shape in (*SQUARES, RAGGED)
        ],
        key=lambda launch: launch[0],
        seed=2,  # of shapes up to 2048 and the ragged one
    ),
)
def test_traffic_is_that_of_the_recorded_run(label, shape):
    key = label, shape
    for what, counters in COUNTERS.items():
        found = ratio(modelled(key), counted()[key], counters)
        is_missed = key in MISSED_ANEW or key in MISSED.get(("h200", what), set())
        if found is not None:  # else too little traffic to compare
            assert abs(found - 1) <= (MOST_MISSED if is_missed else PROMISED[what]), what


# All rungs, on both devices, as they ship: what a model promises and misses stands in the docs.


def test_the_table_in_the_docs_is_that_of_the_shipped_runs():
    page = ROOT / "docs" / "validation.md"
    assert shipped_table() in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("device", SHIPPED)
@pytest.mark.parametrize("what", COUNTERS)
def test_the_cells_of_the_shipped_runs_are_as_promised(device, what):
    found = shipped_ratios(shipped_run(device), what)
    assert len(found) >= 45  # others have less than a MiB of it
    missed = {key: value for key, value in found.items() if abs(value - 1) > PROMISED[what]}
    assert set(missed) == MISSED.get((device, what), set()), missed


@pytest.mark.exhaustive  # other launches are modelled above
def test_the_model_gives_what_ships():
    """The runs were simulated by it as it is: a rung that loads, one that copies, one in bulk."""
    run = shipped_run("h100-sxm")
    names = ("tiled", "async-copy", "stream-k")
    shape = parse_shape("1024")
    shipped = {r.label: r for r in run.records if r.shape == shape and r.label in names}
    assert set(shipped) == set(names)
    made = modelled_launches(replace(run, records=tuple(shipped.values())))
    for label, record in shipped.items():
        ours = made[label, shape].simulated
        for counter in COUNTERS.values():  # of nvcc's code and NVRTC's
            before, now = record.simulated.counters[counter], ours.counters[counter]
            assert now == pytest.approx(before, rel=0.01, abs=2**15), (label, counter)
