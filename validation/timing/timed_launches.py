"""Launches whose times are compared with hardware: kernels of traffic/, of the corpus, and others.

Each is a `Case` of the corpus: source, grid, block, seeded arguments and what must come out. One
table gives their sizes: `LAUNCHES` run 5 µs to 5 ms on a large GPU, `SMALL` are the same kernels
at sizes that the simulator takes at once. All are compiled with `OPTIONS`, for `rng()`'s numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import float32, float64, int8, int32, uint8, uint32
from numpy.random import Generator

from validation.corpus import cases_control, cases_memory, cases_warps
from validation.corpus.case import (
    Array,
    Case,
    Expected,
    Given,
    Make,
    Near,
    Outcome,
    Outcomes,
    Shape,
    blank,
    flat,
    fractions,
    grid_of,
    launched,
    native_integers,
    tiles,
)

SEED = 20
OPTIONS = ("-lineinfo",)
TRAFFIC, OWN = "../traffic/kernels.cu", "../timing/kernels.cu"
EPSILON = float(np.finfo(float32).eps)


def rng() -> Generator:
    """The generator of every launch's arguments."""
    return np.random.default_rng(SEED)


def _case(
    kernel: str, file: str, shape: Shape, make: Make, expected: Expected, label: object
) -> Case:
    return launched(kernel, shape, make, expected, name=f"{kernel} {label}", file=file)


def _of_corpus(
    case: Case,
    label: object,
    make: Make,
    shape: Shape | None = None,
    expected: Expected | None = None,
) -> Case:
    """A case of the corpus with other arguments."""
    return launched(
        case.kernel,
        shape or (case.grid, case.block),
        make,
        expected or case.expected,
        name=f"{case.kernel} {label}",
        file=case.file,
        dynamic_shared_bytes=case.dynamic_shared_bytes,
    )


# validation/traffic: (float* out, const float* in, int n) on a square matrix.


def _square(
    name: str,
    expected: Callable[[Array, Array], Outcome],
    grids: Callable[[int], Shape],
) -> Callable[[int], Case]:
    """`expected(before, matrix)` is what stands in the output, of as many elements as it has."""

    def build(side: int) -> Case:
        return _case(
            name,
            TRAFFIC,
            grids(side),
            [
                fractions(side, side),
                fractions(side, side),
                side,
            ],
            lambda args: expected(args[0], args[1]),
            side,
        )

    return build


