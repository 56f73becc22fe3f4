"""Streams of executed instructions in order: the core runs each warp from barrier to barrier."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.sm import STEP, Streams
from toolkit.sass.core import binding as core

THREADS = 2  # that copy
MANY_SEGMENTS = 1 << 12  # where warps run side by side: they are joined warp by warp first
UNDONE, UNDONE_LINE = 8, np.uint64(2**64 - 1)  # STEP_UNDONE, LINE_UNDONE of stream_format.h

Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # steps, segments, lines


class Recorded:
    """Stream of the warps of one worker: memory of the core, which is freed with this object."""

    def __init__(self, worker: int, *, is_cut: bool = False) -> None:
        """`is_cut`: steps that there was no room for are left out, and the others are kept."""
        self._is_cut = is_cut
        self._stream: int = core.library().core_take_stream(worker)
        weakref.finalize(self, core.library().core_free_stream, self._stream)

    def arrays(self) -> Arrays | None:
        """Views, valid as long as this object lives; None if part of the stream was lost."""
        stream = core.Stream.from_address(self._stream)
        steps = core.array(stream.steps, stream.count, STEP)
        segments = core.array(stream.segments, stream.segment_count, core.SEGMENT)
        if (stream.lost and not self._is_cut) or steps is None or segments is None:
            return None
        lines = core.array(stream.lines, stream.line_count, np.dtype("u8"))
        return steps, segments, np.zeros(0, dtype="u8") if lines is None else lines


def joined(runs: Sequence[Sequence[Recorded]], *, leaves_late: bool = False) -> Streams | None:
    """The streams of all blocks, run by run, by block and warp; None where some were lost.

    `leaves_late`: without the second half of each window (`BoundLaunch.window`).
    """
    pieces = []
    for number, run in enumerate(runs):
        for worker in run:
            arrays = worker.arrays()
            if arrays is None:
                return None
            if leaves_late or len(arrays[1]) > MANY_SEGMENTS:
                arrays = _by_warp(*arrays, leaves_late=leaves_late)
            pieces += [((number, *of), steps, lines) for of, steps, lines in _segments(*arrays)]
    pieces.sort(key=lambda piece: piece[0])  # stable: segments of a warp stay in order
    warps = list(dict.fromkeys(key for key, _, _ in pieces))
    step_counts = dict.fromkeys(warps, 0)
    line_counts = dict.fromkeys(warps, 0)
    for key, steps, lines in pieces:
        step_counts[key] += len(steps)
        line_counts[key] += len(lines)
    first_of_block = {(run, block): w for w, (run, block, _) in reversed([*enumerate(warps)])}
    return Streams(
        steps=_concatenated([steps for _, steps, _ in pieces]),
        lines=np.concatenate([lines for _, _, lines in pieces]),
        first_step=_starts(list(step_counts.values())),
        first_line=_starts(list(line_counts.values())),
        first_warp=np.array([*sorted(first_of_block.values()), len(warps)], dtype=np.int64),
    )


def without(streams: Streams, instructions: Sequence[int]) -> Streams:
    """Copy without the steps of these instructions, which have no lines."""
    is_kept = ~np.isin(streams.steps["pc"], instructions)
    kept_before = np.concatenate([[0], np.cumsum(is_kept)]).astype(np.uint64)
    return replace(
        streams, steps=streams.steps[is_kept], first_step=kept_before[streams.first_step]
    )


def _by_warp(
    steps: NDArray[Any], segments: NDArray[Any], lines: NDArray[Any], *, leaves_late: bool
) -> Arrays:
    """The same with one segment for each warp, in order of blocks and warps.

    `leaves_late`: without segments in the second half of a window.
    """
    order = np.lexsort((segments["warp"], segments["block"]))  # stable
    if leaves_late:
        order = order[segments["is_late"][order] == 0]
    step_counts = np.diff(segments["first"], append=np.uint64(len(steps)))[order].astype(np.int64)
    line_counts = np.diff(segments["first_line"], append=np.uint64(len(lines)))[order]
    line_counts = line_counts.astype(np.int64)
    ordered = segments[order]
    found = _gathered(steps.view(np.uint64), ordered["first"], step_counts).view(steps.dtype)
    of_lines = _gathered(lines, ordered["first_line"], line_counts)
    ordered["first"] = np.cumsum(step_counts) - step_counts
    ordered["first_line"] = np.cumsum(line_counts) - line_counts
    is_new = np.ones(len(ordered), dtype=np.bool_)
    for name in ("block", "warp"):
        is_new[1:] &= ordered[name][1:] == ordered[name][:-1]
    is_new[1:] = ~is_new[1:]
    return found, ordered[is_new], of_lines


def _gathered(values: NDArray[Any], first: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[Any]:
    """`counts` values from each of `first` on, one run after the other."""
    before = np.cumsum(counts) - counts
    found: NDArray[Any] = values[
        np.repeat(first.astype(np.int64) - before, counts) + np.arange(counts.sum())
    ]
    return found


def _segments(
    steps: NDArray[Any], segments: NDArray[Any], lines: NDArray[Any]
) -> Iterator[tuple[tuple[int, int], NDArray[Any], NDArray[Any]]]:
    """The block and warp of each run of steps, these, and their lines."""
    ends = np.append(segments["first"][1:], len(steps))
    line_ends = np.append(segments["first_line"][1:], len(lines))
    for segment, end, line_end in zip(segments, ends, line_ends, strict=True):
        first, first_line = int(segment["first"]), int(segment["first_line"])
        if end > first:
            of = int(segment["block"]), int(segment["warp"])
            yield of, *_done(steps[first : int(end)], lines[first_line : int(line_end)])


def _done(steps: NDArray[Any], lines: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Without the steps of passes through a loop that waited in vain."""
    is_done = (steps["flags"] & UNDONE) == 0
    return (steps, lines) if is_done.all() else (steps[is_done], lines[lines != UNDONE_LINE])


def _concatenated(records: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenation of arrays, copied as bytes: NumPy copies records field by field.

    Two threads copy, because the new memory has not been touched yet.
    """
    pieces = [part.view(np.uint8) for part in records]
    ends = np.cumsum([len(piece) for piece in pieces])
    found = np.empty(ends[-1], dtype=np.uint8)

    def copy(numbers: NDArray[Any]) -> None:
        for n in numbers:
            found[ends[n] - len(pieces[n]) : ends[n]] = pieces[n]

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(copy, np.array_split(np.arange(len(pieces)), THREADS)))
    return found.view(records[0].dtype)


def _starts(counts: Sequence[int]) -> NDArray[np.uint64]:
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.uint64)
