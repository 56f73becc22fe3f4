"""Time that L2 needs for the atomic operations of a launch: the queue of its busiest slice.

A line of memory belongs to one slice of L2. A slice makes the atomic operations of its lines one
after the other, sector by sector. docs/timing.md ("Atomic operations at L2") has the measurements:

- An operation on a sector takes `atomic_part_s`, or `atomic_whole_s` if it covers the sector.
- The sum of a float takes `atomic_sum_s`, in which the next addition to that sector waits, and with
  it all that the slice received later. A request for several sectors of a line hides some of that.
- Warps that access the same lines in the same order wait for the same slices, while others are
  idle. A warp can make `atomic_window` requests before the first of them is done.

Which address bits choose a slice is not known. Runs of two lines alternate between two slices, and
neighbouring KiB have different ones, which was measured; what is further apart is spread evenly.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from analysis.hardware.sm_constants import SmConstants

MOST_WINDOWS = 1 << 12
CROWDED = 1.05  # times the time of the busiest slice, above which a basis says so
# The most that a measured walk took, in times of the busiest slice (docs/timing.md), because warps
# fall out of step.
MOST_CROWDED = 3.0
RUN_LINES, LINES_OF_PAIR = 2, 8  # lines of a run, and of a KiB with two slices
APART = 7  # slices by which a pair moves on after each round of all slices

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class AtomicOperations:
    """Atomic operations of a launch on global memory, or stores, by line: arrays of one length.

    `requests`: of warps. `parts`, `wholes`: operations on a part of a sector and on all of it.
    `additions`: additions of floats to each sector of the line. `first`, `last`: places
    of the first and of the last request among the atomic requests of their warps. `other_parts`,
    `other_wholes`: operations on lines that few blocks access, which spread evenly over the slices.
    `instruction`: number of an instruction that accesses the line, empty if it is not known.
    """

    line: NDArray[np.uint64]
    requests: Floats
    parts: Floats
    wholes: Floats
    additions: Floats
    first: Floats
    last: Floats
    other_parts: float = 0.0
    other_wholes: float = 0.0
    instruction: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def digest(self) -> str:
        """Digest that identifies them; sums in other orders differ in their last digits."""
        digest = sha256()
        for one in fields(self):
            value = np.asarray(getattr(self, one.name))
            digest.update(np.array([f"{x:.9g}" for x in value.ravel().tolist()]).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class AtomicTime:
    """Time of the busiest slice, and the operations that it makes."""

    time_s: float
    basis: str


def slices_of(l2_bytes: int, constants: SmConstants) -> int:
    """Number of slices of L2, an even one."""
    return max(2, 2 * round(l2_bytes / constants.l2_slice_bytes / 2))


def slice_of(line: NDArray[np.uint64], slices: int) -> NDArray[np.int64]:
    """Slice of L2 that stands for that of each line."""
    pairs = slices // 2
    pair, within = np.divmod(line.astype(np.int64), LINES_OF_PAIR)
    turn = (pair + APART * (pair // pairs)) % pairs
    found: NDArray[np.int64] = 2 * turn + within // RUN_LINES % 2
    return found


def atomic_time(operations: AtomicOperations, l2_bytes: int, constants: SmConstants) -> AtomicTime:
    """Time that L2 of `l2_bytes` needs for these operations."""
    c, slices = constants, slices_of(l2_bytes, constants)
    place = slice_of(operations.line, slices)
    spread_s = (
        c.atomic_part_s * operations.other_parts + c.atomic_whole_s * operations.other_wholes
    ) / slices
    busy = c.atomic_part_s * operations.parts + c.atomic_whole_s * operations.wholes
    waits = _waits(operations, busy, place, slices, c.atomic_sum_s)
    of_slice = np.bincount(place, busy + waits, slices) + spread_s
    least_s = float(of_slice.max(initial=0.0))
    queue_s = crowded_s(
        operations, busy + waits, place, slices, least_s, c.atomic_window, spread_s=spread_s
    )
    chain = float(operations.additions.max(initial=0.0))
    if chain * c.atomic_sum_s > queue_s:
        return AtomicTime(
            time_s=chain * c.atomic_sum_s,
            basis=f"{chain:,.0f} float additions to one sector, one after the other, "
            f"{1e9 * c.atomic_sum_s:.2f} ns each",
        )
    count = np.bincount(place, operations.parts + operations.wholes, slices)
    most = count[of_slice.argmax()] + (operations.other_parts + operations.other_wholes) / slices
    return AtomicTime(
        time_s=queue_s,
        basis=f"{most:,.0f} sector operations in the busiest of {slices} L2 slices, "
        f"{1e9 * least_s / max(most, 1.0):.2f} ns each{words_of_crowd(queue_s, least_s)}",
    )


def crowded_s(
    operations: AtomicOperations,
    seconds: Floats,
    place: NDArray[np.int64],
    slices: int,
    least_s: float,
    window: int,
    *,
    spread_s: float = 0.0,
) -> float:
    """Seconds until all slices are done, if warps that walk lines in one order wait for each other.

    `seconds`: for the operations on each line, of the slice `place`. `least_s`: of the busiest
    slice. `spread_s`: of each slice, for operations on other lines.
    """
    in_turn_s = _in_windows(operations, seconds, place, slices, window) + spread_s
    return min(in_turn_s, MOST_CROWDED * least_s)


def words_of_crowd(queue_s: float, least_s: float) -> str:
    """Text for the basis of a time if warps wait for the same slices, "" if they do not."""
    factor = queue_s / least_s
    if factor <= CROWDED:
        return ""
    return f", times {factor:.1f} because warps wait for the same slices"


def _waits(
    operations: AtomicOperations, busy: Floats, place: NDArray[np.int64], slices: int, sum_s: float
) -> Floats:
    """Seconds that the slice of each line waits for sums before it can add to the same sector.

    Requests arrive in any order: the one before is for the same sector with the probability that
    any is.
    """
    requests = np.bincount(place, operations.requests, slices)[place]
    alike = np.minimum(1.0, operations.additions / np.maximum(requests, 1.0)[:, None])
    left = np.maximum(0.0, sum_s - busy / np.maximum(operations.requests, 1.0))
    found: Floats = (operations.additions * alike).sum(axis=1) * left
    return found


def _in_windows(
    operations: AtomicOperations,
    seconds: Floats,
    place: NDArray[np.int64],
    slices: int,
    window: int,
) -> float:
    """Seconds if warps make `window` requests after those before are done: the sum over windows.

    The operations on a line are even between the first and the last of them.
    """
    if not len(seconds):
        return 0.0
    window = max(window, -(-int(operations.last.max() + 1) // MOST_WINDOWS))
    begin, end = ((x // window).astype(int) for x in (operations.first, operations.last))
    rate = seconds / (end - begin + 1)
    load = np.zeros((int(end.max()) + 2, slices))
    np.add.at(load, (begin, place), rate)
    np.add.at(load, (end + 1, place), -rate)
    return float(load[:-1].cumsum(axis=0).max(axis=1).sum())
