"""Shorter replays: streams with fewer repetitions of the loop in which warps spend their time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.sm import COMMON, Kind, Streams
from analysis.timing.samples import STEADY, Repetitions, Sample, Whole

# Limits of `shortened`: `most` and `wanted` warp instructions, and the `least` repetitions.
SHORTENED = (1 << 22, 1 << 21, 64)
SHORTENED_FOR_COSTS = (1 << 18, 1 << 17, 16)
# Barriers in shared memory count their phases, and bulk copies arrive at them.
KINDS_WITH_PHASES = tuple(kind for kind in Kind if Kind.EXIT < kind <= Kind.BULK_GROUP)


class _Loop(NamedTuple):
    """A loop of a warp, as a part of its stream."""

    step: int  # index of the first step
    length: int  # steps of one repetition
    line: int  # index of the first line
    lines: int  # lines of one repetition
    times: int  # number of repetitions


def shortened(
    code: NDArray[Any],
    sample: Sample,
    blocks: int,
    most: int,
    wanted: int,
    least: int,
) -> Repetitions | None:
    """Sample of the same blocks whose loop has fewer repetitions, or None.

    A run of `blocks` blocks is shortened if it executes more than `most` warp instructions. The
    shorter run executes about `wanted`, and at least `least` repetitions. None if the run is not
    that long or is shortened already, if the warps have no common loop, or if the code has
    mbarriers or bulk copies: mbarriers count their phases, so that no phase may be left out.
    """
    if not isinstance(sample, Whole):
        return None
    streams = sample.streams
    executed = streams.executed / streams.blocks * blocks
    if executed <= most or np.isin(code["kind"], KINDS_WITH_PHASES).any():
        return None
    loops = _loops(streams, 2 * least)
    if not loops:
        return None
    times = loops[0].times
    high = max(least, 4 * round(times * wanted / executed / 4))
    if not _go_on_alike(streams, loops, high):
        return None
    at = {n: _with_repetitions(streams, loops, n) for n in (high // 4, high // 2, high)}
    return Repetitions(at=at, of=times)


def _loops(streams: Streams, least: int) -> list[_Loop]:
    """Loop of each warp, or an empty list.

    Empty unless all warps repeat the same loop equally often, at least `least` times.
    """
    starts = streams.first_step.tolist()
    found: list[_Loop] = []
    same = set()
    for start, line, steps in zip(
        starts, streams.first_line.tolist(), np.split(streams.steps, starts[1:]), strict=True
    ):
        loop = _loop(steps, least)
        if loop is None:
            return []
        first, length, times = loop
        before, of_one = (
            int(part.sum()) for part in np.split(steps["lines"][: first + length], [first])
        )
        found.append(_Loop(start + first, length, line + before, of_one, times))
        same.add((steps["pc"][first], times))
    return found if len(same) == 1 else []


def _loop(steps: NDArray[np.void], least: int) -> tuple[int, int, int] | None:
    """Loop in which a warp executes more than half of its steps, or None.

    Index of its first step, steps of one repetition, and number of repetitions. All repetitions
    have the same steps; only the clocks of requests may differ.
    """
    alike = steps.copy()
    alike["clocks"] = 0
    values = alike.view(np.uint64)
    counts = np.bincount(steps["pc"])
    for count in np.unique(counts[counts > least]):
        pc = np.flatnonzero(counts == count)[-1]  # an instruction that is executed `count` times
        at = np.flatnonzero(steps["pc"] == pc)
        first, length, end = at[0], at[1] - at[0], at[-1]
        is_regular = (np.diff(at) == length).all() and 2 * (end - first) > len(steps)
        if is_regular and (values[first + length : end] == values[first : end - length]).all():
            return int(first), int(length), len(at) - 1
    return None


def _go_on_alike(streams: Streams, loops: Sequence[_Loop], number: int) -> bool:
    """True if the repetitions from `number` / 2 to `number` behave like all later ones.

    The comparison covers the clocks of requests, and the number of lines that a warp accesses for
    the first time, to within one per access. Lines that all blocks access must be the same in each
    repetition, because the number of such lines determines whether later blocks find them in L1.
    """
    of_each = np.zeros((2, loops[0].times))
    for one in loops:
        lines = streams.lines[one.line : one.line + one.times * one.lines].reshape(one.times, -1)
        if ((lines & COMMON > 0) & (lines != lines[0])).any():
            return False
        _, new = np.unique(lines, return_index=True)
        clocks = streams.steps["clocks"][one.step : one.step + one.times * one.length]
        of_each += (
            clocks.reshape(one.times, -1).sum(axis=1),
            np.bincount(new // max(1, one.lines), minlength=one.times),
        )
    half = number // 2
    kept, all_later = (of_each[:, half:end].mean(axis=1) for end in (number, None))
    slack = sum(one.lines for one in loops) / half
    return np.allclose(kept, all_later, rtol=STEADY, atol=slack)


def _with_repetitions(streams: Streams, loops: Sequence[_Loop], number: int) -> Streams:
    """Copy of the streams in which each loop ends after `number` repetitions."""
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
