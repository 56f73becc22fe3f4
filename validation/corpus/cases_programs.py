"""Cases of small programs: products of matrices, and simulations of several kinds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from validation.corpus.case import Case, Near, blank, flat, real, tiles
from validation.corpus.cases_memory import FLOAT_EPSILON, product


def gemm_double_buffered(m: int, n: int, k: int) -> Case:
    grid, block = tiles(n, m, (16, 16))
    return Case(
        name=f"gemm_double_buffered_{m}x{n}x{k}",
        file="gemm.cu",
        kernel="gemm_double_buffered",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank((m, n), np.float32),
            real(rng, (m, k)),
            real(rng, (k, n)),
            *map(np.int32, (m, n, k)),
        ],
        expected=lambda a: [product(a[1], a[2])],
    )


def gemm_warp_tiled(m: int, n: int, k: int) -> Case:
    return Case(
        name=f"gemm_warp_tiled_{m}x{n}x{k}",
        file="gemm.cu",
        kernel="gemm_warp_tiled",
        grid=(n // 64, m // 64, 1),
        block=(128, 1, 1),
        make=lambda rng: [
            blank((m, n), np.float32),
            real(rng, (m, k)),
            real(rng, (k, n)),
            np.int32(n),
            np.int32(k),
        ],
        expected=lambda a: [product(a[1], a[2])],
    )


def gemm_split_k(m: int, n: int, k: int, part: int) -> Case:
    def expected(args: list) -> list:
        c, a, b = args[:3]
        summed = product(a, b)
        error = summed.error + (-(-k // part) + 1) * FLOAT_EPSILON * (abs(summed.value) + 2)
        return [Near(value=c + summed.value, error=error + FLOAT_EPSILON * abs(a) @ abs(b))]

    (x, y, _), block = tiles(n, m, (16, 8))
    return Case(
        name=f"gemm_split_k_{m}x{n}x{k}",
        file="gemm.cu",
        kernel="gemm_split_k",
        grid=(x, y, -(-k // part)),
        block=block,
        make=lambda rng: [
            real(rng, (m, n)),
            real(rng, (m, k)),
            real(rng, (k, n)),
            *map(np.int32, (m, n, k, part)),
        ],
        expected=expected,
    )


def gemm_double_transposed(m: int, n: int, k: int) -> Case:
    def expected(args: list) -> list:
        a, b = args[1:3]
        return [Near(value=a.T @ b, error=(k + 2) * 2.0**-52 * (abs(a).T @ abs(b)))]

    grid, block = tiles(n, m, (16, 8))
    return Case(
        name=f"gemm_double_transposed_{m}x{n}x{k}",
        file="gemm.cu",
        kernel="gemm_double_transposed",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank((m, n), np.float64),
            real(rng, (k, m), np.float64),
            real(rng, (k, n), np.float64),
            *map(np.int32, (m, n, k)),
        ],
        expected=expected,
    )


def gemm_bytes(m: int, n: int, words: int) -> Case:
    def expected(args: list) -> list:
        a, b = (x.view(np.int8).astype(np.int32) for x in args[1:3])
        return [a @ b.T]

    grid, block = tiles(n, m, (16, 8))
    return Case(
        name=f"gemm_bytes_{m}x{n}",
        file="gemm.cu",
        kernel="gemm_bytes",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank((m, n), np.int32),
            rng.integers(-128, 128, (m, 4 * words)).astype(np.int8).view(np.int32),
            rng.integers(-128, 128, (n, 4 * words)).astype(np.int8).view(np.int32),
            *map(np.int32, (m, n, words)),
        ],
        expected=expected,
    )


def matrix_vector(m: int, n: int) -> Case:
    grid, block = flat(32 * m, 96)
    return Case(
        name=f"matrix_vector_{m}x{n}",
        file="gemm.cu",
        kernel="matrix_vector",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(m, np.float32),
            real(rng, (m, n)),
            real(rng, n),
            np.int32(m),
            np.int32(n),
        ],
        expected=lambda a: [product(a[1], a[2])],
    )


def complex_products(n: int) -> Case:
    def expected(args: list) -> list:
        a, b = (x.astype(np.float64).view(np.complex128) for x in args[1:3])
        value = (a * b).view(np.float64)
        return [Near(value=value, error=4 * FLOAT_EPSILON * np.repeat(abs(a) * abs(b), 2, axis=1))]

    grid, block = flat(n)
    return Case(
        name=f"complex_products_{n}",
        file="gemm.cu",
        kernel="complex_products",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank((n, 2), np.float32),
            real(rng, (n, 2)),
            real(rng, (n, 2)),
            np.int32(n),
        ],
        expected=expected,
    )


# Simulations.


def nbody(n: int) -> Case:
    def expected(args: list) -> list:
        body = args[1].astype(np.float64)
        apart = body[None, :, :3] - body[:, None, :3]
        strength = body[None, :, 3] * ((apart**2).sum(axis=2) + 0.01) ** -1.5
        pulls = apart * strength[:, :, None]
        value, magnitude = pulls.sum(axis=1), abs(pulls).sum(axis=1)
        still = np.zeros((n, 1))
        return [Near(value=np.hstack([value, still]), error=1e-5 * np.hstack([magnitude, still]))]

    grid, block = flat(n, 64)
    return Case(
        name=f"nbody_{n}",
        file="simulation.cu",
        kernel="nbody",
        grid=grid,
        block=block,
        make=lambda rng: [blank((n, 4), np.float32), real(rng, (n, 4)), np.int32(n)],
        expected=expected,
    )


def monte_carlo_hits(blocks: int, tries: int) -> Case:
    def expected(args: list) -> list:
        state = args[1] + np.arange(64 * blocks, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        count = np.zeros(64 * blocks, np.uint32)
        for _ in range(tries):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            x, y = (state >> np.uint64(shift) & np.uint64(0xFFFF) for shift in (48, 32))
            count += x * x + y * y < np.uint64(2**32)
        return [count]

    return Case(
        name=f"monte_carlo_hits_{64 * blocks}",
        file="simulation.cu",
        kernel="monte_carlo_hits",
        grid=(blocks, 1, 1),
        block=(64, 1, 1),
        make=lambda rng: [
            blank(64 * blocks, np.uint32),
            np.uint64(rng.integers(0, 2**63)),
            np.int32(tries),
        ],
        expected=expected,
    )


def game_of_life(width: int, height: int) -> Case:
    def expected(args: list) -> list:
        x = args[1]
        around = sum(
            np.roll(x, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dx or dy
        )
        return [((around == 3) | ((around == 2) & (x == 1))).astype(np.uint8)]

    grid, block = tiles(width, height, (16, 8))
    return Case(
        name=f"game_of_life_{width}x{height}",
        file="simulation.cu",
        kernel="game_of_life",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank((height, width), np.uint8),
            rng.integers(0, 2, (height, width)).astype(np.uint8),
            np.int32(width),
            np.int32(height),
        ],
        expected=expected,
    )


def sparse_rows(rows: int, columns: int) -> Case:
    def make(rng: np.random.Generator) -> list:
        lengths = rng.integers(0, 12, rows) * rng.integers(0, 3, rows)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        count = int(starts[-1])
        return [
            blank(rows, np.float32),
            starts,
            rng.integers(0, columns, count).astype(np.int32),
            real(rng, count),
            real(rng, columns),
            np.int32(rows),
        ]

    def expected(args: list) -> list:
        _, starts, indices, values, x, _ = args
        products = values.astype(np.float64) * x[indices]

        def per_row(numbers: NDArray) -> NDArray:
            running = np.concatenate([[0], np.cumsum(numbers)])
            return running[starts[1:]] - running[starts[:-1]]

        magnitude = per_row(abs(products))
        return [Near(value=per_row(products), error=24 * FLOAT_EPSILON * magnitude + 1e-9)]

    grid, block = flat(rows)
    return Case(
        name=f"sparse_rows_{rows}",
        file="simulation.cu",
        kernel="sparse_rows",
        grid=grid,
        block=block,
        make=make,
        expected=expected,
    )


def find_pattern(n: int) -> Case:
    def expected(args: list) -> list:
        text, pattern = bytes(args[1]), bytes(args[3])[:-1]
        return [np.array([text.startswith(pattern, i) for i in range(n)], np.int32)]

    grid, block = flat(n)
    return Case(
        name=f"find_pattern_{n}",
        file="simulation.cu",
        kernel="find_pattern",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.int32),
            rng.choice([97, 98], n).astype(np.int8),
            np.int32(n),
            np.append(rng.choice([97, 98], 4), 0).astype(np.int8),
        ],
        expected=expected,
    )


def follow_links(n: int) -> Case:
    def expected(args: list) -> list:
        _, following, value = (x.tolist() for x in args[:3])
        out = []
        for start in range(n):
            at, total, hops = start, 0, 0
            while at >= 0 and hops < 64:
                total, at, hops = total + value[at], following[at], hops + 1
            out.append(total * 64 + hops % 64)
        return [np.array(out, np.int32)]

    grid, block = flat(n)
    return Case(
        name=f"follow_links_{n}",
        file="simulation.cu",
        kernel="follow_links",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.int32),
            np.where(rng.random(n) < 0.1, -1, rng.integers(0, n, n)).astype(np.int32),
            rng.integers(-100, 100, n).astype(np.int32),
            np.int32(n),
        ],
        expected=expected,
    )


def odd_even_rounds(n: int) -> Case:
    return Case(
        name=f"odd_even_rounds_{n}",
        file="simulation.cu",
        kernel="odd_even_rounds",
        grid=(1, 1, 1),
        block=(48, 1, 1),
        dynamic_shared_bytes=4 * n,
        make=lambda rng: [rng.integers(-50, 50, n).astype(np.int32), np.int32(n)],
        expected=lambda a: [np.sort(a[0])],
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
