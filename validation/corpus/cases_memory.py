"""Cases of movement: transposes, stencils, widths of access, memory spaces, asynchronous copies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from validation.corpus.case import Case, Near, blank, flat, real, small, tiles, words
from validation.corpus.exact import fma

FLOAT_EPSILON = 2.0**-24  # half a unit in the last place of 1


def transpose(kind: str, width: int, height: int) -> Case:
    grid, block = tiles(width, height, (32, 8) if kind == "naive" else (32, 32), (32, 8))
    return Case(
        name=f"transpose_{kind}_{width}x{height}",
        file="transpose.cu",
        kernel=f"transpose_{kind}",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank((width, height), np.float32),
            real(rng, (height, width)),
            np.int32(width),
            np.int32(height),
        ],
        expected=lambda a: [np.ascontiguousarray(a[1].T)],
    )


def copy_rows(width: int, height: int) -> Case:
    grid, block = tiles(width, height, (32, 32), (32, 8))
    return Case(
        name=f"copy_rows_{width}x{height}",
        file="transpose.cu",
        kernel="copy_rows",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank((height, width), np.float32),
            real(rng, (height, width)),
            np.int32(width),
            np.int32(height),
        ],
        expected=lambda a: [a[1]],
    )


def stencil(kind: str, width: int, height: int) -> Case:
    def clamped(a: list) -> list:
        padded = np.pad(a[1], 1, mode="edge")
        around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        return [np.float32(0.5) * a[1] + np.float32(0.125) * around]

    def zero_edges(a: list) -> list:
        padded = np.pad(a[1], 1)
        shifted = (padded[y : y + height, x : x + width] for y in range(3) for x in range(3))
        return [sum(shifted).astype(np.float32)]

    grid, block = tiles(width, height, (32, 4))
    return Case(
        name=f"stencil_{kind}_{width}x{height}",
        file="stencil.cu",
        kernel=f"stencil_{kind}",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank((height, width), np.float32),
            small(rng, (height, width)),
            np.int32(width),
            np.int32(height),
        ],
        expected=clamped if kind == "clamped" else zero_edges,
    )


def convolve(n: int) -> Case:
    def expected(a: list) -> list:
        x, weights = np.pad(a[1].astype(np.float64), 4), a[2].astype(np.float64)
        products = [weights[j] * x[j : j + n] for j in range(9)]
        return [Near(value=sum(products), error=10 * FLOAT_EPSILON * sum(map(np.abs, products)))]

    grid, block = flat(n)
    return Case(
        name=f"convolve_halo_{n}",
        file="stencil.cu",
        kernel="convolve_halo",
        grid=grid,
        block=block,
        make=lambda rng: [blank(n, np.float32), real(rng, n), real(rng, 9), np.int32(n)],
        expected=expected,
    )


def laplacian(nx: int, ny: int, nz: int) -> Case:
    def expected(a: list) -> list:
        out, x = a[1].copy(), a[1]
        inner = x[1:-1, 1:-1, 1:-1]
        out[1:-1, 1:-1, 1:-1] = (
            x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:] + x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1]
            + x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] - 6 * inner
        )  # fmt: skip
        return [out]

    return Case(
        name=f"laplacian_3d_{nx}x{ny}x{nz}",
        file="stencil.cu",
        kernel="laplacian_3d",
        grid=(-(-nx // 8), -(-ny // 4), -(-nz // 3)),
        block=(8, 4, 3),
        make=lambda rng: [
            blank((nz, ny, nx), np.float32),
            small(rng, (nz, ny, nx)),
            *map(np.int32, (nx, ny, nz)),
        ],
        expected=expected,
    )


# Widths.


def byte_loads(n: int) -> Case:
    def expected(args: list) -> list:
        a, b = (x.astype(np.int32) for x in args[2:4])
        s = ((a + 3 * b) >> 1).astype(np.int8)
        return [s, np.where(b > 100, a, b + 1).astype(np.uint8)]

    grid, block = flat(n)
    return Case(
        name=f"bytes_{n}",
        file="widths.cu",
        kernel="bytes",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.int8),
            blank(n, np.uint8),
            rng.integers(-128, 128, n).astype(np.int8),
            rng.integers(0, 256, n).astype(np.uint8),
            np.int32(n),
        ],
        expected=expected,
    )


def shorts(n: int) -> Case:
    def expected(args: list) -> list:
        a, b = (x.astype(np.int64) for x in args[2:4])
        return [(a * b).astype(np.int16), (abs(a) + (b >> 3)).astype(np.uint16)]

    grid, block = flat(n)
    return Case(
        name=f"shorts_{n}",
        file="widths.cu",
        kernel="shorts",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.int16),
            blank(n, np.uint16),
            rng.integers(-(2**15), 2**15, n).astype(np.int16),
            rng.integers(0, 2**16, n).astype(np.uint16),
            np.int32(n),
        ],
        expected=expected,
    )


def bytes_in_shared() -> Case:
    def expected(args: list) -> list:
        x, t = args[1].astype(np.int64), np.arange(256)
        s, h, v = (np.zeros(256, np.int64) for _ in range(3))
        s[255 - t], h[t], v[t ^ 1] = x.astype(np.int8), x * -97, x * 255
        return [(x[(t + 1) % 256] + s[t] * 3 + h[(t * 5) % 256] - v[t]).astype(np.int32)]

    return Case(
        name="bytes_in_shared",
        file="widths.cu",
        kernel="bytes_in_shared",
        grid=(1, 1, 1),
        block=(256, 1, 1),
        make=lambda rng: [blank(256, np.int32), rng.integers(0, 256, 256).astype(np.uint8)],
        expected=expected,
    )


def pixels(n: int) -> Case:
    def expected(args: list) -> list:
        weighted = args[1].astype(np.int64) @ np.array([77, 150, 29, 0])
        return [((weighted + 128) >> 8).astype(np.uint8)]

    grid, block = flat(n)
    return Case(
        name=f"pixels_to_grey_{n}",
        file="widths.cu",
        kernel="pixels_to_grey",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.uint8),
            rng.integers(0, 256, (n, 4)).astype(np.uint8),
            np.int32(n),
        ],
        expected=expected,
    )


def vectors(n: int) -> Case:
    def expected(args: list) -> list:
        a, b, c, d, e, f = (x.copy() for x in args[:6])
        return [
            np.stack([a[:, 1], a[:, 0] + b[:, 3]], 1),
            np.stack([b[:, 3], b[:, 2], b[:, 1], b[:, 0] + a[:, 0]], 1),
            np.stack([c[:, 0] + c[:, 1], c[:, 0] - c[:, 1]], 1),
            np.stack([d[:, 1], d[:, 0] + e[:, 3]], 1).astype(np.int16),
            np.stack([e[:, 3], e[:, 2], e[:, 1], e[:, 0] + np.int8(1)], 1),
            np.stack([f[:, 1], f[:, 0] ^ f[:, 1]], 1),
        ]

    grid, block = flat(n)
    return Case(
        name=f"vectors_{n}",
        file="widths.cu",
        kernel="vectors",
        grid=grid,
        block=block,
        make=lambda rng: [
            real(rng, (n, 2)),
            real(rng, (n, 4)),
            real(rng, (n, 2), np.float64),
            words(rng, 2 * n, np.int16).reshape(n, 2),
            words(rng, 4 * n, np.int8).reshape(n, 4),
            words(rng, 2 * n, np.int64).reshape(n, 2),
            np.int32(n),
        ],
        expected=expected,
    )


def copy_float4(n: int, shift: int) -> Case:
    def expected(args: list) -> list:
        out = args[0].copy()
        out[shift : shift + n] = args[1][shift : shift + n]
        return [out]

    return Case(
        name=f"copy_float4_{n}_from_{shift}",
        file="widths.cu",
        kernel="copy_float4",
        grid=(3, 1, 1),
        block=(96, 1, 1),
        make=lambda rng: [
            blank((n + shift + 2, 4), np.float32),
            real(rng, (n + shift + 2, 4)),
            np.int32(n),
            np.int32(shift),
        ],
        expected=expected,
    )


def copy_strided(n: int, stride: int) -> Case:
    grid, block = flat(n)
    return Case(
        name=f"copy_strided_{n}_by_{stride}",
        file="widths.cu",
        kernel="copy_strided",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.float32),
            real(rng, n * stride),
            np.int32(n),
            np.int32(stride),
        ],
        expected=lambda a: [a[1][::stride].copy()],
    )


PARTICLE = np.dtype(
    [("p", "f4", 3), ("mass", "f4"), ("energy", "f8"), ("kind", "i2"), ("flags", "u1", 3)],
    align=True,
)
assert PARTICLE.itemsize == 32


def particles(n: int) -> Case:
    def make(rng: np.random.Generator) -> list:
        p = np.zeros(n, PARTICLE)
        p["p"], p["mass"], p["energy"] = real(rng, (n, 3)), real(rng, n), rng.normal(size=n)
        p["kind"], p["flags"] = rng.integers(-99, 99, n), rng.integers(0, 256, (n, 3))
        return [p.view(np.uint8), np.float32(rng.uniform(0, 1)), np.int32(n)]

    def expected(args: list) -> list:
        after = args[0].copy()  # as bytes, so with the padding
        before, p = args[0].view(PARTICLE), after.view(PARTICLE)
        p["p"][:, 0] = fma(np.full(n, args[1]), p["mass"], p["p"][:, 0])
        p["energy"] = p["energy"] * 2 + p["kind"]
        p["flags"][:, 1] = p["flags"][:, 0] ^ p["flags"][:, 2]
        p["kind"] = abs(before["kind"])
        return [after]

    grid, block = flat(n)
    return Case(
        name=f"particles_{n}",
        file="widths.cu",
        kernel="particles",
        grid=grid,
        block=block,
        make=make,
        expected=expected,
    )


def gather_scatter(n: int) -> Case:
    def expected(args: list) -> list:
        out = args[0].copy()
        out[args[3]] = args[1][args[2]]
        return [out]

    grid, block = flat(n)
    return Case(
        name=f"gather_scatter_{n}",
        file="widths.cu",
        kernel="gather_scatter",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.int32),
            words(rng, n, np.int32),
            rng.integers(0, n, n).astype(np.int32),
            rng.permutation(n).astype(np.int32),
            np.int32(n),
        ],
        expected=expected,
    )


def shared_vectors() -> Case:
    def expected(args: list) -> list:
        x, t = args[1], np.arange(128)
        pairs = np.zeros(128, np.float32)
        pairs[t * 3 % 128] = x[:, 0]
        out = x[127 - t].copy()
        out[:, 0] += x.ravel()[t * 17 % 512]
        out[:, 1] += pairs[t ^ 5]
        out[:, 2] += x.reshape(256, 2)[t * 2 % 256, 1]
        return [out]

    return Case(
        name="shared_vectors",
        file="widths.cu",
        kernel="shared_vectors",
        grid=(1, 1, 1),
        block=(128, 1, 1),
        make=lambda rng: [blank((128, 4), np.float32), real(rng, (128, 4))],
        expected=expected,
    )


# Memory spaces. The tables are those of memory.cu.

WEIGHTS = np.array([0.5, -1.25, 3, 0, 7.5, -2, 0.125, 9, 1, -1, 2, -4, 8, -16, 32, -64])
OFFSETS = (3, 1, 4, 1, 5, 9, 2, 6)
TABLE = (
    31, 41, 59, 26, 53, 58, 97, 93, 23, 84, 62, 64, 33, 83, 27, 95,
    2, 88, 41, 97, 16, 93, 99, 37, 51, 5, 82, 9, 74, 94, 45, 92,
)  # fmt: skip


def constants(n: int) -> Case:
    def expected(args: list) -> list:
        i, x = np.arange(n), args[1].astype(np.float64)
        total = sum(WEIGHTS[k] * x[(i + OFFSETS[k]) % n] for k in range(8))
        return [(total + WEIGHTS[i % 16]).astype(np.float32)]

    grid, block = flat(n)
    return Case(
        name=f"constants_{n}",
        file="memory.cu",
        kernel="constants",
        grid=grid,
        block=block,
        make=lambda rng: [blank(n, np.float32), small(rng, n), np.int32(n)],
        expected=expected,
    )


def device_variables(n: int) -> Case:
    def expected(args: list) -> list:
        i = np.arange(n)
        return [(np.take(TABLE, i % 32) + (63 - i % 64) // 2 + 5).astype(np.int32)]

    return Case(
        name=f"device_variables_{n}",
        file="memory.cu",
        kernel="device_variables",
        grid=(1, 1, 1),
        block=(128, 1, 1),
        make=lambda rng: [blank(n, np.int32), np.int32(n)],
        expected=expected,
    )


def read_only(n: int) -> Case:
    def expected(args: list) -> list:
        a, b, c = (x.astype(np.float64) for x in args[1:4])
        return [(a + a[::-1] + b[:, 0] * b[:, 3] + c).astype(np.float32)]

    grid, block = flat(n)
    return Case(
        name=f"read_only_{n}",
        file="memory.cu",
        kernel="read_only",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.float32),
            small(rng, n),
            small(rng, (n, 4)),
            rng.integers(0, 2**16, n).astype(np.uint16),
            np.int32(n),
        ],
        expected=expected,
    )


def cache_operators(n: int) -> Case:
    def expected(args: list) -> list:
        x = args[1]
        total = 3 * x + x[::-1] + x[np.arange(n) // 2]
        return [np.stack([total, -total, 2 * total], 1)]

    grid, block = flat(n)
    return Case(
        name=f"cache_operators_{n}",
        file="memory.cu",
        kernel="cache_operators",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank((n, 3), np.float32),
            rng.integers(1, 9, n).astype(np.float32),
            np.int32(n),
        ],
        expected=expected,
    )


def local_array(n: int) -> Case:
    def expected(args: list) -> list:
        i, x = np.arange(n), args[1]
        counts = np.zeros((n, 33), np.int64)
        for k in range(40):
            counts[i, x[(i + k) % n] % 33] += k + 1
        best = counts.argmax(axis=1)
        return [(best * 1000 + counts[i, best]).astype(np.int32)]

    grid, block = flat(n)
    return Case(
        name=f"local_array_{n}",
        file="memory.cu",
        kernel="local_array",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.int32),
            rng.integers(0, 1000, n).astype(np.int32),
            np.int32(n),
        ],
        expected=expected,
    )


def spills(n: int) -> Case:
    def expected(args: list) -> list:
        i = np.arange(n)
        v = [args[1].astype(np.float64)[(i + 7 * k) % n] for k in range(48)]
        for _ in range(2):
            for k in range(48):
                v[k] = v[k] * 0.5 + v[(k * 5 + 1) % 48]
        return [sum(v[k] * (k + 1) for k in range(48)).astype(np.float32)]

    grid, block = flat(n, 256)
    return Case(
        name=f"spills_{n}",
        file="memory.cu",
        kernel="spills",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.float32),
            4 * rng.integers(-2, 3, n).astype(np.float32),
            np.int32(n),
        ],
        expected=expected,
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

    grid, block = flat(n)
    return Case(
        name=f"local_bytes_{n}",
        file="memory.cu",
        kernel="local_bytes",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.int32),
            rng.integers(0, 2**15, n).astype(np.int32),
            np.int32(n),
        ],
        expected=lambda a: [np.array([one(x) for x in a[1].tolist()], np.int32)],
    )


# Asynchronous copies.


def async_widths() -> Case:
    def expected(args: list) -> list:
        t, x = np.arange(128), args[1]
        a, b, c = x[:128], x[128:384], x[384:].reshape(128, 4).copy()
        c[4::5, 2:] = 0
        c = c.ravel()
        out = a[127 - t] + b[(t * 2 + 5) % 256] + c[(t * 4 + 6) % 512] + c[(t * 4 + 131) % 512]
        return [out]

    return Case(
        name="async_widths",
        file="async_copy.cu",
        kernel="async_widths",
        grid=(1, 1, 1),
        block=(128, 1, 1),
        make=lambda rng: [blank(128, np.float32), small(rng, 896)],
        expected=expected,
        minimum_capability=80,
    )


def product(a: NDArray, b: NDArray) -> Near:
    """A·B in float32, in any order of summation."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    error = (a.shape[1] + 2) * FLOAT_EPSILON * (abs(a) @ abs(b))
    return Near(value=a @ b, error=error)


