"""Origins of values: the other blocks for which an executed block proves its counts."""

from dataclasses import replace

import numpy as np
import pytest

from toolkit.execution.proof import Prover, index_of
from toolkit.execution.simulator import prepared
from toolkit.launch.launch import launch_geometry
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.sass.machine import run_blocks
from toolkit.sass.origins import inside
from toolkit.sass.regions import Flow

GRID, THREADS = 1000, 32
SOURCE = r"""
#define B blockIdx.x
#define T threadIdx.x
#define KERNEL(name, ...) \
    extern "C" __global__ void name(int *out, const int *in, int n) { __VA_ARGS__ }
KERNEL(below, if (B < 700) out[T] = 1;)
KERNEL(equal, if (B == 777) out[T] = 1;)
KERNEL(between, if (B - 100u < 50u) out[T] = 1;)
KERNEL(guard, int i = B * 32 + T; if (i < n) out[i] = in[i];)
KERNEL(masked, if ((B & 3) == 1) out[T] = 1;)
KERNEL(halved, if ((B >> 1) < 100) out[T] = 1;)
KERNEL(smaller, int e = min((int)B * 4, 1000); for (int i = 990; i < e; i++) out[T] += i;)
KERNEL(seventh, if (B % 7 == 3) out[T] = 1;)
KERNEL(hashed, if ((B * 2654435761u) >> 31) out[T] = 1;)
KERNEL(of_data, if (in[B * 32 + T] > 0) out[T] = 1;)
KERNEL(of_uniform_data, if (in[0] > 0) out[T] = 1;)
KERNEL(of_clock, if (clock() & 1) out[T] = 1;)
KERNEL(of_ticket, if (atomicAdd(out, 1) > 5) out[T] = 1;)
KERNEL(gather, out[B * 32 + T] = in[in[B * 32 + T] & 31];)
KERNEL(odd_row, out[B * 33 + T] = 1;)
KERNEL(through_shared,
    __shared__ int s[32]; s[T] = B * 32 + T; __syncthreads();
    if (s[31 - T] < n) out[T] = 1;)
KERNEL(data_through_shared,
    __shared__ int s[32]; s[T] = in[T]; __syncthreads();
    if (s[31 - T] < n) out[T] = 1;)
KERNEL(data_decides_shared,
    __shared__ int s[32]; s[T] = 0; __syncthreads();
    if (in[T] > 5) s[T] = 1;
    __syncthreads();
    if (s[31 - T]) out[T] = 1;)
KERNEL(through_local, int a[8]; for (int k = 0; k < 8; k++) a[(k + n) & 7] = B * k;
    if (a[T & 7] < 100) out[T] = 1;)
KERNEL(sent_by_lane, int x = __shfl_xor_sync(~0u, B * 32 + T, 5); if (x < n) out[T] = 1;)
KERNEL(data_only_guards_arithmetic, float y = in[B * 32 + T]; if (y > 0.75f) y = y * y + 1.0f;
    out[B * 32 + T] = (int)y;)
KERNEL(data_decides_a_count, int k = in[T] > 3 ? 5 : 9; for (int i = 0; i < k; i++) out[i] += T;)
KERNEL(signs, int x = (int)B - 1, y = (int)B - 999; if ((x | y) >= 0) out[T] = 1;)
KERNEL(clamped, int i = B * 32 + T; out[i] = in[max(i - 1, 0)] + in[min(i + 1, n - 1)];)
KERNEL(pointer, int *p = B & 1 ? out : out + 64; p[T] = 1;)
#define XOR(a, b) asm volatile("xor.b32 %0, %0, %1;" : "+r"(a) : "r"(b))
KERNEL(swapped, int x = B * 32 + T, y = n + T * B; XOR(x, y); XOR(y, x); XOR(x, y);
    if (y < n) out[T] = x;)
KERNEL(half_swapped, int x = B * 32 + T, y = n + T * B; XOR(x, y); if (x < n) out[T] = y;)
KERNEL(twice_with_another, int x = B * 32 + T, y = n + T * B; XOR(x, y); y += B; XOR(y, x);
    if (y < n) out[T] = x;)
// y and z are equal but in block 777
KERNEL(equal_by_chance, int x = B * 32 + T, y = B * B, z = y + (y == 777 * 777);
    _Pragma("unroll 1") for (int k = 0; k < 2; k++) { XOR(x, y); y = z; }
    if (x < n) out[T] = 1;)
KERNEL(wide, long long i = (long long)B * 32 + T; if (i * 3 < n) out[i] = 1;)
"""


@pytest.fixture(scope="module")
def kernel():
    image = compile_kernel(SOURCE, "below", target="sm_90").image  # has all of them
    return lambda name: Kernel.from_image(image, name)


def launched(kernel, n=20_000):
    out, data = np.zeros((2, GRID * 40), np.int32)
    geometry = launch_geometry(GRID, THREADS, 0)
    translated, bound, _ = prepared(kernel, geometry, [out, data, np.int32(n)])
    flow = Flow(translated.linked.instructions, translated.lowered)
    return flow, lambda blocks, regions: run_blocks(
        replace(bound, regions=regions), [range(b, b + 1) for b in blocks]
    )


