"""Accesses of all blocks to global memory, assumed from those of a few blocks.

For launches whose accesses depend on data, where the execution of all blocks takes too long. A
block that was not executed gets the accesses of the nearest executed block, moved within each
array:

- Lines that several executed blocks access stay where they are, such as those of a table.
- If the executed blocks access places that lie on a line over their indices, the others do so too.
- If a block accesses places everywhere in an array, and the first place moves on by as many lines
  from each block to the next, around the array, so do the others, as in a grid-stride loop.
- Otherwise they are taken as random.

Traffic from these accesses is an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.execution.accesses import MOST_ACCESSES
from toolkit.execution.distinct import order_of
from toolkit.execution.executed import LOST, SECTORS_OF_LINE, ExecutedBlock, NoPlanError
from toolkit.execution.sampling import nearest
from toolkit.sass.accesses import Below, RecordedAccesses, is_recorded
from toolkit.sass.core.binding import ACCESS

COMMON = 0.25  # fraction of the executed blocks that access a line that stays where it is
# A block is everywhere if half of its lines span more than this fraction of what all access.
WIDE = 0.25
FEWEST_NEIGHBOURS = 3  # pairs of executed blocks, one behind the other, that tell a step
ON_A_LINE = 0.05  # median distance of blocks from a line, as a fraction of what all of them access


def assumed_accesses(
    samples: Mapping[int, ExecutedBlock], blocks: int, starts: Sequence[int]
) -> RecordedAccesses:
    """Accesses of `blocks` blocks, from those of the executed `samples` by linear index.

    `starts`: the first line of each array, in order. Raises NoPlanError if there was no
    room for all lines of blocks that access others from block to block.
    """
    known = np.array(sorted(samples))
    recorded_spread = max(one.spread for one in samples.values())
    of_samples = [_by_line(samples[block], recorded_spread) for block in known.tolist()]
    arrays = [np.searchsorted(starts, rows["line"], "right") - 1 for rows in of_samples]
    common = _common_lines(of_samples)
    moves = {
        array: _Move.of(array, known, of_samples, arrays, common)
        for array in np.unique(np.concatenate(arrays)).tolist()
    }
    has_dropped = any(one.dropped for one in samples.values())
    if has_dropped and any(move.step != 0 for move in moves.values()):
        raise NoPlanError(LOST)  # lines that were chosen by their addresses are others when moved
    place = np.searchsorted(known, nearest(known, np.arange(blocks)))
    represented = np.bincount(place, minlength=len(known)).tolist()
    visited = sum(times * len(rows) for times, rows in zip(represented, of_samples, strict=True))
    spread = max(0, int(np.ceil(np.log2(max(1, visited) / MOST_ACCESSES))))
    is_random = any(move.step is None for move in moves.values())
    around = _random(blocks) if is_random else np.zeros(blocks)
    found = []
    for k, (rows, array) in enumerate(zip(of_samples, arrays, strict=True)):
        like = np.flatnonzero(place == k)
        is_common = _is_among(rows["line"], common)
        parts = [_unmoved(rows["line"], np.flatnonzero(is_common), len(like), spread)]
        for number in np.unique(array[~is_common]).tolist():
            own = np.flatnonzero((array == number) & ~is_common)
            by = moves[number].by(like - known[k], around[like])
            parts.append(_moved(rows["line"], own, moves[number], by, spread))
        of_block, row, line = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((row, of_block))
        moved = rows[row[order]]
        moved["block"], moved["line"] = like[of_block[order]], line[order]
        found.append(moved)
    every = np.concatenate(found)
    every = every[np.argsort(every["block"], kind="stable")]
    below = Below(read=0, written_by_warps=0)
    for k, times in enumerate(represented):
        below += samples[int(known[k])].below.times(times)
    return RecordedAccesses(rows=every, spread=recorded_spread + spread, below=below)


class _Move:
    """Movement of the lines of an array from block to block."""

    def __init__(self, first: int, last: int, step: float | None) -> None:
        self.first, self.size, self.step = first, last - first + 1, step

    @classmethod
    def of(
        cls,
        array: int,
        known: NDArray[np.int64],
        of_samples: Sequence[NDArray[Any]],
        arrays: Sequence[NDArray[np.int64]],
        common: NDArray[np.uint64],
    ) -> _Move:
        lines = [rows["line"][own == array] for rows, own in zip(of_samples, arrays, strict=True)]
        lines = [one[~_is_among(one, common)] for one in lines]
        has_any = np.array([len(one) > 0 for one in lines])
        if not has_any.any():
            return cls(0, 0, 0.0)
        every = np.concatenate(lines)
        first, last = int(every.min()), int(every.max())
        spans = [float(np.subtract(*np.percentile(one, (75, 25)))) for one in lines if len(one)]
        if np.median(spans) > WIDE * (last - first):
            at = np.array([int(one[0]) for one in lines if len(one)])
            return cls(first, last, _step_around(known[has_any], at, last - first + 1))
        at = np.array([float(np.median(one)) for one in lines if len(one)])
        return cls(first, last, _step(known[has_any].astype(np.float64), at, last - first))

    def by(self, apart: NDArray[np.int64], around: NDArray[np.float64]) -> NDArray[np.int64]:
        """Lines by which blocks move that are `apart` blocks behind the executed one, from 0 on.

        `around`: how far random lines are around the array, as a fraction of it.
        """
        by = self.step * apart if self.step is not None else around * self.size
        whole: NDArray[np.int64] = np.where(apart, np.rint(by), 0).astype(np.int64) % self.size
        return whole


# Of accesses: the number of the block, the row of the executed block's access, and the line.
_Placed = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]


def _unmoved(
    lines: NDArray[np.uint64], own: NDArray[np.int64], blocks: int, spread: int
) -> _Placed:
    """The rows `own` in each of `blocks` blocks, with one of 2^spread of their lines."""
    own = own[hashed(lines[own]) <= _last_chosen(spread)]
    row = np.tile(own, blocks)
    return np.repeat(np.arange(blocks), len(own)), row, lines[row]


def _moved(
    lines: NDArray[np.uint64],
    own: NDArray[np.int64],
    move: _Move,
    by: NDArray[np.int64],
    spread: int,
) -> _Placed:
    """The rows `own` in blocks that move `by` lines around an array, with one of 2^spread lines.

    The hash of a moved line is the sum of those of the line and of the move. So the chosen lines of
    a block follow each other in the order of hashes.
    """
    order = own[np.argsort(hashed(lines[own]), kind="stable")]
    keys, parts = hashed(lines[order]), []
    for shift, goes_around in ((by, False), (by - move.size, True)):
        first = np.uint64(0) - hashed(shift.astype(np.uint64))  # modulo 2^64, as all of these
        last = first + _last_chosen(spread)
        begins, ends = np.searchsorted(keys, first), np.searchsorted(keys, last, "right")
        counts = np.where(last >= first, ends - begins, len(keys) + ends - begins)
        of_block = np.repeat(np.arange(len(by)), counts)
        within = np.arange(len(of_block)) - np.repeat(np.cumsum(counts) - counts, counts)
        row = order[(begins[of_block] + within) % max(1, len(order))]
        place = lines[row].astype(np.int64) + shift[of_block]
        is_inside = place >= move.first if goes_around else place < move.first + move.size
        parts.append((of_block[is_inside], row[is_inside], place[is_inside].astype(np.uint64)))
    of_block, row, line = (np.concatenate(column) for column in zip(*parts, strict=True))
    return of_block, row, line


def _step(blocks: NDArray[np.float64], at: NDArray[np.float64], size: int) -> float | None:
    """Lines by which places move from block to block, None if they do not lie on a line."""
    if len(at) < 3 or not size:
        return 0.0 if not size else None
    apart, moved = blocks[None, :] - blocks[:, None], at[None, :] - at[:, None]
    step = float(np.median(moved[apart > 0] / apart[apart > 0]))
    distance = np.abs(at - step * blocks - np.median(at - step * blocks))
    return step if np.median(distance) <= ON_A_LINE * size else None


def _step_around(blocks: NDArray[np.int64], at: NDArray[np.int64], size: int) -> float | None:
    """Lines by which places move on around `size` lines from block to block, None if they do not.

    It is the most frequent one of neighbours; the others have to agree with it.
    """
    apart, moved = np.diff(blocks), np.diff(at)
    steps, times = np.unique(moved[apart == 1] % size, return_counts=True)
    if times.sum() < FEWEST_NEIGHBOURS:
        return None
    step = int(steps[times.argmax()])
    left = (moved - step * apart) % size
    distance = np.minimum(left, size - left)
    return float(step) if np.median(distance) <= ON_A_LINE * size else None


def _random(blocks: int) -> NDArray[np.float64]:
    """A number from 0 to 1 for each block, the same in every launch."""
    return np.random.default_rng(0).random(blocks)


def _by_line(sample: ExecutedBlock, spread: int) -> NDArray[Any]:
    """The accesses of an executed block, one for all sectors of a line in a step of a warp.

    Of one of 2^spread lines, no fewer than `sample` has.
    """
    line, sector = np.divmod(sample.sectors, SECTORS_OF_LINE)
    columns = {name: sample.rows[name] for name in ("step", "warp")}
    columns |= {"line": line.astype(np.uint64), "kind": sample.rows["kind"]}
    order = order_of(list(columns.values()))
    columns = {name: column[order] for name, column in columns.items()}
    is_first = np.zeros(len(order), dtype=np.bool_)
    for column in columns.values():
        is_first |= _is_new(column)
    begins = np.flatnonzero(is_first)
    rows = np.zeros(len(begins), dtype=ACCESS)
    for name, column in columns.items():
        rows[name] = column[begins]
    if len(begins):
        rows["mask"] = np.bitwise_or.reduceat((1 << sector[order]).astype(np.uint8), begins)
    return rows[is_recorded(rows["line"], spread)]


def _common_lines(of_samples: Sequence[NDArray[Any]]) -> NDArray[np.uint64]:
    """Lines that at least COMMON of the executed blocks access, and two of them, in order."""
    every = np.sort(np.concatenate([_in_order(rows["line"]) for rows in of_samples]))
    begins = np.flatnonzero(_is_new(every))
    times = np.diff(begins, append=len(every))
    common: NDArray[np.uint64] = every[begins[times >= max(2, COMMON * len(of_samples))]]
    return common


def _in_order(lines: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each of the lines once, in order. numpy.unique takes ten times as long for many lines."""
    ordered = np.sort(lines)
    found: NDArray[np.uint64] = ordered[_is_new(ordered)]
    return found


def _is_new(ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """True for each entry that differs from the one before it, and for the first."""
    found = np.ones(len(ordered), dtype=np.bool_)
    found[1:] = ordered[1:] != ordered[:-1]
    return found


def _is_among(lines: NDArray[np.uint64], ordered: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """True for each of the lines that is one of `ordered`, which are in order."""
    if not len(ordered):
        return np.zeros(len(lines), dtype=np.bool_)
    place = np.minimum(np.searchsorted(ordered, lines), len(ordered) - 1)
    found: NDArray[np.bool_] = ordered[place] == lines
    return found


def hashed(lines: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hashes of lines, modulo 2^64. That of a sum is the sum of the hashes."""
    return lines * np.uint64(0x9E3779B97F4A7C15)


def _last_chosen(spread: int) -> np.uint64:
    """The largest hash of the chosen lines, one of 2^spread."""
    return np.uint64((1 << 64 - spread) - 1)
