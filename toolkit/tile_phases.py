"""The phases of a small tiled product, from executing a tiled rung: who loads and reads what.

The source texts tabulate them for 4 x 4 matrices and tiles of 2 x 2, small enough to follow every
element by hand. Here the kernel itself is compiled for such a tile, executed on the simulator, and
its requests are followed from matrix to shared memory and on to the threads that read them there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.devices import Device
from analysis.errors import ToolkitError
from analysis.problem import FLOAT_BYTES, Gemm
from analysis.result import TileLoad, TilePhases, TileRead
from kernels.registry import LADDER, Parameters, Selection, Variant
from toolkit.rung_launch import compile_for
from toolkit.sass.core import COUNT
from toolkit.sass.machine import run_blocks
from toolkit.sass.requests import SHARED_MEMORY, Noted, noted
from toolkit.sass.statistics import instruction_counts
from toolkit.sass.translate import Translated, bind, translate
from toolkit.tiles import rung_arguments

EXTENT, TILE = 4, 2  # those of the source texts
BLOCK = 0
MOST_REQUESTS = 1 << 10  # of each instruction: far more than so small a block makes
MOST_INSTRUCTIONS = 10**6  # an edited rung may not end


def tile_phases(device: Device) -> TilePhases | None:
    """The phases of one block of the first tiled rung, None where it cannot be executed here."""
    variant = next(one for one in LADDER if one.tiling(one.defaults).block_k)
    selection = Selection(variant=variant, parameters=dict.fromkeys(variant.parameters, TILE))
    try:
        kernel = compile_for(device, selection)
        translated = translate(kernel)
        requests = _requests(translated, variant, selection.parameters)
    except ToolkitError:
        return None
    loads, reads = _followed(translated, requests)
    return TilePhases(
        extent=EXTENT,
        tile=TILE,
        row=0,
        column=0,
        loads=tuple(loads),
        reads=tuple(reads),
        basis=(
            f"{variant.file} compiled for tiles of {TILE} × {TILE} ({kernel.architecture}, "
            f"{kernel.compiler}); block {BLOCK} executed on the simulator, every request noted"
        ),
    )


def _requests(
    translated: Translated, variant: Variant, parameters: Parameters
) -> tuple[Noted, ...]:
    """All requests of one block, in the order of execution."""
    shape = Gemm(m=EXTENT, n=EXTENT, k=EXTENT)
    a, b, c = (np.ones((EXTENT, EXTENT), np.float32) for _ in "ABC")
    arguments = rung_arguments(variant, parameters, shape, (a, b, c))
    bound, _ = bind(translated, variant.geometry(parameters, shape), arguments)
    bound = replace(bound, most_requests=MOST_REQUESTS)
    (run,) = run_blocks(bound, [range(BLOCK, BLOCK + 1)], max_instructions=MOST_INSTRUCTIONS)
    names = {f"argument {place}": role for place, role in enumerate(variant.arguments)}
    return tuple(
        replace(one, buffer=names.get(one.buffer, one.buffer)) for one in noted(run.requests, bound)
    )


@dataclass(frozen=True, kw_only=True)
class _Element:
    matrix: str
    row: int
    column: int


def _element(matrix: str, offset: int) -> _Element:
    row, column = divmod(offset // FLOAT_BYTES, EXTENT)
    return _Element(matrix=matrix, row=row, column=column)


def _followed(
    translated: Translated, requests: Sequence[Noted]
) -> tuple[list[TileLoad], list[TileRead]]:
    """Every element from its load over its place in shared memory to its readers.

    What a thread stores is what it loaded last on the same source line; a phase begins when a
    thread loads from a matrix again.
    """
    nothing = np.zeros(len(translated.kernel.instructions), dtype=COUNT)
    instructions = instruction_counts(translated, nothing)
    held: dict[tuple[int, int | None], _Element] = {}  # by thread and line
    tile: dict[int, _Element] = {}  # by offset in shared memory
    phases: dict[tuple[int, str], int] = defaultdict(int)  # by thread and matrix
    loads, reads = [], []
    for request in requests:
        instruction = instructions[request.place]
        for thread, offset in _threads(request):
            if request.buffer in ("A", "B"):
                element = held[thread, instruction.line] = _element(request.buffer, offset)
                phase = phases[thread, element.matrix]
                phases[thread, element.matrix] += 1
                loads.append(TileLoad(phase=phase, thread=thread, **vars(element)))
            elif request.buffer == SHARED_MEMORY and instruction.action == "store":
                tile[offset] = held[thread, instruction.line]
            elif request.buffer == SHARED_MEMORY:
                for at in range(offset, offset + instruction.bytes_per_lane, FLOAT_BYTES):
                    element = tile[at]
                    phase = phases[thread, element.matrix] - 1
                    reads.append(TileRead(phase=phase, thread=thread, **vars(element)))
    return loads, reads


def _threads(request: Noted) -> Iterator[tuple[int, int]]:
    """(thread of the block, offset) of each lane that takes part."""
    for lane, offset in enumerate(request.lanes):
        if offset is not None:
            yield request.warp * len(request.lanes) + lane, offset
