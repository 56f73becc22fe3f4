"""Launches whose blocks add to a common number, from a few blocks and from all."""

import numpy as np
import pytest

from toolkit import simulate
from toolkit.execution import simulator
from toolkit.execution.tickets import with_tickets

SOURCE = r"""
// the block that ends last sums up what all have written
extern "C" __global__ void sum(
    float *out, const float *in, unsigned *count, volatile float *parts) {
    __shared__ bool is_last;
    int i = blockIdx.x * 64 + threadIdx.x;
    float x = in[i];
    for (int k = 16; k; k /= 2) x += __shfl_xor_sync(~0u, x, k);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = x;
        __threadfence();
        is_last = atomicAdd(count, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    float all = 0;
    for (int k = threadIdx.x; k < gridDim.x; k += 64) all += parts[k];
    out[threadIdx.x] = all;
}
// block b stores where `count` says: 64 places behind the block before
extern "C" __global__ void append(float *out, const float *in, unsigned *count) {
    __shared__ unsigned first;
    if (threadIdx.x == 0) first = 7 + atomicAdd(count, 64);
    __syncthreads();
    out[first + threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
}
// two instructions add to one number: 512 in each block
extern "C" __global__ void take(float *out, const float *in, unsigned *count) {
    unsigned k = threadIdx.x < 32 ? atomicAdd(count, 4u) : atomicAdd(count, 12u);
    out[k / 8] = in[k / 8];
}
// each thread adds to a number of its block and 15 others, which a lock guards
extern "C" __global__ void add_under_lock(float *out, const float *in, unsigned *count) {
    unsigned *lock = count + blockIdx.x % 64;
    if (threadIdx.x == 0) while (atomicCAS(lock, 0, 1)) {}
    __syncthreads();
    out[blockIdx.x % 64 * 64 + threadIdx.x] += in[blockIdx.x * 64 + threadIdx.x];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(lock, 0);
}
// the largest of each row, by swaps
extern "C" __global__ void largest(float *out, const float *in, unsigned *count) {
    unsigned *most = count + threadIdx.x, found = *most, seen;
    do {
        seen = found;
        found = atomicCAS(most, seen, max(seen, (unsigned)in[blockIdx.x * 64 + threadIdx.x]));
    } while (found != seen);
}
// whoever comes first takes all places
extern "C" __global__ void take_by_swaps(float *out, const float *in, unsigned *count) {
    for (unsigned k = *count; k < 64 * gridDim.x;) {
        unsigned seen = atomicCAS(count, k, k + 1);
        if (seen == k) out[k] = in[k] + 1;
        k = seen == k ? k + 1 : seen;
    }
}
// each block waits until the one before it has been there
extern "C" __global__ void in_turn(float *out, const float *in, unsigned *count) {
    if (threadIdx.x == 0)
        while (atomicCAS(count, blockIdx.x, blockIdx.x) != blockIdx.x) {}
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x == 0) atomicAdd(count, 1);
}
// a number for each thread
extern "C" __global__ void take_each(float *out, const float *in, unsigned *count) {
    unsigned k = atomicAdd(count + threadIdx.x, 64u) + threadIdx.x;
    out[k] = in[k];
}
"""
BLOCKS = 5000


def launched(kernel, source=SOURCE, grid=BLOCKS, **options):
    floats = [np.zeros(64 * BLOCKS + 64, np.float32) for _ in range(2)]
    count = np.full(64, 3 if kernel == "append" else 0, np.uint32)
    more = [np.zeros(BLOCKS, np.float32)] if kernel == "sum" else []
    return simulate(
        source,
        kernel,
        grid=grid,
        block=64,
        arguments=[*floats, count, *more],
        device="h200",
        seed=1,
        outputs=False,
        **options,
    )


@pytest.mark.parametrize("kernel", ["sum", "append"])
def test_a_few_blocks_find_what_the_blocks_before_them_would_have_left(kernel):
    few = launched(kernel, blocks="representative", limit_s=0)
    every = launched(kernel)
    assert few.executed_blocks < 400
    assert every.executed_blocks == BLOCKS
    assert few.counters["smsp__inst_executed.sum"] == every.counters["smsp__inst_executed.sum"]
    sectors = "lts__t_sectors_op_write.sum"
    assert few.counters[sectors] == pytest.approx(every.counters[sectors], rel=0.02)
    # the end of the last block is replayed where a few blocks are executed, else only bounded
    last_s = 10e-6 if kernel == "sum" else 0
    assert 0.9 * every.predicted.time_s < few.predicted.time_s
    assert few.predicted.time_s < 1.1 * every.predicted.time_s + last_s


