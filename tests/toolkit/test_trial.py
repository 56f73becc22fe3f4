"""A variant is tried in a process of its own: whatever it does there becomes one line."""

from __future__ import annotations

import os
import pickle
import signal
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analysis.errors import LaunchError
from analysis.geometry import Geometry
from analysis.problem import Gemm
from kernels.registry import LADDER, Variant
from toolkit import trial as trials
from toolkit.experiment import profile
from toolkit.gpu import Gpu
from toolkit.sampling import Sampling
from toolkit.tiles import maps_of
from toolkit.trial import Trial, launched_on, survives

QUICK = Sampling(time_limit_s=60, max_samples=25, precision=1e-9)
TRIAL = Trial(
    source="",
    entry="product",
    name="product.cu",
    defines={},
    geometry=Geometry(grid=(1, 1, 1), block=(32, 1, 1)),
    problem=Gemm(m=4, n=8, k=4),
    executed=Gemm(m=4, n=8, k=4),
    seed=1,
)

# What children do; a child imports this module to find them.


def succeeds(trial: Trial) -> None:
    assert trial == TRIAL


def finds_damage(trial: Trial) -> str:
    return f"{trial.name}: damage"


def is_refused(trial: Trial) -> None:
    raise LaunchError("launch: cuCtxSynchronize failed: an illegal memory access was encountered")


def stumbles(trial: Trial) -> None:
    raise RuntimeError("first line\nsecond line")


def exhausts_memory(trial: Trial) -> None:
    raise MemoryError


def never_ends(trial: Trial) -> None:
    time.sleep(3600)


def never_ends_and_ignores_sigterm(trial: Trial) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(3600)


def crashes(trial: Trial) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def aborts(trial: Trial) -> None:
    os.kill(os.getpid(), signal.SIGABRT)


def leaves(trial: Trial) -> None:
    os._exit(3)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (succeeds, None),
        (finds_damage, "product.cu: damage"),
        (is_refused, "launch: cuCtxSynchronize failed: an illegal memory access was encountered"),
        (stumbles, "RuntimeError: first line"),
        (exhausts_memory, "the host's memory is exhausted: take a smaller shape"),
        (crashes, "the process that ran it died (signal SIGSEGV)"),
        (aborts, "the process that ran it died (signal SIGABRT)"),
        (leaves, "the process that ran it died (exit code 3)"),
    ],
)
def test_what_a_child_does_becomes_one_line(body: Any, expected: str | None) -> None:
    assert survives(TRIAL, body) == expected


@pytest.mark.parametrize("body", [never_ends, never_ends_and_ignores_sigterm])
def test_what_never_ends_is_stopped(body: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "GRACE_S", 0.5)
    started = time.monotonic()
    reason = survives(TRIAL, body, limit_s=2.0)
    assert (reason or "").startswith("did not end within 2 s and was stopped: an endless loop")
    assert time.monotonic() - started < 30


# What is looked at in the child, on the made-up GPU of conftest.py.


def on_fake(cuda: Any, kernel: Any) -> str | None:
    cuda.kernels["product"] = kernel
    with Gpu() as gpu:
        return launched_on(gpu, TRIAL)


def writes(position: int, offset_bytes: int) -> Any:
    """A kernel that writes a word so far from the start of a buffer."""

    def kernel(launch: Any) -> None:
        launch.cuda.product(launch)
        launch.cuda.memory(int(launch.arguments[position]) + offset_bytes)[:4] = 1

    return kernel


def test_a_kernel_that_stays_in_its_buffers_passes(cuda: Any) -> None:
    assert on_fake(cuda, cuda.product) is None
    assert cuda.log.count("product") == trials.LAUNCHES


@pytest.mark.parametrize(
    ("position", "offset_bytes", "words"),
    [
        (2, 4 * 8 * 4, "1 words behind C were overwritten, the nearest 0 bytes away"),
        (2, 4 * 8 * 4 + 400, "1 words behind C were overwritten, the nearest 400 bytes away"),
        (2, -4, "1 words in front of C were overwritten, the nearest 4 bytes away"),
        (0, 4 * 4 * 4, "1 words behind A were overwritten, the nearest 0 bytes away"),
        (1, -8, "1 words in front of B were overwritten, the nearest 8 bytes away"),
        (0, 0, "wrote to A, which is an input"),
        (1, 60, "wrote to B, which is an input"),
    ],
)
def test_a_write_beyond_its_output_is_named(
    cuda: Any, position: int, offset_bytes: int, words: str
) -> None:
    assert words in (on_fake(cuda, writes(position, offset_bytes)) or "")


def test_a_workspace_is_zeros_between_guard_bands(cuda: Any) -> None:
    held = []

    def kernel(launch: Any) -> None:
        launch.cuda.product(launch)
        workspace = launch.cuda.memory(int(launch.arguments[8]))
        held.append(workspace[:12].tolist())
        workspace[12:16] = 1

    cuda.kernels["product"] = kernel
    with Gpu() as gpu:
        reason = launched_on(gpu, replace(TRIAL, workspace_bytes=12))
    assert held[0] == [0] * 12
    assert "1 words behind the workspace were overwritten" in (reason or "")


@pytest.mark.parametrize("variant", LADDER, ids=lambda variant: variant.name)
def test_what_a_rung_takes_can_be_handed_to_a_child(variant: Variant) -> None:
    shape = variant.executed(Gemm(m=256, n=256, k=64))
    trial = replace(
        TRIAL,
        maps=maps_of(variant, variant.defaults, shape),
        workspace_bytes=variant.workspace(variant.defaults, shape),
    )
    assert pickle.loads(pickle.dumps(trial)) == trial


def test_a_fault_is_an_error(cuda: Any) -> None:
    with pytest.raises(LaunchError, match="illegal memory access"):
        on_fake(cuda, lambda launch: launch.cuda.fault())


def test_no_kernel_reads_zeros_around_its_buffers(cuda: Any) -> None:
    seen: list[float] = []

    def kernel(launch: Any) -> None:
        seen.append(launch.cuda.memory(int(launch.arguments[2]) - 4).view(np.float32)[0])

    on_fake(cuda, kernel)
    assert np.isnan(seen).all()


# In a run.


def test_what_does_not_survive_fails_alone(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(trial: Trial) -> str | None:
        return "did not end within 60 s" if trial.entry == "sgemm_tiled" else None

    monkeypatch.setattr("toolkit.experiment.survives", answer)
    result = profile([32], ["naive-coalesced", "tiled", "cpu"], executor="gpu", sampling=QUICK)
    naive, tiled, cpu = result.records
    assert (tiled.status, tiled.reason) == ("failed", "did not end within 60 s")
    assert tiled.measured is None
    assert naive.measured is not None
    assert cpu.measured is not None
    assert "sgemm_tiled" not in cuda.log  # it never ran in this process


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
def test_wrong_numbers_fail_after_a_trial_that_found_nothing(cuda: Any, value: float) -> None:
    def kernel(launch: Any) -> None:
        launch.cuda.product(launch)
        launch.floats(2)[5] = value

    cuda.kernels["sgemm_tiled"] = kernel
    (record,) = profile([32], ["tiled"], executor="gpu", sampling=QUICK).records
    assert record.status == "failed"
    assert (record.reason or "").startswith("wrong result: ")
