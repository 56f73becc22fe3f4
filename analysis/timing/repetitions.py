"""Shorter replays: streams with fewer repetitions of the loop in which warps spend their time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.sm import Kind, Streams

# A replay of more warp instructions than the first number is shortened: its loop has fewer
# repetitions, so that about the second number is left, and at least the third one of repetitions.
SHORTENED, SHORTENED_FOR_GAP = (1 << 22, 1 << 21, 64), (1 << 20, 1 << 18, 32)
STEADY = 0.05  # relative difference of the clocks of a repetition, up to which a loop is steady


class _Loop(NamedTuple):
    """A loop of a warp: its first step and line, those of one repetition, and the repetitions."""

    step: int
    length: int
    line: int
    lines: int
    times: int


class UnsteadyError(Exception):
    """Repetitions of a loop take different times."""


def shortened(
    code: NDArray[Any],
    samples: Mapping[int, Streams],
    blocks: int,
    most: int,
    wanted: int,
    least: int,
) -> tuple[dict[int, Streams], int] | None:
    """Samples with three numbers of repetitions of the loop, and the number that it has.

    None if a run of `blocks` blocks is not long, is extrapolated along K already, or if the warps
    have no common loop. Barriers in shared memory count their phases, so that none may be left out.
    """
    (streams, *more) = samples.values()
    executed = streams.executed / streams.blocks * blocks
    if more or executed <= most or (code["kind"] > Kind.EXIT).any():
        return None
    loops = _loops(streams, 2 * least)
    if not loops:
        return None
    k = loops[0].times
    high = max(least, 4 * round(k * wanted / executed / 4))
    if not _moves_evenly(streams, loops, high):
        return None
    ks = high // 4, high // 2, high
    return {number: _with_repetitions(streams, loops, number) for number in ks}, k


def check_steady(numbers: Sequence[int], clocks: Sequence[float]) -> None:
    """Raise UnsteadyError if three numbers of repetitions show that these take different times."""
    if len(numbers) > 2:
        first, second = np.diff(clocks) / np.diff(numbers)
        if abs(first / second - 1) > STEADY:
            raise UnsteadyError


def _loops(streams: Streams, least: int) -> list[_Loop]:
    """The loop of each warp that repeats the same steps at least `least` times, for all as often.

    Clocks of requests may differ. Of nested loops, it is the outermost one. Empty if a warp has no
    such loop.
    """
    first = streams.first_step.astype(np.int64)
    lines = streams.steps["lines"]
    warps = zip(first, streams.first_line, np.split(streams.steps, first[1:]), strict=True)
    found: list[_Loop] = []
    for begin, line, steps in warps:
        loop = _loop(steps, least)
        if loop is None or (found and loop[2] != found[0].times):
            return []
        at, length, times = begin + loop[0], *loop[1:]
        of_one = lines[at : at + length].sum()
        found.append(_Loop(at, length, line + lines[begin:at].sum(), of_one, times))
    return found


def _loop(steps: NDArray[np.void], least: int) -> tuple[int, int, int] | None:
    """The loop of one warp: its first step, the steps of a repetition, and the repetitions."""
    alike = steps.copy()
    alike["clocks"] = 0
    values = alike.view(np.uint64)
    counts = np.bincount(steps["pc"])
    for pc in sorted(np.flatnonzero(counts > least), key=counts.__getitem__):
        at = np.flatnonzero(steps["pc"] == pc)
        first, length, end = at[0], at[1] - at[0], at[-1]
        is_regular = (np.diff(at) == length).all()
        if is_regular and (values[first + length : end] == values[first : end - length]).all():
            return first, length, len(at) - 1
    return None


def _moves_evenly(streams: Streams, loops: Sequence[_Loop], number: int) -> bool:
    """True if lines move as far in the first repetitions as in others, to within a line each."""
    numbers, moved = streams.numbers.astype(np.int64), np.zeros(loops[0].times - 1)
    for one in loops:
        lines = numbers[one.line : one.line + one.times * one.lines].reshape(one.times, -1)
        moved += abs(np.diff(lines, axis=0)).sum(axis=1)
    expected = number * moved.mean()
    uneven = abs(moved[:number].sum() - expected) - sum(one.lines for one in loops)
    return bool(uneven <= STEADY * expected)


def _with_repetitions(streams: Streams, loops: Sequence[_Loop], number: int) -> Streams:
    """Copy in which each loop ends after `number` repetitions."""
    steps, lines = (np.ones(len(x), dtype=bool) for x in (streams.steps, streams.lines))
    for one in loops:
        steps[one.step + number * one.length : one.step + one.times * one.length] = False
        lines[one.line + number * one.lines : one.line + one.times * one.lines] = False
    of_warps = [(0, 0), *((one.length, one.lines) for one in loops[:-1])]
    gone = np.cumsum(of_warps, axis=0, dtype=np.uint64) * np.uint64(loops[0].times - number)
    return replace(
        streams,
        steps=streams.steps[steps],
        lines=streams.lines[lines],
        first_step=streams.first_step - gone[:, 0],
        first_line=streams.first_line - gone[:, 1],
    )
