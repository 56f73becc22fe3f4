"""The estimate of a launch's time before all blocks are executed."""

from types import SimpleNamespace

import numpy as np
import pytest

from analysis.errors import LaunchError
from toolkit import check, simulate
from toolkit.execution import wall_time
from toolkit.sass import machine
from toolkit.sass.machine import DEADLOCK, LIMIT, FaultError

SOURCE = """
__device__ float seen[64];
extern "C" __global__ void add(float *x, const int *turns) {
    int i = blockIdx.x * 64 + threadIdx.x;
    seen[threadIdx.x] += 1;
    for (int k = 0; k < turns[i]; ++k) x[i] += seen[threadIdx.x];
}
extern "C" __global__ void same(float *x, const int *turns) {
    for (int k = 0; k < 9; ++k) x[blockIdx.x * 64 + threadIdx.x] += k;
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
    x[blockIdx.x * 64 + threadIdx.x] += 1;
}
extern "C" __global__ void next(volatile int *x, const int *turns) {
    while (threadIdx.x == 0 && blockIdx.x + 1 < gridDim.x && x[blockIdx.x + 1] == 0) {}
    x[blockIdx.x] = 1;
}
"""
TURNS = np.random.default_rng(2).integers(0, 9, 8192).astype(np.int32)


def launched(kernel, run=simulate, *, grid=128, **options):
    size = max(TURNS.size, 64 * grid)
    x = np.zeros(size, dtype=np.int32 if kernel in ("chained", "backwards", "next") else np.float32)
    common = {"grid": (grid,), "block": (64,), "arguments": [x, TURNS], "arch": "sm_90"}
    return run(SOURCE, kernel, **common, **options)


@pytest.mark.parametrize("run", [simulate, check])
def test_the_time_of_all_blocks_is_told_before_they_are_executed(run):
    told = []
    launched("add", run, advance=lambda done, of: told.append(of), announce=told.append)
    (at,) = (k for k, one in enumerate(told) if isinstance(one, wall_time.WallTime))
    assert told[at].blocks == 128
    assert 0 < told[at].seconds < 60
    assert 128 not in told[:at]
    assert set(told[at + 1 :]) == {128}


def test_a_first_turn_that_exceeds_its_limit_is_the_least_that_all_blocks_take(monkeypatch):
    """A clock at 500 s; the first two blocks execute for 3 s, until they are stopped."""
    now_s, told, asked = iter((500.0, 503.0)), [], []

    def execute(blocks, regions, most):
        asked.append((blocks, most))
        if most is not None:
            raise FaultError(SimpleNamespace(kind=LIMIT, instruction=0))
        return list(blocks)

    monkeypatch.setattr(wall_time.time, "perf_counter", lambda: next(now_s))
    bound = SimpleNamespace(restore=lambda: asked.append("restored"))
    blocks = [range(k, k + 1) for k in range(7)]
    run = wall_time.announcing(execute, bound, told.append, 2, at_once=True)
    assert run(blocks, None) == blocks
    assert told == [wall_time.WallTime(7, 3.0, is_least=True)]
    assert asked == [(blocks[:2], wall_time.TRIALS[0][1]), "restored", (blocks, None)]


def test_blocks_that_were_tried_leave_no_trace():
    plain = launched("add", workers=1)
    told = launched("add", workers=1, announce=lambda told: None)
    assert (told.outputs[0] == plain.outputs[0]).all()
    assert told.counters == plain.counters
    found = launched("add", check, announce=lambda told: None)
    assert found == launched("add", check)


@pytest.mark.parametrize("run", [simulate, check])
@pytest.mark.parametrize("kernel", ["chained", "backwards", "clusters"])
def test_blocks_that_depend_on_others_are_tried_too(monkeypatch, kernel, run):
    monkeypatch.setattr(wall_time, "TRIALS", ((1, 10), (1, 10**6)))  # not all within the first
    told = []
    two = {} if run is check else {"workers": 2}
    found = launched(kernel, run, announce=told.append, **two)
    (one,) = told
    assert one.blocks == 128
    assert 0 < one.seconds < 60
    assert one.is_least == (kernel == "backwards")
    plain = launched(kernel, run)
    if run is check:
        assert found == plain
    else:
        assert (found.outputs[0] == plain.outputs[0]).all()


@pytest.mark.parametrize("run", [simulate, check])
@pytest.mark.parametrize("kernel", ["add", "chained"])
def test_blocks_that_exceed_the_limit_of_a_trial_are_announced(monkeypatch, kernel, run):
    monkeypatch.setattr(wall_time, "TRIALS", ((4, 10), (1, 20)))
    told = []
    launched(kernel, run, announce=told.append)
    assert [(one.blocks, one.is_least) for one in told] == [(128, True)]


