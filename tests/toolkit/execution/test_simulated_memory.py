"""What the simulated ladder asks of memory, against a slow enumeration and against an H200.

Closed forms know full warps only. What they leave out at the edges is enumerated here from the
kernels' own index arithmetic, warp by warp, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis.access import Tiling
from analysis.coalescing import sectors
from analysis.devices import find_device
from analysis.problem import FLOAT_BYTES, Gemm, parse_shape
from kernels import LADDER, Variant, parse_selection
from tests.sampling import chosen_of
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.rungs.launch import compile_for
from toolkit.rungs.matrices import Workload
from validation import ROOT, recordings
from validation.corpus.inventory import chosen_parameters

DEVICE = find_device("rtx-3090")
Lanes = NDArray[np.int64]
# Row and column of each thread, the matrix's extents, floats per thread.
Place = tuple[Lanes, Lanes, int, int, int]


def staged(tiling: Tiling, shape: Gemm, row: int, column: int) -> Iterator[tuple[str, Place]]:
    """The loads of a block at (row, column) of C that copies tiles, for all of its threads."""
    threads, depth = np.arange(tiling.threads_per_block), tiling.depth
    width_a, width_b = tiling.global_widths(shape)
    tiles = (("A", tiling.block_m, depth, width_a), ("B", depth, tiling.block_n, width_b))
    for phase in range(0, shape.k, depth):
        for operand, height, length, width in tiles:
            per_row = length // width
            for first in range(0, height * per_row, len(threads)):
                down, across = np.divmod(threads + first, per_row)
                if operand == "A":
                    yield "load", (row + down, phase + width * across, shape.m, shape.k, width)
                else:
                    yield "load", (phase + down, column + width * across, shape.k, shape.n, width)


def direct(shape: Gemm, rows: Lanes, columns: Lanes) -> Iterator[tuple[str, Place]]:
    """The loads of threads that own one element each and leave at once where they own none."""
    outside = (rows >= shape.m) | (columns >= shape.n)
    beyond = np.where(outside, shape.m * shape.k * shape.n, 0)
    for k in range(shape.k):
        yield "load", (rows + beyond, np.full_like(rows, k), shape.m, shape.k, 1)
        yield "load", (np.full_like(columns, k), columns + beyond, shape.k, shape.n, 1)


def first_elements(variant: Variant, tiling: Tiling) -> tuple[Lanes, Lanes]:
    """Row and column of the first element of C that each thread of a block owns."""
    threads = np.arange(tiling.threads_per_block)
    if variant.rung < 9:
        fast = tiling.block_m if variant.rows_along_x else tiling.block_n // tiling.thread_n
        slow, quick = np.divmod(threads, fast)
        down, across = (quick, slow) if variant.rows_along_x else (slow, quick)
        step = (4, 4) if variant.rung == 8 else (tiling.thread_m, tiling.thread_n)
        return down * step[0], across * step[1]
    warp, lane = np.divmod(threads, 32)  # 8 by 4 lanes, by their bits
    lane_m = (lane >> 1 & 1) + 2 * (lane >> 3 & 1) + 4 * (lane >> 4 & 1)
    lane_n = (lane & 1) + 2 * (lane >> 2 & 1)
    down, across = np.divmod(warp, tiling.block_n // (4 * tiling.thread_n))
    return 8 * tiling.thread_m * down + 4 * lane_m, 4 * tiling.thread_n * across + 4 * lane_n


def own_offsets(variant: Variant, tiling: Tiling) -> tuple[list[int], list[int]]:
    """How far a thread's rows, and its columns, are from its first element."""
    if variant.rung < 8:
        return list(range(tiling.thread_m)), list(range(tiling.thread_n))
    # by fours, which are spread over the block's tile (rung 8) or the warp's
    spread = (
        (tiling.block_m, tiling.block_n)
        if variant.rung == 8
        else (8 * tiling.thread_m, 4 * tiling.thread_n)
    )
    pitches = (4 * spread[0] // tiling.thread_m, 4 * spread[1] // tiling.thread_n)
    extents = (tiling.thread_m, tiling.thread_n)
    rows, columns = (
        [pitch * (n // 4) + n % 4 for n in range(extent)]
        for pitch, extent in zip(pitches, extents, strict=True)
    )
    return rows, columns


def accesses(variant: Variant, tiling: Tiling, shape: Gemm) -> Iterator[tuple[str, Place]]:
    down, across = first_elements(variant, tiling)
    below, beside = own_offsets(variant, tiling)
    _, width = tiling.global_widths(shape)
    for row in range(0, shape.m, tiling.block_m):
        for column in range(0, shape.n, tiling.block_n):
            rows, columns = row + down, column + across
            if tiling.block_k:
                yield from staged(tiling, shape, row, column)
            else:
                yield from direct(shape, rows, columns)
            for i in below:
                for j in beside[::width]:
                    yield "store", (rows + i, columns + j, shape.m, shape.n, width)


def counted(variant: Variant, tiling: Tiling, shape: Gemm) -> dict[str, tuple[int, int]]:
    """(requests, sectors) of global loads and stores."""
    found = {"load": (0, 0), "store": (0, 0)}
    for action, (rows, columns, m, n, width) in accesses(variant, tiling, shape):
        active = (rows < m) & (columns < n)
        addresses = FLOAT_BYTES * (rows * n + columns)
        for first in range(0, len(active), 32):
            warp = slice(first, first + 32)
            if active[warp].any():
                touched = sectors(
                    addresses[warp], width_bytes=FLOAT_BYTES * width, active=active[warp]
                )
                requests, before = found[action]
                found[action] = requests + 1, before + touched
    return found


def near_defaults(variant: Variant) -> Iterator[dict[str, int]]:
    """All sets of few parameters; of many, the smallest and those with one that is no default."""
    for number, chosen in enumerate(variant.parameter_sets()):
        others = sum(chosen[name] != default for name, default in variant.defaults.items())
        if len(variant.parameters) < 3 or number == 0 or others < 2:
            yield chosen


LABELS = [variant.label(p) for variant in LADDER[:12] for p in near_defaults(variant)]
SHAPES = ("30x27x13", "70x139x9")
CHOSEN = {(v.label(chosen_parameters(v)), SHAPES[v.rung % 2]) for v in LADDER[:12]}


@pytest.mark.parametrize(
    ("label", "shape"),
    chosen_of(product(LABELS, SHAPES), lambda case: case in CHOSEN),
)
def test_requests_and_sectors_of_warps_at_the_edges(label: str, shape: str) -> None:
    selection = parse_selection(label)
    variant = selection.variant
    assert isinstance(variant, Variant)
    asked, most = parse_shape(shape), variant.max_extent or 1000
    workload = Workload(Gemm(m=min(asked.m, most), n=min(asked.n, most), k=asked.k), 1)
    found = LadderSimulator(workload).simulate(compile_for(DEVICE, selection), selection).simulated
    executed = variant.executed(workload.problem)
    expected = counted(variant, variant.tiling(selection.parameters), executed)
    kinds = {"load": ("load", "copy"), "store": ("store",)}  # asynchronous copies load as well
    for action, counts in expected.items():
        machine = [a for a in found.accesses if a.space == "global" and a.action in kinds[action]]
        assert (sum(a.requests for a in machine), sum(a.sectors for a in machine)) == counts


RECORDING = ROOT / "tests" / "kernels" / "recorded" / "counters_sm_90.json"
LAUNCHES = recordings.read(RECORDING)["launches"]
OF_MEMORY = [
    *(f"l1tex__t_{what}_pipe_lsu_mem_global_op_{short}.sum"
      for what in ("requests", "sectors") for short in ("ld", "st")),
    *(f"smsp__sass_inst_executed_op_shared_{short}.sum" for short in ("ld", "st")),
]  # fmt: skip
OF_DEFAULTS = {
    "one-block": "32x32x64", "naive-uncoalesced": "1000x333x65", "naive-coalesced": "127x129x31",
    "tiled": "1000x333x65", "coarsened-1d": "127x129x31", "coarsened-2d": "1000x333x65",
    "vectorized": "1000x336x68",
}  # fmt: skip


@pytest.mark.parametrize(
    "launch",
    chosen_of(
        [pytest.param(each, id=f"{each['label']} {each['executed_shape']}") for each in LAUNCHES],
        lambda each: (each["label"], each["executed_shape"]) in OF_DEFAULTS.items(),
    ),
)
def test_memory_counters_are_those_of_an_h200(launch: dict[str, Any]) -> None:
    # recorded of nvcc's code, simulated of NVRTC's: they differ, but not in what they ask memory
    selection = parse_selection(launch["label"])
    ladder = LadderSimulator(Workload(parse_shape(launch["executed_shape"]), 1))
    cubin = compile_for(find_device("h200"), selection)
    counters = ladder.simulate(cubin, selection).simulated.counters
    assert {name: counters[name] for name in OF_MEMORY} == {
        name: launch["counters"][name] for name in OF_MEMORY
    }
    instructions = "smsp__inst_executed.sum"
    assert counters[instructions] == pytest.approx(launch["counters"][instructions], rel=0.04)
