"""Injected faults on real silicon: each becomes a red row with its reason, the others run on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.geometry import Geometry
from analysis.problem import Gemm
from toolkit import trial as trials
from toolkit.experiment import profile
from toolkit.sampling import Sampling
from toolkit.store import load
from toolkit.trial import Trial, survives

pytestmark = pytest.mark.gpu

SHAPE = Gemm(m=64, n=64, k=64)
QUICK = Sampling(time_limit_s=0.2, max_samples=50, precision=0.05)
HEAD = """#include <cassert>

extern "C" __global__ void planted(float* A, float* B, float* C, int M, int N, int K,
                                   float alpha, float beta)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
"""
INSIDE = "if (i < M * N) C[i] = 0.0f;"

# What a kernel does -> words of the reason.
FAULTS = {
    "writes far out of bounds": ("C[(1ull << 40) + i] = 1.0f;", "illegal memory access"),
    "reads far out of bounds": ("C[i] = A[(1ull << 40) + i];", "illegal memory access"),
    "writes behind C": ("C[M * N + i % 32] = 1.0f;", "behind C were overwritten"),
    "writes in front of C": ("C[-1 - i % 32] = 1.0f;", "in front of C were overwritten"),
    "writes behind A": ("A[M * K] = 1.0f;", "behind A were overwritten"),
    "writes to its input": ("B[i % 8] = 7.0f;", "wrote to B, which is an input"),
    "loops for ever": (
        "while (*(volatile float*)C == *(volatile float*)C + 1 || alpha > 0) {}",
        "did not end within",
    ),
    "waits for threads that never come": (
        'if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); else while (1) asm volatile("");',
        "did not end within",
    ),
    "traps": ("__trap();", "launch: "),
    "fails an assert": ("assert(alpha < 0);", "launch: "),
    "reads misaligned": ("C[i] = *(float*)((char*)A + 1 + 4 * (i % 8));", "misaligned"),
    "follows a null pointer": ("*(volatile float*)(size_t)(i % 2) = 1.0f;", "launch: "),
    "jumps through a wild pointer": ("((void (*)(int))(size_t)(0x10000 + M))(i);", "launch: "),
    "overflows its stack": ("volatile float deep[100000]; deep[i] = 1; C[i] = deep[i + 1];", ""),
    "does not compile": ("this is no C++;", "does not compile"),
}


def trial(body: str, block: int = 64, dynamic_shared_bytes: int = 0, shape: Gemm = SHAPE) -> Trial:
    return Trial(
        source=HEAD + body + "\n}\n",
        entry="planted",
        name="planted.cu",
        defines={},
        geometry=Geometry(
            grid=(shape.m, 1, 1), block=(block, 1, 1), dynamic_shared_bytes=dynamic_shared_bytes
        ),
        problem=SHAPE,
        executed=shape,
        seed=1,
    )


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "START_S", 30.0)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_a_reason(name: str) -> None:
    body, words = FAULTS[name]
    reason = survives(trial(body), limit_s=30.0)
    if not words:  # the driver may grow the stack
        return
    assert reason is not None
    assert words in reason
    assert "\n" not in reason


def test_what_stays_in_its_buffers_survives_after_all_that() -> None:
    assert survives(trial(INSIDE)) is None


def test_too_much_shared_memory_is_a_reason() -> None:
    assert survives(trial(INSIDE, dynamic_shared_bytes=10**6)) is not None


def test_too_many_threads_are_a_reason() -> None:
    assert survives(trial(INSIDE, block=2048)) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum += ", "sum = "),  # wrong numbers
        ("alpha * sum", "alpha * (sum - sum) / (sum - sum)"),  # NaN
        ("__syncthreads();", 'while (alpha > 0.0f) asm volatile("");'),  # never ends
        ("float* const c = C", "float* const c = C + (1ull << 40)"),  # illegal address
    ],
)
def test_the_others_are_measured_beside_a_broken_one(
    old: str, new: str, edit_rung: Callable[[str, str, str], None]
) -> None:
    edit_rung("tiled", old, new)
    result = profile(
        [256], ["naive-coalesced", "tiled", "vectorized", "cublas"], executor="gpu", sampling=QUICK
    )
    by_label = {record.label: record for record in result.records}
    assert by_label["tiled"].status == "failed"
    assert by_label["tiled"].reason
    for label in ("naive-coalesced", "vectorized"):
        measured = by_label[label].measured
        assert measured is not None
        assert measured.relative_to_cublas is not None or by_label["cublas"].status == "skipped"


# The command line, with a rung that has a bug from its sixth launch in a process on: a trial has
# three.
LATE = """
import os

import toolkit.trial
from kernels.registry import Variant
from toolkit.cli import main

toolkit.trial.LAUNCH_GRACE_S = 5.0
real = Variant.source.fget
COUNT = '__device__ int launches;'
HEAD, BODY = 'extern "C"', 'const int row ='
FIRST = 'blockIdx.x + blockIdx.y + threadIdx.x + threadIdx.y == 0'


def source(variant):
    text = real(variant)
    if variant.name != 'tiled':
        return text
    assert text.count(HEAD) == text.count(BODY) == 1
    bug = f"if ({FIRST} && ++launches > 5) {{ {os.environ['BUG']} }}"
    return text.replace(HEAD, f'{COUNT} {HEAD}').replace(BODY, f'{bug} {BODY}')


Variant.source = property(source)
main()
"""


@pytest.mark.parametrize(
    ("bug", "words"),
    [
        ('while (1) asm volatile("");', "did not end within"),
        ("((volatile float*)C)[1ull << 40] = 1.0f;", "illegal memory access"),
    ],
    ids=["hangs", "faults"],
)
def test_the_run_goes_on_without_what_breaks_after_its_trial(
    bug: str, words: str, tmp_path: Path
) -> None:
    words_of_run = ["profile", "--shape", "256", "--executor", "gpu", "--seconds", "0.2"]
    for name in ("naive-coalesced", "tiled", "vectorized"):
        words_of_run += ["--variant", name]
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    result = subprocess.run(
        [sys.executable, "-c", LATE, *words_of_run],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path, "BUG": bug},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 1, result.stderr
    assert result.stderr.count("going on without it") == 1
    profile = load(tmp_path / "profile.json")
    naive, tiled, vectorized = profile.records
    assert profile.status == "complete"
    assert tiled.status == "failed"
    assert words in (tiled.reason or "")
    for record in (naive, vectorized):
        assert record.measured is not None
