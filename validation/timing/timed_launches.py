"""Launches whose times are compared with hardware: kernels of traffic/, of the corpus, and others.

Each is a `Case` of the corpus: source, grid, block, seeded arguments and what must come out. One
table gives their sizes: `LAUNCHES` run 5 µs to 5 ms on a large GPU, `SMALL` are the same kernels
at sizes that the simulator takes at once. All are compiled with `OPTIONS`, for `rng()`'s numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from validation.corpus.case import Argument, Case, Near, Outcome, blank, flat, tiles

SEED = 20
OPTIONS = ("-lineinfo",)
TRAFFIC, OWN = "../traffic/kernels.cu", "../timing/kernels.cu"
EPSILON = float(np.finfo(np.float32).eps)

Extent = tuple[int, int, int]
Make = Callable[[np.random.Generator], list[Argument]]
Expected = Callable[[list[Argument]], list[Outcome]]


def rng() -> np.random.Generator:
    """The generator of every launch's arguments."""
    return np.random.default_rng(SEED)


def _random(generator: np.random.Generator, *shape: int) -> NDArray:
    return generator.random(shape, dtype=np.float32)


def _case(
    name: str,
    file: str,
    size: tuple[Extent, Extent],
    make: Make,
    expected: Expected,
    *,
    label: object,
    dynamic: int = 0,
) -> Case:
    return Case(
        name=f"{name} {label}",
        file=file,
        kernel=name,
        grid=size[0],
        block=size[1],
        make=make,
        expected=expected,
        dynamic_shared_bytes=dynamic,
    )


# validation/traffic: (float* out, const float* in, int n) on a square matrix.


def _square(
    name: str,
    expected: Callable[[NDArray, NDArray], Outcome],
    grids: Callable[[int], tuple[Extent, Extent]],
) -> Callable[[int], Case]:
    """`expected(before, matrix)` is what stands in the output, of as many elements as it has."""

    def build(side: int) -> Case:
        return _case(
            name,
            TRAFFIC,
            grids(side),
            lambda generator: [
                _random(generator, side, side),
                _random(generator, side, side),
                np.int32(side),
            ],
            lambda arguments: [expected(arguments[0], arguments[1])],
            label=side,
        )

    return build


