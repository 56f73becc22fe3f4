"""Kernels whose blocks may wait for others, and kernels that only ask what others wrote."""

import pytest

from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.sass.polls import may_depend_on_data, may_wait, repeats_exchanges
from toolkit.sass.regions import Flow
from toolkit.sass.translate import translate

SOURCE = r"""
#define KERNEL(name, ...) \
    extern "C" __global__ void name(int *out, volatile int *in, int *count, int n) { __VA_ARGS__ }
#define I (blockIdx.x * blockDim.x + threadIdx.x)
// these ask, and go on
KERNEL(last_block, if (atomicAdd(count, 1) == gridDim.x - 1) out[0] = 1;)
KERNEL(append, for (int i = I; i < n; i += 999)
    if (((int *)in)[i] > 3) out[atomicAdd(count, 1)] = i;)
KERNEL(sum, int s = 0; for (int i = 0; i < n; i++) s += in[i]; out[I] = s;)
KERNEL(sum_by_swaps, __shared__ float s; if (!threadIdx.x) s = 0; __syncthreads();
    for (int i = I; i < n; i += 999) atomicAdd(&s, (float)in[i]);
    __syncthreads(); out[I] = (int)s;)
// these repeat what they ask only if others come before
KERNEL(lock, while (atomicCAS(count, 0, 1)) {} out[0]++; __threadfence(); atomicExch(count, 0);)
KERNEL(locks, for (int i = I; i < n; i += 999) {
    while (atomicExch(count + i, 1)) {} out[i] += n / (out[i] + 1.5f); atomicExch(count + i, 0); })
KERNEL(swap, int old = out[0], seen;
    do { seen = old; old = atomicCAS(out, seen, max(seen, n)); } while (old != seen);)
KERNEL(queue_by_swaps, int t = count[0]; while (t < n) {
    int seen = atomicCAS(count, t, t + 1); if (seen == t) out[t] = t; t = seen + (seen == t); })
// these have branches that depend on the index and on arguments alone, whatever is loaded
KERNEL(fixed, float s = 0; for (int i = 0; i < n; i++) s += out[i * 7 % n]; out[I] = (int)s;)
KERNEL(by_index, if (I < n) out[I] = 2 * out[I] + out[n];)
// these may wait
KERNEL(insert, int at = I; while (atomicCAS(out + at % n, 0, (int)I)) at++;)
KERNEL(swap_of_another, int old;
    do old = in[0]; while (atomicCAS(out, old, old + 1) != old);)
KERNEL(queue, int t; while ((t = atomicAdd(count, 1)) < 1000) out[t] = t;)
KERNEL(flag, while (in[blockIdx.x] == 0) {} out[0] = 1;)
KERNEL(lookback, int s = 0; int i = blockIdx.x;
    while (i >= 0) { int v = in[i]; s += v & 0xffff; if (v >> 16) break; i--; } out[I] = s;)
KERNEL(by_a_variable, bool done = false; int turns = 0;
    while (!done) { if (in[0] == 5) { out[turns & 31] = 3; done = true; } turns++; }
    out[1] = turns;)
KERNEL(through_shared, __shared__ int stop; if (!threadIdx.x) stop = 0; __syncthreads();
    while (!stop) { if (!threadIdx.x) stop = in[0]; __syncthreads(); } out[1] = 1;)
KERNEL(through_a_barrier, while (!__syncthreads_or(in[threadIdx.x])) {} out[0] = 1;)
KERNEL(inner_loop, for (int i = 0; i < n; i++) { while (in[i] == 0) {} out[i] = 1; })
__noinline__ __device__ int asked(volatile int *in) { return in[3]; }
KERNEL(by_a_function, while (asked(in) == n) {} out[0] = 1;)
"""
GO_ON = ("last_block", "append", "sum", "sum_by_swaps")
REPEAT = ("lock", "locks", "swap", "queue_by_swaps")
WAIT = (
    *("queue", "flag", "lookback", "by_a_variable", "through_shared", "inner_loop"),
    *("insert", "swap_of_another", "by_a_function", "through_a_barrier"),
)


@pytest.fixture(scope="module")
def image():
    return compile_kernel(SOURCE, "sum", target="sm_90").image


def flow_of(image, name):
    translated = translate(Kernel.from_image(image, name))
    return Flow(translated.linked.instructions, translated.lowered)


@pytest.mark.parametrize(
    ("name", "waits"), [*((x, False) for x in (*GO_ON, *REPEAT)), *((x, True) for x in WAIT)]
)
def test_a_loop_waits_if_an_answer_may_decide_when_it_ends(image, name, waits):
    assert may_wait(flow_of(image, name)) == waits


@pytest.mark.parametrize(
    ("name", "repeats"), [*((x, False) for x in GO_ON), *((x, True) for x in REPEAT)]
)
def test_a_loop_repeats_exchanges_if_they_are_at_one_address(image, name, repeats):
    assert repeats_exchanges(flow_of(image, name)) == repeats


@pytest.mark.parametrize(
    ("name", "depends"),
    [("append", True), ("lookback", True), ("fixed", False), ("by_index", False)],
)
def test_a_branch_depends_on_data_if_it_may_follow_a_load(image, name, depends):
    assert may_depend_on_data(flow_of(image, name)) == depends
