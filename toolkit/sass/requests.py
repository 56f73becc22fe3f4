"""The requests that the core noted, told by buffer and offset instead of address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from analysis.records.counters import InstructionCounts
from analysis.records.profile import FirstRequest, LineAccess
from toolkit.sass.machine import Bound

GLOBAL, SHARED = 0, 1  # as core.h numbers spaces
SHARED_MEMORY = "shared"
_SUMMED = ("requests", "sectors", "wavefronts", "conflict_free", "ideal")


def first_requests(
    requests: NDArray[Any] | None, bound: Bound, *, k: int, row_floats: Mapping[str, int]
) -> dict[int, FirstRequest]:
    """The requests to the launch's buffers and to shared memory at K = `k`, by instruction."""
    found = {}
    for row in requests if requests is not None else ():
        mask, addresses = int(row["mask"]), row["address"].tolist()
        lanes = [address if mask >> n & 1 else None for n, address in enumerate(addresses)]
        buffer = _buffer(int(row["space"]), next(x for x in lanes if x is not None), bound)
        if buffer is not None:
            name, start = buffer
            found[int(row["pc"])] = FirstRequest(
                block=int(row["block"]),
                warp=int(row["warp"]),
                k=k,
                buffer=name,
                row_floats=row_floats.get(name),
                lanes=tuple(None if x is None else x - start for x in lanes),
            )
    return found


def _buffer(space: int, address: int, bound: Bound) -> tuple[str, int] | None:
    """Name and start of the buffer that contains an address."""
    if space == SHARED:
        return SHARED_MEMORY, bound.shared_base
    if space == GLOBAL:
        for buffer in bound.buffers:
            if buffer.address <= address < buffer.address + buffer.bytes:
                return buffer.name, buffer.address
    return None


def line_accesses(
    instructions: Sequence[InstructionCounts], first: Mapping[int, FirstRequest]
) -> tuple[LineAccess, ...]:
    """Accesses of instructions to memory, each with its first request; merges unrolled copies."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for index, one in enumerate(instructions):
        if one.space and one.requests:
            kind = (one.line, one.space, one.action, one.bytes_per_lane, _shape(first.get(index)))
            alike.setdefault(kind, []).append(index)
    return tuple(
        _access(indices[0], [instructions[index] for index in indices], first.get(indices[0]))
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


def _shape(request: FirstRequest | None) -> tuple[object, ...]:
    """The buffer, and how far lanes are from the first one that takes part."""
    if request is None:
        return ()
    start = next(lane for lane in request.lanes if lane is not None)
    return (request.buffer, *(None if one is None else one - start for one in request.lanes))