def proof_of(kernel, n=20_000):
    flow, run = launched(kernel, n)
    return Prover(grid=(GRID, 1, 1), flow=flow, run=run, most=200).proof()


def classes_of(proof):
    """The blocks of each class, as its first and last one and their number."""
    found = [np.flatnonzero(proof.class_of == k) for k in range(len(proof.leaders))]
    return sorted((int(blocks[0]), int(blocks[-1]), len(blocks)) for blocks in found)


def is_proved(proof):
    return not proof.may_differ(range(len(proof.leaders))).view(np.uint64).any()


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("below", [(0, 699, 700), (700, 999, 300)]),
        ("equal", [(0, 776, 777), (777, 777, 1), (778, 999, 222)]),
        ("between", [(0, 99, 100), (100, 149, 50), (150, 999, 850)]),
        ("guard", [(0, 624, 625), (625, 999, 375)]),  # 625 * 32 = 20,000
        ("masked", [(k, 996 + k, 250) for k in range(4)]),
        ("through_shared", [(0, 624, 625), (625, 999, 375)]),
        ("sent_by_lane", [(0, 624, 625), (625, 999, 375)]),
        ("swapped", [(0, 624, 625), (625, 999, 375)]),
        ("signs", [(0, 0, 1), (1, 998, 998), (999, 999, 1)]),
        ("clamped", [(0, 0, 1), (1, 623, 623), (624, 624, 1), (625, 999, 375)]),
        ("odd_row", [(k, 992 + k, 125) for k in range(8)]),  # 33 words: 8 rows to a sector
        ("pointer", [(0, 998, 500), (1, 999, 500)]),
        ("wide", [(0, 207, 208), (208, 208, 1), (209, 999, 791)]),  # 208 * 32 * 3 < 20,000
    ],
)
def test_borders_and_periods_of_the_index_are_found(kernel, name, classes):
    proof = proof_of(kernel(name))
    assert is_proved(proof)
    assert classes_of(proof) == classes


@pytest.mark.parametrize("name", ["halved", "smaller", "through_local"])
def test_further_functions_of_the_index_are_followed(kernel, name):
    proof = proof_of(kernel(name), n=3)
    assert is_proved(proof)
    assert len(proof.leaders) < 40


@pytest.mark.parametrize(
    "name",
    ["seventh", "hashed", "of_data", "of_uniform_data", "of_clock", "of_ticket",
     "half_swapped", "twice_with_another", "data_through_shared",
     "data_decides_shared", "data_decides_a_count"],
)  # fmt: skip
def test_branches_that_depend_on_something_else_leave_counts_open(kernel, name):
    proof = proof_of(kernel(name))
    found = proof.may_differ(range(len(proof.leaders)))
    assert found["executed"].any() or found["predicated"].any()


def test_values_that_are_equal_in_the_followed_blocks_by_chance_undo_no_exclusive_or(kernel):
    proof = proof_of(kernel("equal_by_chance"))
    assert 777 not in proof.runs
    assert proof.may_differ(range(len(proof.leaders)))["executed"].any()


def test_an_address_that_depends_on_data_leaves_sectors_open_alone(kernel):
    proof = proof_of(kernel("gather"))
    found = proof.may_differ(range(len(proof.leaders)))
    assert found["sectors"].sum() == 1  # of the load through an index
    assert not found["requests"].any()
    assert not found["executed"].any()


def test_a_predicate_on_data_that_guards_arithmetic_leaves_accesses_proved(kernel):
    code = kernel("data_only_guards_arithmetic")
    proof = proof_of(code)
    found = proof.may_differ(range(len(proof.leaders)))
    accesses = [k for k, one in enumerate(code.instructions) if one.opcode in ("LDG", "STG")]
    assert found["predicated"].any()
    assert not found["executed"].any()
    assert not found["requests"][accesses].any()
    assert not found["sectors"][accesses].any()


@pytest.mark.parametrize(
    "name", ["below", "equal", "between", "guard", "clamped", "signs", "masked"]
)
def test_every_block_of_a_class_counts_like_its_leader(kernel, name):
    proof = proof_of(kernel(name))
    _, run = launched(kernel(name))
    chosen = np.random.default_rng(2).choice(GRID, 60, replace=False).tolist()
    for block, ran in zip(chosen, run(chosen, None), strict=True):
        leader = proof.leaders[proof.class_of[block]]
        assert np.array_equal(ran.counts, proof.runs[leader].counts), (block, leader)


def test_borders_are_those_of_the_block_that_was_followed(kernel):
    flow, run = launched(kernel("below"))
    (ran,) = run([650], flow.regions({}))
    within = np.flatnonzero(inside(ran.origins, index_of(650, (GRID, 1, 1)), (GRID, 1, 1)))
    assert (within[0], within[-1]) == (0, 699)


def test_nothing_is_followed_without_regions(kernel):
    _, run = launched(kernel("below"))
    assert run([3], None)[0].origins is None
