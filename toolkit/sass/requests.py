"""The requests that the core noted, told by buffer and offset instead of address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from analysis.records.counters import InstructionCounts
from analysis.records.profile import FirstRequest, LineAccess
from toolkit.sass.core.binding import LANES
from toolkit.sass.machine import Bound

GLOBAL, SHARED = 0, 1  # as core.h numbers spaces
SHARED_MEMORY = "shared"
_SUMMED = ("requests", "sectors", "wavefronts", "conflict_free", "ideal")


@dataclass(frozen=True, kw_only=True)
class Noted:
    """A request of a warp; `lanes` are byte offsets from the start of `buffer`."""

    index: int
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
    buffer = _buffer(int(row["space"]), addresses[lanes[0]], bound)
    if buffer is None:
        return None
    name, start = buffer
    return Noted(
        index=int(row["pc"]),
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


def line_accesses(
    instructions: Sequence[InstructionCounts],
    requests: Sequence[Noted],
    *,
    k: int,
    row_floats: Mapping[str, int],
) -> tuple[LineAccess, ...]:
    """What accessed memory, each with its first request at K = `k`; unrolled copies are one."""
    first = {one.index: one for one in reversed(requests)}
    alike: dict[tuple[object, ...], list[int]] = {}
    for index, one in enumerate(instructions):
        if one.space and one.requests:
            kind = (one.line, one.space, one.action, one.bytes_per_lane, _shape(first.get(index)))
            alike.setdefault(kind, []).append(index)
    return tuple(
        _access(
            indices[0],
            [instructions[index] for index in indices],
            _first(first.get(indices[0]), k, row_floats),
        )
        for indices in alike.values()
    )


def _access(
    index: int, copies: Sequence[InstructionCounts], first: FirstRequest | None
) -> LineAccess:
    one = copies[0]
    assert one.space is not None
    assert one.action is not None
    return LineAccess(
        place=index,
        space=one.space,
        action=one.action,
        bytes_per_lane=one.bytes_per_lane,
        **{name: sum(getattr(copy, name) for copy in copies) for name in _SUMMED},
        first=first,
    )


def _first(request: Noted | None, k: int, row_floats: Mapping[str, int]) -> FirstRequest | None:
    if request is None:
        return None
    return FirstRequest(
        block=request.block,
        warp=request.warp,
        k=k,
        buffer=request.buffer,
        row_floats=row_floats.get(request.buffer),
        lanes=request.lanes,
    )


def _shape(request: Noted | None) -> tuple[object, ...]:
    """The buffer, and how far lanes are from the first one that takes part."""
    if request is None:
        return ()
    start = next(lane for lane in request.lanes if lane is not None)
    return (request.buffer, *(None if one is None else one - start for one in request.lanes))
