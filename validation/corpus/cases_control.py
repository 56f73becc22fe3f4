"""Cases of control flow and of launches: divergence, calls, arguments, geometries."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from validation.corpus.case import Case, Near, blank, flat, real, small, threads, tiles, words
from validation.corpus.exact import fma, ulps


def wrapped(number: int) -> int:
    """A Python integer as an int of 32 bits."""
    return (number + 2**31) % 2**32 - 2**31


def quotient(a: int, b: int) -> int:
    """a / b as in C: towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return a - b * quotient(a, b)


def ints(values: list[int]) -> NDArray:
    return np.array(values, np.int32)


def collatz(n: int) -> Case:
    def steps(x: int) -> int:
        count = 0
        while x != 1:
            x = 3 * x + 1 if x & 1 else x >> 1
            count += 1
        return count

    grid, block = flat(n)
    return Case(
        name=f"collatz_{n}",
        file="divergence.cu",
        kernel="collatz",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.int32),
            rng.integers(1, 100_000, n).astype(np.uint32),  # below, no step leaves 32 bits
            np.int32(n),
        ],
        expected=lambda a: [ints([steps(x) for x in a[1].tolist()])],
    )


def mandelbrot(width: int, height: int, limit: int) -> Case:
    def make(rng: np.random.Generator) -> list:
        return [
            blank((height, width), np.int32),
            *map(np.int32, (width, height)),
            np.float32(rng.uniform(-2.2, -1.8)),
            np.float32(rng.uniform(-1.3, -1.1)),
            np.float32(3 / width),
            np.int32(limit),
        ]

    def expected(args: list) -> list:
        left, top, step = args[3:6]
        cr = np.broadcast_to(left + np.arange(width, dtype=np.float32) * step, (height, width))
        ci = (top + np.arange(height, dtype=np.float32) * step)[:, None]
        r, i = np.zeros((2, height, width), np.float32)
        count, going = np.zeros((height, width), np.int32), np.ones((height, width), bool)
        for _ in range(limit):
            rr, ii = r * r, i * i
            going &= ~(rr + ii > 4)
            i, r = np.float32(2) * r * i + ci, (rr - ii) + cr
            count += going
        return [count]

    grid, block = tiles(width, height, (16, 8))
    return Case(
        name=f"mandelbrot_{width}x{height}",
        file="divergence.cu",
        kernel="mandelbrot",
        grid=grid,
        block=block,
        make=make,
        expected=expected,
    )


def lower_bound(n: int, m: int) -> Case:
    grid, block = flat(m)
    return Case(
        name=f"lower_bound_{m}_in_{n}",
        file="divergence.cu",
        kernel="lower_bound",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(m, np.int32),
            np.sort(rng.integers(0, 2 * n, n)).astype(np.int32),
            np.int32(n),
            rng.integers(-5, 2 * n + 5, m).astype(np.int32),
            np.int32(m),
        ],
        expected=lambda a: [np.searchsorted(a[1], a[3]).astype(np.int32)],
    )


def early_exits(n: int, block: int) -> Case:
    def one(x: int, thread: int) -> int:
        if x < 0:
            return 1
        if thread % 7 == 3:
            return 2
        value = 3 if x > 700 else 2
        if thread & 1:
            if x % 3 == 0:
                return value
            value = 4
        return value + 10

    grid, extent = flat(n, block)
    return Case(
        name=f"early_exits_{n}_by_{block}",
        file="divergence.cu",
        kernel="early_exits",
        grid=grid,
        block=extent,
        make=lambda rng: [
            blank(n, np.int32),
            rng.integers(-300, 1300, n).astype(np.int32),
            np.int32(n),
        ],
        expected=lambda a: [ints([one(x, i % block) for i, x in enumerate(a[1].tolist())])],
    )


def jump_table(n: int) -> Case:
    def loop(x: int) -> int:
        for j in range(5):
            x = wrapped(x * 3 + j)
        return x

    def one(selector: int, x: int) -> int:
        branches = {
            0: lambda: x + 17,
            1: lambda: x * x,
            2: lambda: (x ^ 0x5A5A) - 3,
            3: lambda: x - 3,
            4: lambda: x << 3 | 5,
            5: lambda: loop(x),
            6: lambda: quotient(x, 7),
            7: lambda: -x,
            8: lambda: 99,
            9: (x & 0xFFFFFFFF).bit_count,
            10: lambda: remainder(x, 11),
            11: lambda: ~x,
        }
        return wrapped(branches[selector]()) if selector in branches else 0

    grid, block = flat(n)
    return Case(
        name=f"jump_table_{n}",
        file="divergence.cu",
        kernel="jump_table",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.int32),
            rng.integers(-2, 15, n).astype(np.int32),
            words(rng, n, np.int32) >> 1,
            np.int32(n),
        ],
        expected=lambda a: [
            ints([one(s, x) for s, x in zip(a[1].tolist(), a[2].tolist(), strict=True)])
        ],
    )