def _flat_square(per_thread: int) -> Callable[[int], tuple[Extent, Extent]]:
    return lambda side: flat(side * side // per_thread, 256)


def _tiled_square(height: int) -> Callable[[int], tuple[Extent, Extent]]:
    return lambda side: tiles(side, side, (32, height), (32, 8))


def _rows_of_warps(side: int) -> tuple[Extent, Extent]:
    return (side // 8, 1, 1), (32, 8, 1)


def _head(before: NDArray, value: NDArray, error: float) -> Near:
    """The first elements are new, the rest is as before."""
    whole = before.ravel().astype(np.float64)
    whole[: value.size] = value.ravel()
    return Near(value=whole, error=error)


def _cross(_: NDArray, a: NDArray) -> Near:
    a = a.astype(np.float64)
    padded = np.pad(a, 1, mode="edge")
    around = padded[1:-1, :-2] + padded[1:-1, 2:] + padded[:-2, 1:-1] + padded[2:, 1:-1]
    return Near(value=a + 0.1 * around, error=16 * EPSILON)


def _softmax(a: NDArray) -> Near:
    shifted = np.exp(a.astype(np.float64) - a.max(axis=1, keepdims=True))
    return Near(value=shifted / shifted.sum(axis=1, keepdims=True), error=1e-5)


def _scattered(_: NDArray, a: NDArray) -> NDArray:
    index = np.arange(a.size, dtype=np.uint32) * np.uint32(2654435761) & np.uint32(a.size - 1)
    return a.ravel()[index]


def _sums(before: NDArray, sums: NDArray, terms: int) -> Near:
    return _head(before, sums, error=terms * EPSILON * float(np.max(np.abs(sums))))


copy = _square("copy", lambda _, a: a, _flat_square(1))
copy_wide = _square("copy_wide", lambda _, a: a, _flat_square(4))
axpy = _square(
    "axpy",
    lambda y, a: Near(value=y + 2.0 * a.astype(np.float64), error=4 * EPSILON),
    _flat_square(1),
)
transpose_plain = _square("transpose_plain", lambda _, a: a.T, _tiled_square(8))
transpose_padded = _square("transpose_padded", lambda _, a: a.T, _tiled_square(32))
stencil = _square("stencil", _cross, _tiled_square(8))
softmax = _square("softmax", lambda _, a: _softmax(a), lambda side: ((side, 1, 1), (256, 1, 1)))
row_sums = _square(
    "row_sums", lambda y, a: _sums(y, a.sum(axis=1, dtype=np.float64), 64), _rows_of_warps
)
column_sums = _square(
    "column_sums",
    lambda y, a: _sums(y, a.sum(axis=0, dtype=np.float64), len(a)),
    lambda side: ((side // 128, 1, 1), (128, 1, 1)),
)
matrix_vector = _square(
    "matrix_vector",
    lambda y, a: _sums(y, a.astype(np.float64) @ a[0].astype(np.float64), 64),
    _rows_of_warps,
)
strided = _square("strided", lambda y, a: _head(y, a.ravel()[::8], error=0.0), _flat_square(8))
scattered = _square("scattered", _scattered, _flat_square(1))


# The corpus.


def _plane(
    name: str,
    file: str,
    expected: Callable[[NDArray], Outcome],
    tile: tuple[int, int],
    block: tuple[int, int] | None = None,
) -> Callable[[int, int], Case]:
    """(float* out, const float* in, int width, int height)."""

    def build(width: int, height: int) -> Case:
        return _case(
            name,
            file,
            tiles(width, height, tile, block),
            lambda generator: [
                blank(width * height, np.float32),
                _random(generator, height, width),
                np.int32(width),
                np.int32(height),
            ],
            lambda arguments: [expected(arguments[1])],
            label=f"{width}x{height}",
        )

    return build


def _clamped(a: NDArray) -> Near:
    a = a.astype(np.float64)
    padded = np.pad(a, 1, mode="edge")
    around = padded[1:-1, :-2] + padded[1:-1, 2:] + padded[:-2, 1:-1] + padded[2:, 1:-1]
    return Near(value=0.5 * a + 0.125 * around, error=8 * EPSILON)


def _box(a: NDArray) -> Near:
    height, width = a.shape
    padded = np.pad(a.astype(np.float64), 1)
    total = sum(padded[dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3))
    return Near(value=np.asarray(total), error=64 * EPSILON)


corpus_transpose_plain = _plane("transpose_naive", "transpose.cu", lambda a: a.T.copy(), (32, 8))
corpus_transpose_tiled = _plane(
    "transpose_tiled", "transpose.cu", lambda a: a.T.copy(), (32, 32), (32, 8)
)
corpus_transpose_padded = _plane(
    "transpose_padded", "transpose.cu", lambda a: a.T.copy(), (32, 32), (32, 8)
)
copy_rows = _plane("copy_rows", "transpose.cu", lambda a: a, (32, 32), (32, 8))
stencil_clamped = _plane("stencil_clamped", "stencil.cu", _clamped, (32, 8))
stencil_zero_edges = _plane("stencil_zero_edges", "stencil.cu", _box, (32, 8))


def laplacian_3d(side: int) -> Case:
    def expected(arguments: list[Argument]) -> list[Outcome]:
        a = np.asarray(arguments[1], np.float64).reshape(side, side, side)
        out = a.copy()
        inner = (slice(1, -1),) * 3
        out[inner] = -6 * a[inner]
        for axis in range(3):
            out[inner] += (np.roll(a, 1, axis) + np.roll(a, -1, axis))[inner]
        return [Near(value=out.ravel(), error=64 * EPSILON)]

    sizes = [np.int32(side)] * 3
    grid = -(-side // 32), -(-side // 4), -(-side // 2)
    return _case(
        "laplacian_3d",
        "stencil.cu",
        (grid, (32, 4, 2)),
        lambda generator: [blank(side**3, np.float32), _random(generator, side**3), *sizes],
        expected,
        label=side,
    )


def convolve_halo(n: int) -> Case:
    def expected(arguments: list[Argument]) -> list[Outcome]:
        _, values, weights, _ = arguments
        padded = np.pad(np.asarray(values, np.float64), 4)
        out = sum(float(w) * padded[j : j + n] for j, w in enumerate(np.asarray(weights)))
        return [Near(value=np.asarray(out), error=32 * EPSILON)]

    return _case(
        "convolve_halo",
        "stencil.cu",
        flat(n, 128),
        lambda generator: [
            blank(n, np.float32), _random(generator, n), _random(generator, 9), np.int32(n)
        ],
        expected,
        label=n,
    )  # fmt: skip


def block_sum(n: int, blocks: int) -> Case:
    """Integers, whose sums are exact in any order."""

    def expected(arguments: list[Argument]) -> list[Outcome]:
        values = np.asarray(arguments[1])
        rounds = -(-n // (256 * blocks))
        whole = np.zeros(rounds * 256 * blocks, np.float32)
        whole[:n] = values
        sums = whole.reshape(rounds, blocks, 256).sum(axis=(0, 2), dtype=np.float64)
        return [sums.astype(np.float32)]

    return _case(
        "block_sum",
        "reduce.cu",
        ((blocks, 1, 1), (256, 1, 1)),
        lambda generator: [
            blank(blocks, np.float32),
            generator.integers(-3, 4, n, np.int8).astype(np.float32),
            np.int32(n),
        ],
        expected,
        label=n,
    )


def tree_max(n: int) -> Case:
    return _case(
        "tree_max",
        "reduce.cu",
        flat(n, 256),
        lambda generator: [
            np.full(1, -(2**31), np.int32),
            generator.integers(-(2**31), 2**31, n, np.int32),
            np.int32(n),
        ],
        lambda arguments: [np.asarray(arguments[1]).max(keepdims=True)],
        label=n,
        dynamic=4 * 256,
    )


def softmax_rows(rows: int, columns: int) -> Case:
    return _case(
        "softmax_rows",
        "reduce.cu",
        ((-(-rows // 8), 1, 1), (32, 8, 1)),
        lambda generator: [
            blank(rows * columns, np.float32),
            _random(generator, rows, columns),
            np.int32(rows),
            np.int32(columns),
        ],
        lambda arguments: [_softmax(np.asarray(arguments[1]))],
        label=f"{rows}x{columns}",
    )


def dot_double(n: int, blocks: int) -> Case:
    def expected(arguments: list[Argument]) -> list[Outcome]:
        _, x, y, _ = map(np.asarray, arguments)
        return [Near(value=np.array([x @ y]), error=1e-12 * n)]

    return _case(
        "dot_double",
        "reduce.cu",
        ((blocks, 1, 1), (256, 1, 1)),
        lambda generator: [
            np.zeros(1), generator.random(n), generator.random(n), np.int32(n)
        ],
        expected,
        label=n,
    )  # fmt: skip


def scan_blocks(n: int) -> Case:
    def expected(arguments: list[Argument]) -> list[Outcome]:
        values = np.asarray(arguments[1]).reshape(-1, 256)
        return [np.cumsum(values, axis=1, dtype=np.int32).ravel()]

    return _case(
        "scan_blocks",
        "scan_sort.cu",
        flat(n, 256),
        lambda generator: [
            blank(n, np.int32), generator.integers(-99, 100, n, np.int32), np.int32(n)
        ],
        expected,
        label=n,
    )  # fmt: skip


def rank_sort(n: int) -> Case:
    return _case(
        "rank_sort",
        "scan_sort.cu",
        flat(n, 64),
        lambda generator: [blank(n, np.float32), _random(generator, n), np.int32(n)],
        lambda arguments: [np.sort(np.asarray(arguments[1]))],
        label=n,
    )


def histogram_shared(n: int, blocks: int) -> Case:
    return _case(
        "histogram_shared",
        "atomics.cu",
        ((blocks, 1, 1), (256, 1, 1)),
        lambda generator: [
            np.zeros(256, np.uint32), generator.integers(0, 256, n, np.uint8), np.int32(n)
        ],
        lambda arguments: [np.bincount(np.asarray(arguments[1]), minlength=256).astype(np.uint32)],
        label=n,
    )  # fmt: skip


def collatz(n: int) -> Case:
    """Starts below 113,383, none of which goes beyond 32 bits."""

    def expected(arguments: list[Argument]) -> list[Outcome]:
        x = np.arange(113_383, dtype=np.uint64)
        steps = np.zeros(len(x), np.int32)
        while (going := x > 1).any():
            x = np.where(going, np.where(x % 2 == 1, 3 * x + 1, x // 2), x)
            steps += going
        return [steps[np.asarray(arguments[1])]]

    return _case(
        "collatz",
        "divergence.cu",
        flat(n, 128),
        lambda generator: [
            blank(n, np.int32), generator.integers(1, 113_383, n, np.uint32), np.int32(n)
        ],
        expected,
        label=n,
    )  # fmt: skip


def mandelbrot(side: int, limit: int) -> Case:
    left, top, step = np.float32(-2.0), np.float32(-1.25), np.float32(2.5 / side)

    def expected(_: list[Argument]) -> list[Outcome]:
        along = np.arange(side).astype(np.float32) * step
        cr, ci = np.tile(left + along, side), np.repeat(top + along, side)
        count, here = np.zeros(side * side, np.int32), np.arange(side * side)
        r, i = np.zeros_like(cr), np.zeros_like(cr)
        for _step in range(limit):
            rr, ii = r * r, i * i
            inside = rr + ii <= np.float32(4)
            here, cr, ci, r, i, rr, ii = (x[inside] for x in (here, cr, ci, r, i, rr, ii))
            i = np.float32(2) * r * i + ci
            r = rr - ii + cr
            count[here] += 1
        return [count]

    return _case(
        "mandelbrot",
        "divergence.cu",
        tiles(side, side, (32, 8)),
        lambda _: [
            blank(side * side, np.int32), np.int32(side), np.int32(side),
            left, top, step, np.int32(limit),
        ],
        expected,
        label=side,
    )  # fmt: skip


def lower_bound(n: int, m: int) -> Case:
    def expected(arguments: list[Argument]) -> list[Outcome]:
        _, table, _, wanted, _ = map(np.asarray, arguments)
        return [np.searchsorted(table, wanted).astype(np.int32)]

    return _case(
        "lower_bound",
        "divergence.cu",
        flat(m, 128),
        lambda generator: [
            blank(m, np.int32),
            np.sort(generator.integers(0, 2**30, n, np.int32)),
            np.int32(n),
            generator.integers(0, 2**30, m, np.int32),
            np.int32(m),
        ],
        expected,
        label=f"{m} in {n}",
    )


def gcd(n: int) -> Case:
    return _case(
        "gcd",
        "divergence.cu",
        flat(n, 128),
        lambda generator: [
            blank(n, np.uint32),
            generator.integers(1, 2**32, n, np.uint32),
            generator.integers(1, 2**32, n, np.uint32),
            np.int32(n),
        ],
        lambda arguments: [np.gcd(np.asarray(arguments[1]), np.asarray(arguments[2]))],
        label=n,
    )


# Beside this file.


def strided_store(n: int, stride: int) -> Case:
    def expected(arguments: list[Argument]) -> list[Outcome]:
        out = np.array(arguments[0])
        out[:: int(arguments[3])] = np.asarray(arguments[1])
        return [out]

    return _case(
        "strided_store",
        OWN,
        flat(n, 256),
        lambda generator: [
            blank(n * stride, np.float32), _random(generator, n), np.int32(n), np.int32(stride)
        ],
        expected,
        label=f"{n} by {stride}",
    )  # fmt: skip


def saxpy_wide(n: int) -> Case:
    def expected(arguments: list[Argument]) -> list[Outcome]:
        y, x, a, _ = arguments
        exact = np.asarray(y, np.float64) + float(a) * np.asarray(x, np.float64)
        return [Near(value=exact, error=4 * EPSILON)]

    return _case(
        "saxpy_wide",
        OWN,
        flat(n // 4, 256),
        lambda generator: [
            _random(generator, n), _random(generator, n), np.float32(1.5), np.int32(n // 4)
        ],
        expected,
        label=n,
    )  # fmt: skip


def _elementwise(name: str, expected: Callable[[NDArray], Outcome]) -> Callable[[int], Case]:
    """(float* out, const float* in, int n) with numbers from 0 to 1."""

    def build(n: int) -> Case:
        return _case(
            name,
            OWN,
            flat(n, 256),
            lambda generator: [blank(n, np.float32), _random(generator, n), np.int32(n)],
            lambda arguments: [expected(np.asarray(arguments[1], np.float64))],
            label=n,
        )

    return build


def _horner(x: NDArray) -> Near:
    exact = 0.5 * (1 - x**256) / (1 - x)
    return Near(value=exact, error=256 * EPSILON * exact)


def _waves(x: NDArray) -> Near:
    exact = sum(np.sin(x + 0.125 * k) * np.exp(-x - 0.125 * k) for k in range(32))
    return Near(value=np.asarray(exact), error=1e-4)


polynomial = _elementwise("polynomial", _horner)
oscillators = _elementwise("oscillators", _waves)


def remainders(n: int) -> Case:
    def expected(arguments: list[Argument]) -> list[Outcome]:
        x, divisor = np.asarray(arguments[1]), int(arguments[3])
        for k in range(8):
            x = x * np.uint32(2654435761) % np.uint32(divisor + k)
        return [x]

    return _case(
        "remainders",
        OWN,
        flat(n, 256),
        lambda generator: [
            blank(n, np.uint32),
            generator.integers(0, 2**32, n, np.uint32),
            np.int32(n),
            np.uint32(1_000_003),
        ],
        expected,
        label=n,
    )


def wander(n: int, steps: int) -> Case:
    def expected(arguments: list[Argument]) -> list[Outcome]:
        following = np.asarray(arguments[1])
        at = np.arange(n, dtype=np.uint32)
        for _ in range(steps):
            at = following[at]
        return [at]

    return _case(
        "wander",
        OWN,
        flat(n, 128),
        lambda generator: [
            blank(n, np.uint32),
            generator.permutation(n).astype(np.uint32),
            np.int32(n),
            np.int32(steps),
        ],
        expected,
        label=f"{n} by {steps}",
    )


Size = tuple[int, ...]
# (what builds it, sizes that are timed, a size for the simulator)
TABLE: tuple[tuple[Callable[..., Case], tuple[Size, ...], Size], ...] = (
    (copy, ((1024,), (4096,)), (128,)),
    (copy_wide, ((1024,), (4096,), (8192,)), (128,)),
    (axpy, ((1024,), (4096,)), (128,)),
    (transpose_plain, ((1024,), (4096,)), (128,)),
    (transpose_padded, ((1024,), (4096,)), (128,)),
    (stencil, ((1024,), (4096,)), (128,)),
    (softmax, ((1024,), (4096,)), (128,)),
    (row_sums, ((1024,), (4096,)), (128,)),
    (column_sums, ((1024,), (4096,)), (128,)),
    (matrix_vector, ((1024,), (4096,)), (128,)),
    (strided, ((1024,), (4096,)), (128,)),
    (scattered, ((1024,), (4096,)), (128,)),
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
