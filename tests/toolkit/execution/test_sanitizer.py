"""A launch goes on after an access that faults; and races between blocks that wait for others."""

import tracemalloc
from functools import cache

import numpy as np
import pytest

from analysis.errors import InputError
from tests.cubins import cubin_of
from tests.refusals import refusal
from toolkit.execution.sanitizer import check
from toolkit.machine_code.kernel import Kernel
from toolkit.sass import checker

# 64 threads; x holds 48 floats, `shared` too.
SOURCE = """
extern "C" __global__ void kernel(float* x, float* out, int which)
{
    __shared__ float shared[48];
    const int t = threadIdx.x;
    if (t < 48) shared[t] = t;
    __syncthreads();
    STATEMENTS
}
"""
COPY = (
    'asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;" :: '
    '"r"((unsigned)__cvta_generic_to_shared(shared + TO)), "l"(x + FROM) : "memory");'
)


def checked(statements):
    source = SOURCE.replace("STATEMENTS", statements)
    return run(cubin_of(source, "kernel"))


def run(kernel):
    return check(
        kernel,
        grid=1,
        block=64,
        arguments=[np.ones(48, np.float32), np.zeros(64, np.float32), np.int32(1)],
        max_instructions=10**6,
    )


def faults(found):
    return [(x.kind, x.times) for x in found.findings if x.tool == "memcheck"]


FAULTS = [
    ("x[t] = 1;", [("out of bounds", 16)]),  # threads 48 to 63
    ("out[t] = x[t];", [("out of bounds", 16)]),
    ("((volatile float*)shared)[t + 40] = 1;", [("out of bounds", 56)]),  # all but 8
    ("atomicAdd(&x[t], 1.0f);", [("out of bounds", 16)]),
    ("(which ? x : shared)[t] = 1;", [("out of bounds", 16)]),  # a generic address
    ("(which ? shared : x)[t] = 1;", [("out of bounds", 16)]),
    ("*(float*)((char*)x + 2 * t) = 1;", [("misaligned", 32)]),  # the odd ones
    ("*(float*)((char*)x + 6 * t) = 1;", [("misaligned", 32), ("out of bounds", 16)]),
    (COPY.replace("TO", "t % 48").replace("FROM", "t"), [("out of bounds", 16)]),
    (COPY.replace("TO", "t").replace("FROM", "t % 48"), [("out of bounds", 16)]),
]


@cache
def image(arch):
    """All of them as kernels of one source: to compile and disassemble each takes half a second."""
    source = "".join(
        SOURCE.replace("STATEMENTS", statements).replace("kernel", f"faults_{number}")
        for number, (statements, _) in enumerate(FAULTS)
    )
    return cubin_of(source, "faults_0", arch).image


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("number", range(len(FAULTS)))
def test_every_thread_that_faults_is_counted(number, arch):
    expected = FAULTS[number][1]
    found = run(Kernel.from_image(image(arch), f"faults_{number}"))
    assert sorted(faults(found)) == expected
    assert found.executed_blocks == 1


def test_the_next_faults_are_found_too_each_at_its_line():
    found = checked("x[t] = 1;\n x[t + 1] = 2;\n out[t] = x[t + 2];")
    ours = [x for x in found.findings if x.tool == "memcheck"]
    ours.sort(key=lambda finding: finding.accesses[0].line or 0)
    lines = [x.accesses[0].line or 0 for x in ours]
    assert [line - lines[0] for line in lines] == [0, 1, 2]
    assert [x.times for x in ours] == [16, 17, 18]
    assert [x.accesses[0].what for x in ours] == ["write", "write", "read"]


def test_what_faults_is_left_out_and_the_rest_is_done():
    found = checked("if (x[t] != (t < 48 ? 1 : 0)) __trap(); x[t] = 2; if (x[t] == 1) __trap();")
    assert {kind for kind, _ in faults(found)} == {"out of bounds"}
    assert "were left out, and such reads returned 0" in found.notes[0]


def test_a_launch_that_goes_on_for_ever_after_a_fault_is_ended():
    found = checked("while (((volatile float*)x)[t + 4096] == 0) {}")
    assert [kind for kind, _ in faults(found)] == ["out of bounds"]
    assert "did not end within its limit of instructions" in found.notes[1]


def test_there_is_an_end_to_what_is_told():
    wrong = "".join(f"((volatile float*)x)[t + {1000 * n}] = 1;\n" for n in range(1, 121))
    found = checked(wrong)
    assert len(faults(found)) == checker.MOST_FAULTS == 100
    assert "there are more findings" in found.notes[-1]


LATE = """
extern "C" __global__ void reads_late(float* x, int* ready, float* out, int first) {
    if (blockIdx.x == first) {
        x[threadIdx.x] = 1;
        __syncthreads();
        out[threadIdx.x + 64] = x[threadIdx.x];
        FENCE
        __syncthreads();
        if (threadIdx.x == 0) atomicExch(ready, 1);
    } else {
        if (threadIdx.x == 0) while (atomicAdd(ready, 0) == 0) {}
        FENCE
        __syncthreads();
        out[threadIdx.x] = x[threadIdx.x];
    }
}
"""


