"""The estimate of a launch's time before all blocks are executed."""

import numpy as np
import pytest

from analysis.errors import LaunchError
from toolkit import check, simulate
from toolkit.execution import estimate

SOURCE = """
__device__ float seen[64];
extern "C" __global__ void add(float *x, const int *turns) {
    int i = blockIdx.x * 64 + threadIdx.x;
    seen[threadIdx.x] += 1;
    for (int k = 0; k < turns[i]; ++k) x[i] += seen[threadIdx.x];
}
extern "C" __global__ void out_of_bounds(float *x, const int *turns) {
    x[blockIdx.x * 64 + threadIdx.x + 118 * 64] = 1;
}
extern "C" __global__ void waiting(volatile int *x, const int *turns) {
    while (threadIdx.x == 0 && blockIdx.x > 0 && x[blockIdx.x - 1] == 0) {}
    x[blockIdx.x] = 1;
}
extern "C" __global__ void __cluster_dims__(2) clusters(float *x, const int *turns) {
    x[blockIdx.x * 64 + threadIdx.x] = 1;
}
"""
X = np.zeros(128 * 64, dtype=np.float32)
TURNS = np.random.default_rng(2).integers(0, 9, X.size).astype(np.int32)


def launched(kernel, run=simulate, *, grid=128, **options):
    x = np.zeros(X.size, dtype=np.int32) if kernel == "waiting" else X
    common = {"grid": (grid,), "block": (64,), "arguments": [x, TURNS], "arch": "sm_90"}
    return run(SOURCE, kernel, **common, **options)


@pytest.mark.parametrize("run", [simulate, check])
def test_the_time_of_all_blocks_is_told_before_they_are_executed(run):
    told = []
    launched(
        "add",
        run,
        advance=lambda done, of: told.append(of),
        announce=lambda blocks, seconds: told.append((blocks, seconds)),
    )
    (at,) = (k for k, one in enumerate(told) if isinstance(one, tuple))
    assert told[at][0] == 128
    assert 0 < told[at][1] < 60
    assert 128 not in told[:at]
    assert set(told[at + 1 :]) == {128}


def test_blocks_that_were_tried_leave_no_trace():
    plain = launched("add", workers=1)
    estimated = launched("add", workers=1, announce=lambda blocks, seconds: None)
    assert (estimated.outputs[0] == plain.outputs[0]).all()
    assert estimated.counters == plain.counters
    found = launched("add", check, announce=lambda blocks, seconds: None)
    assert found == launched("add", check)


@pytest.mark.parametrize("kernel", ["waiting", "clusters"])
def test_blocks_that_depend_on_others_are_not_tried(kernel):
    told = []
    launched(kernel, announce=lambda *found: told.append(found))
    assert not told


def test_a_few_blocks_are_not_tried():
    told = []
    launched("add", grid=31, announce=lambda *found: told.append(found))
    assert not told


def test_the_fault_of_the_first_block_is_the_one_that_is_told():
    messages = []
    for announce in (None, lambda blocks, seconds: None):
        with pytest.raises(LaunchError, match=r"block \(10, 0, 0\)") as error:
            launched("out_of_bounds", workers=1, announce=announce)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_variables_are_restored_where_a_plan_fails():
    whole = launched("add", workers=1)
    planned = launched("add", workers=1, blocks="representative", device="h200")
    assert planned.executed_blocks == 128
    assert (planned.outputs[0] == whole.outputs[0]).all()


def test_seconds_count_the_turns_of_the_workers(monkeypatch):
    clock = iter([10.0, 10.5])
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: next(clock))
    tried = []
    seconds = estimate.seconds_of_all(tried.append, 3200, 4, lambda: tried.append("restored"))
    assert tried == [range(1568, 1632), "restored"]
    assert seconds == pytest.approx(0.5 * 800 / 16)


def test_too_little_memory_for_a_check_is_said_before_blocks_are_tried(monkeypatch):
    monkeypatch.setattr("toolkit.execution.sanitizer.available_bytes", lambda: 1)
    monkeypatch.setattr(
        "toolkit.execution.sanitizer.run_watched", lambda *_, **__: pytest.fail("executed")
    )
    with pytest.raises(LaunchError, match=r"to check it takes up to .* take a smaller launch"):
        launched("add", check, announce=lambda *found: None)
