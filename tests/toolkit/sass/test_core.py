"""The native core, as it is found and loaded, and what it counts for whom."""

from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Event, Thread, Timer

import numpy as np
import pytest

from analysis import library
from analysis.errors import UnavailableError
from tests.toolkit.sass.bound import bound_to, for_an_h200
from tests.toolkit.sass.one_by_one import one_by_one
from toolkit.sass.core import binding as core
from toolkit.sass.machine import FaultError, run_blocks

# Each block waits for the one behind it, but for the last.
BACKWARDS = """
extern "C" __global__ void backwards(volatile int *done)
{
    const int block = blockIdx.x;
    if (block + 1 < gridDim.x) while (!done[block + 1]) {}
    done[block] = 1;
}
"""
BLOCKS = 6


def backwards():
    kernel = for_an_h200(BACKWARDS, "backwards")
    return bound_to(kernel, [np.zeros(BLOCKS, np.int32)], blocks=BLOCKS, threads=1)[:2]


def test_a_core_of_other_sources_is_refused(monkeypatch):
    monkeypatch.setattr(library, "sources_of", lambda folder: "0" * 64)
    with pytest.raises(UnavailableError, match=r"built from other sources: run `pip install"):
        core.library.__wrapped__()


def test_a_core_without_its_sources_is_trusted(monkeypatch):
    monkeypatch.setattr(library, "sources_of", lambda folder: None)
    assert core.library.__wrapped__()


def test_blocks_that_wait_for_later_ones_are_counted_apart_and_run_together():
    bound, (done,) = backwards()
    bound = replace(bound, most_resident=BLOCKS)
    runs = run_blocks(bound, [range(b, b + 1) for b in range(BLOCKS)], workers=2)
    assert done.tolist() == [1] * BLOCKS
    executed = [int(run.counts["executed"].sum()) for run in runs]
    assert len(executed) == BLOCKS
    assert min(executed) == executed[-1] > 0  # which waits for nobody


LONG = 'extern "C" __global__ void count(volatile int *x) { while (*x < 1 << 30) *x = *x + 1; }'


@pytest.mark.parametrize("beside", [False, True])
def test_a_long_run_is_stopped_by_another_thread(beside):
    kernel = for_an_h200(LONG, "count")
    bound, (counted,), _ = bound_to(kernel, [np.zeros(1, np.int32)], threads=1)
    stop = Event()
    Timer(0.3, stop.set).start()
    with ThreadPoolExecutor(1) as pool:
        run = partial(run_blocks, bound, [range(1)], stop=stop)
        with pytest.raises(CancelledError):
            pool.submit(run).result() if beside else run()
    assert 0 < counted[0] < 1 << 30


# A run of multiply-adds, longer than a warp's slice, into which a branch leads, some lanes alone.
STRAIGHT = """
extern "C" __global__ void straight(float *x, float a, int n)
{
    float sum = x[threadIdx.x];
    if (threadIdx.x < n)
        for (int k = 0; k < 20; ++k)
#pragma unroll
            for (int j = 0; j < 1000; ++j) sum = sum * a + 1.0f;
    x[threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize("lanes", [32, 20])
def test_straight_runs_count_and_compute_as_one_by_one(lanes):
    x = np.arange(64, dtype=np.float32)
    arguments = [x, np.float32(0.5), np.int32(lanes)]
    kernel = for_an_h200(STRAIGHT, "straight")
    bound, (out,), translated = bound_to(kernel, arguments, threads=64)
    (run,) = run_blocks(replace(bound, most_steps=1 << 20), [range(1)])
    expected = x.copy()
    for _ in range(20 * 1000):
        expected[:lanes] = expected[:lanes] * np.float32(0.5) + np.float32(1)  # exact: halves
    assert np.array_equal(out, expected)
    opcodes = np.array([one.opcode for one in translated.kernel.instructions])
    of_adds = run.counts[opcodes == "FFMA"]
    assert of_adds["executed"].sum() == 20 * 1000  # of the first warp
    assert of_adds["threads"].sum() == of_adds["predicated"].sum() == lanes * 20 * 1000
    steps = run.streams.steps
    executed = np.bincount(one_by_one(steps)["pc"], minlength=len(opcodes))
    assert np.array_equal(executed, run.counts["executed"])
    assert run.streams.executed == executed.sum()
    assert (len(steps) < executed.sum() / 10) == (lanes == 32)  # only whole warps run straight


def test_blocks_that_cannot_run_together_are_a_deadlock():
    bound, _ = backwards()
    with pytest.raises(FaultError):
        run_blocks(bound, [range(b, b + 1) for b in range(BLOCKS)], workers=2)


def test_no_memory_is_given_back_while_a_thread_runs_whose_start_was_interrupted(monkeypatch):
    """As by Ctrl-C while the pool waits for the thread: it is none of the pool's threads."""
    bound, _, _ = bound_to(for_an_h200(LONG, "count"), [np.zeros(1, np.int32)], threads=1)
    native, start, order, running = core.library(), Thread.start, [], Event()
    run, free = native.core_run, native.core_free_worker

    def noted_run(*arguments):
        running.set()
        failed = run(*arguments)
        order.append("returned")
        return failed

    def noted_free(handle):
        order.append("freed")
        free(handle)

    def interrupted(thread):
        start(thread)
        assert running.wait(10)
        raise KeyboardInterrupt

    monkeypatch.setattr(native, "core_run", noted_run)
    monkeypatch.setattr(native, "core_free_worker", noted_free)
    monkeypatch.setattr(Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_blocks(bound, [range(1)])
    assert order == ["returned", "freed"]
