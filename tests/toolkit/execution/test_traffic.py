"""Traffic of a launch: the work of its blocks, and writes of stores to L2."""

import numpy as np
import pytest

from toolkit import simulate
from toolkit.execution.traffic import share_of_a_block

STRUCTS = """
template <int N> __device__ void fill(float *out, float x) {
    for (int k = 0; k < N; k++) out[N * (blockIdx.x * blockDim.x + threadIdx.x) + k] = x;
}
extern "C" __global__ void of_3(float *out) { fill<3>(out, 1); }
extern "C" __global__ void of_5(float *out) { fill<5>(out, 1); }
extern "C" __global__ void of_7(float *out) { fill<7>(out, 1); }
extern "C" __global__ void far_apart(float *out) {
    for (int k = 0; k < 3; k++) out[1024 * k + blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
"""


@pytest.mark.parametrize(
    ("kernel", "words", "merged"),
    [("of_3", 3, 3), ("of_5", 5, 5), ("of_7", 7, 1), ("far_apart", 3, 1)],
)
def test_adjacent_stores_of_few_lines_are_sent_as_one(kernel, words, merged):
    out = np.zeros(4096, np.float32)
    found = simulate(STRUCTS, kernel, grid=4, block=128, arguments=[out], device="rtx-3090")
    stored = found.counters["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"]
    assert stored == 4 * 4 * words * (words if kernel.startswith("of_") else 1) * 4
    assert found.counters["lts__t_sectors_op_write.sum"] == stored / merged


GENERIC = """
extern "C" __global__ void store(float *out) {
    asm volatile("st.f32 [%0], %1;" :: "l"(out + threadIdx.x), "f"(1.0f) : "memory");
}
"""


def test_stores_by_generic_addresses_write_whole_sectors_too():
    out = np.zeros(256, np.float32)
    found = simulate(GENERIC, grid=1, block=256, arguments=[out], device="h200")
    assert found.counters["lts__t_sectors_op_write.sum"] == 256 / 8 * 1.5  # half of them cross
    assert found.counters["dram__bytes_read.sum"] == 0  # nothing of a sector is left as it was
    assert found.predicted.time_s < 10e-6


@pytest.mark.parametrize(
    ("lifetimes", "share"),
    [
        ([1, 1, 1, 1], 1 / 4),
        ([3, 1], (3 * 3 / 4 + 1 * 1 / 4) / 4),  # a block with 3/4 of the work, and one with 1/4
        ([5, 0, 0], 1.0),  # blocks that exit at once have no share
    ],
)
def test_the_share_of_a_block_is_a_mean_that_is_weighted_by_work(lifetimes, share):
    assert share_of_a_block(np.array(lifetimes, dtype=float)) == pytest.approx(share)
