"""The first line of a predicted time says why it is not to be trusted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.errors import LaunchError
from tests.toolkit.cli.commands import invoke
from toolkit import simulate
from toolkit.execution import in_time
from toolkit.launch.launch import Execution

i32, f32 = np.int32, np.float32

ADD = """
__global__ void add(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] + 1;
}
int main() {
    const int n = 1 << 14;
    float *out, *in;
    ALLOCATE;
    add<<<n / 256, 256>>>(out, in, n);
}
"""
SPIN = """
extern "C" __global__ void spin(float *out, volatile int *flag) {
    if (threadIdx.x == 0) while (*flag == 0) {}
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}"""
SET = """
extern "C" __global__ void set(float *out, volatile int *flag) {
    if (blockIdx.x == 0 && threadIdx.x == 0) *flag = 1;
    if (threadIdx.x == 0) while (*flag == 0) {}
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}"""
SLEEP = """
extern "C" __global__ void nap(float *out) {
    __nanosleep(100);
    out[threadIdx.x] = 1;
}"""
ATOMIC = """
extern "C" __global__ void spin(float *out, int *flag) {
    if (threadIdx.x == 0) while (POLL) {}
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}"""
SWAP = """
extern "C" __global__ void sum(float *out, int *flag) {
    int old = *flag, before;
    do {
        before = old;
        old = atomicCAS(flag, before, before + threadIdx.x);
    } while (old != before);
    out[blockIdx.x * blockDim.x + threadIdx.x] = old;
}"""
LOCK = """
extern "C" __global__ void lock(float *out, int *free) {
    if (threadIdx.x) return;
    while (atomicExch(free, 0) == 0) {}
    *(volatile float *)out += 1;
    __threadfence();
    atomicExch(free, 1);
}"""
APART = """
extern "C" __global__ void apart(float *out, int *flag) {
    while (atomicAdd(flag, 1) < 10) {}
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");
    else asm volatile("bar.sync 2, 64;");
    out[threadIdx.x] = *flag;
}"""
MANAGED = """
__managed__ float table[64];
__device__ float other[64];
extern "C" __global__ void read(float *out) { out[threadIdx.x] = NAME[threadIdx.x]; }"""
PRINT = """
extern "C" __global__ void print(float *out) {
    if (out[threadIdx.x] > LEAST) printf("%d", threadIdx.x);
}"""
ALLOCATE = """
extern "C" __global__ void list(float *out) {
    if (out[threadIdx.x] > LEAST) {
        float *own = (float *)malloc(4);
        *own = out[threadIdx.x];
        out[threadIdx.x] += *own;
        free(own);
    }
}"""
ASSERT = """
#include <assert.h>
extern "C" __global__ void test(float *out) {
    assert(out[threadIdx.x] > 0);
    out[threadIdx.x] += 1;
}"""
CLOCK = """
extern "C" __global__ void watch(long long *out) { out[threadIdx.x] = clock64(); }"""


def of_host(tmp_path: Path, allocate: str) -> Execution:
    source = tmp_path / "add.cu"
    source.write_text(ADD.replace("ALLOCATE", allocate))
    return simulate(source, device="h200")


@pytest.mark.parametrize(
    ("allocate", "said"),
    [
        ("cudaMalloc(&out, 4 * n), cudaMalloc(&in, 4 * n)", ""),
        (
            "cudaMalloc(&out, 4 * n), cudaMallocManaged(&in, 4 * n)",
            "Do not trust the time: in is managed memory",
        ),
        (
            "cudaMallocManaged(&out, 4 * n), cudaMallocManaged(&in, 4 * n)",
            "Do not trust the time: out and in are managed memory, and the model has them",
        ),
        (
            "cudaHostAlloc(&out, 4 * n, cudaHostAllocMapped), cudaMalloc(&in, 4 * n)",
            "Do not trust the time: out is memory of the host",
        ),
        (
            "float *host; cudaMallocHost(&host, 4 * n); cudaHostGetDevicePointer(&in, host, 0); "
            "cudaMalloc(&out, 4 * n)",
            "Do not trust the time: in is memory of the host",
        ),
    ],
)
def test_memory_elsewhere(tmp_path: Path, allocate: str, said: str) -> None:
    found = of_host(tmp_path, allocate)
    assert found.predicted is not None
    assert said in found.uncertainty
    assert ("Do not trust" in found.uncertainty) == bool(said)


def test_the_first_line_says_it(tmp_path: Path) -> None:
    source = tmp_path / "add.cu"
    allocate = "cudaMallocManaged(&out, 4 * n), cudaMalloc(&in, 4 * n)"
    source.write_text(ADD.replace("ALLOCATE", allocate))
    said = invoke(f"simulate {source} --device h200")  # type: ignore[no-untyped-call]
    first = said.stdout.splitlines()[0]
    assert first.startswith("add: ")
    assert "Do not trust the time: out is managed memory" in first


def waiting(source: str, flag: int, *, outputs: bool = False) -> Execution:
    arguments = [np.zeros(4 * 64, f32), np.full(1, flag, i32)]
    return simulate(source, grid=4, block=64, arguments=arguments, device="h200", outputs=outputs)


@pytest.mark.parametrize("flag", [0, 1])
def test_a_flag_that_nobody_sets_has_a_time_and_a_doubt(flag: int) -> None:
    found = waiting(SPIN, flag)
    assert found.predicted is not None
    assert "a loop waits for" in found.uncertainty
    assert "which no block of this launch writes" in found.uncertainty


def test_results_of_such_a_launch_are_refused() -> None:
    with pytest.raises(LaunchError, match="deadlock"):
        waiting(SPIN, 0, outputs=True)


def test_a_flag_that_a_block_sets_is_no_doubt() -> None:
    found = waiting(SET, 0)
    assert found.predicted is not None
    assert "a loop waits" not in found.uncertainty


@pytest.mark.parametrize(
    ("source", "dtype", "said"),
    [
        (SLEEP, f32, "Do not trust the time: the kernel sleeps"),
        (CLOCK, np.int64, "depends on the clock"),
    ],
)
def test_sleep_and_clocks(source: str, dtype: type[np.generic], said: str) -> None:
    found = simulate(source, grid=1, block=32, arguments=[np.zeros(32, dtype)], device="h200")
    assert found.predicted is not None
    assert said in found.uncertainty


@pytest.mark.parametrize(
    "poll",
    ["atomicAdd(flag, 0) == 0", "atomicCAS(flag, 1, 1) != 1", "atomicOr(flag, 0) < 1"],
)
def test_a_flag_that_is_polled_by_atomics_has_a_time_and_a_doubt(poll: str) -> None:
    source = ATOMIC.replace("POLL", poll)
    found = waiting(source, 0)
    assert found.predicted is not None
    assert "Do not trust the time: a loop of atomic operations waits" in found.uncertainty
    assert "Do not trust" not in waiting(source, 1).uncertainty
    with pytest.raises(LaunchError, match="deadlock"):
        waiting(source, 0, outputs=True)


@pytest.mark.parametrize(("most", "is_told"), [(1_000, True), (1_000_000, False)])
def test_swaps_that_are_not_followed_to_the_end(
    monkeypatch: pytest.MonkeyPatch, most: int, is_told: bool
) -> None:
    monkeypatch.setattr(in_time, "MOST_INSTRUCTIONS", most)
    found = waiting(SWAP, 0)
    assert found.predicted is not None
    assert ("The time may be too short: blocks wait" in found.uncertainty) == is_told


def test_a_lock_that_blocks_take_in_turn_is_no_doubt() -> None:
    found = waiting(LOCK, 1)
    assert found.predicted is not None
    assert "Do not trust" not in found.uncertainty


def test_a_deadlock_at_barriers_is_an_error() -> None:
    with pytest.raises(LaunchError, match="deadlock"):
        waiting(APART, 0)


@pytest.mark.parametrize(("name", "is_told"), [("table", True), ("other", False)])
def test_managed_variables(name: str, is_told: bool) -> None:
    source = MANAGED.replace("NAME", name)
    found = simulate(source, grid=1, block=64, arguments=[np.zeros(64, f32)], device="h200")
    assert found.predicted is not None
    said = "Do not trust the time: variable `table` is managed memory"
    assert (said in found.uncertainty) == is_told


@pytest.mark.parametrize(("least", "is_told"), [(0, True), (1, False)])
def test_what_prints(least: int, is_told: bool) -> None:
    source = PRINT.replace("LEAST", str(least))
    found = simulate(source, grid=1, block=32, arguments=[np.ones(32, f32)], device="h200")
    assert found.predicted is not None
    said = "Do not trust the time: the kernel prints (printf)"
    assert (said in found.uncertainty) == is_told


@pytest.mark.parametrize(("least", "is_told"), [(0, True), (1, False)])
def test_what_allocates(least: int, is_told: bool) -> None:
    source = ALLOCATE.replace("LEAST", str(least))
    found = simulate(source, grid=1, block=32, arguments=[np.ones(32, f32)], device="h200")
    assert found.predicted is not None
    said = "Do not trust the time: the kernel calls malloc or free"
    assert (said in found.uncertainty) == is_told


def test_an_assert_that_holds_is_no_doubt() -> None:
    found = simulate(ASSERT, grid=1, block=32, arguments=[np.ones(32, f32)], device="h200")
    assert found.predicted is not None
    assert "Do not trust" not in found.uncertainty


SLOW_PATH = """
extern "C" __global__ void divide(float *out, int allocates) {
    float own = out[threadIdx.x];
    if (allocates) {
        float *copy = (float *)malloc(4);
        *copy = own, own += *copy;
        free(copy);
    }
    out[threadIdx.x] = 1.0f / own;
}"""


@pytest.mark.parametrize("allocates", [0, 1])
def test_a_call_of_a_division_is_none_of_malloc(allocates: int) -> None:
    """Divisors below the smallest normal number take a slow path, which is called."""
    tiny = np.full(32, 1e-40, f32)
    arguments = [tiny, np.int32(allocates)]
    found = simulate(SLOW_PATH, grid=1, block=32, arguments=arguments, device="h200")
    assert any(one.text.startswith("CALL.REL") and one.executed for one in found.instructions)
    assert ("malloc" in found.uncertainty) == bool(allocates)
