"""Geometry of a launch, and the two divisions that every tiling needs."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from analysis.argument_types import check_fields, shown
from analysis.errors import InputError

WARP_SIZE = 32  # CUDA C++ Programming Guide, "SIMT Architecture"


def ceil_div(dividend: int, divisor: int) -> int:
    """Quotient rounded up: number of tiles of `divisor` that cover `dividend`."""
    return -(-dividend // divisor)


def exact_div(dividend: int, divisor: int) -> int:
    """Quotient of a division without remainder.

    Raises InputError if there is a remainder.
    """
    quotient, remainder = divmod(dividend, divisor)
    if remainder:
        raise InputError(f"{dividend} is not a multiple of {divisor}")
    return quotient


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """Number of blocks and threads of a launch.

    `grid` and `block` are (x, y, z); `dynamic_shared_bytes` is per block. Raises InputError for
    what is not three sizes of at least 1. Limits of a device are not checked here.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        for name, sizes in (("grid", self.grid), ("block", self.block)):
            if len(sizes) != 3 or min(sizes) < 1:
                raise InputError(f"{name} = {shown(sizes)}: give three sizes of at least 1")
            object.__setattr__(self, name, tuple(map(int, sizes)))

    @classmethod
    def of(cls, blocks: int, threads: int, dynamic_shared_bytes: int = 0) -> Geometry:
        """One-dimensional geometry of `blocks` blocks with `threads` threads."""
        return cls(
            grid=(blocks, 1, 1), block=(threads, 1, 1), dynamic_shared_bytes=dynamic_shared_bytes
        )

    @property
    def blocks(self) -> int:
        return prod(self.grid)

    @property
    def threads_per_block(self) -> int:
        return prod(self.block)

    @property
    def threads(self) -> int:
        return self.blocks * self.threads_per_block

    @property
    def warps_per_block(self) -> int:
        return ceil_div(self.threads_per_block, WARP_SIZE)
