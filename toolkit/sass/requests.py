"""The requests that the core noted, told by buffer and offset instead of address."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from analysis.records.profile import FirstRequest
from toolkit.sass.bound_launch import BoundLaunch

GLOBAL, SHARED = 0, 1  # as core.h numbers spaces
SHARED_MEMORY = "shared"


def first_requests(
    requests: NDArray[Any] | None,
    bound: BoundLaunch,
    *,
    k: int | None = None,
    row_floats: Mapping[str, int] = MappingProxyType({}),
) -> dict[int, FirstRequest]:
    """The requests to the launch's buffers and to shared memory, by instruction.

    Of a rung: at K = `k`, to matrices with rows of so many floats.
    """
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


def _buffer(space: int, address: int, bound: BoundLaunch) -> tuple[str, int] | None:
    """Name and start of the buffer that contains an address."""
    if space == SHARED:
        return SHARED_MEMORY, bound.shared_base
    if space == GLOBAL:
        for buffer in bound.buffers:
            if buffer.address <= address < buffer.address + buffer.bytes:
                return buffer.name, buffer.address
    return None