@pytest.mark.parametrize("run", [simulate, check])
def test_a_launch_with_a_low_limit_is_not_tried(run):
    told = []
    launched("add", run, announce=told.append, max_instructions=10**8)
    assert not told


@pytest.mark.parametrize("blocks", [100, "representative"])
@pytest.mark.parametrize("limit", [10**6, 10])
@pytest.mark.parametrize("workers", [2, 4, 64])
def test_a_few_blocks_are_announced_by_the_first_of_them(monkeypatch, blocks, limit, workers):
    monkeypatch.setattr(wall_time, "TRIALS", ((1, limit),))
    told, common = [], {"workers": workers, "blocks": blocks, "grid": 1024}
    found = launched("same", announce=told.append, **common)
    plain = launched("same", **common)
    assert found.executed_blocks == plain.executed_blocks < 1024
    assert found.counters == plain.counters
    assert (found.outputs[0] == plain.outputs[0]).all()
    if blocks == "representative" and limit > 10:
        assert not told
    else:
        assert [one.is_least for one in told] == [limit == 10]
        assert 1 <= told[0].blocks <= found.executed_blocks


@pytest.mark.parametrize(("kernel", "grid", "blocks"), [("clusters", 1024, 100), ("next", 3, 2)])
def test_blocks_that_need_others_are_not_divided(kernel, grid, blocks):
    common = {"workers": 1 if kernel == "clusters" else 2, "blocks": blocks, "grid": grid}
    found = launched(kernel, announce=lambda told: None, **common)
    plain = launched(kernel, **common)
    assert found.executed_blocks == plain.executed_blocks
    assert (found.outputs[0] == plain.outputs[0]).all()


def test_blocks_that_wait_for_others_are_told_as_they_finish(monkeypatch):
    monkeypatch.setattr(machine, "_POLL_S", 0.001)
    told = []
    launched("chained", grid=1024, advance=lambda done, of: told.append((done, of)))
    assert told == sorted(told)
    assert told[0] < told[-1] == (1024, 1024)


