"""What warps executed, put in order: the core runs each warp from barrier to barrier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.cycles import Streams

Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # steps, segments, lines of one worker


def joined(workers: Sequence[Arrays]) -> Streams:
    """The streams of all blocks, in order of block and warp."""
    pieces = []
    for steps, segments, lines in workers:
        ends = np.append(segments["first"][1:], len(steps))
        line_ends = np.append(segments["first_line"][1:], len(lines))
        for segment, end, line_end in zip(segments, ends, line_ends, strict=True):
            if end > segment["first"]:
                pieces.append(
                    (
                        (int(segment["block"]), int(segment["warp"])),
                        steps[int(segment["first"]) : int(end)],
                        lines[int(segment["first_line"]) : int(line_end)],
                    )
                )
    pieces.sort(key=lambda piece: piece[0])  # stable: segments of a warp stay in order
    warps = list(dict.fromkeys(key for key, _, _ in pieces))
    step_counts = dict.fromkeys(warps, 0)
    line_counts = dict.fromkeys(warps, 0)
    for key, steps, lines in pieces:
        step_counts[key] += len(steps)
        line_counts[key] += len(lines)
    blocks = [block for block, _ in warps]
    changes = np.flatnonzero(np.diff(blocks, prepend=-1))
    return Streams(
        steps=np.concatenate([steps for _, steps, _ in pieces]),
        lines=np.concatenate([lines for _, _, lines in pieces]),
        first_step=_starts(list(step_counts.values())),
        first_line=_starts(list(line_counts.values())),
        first_warp=np.append(changes, len(warps)).astype(np.int64),
    )


def _starts(counts: Sequence[int]) -> NDArray[np.uint64]:
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.uint64)
