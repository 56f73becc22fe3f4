"""Threads with native code end before the memory that they use is given back."""

import time
from threading import Event, Thread

import pytest

from analysis.native_threads import NativeThreads


def until(stop, ended):
    """A job that goes on until it is told to end, and then a little longer."""

    def job():
        assert stop.wait(10)
        time.sleep(0.05)
        ended.append(True)

    return job


def test_results_and_errors_reach_their_futures():
    with NativeThreads(2, lambda: None) as threads:
        right, wrong = threads.submit(lambda: 7), threads.submit(lambda: 1 // 0)
        assert right.result() == 7
        with pytest.raises(ZeroDivisionError):
            wrong.result()


def test_jobs_that_nobody_asked_for_are_done_where_nothing_went_wrong():
    ended = []
    with NativeThreads(1, lambda: None) as threads:
        for number in range(3):
            threads.submit(lambda number=number: ended.append(number))
    assert ended == [0, 1, 2]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_after_an_error_running_jobs_are_ended_and_others_dropped(error):
    stop, ended, waiting = Event(), [], []

    def leave():
        with NativeThreads(1, stop.set) as threads:
            threads.submit(until(stop, ended))
            waiting.append(threads.submit(until(stop, ended)))
            raise error

    with pytest.raises(error):
        leave()
    assert ended == [True]
    assert waiting[0].cancelled()


def test_a_thread_is_waited_for_whose_start_was_interrupted(monkeypatch):
    stop, ended, start = Event(), [], Thread.start

    def interrupted(thread):
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), NativeThreads(1, stop.set) as threads:
        threads.submit(until(stop, ended))
    assert ended == [True]


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, ValueError])
def test_an_interrupt_while_threads_are_waited_for_is_raised_when_they_are_done(monkeypatch, error):
    ended, stop = [], Event()
    threads = NativeThreads(1, stop.set)
    shutdown, interrupts = threads._pool.shutdown, [KeyboardInterrupt]

    def interrupted_once():
        if interrupts:
            raise interrupts.pop()
        shutdown()

    monkeypatch.setattr(threads._pool, "shutdown", interrupted_once)

    def leave():
        with threads:
            threads.submit(until(stop, ended))
            if error is not None:
                raise error
            stop.set()

    with pytest.raises(KeyboardInterrupt):
        leave()
    assert ended == [True]
