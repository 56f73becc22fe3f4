"""Launches whose blocks differ take the time that they took on an H200; medians in microseconds."""

from functools import cache

import numpy as np
import pytest

from analysis.records.counters import MODELLED
from tests.cubins import cubin_of
from tests.sampling import exhaustive
from toolkit.execution.simulate import simulate
from toolkit.machine_code.kernel import Kernel

SOURCE = """
// every block computes; block 0 alone stores
extern "C" __global__ void peak(float *out, float x) {
    float s = threadIdx.x;
    for (int i = 0; i < 2000; i++) s = s * x + 1.0f;
    if (blockIdx.x == 0) out[threadIdx.x] = s;
}
// no block stores
extern "C" __global__ void peak_never(float *out, float x) {
    float s = threadIdx.x;
    for (int i = 0; i < 2000; i++) s = s * x + 1.0f;
    if (s == 12345.678f) out[threadIdx.x] = s;
}
extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void nothing(float *) {}
// block 777 executes far more than the others
extern "C" __global__ void one_long(float *x) {
    float s = x[blockIdx.x * 64 + threadIdx.x];
    if (blockIdx.x == 777) for (int i = 0; i < 2000; i++) s = s * 1.0001f + 1.f;
    x[blockIdx.x * 64 + threadIdx.x] = s;
}
// blocks of which some execute `high` rounds, the others `low`
extern "C" __global__ void unequal(float *x, int which, int high, int low) {
    const int b = blockIdx.x, n = gridDim.x;
    int r = low;
    if (which == 1 && b & 1) return;
    if (which == 1) r = high;
    if (which == 2) r = b * high / n;
    if (which == 3 && b >= n - 10) r = high;
    if (which == 4 && b < 10) r = high;
    if (which == 5 && b == 7) r = high;
    if (which == 6 && b % 132 == 17) r = high;
    if (which == 7 && b % 100 == 17) r = high;
    if (which == 8 && b == n / 2) r = high;
    const int i = b * blockDim.x + threadIdx.x;
    float s = x[i];
    for (int k = 0; k < r; k++) s = s * 1.0001f + 1.f;
    x[i] = s;
}
// each block draws a ticket; the last one executes `high` rounds, the others `low`
extern "C" __global__ void with_tickets(float *x, unsigned *next, int high, int low) {
    if (threadIdx.x == 0) x[gridDim.x * blockDim.x + blockIdx.x] = atomicAdd(next, 1u);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int r = blockIdx.x == gridDim.x - 1 ? high : low;
    float s = x[i];
    for (int k = 0; k < r; k++) s = s * 1.0001f + 1.f;
    x[i] = s;
}
"""
EVERY_OTHER, TRIANGLE, LAST_TEN, FIRST_TEN, OF_FEW, EVERY_132ND, EVERY_100TH, ONE = range(1, 9)


@cache
def image():
    return cubin_of(SOURCE, "peak").image


def predicted(kernel, *arguments, grid, block, device="h200"):
    found = simulate(
        Kernel.from_image(image(), kernel),
        grid=grid,
        block=block,
        arguments=arguments,
        device=device,
        blocks="all",
    )
    assert found.predicted is not None, found.prediction_basis
    return found


def floats(count):
    return np.zeros(count, dtype=np.float32)


def unequal(which, high, low, grid, block):
    arguments = [floats(grid * block), *map(np.int32, (which, high, low))]
    return predicted("unequal", *arguments, grid=grid, block=block)


@pytest.mark.parametrize(
    ("which", "high", "low", "grid", "block", "measured_us"),
    [
        (EVERY_OTHER, 2000, 0, 1024, 256, 24.45),  # half of the SMs have nothing to do
        exhaustive(EVERY_OTHER, 2000, 0, 4096, 256, 49.63),
        exhaustive(TRIANGLE, 2000, 0, 1024, 256, 16.80),
        (LAST_TEN, 5000, 200, 8448, 128, 25.12),
        exhaustive(FIRST_TEN, 5000, 200, 8448, 128, 16.58),
        (OF_FEW, 5000, 50, 60, 256, 15.36),
        (EVERY_132ND, 2000, 0, 4096, 64, 8.93),
        exhaustive(EVERY_100TH, 200, 0, 4096, 64, 5.98),
        (EVERY_100TH, 2000, 0, 4096, 64, 9.12),
        (ONE, 2000, 0, 4096, 64, 8.45),
    ],
)
def test_long_and_short_blocks(which, high, low, grid, block, measured_us):
    found = unequal(which, high, low, grid, block).predicted
    assert 1e6 * found.time_s == pytest.approx(measured_us, rel=0.2)


