"""Injected faults on real silicon: each becomes a red row with its reason, the others run on."""

import numpy as np
import pytest

from analysis.errors import ToolkitError
from analysis.geometry import Geometry
from analysis.problem import parse_shape
from toolkit.gpu.launch import InAChild, task_of
from toolkit.gpu.product_launch import LAUNCHES
from toolkit.gpu.sampling import Sampling
from toolkit.launch.launch import Launch
from toolkit.profiling.profile import profile

pytestmark = pytest.mark.gpu

SHAPE = parse_shape("64")
C = 2  # where it stands among the arguments of HEAD
QUICK = Sampling(time_limit_s=0.2, max_samples=50, precision=0.05)
HEAD = """#include <cassert>

extern "C" __global__ void planted(float* A, float* B, float* C, int M, int N, int K,
                                   float alpha, float beta)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
"""
INSIDE = "if (i < M * N) C[i] = 0.0f;"

A_LABEL, B_LABEL, C_LABEL = (
    f"argument {position} `{name}`, float32[64,64]" for position, name in enumerate("ABC")
)

# What a kernel does -> words of the reason.
FAULTS = {
    "writes far out of bounds": ("C[(1ull << 40) + i] = 1.0f;", "illegal memory access"),
    "reads far out of bounds": ("C[i] = A[(1ull << 40) + i];", "illegal memory access"),
    "writes behind C": ("C[M * N + i % 32] = 1.0f;", f"behind {C_LABEL} were overwritten"),
    "writes in front of C": ("C[-1 - i % 32] = 1.0f;", f"in front of {C_LABEL} were overwritten"),
    "writes behind A": ("A[M * K] = 1.0f;", f"behind {A_LABEL} were overwritten"),
    "writes to its input": ("B[i % 8] = 7.0f;", f"wrote to {B_LABEL}, which is an input"),
    "loops for ever": (
        "while (*(volatile float*)C == *(volatile float*)C + 1 || alpha > 0) {}",
        "did not end within",
    ),
    "waits for threads that never come": (
        'if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); else while (1) asm volatile("");',
        "did not end within",
    ),
    "traps": ("__trap();", "planted: "),
    "fails an assert": ("assert(alpha < 0);", "planted: "),
    "reads misaligned": ("C[i] = *(float*)((char*)A + 1 + 4 * (i % 8));", "misaligned"),
    "follows a null pointer": ("*(volatile float*)(size_t)(i % 2) = 1.0f;", "planted: "),
    "jumps through a wild pointer": ("((void (*)(int))(size_t)(0x10000 + M))(i);", "planted: "),
    "overflows its stack": ("volatile float deep[100000]; deep[i] = 1; C[i] = deep[i + 1];", ""),
    "does not compile": ("this is no C++;", "does not compile"),
}


def reason_for(body, block=64, dynamic_shared_bytes=0):
    """Reason why a kernel with this body fails; None if it does not."""
    zeros = np.zeros((SHAPE.m, SHAPE.k), np.float32)
    launch = Launch(
        source=HEAD + body + "\n}\n",
        name="planted.cu",
        kernel="planted",
        geometry=Geometry(
            grid=(SHAPE.m, 1, 1), block=(block, 1, 1), dynamic_shared_bytes=dynamic_shared_bytes
        ),
        arguments=[
            zeros,
            zeros.copy(),
            zeros.copy(),
            *map(np.int32, (SHAPE.m, SHAPE.n, SHAPE.k)),
            np.float32(1),
            np.float32(0),
        ],
        inputs=(0, 1),
        unwritten=(C,),
    )
    with InAChild(task_of(launch, limit_s=15.0)) as child:
        try:
            child.result(C, LAUNCHES)
        except ToolkitError as error:
            return str(error)
    return None


@pytest.fixture(autouse=True)
def short_patience(monkeypatch):
    monkeypatch.setattr("toolkit.gpu.product_launch.START_S", 15.0)
    monkeypatch.setattr("toolkit.gpu.product_launch.LAUNCH_GRACE_S", 5.0)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_a_reason(name):
    body, words = FAULTS[name]
    reason = reason_for(body)
    if not words:  # the driver may grow the stack
        return
    assert words in reason
    assert "\n" not in reason


def test_what_stays_in_its_buffers_has_no_reason_after_all_that():
    assert reason_for(INSIDE) is None


def test_too_much_shared_memory_is_a_reason():
    assert reason_for(INSIDE, dynamic_shared_bytes=10**6) is not None


def test_too_many_threads_are_a_reason():
    assert reason_for(INSIDE, block=2048) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum += ", "sum = "),  # wrong numbers
        ("alpha * sum", "alpha * (sum - sum) / (sum - sum)"),  # NaN
        ("__syncthreads();", 'while (alpha > 0.0f) asm volatile("");'),  # never ends
        ("float* const c = C", "float* const c = C + (1ull << 40)"),  # illegal address
    ],
)
def test_the_others_are_measured_beside_a_broken_one(old, new, edit_rung):
    edit_rung("tiled", old, new)
    result = profile(
        [256], ["naive-coalesced", "tiled", "vectorized", "cublas"], executor="gpu", sampling=QUICK
    )
    by_label = {record.label: record for record in result.records}
    assert by_label["tiled"].status == "failed"
    assert by_label["tiled"].reason
    for label in ("naive-coalesced", "vectorized"):
        measured = by_label[label].measured
        assert measured.relative_to_cublas is not None or by_label["cublas"].status == "skipped"


@pytest.mark.parametrize(
    ("bug", "words"),
    [
        ('while (1) asm volatile("");', "did not end within 5 s"),
        ("((volatile float*)C)[1ull << 40] = 1.0f;", "illegal memory access"),
        ("((volatile float*)C)[-1] = 1.0f;", "in front of argument 2 `C`, float32[256,256] were"),
    ],
    ids=["hangs", "faults", "writes beside C"],
)
def test_what_breaks_only_when_it_is_timed_breaks_alone_too(bug, words, edit_rung):
    """From its 100th launch on: a check has three."""
    first = "blockIdx.x + blockIdx.y + threadIdx.x + threadIdx.y == 0"
    edit_rung("tiled", 'extern "C"', '__device__ int launches; extern "C"')
    edit_rung(
        "tiled", "const int row =", f"if ({first} && ++launches > 99) {{ {bug} }} const int row ="
    )
    result = profile(
        [256], ["naive-coalesced", "tiled", "vectorized", "cublas"], executor="gpu", sampling=QUICK
    )
    naive, tiled, vectorized, _ = result.records
    assert result.status == "complete"
    assert (tiled.status, tiled.measured) == ("failed", None)
    assert words in (tiled.reason or "")
    for record in (naive, vectorized):
        assert record.measured is not None
