"""Edits of the mapping of threads to data: exchanged axes, other blocks, more blocks."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from analysis.geometry import WARP_SIZE
from analysis.timing.predicted import Effect
from toolkit.machine_code.source_tree import line_of
from toolkit.remedies.edit import Edit, Extent, Replacement, extent_text
from toolkit.remedies.facts import Facts

EFFECTS = (
    Effect.IDLE_SMS,
    Effect.BARRIERS,
    Effect.DRAM_LATENCY,
    Effect.L2_LATENCY,
    Effect.L1_LATENCY,
    Effect.SHARED_LATENCY,
    Effect.DEPENDENCES,
    Effect.BLOCK_START,
)
SIZES = (128, 256, 512)


def transposed(facts: Facts) -> Iterator[Edit]:
    """threadIdx.x in place of threadIdx.y and the reverse, for square blocks."""
    x, y, z = facts.block
    source = facts.source
    found = [
        one
        for one in source.nodes("field_expression", source.body)
        if source.written(one) in ("threadIdx.x", "threadIdx.y")
    ]
    axes = {source.written(one)[-1] for one in found}
    if not facts.uncoalesced_lines or x != y or z != 1 or axes != {"x", "y"}:
        return
    yield Edit(
        effect=Effect.UNCOALESCED,
        lines=tuple(sorted({line_of(one) for one in found})),
        title="exchange threadIdx.x and threadIdx.y: a warp then accesses adjacent addresses",
        replacements=tuple(
            Replacement(
                start=one.end_byte - 1,
                end=one.end_byte,
                text="y" if source.written(one).endswith("x") else "x",
            )
            for one in found
        ),
    )


def resized(facts: Facts) -> Iterator[Edit]:
    """Blocks of another size, with as many threads in all."""
    x, y, z = facts.block
    if y == z == 1 and prod(facts.grid) == facts.grid[0]:
        yield from _resized_1d(facts, x)
    elif z == 1:
        yield from _fewer_rows(facts)


def _resized_1d(facts: Facts, x: int) -> Iterator[Edit]:
    source, threads = facts.source, facts.grid[0] * x
    named = [one for one in source.constants.values() if one.value == x and source.uses(one.name)]
    text = source.written(source.body)
    if not named and "blockDim.x" not in text:
        return
    for size in SIZES:
        if size == x or threads % size or threads // size < 1:
            continue
        block, grid = (size, 1, 1), (threads // size, 1, 1)
        yield Edit(
            effect=facts.worst(EFFECTS),
            lines=tuple(sorted(one.line for one in named)),
            title="".join(f"{one.name} {size}, " for one in named) + _options(grid, block),
            replacements=tuple(
                Replacement(start=one.start, end=one.end, text=str(size)) for one in named
            ),
            grid=grid,
            block=block,
            may_round=True,
            all_blocks="gridDim" in text,
        )


def _fewer_rows(facts: Facts) -> Iterator[Edit]:
    """Half or twice the threads per block along y, with the constant of the source for it."""
    x, y, _ = facts.block
    source = facts.source
    named = [
        one
        for one in source.constants.values()
        if one.value == y and source.uses(one.name) and y != x
    ]
    if len(named) != 1:
        return
    (constant,) = named
    for rows in (y // 2, 2 * y):
        if rows < 1 or (x * rows) % WARP_SIZE or x * rows > facts.device.max_threads_per_block:
            continue
        yield Edit(
            effect=facts.worst(EFFECTS),
            lines=(constant.line,),
            title=f"{constant.name} {rows}, --block {extent_text((x, rows, 1))}",
            replacements=(Replacement(start=constant.start, end=constant.end, text=str(rows)),),
            block=(x, rows, 1),
            may_round=True,
        )


def more_blocks(facts: Facts) -> Iterator[Edit]:
    """As many blocks as the device holds, for a kernel that loops over the grid."""
    source = facts.source
    if "gridDim.x" not in source.written(source.body) or facts.grid[1:] != (1, 1):
        return
    resident = facts.device.sm_count * facts.occupancy.blocks_per_sm
    if facts.grid[0] >= resident:
        return
    for blocks in dict.fromkeys((resident, resident // 2)):
        if blocks > facts.grid[0]:
            grid: Extent = (blocks, 1, 1)
            yield Edit(
                effect=facts.worst(EFFECTS),
                lines=(),
                title=f"--grid {blocks}, blocks for all {facts.device.sm_count} SMs",
                grid=grid,
                may_round=True,
                all_blocks=True,
            )


def _options(grid: Extent, block: Extent) -> str:
    return f"--block {extent_text(block)} --grid {extent_text(grid)}"
