"""Progress that `simulate` and `check` show while they execute blocks."""

import re
from io import StringIO

import pytest
from rich.console import Console

from toolkit.cli import progress as view
from toolkit.execution.wall_time import WallTime


def said_at(
    monkeypatch,
    capsys,
    steps,
    of,
):
    """Progress text after the given numbers of blocks at the given seconds."""
    with view.SimulationProgress("k.cu") as progress:
        for now_s, done in steps:
            monkeypatch.setattr(view.time, "monotonic", lambda now_s=now_s: now_s)
            progress.advance(done, of)
        monkeypatch.undo()
    return capsys.readouterr().err


def test_a_long_simulation_is_announced_once(monkeypatch, capsys):
    steps = [(100.0, 50), (103.5, 100), (107.0, 150)]  # 50 blocks in 3.5 s
    said = said_at(monkeypatch, capsys, steps, of=10_100)
    assert said.count("\n") == 1
    assert said.startswith("10,000 of 10,100 blocks are left, about 12 min: ")
    assert "--blocks 100" in said


def test_a_sample_is_suggested_only_where_more_blocks_are_executed(monkeypatch, capsys):
    for of, remedy in ((100, "a smaller grid or smaller inputs\n"), (101, "of the blocks\n")):
        said = said_at(monkeypatch, capsys, [(100.0, 1), (103.5, 2)], of=of)
        assert said.startswith(f"{of - 2} of {of} blocks are left, about 6 min: ")
        assert said.endswith(remedy)


@pytest.mark.parametrize(
    ("seconds", "is_least", "told"),
    [
        (59.0, False, ["10,049 of 10,100 blocks are left, about 670 min: "]),  # more than it seemed
        (150.0, False, ["10,100 blocks take about 2 min: "]),
        (7200.0, True, ["10,100 blocks take at least 120 min: "]),
        (0.2, True, ["the remaining time is unknown until ", "10,049 of 10,100 blocks are left, "]),
    ],
)
def test_more_than_a_minute_is_announced_before_all_blocks(
    monkeypatch, capsys, seconds, is_least, told
):
    with view.SimulationProgress("k.cu") as progress:
        progress.announce(WallTime(10_100, seconds, is_least=is_least))
        for now_s, done in [(100.0, 50), (104.0, 51)]:  # what is said already is not said again
            monkeypatch.setattr(view.time, "monotonic", lambda now_s=now_s: now_s)
            progress.advance(done, 10_100)
        monkeypatch.undo()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == len(told)
    assert all(one.startswith(begin) for one, begin in zip(said, told, strict=True))


def test_a_launch_of_long_blocks_says_that_few_of_them_are_executed(capsys):
    with view.SimulationProgress("k.cu") as progress:
        progress.announce(WallTime(4, 1.0, is_least=True, is_of_some=True))
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("blocks take long: a few are executed, and counters are estimates")


@pytest.mark.parametrize(
    "steps",
    [
        [(100.0, 50), (102.9, 51)],  # too early to say
        [(100.0, 50), (104.0, 50)],  # nothing was done
        [(100.0, 50), (103.5, 1000)],  # done soon
    ],
)
def test_nothing_is_said_of_others(
    monkeypatch,
    capsys,
    steps,
):
    assert said_at(monkeypatch, capsys, steps, of=10_100) == ""


@pytest.mark.parametrize(
    ("needed", "is_said"),
    [(6_100_000_000, True), (5_900_000_000, False), (12_100_000_000, False)],  # the last is refused
)
def test_more_than_half_of_the_memory_is_announced_before_the_launch(
    monkeypatch, capsys, needed, is_said
):
    monkeypatch.setattr(view, "available_bytes", lambda: 12_000_000_000)
    with view.SimulationProgress("k.cu", needed):
        said = capsys.readouterr().err
    assert ("need about 6.1 GB of the 12.0 GB that are free: " in said) == is_said


@pytest.mark.parametrize(
    "calls",
    [
        [(101.0, 2, 4), (103.0, 4, 4), (105.0, 2, 32), (107.0, 4, 32)],
        [(101.0, 2, 4), (103.0, 4, 4), (200.0, 1, 4), (204.0, 3, 4)],
    ],
)
def test_blocks_of_another_call_begin_anew(monkeypatch, capsys, calls):
    with view.SimulationProgress("k.cu") as progress:
        for now_s, done, of in calls:
            monkeypatch.setattr(view.time, "monotonic", lambda now_s=now_s: now_s)
            progress.advance(done, of)
        monkeypatch.undo()
    assert capsys.readouterr().err == ""


def test_the_bar_says_how_much_time_is_left(monkeypatch):
    clock = iter(range(100, 1000))
    monkeypatch.setattr(view, "err", Console(file=StringIO(), force_terminal=True, _environ={}))
    with view.SimulationProgress("k.cu") as progress:
        bar = progress._bar
        bar.stop()  # so that only this test asks for the time
        bar.get_time = bar.tasks[0]._get_time = lambda: float(next(clock))
        progress.advance(0, 100)
        assert "left" not in shown(bar)
        for done in (10, 20, 30):
            progress.advance(done, 100)
        assert re.search(r"30/100 blocks 0:\d\d:\d\d 00:\d\d left", shown(bar))


def shown(bar):
    console = Console(width=100, _environ={}, file=StringIO())
    console.print(bar.get_renderable())
    return console.file.getvalue()
