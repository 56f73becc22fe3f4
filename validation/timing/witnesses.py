"""Launches whose time shows one mechanism each, of several families of kernels per mechanism.

    python -m validation.timing.witnesses --output witnesses_h200.json     # needs a GPU
    python -m validation.timing.witnesses --predict                       # a table; needs no GPU

`recorded/witnesses_h200.json` has what they took: medians by CUDA events, after a memset of twice
the bytes of L2 ("flushed"), and after the same launch ("warm"). `row` is the mechanism. Constants
of the model were measured by microbenchmarks, not on these launches.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.random import Generator

from analysis.devices import find_device
from analysis.errors import ToolkitError, first_line
from analysis.geometry import Geometry
from analysis.l2_state import L2State
from toolkit.execution.simulate import simulate
from toolkit.gpu.context import Gpu
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from toolkit.store.user_files import write_atomically
from validation import recordings
from validation.timing.declared import OPTIONS, rng

FILE = Path(__file__).parent / "witness" / "kernels.cu"
RECORDED = Path(__file__).parent / "recorded" / "witnesses_h200.json"
REPEATS = 11
RESTORED_BYTES = 4 << 20  # arrays up to this size are written anew before each launch
Arguments = list[Any]
Three = tuple[int, int, int]
Draw = Callable[[Generator], Arguments]
i32, f16, f32 = np.int32, np.float16, np.float32
MI = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Witness:
    """One launch. `label` names it in the recording."""

    row: str
    label: str
    kernel: str
    grid: Three
    block: Three
    make: Draw

    @property
    def states(self) -> dict[str, L2State]:
        """States of L2 that it is timed in, by their names in the record.

        What waits, or stores what is greater, does nothing the second time.
        """
        first_only = self.row == CHAINS or self.kernel in ("raise_bins", "take_places")
        return {"flushed": L2State.DIRTY} | ({} if first_only else {"warm": L2State.WARM})

    @property
    def geometry(self) -> Geometry:
        return Geometry(grid=self.grid, block=self.block)


def code(architecture: str) -> Callable[[str], Kernel]:
    """Machine code of each kernel by its name, compiled once."""
    image = compile_cubin(
        FILE.read_text(encoding="utf-8"),
        name=FILE.name,
        kernel="hand_on",
        arch=architecture,
        options=OPTIONS,
    ).image
    return partial(Kernel.from_image, image)


def recorded() -> dict[str, dict[str, Any]]:
    """Times of the launches by label: {"flushed_s", "warm_s"}."""
    launches: dict[str, dict[str, Any]] = recordings.read(RECORDED)["launches"]
    return launches


LAUNCHES: list[Witness] = []
CHAINS = "blocks that wait"


def _three(numbers: tuple[int, ...]) -> Three:
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _add(
    row: str,
    kernel: str,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    make: Callable[..., Arguments],
    *sizes: Any,
    what: str = "",
) -> None:
    of_grid, of_block = (x if isinstance(x, tuple) else (x,) for x in (grid, block))
    shape = f"{'x'.join(map(str, of_grid))} by {'x'.join(map(str, of_block))}"
    LAUNCHES.append(
        Witness(
            row=row,
            label=f"{kernel} {shape}{' ' if what else ''}{what}",
            kernel=kernel,
            grid=_three(of_grid),
            block=_three(of_block),
            make=lambda g: make(g, *sizes),
        )
    )


def _zeros(*sizes: int, dtype: Any = f32) -> Arguments:
    return [np.zeros(size, dtype) for size in sizes]


def _floats(g: Generator, n: int) -> Any:
    return g.random(n, f32)


def _places(g: Generator, n: int, size: int) -> Any:
    return g.integers(0, size, n, i32)


for blocks in (132, 528):
    _add(CHAINS, "hand_on", blocks, 32, lambda g, b: _zeros(b, b, dtype=i32), blocks)
for blocks, threads, steps in ((132, 256, 6), (132, 1024, 24), (1056, 128, 12)):
    _add(
        CHAINS,
        "grid_steps",
        blocks,
        threads,
        lambda g, b, s: [*_zeros(3 * b, 1, dtype=i32), i32(s)],
        blocks,
        steps,
        what=f"{steps} steps",
    )
for name in ("look_back_by_thread", "look_back_by_warp"):
    for tiles in (1024, 8192):
        _add(
            CHAINS,
            name,
            tiles,
            256,
            lambda g, t: [
                np.zeros(1024 * t, i32),
                g.integers(0, 9, 1024 * t, i32),
                np.zeros(t, np.uint64),
            ],
            tiles,
        )
_add(
    CHAINS,
    "last_block_sums",
    1056,
    256,
    lambda g: [*_zeros(1, 1056), np.zeros(1, i32), _floats(g, 4 * MI), i32(4 * MI)],
)

PARTS = "sectors in part"
for kernel in ("set_field", "add_to_field"):
    for n, pitch in ((MI, 8), (MI // 2, 16), (2 * MI, 3), (4 * MI, 8), (MI, 32)):
        _add(
            PARTS,
            kernel,
            1056,
            256,
            lambda g, n, p: [np.zeros(n * p, f32), i32(n), i32(p)],
            n,
            pitch,
            what=f"{n} pitch {pitch}",
        )
for n in (MI, 4 * MI, 16 * MI):
    _add(
        PARTS,
        "scatter",
        1056,
        256,
        lambda g, n: [np.zeros(n, f32), _floats(g, n), g.permutation(n).astype(i32), i32(n)],
        n,
        what=f"{n}",
    )
for w, h in ((1024, 1000), (3000, 2000)):
    _add(
        PARTS,
        "turn_rows",
        (-(-w // 32), -(-h // 8)),
        (32, 8),
        lambda g, w, h: [np.zeros(w * h, f32), _floats(g, w * h), i32(w), i32(h)],
        w,
        h,
        what=f"{w}x{h}",
    )
_add(PARTS, "set_pixels", 1056, 256, lambda g: [np.zeros(12 * MI, np.uint8), i32(4 * MI)])

GATHERS = "gathers"
for n, size in ((4 * MI, MI // 4), (4 * MI, 4 * MI), (2 * MI, 64 * MI)):
    _add(
        GATHERS,
        "gather",
        1056,
        256,
        lambda g, n, s: [np.zeros(n, f32), np.zeros(s, f32), _places(g, n, s), i32(n)],
        n,
        size,
        what=f"{n} of {size}",
    )
for size in (1 << 14, MI):
    _add(
        GATHERS,
        "search",
        2048,
        256,
        lambda g, s: [
            np.zeros(MI // 2, i32),
            _floats(g, MI // 2),
            np.sort(_floats(g, s)),
            i32(MI // 2),
            i32(s),
        ],
        size,
        what=f"in {size}",
    )
for n in (MI // 8, 4 * MI):
    _add(
        GATHERS,
        "follow",
        1056,
        256,
        lambda g, n: [np.zeros(MI // 8, i32), g.permutation(n).astype(i32), i32(MI // 8), i32(8)],
        n,
        what=f"8 of {n}",
    )
for rows, each, columns in ((40_000, 64, MI), (10_000, 200, 20_000)):
    _add(
        GATHERS,
        "sparse_rows",
        rows // 4,
        128,
        lambda g, r, e, c: [
            np.zeros(r, f32),
            e * np.arange(r + 1, dtype=i32),
            _places(g, r * e, c),
            _floats(g, c),
            i32(r),
        ],
        rows,
        each,
        columns,
        what=f"{rows} rows of {each}, {columns} columns",
    )
for degrees in (30, 80):
    c, s = (f32(f(np.radians(degrees))) for f in (np.cos, np.sin))
    _add(
        GATHERS,
        "sample_image",
        (64, 256),
        (32, 8),
        lambda g, c, s: [np.zeros(4 * MI, f32), _floats(g, 4 * MI), i32(2048), i32(2048), c, s],
        c,
        s,
        what=f"{degrees} degrees",
    )

SMALL = "small blocks"
for n, threads in ((MI, 32), (4 * MI, 32), (4 * MI, 64), (4 * MI, 128)):
    _add(
        SMALL,
        "tiny_scale",
        n // threads,
        threads,
        lambda g, n: [np.zeros(n, f32), _floats(g, n)],
        n,
    )
_add(SMALL, "short_rows", 60_000, 32, lambda g: [np.zeros(60_000, f32), _floats(g, 60_000 * 64)])
for blocks, threads in ((13_200, 256), (100_000, 64), (20_000, 1024)):
    _add(SMALL, "almost_empty", blocks, threads, lambda g: [np.zeros(1024, i32), i32(256)])

UNEQUAL = "unequal blocks"


def _times(blocks: int, light: int, heavy: int, places: Sequence[int]) -> Any:
    times = np.full(blocks, light, i32)
    times[list(places)] = heavy
    return times


for blocks, light, heavy, at in (
    (2048, 100, 20_000, (1000,)),
    (8000, 400, 8000, tuple(range(7, 8000, 500))),
):
    _add(
        UNEQUAL,
        "work_by_block",
        blocks,
        128,
        lambda g, b, low, high, a: [np.zeros(128 * b, f32), _times(b, low, high, a)],
        blocks,
        light,
        heavy,
        at,
        what=f"{len(at)} heavy",
    )
_add(
    UNEQUAL,
    "work_by_block",
    6000,
    128,
    lambda g: [np.zeros(6000 * 128, f32), (100 * g.pareto(1.5, 6000) + 50).astype(i32)],
    what="long tail",
)

TWICE = "rows read again"
for rows, width in ((2000, 4096), (1000, 8192), (300, 32_768), (132, 60_000)):
    _add(
        TWICE,
        "softmax_of_rows",
        rows,
        256,
        lambda g, r, w: [np.zeros(r * w, f32), _floats(g, r * w), i32(w)],
        rows,
        width,
        what=f"width {width}",
    )
for rows, width, threads in ((600, 4096, 512), (264, 14_000, 1024)):
    _add(
        TWICE,
        "standardise",
        rows,
        threads,
        lambda g, r, w: [np.zeros(2 * r, f32), np.zeros(4 * r * w, f32), i32(w)],
        rows,
        width,
        what=f"width {4 * width}",
    )
for kib in (128, 208, 256, 320):
    _add(
        TWICE,
        "again",
        132,
        1024,
        lambda g, k: [
            np.zeros(132 * 1024, f32),
            np.zeros(132 * 256 * k, f32),
            i32(256 * k),
            i32(8),
        ],
        kib,
        what=f"{kib} KiB 8 times",
    )

TREES = "scans and trees"
for kernel, threads, out in (
    ("scan_doubling", 1024, 1024),
    ("scan_tree", 512, 1024),
    ("tree_of_neighbours", 1024, 1),
    ("tree_with_conflicts", 1024, 1),
    ("sort_in_shared", 1024, 1024),
):
    for blocks in (264, 4000):
        _add(
            TREES,
            kernel,
            blocks,
            threads,
            lambda g, b, o: [np.zeros(b * o, i32), g.integers(0, 1000, 1024 * b, i32)],
            blocks,
            out,
        )

L1 = "L1 hits beside constants"
_add(
    L1,
    "convolve",
    (64, 256),
    (32, 8),
    lambda g: [np.zeros(4 * MI, f32), _floats(g, 4 * MI), i32(2048), i32(2048)],
)
_add(
    L1,
    "shifted_sum",
    16_384,
    256,
    lambda g: [np.zeros(4 * MI, f32), _floats(g, 4 * MI), i32(4 * MI)],
)
for blocks, threads in ((1056, 256), (132, 128)):
    _add(
        L1,
        "power_series",
        blocks,
        threads,
        lambda g, n: [np.zeros(n, f32), f32(1e-4), i32(10)],
        blocks * threads,
    )

TOGETHER = "constants read together"
for blocks, count in ((1056, 1000), (1056, 500), (1056, 200), (528, 1000), (132, 1000)):
    _add(
        TOGETHER,
        "filter_taps",
        blocks,
        256,
        lambda g, n, count: [np.zeros(n, f32), _floats(g, n + 1024), i32(n), i32(count)],
        256 * blocks,
        count,
        what=f"{count} taps",
    )
for blocks, threads, count in (
    (1056, 256, 128),
    (1056, 256, 60),
    (528, 256, 128),
    (264, 1024, 128),
):
    _add(
        TOGETHER,
        "sum_of_pieces",
        blocks,
        threads,
        lambda g, n, count: [np.zeros(n, f32), _floats(g, n), i32(count)],
        threads * blocks,
        count,
        what=f"{count} pieces",
    )
for blocks, count in ((1056, 512), (1056, 100), (264, 512)):
    _add(
        TOGETHER,
        "nearest_center",
        blocks,
        256,
        lambda g, n, count: [np.zeros(n, i32), _floats(g, 4 * n), i32(count)],
        256 * blocks,
        count,
        what=f"{count} centers",
    )
for rows, width in ((4096, 1024), (16_384, 256)):
    _add(
        TOGETHER,
        "apply_settings",
        1056,
        256,
        lambda g, rows, width: [
            np.zeros(rows * width, f32),
            _floats(g, rows * width),
            i32(rows),
            i32(width),
        ],
        rows,
        width,
        what=f"{rows} rows of {width}",
    )

SWAPS = "atomics of floats in shared memory"
for bins in (256, 4):
    _add(
        SWAPS,
        "shared_weights",
        264,
        512,
        lambda g, b: [np.zeros(256, f32), _places(g, 2 * MI, b), _floats(g, 2 * MI), i32(2 * MI)],
        bins,
        what=f"{bins} bins",
    )
for threads in (32, 256, 1024):
    _add(
        SWAPS,
        "shared_sum",
        132,
        threads,
        lambda g, t: [np.zeros(132, f32), _floats(g, 132 * t * 8), i32(132 * t * 8)],
        threads,
    )

ATOMICS = "atomics at L2"
for n, bins in ((MI, 1 << 16), (MI, 256), (MI // 8, 1)):
    _add(
        ATOMICS,
        "raise_bins",
        528,
        256,
        lambda g, n, b: [np.zeros(b, i32), _places(g, n, 1 << 30), _floats(g, n), i32(n), i32(b)],
        n,
        bins,
        what=f"{n} in {bins}",
    )
for mask in (0, 31, 1023, (1 << 17) - 1):
    _add(
        ATOMICS,
        "sum_by_swaps",
        132,
        128,
        lambda g, m: [np.zeros(m + 1, i32), i32(2), i32(m)],
        mask,
        what=f"of {mask + 1}",
    )
_add(
    ATOMICS,
    "take_places",
    1056,
    256,
    lambda g: [np.zeros(4 * MI, i32), np.zeros(1, i32), _places(g, 4 * MI, 1 << 30), i32(4 * MI)],
)
for bins in (1 << 8, 1 << 12, 1 << 18):
    _add(
        ATOMICS,
        "ranks",
        1056,
        256,
        lambda g, b: [
            np.zeros(2 * MI, i32),
            np.zeros(b, i32),
            _places(g, 2 * MI, 1 << 30),
            i32(2 * MI),
            i32(b),
        ],
        bins,
        what=f"{bins} bins",
    )
_add(
    ATOMICS,
    "least_place",
    528,
    256,
    lambda g: [np.zeros(1, np.uint64), _floats(g, 4 * MI), i32(4 * MI)],
)
for n, size in ((2 * MI, 4 * MI), (2 * MI, 1 << 14)):
    _add(
        ATOMICS,
        "scatter_add",
        1056,
        256,
        lambda g, n, s: [np.zeros(s, f32), _floats(g, n), _places(g, n, s), i32(n)],
        n,
        size,
        what=f"{n} to {size}",
    )

STREAMS = "streams"
for n in (MI // 2, 4 * MI):
    _add(STREAMS, "fill", 1056, 256, lambda g, n: [np.zeros(4 * n, f32), i32(n)], n, what=f"{n}")
for n in (3 * MI, 16 * MI):
    _add(STREAMS, "fill_words", n // 256, 256, lambda g, n: [np.zeros(n, f32), i32(n)], n)
_add(
    STREAMS,
    "copy_halves",
    16 * MI // 256,
    256,
    lambda g: [np.zeros(16 * MI, np.uint16), np.ones(16 * MI, np.uint16), i32(16 * MI)],
)
_add(
    STREAMS,
    "axpy_double",
    4 * MI // 256,
    256,
    lambda g: [np.zeros(4 * MI), np.ones(4 * MI), np.float64(2), i32(4 * MI)],
)
for n in (MI, 3 * MI, 8 * MI):
    _add(
        STREAMS,
        "read_words",
        1056,
        256,
        lambda g, n: [np.zeros(1, f32), np.zeros(n, f32), i32(n)],
        n,
        what=f"{n}",
    )

FILLED = "sectors that several stores fill"
for rows, columns in ((4096, 512), (1024, 4096)):
    _add(
        FILLED,
        "columns_of_pairs",
        1056,
        256,
        lambda g, r, c: [np.zeros(2 * r * c), g.random(2 * r * c), i32(r), i32(c)],
        rows,
        columns,
        what=f"{rows}x{columns}",
    )
for blocks in (1024, 4096):
    _add(
        FILLED,
        "spread_groups",
        blocks,
        256,
        lambda g, b: [np.zeros(2048 * b), g.random(2048 * b), i32(b)],
        blocks,
    )
for kernel, words in (("fill_threes", 3), ("fill_nines", 9)):
    for n in (MI, 4 * MI):
        _add(
            FILLED,
            kernel,
            1056,
            256,
            lambda g, n, w: [np.zeros(n * w, f32), i32(n)],
            n,
            words,
            what=f"{n}",
        )
for n in (MI, 4 * MI):
    _add(
        FILLED,
        "two_vectors",
        n // 256,
        256,
        lambda g, n: [np.zeros(8 * n, f32), _floats(g, 4 * n), i32(n)],
        n,
    )

SCATTERS = "scatters"
for n in (MI, 8 * MI):
    _add(
        SCATTERS,
        "scatter_pairs",
        1056,
        256,
        lambda g, n: [
            np.zeros(2 * n, f32),
            _floats(g, 2 * n),
            g.permutation(n).astype(i32),
            i32(n),
        ],
        n,
        what=f"{n}",
    )
for n, size in ((4 * MI, 4 * MI), (4 * MI, 256 * MI)):
    _add(
        SCATTERS,
        "mark",
        1056,
        256,
        lambda g, n, s: [np.zeros(s, np.uint8), _places(g, n, s), i32(n)],
        n,
        size,
        what=f"{n} of {size}",
    )

DOUBLES = "wide words in shared memory"
for kernel, threads in (("shared_columns", 32), ("exchange_steps", 64)):
    for blocks in (2112, 16_896):
        _add(
            DOUBLES,
            kernel,
            blocks,
            threads,
            lambda g, b: [np.zeros(512 * b), g.random(512 * b)],
            blocks,
        )

for blocks, threads, steps in ((16, 64, 6), (132, 64, 6), (528, 64, 6), (264, 256, 20)):
    _add(
        CHAINS,
        "relax_together",
        blocks,
        threads,
        lambda g, n, s: [_floats(g, n), np.zeros(n, f32), np.zeros(1, i32), i32(n), i32(s)],
        4 * blocks * threads,
        steps,
        what=f"{steps} steps",
    )
for blocks in (132, 1056):
    _add(
        CHAINS,
        "normalize_together",
        blocks,
        256,
        lambda g, b: [
            np.zeros(MI, f32),
            _floats(g, MI),
            np.zeros(b, f32),
            np.zeros(1, i32),
            i32(MI),
        ],
        blocks,
    )

SHORT = "short launches"
for n, blocks, threads in ((10_000, 40, 256), (MI, 528, 128)):
    _add(
        SHORT,
        "sums_of_doubles",
        blocks,
        threads,
        lambda g, n, b: [np.zeros(b), g.random(n), i32(n)],
        n,
        blocks,
        what=f"{n}",
    )
for rows, width in ((64, 512), (1000, 768)):
    _add(
        SHORT,
        "small_rows",
        rows,
        256,
        lambda g, r, w: [
            np.zeros(r * w, f32),
            _floats(g, r * w),
            _floats(g, w),
            _floats(g, w),
            i32(w),
        ],
        rows,
        width,
        what=f"width {width}",
    )
for n in (512, 4096):
    _add(
        SHORT, "edges", -(-n // 256), 256, lambda g, n: [_floats(g, n * n), i32(n)], n, what=f"{n}"
    )
for n, systems in ((16, 4096), (64, 1024)):
    _add(
        SHORT,
        "solve_thirds",
        systems // 128,
        128,
        lambda g, n, s: [g.random(n * s), 0.1 * g.random(n), 0.1 * g.random(n), i32(n), i32(s)],
        n,
        systems,
        what=f"{n} of {systems}",
    )
for n in (20_000, MI):
    _add(
        SHORT,
        "powers",
        -(-n // 256),
        256,
        lambda g, n: [np.zeros(n, f32), _floats(g, n), f32(1.7), i32(n)],
        n,
        what=f"{n}",
    )

ARITHMETIC = "halves and doubles"
for n, terms in ((MI, 256), (4 * MI, 16)):
    _add(
        ARITHMETIC,
        "half_powers",
        1056,
        256,
        lambda g, n, t: [np.zeros(2 * n, f16), g.random(2 * n, f32).astype(f16), i32(n), i32(t)],
        n,
        terms,
        what=f"{n}, {terms} terms",
    )
for n, count in ((256 * 132, 4096), (256 * 528, 1024)):
    _add(
        ARITHMETIC,
        "nearest_of_halves",
        n // 256,
        256,
        lambda g, n, c: [
            np.zeros(n, f32),
            g.random(8 * n, f32).astype(f16),
            g.random(8 * c, f32).astype(f16),
            i32(n),
            i32(c),
        ],
        n,
        count,
        what=f"{n} to {count}",
    )
for rows, width in ((8192, 128), (4096, 512)):
    _add(
        ARITHMETIC,
        "rows_of_halves",
        rows // 8,
        256,
        lambda g, r, w: [
            np.zeros(r, f32),
            g.random(8 * r * w, f32).astype(f16),
            g.random(8 * w, f32).astype(f16),
            i32(w),
        ],
        rows,
        width,
        what=f"{rows} of {8 * width}",
    )
for n, terms in ((MI, 128), (4 * MI, 8)):
    _add(
        ARITHMETIC,
        "double_powers",
        1056,
        256,
        lambda g, n, t: [np.zeros(n), g.random(n), i32(n), i32(t)],
        n,
        terms,
        what=f"{n}, {terms} terms",
    )
for n in (128 * 132, 128 * 33):
    _add(
        ARITHMETIC,
        "double_bodies",
        n // 128,
        128,
        lambda g, n: [np.zeros(n), g.random(n), i32(n)],
        n,
    )

STORED = "stores that meet"
for kernel in ("step_and_flag", "step_and_flag_of_block", "step_and_test"):
    _add(
        STORED,
        kernel,
        4 * MI // 256,
        256,
        lambda g: [
            np.zeros(4 * MI + 2, f32),
            _floats(g, 4 * MI + 2),
            np.zeros(1, i32),
            i32(4 * MI + 2),
            f32(0.01),
        ],
    )
for vertices, edges in ((MI, 4 * MI), (MI // 16, MI)):
    _add(
        STORED,
        "level_of_edges",
        1056,
        256,
        lambda g, v, e: [
            np.zeros(v, i32),
            np.where(np.arange(v) % 3, i32(-1), i32(3)),
            _places(g, e, v),
            _places(g, e, v),
            np.zeros(1, np.uint8),
            i32(e),
        ],
        vertices,
        edges,
        what=f"{edges} of {vertices}",
    )
for keys in (16, 256, 4096, 1 << 16):
    _add(
        STORED,
        "last_of_key",
        1056,
        256,
        lambda g, k: [np.zeros(k, i32), _places(g, 4 * MI, k), i32(4 * MI)],
        keys,
        what=f"{keys} keys",
    )
for limit in (0.9, 0.99, 0.9999):
    _add(
        STORED,
        "find_any",
        1056,
        256,
        lambda g, limit: [np.zeros(1, i32), _floats(g, 8 * MI), i32(8 * MI), f32(limit)],
        limit,
        what=f"above {limit}",
    )
_add(STORED, "mean_by_all", 4096, 256, lambda g: [np.zeros(1, f32), _floats(g, 64), i32(64)])
_add(
    STORED,
    "mark_tiles",
    8 * MI // 256,
    256,
    lambda g: [np.zeros(8192, np.uint8), _floats(g, 8 * MI), i32(8 * MI)],
)
for rows, width in ((8192, 768), (65_536, 64)):
    _add(
        STORED,
        "last_row",
        rows // 8,
        256,
        lambda g, r, w: [np.zeros(w, f32), _floats(g, r * w), i32(r), i32(w)],
        rows,
        width,
        what=f"{rows} of {width}",
    )

TABLES = "sums into small tables"
for rows in (16, 128, 512, 2048, 8192):
    _add(
        TABLES,
        "add_rows",
        MI // 16,
        256,
        lambda g, r: [
            np.zeros(32 * r, f32),
            _floats(g, 16 * MI),
            _places(g, MI // 2, r),
            i32(MI // 2),
        ],
        rows,
        what=f"to {rows}",
    )
    _add(
        TABLES,
        "add_ones",
        MI // 16,
        256,
        lambda g, r: [np.zeros(32 * r, i32), _places(g, MI // 2, r), i32(MI // 2)],
        rows,
        what=f"to {rows}",
    )


def measured(gpu: Gpu, row: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Medians of each launch with the row. Arrays are uploaded anew before each state of L2."""
    of = code(gpu.device.sm_arch)
    for one in LAUNCHES:
        if row not in one.row:
            continue
        arguments, found = one.make(rng()), dict[str, Any]()
        try:
            kernel = gpu.load_image(of(one.kernel).image, one.kernel)
            for state, l2 in one.states.items():
                samples = []
                buffers = [gpu.upload(a) if isinstance(a, np.ndarray) else a for a in arguments]
                launch = kernel.prepared(one.geometry, buffers)
                initial = [
                    (b, a)
                    for b, a in zip(buffers, arguments, strict=True)
                    if isinstance(a, np.ndarray) and a.nbytes <= RESTORED_BYTES
                ]
                with gpu.launch_errors(one.label):
                    for _ in range(REPEATS):
                        for buffer, array in initial:
                            gpu.write(buffer, array)
                        samples.append(gpu.timer.time(launch, l2=l2))
                found[f"{state}_s"] = median(samples[1:])
                found[f"{state}_least_s"] = min(samples[1:])
        except ToolkitError as error:
            found["error"] = first_line(error)
        yield one.label, {"row": one.row, **found}


