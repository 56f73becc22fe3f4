"""The launches whose traffic is held to hardware: every kernel at a small and a large matrix."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("kernels.cu")
SIDES = (1024, 4096)  # 4 MiB, which L2 holds, and 64 MiB, which it does not

Extent = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Launch:
    kernel: str
    side: int
    grid: Extent
    block: Extent

    @property
    def label(self) -> str:
        return f"{self.kernel} {self.side}"

    @property
    def elements(self) -> int:
        return self.side * self.side


def _grids(side: int) -> dict[str, tuple[Extent, Extent]]:
    """(grid, block) of each kernel for a square matrix of that side."""
    elements = side * side
    flat = (elements // 256, 1, 1), (256, 1, 1)
    tiles = (side // 32, side // 8, 1), (32, 8, 1)
    return {
        "copy": flat,
        "copy_wide": ((elements // 1024, 1, 1), (256, 1, 1)),
        "axpy": flat,
        "transpose_plain": tiles,
        "transpose_padded": ((side // 32, side // 32, 1), (32, 8, 1)),
        "stencil": tiles,
        "softmax": ((side, 1, 1), (256, 1, 1)),
        "row_sums": ((side // 8, 1, 1), (32, 8, 1)),
        "column_sums": ((side // 128, 1, 1), (128, 1, 1)),
        "matrix_vector": ((side // 8, 1, 1), (32, 8, 1)),
        "strided": ((elements // 8 // 256, 1, 1), (256, 1, 1)),
        "scattered": flat,
    }


LAUNCHES = tuple(
    Launch(kernel=kernel, side=side, grid=grid, block=block)
    for side in SIDES
    for kernel, (grid, block) in _grids(side).items()
)