def _flat_square(per_thread: int) -> Callable[[int], Shape]:
    return lambda side: flat(side * side // per_thread, 256)


def _tiled_square(height: int) -> Callable[[int], Shape]:
    return lambda side: tiles(side, side, (32, height), (32, 8))


def _rows_of_warps(side: int) -> Shape:
    return (side // 8, 1, 1), (32, 8, 1)


def _head(before: Array, value: Array, error: float) -> Near:
    """The first elements are new, the rest is as before."""
    whole = before.ravel().astype(float64)
    whole[: value.size] = value.ravel()
    return Near(value=whole, error=error)


def _around(a: Array) -> Array:
    """Sum of the four neighbours in double precision; beyond an edge is the element itself."""
    padded = np.pad(a.astype(float64), 1, mode="edge")
    around: Array = padded[1:-1, :-2] + padded[1:-1, 2:] + padded[:-2, 1:-1] + padded[2:, 1:-1]
    return around


def _cross(_: Array, a: Array) -> Near:
    return Near(value=a.astype(float64) + 0.1 * _around(a), error=16 * EPSILON)


def _softmax(a: Array) -> Near:
    shifted = np.exp(a.astype(float64) - a.max(axis=1, keepdims=True))
    return Near(value=shifted / shifted.sum(axis=1, keepdims=True), error=1e-5)


def _scattered(_: Array, a: Array) -> Array:
    index = np.arange(a.size, dtype=uint32) * uint32(2654435761) & uint32(a.size - 1)
    picked: Array = a.ravel()[index]
    return picked


def _sums(before: Array, sums: Array, terms: int) -> Near:
    return _head(before, sums, error=terms * EPSILON * float(np.max(np.abs(sums))))


copy = _square("copy", lambda _, a: a, _flat_square(1))
copy_wide = _square("copy_wide", lambda _, a: a, _flat_square(4))
axpy = _square(
    "axpy",
    lambda y, a: Near(value=y + 2.0 * a.astype(float64), error=4 * EPSILON),
    _flat_square(1),
)
transpose_plain = _square("transpose_plain", lambda _, a: a.T, _tiled_square(8))
transpose_padded = _square("transpose_padded", lambda _, a: a.T, _tiled_square(32))
stencil = _square("stencil", _cross, _tiled_square(8))
softmax = _square("softmax", lambda _, a: _softmax(a), lambda side: ((side, 1, 1), (256, 1, 1)))
row_sums = _square(
    "row_sums", lambda y, a: _sums(y, a.sum(axis=1, dtype=float64), 64), _rows_of_warps
)
column_sums = _square(
    "column_sums",
    lambda y, a: _sums(y, a.sum(axis=0, dtype=float64), len(a)),
    lambda side: ((side // 128, 1, 1), (128, 1, 1)),
)
matrix_vector = _square(
    "matrix_vector",
    lambda y, a: _sums(y, a.astype(float64) @ a[0].astype(float64), 64),
    _rows_of_warps,
)
strided = _square("strided", lambda y, a: _head(y, a.ravel()[::8], error=0.0), _flat_square(8))
scattered = _square("scattered", _scattered, _flat_square(1))


# The corpus.


def _plane(
    case: Callable[[int, int], Case],
    shape: Callable[[int, int], Shape] | None = None,
    expected: Callable[[Array], Outcome] | None = None,
) -> Callable[[int, int], Case]:
    """(float* out, const float* in, int width, int height)."""

    def build(width: int, height: int) -> Case:
        return _of_corpus(
            case(width, height),
            f"{width}x{height}",
            [
                blank(width * height), fractions(height, width),
                width, height,
            ],
            shape and shape(width, height),
            expected and (lambda args: expected(args[1])),
        )  # fmt: skip

    return build


def _transpose(kind: str) -> Callable[[int, int], Case]:
    return _plane(lambda width, height: cases_memory.transpose(kind, width, height))


def _stencil(kind: str, expected: Callable[[Array], Outcome]) -> Callable[[int, int], Case]:
    return _plane(
        lambda width, height: cases_memory.stencil(kind, width, height),
        lambda width, height: tiles(width, height, (32, 8)),
        expected,
    )


def _clamped(a: Array) -> Near:
    return Near(value=0.5 * a.astype(float64) + 0.125 * _around(a), error=8 * EPSILON)


def _box(a: Array) -> Near:
    height, width = a.shape
    padded = np.pad(a.astype(float64), 1)
    total = sum(padded[dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3))
    return Near(value=np.asarray(total), error=64 * EPSILON)


corpus_transpose_plain = _transpose("naive")
corpus_transpose_tiled = _transpose("tiled")
corpus_transpose_padded = _transpose("padded")
copy_rows = _plane(cases_memory.copy_rows)
stencil_clamped = _stencil("clamped", _clamped)
stencil_zero_edges = _stencil("zero_edges", _box)


def laplacian_3d(side: int) -> Case:
    def expected(args: Given) -> Outcome:
        a = np.asarray(args[1], float64).reshape(side, side, side)
        out = a.copy()
        inner = (slice(1, -1),) * 3
        out[inner] = -6 * a[inner]
        for axis in range(3):
            out[inner] += (np.roll(a, 1, axis) + np.roll(a, -1, axis))[inner]
        return Near(value=out.ravel(), error=64 * EPSILON)

    grid = -(-side // 32), -(-side // 4), -(-side // 2)
    return _of_corpus(
        cases_memory.laplacian(side, side, side),
        side,
        [blank(side**3), fractions(side**3), side, side, side],
        (grid, (32, 4, 2)),
        expected,
    )


def convolve_halo(n: int) -> Case:
    def expected(args: Given) -> Outcome:
        _, values, weights, _ = args
        padded = np.pad(values.astype(float64), 4)
        out = sum(float(w) * padded[j : j + n] for j, w in enumerate(weights))
        return Near(value=np.asarray(out), error=32 * EPSILON)

    return _of_corpus(
        cases_memory.convolve(n),
        n,
        [blank(n), fractions(n), fractions(9), n],
        expected=expected,
    )


def block_sum(n: int, blocks: int) -> Case:
    """Integers, whose sums are exact in any order."""

    return _of_corpus(
        cases_warps.block_sum(n, blocks, 256),
        n,
        [blank(blocks), lambda g: g.integers(-3, 4, n, int8).astype(float32), n],
        expected=lambda args: cases_warps.grid_stride_sums(args[1], blocks, 256)[0].astype(float32),
    )


def tree_max(n: int) -> Case:
    return _of_corpus(
        cases_warps.tree_max(n, 256),
        n,
        [np.full(1, -(2**31), int32), native_integers(-(2**31), 2**31, n, int32), n],
    )


def softmax_rows(rows: int, columns: int) -> Case:
    return _of_corpus(
        cases_warps.softmax(rows, columns),
        f"{rows}x{columns}",
        [
            blank(rows * columns), fractions(rows, columns), rows, columns
        ],
        tiles(rows, 1, (8, 1), (32, 8)),
        lambda args: _softmax(args[1]),
    )  # fmt: skip


def dot_double(n: int, blocks: int) -> Case:
    return _of_corpus(
        cases_warps.dot_double(n),
        n,
        lambda g: [np.zeros(1), g.random(n), g.random(n), n],
        grid_of(blocks, 256),
        lambda args: Near(value=np.array([args[1] @ args[2]]), error=1e-12 * n),
    )


def scan_blocks(n: int) -> Case:
    return _of_corpus(
        cases_warps.scan_blocks(n),
        n,
        [blank(n, int32), native_integers(-99, 100, n, int32), n],
    )


def rank_sort(n: int) -> Case:
    return _of_corpus(cases_warps.rank_sort(n), n, [blank(n), fractions(n), n])


def histogram_shared(n: int, blocks: int) -> Case:
    return _of_corpus(
        cases_warps.histogram_shared(n, blocks),
        n,
        [np.zeros(256, uint32), native_integers(0, 256, n, uint8), n],
        grid_of(blocks, 256),
    )


def collatz(n: int) -> Case:
    return _of_corpus(
        cases_control.collatz(n),
        n,
        [blank(n, int32), native_integers(1, 113_383, n, uint32), n],
    )


def mandelbrot(side: int, limit: int) -> Case:
    scalars = float32(-2.0), float32(-1.25), float32(2.5 / side), int32(limit)
    return _of_corpus(
        cases_control.mandelbrot(side, side, limit),
        side,
        [blank(side * side, int32), side, side, *scalars],
        tiles(side, side, (32, 8)),
    )


def lower_bound(n: int, m: int) -> Case:
    return _of_corpus(
        cases_control.lower_bound(n, m),
        f"{m} in {n}",
        [
            blank(m, int32), lambda g: np.sort(g.integers(0, 2**30, n, int32)), n,
            native_integers(0, 2**30, m, int32), m,
        ],
    )  # fmt: skip


def gcd(n: int) -> Case:
    return _of_corpus(
        cases_control.gcd(n),
        n,
        [
            blank(n, uint32), native_integers(1, 2**32, n, uint32),
            native_integers(1, 2**32, n, uint32), n,
        ],
        flat(n),
    )  # fmt: skip


# Beside this file.


def strided_store(n: int, stride: int) -> Case:
    def expected(args: Given) -> Outcome:
        out = np.array(args[0])
        out[:: int(args[3])] = args[1]
        return out

    return _case(
        "strided_store",
        OWN,
        flat(n, 256),
        [
            blank(n * stride), fractions(n), n, stride
        ],
        expected,
        f"{n} by {stride}",
    )  # fmt: skip


def saxpy_wide(n: int) -> Case:
    def expected(args: Given) -> Outcome:
        y, x, a, _ = args
        exact = np.asarray(y, float64) + float(a) * np.asarray(x, float64)
        return Near(value=exact, error=4 * EPSILON)

    return _case(
        "saxpy_wide",
        OWN,
        flat(n // 4, 256),
        [
            fractions(n), fractions(n), float32(1.5), n // 4
        ],
        expected,
        n,
    )  # fmt: skip


def _elementwise(name: str, expected: Callable[[Array], Outcome]) -> Callable[[int], Case]:
    """(float* out, const float* in, int n) with numbers from 0 to 1."""

    def build(n: int) -> Case:
        return _case(
            name,
            OWN,
            flat(n, 256),
            [blank(n), fractions(n), n],
            lambda args: expected(args[1].astype(float64)),
            n,
        )

    return build


def _horner(x: Array) -> Near:
    exact = 0.5 * (1 - x**256) / (1 - x)
    return Near(value=exact, error=256 * EPSILON * exact)


def _waves(x: Array) -> Near:
    exact = sum(np.sin(x + 0.125 * k) * np.exp(-x - 0.125 * k) for k in range(32))
    return Near(value=np.asarray(exact), error=1e-4)


polynomial = _elementwise("polynomial", _horner)
oscillators = _elementwise("oscillators", _waves)


def remainders(n: int) -> Case:
    def expected(args: Given) -> Outcomes:
        x, divisor = args[1], int(args[3])
        for k in range(8):
            x = x * uint32(2654435761) % uint32(divisor + k)
        return [x]

    return _case(
        "remainders",
        OWN,
        flat(n, 256),
        [
            blank(n, uint32),
            native_integers(0, 2**32, n, uint32),
            n,
            uint32(1_000_003),
        ],
        expected,
        n,
    )


def wander(n: int, steps: int) -> Case:
    def expected(args: Given) -> Outcome:
        following = args[1]
        at = np.arange(n, dtype=uint32)
        for _ in range(steps):
            at = following[at]
        return at

    return _case(
        "wander",
        OWN,
        flat(n, 128),
        [
            blank(n, uint32),
            lambda g: g.permutation(n).astype(uint32),
            n,
            steps,
        ],
        expected,
        f"{n} by {steps}",
    )


Size = tuple[int, ...]
SQUARES = ((1024,), (4096,)), (128,)  # sides
# (what builds it, sizes that are timed, a size for the simulator)
TABLE: tuple[tuple[Callable[..., Case], tuple[Size, ...], Size], ...] = (
    (copy, *SQUARES),
    (copy_wide, ((1024,), (4096,), (8192,)), (128,)),
    (axpy, *SQUARES),
    (transpose_plain, *SQUARES),
    (transpose_padded, *SQUARES),
    (stencil, *SQUARES),
    (softmax, *SQUARES),
    (row_sums, *SQUARES),
    (column_sums, *SQUARES),
    (matrix_vector, *SQUARES),
    (strided, *SQUARES),
    (scattered, *SQUARES),
    (corpus_transpose_plain, ((3000, 2999),), (70, 45)),
    (corpus_transpose_tiled, ((2048, 2048), (4096, 4096)), (70, 45)),
    (corpus_transpose_padded, ((2048, 2048), (4095, 4093)), (70, 45)),
    (copy_rows, ((4096, 4096),), (70, 45)),
    (stencil_clamped, ((4000, 3999),), (70, 45)),
    (stencil_zero_edges, ((2048, 2048), (4000, 3999)), (70, 45)),
    (laplacian_3d, ((256,),), (20,)),
    (convolve_halo, ((1 << 24,),), (1000,)),
    (block_sum, ((1 << 20, 264), (1 << 25, 1056)), (5000, 3)),
    (tree_max, ((1 << 24,),), (5000,)),
    (softmax_rows, ((8192, 1024),), (20, 100)),
    (dot_double, ((1 << 23, 528),), (5000, 3)),
    (scan_blocks, ((1 << 20,), (1 << 24,)), (2048,)),
    (rank_sort, ((1 << 14,),), (300,)),
    (histogram_shared, ((1 << 25, 1056),), (20000, 3)),
    (collatz, ((1 << 20,),), (300,)),
    (mandelbrot, ((1024, 200),), (40, 30)),
    (lower_bound, ((1 << 20, 1 << 22),), (1000, 300)),
    (gcd, ((1 << 20,),), (300,)),
    (strided_store, ((1 << 20, 8), (1 << 20, 32)), (500, 32)),
    (saxpy_wide, ((1 << 20,), (1 << 25,)), (2048,)),
    (polynomial, ((1 << 22,),), (1000,)),
    (oscillators, ((1 << 22,),), (1000,)),
    (remainders, ((1 << 22,),), (1000,)),
    (wander, ((1 << 18, 64), (1 << 22, 16)), (500, 8)),
)  # fmt: skip

LAUNCHES = tuple(build(*size) for build, sizes, _ in TABLE for size in sizes)
SMALL = tuple(build(*size) for build, _, size in TABLE)