def nested_breaks(n: int) -> Case:
    def one(x: int) -> int:
        total = 0
        for j in range(12):
            if (x + j) % 5 == 0:
                continue
            for k in range(8):
                if k * j > (x & 31):
                    break
                if (k ^ x) & 4:
                    continue
                total += j * k + 1
                if total > 90:
                    return total
            if total % 7 == 6:
                break
            total += 2
        return total

    grid, block = flat(n)
    return Case(
        name=f"nested_breaks_{n}",
        file="divergence.cu",
        kernel="nested_breaks",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.int32),
            rng.integers(0, 10_000, n).astype(np.int32),
            np.int32(n),
        ],
        expected=lambda a: [ints([one(x) for x in a[1].tolist()])],
    )


def uniform_barrier_loop(blocks: int, block: int) -> Case:
    def expected(args: list) -> list:
        mine = args[1].reshape(blocks, block)
        columns = [
            (mine * (mine + 1) // 2).sum(axis=1),
            (mine > 2).all(axis=1),
            (mine > 4).sum(axis=1),
        ]
        return [np.stack(columns, 1).astype(np.int32)]

    def make(rng: np.random.Generator) -> list:
        counts = rng.integers(0, 9, blocks * block).astype(np.int32)
        counts[:block] |= 4  # so that all of one block are above 2
        return [blank((blocks, 3), np.int32), counts]

    return Case(
        name=f"uniform_barrier_loop_{blocks}x{block}",
        file="divergence.cu",
        kernel="uniform_barrier_loop",
        grid=(blocks, 1, 1),
        block=(block, 1, 1),
        make=make,
        expected=expected,
    )


def gcd(n: int) -> Case:
    return Case(
        name=f"gcd_{n}",
        file="divergence.cu",
        kernel="gcd",
        grid=(2, 1, 1),
        block=(64, 1, 1),
        make=lambda rng: [blank(n, np.uint32), words(rng, n), words(rng, n), np.int32(n)],
        expected=lambda a: [np.gcd(a[1], a[2])],
    )


# Calls.


def calls(n: int) -> Case:
    def mix(a: int, b: int) -> int:
        return wrapped((a ^ b) * 31 + (a >> 3))

    def one(i: int, x: int) -> int:
        value = mix(x, i)
        return mix(value, mix(x, 7)) if value & 1 else value

    grid, block = flat(n)
    return Case(
        name=f"calls_{n}",
        file="calls.cu",
        kernel="calls",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.int32),
            rng.integers(-(2**20), 2**20, n).astype(np.int32),
            np.int32(n),
        ],
        expected=lambda a: [ints([one(i, x) for i, x in enumerate(a[1].tolist())])],
    )


FIBONACCI = np.array([0, 1, 1, 2, 3, 5, 8, 13, 21, 34], np.uint32)


def recursion(n: int) -> Case:
    grid, block = flat(n, 64)
    return Case(
        name=f"recursion_{n}",
        file="calls.cu",
        kernel="recursion",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.uint32),
            rng.integers(0, 10, n).astype(np.uint32),
            np.int32(n),
        ],
        expected=lambda a: [FIBONACCI[a[1]]],
    )


def local_pointer(n: int) -> Case:
    def expected(args: list) -> list:
        triples = np.stack([np.roll(args[1], -k) for k in range(3)])
        return [np.median(triples, axis=0).astype(np.int32)]

    grid, block = flat(n)
    return Case(
        name=f"local_pointer_{n}",
        file="calls.cu",
        kernel="local_pointer",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.int32),
            rng.integers(-1000, 1000, n).astype(np.int32),
            np.int32(n),
        ],
        expected=expected,
    )


