"""Cases of movement: transposes, stencils, widths of access, memory spaces, asynchronous copies."""

from __future__ import annotations

import numpy as np
from numpy import float32, float64, int8, int16, int32, int64, uint8, uint16
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
    integers,
    launched,
    real,
    small,
    tiles,
)
from validation.corpus.exact import fma

FLOAT_EPSILON = 2.0**-24  # half a unit in the last place of 1


def transpose(kind: str, width: int, height: int) -> Case:
    return launched(
        f"transpose_{kind}",
        tiles(width, height, (32, 8) if kind == "naive" else (32, 32), (32, 8)),
        [
            blank((width, height)),
            real((height, width)),
            width,
            height,
        ],
        lambda a: np.ascontiguousarray(a[1].T),
        label=f"{width}x{height}",
    )


def copy_rows(width: int, height: int) -> Case:
    return launched(
        "copy_rows",
        tiles(width, height, (32, 32), (32, 8)),
        [
            blank((height, width)),
            real((height, width)),
            width,
            height,
        ],
        lambda a: a[1],
        label=f"{width}x{height}",
    )


def stencil(kind: str, width: int, height: int) -> Case:
    def clamped(a: Given) -> Outcomes:
        padded = np.pad(a[1], 1, mode="edge")
        around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        return [float32(0.5) * a[1] + float32(0.125) * around]

    def zero_edges(a: Given) -> Outcome:
        padded = np.pad(a[1], 1)
        shifted = (padded[y : y + height, x : x + width] for y in range(3) for x in range(3))
        return np.asarray(sum(shifted), float32)

    return launched(
        f"stencil_{kind}",
        tiles(width, height, (32, 4)),
        [
            blank((height, width)),
            small((height, width)),
            width,
            height,
        ],
        clamped if kind == "clamped" else zero_edges,
        label=f"{width}x{height}",
    )


def convolve(n: int) -> Case:
    def expected(a: Given) -> Outcome:
        x, weights = np.pad(a[1].astype(float64), 4), a[2].astype(float64)
        products = [weights[j] * x[j : j + n] for j in range(9)]
        return Near(value=sum(products), error=10 * FLOAT_EPSILON * sum(map(np.abs, products)))

    return launched(
        "convolve_halo",
        flat(n),
        [blank(n), real(n), real(9), n],
        expected,
        label=n,
    )


