"""Cases of control flow and of launches: divergence, calls, arguments, geometries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import float32, float64, int8, int16, int32, int64, uint8, uint16, uint32
from numpy.random import Generator

from validation.corpus.case import (
    Array,
    Case,
    Expected,
    Given,
    Near,
    Outcome,
    Outcomes,
    blank,
    flat,
    grid_of,
    integers,
    launched,
    real,
    small,
    tiles,
    words,
)


def wrapped(number: int) -> int:
    """A Python integer as an int of 32 bits."""
    return (number + 2**31) % 2**32 - 2**31


def quotient(a: int, b: int) -> int:
    """a / b as in C: towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return a - b * quotient(a, b)


def ints(values: list[int]) -> Array:
    return np.array(values, int32)


def collatz(n: int) -> Case:
    """Starts below 113,383, none of which goes beyond 32 bits."""

    def expected(args: Given) -> Outcome:
        x = args[1].astype(np.uint64)
        steps = np.zeros(len(x), int32)
        while (going := x > 1).any():
            x = np.where(going, np.where(x % 2 == 1, 3 * x + 1, x // 2), x)
            steps += going
        return steps

    return launched(
        "collatz",
        flat(n),
        [blank(n, int32), integers(1, 100_000, n, uint32), n],
        expected,
        label=n,
    )


def mandelbrot(width: int, height: int, limit: int) -> Case:
    def expected(args: Given) -> Outcome:
        left, top, step = args[3:6]
        cr = np.broadcast_to(left + np.arange(width, dtype=float32) * step, (height, width))
        ci = (top + np.arange(height, dtype=float32) * step)[:, None]
        r, i = np.zeros((2, height, width), float32)
        count, going = np.zeros((height, width), int32), np.ones((height, width), bool)
        for _ in range(limit):
            rr, ii = r * r, i * i
            going &= ~(rr + ii > 4)
            i, r = float32(2) * r * i + ci, (rr - ii) + cr
            count += going
        return count

    return launched(
        "mandelbrot",
        tiles(width, height, (16, 8)),
        lambda rng: [
            blank((height, width), int32),
            width,
            height,
            float32(rng.uniform(-2.2, -1.8)),
            float32(rng.uniform(-1.3, -1.1)),
            float32(3 / width),
            limit,
        ],
        expected,
        label=f"{width}x{height}",
    )


def lower_bound(n: int, m: int) -> Case:
    return launched(
        "lower_bound",
        flat(m),
        [
            blank(m, int32),
            lambda rng: np.sort(rng.integers(0, 2 * n, n)).astype(int32),
            n,
            integers(-5, 2 * n + 5, m),
            m,
        ],
        lambda a: np.asarray(np.searchsorted(a[1], a[3]), int32),
        label=f"{m}_in_{n}",
    )


def jump_table(n: int) -> Case:
    def loop(x: int) -> int:
        for j in range(5):
            x = wrapped(x * 3 + j)
        return x

    def one(selector: int, x: int) -> int:
        branches: dict[int, Callable[[], int]] = {
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

    return launched(
        "jump_table",
        flat(n),
        [
            blank(n, int32),
            integers(-2, 15, n),
            lambda rng: words(n, int32)(rng) >> 1,
            n,
        ],
        lambda a: ints([one(s, x) for s, x in zip(a[1].tolist(), a[2].tolist(), strict=True)]),
        label=n,
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

    return launched(
        "nested_breaks",
        flat(n),
        [
            blank(n, int32),
            integers(0, 10_000, n),
            n,
        ],
        lambda a: ints([one(x) for x in a[1].tolist()]),
        label=n,
    )


def uniform_barrier_loop(blocks: int, block: int) -> Case:
    def expected(args: Given) -> Outcome:
        mine = args[1].reshape(blocks, block)
        columns = [
            (mine * (mine + 1) // 2).sum(axis=1),
            (mine > 2).all(axis=1),
            (mine > 4).sum(axis=1),
        ]
        return np.stack(columns, 1).astype(int32)

    def make(rng: Generator) -> Given:
        counts = rng.integers(0, 9, blocks * block).astype(int32)
        counts[:block] |= 4  # so that all of one block are above 2
        return [blank((blocks, 3), int32), counts]

    return launched(
        "uniform_barrier_loop",
        grid_of(blocks, block),
        make,
        expected,
        label=f"{blocks}x{block}",
    )


def gcd(n: int) -> Case:
    return launched(
        "gcd",
        grid_of(2, 64),
        [blank(n, uint32), words(n), words(n), n],
        lambda a: np.gcd(a[1], a[2]),
        label=n,
    )


# Calls.


FIBONACCI = np.array([0, 1, 1, 2, 3, 5, 8, 13, 21, 34], uint32)


def recursion(n: int) -> Case:
    return launched(
        "recursion",
        flat(n, 64),
        [
            blank(n, uint32),
            integers(0, 10, n, uint32),
            n,
        ],
        lambda a: FIBONACCI[a[1]],
        label=n,
    )


def generic_pointer() -> Case:
    def expected(args: Given) -> Outcomes:
        t, out = np.arange(128), np.zeros(256)
        odd = t % 2 == 1
        shared, everywhere = np.append(args[2], np.ones(4)), args[1].astype(float64)
        for i in t:
            source = everywhere if odd[i] else shared
            out[i] = math.sqrt((source[i : i + 4] ** 2).sum())
        after = args[1].copy()
        after[t[odd]], after[1:128:4] = -1, -0.5
        out[128:] = np.where(odd, args[2], -1) + after[:128].astype(float64)
        return [Near(value=out, error=1e-6), after]

    return launched(
        "generic_pointer",
        grid_of(1, 128),
        [blank(256), real(132), real(128)],
        expected,
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
    return launched(
        kernel,
        flat(n),
        [
            blank(n, uint32),
            integers(0, WORD, n, uint32),
            n,
        ],
        lambda a: np.array([of_one(x) for x in a[1].tolist()], uint32),
        label=n,
    )


def xor_of_turns(x: int, turns: int) -> int:
    for i in range(turns):
        x ^= i * 0x9E3779B9 % WORD
    return x


def left_for_a_barrier() -> Case:
    def expected(args: Given) -> Outcome:
        given = args[1].tolist()
        most = max((t for t, x in enumerate(given) if x & 3 != 1), default=0)  # both loops undo
        y = [xor_of_turns(x, t % 4) << 7 | t for t, x in enumerate(given)]
        up = [y[t - 5] if t % 8 >= 5 else y[t] for t in range(len(y))]
        return np.array([(most + word) % WORD for word in up], uint32)

    return left("left_for_a_barrier", 50, expected)


def left(kernel: str, threads: int, expected: Expected) -> Case:
    return launched(
        kernel,
        grid_of(1, threads),
        [
            blank(threads, uint32),
            integers(0, WORD, threads, uint32),
        ],
        expected,
    )


# Launches.

AFFINE = np.dtype(
    [("a", "f4"), ("b", "f4"), ("n", "i4"), ("step", "i2"), ("scale", "f8")], align=True
)
SMALL = np.dtype([("a", "i1"), ("b", "i2"), ("c", "i4", 5)], align=True)


def structure(dtype: np.dtype[Any], *values: object) -> Any:
    return np.array(values, dtype)[()]


def by_value(n: int) -> Case:
    def make(rng: Generator) -> Given:
        f = structure(AFFINE, *rng.uniform(-2, 2, 2), n, 3, rng.uniform(0.5, 2))
        return [blank(n), f, real(3 * n)]

    def expected(args: Given) -> Outcome:
        f, x = args[1], args[2][::3].astype(float64)
        products = float64(f["a"]) * x
        value = f["scale"] * (products + float64(f["b"]))
        error = 4 * 2.0**-24 * f["scale"] * (abs(products) + abs(float64(f["b"])))
        return Near(value=value, error=error)

    return launched("by_value", flat(n), make, expected, label=n)


def small_arguments() -> Case:
    def expected(args: Given) -> Outcome:
        a, b, c, d, e, f, s, g = args[1:]
        wide = int(d)
        own = int(s["c"][8 % 5])  # of thread 8
        tail = [int(s["a"]) + int(s["b"]), own, int(g)]
        return ints([int(a), int(b), int(c), wide >> 32, wrapped(wide), int(e * 4), int(f), *tail])

    return launched(
        "small_arguments",
        grid_of(1, 32),
        lambda rng: [
            blank(10, int32),
            int8(rng.integers(-128, 128)),
            uint8(rng.integers(0, 256)),
            int16(rng.integers(-(2**15), 2**15)),
            int64(rng.integers(-(2**62), 2**62)),
            float64(rng.integers(-1000, 1000) / 4),
            np.bool_(rng.random() < 0.5),
            structure(SMALL, *rng.integers(-100, 100, 2), rng.integers(-(2**31), 2**31, 5)),
            uint16(rng.integers(0, 2**16)),
        ],
        expected,
    )


def dynamic_shared(n: int, blocks: int) -> Case:
    def expected(args: Given) -> Outcomes:
        i, x = np.arange(n), args[1]
        return [x[:, ::-1] + 2 * x[:, i * 7 % n]]

    return launched(
        "dynamic_shared",
        grid_of(blocks, 64),
        [blank((blocks, n)), small((blocks, n)), n],
        expected,
        label=f"{n}_by_{blocks}",
        dynamic_shared_bytes=8 * ((n + 1) // 2) + 8 * n,
    )


def ragged_block(blocks: int, block: tuple[int, int]) -> Case:
    n = block[0] * block[1]

    def expected(args: Given) -> Outcomes:
        x = args[1].reshape(blocks, n)
        return [x[:, ::-1] * 3 + np.roll(x, -1, axis=1)]

    return launched(
        "ragged_block",
        ((blocks, 1, 1), (*block, 1)),
        [
            blank((blocks, n), int32),
            integers(-1000, 1000, blocks * n),
        ],
        expected,
        label=f"{block[0]}x{block[1]}_by_{blocks}",
    )


def nothing() -> Case:
    return launched("nothing", grid_of(2, 1), [], lambda a: [])


def clocks() -> Case:
    return launched(
        "clocks",
        grid_of(1, 32),
        [blank(32, int64)],
        lambda a: np.full(32, 7, int64),
    )


CASES = (
    collatz(200),
    mandelbrot(40, 25, 50),
    lower_bound(500, 200),
    jump_table(400),
    nested_breaks(300),
    uniform_barrier_loop(3, 70),
    gcd(200),
    recursion(70),
    generic_pointer(),
    pointers("pointers_nested", nested, 150),
    pointers("pointers_ragged", ragged, 150),
    left_for_a_barrier(),
    by_value(150),
    small_arguments(),
    dynamic_shared(37, 3),
    dynamic_shared(5000, 1),  # above 48 KB
    ragged_block(3, (1, 1)),
    ragged_block(2, (31, 1)),
    ragged_block(2, (33, 1)),
    ragged_block(2, (100, 1)),
    ragged_block(2, (10, 7)),
    nothing(),
    clocks(),
)

COUNTED = (
    collatz(20_000),
    mandelbrot(300, 200, 100),
    lower_bound(10_000, 5_000),
    jump_table(10_000),
    nested_breaks(10_000),
    uniform_barrier_loop(20, 70),
    gcd(10_000),
    recursion(300),
    pointers("pointers_nested", nested, 5_000),
    pointers("pointers_ragged", ragged, 5_000),
    dynamic_shared(5000, 4),
    ragged_block(50, (10, 7)),
    nothing(),
)
