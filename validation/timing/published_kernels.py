"""The kernels whose times were published, as variants that only benchmarks and tests know."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from kernels.selection import Selection, parse_selection
from kernels.variant import Variant

FILE = Path(__file__).parent / "published_kernels.cu"


class Rebuilt(Variant):
    """A kernel of `published_kernels.cu`, cut up like the rung that it is taken for."""

    @property
    def source(self) -> str:
        return FILE.read_text(encoding="utf-8")


def rebuilt(entry: str, rung: str) -> Selection:
    """A kernel by its name; blocks, tiles and traffic follow from those of a rung."""
    like = parse_selection(rung)
    assert isinstance(like.variant, Variant)
    tiling = like.variant.tiling(like.parameters)
    return Selection(
        variant=Rebuilt(
            name=entry.replace("_", "-"),
            rung=like.variant.rung,
            title=entry,
            idea=f"the kernel that was timed, for {like.label}",
            file=FILE.name,
            entry=entry,
            tile=lambda: tiling,
            warp=like.variant.warp,
            rows_along_x=like.variant.rows_along_x,
            flat_block=like.variant.flat_block,
        )
    )


# By device and the rung that the publication's kernel is taken for. The T4's vectorized kernel is
# not shown by its source: there the rung stands for it.
TIMED: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("rtx-3090", "naive-uncoalesced:width=32"): "xgemm_naive_uncoalesced",
        ("rtx-3090", "naive-coalesced:width=32"): "xgemm_naive_coalesced",
        ("rtx-3090", "tiled:tile=32"): "xgemm_tiled",
        ("rtx-3090", "coarsened-1d:bk=8,tm=8"): "xgemm_coarsened_1d",
        ("rtx-3090", "coarsened-2d:bk=16"): "xgemm_coarsened_2d",
        ("rtx-3090", "vectorized:bk=16"): "xgemm_vectorized",
        ("t4", "naive-coalesced"): "notes_naive",
        ("t4", "tiled"): "notes_tiled",
        ("t4", "coarsened-1d:bk=4,tm=16"): "notes_coarsened_1d",
        ("t4", "coarsened-2d:bk=8"): "notes_coarsened_2d",
    }
)


def timed(device: str, rung: str) -> Selection:
    """Kernel that was timed: the rebuilt kernel, or the rung if the kernel is unknown."""
    entry = TIMED.get((device, rung))
    return parse_selection(rung) if entry is None else rebuilt(entry, rung)
