"""Blocks and warps that wait for each other, executed in time."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.hardware.sm_constants import constants_of
from analysis.timing.predicted import Effect
from tests.sampling import exhaustive
from toolkit import simulate
from toolkit.execution import in_time
from toolkit.execution.in_time import Waits, clocks_of_waits, paces
from toolkit.execution.simulator import prepared
from toolkit.launch.launch import Execution, launch_geometry
from toolkit.machine_code.kernel_source import compile_kernel
from validation.timing.declared import rng
from validation.timing.witnesses import LAUNCHES, code, recorded

H200 = find_device("h200")
SMS = H200.sm_count
i32, f32 = np.int32, np.float32

CHAIN = """
extern "C" __global__ void chain(int *sums, int *flags)
{
    const int b = blockIdx.x;
    if (b > 0) while (((volatile int *)flags)[b - 1] == 0) {}
    __threadfence();
    sums[b] = (b > 0 ? ((volatile int *)sums)[b - 1] : 0) + 1;
    __threadfence();
    ((volatile int *)flags)[b] = 1;
}"""
SWAPS = """
extern "C" __global__ void swaps(float *sum, float value)
{
    atomicCAS((int *)sum + 1, 0, 0);
    float old = sum[0], assumed;
    do {
        assumed = old;
        old = __int_as_float(atomicCAS(
            (int *)sum, __float_as_int(assumed), __float_as_int(assumed + value)));
    } while (__float_as_int(old) != __float_as_int(assumed));
}"""
SHARED = """
extern "C" __global__ void total(TYPE *out, const TYPE *in, int times)
{
    __shared__ TYPE sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    for (int k = 0; k < times; k++) atomicAdd(&sum, in[k * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}"""


POLLS = """
extern "C" __global__ void ask(int *out, const int *flag, int times)
{
    const volatile int *at = flag;
    for (int k = 0; k < times; k++) at += *at;
    out[blockIdx.x * blockDim.x + threadIdx.x] = at - flag;
}"""


def chain(blocks: int) -> Execution:
    memory = [np.zeros(blocks, i32), np.zeros(blocks, i32)]
    return simulate(CHAIN, grid=blocks, block=1, arguments=memory, device="h200")


def clocks(execution: Execution) -> float:
    assert execution.predicted is not None
    return execution.predicted.cycles


def test_each_block_of_a_chain_adds_a_flag_and_two_fences() -> None:
    c = constants_of(H200)
    per_block = (clocks(chain(100)) - clocks(chain(20))) / 80
    assert 2 * c.fence_clocks + 2 * c.l2_latency < per_block < 2 * c.fence_clocks + 4 * c.l2_latency
    # an H200 takes 1,780 clocks per block (validation/timing/witnesses.py, hand_on)
    assert per_block == pytest.approx(1780, rel=0.2)


def test_a_time_of_waits_says_so() -> None:
    found = chain(64)
    assert found.predicted is not None
    assert found.predicted.limiter == "latency"
    assert "blocks wait for each other" in next(
        bound.basis for bound in found.predicted.bounds if bound.name == "latency"
    )
    costs = {cost.effect: cost.time_s for cost in found.predicted.costs}
    assert costs[Effect.OTHER_BLOCKS] > 0.5 * found.predicted.time_s
    np.testing.assert_array_equal(found.outputs[0], np.arange(1, 65))


def test_swaps_that_fail_take_time() -> None:
    """Warps that add to one number fail the more often, the more of them there are."""

    def time(blocks: int) -> float:
        memory = [np.zeros(2, f32), f32(1)]
        return clocks(simulate(SWAPS, grid=blocks, block=32, arguments=memory, device="h200"))

    one, all_sms = time(1), time(SMS)
    assert all_sms > 10 * one


def test_lanes_that_poll_one_flag_ask_once() -> None:
    def time(threads: int) -> float:
        memory = [np.zeros(32 * SMS, i32), np.zeros(1, i32), i32(40)]
        return clocks(simulate(POLLS, grid=SMS, block=threads, arguments=memory, device="h200"))

    assert time(32) == pytest.approx(time(1), rel=0.02)


@pytest.mark.parametrize(("kind", "passes"), [("float", 32), ("double", 16)])
def test_zeros_to_one_number_in_shared_memory_take_turns(kind: str, passes: int) -> None:
    """Lanes that leave a number as it is take turns, as on an H200."""
    data = np.zeros(32, f32 if kind == "float" else np.float64)
    arguments = [np.zeros(1, data.dtype), data, i32(1)]
    found = simulate(
        SHARED.replace("TYPE", kind), grid=1, block=32, arguments=arguments, device="h200"
    )
    swaps = [one.executed for one in found.instructions if one.opcode == "ATOMS"]
    assert sum(swaps) == passes


@pytest.mark.parametrize("label", ["shared_sum 132 by 256", exhaustive("shared_sum 132 by 1024")])
def test_warps_that_add_to_one_number_in_shared_memory_wait_for_each_other(label: str) -> None:
    (one,) = (witness for witness in LAUNCHES if witness.label == label)
    found = simulate(
        code(H200.sm_arch)(one.kernel),
        grid=one.grid,
        block=one.block,
        arguments=one.make(rng()),
        device="h200",
    )
    assert found.predicted is not None
    # without the waits it is 0.31 and 0.15 of the time that an H200 took
    assert found.predicted.time_s == pytest.approx(recorded()[label]["flushed_s"], rel=0.2)


RELAY = """
extern "C" __global__ void relay(float *sums, int *flags, int passes)
{
    __shared__ float tile[64];
    const int b = blockIdx.x, t = threadIdx.x;
    float sum[8] = {};
    for (int k = 0; k < passes + b % 3; k++) {
        tile[t] = k * t;
        __syncthreads();
        for (int i = 0; i < 64; i++)
            for (int j = 0; j < 8; j++) sum[j] += tile[i] * tile[(i + j + t) % 64];
        __syncthreads();
    }
    if (t == 0 && b > 0) while (((volatile int *)flags)[b - 1] == 0) {}
    __syncthreads();
    for (int j = 0; j < 8; j++) sums[512 * b + 64 * j + t] = sum[j];
    __threadfence();
    __syncthreads();
    if (t == 0) ((volatile int *)flags)[b] = 1;
}"""


def test_warps_that_run_ahead_of_the_others_wait_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compile_kernel(RELAY, "relay", target=H200.sm_arch)
    memory = [np.zeros(512 * SMS, f32), np.zeros(SMS, i32), i32(3)]
    found = paces(kernel, constants_of(H200), 1.7e9)

    def waited() -> Waits:
        _, bound, _ = prepared(kernel, launch_geometry(SMS, 64, 0), memory, device=H200)
        return clocks_of_waits(bound, kernel, constants_of(H200), 1.7e9)

    ahead = waited()
    assert found["is_private"].sum() > len(found) / 2
    found["is_private"] = 0
    monkeypatch.setattr(in_time, "paces", lambda *given: found)
    assert waited() == ahead