def generic_pointer() -> Case:
    def expected(args: list) -> list:
        t, out = np.arange(128), np.zeros(256)
        odd = t % 2 == 1
        shared, everywhere = np.append(args[2], np.ones(4)), args[1].astype(np.float64)
        for i in t:
            source = everywhere if odd[i] else shared
            out[i] = math.sqrt((source[i : i + 4] ** 2).sum())
        after = args[1].copy()
        after[t[odd]], after[1:128:4] = -1, -0.5
        out[128:] = np.where(odd, args[2], -1) + after[:128].astype(np.float64)
        return [Near(value=out, error=1e-6), after]

    return Case(
        name="generic_pointer",
        file="calls.cu",
        kernel="generic_pointer",
        grid=(1, 1, 1),
        block=(128, 1, 1),
        make=lambda rng: [blank(256, np.float32), real(rng, 132), real(rng, 128)],
        expected=expected,
    )


def function_pointers(n: int) -> Case:
    def expected(args: list) -> list:
        a, b = args[1], args[2]
        return [np.where(a & 1, a + b, a - b)]

    grid, block = flat(n)
    return Case(
        name=f"function_pointers_{n}",
        file="calls.cu",
        kernel="function_pointers",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.int32),
            words(rng, n, np.int32),
            words(rng, n, np.int32),
            np.int32(n),
        ],
        expected=expected,
    )


WORD = 2**32


def looped(x: int, i: int) -> int:
    for k in range(x & 3):
        i = (i * 5 + k) % WORD
    return x ^ i


def added(x: int, i: int) -> int:
    return (x * 3 + i) % WORD


INNER = (
    looped,
    lambda x, i: (x + 7) % WORD if x & 1 else x * x % WORD ^ i,
    added,
    lambda x, i: (x - i * 9) % WORD,
)


def calls_twice(x: int, i: int) -> int:
    y = INNER[x >> 2 & 3](x, i)
    return INNER[y & 3](y, x) ^ y


OUTER = (
    lambda x, i: (INNER[x & 3](x, i) + 1) % WORD,
    calls_twice,
    lambda x, i: INNER[x >> 3 & 3](x, i) if x & 4 else (x + i) % WORD,
    added,
)


def nested(x: int) -> int:
    for i in range(3):
        x = OUTER[(x >> 5) + i & 3](x, i) * 2654435761 % WORD
    return x


def ragged(given: int) -> int:
    x = given
    for i in range(given & 7):
        x = OUTER[x + i & 3](x, i)
    return x


def pointers(kernel: str, of_one: Callable[[int], int], n: int) -> Case:
    grid, block = flat(n)
    return Case(
        name=f"{kernel}_{n}",
        file="pointers.cu",
        kernel=kernel,
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.uint32),
            rng.integers(0, WORD, n).astype(np.uint32),
            np.int32(n),
        ],
        expected=lambda a: [np.array([of_one(x) for x in a[1].tolist()], np.uint32)],
    )


def xor_of_turns(x: int, turns: int) -> int:
    for i in range(turns):
        x ^= i * 0x9E3779B9 % WORD
    return x


def left_for_a_barrier() -> Case:
    def expected(args: list) -> list:
        given = args[1].tolist()
        most = max((t for t, x in enumerate(given) if x & 3 != 1), default=0)  # both loops undo
        y = [xor_of_turns(x, t % 4) << 7 | t for t, x in enumerate(given)]
        up = [y[t - 5] if t % 8 >= 5 else y[t] for t in range(len(y))]
        return [np.array([(most + word) % WORD for word in up], np.uint32)]

    return left("left_for_a_barrier", 50, expected)


def left_for_an_outer_region() -> Case:
    def one(x: int) -> int:
        for i in range(x & 7):
            x = (x * 3 + i) % WORD
        return xor_of_turns(x, x & 7)

    return left(
        "left_for_an_outer_region",
        70,
        lambda args: [np.array([one(x) for x in args[1].tolist()], np.uint32)],
    )


def left(kernel: str, threads: int, expected: Callable[[list], list]) -> Case:
    return Case(
        name=kernel,
        file="pointers.cu",
        kernel=kernel,
        grid=(1, 1, 1),
        block=(threads, 1, 1),
        make=lambda rng: [
            blank(threads, np.uint32),
            rng.integers(0, WORD, threads).astype(np.uint32),
        ],
        expected=expected,
    )


# Launches.

AFFINE = np.dtype(
    [("a", "f4"), ("b", "f4"), ("n", "i4"), ("step", "i2"), ("scale", "f8")], align=True
)
SMALL = np.dtype([("a", "i1"), ("b", "i2"), ("c", "i4", 5)], align=True)


