"""Mean times of batches that run one behind the other, by a made-up clock."""

import pytest

from benchmarks import sustained


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
    monkeypatch.setattr(sustained, "time", clock)
    assert sustained.late_mean_s(clock.batch, 1.0, 0.5) == pytest.approx(mean_s)
    assert len(clock.left_s) == left