def async_gemm(n: int) -> Case:
    return Case(
        name=f"async_gemm_{n}",
        file="async_copy.cu",
        kernel="async_gemm",
        grid=(n // 32, n // 32, 1),
        block=(32, 8, 1),
        make=lambda rng: [
            blank((n, n), np.float32),
            real(rng, (n, n)),
            real(rng, (n, n)),
            np.int32(n),
        ],
        expected=lambda a: [product(a[1], a[2])],
        minimum_capability=80,
    )


def partial_copies() -> Case:
    def expected(args: list) -> list:
        staged = []
        for width in (4, 8, 16):
            padded = np.append(args[1], np.zeros(16, np.uint8))
            rows = padded[: 32 * width].reshape(32, width)
            for t, row in enumerate(rows):
                row[t % (width + 1) :] = 0
            staged.append(rows.ravel())
        return [np.concatenate(staged)]

    return Case(
        name="partial_copies",
        file="async_partial.cu",
        kernel="partial_copies",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        make=lambda rng: [
            blank(32 * 28, np.uint8),
            # the last lane copies 31 % 17 of its 16 bytes, and there are no more
            rng.integers(1, 256, 31 * 16 + 31 % 17).astype(np.uint8),
        ],
        expected=expected,
        minimum_capability=80,
    )


def constant_sizes() -> Case:
    def expected(args: list) -> list:
        out = np.zeros((4, 32, 4), np.float32)
        for k, floats in enumerate((1, 2, 3, 0)):
            out[k, ::-1, :floats] = args[1][:, :floats]
        return [out.reshape(128, 4)]

    return Case(
        name="constant_sizes",
        file="async_partial.cu",
        kernel="constant_sizes",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        make=lambda rng: [blank((128, 4), np.float32), small(rng, (32, 4))],
        expected=expected,
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
    vectors(145),
    copy_float4(301, 0),
    copy_float4(301, 1),
    copy_strided(150, 3),
    particles(205),
    gather_scatter(300),
    shared_vectors(),
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
    vectors(10_007),
    copy_float4(20_000, 1),
    copy_strided(20_000, 3),
    copy_strided(5_000, 33),
    particles(10_001),
    gather_scatter(20_000),
    shared_vectors(),
    constants(10_000),
    local_array(4_001),
    local_bytes(4_001),
    spills(10_001),
    async_widths(),
    async_gemm(256),
)
