"""Kernels whose blocks may wait for others, and kernels that only ask what others wrote."""

import pytest

from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.sass.polls import may_wait
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
// these may wait
KERNEL(queue, int t; while ((t = atomicAdd(count, 1)) < 1000) out[t] = t;)
KERNEL(lock, while (atomicCAS(count, 0, 1)) {} out[0]++; __threadfence(); atomicExch(count, 0);)
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
KERNEL(swap, int old = out[0], seen;
    do { seen = old; old = atomicCAS(out, seen, max(seen, n)); } while (old != seen);)
__noinline__ __device__ int asked(volatile int *in) { return in[3]; }
KERNEL(by_a_function, while (asked(in) == n) {} out[0] = 1;)
"""
GO_ON = ("last_block", "append", "sum", "sum_by_swaps")
WAIT = (
    *("queue", "lock", "flag", "lookback", "by_a_variable", "through_shared", "inner_loop"),
    *("swap", "by_a_function", "through_a_barrier"),
)


@pytest.fixture(scope="module")
def image():
    return compile_kernel(SOURCE, "sum", target="sm_90").image


@pytest.mark.parametrize(
    ("name", "waits"), [*((x, False) for x in GO_ON), *((x, True) for x in WAIT)]
)
def test_a_loop_waits_if_an_answer_may_decide_when_it_ends(image, name, waits):
    translated = translate(Kernel.from_image(image, name))
    assert may_wait(Flow(translated.linked.instructions, translated.lowered)) == waits
