"""Uniform registers: one value for all lanes that run together."""

import numpy as np
import pytest

from tests.machines import GPU
from validation.corpus.random_warps import mismatches

# Each half of the warp calls its function thousands of times. Both compute the address of their
# array in the same uniform register.
TWO_TABLES = """
__shared__ unsigned a[64], b[64];
__device__ __noinline__ unsigned first(unsigned i, unsigned x) { return 3 * x + i + a[x & 63]; }
__device__ __noinline__ unsigned second(unsigned i, unsigned x) { return 5 * x + i + b[x & 63]; }
extern "C" __global__ void k(unsigned *out, int n) {
    unsigned x = threadIdx.x;
    a[x] = a[x + 32] = x;
    b[x] = b[x + 32] = 7 * x;
    __syncthreads();
    if (x & 1) for (int i = 0; i < n; i++) x = first(i, x);
    else for (int i = 0; i < n; i++) x = second(i, x);
    out[threadIdx.x] = x;
}
"""


def test_a_long_loop_is_not_left_between_a_uniform_register_and_its_use(machine):
    rounds = 1300  # longer than a slice of a warp
    x = lane = np.arange(32, dtype=np.uint32)
    for i in range(rounds):
        x = np.where(lane & 1, 3 * x + i + (x & 31), 5 * x + i + 7 * (x & 31)).astype(np.uint32)
    arguments = [np.zeros(32, np.uint32), np.int32(rounds)]
    found = machine.call(TWO_TABLES, "k", grid=1, block=32, arguments=arguments)
    assert found.outputs[0].tolist() == x.tolist()


def test_a_constant_is_loaded_for_lanes_that_are_elsewhere_too(tmp_path):
    """LDCU in a function that some lanes call, whose uniform register an address reads."""
    assert mismatches([1931], "sm_100", tmp_path) == []


# Each half of the warp waits at a barrier of its own. The compiler predicates both, and writes
# uniform registers between them: the address of `o`, then the descriptor of the store.
TWO_BARRIERS = """
extern "C" __global__ void k(int *o) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t;
    if (t % 2) { __syncthreads(); o[t] = s[63 - t]; }
    else { __syncthreads(); o[t] = s[63 - t] + 1; }
}
"""


@pytest.mark.parametrize(
    "machine", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120", GPU], indirect=True
)
def test_lanes_that_wait_at_a_barrier_keep_their_uniform_registers(machine):
    arguments = [np.zeros(64, np.int32)]
    found = machine.call(TWO_BARRIERS, "k", grid=1, block=64, arguments=arguments)
    # on an H200: 64 62 62 60 60 58 58 56 ...
    assert found.outputs[0].tolist() == [63 - t + (t % 2 == 0) for t in range(64)]
