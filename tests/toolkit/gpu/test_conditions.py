"""The state of a GPU between rounds, with a clock and a GPU that are made up."""

import pytest

from analysis.records.profile import GpuState, Moment
from toolkit.gpu.conditions import APART_S, Observer


class Gpu:
    """One degree warmer at every question; a question takes `answer_s`."""

    def __init__(self, answer_s=0.0):
        self.now_s, self.asked, self.answer_s = 100.0, 0, answer_s

    def state(self):
        self.asked += 1
        self.now_s += self.answer_s
        return GpuState(temperature_c=40.0 + self.asked)

    def clock(self):
        return self.now_s


def test_states_stand_at_their_time_and_round():
    gpu = Gpu()
    observer = Observer(gpu.state, gpu.clock)
    observer.after_round(0)
    gpu.now_s += 2 * APART_S
    observer.after_round(1)
    first, second = observer.moments
    assert first == Moment(time_s=0.0, rounds=0, state=GpuState(temperature_c=41.0))
    assert (second.rounds, second.state.temperature_c) == (1, 42.0)
    assert second.time_s == pytest.approx(2 * APART_S)


def test_short_rounds_share_a_question():
    gpu = Gpu()
    observer = Observer(gpu.state, gpu.clock)
    for done in range(101):
        observer.after_round(done)
        gpu.now_s += APART_S / 7.9
    assert gpu.asked == 13  # 0, 8, 16 ... 96
    assert [one.rounds for one in observer.moments] == list(range(0, 101, 8))


def test_slow_answers_are_no_reason_to_ask_again():
    gpu = Gpu(answer_s=APART_S / 2)
    observer = Observer(gpu.state, gpu.clock)
    for done in range(4):
        observer.after_round(done)
        gpu.now_s += APART_S / 4
    assert [one.rounds for one in observer.moments] == [0, 2]


def test_a_gpu_that_tells_nothing_leaves_no_moments():
    observer = Observer(GpuState)
    observer.after_round(0)
    assert observer.moments == ()