def test_the_fault_of_the_first_block_is_the_one_that_is_told():
    messages = []
    for announce in (None, lambda told: None):
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
    """Fake trials: a clock sets their times, and a worker may exceed its limit of instructions."""

    def __init__(self, monkeypatch, seconds_of, instructions_of=lambda blocks: 0, fault=None):
        self.tried, self.now_s, self.size_of = [], 0.0, len
        self.seconds_of, self.instructions_of, self.fault = seconds_of, instructions_of, fault
        monkeypatch.setattr(wall_time.time, "perf_counter", lambda: self.now_s)

    def execute(self, blocks, most):
        self.tried.append(blocks)
        self.now_s += self.seconds_of(self.size_of(blocks))
        kind = LIMIT if self.instructions_of(len(blocks)) > most else self.fault
        if kind is not None:
            raise FaultError(SimpleNamespace(kind=kind, instruction=0))

    def restore(self):
        self.tried.append("restored")
        self.now_s += 100

    def estimate(self, blocks=3200, *, waits=False, cluster=1, cluster_of=None, in_order=False):
        bound = SimpleNamespace(
            in_order=in_order,
            cluster_blocks=cluster,
            cluster_of=cluster_of or (lambda block: block // cluster),
            restore=self.restore,
        )
        found = wall_time.estimated_wall_time(self.execute, bound, range(blocks), 4, waits=waits)
        assert self.tried[1::2] == ["restored"] * (len(self.tried) // 2)
        return found


def test_blocks_are_tried_from_the_middle_in_turns_of_all_workers(monkeypatch):
    trials = Trials(monkeypatch, lambda blocks: 0.001 * blocks)
    assert trials.estimate() == wall_time.WallTime(3200, pytest.approx(3.2))
    assert trials.tried == [range(1592, 1608), "restored"]


def test_a_long_launch_is_compared_with_twice_the_blocks(monkeypatch):
    trials = Trials(monkeypatch, lambda blocks: 1 + 0.5 * blocks)
    assert trials.estimate() == wall_time.WallTime(3200, pytest.approx(1601))
    assert trials.tried[::2] == [range(1592, 1608), range(1584, 1616)]


@pytest.mark.parametrize("more_s", [-0.5, 0.0, 0.5])
def test_blocks_that_do_the_work_of_others_take_no_longer_together(monkeypatch, more_s):
    trials = Trials(monkeypatch, lambda blocks: 9 + more_s * (blocks > 32))
    assert trials.estimate(in_order=True) == wall_time.WallTime(3200, 9.0)


def test_noise_is_not_taken_for_a_queue_where_nothing_is_atomic(monkeypatch):
    trials = Trials(monkeypatch, lambda blocks: 9 + 0.5 * (blocks > 16))
    assert trials.estimate().seconds == pytest.approx(9 + 0.5 / 16 * 3184)


def test_a_limit_in_the_second_trial_says_that_it_takes_longer(monkeypatch):
    trials = Trials(monkeypatch, lambda blocks: blocks, lambda blocks: 10**9 * (blocks > 16))
    assert trials.estimate() == wall_time.WallTime(3200, pytest.approx(3200), is_least=True)


def test_clusters_of_several_rows_count_as_often_as_they_are_executed(monkeypatch):
    # 256 x 256 blocks, eight of a column together
    def cluster_of(block):
        return block // 256 // 8 * 256 + block % 256

    trials = Trials(monkeypatch, lambda clusters: 0.1 * clusters)
    trials.size_of = lambda blocks: len(set(map(cluster_of, blocks)))
    found = trials.estimate(256 * 256, cluster=8, cluster_of=cluster_of)
    assert found == wall_time.WallTime(256 * 256, pytest.approx(0.1 * 8192))


def test_blocks_beyond_a_limit_are_tried_in_fewer_turns(monkeypatch):
    trials = Trials(monkeypatch, lambda blocks: 0.001 * blocks, lambda blocks: 2 * 10**6 * blocks)
    assert trials.estimate() == wall_time.WallTime(3200, pytest.approx(3.2))
    assert trials.tried[::2] == [range(1592, 1608), range(1598, 1602)]


def test_blocks_beyond_every_limit_take_longer_than_the_last_trial(monkeypatch):
    trials = Trials(monkeypatch, lambda blocks: 0.5 * blocks, lambda blocks: 10**9)
    assert trials.estimate() == wall_time.WallTime(3200, 2.0, is_least=True)


def test_of_few_long_blocks_one_is_tried_for_each_worker(monkeypatch):
    # with 4 workers and 40 blocks, a turn is more than the largest fraction that a trial executes
    trials = Trials(monkeypatch, lambda blocks: 0.5 * blocks, lambda blocks: 2 * 10**7 * blocks)
    trials.seconds_of = lambda blocks: 0.1 if blocks == 40 else 0.5 * blocks  # up to the limit
    assert trials.estimate(40) == wall_time.WallTime(40, pytest.approx(20))
    assert trials.tried[::2] == [range(40), range(18, 22), range(16, 24)]


def test_few_blocks_beyond_every_limit_take_longer_than_the_last_trial(monkeypatch):
    trials = Trials(monkeypatch, lambda blocks: 0.5 * blocks, lambda blocks: 10**9)
    assert trials.estimate(3) == wall_time.WallTime(3, 1.5, is_least=True)
    assert trials.tried[::2] == [range(3), range(3)]


def test_whole_clusters_are_tried(monkeypatch):
    trials = Trials(monkeypatch, lambda blocks: 0.001 * blocks)
    assert trials.estimate(cluster=16) == wall_time.WallTime(3200, pytest.approx(3.2))
    assert trials.tried[0] == range(1568, 1632)


def test_all_blocks_that_wait_are_tried_first(monkeypatch):
    trials = Trials(monkeypatch, lambda blocks: 0.001 * blocks)
    assert trials.estimate(waits=True) == wall_time.WallTime(3200, pytest.approx(3.2))
    assert trials.tried == [range(3200), "restored"]


@pytest.mark.parametrize("fault", [None, DEADLOCK])
def test_then_the_first_ones_until_they_wait_for_later_ones(monkeypatch, fault):
    trials = Trials(monkeypatch, lambda blocks: blocks, lambda blocks: 10**5 * blocks, fault)
    found = trials.estimate(waits=True)
    assert found == wall_time.WallTime(3200, pytest.approx(3200), is_least=fault == DEADLOCK)
    assert trials.tried[::2] == [range(3200), range(32), range(64)]


def test_a_few_blocks_are_all_tried(monkeypatch):
    trials = Trials(monkeypatch, lambda blocks: 0.1 * blocks)
    assert trials.estimate(31) == wall_time.WallTime(31, pytest.approx(3.1))
    assert trials.tried[0] == range(31)


def test_too_little_memory_for_a_check_is_said_before_blocks_are_tried(monkeypatch):
    monkeypatch.setattr("toolkit.launch.host_resources.available_bytes", lambda: 1000)
    monkeypatch.setattr(
        "toolkit.execution.sanitizer.run_checked", lambda *_, **__: pytest.fail("executed")
    )
    with pytest.raises(LaunchError, match=r"a check takes up to .* take a smaller launch"):
        launched("add", check, announce=lambda told: None)


def test_a_trial_that_takes_next_to_no_time_is_repeated_with_more_blocks(monkeypatch):
    trials = Trials(monkeypatch, lambda blocks: 0.003 + 1e-5 * blocks)  # 3 ms for the threads
    found = trials.estimate(10_000_000)
    assert found.seconds == pytest.approx(100, rel=0.01)
    assert list(map(len, trials.tried[::2])) == [128, 1024, 8192, 16384]
