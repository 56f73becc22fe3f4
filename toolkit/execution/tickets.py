"""Numbers in global memory by which blocks learn their place in the order of all blocks.

Each block of such a launch adds to a number by an atomic operation and goes by what it finds: the
block that finds all others done sums up their results, or a block appends to an array. If only a
few blocks are executed, each of them must find what the blocks before it would have left. So the
number is set when a block begins, to what it was plus what the blocks before it add on average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.machine_code.instruction import Instruction
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.core.binding import TICKET
from toolkit.sass.machine import Run
from toolkit.sass.space import COPIED, PAGE_BYTES, Buffer

MOST_TICKETS = 16
# A block that executes more or fewer instructions after another one, relative to these alone, takes
# work from the others, or finds what they have left.
SAME_WORK = 0.02
_WIDE = {"64", "U64", "S64"}
_ADDS, _FLOATS = {"ADD", "INC"}, {"F16", "F32", "F64", "BF16", "F16x2", "BF16x2"}


def with_tickets(
    bound: BoundLaunch,
    code: Sequence[Instruction],
    run: Callable[[BoundLaunch, int], Run],
) -> BoundLaunch | None:
    """Copy of a bound launch whose blocks find the numbers that blocks before them leave.

    None if there are more numbers than MOST_TICKETS. `run` executes one block of a bound launch.
    Its stores are undone. Raises FaultError.
    """
    blocks, noting = bound.geometry.blocks, replace(bound, notes_requests=True, notes_atomics=True)
    bytes_of = {pc: 8 if _WIDE & set(one.modifiers) else 4 for pc, one in _additions(code)}
    added: dict[tuple[int, int], dict[int, int]] = {}  # by address and size, by block
    tried = sorted({0, blocks // 2, blocks - 1})
    for block in tried:
        bound.restore()
        requests = run(noting, block).requests
        for row in requests if requests is not None else ():
            if row["pc"] not in bytes_of:
                continue
            lanes = np.flatnonzero(row["mask"] >> np.arange(32, dtype=np.uint32) & 1)
            for address in np.unique(row["address"][lanes]).tolist()[: MOST_TICKETS + 1]:
                size = bytes_of[row["pc"]]
                buffer = _buffer(bound, address)
                if buffer is None:  # beyond all arrays, where the launch may store
                    continue
                offset = address - buffer.address
                change = _value(buffer, offset, size) - _first(buffer, offset, size)
                added.setdefault((address, size), {})[block] = change
    bound.restore()
    found = [
        (address, _first_at(bound, address, size), round(sum(by.values()) / len(by)), size)
        for (address, size), by in added.items()
        if len(by) == len(tried) and any(by.values())
    ]
    if len(found) > MOST_TICKETS:
        return None
    return replace(bound, tickets=np.array(found, dtype=TICKET)) if found else bound


def works_alone(bound: BoundLaunch, run: Callable[[BoundLaunch, int], Run]) -> bool:
    """True if a block executes as much after another block as it does alone.

    `run` executes one block of a bound launch. Its stores are undone. Raises FaultError.
    """
    middle = bound.geometry.blocks // 2
    alone = int(run(bound, middle).counts["executed"].sum())
    bound.restore()
    run(bound, 0)
    after = int(run(bound, middle).counts["executed"].sum())
    bound.restore()
    return abs(after - alone) <= SAME_WORK * alone


def _additions(code: Sequence[Instruction]) -> Iterator[tuple[int, Instruction]]:
    """Atomic additions of integers that return what was there before."""
    for pc, one in enumerate(code):
        modifiers = set(one.modifiers)
        if one.opcode in ("ATOM", "ATOMG") and modifiers & _ADDS and not modifiers & _FLOATS:
            yield pc, one


def _first_at(bound: BoundLaunch, address: int, size: int) -> int:
    """Number at an address of a buffer before the launch."""
    buffer = _buffer(bound, address)
    assert buffer is not None
    return _first(buffer, address - buffer.address, size)


def _first(buffer: Buffer, offset: int, size: int) -> int:
    """Number in a buffer before the launch."""
    return _number(buffer.shared[0] if buffer.shared else buffer.data, offset, size)


def _value(buffer: Buffer, offset: int, size: int) -> int:
    """Number in a buffer."""
    is_copied = not buffer.shared or buffer.shared[1][offset // PAGE_BYTES] >= COPIED
    return _number(buffer.data, offset, size) if is_copied else _first(buffer, offset, size)


def _number(content: NDArray[Any], offset: int, size: int) -> int:
    return int.from_bytes(content[offset : offset + size].tobytes(), "little", signed=True)


def _buffer(bound: BoundLaunch, address: int) -> Buffer | None:
    """The buffer with an address; None for an address beyond all of them."""
    return next((x for x in bound.buffers if x.address <= address < x.address + x.bytes), None)
