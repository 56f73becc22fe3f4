"""Cases of integer arithmetic: division, products, carries, and the bits of words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import int32, int64, uint32, uint64
from numpy.random import Generator

from validation.corpus.case import (
    Array,
    Case,
    Given,
    Make,
    Outcomes,
    blank,
    flat,
    integers,
    launched,
    listed,
    words,
)
from validation.corpus.cases_control import quotient, remainder

Rows = list[list[int]]  # a list for each output array

LOW = 2**32 - 1
WIDE = 2**64 - 1


def rows(
    name: str,
    n: int,
    outputs: list[tuple[int, type]],
    inputs: Make,
    one: Callable[..., Rows],
) -> Case:
    """One thread per row: `one` maps the inputs of a thread to its outputs, as Python integers.

    `outputs` are columns and type of each output array, `one` returns one list per array.
    """

    def expected(args: Given) -> Outcomes:
        arrays = (x.reshape(n, -1).tolist() for x in args[len(outputs) : -1])
        results = [one(*(row[0] if len(row) == 1 else row for row in x)) for x in zip(*arrays)]  # noqa: B905
        return [
            modular([result[k] for result in results], dtype)
            for k, (_, dtype) in enumerate(outputs)
        ]

    return launched(
        name,
        flat(n),
        lambda rng: [*(blank((n, k), dtype) for k, dtype in outputs), *listed(inputs, rng), n],
        expected,
    )


def modular(values: list[list[int]], dtype: type) -> Array:
    """Python integers of any size, cut to the bits of `dtype`."""
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    mask = 2 ** (8 * unsigned.itemsize) - 1
    return np.array([[value & mask for value in row] for row in values], unsigned).view(dtype)


def signed(value: int, bits: int = 32) -> int:
    value &= 2**bits - 1
    return value - (value >> (bits - 1) << bits)


def nonzero(x: Array) -> Array:
    return np.where(x == 0, np.ones_like(x), x)


def divisors(rng: Generator, n: int, dtype: type) -> Array:
    """No 0, and no -1: the quotient of the least integer by it does not exist."""
    drawn = nonzero(words(n, dtype)(rng))
    return np.where(drawn == dtype(-1), dtype(3), drawn) if np.dtype(dtype).kind == "i" else drawn


N = 200


def divide_signed(a: int, b: int) -> Rows:
    by_constants = [quotient(a, 7), remainder(a, 10), quotient(a, -16), remainder(a, 32)]
    return [[quotient(a, b), remainder(a, b), *by_constants]]


DIVISION = (
    rows(
        "divide_signed",
        N,
        [(6, int32)],
        [words(N, int32), lambda rng: divisors(rng, N, int32)],
        divide_signed,
    ),
    rows(
        "divide_unsigned",
        N,
        [(4, uint32)],
        [words(N), lambda rng: divisors(rng, N, uint32)],
        lambda a, b: [[a // b, a % b, a // 1000, a % 641]],
    ),
    rows(
        "divide_wide",
        N,
        [(2, int64), (3, uint64)],
        [words(N, int64), lambda rng: divisors(rng, N, int64)],
        lambda a, b: [
            [quotient(a, b), remainder(a, b)],
            [(a & WIDE) // (b & WIDE), (a & WIDE) % (b & WIDE), (a & WIDE) // 1_000_000_007],
        ],
    ),
)


def wide_integers(x: int, y: int, k: int) -> Rows:
    u, v = x & WIDE, y & WIDE
    compared = (x < y) + 2 * (x <= y) + 4 * (x == y) + 8 * (u >= v)
    return [
        [
            x + y, x - y, x << k, x >> k, u >> k, x ^ (y & ~x),
            min(x, y), max(u, v), compared, -x, abs(x), x * 10 + 7,
        ]
    ]  # fmt: skip


ARITHMETIC = (
    rows(
        "wide_integers",
        N,
        [(12, int64)],
        [
            words(N, int64),
            words(N, int64),
            integers(0, 64, N),
        ],
        wide_integers,
    ),
)


# Bits. The rules of bfind, bfe, bfi, bmsk, szext and prmt are those of the PTX ISA.


def bit_counts(x: int) -> Rows:
    first, top = (x & -x).bit_length(), x.bit_length() - 1
    magnitude = signed(x) if signed(x) >= 0 else ~signed(x)
    shift = 32 - magnitude.bit_length() if magnitude else -1
    return [[32 - x.bit_length(), first, x.bit_count(), int(f"{x:032b}"[::-1], 2), top, shift]]


def shifts(x: int, y: int, k: int) -> Rows:
    both, wrap, clamp = y << 32 | x, k & 31, min(k, 32)
    return [
        [
            both << wrap >> 32, both >> wrap, both << clamp >> 32, both >> clamp,
            x << clamp, x >> clamp, signed(x) >> clamp,
            both << 9 >> 32, signed(x) >> 5, (x << 32 | x) >> 11,
        ]
    ]  # fmt: skip


def extracted(a: int, start: int, length: int, *, is_signed: bool) -> int:
    sign = a >> min(start + length - 1, 31) & 1 if is_signed and length else 0
    bits = (a >> (start + i) & 1 if i < length and start + i <= 31 else sign for i in range(32))
    return sum(bit << i for i, bit in enumerate(bits))


def inserted(a: int, into: int, start: int, length: int) -> int:
    for i in range(min(length, 32 - start)):
        into = into & ~(1 << start + i) | (a >> i & 1) << start + i
    return into


def fields(a: int, b: int, start: int, length: int) -> Rows:
    a, b = a & LOW, b & LOW
    above = 0 if start >= 32 else LOW << start & LOW
    end = (start & 31) + (length & 31)
    beyond = 0 if end >= 32 or start >= 32 or length >= 32 else LOW << end & LOW
    width = length & 31
    return [
        [
            extracted(a, start, length, is_signed=False),
            extracted(a, start, length, is_signed=True),
            inserted(a, b, start, length),
            extracted(a, 5, 11, is_signed=True),
            above & ~beyond,
            signed(a & (1 << width) - 1, width) if width else 0,
        ]
    ]


def permuted(a: int, b: int, selector: int) -> int:
    out = 0
    for k in range(4):
        nibble = selector >> 4 * k & 15
        byte = (b << 32 | a) >> 8 * (nibble & 7) & 255
        out |= (255 * (byte >> 7) if nibble & 8 else byte) << 8 * k
    return out


def permutes(a: int, b: int, selector: int) -> Rows:
    pick = selector & 3
    twice = (0x1010, 0x3232, 0x1010, 0x3232)[pick]
    return [
        [
            permuted(a, b, selector),
            permuted(a, b, 0x1537),
            permuted(a, b, 0xB8A9),
            (b << 32 | a) >> 8 * pick,
            permuted(a, b, twice),
        ]
    ]


def predicate_logic(a: int, b: int, c: int) -> Rows:
    p, q, r = a < b, b < c, (a & LOW) > (c & LOW)
    value = ((p and not q) or r) + 2 * (p ^ q ^ r)
    value += 4 * ((p or q) and not (p and r)) + 8 * (p == (q != r))
    return [[value + (a if p else c)]]


def extremes(x: int, y: int, z: int) -> Rows:
    u, v, w = x & LOW, y & LOW, z & LOW
    return [
        [
            min(x, y), max(x, y), min(u, v), max(u, v), abs(x),
            max(x, y, z), min(u, v, w), max(x + y, z), max(min(x, y), 0), min(max(x, -100), 100),
        ]
    ]  # fmt: skip


def parts(x: int, bits: int, *, is_signed: bool) -> list[int]:
    """The 8- or 16-bit parts of a word, lowest first."""
    cut = [x >> shift & 2**bits - 1 for shift in range(0, 32, bits)]
    return [signed(part, bits) for part in cut] if is_signed else cut


def joined(values: list[int], bits: int) -> int:
    return sum((value & 2**bits - 1) << bits * k for k, value in enumerate(values))


def dotted(x: list[int], y: list[int]) -> int:
    return sum(a * b for a, b in zip(x, y, strict=True))


def dot_products(a: int, b: int, c: int) -> Rows:
    u, v, w = a & LOW, b & LOW, c & LOW
    return [
        [
            dotted(parts(u, 8, is_signed=True), parts(v, 8, is_signed=True)) + c,
            dotted(parts(u, 8, is_signed=False), parts(v, 8, is_signed=False)) + w,
            dotted(parts(u, 16, is_signed=True), parts(v, 8, is_signed=True)[:2]) + c,
            dotted(parts(u, 16, is_signed=False), parts(v, 8, is_signed=False)[2:]) + w,
            abs(a - b) + w, abs(u - v) + w, a + b >> 1, u + v + 1 >> 1,
        ]
    ]  # fmt: skip


def lanewise(
    a: int, b: int, bits: int, function: Callable[[int, int], int], *, is_signed: bool
) -> int:
    pairs = zip(
        parts(a, bits, is_signed=is_signed), parts(b, bits, is_signed=is_signed), strict=True
    )
    return joined([function(x, y) for x, y in pairs], bits)


def packed_bytes(a: int, b: int) -> Rows:
    def unsigned(bits: int, function: Callable[[int, int], int]) -> int:
        return lanewise(a, b, bits, function, is_signed=False)

    def with_sign(bits: int, function: Callable[[int, int], int]) -> int:
        return lanewise(a, b, bits, function, is_signed=True)

    return [
        [
            unsigned(8, lambda x, y: x + y), unsigned(8, lambda x, y: x - y),
            with_sign(8, max), unsigned(16, min), with_sign(8, lambda x, y: -(x > y)),
            unsigned(8, lambda x, y: abs(x - y)), unsigned(16, lambda x, y: x + y),
            unsigned(8, lambda x, y: x + y + 1 >> 1),
        ]
    ]  # fmt: skip


def three_ints(rng: Generator) -> list[Array]:
    """Small enough for a sum of two."""
    return [words(N, int32)(rng) >> 1 for _ in range(3)]


BITS = (
    rows("bit_counts", N, [(6, int32)], [words(N)], bit_counts),
    rows(
        "shifts",
        N,
        [(10, uint32)],
        [words(N), words(N), integers(0, 80, N, uint32)],
        shifts,
    ),
    rows(
        "fields",
        N,
        [(6, int32)],
        [
            words(N, int32),
            words(N, int32),
            integers(0, 40, N, uint32),
            integers(0, 40, N, uint32),
        ],
        fields,
    ),
    rows(
        "permutes",
        N,
        [(5, uint32)],
        [words(N), words(N), lambda rng: words(N)(rng) & uint32(0x7777)],
        permutes,
    ),
    rows(
        "predicate_logic", N, [(1, int32)], [integers(-9, 10, N) for _ in range(3)], predicate_logic
    ),
    rows("extremes", N, [(10, int32)], three_ints, extremes),
    rows("dot_products", N, [(8, int32)], three_ints, dot_products),
    rows(
        "packed_bytes",
        N,
        [(8, uint32)],
        [words(N), words(N)],
        packed_bytes,
    ),
)


def divide_wide_by_constants() -> Case:
    prime, large = 1_000_000_007, 1_266_510_471_046_261_789

    def expected(args: Given) -> Outcomes:
        a, b = args[2].tolist(), args[3].tolist()
        unsigned = [[x // 641, x % prime, x // large, x // 4_294_967_311 & 0xFFFFFFFF] for x in a]
        signed = [[quotient(x, 641), remainder(x, -prime), quotient(x, large)] for x in b]
        return [np.array(unsigned, uint64), np.array(signed, int64)]

    return launched(
        "divide_wide_by_constants",
        flat(N, 64),
        [
            blank((N, 4), uint64),
            blank((N, 3), int64),
            words(N, uint64),
            words(N, int64),
            N,
        ],
        expected,
    )


CASES = (*DIVISION, *ARITHMETIC, *BITS, divide_wide_by_constants())
COUNTED = (*DIVISION, *BITS)
