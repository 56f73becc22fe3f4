"""Tiles of the paths whose blocks share a C by tiles: any_layout.cu and sliced.cu."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES
from kernels.tilings import SPLIT_DEPTH

CHUNK = 8  # k of a slice that any_layout.cu computes at a time, at the end of K too
#: Splits whose sums the last block of a tile adds, and bytes of these. Of more, a second launch
#: adds them.
MOST_TICKETED, MOST_TICKETED_BYTES = 16, 128 << 10
REGISTERS = 65536  # of an SM
PAD = 4  # floats behind a row of a tile in shared memory, any_layout.cu


def _pitch_of_sums(columns: int, is_bulk: bool) -> int:
    """Floats of a row of sums in shared memory, PITCH of results.cuh."""
    together = 1 if is_bulk else 4  # rows of a thread that are neighbours
    return next(n for n in range(columns, columns + 32, 4) if together * n % 32 == 16)


def _adding(quads: int, threads: int, blocks: int) -> tuple[int, int]:
    """Groups of a thread's quads that it adds together, and splits of them on their way at a time.

    They are as many as registers allow: GROUP and AT_ONCE of results.cuh.
    """
    registers = min(255, REGISTERS // (threads * blocks))
    most = 16 if registers == 255 else 8
    group = most if quads % most == 0 else 12 if quads % 12 == 0 else quads
    if group < 8:
        return quads // group, 16 // group
    return quads // group, 1 if registers < 128 else 3 if group == 12 else 2


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Parameters of any_layout.cu, or of sliced.cu (`is_bulk`)."""

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int
    slices: int
    stages: int
    is_bulk: bool = False
    #: Whether nothing is moved from a k to the next, as in rung 14: it pays where sums fill the
    #: registers, and else for some tiles.
    fenced: bool = False
    #: Whether old values of C come to L2 before the loop. The registers of one tile are laid out
    #: worse with it: it is 7% slower where B is stored along n.
    prefetched: bool = True
    name: str = field(init=False)
    threads: int = field(init=False)
    shared_bytes: int = field(init=False)
    most_ticketed: int = field(init=False)  #: splits that the last block adds
    #: How often a thread of it waits for sums of `splits_together` splits, until all of its quads
    #: have those.
    groups: int = field(init=False)
    splits_together: int = field(init=False)

    def __post_init__(self) -> None:
        threads = self.bm // self.tm * (self.bn // self.tn) * self.slices
        pad = 0 if self.is_bulk else 2 * PAD
        ring = self.stages * self.bk * (self.bm + self.bn + pad) * FLOAT_BYTES
        sums = self.slices * self.bm * _pitch_of_sums(self.bn, self.is_bulk) * FLOAT_BYTES
        name = f"{self.bm}x{self.bn}x{self.bk}/{self.tm}x{self.tn}x{self.slices}"
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "threads", threads)
        object.__setattr__(self, "shared_bytes", max(ring, sums))
        most = MOST_TICKETED_BYTES // (self.bm * self.bn * FLOAT_BYTES)
        object.__setattr__(self, "most_ticketed", min(most, MOST_TICKETED))
        groups, together = _adding(self.quads, threads, 1 if self.is_bulk else self._resident)
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "splits_together", together)

    @cached_property
    def defines(self) -> dict[str, int]:
        names: tuple[str, ...] = ("bm", "bn", "tm", "tn", "slices", "stages")
        names += () if self.is_bulk else ("bk", "fenced", "prefetched")
        return {name.upper(): int(getattr(self, name)) for name in names}

    @property
    def _resident(self) -> int:
        """Blocks on an SM that the registers are for, BLOCKS of any_layout.cu."""
        sums = self.tm * self.tn
        threads = 256 if sums >= 128 else 384 if sums > 64 else 512 if sums == 64 else 768
        return max(1, threads // self.threads)

    @property
    def quads(self) -> int:
        """Quads of a thread after slices are added."""
        return ceil_div(self.tm * self.tn // 4, self.slices)


ANY_TILES = (
    Tile(bm=64, bn=128, bk=16, tm=8, tn=8, slices=1, stages=3, fenced=True, prefetched=False),
    Tile(bm=128, bn=64, bk=16, tm=8, tn=8, slices=1, stages=3, fenced=True),
    Tile(bm=64, bn=64, bk=16, tm=4, tn=8, slices=1, stages=3),
    Tile(bm=64, bn=128, bk=16, tm=8, tn=16, slices=1, stages=3, fenced=True),
    Tile(bm=96, bn=96, bk=16, tm=12, tn=12, slices=1, stages=3, fenced=True),
    Tile(bm=64, bn=96, bk=16, tm=8, tn=12, slices=1, stages=3, fenced=True),
    Tile(bm=96, bn=64, bk=16, tm=12, tn=8, slices=1, stages=3, fenced=True),
    Tile(bm=128, bn=64, bk=32, tm=8, tn=16, slices=2, stages=3, fenced=True),
    Tile(bm=32, bn=128, bk=32, tm=4, tn=8, slices=2, stages=3),
    Tile(bm=64, bn=64, bk=32, tm=8, tn=8, slices=2, stages=3),
    Tile(bm=64, bn=64, bk=32, tm=8, tn=8, slices=4, stages=3),
    Tile(bm=64, bn=32, bk=32, tm=8, tn=8, slices=4, stages=3),
    Tile(bm=32, bn=32, bk=32, tm=4, tn=8, slices=4, stages=3),
    Tile(bm=32, bn=32, bk=64, tm=4, tn=8, slices=8, stages=3),
)
BULK_TILES = (
    Tile(bm=112, bn=64, bk=SPLIT_DEPTH, tm=14, tn=8, slices=4, stages=4, is_bulk=True),
    Tile(bm=128, bn=64, bk=SPLIT_DEPTH, tm=8, tn=16, slices=4, stages=4, is_bulk=True),
    Tile(bm=64, bn=64, bk=SPLIT_DEPTH, tm=8, tn=16, slices=8, stages=4, is_bulk=True),
    Tile(bm=64, bn=32, bk=SPLIT_DEPTH, tm=8, tn=8, slices=8, stages=5, is_bulk=True),
    Tile(bm=96, bn=48, bk=SPLIT_DEPTH, tm=12, tn=12, slices=8, stages=5, is_bulk=True),
)
