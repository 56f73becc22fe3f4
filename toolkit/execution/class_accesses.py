"""Accesses of all blocks to global memory, from those of a few blocks of each class.

Blocks of a class take the same path, and their addresses shift evenly. The recorded first accesses
to lines may still differ between them, if two accesses overlap in one block but not in another.
Such a class is divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.linalg import matrix_rank, pinv
from numpy.typing import NDArray

from analysis.coalescing import LINE_BYTES, SECTOR_BYTES
from analysis.traffic.groups import ENTRY, BlockClass
from analysis.traffic.pieces import READ
from toolkit.execution.accesses import steps_of_all_work
from toolkit.execution.distinct import distinct, distinct_records
from toolkit.execution.executed import LOST, Executed, ExecutedBlock, NoPlanError
from toolkit.execution.proof import Proof, far_apart, index_of
from toolkit.execution.sampling import drawn_blocks
from toolkit.sass.accesses import Below

DRAWN_FOR_ACCESSES = 8  # random blocks that check the accesses predicted from other blocks
# Moments per lifetime of a block. Accesses to a group of lines in one moment are one visit. The
# first number applies with which all blocks make at most FEW_VISITS visits.
MOMENTS = (1152, 384, 192, 96, 48, 24)
FEW_VISITS = 600_000

Floats = NDArray[np.float64]


class UnevenError(Exception):
    """Reason for accesses that do not shift evenly; completes the sentence of `NoPlanError`."""


@dataclass(frozen=True, kw_only=True)
class ClassAccesses:
    """Accesses of all blocks to global memory, by class. Accesses of a class shift evenly."""

    class_of: NDArray[np.uint32]  # class of each block, by its linear index
    classes: Sequence[BlockClass]
    moments: int  # per lifetime of a block
    below: Below  # requests of all blocks to L2


def class_accesses(
    executed: Executed, proof: Proof, seed: bytes, *, is_open: bool
) -> ClassAccesses:
    """Accesses of all blocks, from executed blocks of each class of a proof.

    Executes further blocks, some of them drawn at random. A class whose accesses do not shift
    evenly is divided, unless accesses may differ for another reason (`is_open`), such as a
    dependence on data. Raises NoPlanError if a class cannot be divided further, or if blocks make
    too many accesses.
    """
    asked, classes = Below(read=0, written_by_warps=0), list[BlockClass]()
    class_of = np.zeros(executed.blocks, dtype=np.uint32)
    executed.execute(drawn_blocks((), executed.blocks, DRAWN_FOR_ACCESSES, seed))
    if executed.spread:
        raise NoPlanError(LOST)
    for number in range(len(proof.leaders)):
        pending = [np.flatnonzero(proof.class_of == number)]
        while pending:
            blocks = pending.pop()
            try:
                made = _class_of(executed, blocks, proof.periods)
            except UnevenError as reason:
                if is_open or len(blocks) == 1 or executed.room <= 0:
                    raise NoPlanError(str(reason)) from None
                pending += np.array_split(blocks, 2)
                continue
            class_of[blocks] = len(classes)
            classes.append(made)
            first = executed.samples[far_apart(blocks, executed.grid)[0]]
            asked = asked + first.below.times(len(blocks))
    moments, classes = _with_moments(classes, class_of)
    return ClassAccesses(class_of=class_of, classes=classes, moments=moments, below=asked)


def _class_of(
    executed: Executed, blocks: NDArray[np.int64], periods: tuple[int, int, int]
) -> BlockClass:
    """Class of some blocks, with shifts that hold for all executed blocks among them.

    Executes the blocks at the ends. Raises UnevenError if there are no such shifts.
    """
    executed.execute(far_apart(blocks, executed.grid))
    members = np.intersect1d(blocks, list(executed.samples)).tolist()
    at = np.array([index_of(block, executed.grid) for block in members], dtype=np.int64)
    return _shifted([executed.samples[block] for block in members], at, periods)


def _shifted(
    samples: Sequence[ExecutedBlock], at: NDArray[np.int64], periods: tuple[int, int, int]
) -> BlockClass:
    """Class of executed blocks, with shifts that hold for all `samples`.

    `at`: index of each sample along x, y and z. Raises UnevenError if there are no such shifts.
    """
    first, *others = samples
    if any(not np.array_equal(one.rows["kind"], first.rows["kind"]) for one in others):
        raise UnevenError(": they make different accesses")
    shifts = np.zeros((3, len(first.sectors)), dtype=np.int64)
    if others:
        steps = at[1:] - at[0]
        rank = matrix_rank(steps)
        few = next(n for n in range(1, len(at)) if matrix_rank(steps[:n]) == rank)
        moved = [SECTOR_BYTES * (one.sectors - first.sectors) for one in others]
        shifts = np.rint(pinv(steps[:few]) @ np.array(moved[:few])).astype(np.int64)
        if any((step @ shifts != by).any() for step, by in zip(steps, moved, strict=True)):
            raise UnevenError(": addresses do not shift evenly with the index of the block")
    some, which = distinct(list(shifts))
    kinds = shifts[:, some]
    entries = np.zeros(len(first.rows), dtype=ENTRY)
    entries["sector"], entries["shift"], entries["mask"] = first.sectors, which, 1
    entries["kind"], entries["moment"] = first.rows["kind"], first.rows["step"]
    by_period = kinds * np.array(periods)[:, None]
    whole = (by_period % LINE_BYTES == 0).all(axis=0)  # lines shift to lines
    x, y, z = at[0].tolist()
    return BlockClass(entries=_by_line(entries, whole), shifts=kinds.T, at=(x, y, z))


def _by_line(entries: NDArray[Any], whole: NDArray[np.bool_]) -> NDArray[Any]:
    """Entries in which the sectors of a line are joined if the line shifts as a whole.

    `whole`: for each shift, true if it moves lines to lines.
    """
    joins = whole[entries["shift"]]
    those, others = entries[joins], entries[~joins]
    line, sector = np.divmod(those["sector"], 4)
    key = those.copy()
    key["sector"] = line * 4
    names, which = distinct_records(key)
    mask = np.zeros(len(names), dtype=np.uint8)
    np.bitwise_or.at(mask, which, (1 << sector).astype(np.uint8))
    names["mask"] = mask
    return np.concatenate([names, others])


def _with_moments(
    classes: Sequence[BlockClass], class_of: NDArray[np.uint32]
) -> tuple[int, list[BlockClass]]:
    """Moments per lifetime, and classes whose entries have moments in place of steps."""
    steps = np.array([_last_step(one.entries) for one in classes])
    last_reads = np.array([_last_step(one.entries[one.entries["kind"] == READ]) for one in classes])
    _, first = np.unique(class_of, return_index=True)
    until = steps_of_all_work(steps[class_of], last_reads[class_of])[first]
    populations = np.bincount(class_of, minlength=len(classes))
    for moments in MOMENTS:
        found = [_at_moments(one, moments, last) for one, last in zip(classes, until, strict=True)]
        groups = [
            len(distinct([one.entries[name] for name in ("shift", "moment", "kind")])[0])
            for one in found
        ]
        if np.dot(groups, populations) <= FEW_VISITS:
            break
    return moments, found


def _last_step(entries: NDArray[Any]) -> float:
    return float(entries["moment"].max(initial=0))


def _at_moments(one: BlockClass, moments: int, last: float) -> BlockClass:
    entries = one.entries.copy()
    work = np.minimum(1.0, entries["moment"] / max(last, 1.0))
    entries["moment"] = np.rint(moments * work).astype(np.uint32)
    return replace(one, entries=distinct_records(entries)[0])
