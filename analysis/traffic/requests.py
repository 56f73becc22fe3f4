"""Sectors of global memory, or banks of shared memory, that each lane of a request accesses.

`analysis.coalescing` has the cost of a request; this module attributes it to lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from analysis.access import BANKS, WORD_BYTES
from analysis.coalescing import SECTOR_BYTES
from analysis.geometry import WARP_SIZE

Lanes = Sequence[int | None]

# Number of lane groups of a shared request, by bytes per lane; a group is served together. See
# `coalescing.shared_wavefronts`, which also models when hardware merges two groups.
_GROUPS = {8: 2, 16: 4}


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A sector, or a bank for one group of lanes, and the lanes that access it.

    `number`: number of the sector (address / 32) or of the bank. `words`: distinct 4-byte words
    that the lanes access. `used_bytes`: distinct bytes that they access.
    """

    number: int
    group: int
    lanes: tuple[int, ...]
    words: int
    used_bytes: int
    size_bytes: int


def pieces(lanes: Lanes, bytes_per_lane: int, space: str) -> tuple[Piece, ...]:
    """Sectors or banks that a request accesses, sorted by group and number.

    `lanes`: byte offset of each lane from an address that is a multiple of 32 (in shared memory: of
    128), None for inactive lanes.
    """
    is_shared = space == "shared"
    lanes_of: dict[tuple[int, int], dict[int, None]] = {}
    bytes_of: dict[tuple[int, int], set[int]] = {}
    for lane, offset in enumerate(lanes):
        for byte in _bytes(offset, bytes_per_lane):
            key = _bank(lane, byte, bytes_per_lane) if is_shared else (0, byte // SECTOR_BYTES)
            lanes_of.setdefault(key, {})[lane] = None
            bytes_of.setdefault(key, set()).add(byte)
    return tuple(
        Piece(
            group=group,
            number=number,
            lanes=tuple(lanes_of[group, number]),
            words=len({byte // WORD_BYTES for byte in bytes_of[group, number]}),
            used_bytes=len(bytes_of[group, number]),
            size_bytes=WORD_BYTES if is_shared else SECTOR_BYTES,
        )
        for group, number in sorted(lanes_of)
    )


def _bytes(offset: int | None, bytes_per_lane: int) -> Iterable[int]:
    return () if offset is None else range(offset, offset + bytes_per_lane)


def _bank(lane: int, byte: int, bytes_per_lane: int) -> tuple[int, int]:
    """(group of lanes, bank)."""
    groups = _GROUPS.get(bytes_per_lane, 1)
    return lane * groups // WARP_SIZE, byte // WORD_BYTES % BANKS


def strides(lanes: Lanes) -> set[int]:
    """Distances between neighbouring active lanes, in bytes."""
    return {other - one for one, other in pairwise(lanes) if one is not None and other is not None}