def laplacian(nx: int, ny: int, nz: int) -> Case:
    def expected(a: Given) -> Outcomes:
        out, x = a[1].copy(), a[1]
        inner = x[1:-1, 1:-1, 1:-1]
        out[1:-1, 1:-1, 1:-1] = (
            x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:] + x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1]
            + x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] - 6 * inner
        )  # fmt: skip
        return [out]

    return launched(
        "laplacian_3d",
        ((-(-nx // 8), -(-ny // 4), -(-nz // 3)), (8, 4, 3)),
        [
            blank((nz, ny, nx)),
            small((nz, ny, nx)),
            nx,
            ny,
            nz,
        ],
        expected,
        label=f"{nx}x{ny}x{nz}",
    )


# Widths.


def byte_loads(n: int) -> Case:
    def expected(args: Given) -> Outcomes:
        a, b = (x.astype(int32) for x in args[2:4])
        s = ((a + 3 * b) >> 1).astype(int8)
        return [s, np.where(b > 100, a, b + 1).astype(uint8)]

    return launched(
        "bytes",
        flat(n),
        [
            blank(n, int8),
            blank(n, uint8),
            integers(-128, 128, n, int8),
            integers(0, 256, n, uint8),
            n,
        ],
        expected,
        label=n,
    )


def shorts(n: int) -> Case:
    def expected(args: Given) -> Outcomes:
        a, b = (x.astype(int64) for x in args[2:4])
        return [(a * b).astype(int16), (abs(a) + (b >> 3)).astype(uint16)]

    return launched(
        "shorts",
        flat(n),
        [
            blank(n, int16),
            blank(n, uint16),
            integers(-(2**15), 2**15, n, int16),
            integers(0, 2**16, n, uint16),
            n,
        ],
        expected,
        label=n,
    )


def bytes_in_shared() -> Case:
    def expected(args: Given) -> Outcomes:
        x, t = args[1].astype(int64), np.arange(256)
        s, h, v = (np.zeros(256, int64) for _ in range(3))
        s[255 - t], h[t], v[t ^ 1] = x.astype(int8), x * -97, x * 255
        return [(x[(t + 1) % 256] + s[t] * 3 + h[(t * 5) % 256] - v[t]).astype(int32)]

    return launched(
        "bytes_in_shared",
        grid_of(1, 256),
        [blank(256, int32), integers(0, 256, 256, uint8)],
        expected,
    )


def pixels(n: int) -> Case:
    def expected(args: Given) -> Outcomes:
        weighted = args[1].astype(int64) @ np.array([77, 150, 29, 0])
        return [((weighted + 128) >> 8).astype(uint8)]

    return launched(
        "pixels_to_grey",
        flat(n),
        [
            blank(n, uint8),
            integers(0, 256, (n, 4), uint8),
            n,
        ],
        expected,
        label=n,
    )


def copy_float4(n: int, shift: int) -> Case:
    def expected(args: Given) -> Outcomes:
        out = args[0].copy()
        out[shift : shift + n] = args[1][shift : shift + n]
        return [out]

    return launched(
        "copy_float4",
        grid_of(3, 96),
        [
            blank((n + shift + 2, 4)),
            real((n + shift + 2, 4)),
            n,
            shift,
        ],
        expected,
        label=f"{n}_from_{shift}",
    )


def copy_strided(n: int, stride: int) -> Case:
    return launched(
        "copy_strided",
        flat(n),
        [
            blank(n),
            real(n * stride),
            n,
            stride,
        ],
        lambda a: a[1][::stride].copy(),
        label=f"{n}_by_{stride}",
    )


PARTICLE = np.dtype(
    [("p", "f4", 3), ("mass", "f4"), ("energy", "f8"), ("kind", "i2"), ("flags", "u1", 3)],
    align=True,
)
assert PARTICLE.itemsize == 32


def particles(n: int) -> Case:
    def make(rng: Generator) -> Given:
        p = np.zeros(n, PARTICLE)
        p["p"], p["mass"], p["energy"] = real((n, 3))(rng), real(n)(rng), rng.normal(size=n)
        p["kind"], p["flags"] = rng.integers(-99, 99, n), rng.integers(0, 256, (n, 3))
        return [p.view(uint8), float32(rng.uniform(0, 1)), n]

    def expected(args: Given) -> Outcomes:
        after = args[0].copy()  # as bytes, so with the padding
        before, p = args[0].view(PARTICLE), after.view(PARTICLE)
        p["p"][:, 0] = fma(np.full(n, args[1]), p["mass"], p["p"][:, 0])
        p["energy"] = p["energy"] * 2 + p["kind"]
        p["flags"][:, 1] = p["flags"][:, 0] ^ p["flags"][:, 2]
        p["kind"] = abs(before["kind"])
        return [after]

    return launched("particles", flat(n), make, expected, label=n)


# Memory spaces. The tables are those of memory.cu.

WEIGHTS = np.array([0.5, -1.25, 3, 0, 7.5, -2, 0.125, 9, 1, -1, 2, -4, 8, -16, 32, -64])
OFFSETS = (3, 1, 4, 1, 5, 9, 2, 6)
TABLE = (
    31, 41, 59, 26, 53, 58, 97, 93, 23, 84, 62, 64, 33, 83, 27, 95,
    2, 88, 41, 97, 16, 93, 99, 37, 51, 5, 82, 9, 74, 94, 45, 92,
)  # fmt: skip


def constants(n: int) -> Case:
    def expected(args: Given) -> Outcomes:
        i, x = np.arange(n), args[1].astype(float64)
        total = sum(WEIGHTS[k] * x[(i + OFFSETS[k]) % n] for k in range(8))
        return [(total + WEIGHTS[i % 16]).astype(float32)]

    return launched(
        "constants",
        flat(n),
        [blank(n), small(n), n],
        expected,
        label=n,
    )


def device_variables(n: int) -> Case:
    def expected(args: Given) -> Outcome:
        i = np.arange(n)
        return (np.take(TABLE, i % 32) + (63 - i % 64) // 2 + 5).astype(int32)

    return launched(
        "device_variables",
        grid_of(1, 128),
        [blank(n, int32), n],
        expected,
        label=n,
    )


def read_only(n: int) -> Case:
    def expected(args: Given) -> Outcomes:
        a, b, c = (x.astype(float64) for x in args[1:4])
        return [(a + a[::-1] + b[:, 0] * b[:, 3] + c).astype(float32)]

    return launched(
        "read_only",
        flat(n),
        [
            blank(n),
            small(n),
            small((n, 4)),
            integers(0, 2**16, n, uint16),
            n,
        ],
        expected,
        label=n,
    )


def cache_operators(n: int) -> Case:
    def expected(args: Given) -> Outcome:
        x = args[1]
        total = 3 * x + x[::-1] + x[np.arange(n) // 2]
        return np.stack([total, -total, 2 * total], 1)

    return launched(
        "cache_operators",
        flat(n),
        [
            blank((n, 3)),
            integers(1, 9, n, float32),
            n,
        ],
        expected,
        label=n,
    )


def local_array(n: int) -> Case:
    def expected(args: Given) -> Outcomes:
        i, x = np.arange(n), args[1]
        counts = np.zeros((n, 33), int64)
        for k in range(40):
            counts[i, x[(i + k) % n] % 33] += k + 1
        best = counts.argmax(axis=1)
        return [(best * 1000 + counts[i, best]).astype(int32)]

    return launched(
        "local_array",
        flat(n),
        [
            blank(n, int32),
            integers(0, 1000, n),
            n,
        ],
        expected,
        label=n,
    )


def spills(n: int) -> Case:
    def expected(args: Given) -> Outcomes:
        i = np.arange(n)
        v = [args[1].astype(float64)[(i + 7 * k) % n] for k in range(48)]
        for _ in range(2):
            for k in range(48):
                v[k] = v[k] * 0.5 + v[(k * 5 + 1) % 48]
        return [sum(v[k] * (k + 1) for k in range(48)).astype(float32)]

    return launched(
        "spills",
        flat(n, 256),
        [
            blank(n),
            lambda rng: 4 * rng.integers(-2, 3, n).astype(float32),
            n,
        ],
        expected,
        label=n,
    )


def local_bytes(n: int) -> Case:
    def one(x: int) -> int:
        order = [k * 7 % 20 for k in range(20)]
        value = [0] * 6
        for k in range(8):
            a, b = (x >> k) & 15, (x >> (k + 3)) & 15
            order[a], order[b] = order[b], order[a]
            value[a % 6] += order[b]
        return order[x & 15] + value[x & 3] * 100

    return launched(
        "local_bytes",
        flat(n),
        [
            blank(n, int32),
            integers(0, 2**15, n),
            n,
        ],
        lambda a: np.array([one(x) for x in a[1].tolist()], int32),
        label=n,
    )


# Asynchronous copies.


def async_widths() -> Case:
    def expected(args: Given) -> Outcomes:
        t, x = np.arange(128), args[1]
        a, b, c = x[:128], x[128:384], x[384:].reshape(128, 4).copy()
        c[4::5, 2:] = 0
        c = c.ravel()
        return [a[127 - t] + b[(t * 2 + 5) % 256] + c[(t * 4 + 6) % 512] + c[(t * 4 + 131) % 512]]

    return launched(
        "async_widths",
        grid_of(1, 128),
        [blank(128), small(896)],
        expected,
        minimum_capability=80,
    )


def product(a: Array, b: Array) -> Near:
    """A·B in float32, in any order of summation."""
    a, b = a.astype(float64), b.astype(float64)
    error = (a.shape[1] + 2) * FLOAT_EPSILON * (abs(a) @ abs(b))
    return Near(value=a @ b, error=error)


def async_gemm(n: int) -> Case:
    return launched(
        "async_gemm",
        ((n // 32, n // 32, 1), (32, 8, 1)),
        [
            blank((n, n)),
            real((n, n)),
            real((n, n)),
            n,
        ],
        lambda a: product(a[1], a[2]),
        label=n,
        minimum_capability=80,
    )


def partial_copies() -> Case:
    def expected(args: Given) -> Outcome:
        staged = []
        for width in (4, 8, 16):
            padded = np.append(args[1], np.zeros(16, uint8))
            rows = padded[: 32 * width].reshape(32, width)
            for t, row in enumerate(rows):
                row[t % (width + 1) :] = 0
            staged.append(rows.ravel())
        return np.concatenate(staged)

    return launched(
        "partial_copies",
        grid_of(1, 32),
        [
            blank(32 * 28, uint8),
            # the last lane copies 31 % 17 of its 16 bytes, and there are no more
            integers(1, 256, 31 * 16 + 31 % 17, uint8),
        ],
        expected,
        minimum_capability=80,
    )


def constant_sizes() -> Case:
    def expected(args: Given) -> Outcome:
        out = np.zeros((4, 32, 4), float32)
        for k, floats in enumerate((1, 2, 3, 0)):
            out[k, ::-1, :floats] = args[1][:, :floats]
        return out.reshape(128, 4)

    return launched(
        "constant_sizes",
        grid_of(1, 32),
        [blank((128, 4)), small((32, 4))],
        expected,
        minimum_capability=80,
    )


CASES = (
    transpose("naive", 45, 67),
    transpose("tiled", 45, 67),
    transpose("tiled", 64, 32),
    transpose("padded", 97, 33),
    copy_rows(70, 41),
    stencil("clamped", 45, 23),
    stencil("zero_edges", 70, 9),
    convolve(333),
    laplacian(11, 9, 7),
    byte_loads(333),
    shorts(301),
    bytes_in_shared(),
    pixels(203),
    copy_float4(301, 0),
    copy_float4(301, 1),
    copy_strided(150, 3),
    particles(205),
    constants(150),
    device_variables(100),
    read_only(170),
    cache_operators(190),
    local_array(140),
    spills(300),
    local_bytes(140),
    async_widths(),
    async_gemm(96),
    partial_copies(),
    constant_sizes(),
)

COUNTED = (
    transpose("naive", 512, 512),
    transpose("tiled", 512, 512),
    transpose("padded", 512, 512),
    copy_rows(512, 512),
    stencil("clamped", 500, 333),
    stencil("zero_edges", 500, 333),
    convolve(20_001),
    laplacian(61, 50, 33),
    byte_loads(50_001),
    shorts(20_003),
    copy_float4(20_000, 1),
    copy_strided(20_000, 3),
    copy_strided(5_000, 33),
    particles(10_001),
    constants(10_000),
    local_array(4_001),
    local_bytes(4_001),
    spills(10_001),
    async_widths(),
    async_gemm(256),
)