def structure(dtype: np.dtype, *values: object) -> np.void:
    return np.array(values, dtype)[()]


def by_value(n: int) -> Case:
    def make(rng: np.random.Generator) -> list:
        f = structure(AFFINE, *rng.uniform(-2, 2, 2), n, 3, rng.uniform(0.5, 2))
        return [blank(n, np.float32), f, real(rng, 3 * n)]

    def expected(args: list) -> list:
        f, x = args[1], args[2][::3].astype(np.float64)
        products = np.float64(f["a"]) * x
        value = f["scale"] * (products + np.float64(f["b"]))
        error = 4 * 2.0**-24 * f["scale"] * (abs(products) + abs(np.float64(f["b"])))
        return [Near(value=value, error=error)]

    grid, block = flat(n)
    return Case(
        name=f"by_value_{n}",
        file="launches.cu",
        kernel="by_value",
        grid=grid,
        block=block,
        make=make,
        expected=expected,
    )


def small_arguments() -> Case:
    def make(rng: np.random.Generator) -> list:
        return [
            blank(10, np.int32),
            np.int8(rng.integers(-128, 128)),
            np.uint8(rng.integers(0, 256)),
            np.int16(rng.integers(-(2**15), 2**15)),
            np.int64(rng.integers(-(2**62), 2**62)),
            np.float64(rng.integers(-1000, 1000) / 4),
            np.bool_(rng.random() < 0.5),
            structure(SMALL, *rng.integers(-100, 100, 2), rng.integers(-(2**31), 2**31, 5)),
            np.uint16(rng.integers(0, 2**16)),
        ]

    def expected(args: list) -> list:
        a, b, c, d, e, f, s, g = args[1:]
        wide = int(d)
        tail = [int(s["a"]) + int(s["b"]), None, int(g)]
        out = [int(a), int(b), int(c), wide >> 32, wrapped(wide), int(e * 4), int(f), *tail]
        out[8] = int(s["c"][8 % 5])  # thread 8 stores its own
        return [ints(out)]

    return Case(
        name="small_arguments",
        file="launches.cu",
        kernel="small_arguments",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        make=make,
        expected=expected,
    )