@pytest.mark.parametrize(
    ("fence", "found"), [("", [("racecheck", "RAW")]), ("__threadfence();", [])]
)
@pytest.mark.parametrize("first", [0, 1])
def test_what_another_block_wrote_and_read_is_read_after_a_fence(first, fence, found):
    arrays = [np.ones(64, np.float32), np.zeros(1, np.int32), np.zeros(128, np.float32)]
    arguments = [*arrays, np.int32(first)]
    source = LATE.replace("FENCE", fence)
    checked = check(source, grid=2, block=64, arguments=arguments, arch="sm_90")
    assert [(one.tool, one.kind) for one in checked.findings] == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"blocks": 0}, "blocks = 0: give 'all', 'representative' or a number from 1 on"),
        ({"blocks": 1.5}, "blocks = 1.5: give 'all', 'representative' or a whole number"),
        ({"max_instructions": 2**63}, "max_instructions = 9223372036854775808: give 1 to 4,611,"),
        (
            {"unwritten": [[1]]},
            "unwritten = [1]: that argument is not an array: give positions among",
        ),
        ({"source": None}, "source = None: give a path, CUDA C++ text or machine code"),
        ({"grid": ()}, "grid = (): give one to three whole sizes of at least 1"),
    ],
)
def test_a_value_that_is_out_of_range_or_of_a_wrong_type_is_refused(change, message):
    given = {"source": "__global__ void k() {}", "grid": 1, "block": 1, "arguments": []} | change
    assert refusal(InputError, check, **given).startswith(message)


def test_a_grid_of_many_blocks_is_begun_at_once():
    """No list of the 2^27 blocks is made beforehand."""
    tracemalloc.start()

    def advance(done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check("__global__ void k() {}", grid=2**27, block=1, arguments=[], advance=advance)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**8


def test_a_misaligned_access_names_the_element_of_an_argument():
    (found,) = checked("double2 d = *(double2*)(x + 5 * which); out[t] = d.x;").findings
    assert found.kind == "misaligned"
    assert "(element 5 of argument 0, float32[48]): it is not a multiple of 8" in found.message


HALF_OF_A_WARP = """
    float v = t;
    if (t % 32 < 16) v += __shfl_xor_sync(0xffffffffu, v, 1);
    else v *= 3;
    __syncthreads();
    out[t] = v;
"""


@pytest.mark.parametrize("arch", ["sm_90", "sm_120"])  # sm_80 calls a function for it
def test_a_shuffle_of_half_a_warp_is_named_before_the_barrier_behind_it(arch):
    image = cubin_of(SOURCE.replace("STATEMENTS", HALF_OF_A_WARP), "kernel", arch)
    first, *others = run(image).findings
    assert (first.kind, first.accesses[0].line) == ("divergent thread(s) in warp", 10)
    assert first.times == 2  # of each warp
    assert [x.kind for x in others] in ([], ["deadlock"])


def test_a_vote_of_all_lanes_in_two_branches_is_one_operation():
    """Both halves synchronise for the same operation, though not by the same instruction."""
    both = "if (t % 32 < 16) out[t] = __any_sync(~0u, t == 3); else out[t] = __any_sync(~0u, 0);"
    assert not checked(both).findings


def test_a_lane_that_left_the_kernel_is_no_source_of_a_shuffle():
    (found,) = checked(
        "if (t % 32 > 27) return; out[t] = __shfl_down_sync(~0u, x[0] + t, 16);"
    ).findings
    assert "lane 12" in found.message
    assert "reads lane 28, which has left the kernel, at" in found.message


@pytest.mark.parametrize(
    ("statements", "notes"),
    [
        ("out[t] = shared[0];", ["argument 0, float32[48] is never read, nor written"]),
        ("if (which > 1) x[t] = 1;", [f"argument {k}, float32[" for k in (0, 1)]),
        ("x[0] = 1; out[t] = x[1];", []),
        ("atomicAdd(which ? x : out, 1.0f); out[t] = 1;", []),
        (COPY.replace("TO", "t % 8").replace("FROM", "t % 8") + "out[t] = 1;", []),
    ],
)
def test_an_array_that_nobody_accesses_is_told(statements, notes):
    found = checked(statements)
    said = [note for note in found.notes if "never" in note]
    assert len(said) == len(notes)
    assert all(text in note for text, note in zip(notes, said, strict=True))


def test_an_array_may_be_accessed_by_blocks_that_are_not_checked():
    source = SOURCE.replace("STATEMENTS", "if (blockIdx.x == 3) x[0] = 1; out[t] = 1;")
    arguments = [np.ones(48, np.float32), np.zeros(64, np.float32), np.int32(1)]
    for blocks, told in ((1, []), ("all", [])):
        notes = check(source, grid=4, block=64, arguments=arguments, blocks=blocks).notes
        assert [note for note in notes if "never" in note] == told
