"""The estimate of a launch's time before all blocks are executed."""

from types import SimpleNamespace

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
extern "C" __global__ void chained(volatile int *x, const int *turns) {
    int sum = 0;
    for (int k = 0; k < 200; ++k) sum += turns[(k * 64 + threadIdx.x) % 8192];
    while (threadIdx.x == 0 && blockIdx.x > 0 && x[blockIdx.x - 1] == 0) {}
    x[blockIdx.x] = sum | 1;
}
extern "C" __global__ void backwards(volatile int *x, const int *turns) {
    int sum = 0;
    for (int k = 0; k < 200; ++k) sum += turns[(k * 64 + threadIdx.x) % 8192];
    while (threadIdx.x == 0 && blockIdx.x < 127 && x[blockIdx.x + 1] == 0) {}
    x[blockIdx.x] = sum | 1;
}
extern "C" __global__ void __cluster_dims__(2) clusters(float *x, const int *turns) {
    x[blockIdx.x * 64 + threadIdx.x] = 1;
}
"""
X = np.zeros(128 * 64, dtype=np.float32)
TURNS = np.random.default_rng(2).integers(0, 9, X.size).astype(np.int32)


def launched(kernel, run=simulate, *, grid=128, **options):
    x = np.zeros(X.size, dtype=np.int32) if kernel in ("chained", "backwards") else X
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


@pytest.mark.parametrize("run", [simulate, check])
@pytest.mark.parametrize("kernel", ["chained", "backwards", "clusters"])
def test_blocks_that_depend_on_others_are_tried_too(monkeypatch, kernel, run):
    monkeypatch.setattr(estimate, "PROPORTIONAL", np.inf)  # whatever the times are
    told = []
    found = launched(kernel, run, announce=lambda *found: told.append(found))
    ((blocks, seconds),) = told
    assert blocks == 128
    assert 0 < seconds < 60
    plain = launched(kernel, run)
    if run is check:
        assert found == plain
    else:
        assert (found.outputs[0] == plain.outputs[0]).all()


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


class Trials:
    """What is tried: a clock says that every block takes the same, or takes all there is to do."""

    def __init__(self, monkeypatch, seconds_of):
        self.tried, self.now_s, self.seconds_of = [], 0.0, seconds_of
        monkeypatch.setattr(estimate.time, "perf_counter", lambda: self.now_s)

    def execute(self, blocks, most):
        self.tried.append((blocks, most))
        self.now_s += self.seconds_of(len(blocks))

    def restore(self):
        self.tried.append("restored")
        self.now_s += 100

    def seconds(self, *, waits, cluster=1):
        bound = SimpleNamespace(
            in_order=False, cluster_blocks=cluster, cluster_of=lambda block: block // cluster
        )
        return estimate.seconds_of_all(
            self.execute, bound, range(3200), 4, self.restore, waits=waits
        )


def test_seconds_count_the_turns_of_the_workers(monkeypatch):
    trials = Trials(monkeypatch, lambda blocks: 0.5)
    assert trials.seconds(waits=False) == pytest.approx(0.5 * 800 / 16)
    assert trials.tried == [(range(1568, 1632), None), "restored"]


@pytest.mark.parametrize(("of_block_s", "most"), [(0.06, 2), (0.01, 16), (0.001, 64)])
def test_waiting_blocks_are_tried_from_the_first_until_they_take_a_while(
    monkeypatch, of_block_s, most
):
    trials = Trials(monkeypatch, lambda blocks: of_block_s * blocks)
    assert trials.seconds(waits=True) == pytest.approx(of_block_s * 3200)
    limit = estimate.MOST_INSTRUCTIONS
    assert trials.tried[-4::2] == [(range(most // 2), limit), (range(most), limit)]
    assert trials.tried[1::2] == ["restored"] * (len(trials.tried) // 2)


def test_waiting_blocks_are_tried_in_whole_clusters(monkeypatch):
    trials = Trials(monkeypatch, lambda blocks: 0.02 * blocks)
    assert trials.seconds(waits=True, cluster=8) == pytest.approx(0.02 * 3200)
    assert [blocks for blocks, _ in trials.tried[::2]] == [range(8), range(16)]


def test_blocks_that_take_the_work_of_others_say_nothing(monkeypatch):
    assert Trials(monkeypatch, lambda blocks: 0.5).seconds(waits=True) is None


def test_too_little_memory_for_a_check_is_said_before_blocks_are_tried(monkeypatch):
    monkeypatch.setattr("toolkit.execution.sanitizer.available_bytes", lambda: 1)
    monkeypatch.setattr(
        "toolkit.execution.sanitizer.run_watched", lambda *_, **__: pytest.fail("executed")
    )
    with pytest.raises(LaunchError, match=r"to check it takes up to .* take a smaller launch"):
        launched("add", check, announce=lambda *found: None)