def predicted(row: str, device: str) -> Iterator[dict[str, Any]]:
    """Each launch with the row, predicted, beside what was recorded."""
    of, known = code(find_device(device).sm_arch), recorded() if RECORDED.exists() else {}
    for one in LAUNCHES:
        if row not in one.row:
            continue
        cell = {"label": one.label, "row": one.row, **known.get(one.label, {})}
        try:
            found = simulate(
                of(one.kernel),
                grid=one.grid,
                block=one.block,
                arguments=one.make(rng()),
                device=device,
            )
        except (ToolkitError, ValueError) as error:
            yield cell | {"left_out": first_line(error)}
            continue
        if found.predicted is None:
            yield cell | {"left_out": found.prediction_basis}
        else:
            p = found.predicted
            yield cell | {"predicted_s": p.time_s, "limiter": p.limiter, "share": p.limiter_share}


def table(cells: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line per launch, and mean errors by row."""
    for cell in cells:
        flushed, warm, time_s = (cell.get(k) for k in ("flushed_s", "warm_s", "predicted_s"))
        numbers = (f"{1e6 * x:9.1f}" if x else f"{'–':>9}" for x in (flushed, warm, time_s))
        ratio = f"{time_s / flushed:6.2f}" if flushed and time_s else " " * 6
        limiter = cell.get("limiter", cell.get("left_out", cell.get("error", "")))
        yield f"{cell['label']:48}{''.join(numbers)}{ratio}  {limiter}"
    for row in dict.fromkeys(cell["row"] for cell in cells):
        errors = [
            abs(cell["predicted_s"] / cell["flushed_s"] - 1)
            for cell in cells
            if cell["row"] == row and "predicted_s" in cell and "flushed_s" in cell
        ]
        if errors:
            mean, worst = fmean(errors), max(errors)
            yield f"{row}: {len(errors)} launches, mean {mean:.1%}, worst {worst:.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("witnesses.json"))
    parser.add_argument("--predict", action="store_true", help="predict instead of measuring")
    parser.add_argument("--row", default="", metavar="TEXT", help="mechanisms that contain this")
    parser.add_argument("--device", default="h200", help="to predict for")
    chosen = parser.parse_args()
    if chosen.predict:
        cells = list(predicted(chosen.row, chosen.device))
        chosen.output.write_text(json.dumps(cells, indent=1), encoding="utf-8")
        print("\n".join(table(cells)))
        return
    launches: dict[str, Any] = {}
    with Gpu() as gpu:
        about = {"gpu": gpu.device.name, "flush": "memset of twice the bytes of L2"}
        for label, found in measured(gpu, chosen.row):
            launches[label] = found
            text = recordings.text_of({**about, "launches": launches})
            write_atomically(chosen.output, text.encode())
    print("\n".join(table([{"label": label, **found} for label, found in launches.items()])))


if __name__ == "__main__":
    main()