def scale(expression: str, dtype: type, per_thread: int, n: int) -> Case:
    return Case(
        name=f"scale_{np.dtype(dtype).name}",
        file="launches.cu",
        kernel=expression,
        grid=flat(-(-n // per_thread), 64)[0],
        block=(64, 1, 1),
        make=lambda rng: [
            blank(n, dtype),
            real(rng, n, dtype),
            dtype(rng.uniform(1, 2)),
            np.int32(n),
        ],
        expected=lambda a: [a[1] * a[2]],
    )


def rotate(n: int) -> Case:
    grid, block = flat(n, 31)
    return Case(
        name=f"rotate_{n}",
        file="launches.cu",
        kernel="inner::rotate<true>",
        grid=grid,
        block=block,
        make=lambda rng: [blank(n, np.int32), words(rng, n, np.int32), np.int32(n)],
        expected=lambda a: [np.roll(a[1], -1)],
    )


def dynamic_shared(n: int, blocks: int) -> Case:
    def expected(args: list) -> list:
        i, x = np.arange(n), args[1]
        return [x[:, ::-1] + 2 * x[:, i * 7 % n]]

    return Case(
        name=f"dynamic_shared_{n}_by_{blocks}",
        file="launches.cu",
        kernel="dynamic_shared",
        grid=(blocks, 1, 1),
        block=(64, 1, 1),
        dynamic_shared_bytes=8 * ((n + 1) // 2) + 8 * n,
        make=lambda rng: [blank((blocks, n), np.float32), small(rng, (blocks, n)), np.int32(n)],
        expected=expected,
    )


def indices_3d(grid: tuple[int, int, int], block: tuple[int, int, int]) -> Case:
    def packed(index: int, extent: tuple[int, int, int]) -> int:
        x, y, _ = extent
        return index % x | (index // x % y) << 8 | (index // (x * y)) << 16

    def expected(args: list) -> list:
        shape = [extent[0] | extent[1] << 8 | extent[2] << 16 for extent in (block, grid)]
        rows = [[packed(t, block), packed(b, grid), *shape] for b, t in threads(grid, block)]
        return [np.array(rows, np.uint32)]

    count = int(np.prod(grid) * np.prod(block))
    return Case(
        name=f"indices_3d_{count}",
        file="launches.cu",
        kernel="indices_3d",
        grid=grid,
        block=block,
        make=lambda rng: [blank((count, 4), np.uint32)],
        expected=expected,
    )


def ragged_block(blocks: int, block: tuple[int, int]) -> Case:
    n = block[0] * block[1]

    def expected(args: list) -> list:
        x = args[1].reshape(blocks, n)
        return [x[:, ::-1] * 3 + np.roll(x, -1, axis=1)]

    return Case(
        name=f"ragged_block_{block[0]}x{block[1]}_by_{blocks}",
        file="launches.cu",
        kernel="ragged_block",
        grid=(blocks, 1, 1),
        block=(*block, 1),
        make=lambda rng: [
            blank((blocks, n), np.int32),
            rng.integers(-1000, 1000, blocks * n).astype(np.int32),
        ],
        expected=expected,
    )


def saxpy(n: int) -> Case:
    return Case(
        name=f"saxpy_grid_stride_{n}",
        file="launches.cu",
        kernel="saxpy_grid_stride",
        grid=(2, 1, 1),
        block=(100, 1, 1),
        make=lambda rng: [real(rng, n), real(rng, n), np.float32(rng.uniform(-2, 2)), np.int32(n)],
        expected=lambda a: [fma(np.full(n, a[2]), a[1], a[0])],
    )


def nothing() -> Case:
    return Case(
        name="nothing",
        file="launches.cu",
        kernel="nothing",
        grid=(2, 1, 1),
        block=(1, 1, 1),
        make=lambda rng: [],
        expected=lambda a: [],
    )


def clocks() -> Case:
    return Case(
        name="clocks",
        file="launches.cu",
        kernel="clocks",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        make=lambda rng: [blank(32, np.int64)],
        expected=lambda a: [np.full(32, 7, np.int64)],
    )


def float_loop_counts(blocks: int, n: int) -> Case:
    def expected(args: list) -> list:
        steps, value, out = np.arange(64 * blocks) % n, 0.0, []
        for _ in range(n):
            value = value * 0.5 + float(args[1])
            out.append(value)
        exact = np.take(out, steps)
        return [Near(value=exact, error=ulps(exact, 2))]

    return Case(
        name="float_loop_counts",
        file="launches.cu",
        kernel="float_loop_counts",
        grid=(blocks, 1, 1),
        block=(64, 1, 1),
        make=lambda rng: [
            blank(64 * blocks, np.float32),
            np.float32(rng.uniform(0.1, 2)),
            np.int32(n),
        ],
        expected=expected,
    )


CASES = (
    collatz(200),
    mandelbrot(40, 25, 50),
    lower_bound(500, 200),
    early_exits(300, 100),
    early_exits(45, 31),
    jump_table(400),
    nested_breaks(300),
    uniform_barrier_loop(3, 70),
    gcd(200),
    calls(200),
    recursion(70),
    local_pointer(200),
    generic_pointer(),
    function_pointers(150),
    pointers("pointers_nested", nested, 150),
    pointers("pointers_ragged", ragged, 150),
    left_for_a_barrier(),
    left_for_an_outer_region(),
    by_value(150),
    small_arguments(),
    scale("scale<float, 4>", np.float32, 4, 301),
    scale("scale<double, 1>", np.float64, 1, 100),
    rotate(70),
    dynamic_shared(37, 3),
    dynamic_shared(5000, 1),  # above 48 KB
    indices_3d((3, 2, 2), (5, 3, 4)),
    ragged_block(3, (1, 1)),
    ragged_block(2, (31, 1)),
    ragged_block(2, (33, 1)),
    ragged_block(2, (100, 1)),
    ragged_block(2, (10, 7)),
    saxpy(500),
    nothing(),
    clocks(),
    float_loop_counts(2, 20),
)

COUNTED = (
    collatz(20_000),
    mandelbrot(300, 200, 100),
    lower_bound(10_000, 5_000),
    early_exits(10_000, 100),
    jump_table(10_000),
    nested_breaks(10_000),
    uniform_barrier_loop(20, 70),
    gcd(10_000),
    calls(10_000),
    recursion(300),
    function_pointers(5_000),
    pointers("pointers_nested", nested, 5_000),
    pointers("pointers_ragged", ragged, 5_000),
    dynamic_shared(5000, 4),
    indices_3d((7, 5, 3), (9, 5, 3)),
    ragged_block(50, (10, 7)),
    saxpy(20_001),
    nothing(),
)
