"""`profile --counters` on silicon: what Nsight Compute counts is what the simulator counted."""

import time

import pytest

from analysis.geometry import ceil_div
from analysis.records.counters import COUNTERS
from toolkit import load, profile, save
from toolkit.gpu.nsight_compute import ncu
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress

pytestmark = pytest.mark.ncu

QUICK = Sampling(time_limit_s=0.2)
SHAPES = ["512", "127x129x31"]
RUNGS = ["naive-uncoalesced", "naive-coalesced", "tiled", "tiled:tile=16", "vectorized"]
EXACT = [
    name
    for name in ncu.COUNTER_NAMES
    if name in COUNTERS and COUNTERS[name].counter_class == "exact"
]
SHARED_LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
REGISTERS_AT_ONCE = 8  # granularity of allocation per thread, and at least 16


class Told(Progress):
    """Notices of a run, and the time at which counting began."""

    def __init__(self):
        self.notices = []
        self.counting_since = 0.0

    def step(self, text):
        if text == "hardware counters":
            self.counting_since = time.monotonic()

    def notice(self, text):
        self.notices.append(text)


@pytest.fixture(scope="module")
def told():
    return Told()


@pytest.fixture(scope="module")
def counted(told):
    return profile(
        SHAPES, [*RUNGS, "cublas"], executor="gpu", sampling=QUICK, counters=True, progress=told
    )


def rungs_of(result):
    return [record for record in result.records if record.rung is not None]


def exact_counters(record):
    assert record.counted is not None, record.notes
    return without_arbitration(record.counted.counters)


def without_arbitration(counters):
    """The exact counters; the hardware's shared loads also meet other traffic, as conflicts."""
    found = {name: counters[name] for name in EXACT}
    found[SHARED_LOADS] -= counters[CONFLICTS]
    return found


def test_every_launch_is_counted_and_nothing_is_amiss(counted, told):
    assert told.notices == []
    assert len(counted.records) == len(SHAPES) * (len(RUNGS) + 1)
    for record in counted.records:
        assert record.status == "ok", record.reason
        assert record.counted is not None, record.notes
        assert record.counted.missing == ()
        assert set(record.counted.counters) == set(ncu.COUNTER_NAMES)
        assert record.measured is not None
    assert counted.environment.software["Nsight Compute"]


def test_exact_counters_are_those_of_the_simulator(counted):
    for record in rungs_of(counted):
        assert record.simulated is not None, record.notes
        simulated = without_arbitration(record.simulated.counters)
        assert exact_counters(record) == simulated, f"{record.label} at {record.shape}"


def test_the_launch_that_was_counted_is_the_one_that_was_timed(counted):
    for record in rungs_of(counted):
        (kernel,) = record.counted.kernels
        assert (kernel.grid, kernel.block) == (record.geometry.grid, record.geometry.block)
        assert kernel.static_shared_bytes == record.resources.static_shared_bytes
        assert kernel.dynamic_shared_bytes == record.geometry.dynamic_shared_bytes
        registers = record.resources.registers_per_thread
        allocated = max(16, REGISTERS_AT_ONCE * ceil_div(registers, REGISTERS_AT_ONCE))
        assert registers <= kernel.registers_per_thread <= allocated


def test_cublas_is_identified(counted):
    for record in (record for record in counted.records if record.label == "cublas"):
        kernels = record.counted.kernels
        assert 1 <= len(kernels) <= 3  # the product, and what it may need before and after
        assert not any(kernel.name.startswith(("sgemm_", "next_is__")) for kernel in kernels)
        assert record.notes[-1].startswith(f"cuBLAS launched {kernels[0].name} (")
        fused = record.counted.counters["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"]
        assert fused >= record.shape.flop // 2  # one for each two operations


def test_a_library_shows_which_way_round_its_tile_is():
    """Wide and flat products have the blocks of C that the tile says, in one of its two ways."""
    result = profile(
        ["128x8192x512", "8192x128x512"], ["cublas"], executor="gpu", sampling=QUICK, counters=True
    )
    for record in result.records:
        kernel = record.counted.kernels[0]
        if kernel.tile is None:
            continue
        rows, columns = kernel.tile
        tiles = ceil_div(record.shape.m, rows) * ceil_div(record.shape.n, columns)
        x, y, z = kernel.grid
        assert (x * y * z) % tiles == 0, f"{kernel} at {record.shape}"  # times its splits of K


def test_the_file_holds_the_counters(counted, tmp_path):
    save(counted, tmp_path / "profile.json")
    assert load(tmp_path / "profile.json") == counted


def test_the_whole_ladder_at_4096_is_counted_in_90_seconds():
    told = Told()
    result = profile(["4096"], executor="gpu", sampling=QUICK, counters=True, progress=told)
    took_s = time.monotonic() - told.counting_since
    for record in rungs_of(result):
        if record.status == "ok":
            assert record.counted is not None, record.notes
    assert took_s < 90
