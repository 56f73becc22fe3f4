"""Launches whose times are compared with hardware: kernels of traffic/, of the corpus, and others.

`LAUNCHES` run 5 µs to 5 ms on a large GPU, `SMALL` are the same kernels at sizes that the simulator
takes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy import float32, int8, int32, uint8, uint32

from validation.corpus.case import (
    FILES,
    Arguments,
    Shape,
    blank,
    flat,
    fractions,
    grid_of,
    native_integers,
    tiles,
)
from validation.timing.declared import LAST_BITS, Build, Built, Declared, Size

TRAFFIC, OWN = "../traffic/kernels.cu", "../timing/kernels.cu"
TIMED: list[Declared] = []


# validation/traffic: (float* out, const float* in, int n) on a square matrix.

SQUARES: Mapping[str, Callable[[int], Shape]] = {
    "copy": lambda side: flat(side * side, 256),
    "copy_wide": lambda side: flat(side * side // 4, 256),
    "axpy": lambda side: flat(side * side, 256),
    "transpose_plain": lambda side: tiles(side, side, (32, 8)),
    "transpose_padded": lambda side: tiles(side, side, (32, 32), (32, 8)),
    "stencil": lambda side: tiles(side, side, (32, 8)),
    "softmax": lambda side: grid_of(side, 256),
    "row_sums": lambda side: tiles(side, 1, (8, 1), (32, 8)),
    "column_sums": lambda side: grid_of(side // 128, 128),
    "matrix_vector": lambda side: tiles(side, 1, (8, 1), (32, 8)),
    "strided": lambda side: flat(side * side // 8, 256),
    "scattered": lambda side: flat(side * side, 256),
}


def _on_square(shape: Callable[[int], Shape]) -> Build:
    return lambda side: (shape(side), [fractions(side, side), fractions(side, side), side])


for _kernel, _shape in SQUARES.items():
    TIMED.append(
        Declared(
            kernel=_kernel,
            file=TRAFFIC,
            build=_on_square(_shape),
            sizes=((1024,), (4096,), (8192,)) if _kernel == "copy_wide" else ((1024,), (4096,)),
            small=(128,),
            error=LAST_BITS if _kernel == "softmax" else 0.0,
        )
    )

# The corpus: (float* out, const float* in, int width, int height), by tiles of 32 columns.

PLANES: Mapping[str, tuple[int, Sequence[Size]]] = {  # rows of a tile, and sizes
    "transpose_naive": (8, [(3000, 2999)]),
    "transpose_tiled": (32, [(2048, 2048), (4096, 4096)]),
    "transpose_padded": (32, [(2048, 2048), (4095, 4093)]),
    "copy_rows": (32, [(4096, 4096)]),
    "stencil_clamped": (8, [(4000, 3999)]),
    "stencil_zero_edges": (8, [(2048, 2048), (4000, 3999)]),
}


def _on_plane(rows: int) -> Build:
    def build(width: int, height: int) -> Built:
        shape = tiles(width, height, (32, rows), (32, 8))
        return shape, [blank(width * height), fractions(height, width), width, height]

    return build


for _kernel, (_rows, _sizes) in PLANES.items():
    TIMED.append(
        Declared(
            kernel=_kernel,
            file=FILES[_kernel],
            build=_on_plane(_rows),
            sizes=tuple(_sizes),
            small=(70, 45),
        )
    )


def timed(
    *sizes: Size,
    small: Size,
    file: str | None = None,
    label: str = "{}",
    error: float = 0.0,
    dynamic_shared_bytes: int = 0,
) -> Callable[[Build], Build]:
    """Add the kernel that is called like the function, by default of the corpus."""

    def add(build: Build) -> Build:
        TIMED.append(
            Declared(
                kernel=build.__name__,
                file=file or FILES[build.__name__],
                build=build,
                sizes=sizes,
                small=small,
                label=label,
                error=error,
                dynamic_shared_bytes=dynamic_shared_bytes,
            )
        )
        return build

    return add


@timed((256,), small=(20,))
def laplacian_3d(side: int) -> Built:
    grid = -(-side // 32), -(-side // 4), -(-side // 2)
    return (grid, (32, 4, 2)), [blank(side**3), fractions(side**3), side, side, side]


@timed((1 << 24,), small=(1000,))
def convolve_halo(n: int) -> Built:
    return flat(n), [blank(n), fractions(n), fractions(9), n]


@timed((1 << 20, 264), (1 << 25, 1056), small=(5000, 3))
def block_sum(n: int, blocks: int) -> Built:
    """Integers, whose sums are exact in any order."""
    return grid_of(blocks, 256), [
        blank(blocks),
        lambda g: g.integers(-3, 4, n, int8).astype(float32),
        n,
    ]


@timed((1 << 24,), small=(5000,), dynamic_shared_bytes=1024)
def tree_max(n: int) -> Built:
    least = np.full(1, -(2**31), int32)
    return flat(n, 256), [least, native_integers(-(2**31), 2**31, n, int32), n]


@timed((8192, 1024), small=(20, 100), label="{}x{}", error=LAST_BITS)
def softmax_rows(rows: int, columns: int) -> Built:
    shape = tiles(rows, 1, (8, 1), (32, 8))
    return shape, [blank(rows * columns), fractions(rows, columns), rows, columns]


@timed((1 << 23, 528), small=(5000, 3), error=LAST_BITS)
def dot_double(n: int, blocks: int) -> Built:
    return grid_of(blocks, 256), lambda g: [np.zeros(1), g.random(n), g.random(n), n]


@timed((1 << 20,), (1 << 24,), small=(2048,))
def scan_blocks(n: int) -> Built:
    return flat(n, 256), [blank(n, int32), native_integers(-99, 100, n, int32), n]


@timed((1 << 14,), small=(300,))
def rank_sort(n: int) -> Built:
    return flat(n, 64), [blank(n), fractions(n), n]


@timed((1 << 25, 1056), small=(20000, 3))
def histogram_shared(n: int, blocks: int) -> Built:
    return grid_of(blocks, 256), [np.zeros(256, uint32), native_integers(0, 256, n, uint8), n]


@timed((1 << 20,), small=(300,))
def collatz(n: int) -> Built:
    return flat(n), [blank(n, int32), native_integers(1, 113_383, n, uint32), n]


@timed((1024, 200), small=(40, 30))
def mandelbrot(side: int, limit: int) -> Built:
    scalars = float32(-2.0), float32(-1.25), float32(2.5 / side), int32(limit)
    return tiles(side, side, (32, 8)), [blank(side * side, int32), side, side, *scalars]


@timed((1 << 20, 1 << 22), small=(1000, 300), label="{1} in {0}")
def lower_bound(n: int, m: int) -> Built:
    return flat(m), [
        blank(m, int32),
        lambda g: np.sort(g.integers(0, 2**30, n, int32)),
        n,
        native_integers(0, 2**30, m, int32),
        m,
    ]


@timed((1 << 20,), small=(300,))
def gcd(n: int) -> Built:
    one, other = (native_integers(1, 2**32, n, uint32) for _ in range(2))
    return flat(n), [blank(n, uint32), one, other, n]


# Beside this file.


@timed((1 << 20, 8), (1 << 20, 32), small=(500, 32), file=OWN, label="{} by {}")
def strided_store(n: int, stride: int) -> Built:
    return flat(n, 256), [blank(n * stride), fractions(n), n, stride]


@timed((1 << 20,), (1 << 25,), small=(2048,), file=OWN)
def saxpy_wide(n: int) -> Built:
    return flat(n // 4, 256), [fractions(n), fractions(n), float32(1.5), n // 4]


def _elements(n: int) -> Arguments:
    return [blank(n), fractions(n), n]


@timed((1 << 22,), small=(1000,), file=OWN)
def polynomial(n: int) -> Built:
    return flat(n, 256), _elements(n)


@timed((1 << 22,), small=(1000,), file=OWN, error=LAST_BITS)
def oscillators(n: int) -> Built:
    return flat(n, 256), _elements(n)


@timed((1 << 22,), small=(1000,), file=OWN)
def remainders(n: int) -> Built:
    values = native_integers(0, 2**32, n, uint32)
    return flat(n, 256), [blank(n, uint32), values, n, uint32(1_000_003)]


@timed((1 << 18, 64), (1 << 22, 16), small=(500, 8), file=OWN, label="{} by {}")
def wander(n: int, steps: int) -> Built:
    return flat(n, 128), [blank(n, uint32), lambda g: g.permutation(n).astype(uint32), n, steps]


LAUNCHES = tuple(case for one in TIMED for case in one.cases)
SMALL = tuple(one.small_case for one in TIMED)
