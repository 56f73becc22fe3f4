"""Verdicts on six launches that were once wrong: what is named first, and that it saves time."""

from functools import cache

import numpy as np
import pytest

from analysis.timing.predicted import NAMED, Effect
from reports.sections.answer import cause_of
from tests.reports.launches import HISTOGRAM
from tests.toolkit.execution.test_costs import GEMV, SAXPY, TRANSPOSE
from toolkit.execution.simulate import simulate

M = 1 << 20
SOFTMAX = """extern "C" __global__ void softmax(float *out, const float *in, int n) {
    __shared__ float part[256];
    const float *row = in + (size_t)blockIdx.x * n;
    float most = -1e30f, sum = 0;
    for (int i = threadIdx.x; i < n; i += 256) most = fmaxf(most, row[i]);
    part[threadIdx.x] = most;
    __syncthreads();
    for (int d = 128; d; d /= 2) {
        if (threadIdx.x < d) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + d]);
        __syncthreads();
    }
    most = part[0];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += 256) sum += expf(row[i] - most);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int d = 128; d; d /= 2) {
        if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
        __syncthreads();
    }
    for (int i = threadIdx.x; i < n; i += 256)
        out[(size_t)blockIdx.x * n + i] = expf(row[i] - most) / part[0];
}"""


def floats(count):
    return np.random.default_rng(1).random(count, np.float32)


@cache
def execution(name):
    """The execution of a launch on an H200 of which only a few blocks are executed."""
    numbers = np.random.default_rng(1).integers(0, 256, 16 * M, dtype=np.uint8)
    launches = {
        "conflicts": (TRANSPOSE.replace("PAD", "0"), (128, 128), (32, 8), (16 * M, 16 * M), 4096),
        "padded": (TRANSPOSE.replace("PAD", "1"), (128, 128), (32, 8), (16 * M, 16 * M), 4096),
        "softmax": (SOFTMAX, 8192, 256, (16 * M, 16 * M), 2048),
        "saxpy": (SAXPY, 8, 256, (4 * M, 4 * M), 4 * M),
        "gemv": (GEMV, 32, 256, (256, M, 4096), 4096),
    }
    if name == "histogram":
        source, grid, block = HISTOGRAM, 264, 256
        arguments = [np.zeros(256, np.uint32), numbers, np.int32(16 * M)]
    else:
        source, grid, block, sizes, n = launches[name]
        arguments = [*map(floats, sizes), np.int32(n)]
    found = simulate(
        source, grid=grid, block=block, arguments=arguments, device="h200", blocks="representative"
    )
    assert found.predicted is not None
    return found


def costs(name):
    return {one.effect: one.time_s for one in execution(name).predicted.costs}


pytestmark = pytest.mark.exhaustive  # 2 to 8 s for each launch


def test_conflicts_of_a_transpose_are_in_the_first_lines():
    found = execution("conflicts")
    assert cause_of(found.predicted).effect == Effect.CONFLICTS
    assert "bank conflicts take the most time" in found.verdict
    assert "Line 10 takes 32 wavefronts" in found.verdict


def test_padding_of_the_transpose_saves_what_conflicts_cost():
    before, after = (execution(name).predicted.time_s for name in ("conflicts", "padded"))
    assert costs("conflicts")[Effect.CONFLICTS] == pytest.approx(before - after, rel=0.1)
    assert after < before / 2


def test_a_histogram_waits_for_loads_and_not_for_banks():
    waits = (Effect.DRAM_LATENCY, Effect.L2_LATENCY, Effect.L1_LATENCY)
    assert cause_of(execution("histogram").predicted).effect in waits
    assert sum(costs("histogram").get(one, 0.0) for one in waits) > 10 * costs("histogram").get(
        Effect.CONFLICTS, 0.0
    )


def test_no_bound_of_a_histogram_exceeds_its_time():
    found = execution("histogram").predicted
    assert max(one.time_s for one in found.bounds) <= found.time_s
    assert found.limiter_share <= 1


def test_a_softmax_is_said_to_be_at_its_roof_without_warnings_of_conflicts():
    found = execution("softmax").predicted
    assert "DRAM bandwidth limits it" in execution("softmax").verdict
    assert costs("softmax").get(Effect.CONFLICTS, 0.0) < NAMED * found.time_s
    assert Effect.CONFLICTS not in [one.cause for one in found.causes]


@pytest.mark.parametrize(("name", "idle"), [("saxpy", 124), ("gemv", 100)])
def test_idle_sms_are_said(name, idle):
    assert cause_of(execution(name).predicted).effect == Effect.IDLE_SMS
    assert f"{idle} of 132 SMs have no block" in execution(name).verdict
