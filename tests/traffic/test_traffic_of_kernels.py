"""The model of traffic against an H200, on kernels of other kinds than the ladder's.

`recorded/h200.json` holds medians of five counts of each launch, made by `record.py`.
"""

import numpy as np
import pytest

from analysis.records.counters import MODELLED
from tests.sampling import chosen_of
from toolkit import simulate
from validation import ROOT, recordings
from validation.traffic.launches import LAUNCHES

RECORDING = recordings.read(ROOT / "validation/traffic/recorded/h200.json")
COUNTED = {entry["label"]: entry["counters"] for entry in RECORDING["launches"]}

FETCHED = "l1tex__m_xbar2l1tex_read_sectors.sum"
L2_READ, L2_WRITE = "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum"
DRAM_READ, DRAM_WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"

# Of 64 MiB only those that are simulated within seconds.
LARGE = ("copy", "copy_wide", "transpose_padded", "row_sums", "column_sums", "strided")
CHOSEN = chosen_of(
    [
        pytest.param(case, id=case.name)
        for _, case in LAUNCHES
        if case.name.endswith("1024") or case.kernel in LARGE
    ],
    lambda case: case.name.endswith("1024"),
)

# Neighbours in a grid run on neighbouring SMs, which mostly read through one side of L2: rows
# that blocks share cross over less often than chance has it. 1.11 in validation/README.md.
SHARED_ROWS = {"stencil 1024": 0.12}


def modelled(case):
    execution = simulate(
        case.source,
        case.kernel,
        grid=case.grid,
        block=case.block,
        arguments=case.make(np.random.default_rng()),
        arch="sm_90",
        device="h200",
    )
    return {name: execution.counters[name] for name in MODELLED}


@pytest.mark.parametrize("case", CHOSEN)
def test_traffic_is_that_of_an_h200(case):
    found, counted = modelled(case), COUNTED[case.name]
    assert found[FETCHED] == pytest.approx(counted[FETCHED], rel=0.02)
    assert found[L2_READ] == pytest.approx(counted[L2_READ], rel=SHARED_ROWS.get(case.name, 0.10))
    assert found[DRAM_READ] == pytest.approx(counted[DRAM_READ], rel=0.02)
    # the hardware writes some thousand sectors of its own in every launch
    assert found[L2_WRITE] == pytest.approx(counted[L2_WRITE], rel=0.02, abs=3000)
    # how much of what was written L2 keeps
    assert found[DRAM_WRITE] == pytest.approx(counted[DRAM_WRITE], rel=0.15, abs=2**20)


def test_the_recording_says_where_it_comes_from():
    assert RECORDING["device"] == "NVIDIA H200"
    assert RECORDING["compiler"].startswith("NVRTC")
    assert set(COUNTED) == {case.name for _, case in LAUNCHES}
