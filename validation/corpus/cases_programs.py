"""Cases of small programs: products of matrices, and simulations of several kinds."""

from __future__ import annotations

import numpy as np
from numpy import float64, int8, int32, uint8, uint32, uint64
from numpy.random import Generator

from validation.corpus.case import (
    Array,
    Case,
    Given,
    Near,
    Outcome,
    Outcomes,
    blank,
    flat,
    grid_of,
    launched,
    real,
    tiles,
)
from validation.corpus.cases_memory import FLOAT_EPSILON, product


def gemm_double_buffered(m: int, n: int, k: int) -> Case:
    return launched(
        "gemm_double_buffered",
        tiles(n, m, (16, 16)),
        lambda rng: [
            blank((m, n)),
            real(rng, (m, k)),
            real(rng, (k, n)),
            m,
            n,
            k,
        ],
        lambda a: product(a[1], a[2]),
        label=f"{m}x{n}x{k}",
    )


def gemm_warp_tiled(m: int, n: int, k: int) -> Case:
    return launched(
        "gemm_warp_tiled",
        ((n // 64, m // 64, 1), (128, 1, 1)),
        lambda rng: [
            blank((m, n)),
            real(rng, (m, k)),
            real(rng, (k, n)),
            n,
            k,
        ],
        lambda a: product(a[1], a[2]),
        label=f"{m}x{n}x{k}",
    )


def gemm_split_k(m: int, n: int, k: int, part: int) -> Case:
    def expected(args: Given) -> Outcome:
        c, a, b = args[:3]
        summed = product(a, b)
        error = summed.error + (-(-k // part) + 1) * FLOAT_EPSILON * (abs(summed.value) + 2)
        return Near(value=c + summed.value, error=error + FLOAT_EPSILON * abs(a) @ abs(b))

    (x, y, _), block = tiles(n, m, (16, 8))
    return launched(
        "gemm_split_k",
        ((x, y, -(-k // part)), block),
        lambda rng: [
            real(rng, (m, n)),
            real(rng, (m, k)),
            real(rng, (k, n)),
            m,
            n,
            k,
            part,
        ],
        expected,
        label=f"{m}x{n}x{k}",
    )


def gemm_double_transposed(m: int, n: int, k: int) -> Case:
    def expected(args: Given) -> Outcome:
        a, b = args[1:3]
        return Near(value=a.T @ b, error=(k + 2) * 2.0**-52 * (abs(a).T @ abs(b)))

    return launched(
        "gemm_double_transposed",
        tiles(n, m, (16, 8)),
        lambda rng: [
            blank((m, n), float64),
            real(rng, (k, m), float64),
            real(rng, (k, n), float64),
            m,
            n,
            k,
        ],
        expected,
        label=f"{m}x{n}x{k}",
    )


def gemm_bytes(m: int, n: int, words: int) -> Case:
    def expected(args: Given) -> Outcomes:
        a, b = (x.view(int8).astype(int32) for x in args[1:3])
        return [a @ b.T]

    return launched(
        "gemm_bytes",
        tiles(n, m, (16, 8)),
        lambda rng: [
            blank((m, n), int32),
            rng.integers(-128, 128, (m, 4 * words)).astype(int8).view(int32),
            rng.integers(-128, 128, (n, 4 * words)).astype(int8).view(int32),
            m,
            n,
            words,
        ],
        expected,
        label=f"{m}x{n}",
    )


def matrix_vector(m: int, n: int) -> Case:
    return launched(
        "matrix_vector",
        flat(32 * m, 96),
        lambda rng: [
            blank(m),
            real(rng, (m, n)),
            real(rng, n),
            m,
            n,
        ],
        lambda a: product(a[1], a[2]),
        label=f"{m}x{n}",
    )


def complex_products(n: int) -> Case:
    def expected(args: Given) -> Outcome:
        a, b = (x.astype(float64).view(np.complex128) for x in args[1:3])
        value = (a * b).view(float64)
        return Near(value=value, error=4 * FLOAT_EPSILON * np.repeat(abs(a) * abs(b), 2, axis=1))

    return launched(
        "complex_products",
        flat(n),
        lambda rng: [
            blank((n, 2)),
            real(rng, (n, 2)),
            real(rng, (n, 2)),
            n,
        ],
        expected,
        label=n,
    )


# Simulations.


def nbody(n: int) -> Case:
    def expected(args: Given) -> Outcome:
        body = args[1].astype(float64)
        apart = body[None, :, :3] - body[:, None, :3]
        strength = body[None, :, 3] * ((apart**2).sum(axis=2) + 0.01) ** -1.5
        pulls = apart * strength[:, :, None]
        value, magnitude = pulls.sum(axis=1), abs(pulls).sum(axis=1)
        still = np.zeros((n, 1))
        return Near(value=np.hstack([value, still]), error=1e-5 * np.hstack([magnitude, still]))

    return launched(
        "nbody",
        flat(n, 64),
        lambda rng: [blank((n, 4)), real(rng, (n, 4)), n],
        expected,
        label=n,
    )


def monte_carlo_hits(blocks: int, tries: int) -> Case:
    def expected(args: Given) -> Outcome:
        state = args[1] + np.arange(64 * blocks, dtype=uint64) * uint64(0x9E3779B97F4A7C15)
        count = np.zeros(64 * blocks, uint32)
        for _ in range(tries):
            state = state * uint64(6364136223846793005) + uint64(1442695040888963407)
            x, y = (state >> uint64(shift) & uint64(0xFFFF) for shift in (48, 32))
            count += x * x + y * y < uint64(2**32)
        return count

    return launched(
        "monte_carlo_hits",
        grid_of(blocks, 64),
        lambda rng: [
            blank(64 * blocks, uint32),
            uint64(rng.integers(0, 2**63)),
            tries,
        ],
        expected,
        label=64 * blocks,
    )


def game_of_life(width: int, height: int) -> Case:
    def expected(args: Given) -> Outcomes:
        x = args[1]
        around = sum(
            np.roll(x, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dx or dy
        )
        return [((around == 3) | ((around == 2) & (x == 1))).astype(uint8)]

    return launched(
        "game_of_life",
        tiles(width, height, (16, 8)),
        lambda rng: [
            blank((height, width), uint8),
            rng.integers(0, 2, (height, width)).astype(uint8),
            width,
            height,
        ],
        expected,
        label=f"{width}x{height}",
    )


def sparse_rows(rows: int, columns: int) -> Case:
    def make(rng: Generator) -> Given:
        lengths = rng.integers(0, 12, rows) * rng.integers(0, 3, rows)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(int32)
        count = int(starts[-1])
        return [
            blank(rows),
            starts,
            rng.integers(0, columns, count).astype(int32),
            real(rng, count),
            real(rng, columns),
            rows,
        ]

    def expected(args: Given) -> Outcome:
        _, starts, indices, values, x, _ = args
        products = values.astype(float64) * x[indices]

        def per_row(numbers: Array) -> Array:
            running = np.concatenate([[0], np.cumsum(numbers)])
            return np.asarray(running[starts[1:]] - running[starts[:-1]])

        magnitude = per_row(abs(products))
        return Near(value=per_row(products), error=24 * FLOAT_EPSILON * magnitude + 1e-9)

    return launched("sparse_rows", flat(rows), make, expected, label=rows)


def find_pattern(n: int) -> Case:
    def expected(args: Given) -> Outcome:
        text, pattern = bytes(args[1]), bytes(args[3])[:-1]
        return np.array([text.startswith(pattern, i) for i in range(n)], int32)

    return launched(
        "find_pattern",
        flat(n),
        lambda rng: [
            blank(n, int32),
            rng.choice([97, 98], n).astype(int8),
            n,
            np.append(rng.choice([97, 98], 4), 0).astype(int8),
        ],
        expected,
        label=n,
    )


def follow_links(n: int) -> Case:
    def expected(args: Given) -> Outcome:
        _, following, value = (x.tolist() for x in args[:3])
        out = []
        for start in range(n):
            at, total, hops = start, 0, 0
            while at >= 0 and hops < 64:
                total, at, hops = total + value[at], following[at], hops + 1
            out.append(total * 64 + hops % 64)
        return np.array(out, int32)

    return launched(
        "follow_links",
        flat(n),
        lambda rng: [
            blank(n, int32),
            np.where(rng.random(n) < 0.1, -1, rng.integers(0, n, n)).astype(int32),
            rng.integers(-100, 100, n).astype(int32),
            n,
        ],
        expected,
        label=n,
    )


def odd_even_rounds(n: int) -> Case:
    return launched(
        "odd_even_rounds",
        grid_of(1, 48),
        lambda rng: [rng.integers(-50, 50, n).astype(int32), n],
        lambda a: np.sort(a[0]),
        label=n,
        dynamic_shared_bytes=4 * n,
    )


CASES = (
    gemm_double_buffered(45, 37, 53),
    gemm_warp_tiled(64, 128, 40),
    gemm_split_k(20, 35, 50, 16),
    gemm_double_transposed(20, 25, 30),
    gemm_bytes(20, 30, 9),
    matrix_vector(40, 100),
    complex_products(150),
    nbody(100),
    monte_carlo_hits(2, 50),
    game_of_life(40, 23),
    sparse_rows(150, 80),
    find_pattern(300),
    follow_links(150),
    odd_even_rounds(75),
)

COUNTED = (
    gemm_double_buffered(200, 300, 150),
    gemm_warp_tiled(256, 320, 128),
    gemm_split_k(100, 90, 200, 64),
    gemm_double_transposed(90, 70, 60),
    gemm_bytes(100, 130, 30),
    matrix_vector(400, 1000),
    complex_products(10_000),
    nbody(500),
    monte_carlo_hits(20, 50),
    game_of_life(300, 200),
    sparse_rows(5_000, 800),
    find_pattern(10_000),
    follow_links(3_000),
    odd_even_rounds(75),
)
