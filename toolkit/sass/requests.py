"""The requests that the core noted, told by buffer and offset instead of address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from analysis.counters import InstructionCounts
from analysis.result import FirstRequest, MemoryInstruction
from toolkit.sass.core import LANES
from toolkit.sass.machine import Bound

GLOBAL, SHARED = 0, 1  # as core.h numbers spaces
SHARED_MEMORY = "shared"


@dataclass(frozen=True, kw_only=True)
class Noted:
    """A request of a warp; `lanes` are byte offsets from the start of `buffer`."""

    place: int
    block: int
    warp: int
    buffer: str
    lanes: tuple[int | None, ...]


def noted(requests: NDArray[Any] | None, bound: Bound) -> tuple[Noted, ...]:
    """The requests to the launch's buffers and to shared memory, in the order of execution."""
    found = (_noted(row, bound) for row in (requests if requests is not None else ()))
    return tuple(one for one in found if one)


def _noted(row: Any, bound: Bound) -> Noted | None:
    mask, addresses = int(row["mask"]), row["address"].tolist()
    lanes = [lane for lane in range(LANES) if mask >> lane & 1]
    place = _buffer(int(row["space"]), addresses[lanes[0]], bound)
    if place is None:
        return None
    name, start = place
    return Noted(
        place=int(row["pc"]),
        block=int(row["block"]),
        warp=int(row["warp"]),
        buffer=name,
        lanes=tuple(addresses[lane] - start if mask >> lane & 1 else None for lane in range(LANES)),
    )


def _buffer(space: int, address: int, bound: Bound) -> tuple[str, int] | None:
    """The name and the first address of what an address is in."""
    if space == SHARED:
        return SHARED_MEMORY, bound.shared_base
    if space == GLOBAL:
        for buffer in bound.buffers:
            if buffer.address <= address < buffer.address + buffer.bytes:
                return buffer.name, buffer.address
    return None


def memory_instructions(
    instructions: Sequence[InstructionCounts],
    requests: Sequence[Noted],
    *,
    k: int,
    row_floats: Mapping[str, int],
) -> tuple[MemoryInstruction, ...]:
    """The instructions that accessed memory, each with its first request at K = `k`.

    Of instructions of one source line whose first requests have one shape, the first one has it.
    """
    first = {one.place: one for one in reversed(requests)}
    found = [
        _of(place, one) for place, one in enumerate(instructions) if one.space and one.requests
    ]
    return tuple(_with_first(found, first, instructions, k, row_floats))


def _of(place: int, one: InstructionCounts) -> MemoryInstruction:
    assert one.space is not None
    assert one.action is not None
    return MemoryInstruction(
        place=place,
        space=one.space,
        action=one.action,
        bytes_per_lane=one.bytes_per_lane,
        requests=one.requests,
        sectors=one.sectors,
        wavefronts=one.wavefronts,
        conflict_free=one.conflict_free,
        ideal=one.ideal,
    )


def _with_first(
    found: Sequence[MemoryInstruction],
    first: Mapping[int, Noted],
    instructions: Sequence[InstructionCounts],
    k: int,
    row_floats: Mapping[str, int],
) -> Iterator[MemoryInstruction]:
    seen = set()
    for one in found:
        request, line = first.get(one.place), instructions[one.place].line
        shape = (line, one.space, one.action, one.bytes_per_lane, _shape(request))
        if request is None or shape in seen:
            yield one
            continue
        seen.add(shape)
        yield replace(
            one,
            first=FirstRequest(
                block=request.block,
                warp=request.warp,
                k=k,
                buffer=request.buffer,
                row_floats=row_floats.get(request.buffer),
                lanes=request.lanes,
            ),
        )


def _shape(request: Noted | None) -> tuple[object, ...]:
    """The buffer, and how far lanes are from the first one that takes part."""
    if request is None:
        return ()
    start = next(lane for lane in request.lanes if lane is not None)
    return (request.buffer, *(None if one is None else one - start for one in request.lanes))
