"""Stores of many warps to one address: counts by line, time, cause and line of the source."""

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.hardware.sm_constants import constants_of
from analysis.timing.predicted import Effect
from toolkit.execution.simulate import simulate

BLOCKS, THREADS = 1056, 256
FLAG = """
extern "C" __global__ void mark(float *out, const float *in, int *flag, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        out[i] = in[i];
        if (in[i] > 0) *flag = 1;
    }
}
extern "C" __global__ void mark_rarely(float *out, const float *in, int *flag, int n) {
    int own = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        out[i] = in[i];
        own |= in[i] > 0;
    }
    if (__syncthreads_or(own) && threadIdx.x == 0) *flag = 1;
}
"""
LINE = 5  # of the store to the flag
N = 1 << 21


def found(kernel, value, blocks="all"):
    arguments = [np.zeros(N, np.float32), np.full(N, value, np.float32), np.zeros(1, np.int32)]
    return simulate(
        FLAG,
        kernel,
        grid=BLOCKS,
        block=THREADS,
        arguments=[*arguments, np.int32(N)],
        device="h200",
        blocks=blocks,
    ).predicted


@pytest.mark.parametrize("blocks", ["all", "representative"])
def test_each_warp_that_stores_to_a_flag_takes_its_turn(blocks):
    predicted = found("mark", 1, blocks)
    (bound,) = (one for one in predicted.bounds if one.name == "stores to one address")
    store_s = constants_of(find_device("h200")).store_s
    assert bound.time_s == pytest.approx(N / 32 * store_s)
    assert predicted.limiter == "stores to one address"
    assert predicted.time_s == pytest.approx(bound.time_s + predicted.launch_s)


def test_the_cause_and_the_line_are_named():
    predicted = found("mark", 1)
    largest = max(predicted.costs, key=lambda one: one.time_s)
    assert largest.effect == Effect.STORES
    dearest = max((one for one in predicted.lines if one.line), key=lambda one: one.time_s)
    assert dearest.line == LINE


@pytest.mark.parametrize(("kernel", "value"), [("mark", 0), ("mark_rarely", 1)])
def test_few_stores_to_a_flag_do_not_matter(kernel, value):
    predicted = found(kernel, value)
    assert predicted.time_s < 0.6 * found("mark", 1).time_s
    assert all(one.effect != Effect.STORES or one.time_s == 0 for one in predicted.costs)


def test_a_stream_of_stores_has_no_such_bound():
    assert all(one.name != "stores to one address" for one in found("mark", 0).bounds)


WALK = """
extern "C" __global__ void walk(float *table) {
    for (int line = 0; line < 24; line++) table[32 * line + threadIdx.x % 32] = line;
}"""


@pytest.mark.parametrize("blocks", ["all", "representative"])
def test_warps_that_walk_lines_in_one_order_wait_for_the_same_slices(blocks):
    """Of ten stores in a row, one slice has four, four and two (test_l2_stores.py)."""
    arguments = [np.zeros(24 * 32, np.float32)]
    launch = {"grid": BLOCKS, "block": THREADS, "arguments": arguments, "blocks": blocks}
    predicted = simulate(WALK, **launch, device="h200").predicted
    (bound,) = (one for one in predicted.bounds if one.name == "stores to one address")
    store_line_s = constants_of(find_device("h200")).store_line_s
    assert bound.time_s == pytest.approx(10 * BLOCKS * THREADS / 32 * store_line_s)
