"""The sanitizer against a slow, obvious version of its rules, and what it leaves as it was."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cubins import cubin_of
from tests.sampling import exhaustive
from tests.toolkit.sass.bound import bound_to, for_an_h200
from toolkit.execution.sanitizer import check
from toolkit.sass import checker
from toolkit.sass.core import binding as core
from toolkit.sass.machine import run_blocks

THREADS, CELLS, STEPS = 64, 8, 6
READ, WRITE, ATOMIC = 1, 2, 3
SYNC_BLOCK, SYNC_WARP, SYNC_PART = 1, 2, 3
LANES = 32

# Each thread does at each step what a table says; a step ends with what another table says.
SOURCE = """
extern "C" __global__ void play(const int* what, const int* then, int* out, int steps)
{
    __shared__ int cells[8];
    const int t = threadIdx.x;
    if (t < 8) cells[t] = -1;
    __syncthreads();
    int seen = 0;
    for (int step = 0; step < steps; ++step) {
        const int kind = what[64 * step + t] / 8, cell = what[64 * step + t] % 8;
        if (kind == 1) seen += *(volatile int*)&cells[cell];
        if (kind == 2) *(volatile int*)&cells[cell] = 1000 * step + t;
        if (kind == 3) atomicAdd(&cells[cell], 1);
        __syncwarp(1u << t % 32);  // orders nobody but itself, and brings lanes together
        if (then[step] == 1) __syncthreads();
        if (then[step] == 2) __syncwarp();
        if (then[step] == 3) asm volatile("bar.sync %0, 32;" :: "r"(1 + t / 32) : "memory");
    }
    out[t] = seen;
}
"""
Step = tuple[int, int, int, int]  # step, thread, kind, cell


@cache
def play(arch):
    return cubin_of(SOURCE, "play", arch)


def found(accesses, after, arch):
    what = np.zeros((STEPS, THREADS), np.int32)
    for step, thread, kind, cell in accesses:
        what[step, thread] = 8 * kind + cell
    arguments = [what, np.array(after, np.int32), np.zeros(THREADS, np.int32), np.int32(STEPS)]
    checked = check(play(arch), grid=1, block=THREADS, arguments=arguments)
    assert {finding.tool for finding in checked.findings} <= {"racecheck"}
    return bool(checked.findings)


def hazard(accesses, after):
    """Every pair of accesses, by the definition."""
    last = {(step, thread): (kind, cell) for step, thread, kind, cell in accesses}
    for (one, x), (other, y) in combinations(sorted(last.items()), 2):
        (step, thread), (later, another) = one, other
        if x[1] != y[1] or thread == another:
            continue
        kinds = {x[0], y[0]}
        if kinds in ({READ}, {ATOMIC}):
            continue
        between = set(after[step:later])
        same_warp = thread // LANES == another // LANES
        if SYNC_BLOCK in between or (same_warp and between & {SYNC_WARP, SYNC_PART}):
            continue
        return True
    return False


accesses_ = st.lists(
    st.tuples(
        st.integers(0, STEPS - 1),
        st.sampled_from([0, 1, 5, 31, 32, 40, 63]),
        st.sampled_from([READ, READ, WRITE, WRITE, ATOMIC]),
        st.integers(0, CELLS - 1),
    ),
    min_size=2,
    max_size=8,
)
after_ = st.lists(
    st.sampled_from([0, SYNC_BLOCK, SYNC_BLOCK, SYNC_WARP, SYNC_PART]),
    min_size=STEPS,
    max_size=STEPS,
)


@pytest.mark.parametrize("arch", [exhaustive("sm_80"), "sm_90"])
def test_hazards_are_those_of_the_definition(arch):
    @settings(max_examples=50, deadline=None, database=None)
    @given(accesses_, after_)
    def hold(accesses, after):
        unique = list(
            {(step, thread): (step, thread, k, c) for step, thread, k, c in accesses}.values()
        )
        assert found(unique, after, arch) == hazard(unique, after)

    hold()


@pytest.mark.parametrize("kind", [READ, WRITE])
def test_an_atomic_operation_does_not_hide_that_of_another_warp(kind):
    """Thread 32 is ordered with its own, not with that of thread 0."""
    accesses = [(0, 0, ATOMIC, 3), (0, 32, ATOMIC, 3), (1, 32, kind, 3)]
    nowhere, everywhere = [0] * STEPS, [SYNC_BLOCK] * STEPS
    for after in (nowhere, everywhere):
        assert found(accesses, after, "sm_90") == hazard(accesses, after) == (after is nowhere)
    alone = [(0, 32, ATOMIC, 3), (0, 32, ATOMIC, 3), (1, 32, kind, 3)]
    assert not found(alone, nowhere, "sm_90")


def test_a_checked_launch_computes_the_same_and_leaves_the_plain_one_unchecked():
    what = np.random.default_rng(1).integers(0, 32, (STEPS, THREADS)).astype(np.int32)
    checks = [number for name, number in core.operations().items() if name.startswith("CHECK_")]
    outs = []
    for checks_it in (False, True):
        arguments = [what, np.ones(STEPS, np.int32), np.zeros(THREADS, np.int32), np.int32(STEPS)]
        bound, outputs, translated = bound_to(play("sm_90"), arguments, threads=THREADS)
        with_them = checker.with_checks(translated, bound)
        if checks_it:
            checker.run_checked(with_them, [0])
        else:
            run_blocks(bound, [range(1)])
        outs.append(outputs[2])
        assert translated.lowered is bound.lowered  # what is kept for later launches
        assert not np.isin(bound.lowered.program["op"], checks).any()
        assert np.isin(with_them.lowered.program["op"], checks).any()
    assert np.array_equal(*outs)


@pytest.mark.parametrize(
    ("type_", "bytes_"), [("char", 1), ("short", 2), ("int", 4), ("double", 4)]
)
def test_neighbours_in_a_word_are_told_apart(type_, bytes_):
    """Threads write side by side: no hazard, however narrow."""
    source = f"""extern "C" __global__ void side_by_side({type_}* out)
    {{
        __shared__ {type_} cells[64];
        cells[threadIdx.x] = threadIdx.x;
        out[threadIdx.x] = cells[threadIdx.x];
    }}"""
    out = np.zeros(64, {"char": "i1", "short": "i2", "int": "i4", "double": "f8"}[type_])
    checked = check(source, grid=1, block=64, arguments=[out], unwritten=[0])
    assert checked.findings == ()
    bound, _, translated = bound_to(for_an_h200(source, "side_by_side"), [out], threads=64)
    assert checker.with_checks(translated, bound).checked_bytes <= bytes_


def test_an_unwritten_read_names_a_thread_and_the_byte_that_it_read():
    """If all lanes read, the finding names the first lane that uses the value."""
    source = """extern "C" __global__ void odd(float* out)
    {
        __shared__ float cells[64];
        if (out[0] != 0) cells[threadIdx.x] = 1;
        __syncthreads();
        const float read = *(volatile float*)&cells[threadIdx.x];
        float root = 0;
        if (threadIdx.x & 1) root = sqrtf(read);
        out[threadIdx.x] = root;
    }"""
    checked = check(source, grid=1, block=64, arguments=[np.zeros(64, np.float32)])
    (finding,) = checked.findings
    (access,) = finding.accesses
    assert (finding.tool, access.thread, finding.address) == ("initcheck", (1, 0, 0), 4)
    assert finding.times == 32


def test_lanes_that_read_in_two_places_are_told_of_each():
    """Both branches load into one register, which is used where they have met again."""
    source = """extern "C" __global__ void branches(float* out)
    {
        __shared__ float cells[128];
        if (out[0] != 0) cells[threadIdx.x] = 1;
        __syncthreads();
        float read;
        if (threadIdx.x % 2) {
            read = *(volatile float*)&cells[threadIdx.x];
        } else {
            read = *(volatile float*)&cells[threadIdx.x + 64];
            atomicAdd(&out[64], 1.0f);
        }
        out[threadIdx.x] = sqrtf(read);
    }"""
    checked = check(source, grid=1, block=64, arguments=[np.zeros(128, np.float32)])
    told = {(x.accesses[0].line, x.accesses[0].thread, x.address) for x in checked.findings}
    assert told == {(8, (1, 0, 0), 4), (10, (0, 0, 0), 256)}