def test_blocks_compute_after_their_last_access():
    found = predicted("peak", floats(256), np.float32(1.0001), grid=1024, block=256)
    assert 1e6 * found.predicted.time_s == pytest.approx(19.9, rel=0.05)


def test_blocks_that_exit_at_once_beside_one_with_work():
    arguments = [*(floats(1024) for _ in range(3)), np.int32(10)]
    found = predicted("add", *arguments, grid=1024, block=256)
    assert 1e6 * found.predicted.time_s == pytest.approx(3.55, rel=0.1)
    assert "blocks differ, and this SM finishes last" in found.prediction_basis


def test_one_long_block_among_many():
    found = predicted("one_long", floats(1 << 18), grid=4096, block=64)
    assert 1e6 * found.predicted.time_s == pytest.approx(7.55, rel=0.1)


def test_a_long_block_counts_where_blocks_draw_tickets():
    def clocks(high):
        x, tickets = floats(128 * 65), np.zeros(1, dtype=np.uint32)
        arguments = x, tickets, np.int32(high), np.int32(1000)
        return predicted("with_tickets", *arguments, grid=128, block=64).predicted.cycles

    assert 1.3 * clocks(1000) < clocks(1400) < 1.45 * clocks(1000)


@pytest.mark.parametrize("grid", [4096, 40_000])
def test_a_launch_takes_at_least_as_long_as_its_longest_block(grid):
    alone = unequal(ONE, 3000, 0, 1, 64).predicted  # block 0 of 1
    assert unequal(ONE, 3000, 0, grid, 64).predicted.cycles >= 0.98 * alone.cycles


@pytest.mark.parametrize(
    ("device", "grid"),
    [
        *(("h200", grid) for grid in (1, 300)),
        *(exhaustive(*case) for case in (("h200", 5000), ("t4", 1), ("t4", 300), ("t4", 5000))),
    ],
)
def test_launches_without_accesses_have_a_time(grid, device):
    for kernel, arguments in (
        ("nothing", [floats(64)]),
        ("add", [floats(64), floats(64), floats(64), np.int32(0)]),
        ("peak_never", [floats(64), np.float32(1.0001)]),
    ):
        target = Kernel.from_image(image(), kernel) if device == "h200" else SOURCE
        found = simulate(
            target, kernel, grid=grid, block=64, arguments=arguments, device=device, blocks="all"
        )
        assert found.predicted is not None, found.prediction_basis
        assert found.predicted.time_s >= found.predicted.launch_s
        assert found.counters["dram__bytes_read.sum"] == 0
        assert found.counters["lts__t_sectors_op_write.sum"] == 0


@pytest.mark.parametrize(
    ("kernel", "grid", "block", "measured_us"),
    [("peak", 1024, 256, 19.9), ("add", 1024, 256, 3.55), ("one_long", 4096, 64, 7.55)],
)
def test_a_plan_finds_the_blocks_that_differ(kernel, grid, block, measured_us):
    arguments = {
        "peak": [floats(256), np.float32(1.0001)],
        "add": [floats(1024), floats(1024), floats(1024), np.int32(10)],
        "one_long": [floats(1 << 18)],
    }[kernel]
    launch = {"grid": grid, "block": block, "arguments": arguments, "device": "h200"}
    code = Kernel.from_image(image(), kernel)
    few = simulate(code, **launch, blocks="representative")
    everything = simulate(code, **launch, blocks="all")
    assert few.executed_blocks < 20
    assert not few.estimates
    assert "proved" in few.basis
    exact = [name for name in everything.counters if name not in MODELLED]
    assert {n: few.counters[n] for n in exact} == {n: everything.counters[n] for n in exact}
    assert few.predicted.time_s == pytest.approx(everything.predicted.time_s, rel=0.02)
    assert 1e6 * few.predicted.time_s == pytest.approx(measured_us, rel=0.25)


def test_launches_without_accesses_have_a_plan():
    for kernel, arguments in (
        ("nothing", [floats(64)]),
        ("add", [floats(64), floats(64), floats(64), np.int32(0)]),
        ("peak_never", [floats(64), np.float32(1.0001)]),
    ):
        found = simulate(
            Kernel.from_image(image(), kernel),
            grid=4096,
            block=64,
            arguments=arguments,
            device="h200",
            blocks="representative",
        )
        assert found.executed_blocks < 20
        assert found.predicted.time_s >= found.predicted.launch_s
