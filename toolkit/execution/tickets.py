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
_WIDE = {"64", "U64", "S64"}
_ADDS, _FLOATS = {"ADD", "INC"}, {"F16", "F32", "F64", "BF16", "F16x2", "BF16x2"}


def with_tickets(
    bound: BoundLaunch,
    code: Sequence[Instruction],
    run: Callable[[BoundLaunch, int], Run],
) -> BoundLaunch:
    """Copy of a bound launch whose blocks find the numbers that blocks before them leave.

    `run` executes one block of a bound launch. Its stores are undone. Raises FaultError.
    """
    blocks, noting = bound.geometry.blocks, replace(bound, notes_requests=True, notes_atomics=True)
    bytes_of = {pc: 8 if _WIDE & set(one.modifiers) else 4 for pc, one in _additions(code)}
    added: dict[tuple[int, int], list[int]] = {}
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
                known = added.setdefault((address, size), [])
                known.append(_value(bound, address, size) - _first(bound, address, size))
    bound.restore()
    found = [
        (address, _first(bound, address, size), round(sum(by) / len(by)), size)
        for (address, size), by in added.items()
        if len(by) == len(tried) and any(by)
    ]
    if not found or len(found) > MOST_TICKETS:
        return bound
    return replace(bound, tickets=np.array(found, dtype=TICKET))


def _additions(code: Sequence[Instruction]) -> Iterator[tuple[int, Instruction]]:
    """Atomic additions of integers that return what was there before."""
    for pc, one in enumerate(code):
        modifiers = set(one.modifiers)
        if one.opcode in ("ATOM", "ATOMG") and modifiers & _ADDS and not modifiers & _FLOATS:
            yield pc, one


def _first(bound: BoundLaunch, address: int, size: int) -> int:
    """Number at an address before the launch."""
    buffer = _buffer(bound, address)
    return _number(
        buffer.shared[0] if buffer.shared else buffer.data, address - buffer.address, size
    )


def _value(bound: BoundLaunch, address: int, size: int) -> int:
    """Number at an address."""
    buffer = _buffer(bound, address)
    offset = address - buffer.address
    is_copied = not buffer.shared or buffer.shared[1][offset // PAGE_BYTES] >= COPIED
    return _number(buffer.data, offset, size) if is_copied else _first(bound, address, size)


def _number(content: NDArray[Any], offset: int, size: int) -> int:
    return int.from_bytes(content[offset : offset + size].tobytes(), "little", signed=True)


def _buffer(bound: BoundLaunch, address: int) -> Buffer:
    return next(x for x in bound.buffers if x.address <= address < x.address + x.bytes)
