"""Atomic operations and stores of all blocks of a launch, from those of the executed ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from analysis.timing.l2_atomics import AtomicOperations
from toolkit.sass.atomics import SUMS, Atomics, summed


def of_all_blocks(found: Atomics) -> AtomicOperations | None:
    """Operations or stores of a launch whose blocks were all executed; None if there are none."""
    return _joined([(found, 1.0)], found)


def of_executed_blocks(
    blocks: Mapping[int, Atomics], class_of: NDArray[np.uint32]
) -> AtomicOperations | None:
    """The same of a launch of which some blocks were executed, by their index; None if none.

    `class_of`: class of each block of the launch. Those of a class stand for all of it. A line that
    one of them accesses alone is taken for its own.
    """
    everything = summed(blocks.values())
    parts = [
        part
        for number in np.unique(class_of)
        for part in _of_class(
            [one for block, one in blocks.items() if class_of[block] == number],
            int((class_of == number).sum()),
        )
    ]
    return _joined(parts, everything)


def _of_class(executed: Sequence[Atomics], blocks: int) -> Iterator[tuple[Atomics, float]]:
    """Operations of a class of so many blocks, each with its weight."""
    if not executed:
        return
    together = summed(executed)
    times = np.zeros(len(together.lines))
    for one in executed:
        times[np.searchsorted(together.lines["line"], one.lines["line"])] += 1
    count = len(executed)
    shared = (times - 1) / (count - 1) if count > 1 else np.full(len(times), float(blocks == 1))
    # the blocks that access a line, for each of those that were executed and access it
    weight = (1 + shared * (blocks - 1)) / times
    for value in np.unique(weight):
        rows = together.lines[weight == value]
        yield Atomics(lines=rows, others=together.others[:0]), float(value)
        # what these operations lack of all those of the class is on lines of other blocks
        rest = np.zeros(1, dtype=rows.dtype)
        for name in ("parts", "wholes"):
            rest[name] = round(max(0.0, blocks / count - value) * float(rows[name].sum()))
        yield Atomics(lines=rows[:0], others=rest), 1.0
    yield Atomics(lines=together.lines[:0], others=together.others), blocks / count


def _joined(parts: Sequence[tuple[Atomics, float]], everything: Atomics) -> AtomicOperations | None:
    numbers = everything.lines["line"]
    if not len(numbers):
        return None
    sums = {name: np.zeros(everything.lines[name].shape) for name in SUMS}
    others = dict.fromkeys(("parts", "wholes"), 0.0)
    for part, weight in parts:
        at = np.searchsorted(numbers, part.lines["line"])
        for name, total in sums.items():
            np.add.at(total, at, weight * part.lines[name])
        for name in others:
            others[name] += weight * float(part.others[name].sum())
    return AtomicOperations(
        line=numbers.copy(),
        **sums,
        first=everything.lines["first"].astype(np.float64),
        last=everything.lines["last"].astype(np.float64),
        instruction=everything.lines["pc"].astype(np.int64),
        other_parts=others["parts"],
        other_wholes=others["wholes"],
    )
