"""Times by the burst and the sustained protocol, on a made-up GPU and its clock."""

from types import SimpleNamespace

import pytest

from benchmarks import protocols
from benchmarks.protocols import IDLE_S, CallQueue, burst_s, late_mean_s, sustained_s


class Clock:
    """A clock that only batches advance."""

    def __init__(self, *batches_s):
        self.now_s, self.left_s = 100.0, list(batches_s)

    def perf_counter(self):
        return self.now_s

    def batch(self):
        self.now_s += self.left_s.pop(0)


@pytest.mark.parametrize(
    ("batches_s", "mean_s", "left"),
    [
        ([0.25, 0.25, 0.25, 0.125, 0.125, 9], 1 / 6, 1),  # from 0.5 to 1 s
        ([8, 2, 4, 9], 3, 1),  # longer than the run: two more than the one that ends the start
        ([0.75, 2, 4, 9], 3, 1),
    ],
)
def test_the_mean_is_of_late_batches_and_at_least_of_two(monkeypatch, batches_s, mean_s, left):
    clock = Clock(*batches_s)
    monkeypatch.setattr(protocols, "time", clock)
    assert late_mean_s(clock.batch, 1.0) == pytest.approx(mean_s)
    assert len(clock.left_s) == left


class Gpu:
    """A GPU that runs queued calls while nothing holds it, slower as it gets warm."""

    def __init__(self, call_s, slower_from_s=None, slower_s=None):
        self.now_s, self.gpu_s, self.slept_s = 0.0, 0.0, []
        self.call_s, self.slower_from_s, self.slower_s = call_s, slower_from_s, slower_s
        self.stream = CallQueue(
            event=self.event,
            hold=lambda: self.run(0.002),
            synchronize=self.synchronize,
            milliseconds=lambda begin, end: 1e3 * (end.at_s - begin.at_s),
        )

    def event(self):
        made = SimpleNamespace(at_s=None)
        made.record = lambda: setattr(made, "at_s", self.gpu_s)
        return made

    def run(self, seconds):
        self.gpu_s = max(self.gpu_s, self.now_s) + seconds

    def call(self):
        is_slow = self.slower_from_s is not None and self.gpu_s > self.slower_from_s
        self.run(self.slower_s if is_slow else self.call_s)

    def synchronize(self):
        self.now_s = max(self.now_s, self.gpu_s)

    def perf_counter(self):
        return self.now_s

    def sleep(self, seconds):
        self.slept_s.append(seconds)
        self.now_s += seconds


def test_a_burst_is_the_median_of_calls_back_to_back_after_an_idle_second(monkeypatch):
    gpu = Gpu(0.001)
    monkeypatch.setattr(protocols, "time", gpu)
    assert burst_s(gpu.call, gpu.stream) == pytest.approx(0.001)
    assert gpu.slept_s == [IDLE_S]
    # one call before, the idle second, the kernel that waits, nine calls
    assert gpu.now_s == pytest.approx(0.001 + IDLE_S + 0.002 + 9 * 0.001)


def test_sustained_is_the_time_after_the_clock_has_fallen(monkeypatch):
    gpu = Gpu(0.001, slower_from_s=IDLE_S + 0.3, slower_s=0.0015)  # 0.3 s after the idle second
    monkeypatch.setattr(protocols, "time", gpu)
    assert sustained_s(gpu.call, gpu.stream, 1.2) == pytest.approx(0.0015)
