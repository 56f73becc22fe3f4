"""What the lanes of one request touch: sectors of global memory, or banks of shared memory.

`analysis.coalescing` says what a request costs; here is which lane causes which part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from analysis.access import BANKS, WORD_BYTES
from analysis.coalescing import SECTOR_BYTES
from analysis.geometry import WARP_SIZE

Lanes = Sequence[int | None]

# Lanes of a shared request that are served together, by the bytes of each: see
# `coalescing.shared_wavefronts`, which also knows when hardware merges two such groups.
_GROUPS = {8: 2, 16: 4}


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A sector, or a bank as one group of lanes sees it, and the lanes that want something of it.

    `number` is the sector's (its address over 32) or the bank's; `words` are the distinct 4-byte
    words that are wanted of it, `used_bytes` the distinct bytes.
    """

    number: int
    group: int
    lanes: tuple[int, ...]
    words: int
    used_bytes: int
    size_bytes: int


def pieces(lanes: Lanes, bytes_per_lane: int, space: str) -> tuple[Piece, ...]:
    """The pieces of memory that a request touches, in the order of group and number.

    `lanes` are byte offsets from an address that is a multiple of 32 (of shared memory: of 128),
    None of lanes that take no part.
    """
    is_shared = space == "shared"
    touched: dict[tuple[int, int], dict[int, None]] = {}
    wanted: dict[tuple[int, int], set[int]] = {}
    for lane, offset in enumerate(lanes):
        for byte in _bytes(offset, bytes_per_lane):
            key = _bank(lane, byte, bytes_per_lane) if is_shared else (0, byte // SECTOR_BYTES)
            touched.setdefault(key, {})[lane] = None
            wanted.setdefault(key, set()).add(byte)
    return tuple(
        Piece(
            group=group,
            number=number,
            lanes=tuple(touched[group, number]),
            words=len({byte // WORD_BYTES for byte in wanted[group, number]}),
            used_bytes=len(wanted[group, number]),
            size_bytes=WORD_BYTES if is_shared else SECTOR_BYTES,
        )
        for group, number in sorted(touched)
    )


def _bytes(offset: int | None, bytes_per_lane: int) -> Iterable[int]:
    return () if offset is None else range(offset, offset + bytes_per_lane)


def _bank(lane: int, byte: int, bytes_per_lane: int) -> tuple[int, int]:
    """(group of lanes, bank)."""
    groups = _GROUPS.get(bytes_per_lane, 1)
    return lane * groups // WARP_SIZE, byte // WORD_BYTES % BANKS


def strides(lanes: Lanes) -> set[int]:
    """How far neighbouring lanes that both take part are apart, in bytes."""
    return set(_distances(lanes))


def _distances(lanes: Lanes) -> Iterator[int]:
    for one, other in pairwise(lanes):
        if one is not None and other is not None:
            yield other - one