def test_blocks_find_what_several_instructions_have_added(monkeypatch):
    found = []

    def noted(*given):
        found.append(with_tickets(*given))
        return found[-1]

    monkeypatch.setattr(simulator, "with_tickets", noted)
    launched("take", blocks="representative", limit_s=0)
    assert found[-1].tickets["by"].tolist() == [512]


def test_a_launch_that_may_leave_its_arrays_has_a_time_from_a_few_blocks():
    source = SOURCE.replace("atomicAdd(count, 64)", "atomicAdd(count + (1 << 28), 64)")
    found = launched("append", source, blocks="representative", limit_s=0, allow_out_of_bounds=True)
    assert found.predicted is not None


def test_all_blocks_are_executed_where_that_takes_little_time():
    found = launched("sum", blocks="representative")
    assert found.basis == "all 5,000 blocks executed: blocks wait for others"


def test_all_blocks_are_executed_where_they_add_to_many_numbers():
    """What a few blocks would find is not known: block b is to find 64 b in each of 64 numbers."""
    found = launched("take_each", blocks="representative", limit_s=0)
    assert found.executed_blocks == BLOCKS


LIST = """
extern "C" __global__ void pairs(int *list, int *length, int *out) {
    const int own = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 32; k++) list[atomicAdd(length, 1)] = own;
    int sum = 0;
    for (int k = 0; k < *length; k++) sum += list[k] > own;
    out[own] = sum;
}"""


def test_a_block_that_reads_a_list_finds_what_the_blocks_before_it_appended():
    """The last of four blocks takes as long as one that finds three quarters of the list."""

    def cycles(grid: int, before: int) -> float:
        arrays = [
            np.zeros(1 << 14, np.int32),
            np.full(1, before, np.int32),
            np.zeros(256, np.int32),
        ]
        launch = {"grid": grid, "block": 64, "arguments": arrays, "device": "h200", "l2": "warm"}
        found = simulate(LIST, **launch).predicted
        assert found is not None
        return found.cycles

    of_block = 32 * 64
    assert cycles(4, 0) == pytest.approx(cycles(1, 3 * of_block), rel=0.01)
    assert cycles(4, 0) > 2.5 * cycles(1, 0)


@pytest.mark.parametrize("kernel", ["add_under_lock", "largest"])
def test_a_few_blocks_represent_those_that_repeat_exchanges(kernel):
    few = launched(kernel, blocks="representative", limit_s=0)
    every = launched(kernel)
    assert few.executed_blocks < 400
    assert every.executed_blocks == BLOCKS
    counter = "smsp__inst_executed.sum"
    assert few.counters[counter] == every.counters[counter]
    assert few.predicted.time_s == pytest.approx(every.predicted.time_s, rel=0.1)


IN_TURN_COUNTING = """
extern "C" __global__ void in_turn(float *out, unsigned *count) {
    unsigned waits = 0;
    if (threadIdx.x == 0)
        while (atomicCAS(count, blockIdx.x, blockIdx.x) != blockIdx.x) waits++;
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = waits == 123456789;
    if (threadIdx.x == 0) atomicAdd(count, 1);
}"""


def test_a_block_that_waits_alone_is_given_up_though_its_state_never_recurs(monkeypatch):
    monkeypatch.setattr(simulator, "MOST_ALONE", 1 << 16)
    arguments = [np.zeros(256 * 64, np.float32), np.zeros(1, np.uint32)]
    launch = {"grid": 256, "block": 64, "arguments": arguments, "device": "h200", "limit_s": 0}
    found = simulate(IN_TURN_COUNTING, **launch, blocks="representative")
    assert found.executed_blocks == 256
    assert "blocks wait for others" in found.basis


@pytest.mark.parametrize("kernel", ["take_by_swaps", "in_turn"])
def test_all_blocks_are_executed_if_one_alone_takes_all_or_waits(kernel):
    found = launched(kernel, grid=256, blocks="representative", limit_s=0)
    assert found.executed_blocks == 256
    assert "blocks wait for others" in found.basis
