"""Launches that put the rules of times and traffic on trial: the kernels of trial/.

Each kernel is in a family of similar ones. A family is in one of three parts: rules may be fitted
on `fit`, chosen on `select`, and their accuracy is what `final` says, which is predicted once. A
hash of the family's name says which part it is, and one of the kernel's name which compiler makes
its code: nobody picked them.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.resimulate import by_nvcc
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from validation.corpus.case import (
    Array,
    Case,
    Draw,
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
    real,
    tiles,
)
from validation.timing.timed_launches import OPTIONS

FOLDER = Path(__file__).parent / "trial"
PARTS = ("fit", "select", "final")
COMPILERS = ("NVRTC", "nvcc")
DEVICES = ("h100", "h200")

Size = tuple[int, ...]
Built = tuple[Shape, Make, Expected]


def _chosen_by_hash(text: str, among: Sequence[str]) -> str:
    return among[int(sha256(text.encode()).hexdigest(), 16) % len(among)]


def recorded(device: str) -> dict[str, Any]:
    """Times and counters of every launch on a GPU: "h100" or "h200"."""
    path = FOLDER.with_name("recorded") / f"trial_{device}.json.xz"
    document: dict[str, Any] = json.loads(lzma.decompress(path.read_bytes()))
    return document


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One kernel: its family, what builds its launches, and their sizes.

    `small` is a size for the simulator.
    """

    kernel: str
    file: str
    family: str
    build: Callable[..., Built]
    sizes: tuple[Size, ...]
    small: Size

    @property
    def part(self) -> str:
        return _chosen_by_hash(self.family, PARTS)

    @property
    def compiler(self) -> str:
        return _chosen_by_hash(f"compiler of {self.kernel}", COMPILERS)

    @property
    def is_product(self) -> bool:
        """True for products of matrices, which the ladder is made of too."""
        return self.family.startswith("product")

    def case(self, size: Size) -> Case:
        name = f"{self.kernel} {'x'.join(map(str, size))}"
        file = f"../timing/trial/{self.file}.cu"
        return launched(self.kernel, *self.build(*size), name=name, file=file)

    @property
    def cases(self) -> list[Case]:
        return [self.case(size) for size in self.sizes]

    def code(self, architecture: str) -> Kernel:
        """Machine code of the kernel by its compiler; raises UnavailableError without that."""
        return Kernel.from_image(_image(self.file, self.compiler, architecture), self.kernel)


@cache
def _image(file: str, compiler: str, architecture: str) -> bytes:
    """All kernels of a file."""
    path = FOLDER / f"{file}.cu"
    source, kernel = path.read_text(encoding="utf-8"), kernels_of(file)[0]
    if compiler == "nvcc":
        return by_nvcc(source, path.name, kernel, architecture, OPTIONS).image
    return compile_cubin(
        source, name=path.name, kernel=kernel, arch=architecture, options=OPTIONS
    ).image


def kernels_of(file: str) -> list[str]:
    """The kernels in a file, in order."""
    return re.findall(r"^EXPORT (\w+)\(", (FOLDER / f"{file}.cu").read_text("utf-8"), re.MULTILINE)


FILES = {kernel: path.stem for path in FOLDER.glob("*.cu") for kernel in kernels_of(path.stem)}
TRIALS: list[Trial] = []
Build = Callable[..., Built]


def trial(family: str, *sizes: Size, small: Size) -> Callable[[Build], Build]:
    """Add the kernel that is called like the function, which builds a launch of a size."""

    def add(build: Build) -> Build:
        TRIALS.append(
            Trial(
                kernel=build.__name__,
                file=FILES[build.__name__],
                family=family,
                build=build,
                sizes=sizes,
                small=small,
            )
        )
        return build

    return add


i32, u32, f32 = np.int32, np.uint32, np.float32


def _exact(a: Array) -> Array:
    return a.astype(np.float64)


def _near(value: Array, error: float = 1e-4) -> Near:
    """Within a share of the largest number."""
    return Near(value=value, error=error * float(np.max(np.abs(value), initial=1e-30)))


def _rows_of_warps(rows: int, height: int = 4) -> Shape:
    return (-(-rows // height), 1, 1), (32, height, 1)


def _words(*shape: int) -> Draw:
    return native_integers(0, 2**32, shape, u32)


def _bytes(*shape: int) -> Draw:
    return native_integers(0, 256, shape, np.uint8)


def _starts(g: Generator, rows: int, mean: int, *, equal: bool = False) -> Array:
    """Where rows begin, the last number their total: equal ones, or of a long-tailed length."""
    lengths = np.full(rows, mean) if equal else g.geometric(1 / mean, rows) - 1
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _sums_of(starts: Array, values: Array) -> Array:
    total: Array = np.concatenate([[0.0], np.cumsum(_exact(values))])
    return total[starts[1:]] - total[starts[:-1]]


# Reductions and scans.


@trial("totals", (3_000_017, 264), (25_000_003, 1056), small=(5000, 3))
def squares_total(n: int, blocks: int) -> Built:
    return (
        grid_of(blocks, 256),
        [np.zeros(1, f32), fractions(n), n],
        lambda a: _near(a[0] + (_exact(a[1]) ** 2).sum(keepdims=True)),
    )


@trial("totals", (1_500_004, 396), (3_000_003, 1320), small=(1300, 2))
def dot_wide(n: int, blocks: int) -> Built:
    def expected(a: Given) -> Outcome:
        rounds = -(-n // (128 * blocks))
        whole = np.zeros(rounds * blocks * 128)
        whole[:n] = (_exact(a[1]) * a[2]).reshape(n, 4).sum(axis=1)
        return _near(whole.reshape(rounds, blocks, 128).sum(axis=(0, 2)))

    return (
        grid_of(blocks, 128),
        [blank(blocks), fractions(4 * n), fractions(4 * n), n],
        expected,
    )


@trial("least", (9_999_991,), small=(5000,))
def least_of_blocks(n: int) -> Built:
    blocks = -(-n // 1024)

    def expected(a: Given) -> Outcomes:
        whole = np.full(blocks * 1024, 4e38)
        whole[:n] = a[1]
        return [(whole.reshape(blocks, 1024).argmin(axis=1) + 1024 * np.arange(blocks)).astype(i32)]

    return (
        grid_of(blocks, 256),
        [blank(blocks, i32), lambda g: g.permutation(n).astype(f32), n],
        expected,
    )


@trial("votes", (2_000_000,), (11_000_000,), small=(3010,))
def count_between(n: int) -> Built:
    words = 8 * -(-n // 256)

    def expected(a: Given) -> Outcomes:
        whole = np.zeros(words * 32, u32)
        whole[:n] = (a[1] >= -50) & (a[1] < 20)
        return [whole.reshape(words, 32).sum(axis=1, dtype=u32)]

    return (
        flat(n, 256),
        [
            blank(words, u32), native_integers(-99, 100, n, i32), -50, 20, n
        ],
        expected,
    )  # fmt: skip


@trial("segments", (60_000, 90), (20_011, 700), small=(50, 60))
def segment_sums(segments: int, mean: int) -> Built:
    def make(g: Generator) -> Given:
        starts = _starts(g, segments, mean)
        return [blank(segments), starts, fractions(max(1, starts[-1])), segments]

    return flat(32 * segments, 128), make, lambda a: _near(_sums_of(a[1], a[2]), 1e-5)


@trial("column reductions", (1777, 4000), (300, 50_001), small=(19, 70))
def column_means(rows: int, columns: int) -> Built:
    return (
        tiles(columns, 8, (32, 8)),
        [blank(columns), fractions(rows, columns), rows, columns],
        lambda a: _near(_exact(a[1]).mean(axis=0)),
    )


@trial("row statistics", (30_011, 250), (3001, 5000), small=(9, 100))
def row_variances(rows: int, columns: int) -> Built:
    return (
        _rows_of_warps(rows, 8),
        [blank(rows), fractions(rows, columns), rows, columns],
        lambda a: Near(value=_exact(a[1]).var(axis=1), error=1e-4),
    )


@trial("scans", (700_001,), (6_000_001,), small=(3000,))
def scan_quads(n: int) -> Built:
    blocks = -(-n // 1024)

    def expected(a: Given) -> Outcomes:
        whole = np.zeros(blocks * 1024, i32)
        whole[:n] = a[2]
        sums = np.cumsum(whole.reshape(blocks, 1024), axis=1, dtype=i32)
        return [sums.ravel()[:n], sums[:, -1].copy()]

    return (
        grid_of(blocks, 256),
        [blank(n, i32), blank(blocks, i32), native_integers(-99, 100, n, i32), n],
        expected,
    )


@trial("scans", (6_000_001,), small=(3000,))
def shift_blocks(n: int) -> Built:
    def make(g: Generator) -> Given:
        offsets = g.integers(0, 2**20, -(-n // 1024), i32)
        return [blank(n, i32), native_integers(-99, 100, n, i32), offsets, n]

    return flat(n, 192), make, lambda a: a[1] + a[2].repeat(1024)[:n]


@trial("column scans", (200, 30_001), small=(20, 70))
def running_columns(rows: int, columns: int) -> Built:
    return (
        flat(columns, 64),
        [blank(rows * columns), fractions(rows, columns), rows, columns],
        lambda a: _near(np.cumsum(_exact(a[1]), axis=0)),
    )


@trial("row scans", (9001, 777), small=(9, 70))
def running_maxima(rows: int, columns: int) -> Built:
    def make(g: Generator) -> Given:
        values = g.integers(-(2**31), 2**31, (rows, columns), i32)
        return [blank(rows * columns, i32), values, rows, columns]

    return _rows_of_warps(rows), make, lambda a: np.maximum.accumulate(a[1], axis=1)


# Rows.


def _softmax(a: Array) -> Array:
    raised: Array = np.exp(_exact(a))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


@trial("softmax", (10_007, 300), (2049, 3000), small=(9, 45))
def softmax_online(rows: int, columns: int) -> Built:
    return (
        _rows_of_warps(rows),
        [blank(rows * columns), fractions(rows, columns), rows, columns],
        lambda a: _near(_softmax(a[1])),
    )


@trial("softmax", (3000, 900), (1500, 501), small=(3, 300))
def log_softmax(rows: int, quads: int) -> Built:
    return (
        grid_of(rows, 256),
        [blank(rows * quads * 4), fractions(rows, 4 * quads), quads],
        lambda a: _near(np.log(_softmax(a[1]))),
    )


@trial("softmax", (5000, 2003), small=(3, 300))
def cross_entropy(rows: int, columns: int) -> Built:
    def make(g: Generator) -> Given:
        targets = g.integers(0, columns, rows, i32)
        return [blank(rows), fractions(rows, columns), targets, columns]

    return (
        grid_of(rows, 256),
        make,
        lambda a: _near(-np.log(_softmax(a[1]))[np.arange(rows), a[2]]),
    )


@trial("normalization", (7001, 768), (2500, 4100), small=(3, 300))
def layer_norm(rows: int, columns: int) -> Built:
    def expected(a: Given) -> Outcome:
        x = _exact(a[1])
        x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
        return _near(x * a[2] + a[3])

    return (
        grid_of(rows, 256),
        [
            blank(rows * columns),
            fractions(rows, columns),
            fractions(columns),
            fractions(columns),
            columns,
        ],
        expected,
    )


@trial("normalization", (9000, 640), small=(9, 70))
def rms_norm(rows: int, columns: int) -> Built:
    def expected(a: Given) -> Outcome:
        x = _exact(a[1])
        return _near(x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * a[2])

    return (
        _rows_of_warps(rows),
        [
            blank(rows * columns),
            fractions(rows, columns),
            fractions(columns),
            rows,
            columns,
        ],
        expected,
    )


@trial("per channel", (1536, 3136), small=(6, 300))
def batch_norm(planes: int, plane: int) -> Built:
    channels = planes // 2

    def expected(a: Given) -> Outcome:
        s = _exact(a[2])[np.arange(planes) % channels, :, None]
        return _near((a[1] - s[:, 0]) * s[:, 1] * s[:, 2] + s[:, 3])

    return (
        tiles(plane, planes, (256, 1)),
        [
            blank(planes * plane),
            fractions(planes, plane),
            fractions(channels, 4),
            channels,
            plane,
        ],
        expected,
    )


@trial("activations", (2000, 3000), (500, 1111), small=(9, 70))
def gelu_bias(rows: int, columns: int) -> Built:
    def expected(a: Given) -> Outcome:
        x = _exact(a[1]) + a[2]
        return _near(0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))))

    return (
        flat(rows * columns, 256),
        [
            blank(rows * columns),
            real((rows, columns)),
            fractions(columns),
            columns,
            rows * columns,
        ],
        expected,
    )


@trial("activations", (5_000_001, 792), small=(5000, 3))
def drop_some(n: int, blocks: int) -> Built:
    def expected(a: Given) -> Outcomes:
        h = np.arange(n, dtype=u32) * u32(0x9E3779B9) ^ u32(77)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
            h = (h ^ h >> u32(shift)) * u32(factor)
        kept = h >> u32(30) != 0
        return [_near(np.where(kept, _exact(a[2]) * 4 / 3, 0)), kept.astype(np.uint8)]

    return (
        grid_of(blocks, 256),
        [blank(n), blank(n, np.uint8), fractions(n), u32(77), n],
        expected,
    )


@trial("row selection", (20_001, 400), small=(9, 70))
def first_two(rows: int, columns: int) -> Built:
    return (
        _rows_of_warps(rows, 8),
        [blank((rows, 2)), fractions(rows, columns), rows, columns],
        lambda a: np.sort(a[1], axis=1)[:, :-3:-1].copy(),
    )


def _embedding(tokens: int, width: int, words: int) -> Make:
    return [
        blank((tokens, width)),
        fractions(words, width),
        native_integers(0, words, tokens, i32),
        width,
    ]


@trial("gathered rows", (20_000, 300, 50_000), (9000, 100, 3000), small=(20, 100, 30))
def embed_tokens(tokens: int, width: int, words: int) -> Built:
    return (
        grid_of(tokens, 128), _embedding(tokens, width, words), lambda a: a[1][a[2]]
    )  # fmt: skip


@trial("scattered sums", (9000, 300, 4000), small=(20, 100, 7))
def embed_backward(tokens: int, width: int, words: int) -> Built:
    def expected(a: Given) -> Outcome:
        total = _exact(a[0])
        np.add.at(total, a[2], _exact(a[1]))
        return _near(total)

    return (
        grid_of(tokens, 128),
        [
            np.zeros((words, width), f32),
            fractions(tokens, width),
            native_integers(0, words, tokens, i32),
            width,
        ],
        expected,
    )


@trial("rotary positions", (1000, 24, 40), small=(5, 3, 40))
def rotate_pairs(positions: int, heads: int, pairs: int) -> Built:
    n = positions * heads * pairs

    def make(g: Generator) -> Given:
        angles = g.random((positions, pairs))
        turns = np.stack([np.cos(angles), np.sin(angles)], axis=2).astype(f32)
        return [
            real((positions, heads, pairs, 2)), turns, heads, pairs, n
        ]  # fmt: skip

    def expected(a: Given) -> Outcome:
        x = _exact(a[0]).view(np.complex128) * _exact(a[1]).view(np.complex128)[:, None]
        return _near(x.view(np.float64))

    return flat(n, 256), make, expected


@trial("attention", (3000, 200), (999, 777), small=(5, 30))
def attend(queries: int, keys: int) -> Built:
    return (
        _rows_of_warps(queries),
        [
            blank(queries * 64),
            real((queries, 64)),
            real((keys, 64)),
            real((keys, 64)),
            queries,
            keys,
        ],
        lambda a: _near(_softmax(_exact(a[1]) @ _exact(a[2]).T / 8) @ _exact(a[3])),
    )


# Planes.


@trial("transposes", (40, 333, 517), (900, 67, 61), small=(2, 33, 21))
def transpose_batch(batch: int, height: int, width: int) -> Built:
    return (
        tiles(width, height, (16, 16), planes=batch),
        [
            blank((batch, width, height)), fractions(batch, height, width),
            width, height,
        ],
        lambda a: a[1].transpose(0, 2, 1).copy(),
    )  # fmt: skip


@trial("transposes", (4001, 3003), small=(70, 45))
def transpose_bytes(width: int, height: int) -> Built:
    return (
        tiles(width, height, (32, 32), (32, 8)),
        [
            blank(width * height, np.uint8), _bytes(height, width), width, height
        ],
        lambda a: a[1].T.copy(),
    )  # fmt: skip


@trial("pixels", (3_000_001,), small=(500,))
def planar_from_pixels(pixels: int) -> Built:
    return (
        flat(pixels, 256),
        [blank(3 * pixels), _bytes(pixels, 3), pixels],
        lambda a: _near(_exact(a[1]).T / 255),
    )


def _blurred(a: Array, weights: Array, axis: int) -> Array:
    pads = [(0, 0), (0, 0)]
    pads[axis] = (7, 7)
    padded = np.pad(_exact(a), pads, mode="edge")
    shifted = (np.take(padded, np.arange(a.shape[axis]) + j, axis) for j in range(len(weights)))
    return np.asarray(sum(float(w) * x for w, x in zip(weights, shifted, strict=True)))


@trial("blurs", (2500, 1999), small=(5, 300))
def blur_rows(height: int, width: int) -> Built:
    return (
        tiles(width, height, (256, 1)),
        [blank(width * height), fractions(height, width), fractions(15), width],
        lambda a: _near(_blurred(a[1], a[2], 1)),
    )


@trial("blurs", (2500, 1999), (700, 641), small=(20, 70))
def blur_columns(height: int, width: int) -> Built:
    return (
        tiles(width, height, (32, 8)),
        [
            blank(width * height), fractions(height, width), fractions(15),
            width, height,
        ],
        lambda a: _near(_blurred(a[1], a[2], 0)),
    )  # fmt: skip


@trial("edges", (3999, 2501), small=(70, 20))
def edges_of_bytes(width: int, height: int) -> Built:
    def expected(a: Given) -> Outcome:
        p, out = a[1].astype(int), np.zeros((height, width), int)
        u, m, d = p[:-2], p[1:-1], p[2:]
        gx = (u + 2 * m + d)[:, 2:] - (u + 2 * m + d)[:, :-2]
        gy = (d - u)[:, :-2] + 2 * (d - u)[:, 1:-1] + (d - u)[:, 2:]
        out[1:-1, 1:-1] = np.minimum(abs(gx) + abs(gy), 255)
        return out.astype(np.uint8)

    return (
        tiles(width, height, (32, 8)),
        [
            blank(width * height, np.uint8), _bytes(height, width), width, height
        ],
        expected,
    )  # fmt: skip


@trial("heat", (2001, 1503), (3501, 3003), small=(70, 20))
def heat_double(width: int, height: int) -> Built:
    def expected(a: Given) -> Outcome:
        out, x = a[1].copy(), a[1]
        around = x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1]
        out[1:-1, 1:-1] += 0.1 * (around - 4 * x[1:-1, 1:-1])
        return _near(out, 1e-12)

    return (
        tiles(width, height, (64, 4)),
        [
            blank((height, width), np.float64), lambda g: g.random((height, width)),
            np.float64(0.1), width, height,
        ],
        expected,
    )  # fmt: skip


@trial("cubes", (130,), (251,), small=(21,))
def average_cube(side: int) -> Built:
    def expected(a: Given) -> Outcome:
        out, x = _exact(a[0]), _exact(a[1])
        for axis in range(3):
            x = np.roll(x, 1, axis) + x + np.roll(x, -1, axis)
        out[1:-1, 1:-1, 1:-1] = x[1:-1, 1:-1, 1:-1] / 27
        return Near(value=out, error=1e-5)

    inner = side - 2
    return (
        tiles(inner, inner, (32, 8), planes=-(-inner // 16)),
        [np.zeros((side,) * 3, f32), fractions(side, side, side), side],
        expected,
    )


@trial("pooling", (150, 222, 226), small=(2, 20, 70))
def max_pool(planes: int, height: int, width: int) -> Built:
    down, across = height // 2, width // 2
    return (
        tiles(across, down, (32, 8), planes=planes),
        [
            blank(planes * down * across), fractions(planes, height, width),
            width, height,
        ],
        lambda a: a[1].reshape(planes, down, 2, across, 2).max(axis=(2, 4)),
    )  # fmt: skip


@trial("pooling", (256, 113, 113), small=(2, 21, 71))
def mean_pool(planes: int, height: int, width: int) -> Built:
    down, across = (height - 1) // 2, (width - 1) // 2

    def expected(a: Given) -> Outcome:
        x = _exact(a[1])
        parts = [
            x[:, y : y + 2 * down : 2, z : z + 2 * across : 2] for y in range(3) for z in range(3)
        ]
        return _near(np.asarray(sum(parts) / 9))

    return (
        tiles(across * down, planes, (128, 1)),
        [
            blank(planes * down * across), fractions(planes, height, width),
            width, height,
        ],
        expected,
    )  # fmt: skip


@trial("convolutions", (250, 333), (601, 799), small=(12, 50))
def convolve_channels(height: int, width: int) -> Built:
    down, across = height - 2, width - 2

    def expected(a: Given) -> Outcome:
        x, w, out = _exact(a[1]), _exact(a[2]), np.zeros((8, down, across))
        for j in range(9):
            part = x[:, j // 3 : j // 3 + down, j % 3 : j % 3 + across]
            out += np.tensordot(w[:, j], part, axes=(0, 0))
        return _near(out)

    return (
        tiles(across, down, (32, 8)),
        [
            blank(8 * down * across), fractions(16, height, width), real((16, 9, 8)),
            width, height,
        ],
        expected,
    )  # fmt: skip


@trial("convolutions", (96, 113, 150), small=(2, 21, 40))
def convolve_depthwise(planes: int, height: int, width: int) -> Built:
    def expected(a: Given) -> Outcome:
        x, w = np.pad(_exact(a[1]), ((0, 0), (2, 2), (2, 2))), _exact(a[2])
        return _near(
            sum(
                w[:, j, None, None] * x[:, j // 5 : j // 5 + height, j % 5 : j % 5 + width]
                for j in range(25)
            )
        )

    return (
        tiles(width, height, (32, 16), (32, 8), planes),
        [
            blank(planes * height * width), fractions(planes, height, width),
            real((planes, 25)), width, height,
        ],
        expected,
    )  # fmt: skip


@trial("resampling", (1500, 2300), (3000, 1100), small=(30, 50))
def resize_bilinear(source: int, to: int) -> Built:
    def expected(a: Given) -> Outcome:
        at = np.arange(to, dtype=f32) * (f32(source - 1) / f32(to - 1))
        low = np.minimum(at.astype(int), source - 2)
        part = _exact(at) - low
        x = _exact(a[1])
        x = x[low] + part[:, None] * (x[low + 1] - x[low])
        return _near(x[:, low] + part * (x[:, low + 1] - x[:, low]), 1e-3)

    return (
        tiles(to, to, (32, 8)),
        [blank(to * to), fractions(source, source), source, to],
        expected,
    )


@trial("resampling", (2777,), small=(50,))
def turn_picture(side: int) -> Built:
    cosine, sine = 52_000, 39_894

    def expected(a: Given) -> Outcome:
        d = np.arange(side) - side // 2
        fx = (d * cosine - d[:, None] * sine >> 16) + side // 2
        fy = (d * sine + d[:, None] * cosine >> 16) + side // 2
        inside = (fx >= 0) & (fy >= 0) & (fx < side) & (fy < side)
        return np.where(inside, a[1][fy.clip(0, side - 1), fx.clip(0, side - 1)], u32(0))

    return (
        tiles(side, side, (16, 16)),
        [
            blank(side * side, u32), _words(side, side),
            cosine, sine, side,
        ],
        expected,
    )  # fmt: skip


@trial("medians", (2000, 1501), small=(70, 20))
def median_of_nine(width: int, height: int) -> Built:
    def expected(a: Given) -> Outcomes:
        x = np.pad(a[1], 1, mode="edge")
        shifted = [x[j // 3 : j // 3 + height, j % 3 : j % 3 + width] for j in range(9)]
        return [np.median(np.stack(shifted), axis=0).astype(f32)]

    return (
        tiles(width, height, (32, 8)),
        [blank(width * height), fractions(height, width), width, height],
        expected,
    )


@trial("bit planes", (777, 6001), small=(70, 9))
def dilate_bits(words: int, height: int) -> Built:
    def expected(a: Given) -> Outcomes:
        x, one, top = a[1], u32(1), u32(31)
        left = np.pad(x, ((0, 0), (1, 0)))[:, :-1]
        right = np.pad(x, ((0, 0), (0, 1)))[:, 1:]
        wide = x | x << one | x >> one | left >> top | right << top
        padded = np.pad(wide, ((1, 1), (0, 0)), mode="edge")
        return [padded[:-2] | padded[1:-1] | padded[2:]]

    return (
        tiles(words, height, (128, 1)),
        [
            blank(words * height, u32), _words(height, words),
            words, height,
        ],
        expected,
    )  # fmt: skip


# What depends on data.


def _sparse(rows: int, mean: int, equal: bool) -> Make:
    def make(g: Generator) -> Given:
        starts = _starts(g, rows, mean, equal=equal)
        entries = max(1, int(starts[-1]))
        return [
            blank(rows), starts, native_integers(0, rows, entries, i32), fractions(entries),
            fractions(rows), rows,
        ]  # fmt: skip

    return make


def _sparse_product(a: Given) -> Outcome:
    return _near(_sums_of(a[1], _exact(a[3]) * a[4][a[2]]))


@trial("sparse", (200_000, 12, 1), (100_003, 25, 0), small=(300, 5, 0))
def sparse_by_threads(rows: int, mean: int, equal: int) -> Built:
    return flat(rows, 128), _sparse(rows, mean, bool(equal)), _sparse_product


@trial("sparse", (60_000, 80, 1), (100_003, 40, 0), small=(50, 40, 0))
def sparse_by_warps(rows: int, mean: int, equal: int) -> Built:
    return flat(32 * rows, 256), _sparse(rows, mean, bool(equal)), _sparse_product


@trial("sparse", (300_007, 9), small=(300, 5))
def sparse_ellpack(rows: int, width: int) -> Built:
    def make(g: Generator) -> Given:
        near = np.arange(rows) + g.integers(-500, 501, (width, rows))
        return [
            blank(rows, np.float64), (near % rows).astype(i32), g.random((width, rows)),
            g.random(rows), width, rows,
        ]  # fmt: skip

    return flat(rows, 192), make, lambda a: _near((a[2] * a[3][a[1]]).sum(axis=0), 1e-12)


@trial("graphs", (400_000, 8), (60_000, 30), small=(300, 5))
def relax_vertices(vertices: int, mean: int) -> Built:
    def make(g: Generator) -> Given:
        starts = _starts(g, vertices, mean)
        edges = max(1, int(starts[-1]))
        return [
            blank(vertices, i32), native_integers(0, 10**6, vertices, i32), starts,
            native_integers(0, vertices, edges, i32), native_integers(0, 999, edges, i32), vertices,
        ]  # fmt: skip

    def expected(a: Given) -> Outcomes:
        best = a[1].copy()
        at = np.repeat(np.arange(vertices), np.diff(a[2]))
        np.minimum.at(best, at, (a[1][a[3]] + a[4])[: len(at)])
        return [best]

    return flat(vertices, 256), make, expected


@trial("permutations", (1_000_003,), small=(500,))
def gather_quads(n: int) -> Built:
    return (
        flat(n, 256),
        [blank(4 * n), fractions(n, 4), lambda g: g.permutation(n).astype(i32), n],
        lambda a: a[1][a[2]],
    )


@trial("permutations", (900_001,), (5_000_011,), small=(500,))
def scatter_words(n: int) -> Built:
    def expected(a: Given) -> Outcomes:
        out = np.empty_like(a[0])
        out[a[2]] = a[1]
        return [out]

    return (
        flat(n, 256),
        [
            blank(n, u32), _words(n), lambda g: g.permutation(n).astype(i32), n
        ],
        expected,
    )  # fmt: skip


@trial("histograms", (6_000_001, 528), small=(5000, 3))
def bins_of_warps(n: int, blocks: int) -> Built:
    return (
        grid_of(blocks, 256),
        [np.zeros(64, u32), fractions(n), n],
        lambda a: np.bincount((a[1] * f32(64)).astype(int), minlength=64).astype(u32),
    )


@trial("histograms", (1_000_003, 4096), (1_000_003, 1_000_000), small=(900, 100))
def bins_in_l2(n: int, count: int) -> Built:
    return (
        flat(n, 256),
        [np.zeros(count, u32), _words(n), u32(count), n],
        lambda a: np.bincount(a[1] % u32(count), minlength=count).astype(u32),
    )


def _hash_table(keys: Array, size: int) -> Array:
    """A table of (key, place) with linear probing, filled in rounds: in each, one key of a slot."""
    table = np.zeros((size, 2), u32)
    place = np.arange(len(keys), dtype=u32)
    slot = keys * u32(2654435761) & u32(size - 1)
    while len(place):
        free = table[slot, 0] == 0
        _, first = np.unique(slot[free], return_index=True)
        taken = np.flatnonzero(free)[first]
        table[slot[taken], 0], table[slot[taken], 1] = keys[place[taken]], place[taken]
        left = np.ones(len(place), bool)
        left[taken] = False
        place, slot = place[left], slot[left] + u32(1) & u32(size - 1)
    return table


@trial("hash tables", (2**18, 1_500_000), (2**21, 700_000), small=(256, 300))
def probe_table(size: int, n: int) -> Built:
    def make(g: Generator) -> Given:
        keys = g.permutation(2 * size)[: size * 5 // 8].astype(u32) + u32(1)
        wanted = g.integers(1, 2 * size + 1, n, u32)
        return [blank(n, i32), _hash_table(keys, size), wanted, u32(size - 1), n]

    def expected(a: Given) -> Outcome:
        place = np.full(2 * size + 1, -1, i32)
        table = a[1][a[1][:, 0] > 0]
        place[table[:, 0]] = table[:, 1]
        return place[a[2]]

    return flat(n, 128), make, expected


@trial("look-ups", (3_000_001, 5000), small=(500, 30))
def interpolate(n: int, steps: int) -> Built:
    return (
        flat(n, 256),
        [blank(n), fractions(n), fractions(steps + 1), steps, n],
        lambda a: _near(np.interp(_exact(a[1]) * steps, np.arange(steps + 1), a[2]), 1e-3),
    )


@trial("merging", (700_001, 300_003), small=(100, 300))
def merge_two(n: int, m: int) -> Built:
    return (
        flat(n + m, 128),
        lambda g: [
            blank(n + m, i32), np.sort(g.integers(0, 2**20, n, i32)),
            np.sort(g.integers(0, 2**20, m, i32)), n, m,
        ],
        lambda a: np.sort(np.concatenate(a[1:3])),
    )  # fmt: skip


def _powers(lengths: Array, x: Array) -> Array:
    """x after so many steps of 0.75 x + 0.125."""
    return (x - 0.5) * 0.75 ** lengths[:, None] + 0.5


@trial("queues", (5000, 396), (30_000, 792), small=(20, 3))
def task_queue(tasks: int, blocks: int) -> Built:
    def make(g: Generator) -> Given:
        lengths = np.minimum(g.geometric(1 / 150, tasks), 3000).astype(i32)
        return [blank((tasks, 128)), lengths, np.zeros(2, u32), tasks]

    return grid_of(blocks, 128), make, lambda a: _near(_powers(a[1], 0.001 * np.arange(128)))


@trial("triangles", (3001,), small=(150,))
def triangle_rows(side: int) -> Built:
    def expected(a: Given) -> Outcome:
        x = np.zeros((side, -(-side // 128) * 128))
        x[:, :side] = np.tril(_exact(a[1]))
        return _near(x.reshape(side, -1, 4, 32).sum(axis=(1, 3)))

    return (
        grid_of(side, 128),
        [blank(4 * side), fractions(side, side), side],
        expected,
    )


def _xorshift(x: Array, rounds: int) -> Array:
    for _ in range(rounds):
        x = x ^ x << u32(13)
        x = x ^ x >> u32(17)
        x = x ^ x << u32(5)
    return x


@trial(
    "unequal blocks",
    (4000, 200, 1500, 37),
    (1000, 100, 3000, 500),
    small=(9, 5, 20, 4),
)
def few_long_blocks(blocks: int, usual: int, rare: int, every: int) -> Built:
    def expected(a: Given) -> Outcome:
        x = np.arange(1, blocks * 128 + 1, dtype=u32).reshape(blocks, 128)
        long = (np.arange(blocks) % every == 0)[:, None]
        return np.where(long, _xorshift(x, rare), _xorshift(x, usual))

    return (
        grid_of(blocks, 128),
        [blank((blocks, 128), u32), usual, rare, every],
        expected,
    )


@trial("modular powers", (150_001,), small=(300,))
def powers_below(n: int) -> Built:
    def expected(a: Given) -> Outcome:
        modulus = np.uint64(1_000_003)
        base = a[1].astype(np.uint64) % modulus
        exponent, result = a[1] >> (a[1] & u32(15)), np.ones(n, np.uint64)
        while exponent.any():
            result = np.where(exponent & u32(1), result * base % modulus, result)
            base, exponent = base * base % modulus, exponent >> u32(1)
        return result.astype(u32)

    return (
        flat(n, 128),
        [blank(n, u32), _words(n), u32(1_000_003), n],
        expected,
    )


@trial("sorting", (2**22, 2**7), (2**21, 1), small=(1024, 4))
def sort_step(n: int, distance: int) -> Built:
    run = 4 * distance

    def expected(a: Given) -> Outcomes:
        i = np.flatnonzero(np.arange(n) & distance == 0)
        one, other = a[0][i], a[0][i + distance]
        up = i & run == 0
        out = a[0].copy()
        out[i] = np.where(up, np.minimum(one, other), np.maximum(one, other))
        out[i + distance] = np.where(up, np.maximum(one, other), np.minimum(one, other))
        return [out]

    return (
        flat(n // 2, 256),
        [_words(n), distance, run, n],
        expected,
    )


@trial("sorting", (400_001,), small=(1200,))
def sort_tiles(n: int) -> Built:
    def expected(a: Given) -> Outcome:
        whole = np.full(-(-n // 512) * 512, 3e38, f32)
        whole[:n] = a[1]
        return np.sort(whole.reshape(-1, 512), axis=1).ravel()[:n]

    return (
        grid_of(-(-n // 512), 256), [blank(n), fractions(n), n], expected
    )  # fmt: skip


@trial("digits", (2_000_003,), small=(5000,))
def digit_counts(n: int) -> Built:
    blocks = -(-n // 2048)

    def expected(a: Given) -> Outcome:
        digit = (a[1] >> u32(12) & u32(15)).astype(int)
        at = digit * blocks + np.arange(n) // 2048
        return np.bincount(at, minlength=16 * blocks).astype(u32)

    return (
        grid_of(blocks, 256),
        [blank(16 * blocks, u32), _words(n), 12, n],
        expected,
    )


# Bytes, bits and structures.


@trial("mapped bytes", (5_000_001,), small=(500,))
def map_bytes(n: int) -> Built:
    return (
        flat(n, 256),
        [blank(n, np.uint8), _bytes(n), _bytes(256), n],
        lambda a: a[2][a[1]],
    )


@trial("text", (6_000_001,), small=(500,))
def upper_case(quads: int) -> Built:
    def expected(a: Given) -> Outcomes:
        lower = (a[0] >= ord("a")) & (a[0] <= ord("z"))
        return [a[0] - np.where(lower, np.uint8(32), np.uint8(0))]

    return flat(quads, 256), [_bytes(4 * quads), quads], expected


@trial("text", (2_500_003,), small=(500,))
def count_lines(n: int) -> Built:
    warps = 8 * -(-n // 256)

    def expected(a: Given) -> Outcomes:
        whole = np.zeros(warps * 512, bool)
        whole[: 16 * n] = a[1] == 10
        return [whole.reshape(warps, 512).sum(axis=1).astype(u32)]

    return flat(n, 256), [blank(warps, u32), _bytes(16 * n), n], expected


def _crc_table() -> Array:
    table = np.arange(256, dtype=u32)
    for _ in range(8):
        table = np.where(table & u32(1), table >> u32(1) ^ u32(0xEDB88320), table >> u32(1))
    return table


@trial("checksums", (60_001, 90), small=(300, 20))
def checksums(n: int, length: int) -> Built:
    def expected(a: Given) -> Outcome:
        crc = np.full(n, 2**32 - 1, u32)
        for k in range(length):
            crc = a[2][(crc ^ a[1][:, k]) & u32(255)] ^ crc >> u32(8)
        return ~crc

    return (
        flat(n, 256),
        [blank(n, u32), _bytes(n, length), _crc_table(), length, n],
        expected,
    )


def _bits(words: Array) -> Array:
    return np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")


@trial("packed bits", (7_000_001,), small=(500,))
def bits_of_signs(n: int) -> Built:
    def expected(a: Given) -> Outcome:
        whole = np.zeros(-(-n // 32) * 32, np.uint8)
        whole[:n] = a[1] < 0
        return np.packbits(whole, bitorder="little").view(u32)

    return (
        flat(n, 256), [blank(-(-n // 32), u32), real(n), n], expected
    )  # fmt: skip


@trial("packed bits", (12_000_001,), small=(500,))
def bytes_of_bits(n: int) -> Built:
    words = -(-n // 32)
    return (
        flat(n, 512),
        [blank(n, np.uint8), _words(words), n],
        lambda a: _bits(a[1])[:n],
    )


@trial("letters", (2_000_001,), small=(500,))
def encode_sixes(n: int) -> Built:
    def expected(a: Given) -> Outcomes:
        x = a[1].reshape(n, 3).astype(int)
        bits = x[:, 0] << 16 | x[:, 1] << 8 | x[:, 2]
        return [a[2][np.stack([bits >> shift & 63 for shift in (18, 12, 6, 0)], axis=1)]]

    return (
        flat(n, 256),
        [blank(4 * n, np.uint8), _bytes(3 * n), _bytes(64), n],
        expected,
    )


@trial("structures", (500_001,), (2_000_003,), small=(500,))
def move_points(n: int) -> Built:
    return (
        flat(n, 256),
        [fractions(n, 3), fractions(n, 3), f32(0.5), n],
        lambda a: _near(a[0] + 0.5 * _exact(a[1])),
    )


BODY = np.dtype([("x", f32), ("y", f32), ("mass", f32), ("kind", i32), ("age", i32)])


def _bodies(g: Generator, n: int) -> Array:
    """Five words of each body, the last two of them integers."""
    bodies = g.integers(0, 99, (n, 5), i32)
    bodies.view(f32)[:, :3] = fractions(n, 3)(g)
    return bodies


@trial("structures", (1_500_001,), small=(500,))
def age_bodies(n: int) -> Built:
    def expected(a: Given) -> Outcomes:
        out = a[1].copy()
        reals = out.view(f32)
        reals[:, :2] *= f32(0.5)
        reals[:, 2] += f32(1)
        out[:, 4] += out[:, 3]
        return [out]

    return (
        flat(n, 128),
        [blank((n, 5), i32), lambda g: _bodies(g, n), f32(0.5), n],
        expected,
    )


@trial("structures", (1_500_001, 528), small=(900, 2))
def split_bodies(n: int, blocks: int) -> Built:
    return (
        grid_of(blocks, 256),
        [blank(n), blank(n), blank(n), lambda g: _bodies(g, n), n],
        lambda a: [a[3].view(f32)[:, j].copy() for j in range(3)],
    )


@trial("three bytes", (2_000_001,), small=(500,))
def luma_of_pixels(n: int) -> Built:
    def expected(a: Given) -> Outcome:
        r, g, b = a[1].reshape(n, 3).astype(int).T
        parts = [
            77 * r + 150 * g + 29 * b,
            128 * b - 43 * r - 85 * g + 2**15,
            128 * r - 107 * g - 21 * b + 2**15,
        ]
        return (np.stack(parts, axis=1) >> 8).astype(np.uint8)

    return (
        flat(n, 256), [blank(3 * n, np.uint8), _bytes(3 * n), n], expected
    )  # fmt: skip


@trial("bit distances", (500_001,), small=(500,))
def bit_distances(n: int) -> Built:
    return (
        flat(n, 128),
        [
            blank(n, i32), _words(n, 16), _words(16), n
        ],
        lambda a: np.bitwise_count(a[1] ^ a[2]).sum(axis=1, dtype=i32),
    )  # fmt: skip


@trial("edit distances", (250_001,), small=(300,))
def edit_distances(n: int) -> Built:
    def expected(a: Given) -> Outcome:
        row = [np.full(n, j) for j in range(13)]
        for k in range(12):
            new = [np.full(n, k + 1)]
            for j in range(1, 13):
                least = np.minimum(
                    np.minimum(row[j], new[-1]) + 1, row[j - 1] + (a[1][k] != a[2][j - 1])
                )
                new.append(least)
            row = new
        return row[12].astype(i32)

    return (
        flat(n, 128),
        [
            blank(n, i32), native_integers(97, 101, (12, n), np.uint8),
            native_integers(97, 101, 12, np.uint8), n,
        ],
        expected,
    )  # fmt: skip


@trial("mixing", (400_001, 60), small=(300, 5))
def mix_rounds(n: int, rounds: int) -> Built:
    def expected(a: Given) -> Outcome:
        x, y = a[1].T
        for k in range(rounds):
            x = x + y
            y = (y << u32(13) | y >> u32(19)) ^ x
            x = (x << u32(7) | x >> u32(25)) ^ u32(0x9E3779B9 * k % 2**32)
        return np.stack([x, y], axis=1)

    return (
        flat(n, 256),
        [blank((n, 2), u32), _words(n, 2), rounds, n],
        expected,
    )


# Arithmetic.


@trial("double chains", (700_001, 60), small=(300, 5))
def logistic_double(n: int, steps: int) -> Built:
    def expected(a: Given) -> Outcome:
        x = a[1]
        for _ in range(steps):
            x = 3.5 * x * (1 - x)
        return Near(value=x, error=1e-6)

    return (
        flat(n, 256),
        [blank(n, np.float64), lambda g: g.random(n), steps, n],
        expected,
    )


@trial("double roots", (1_200_001,), small=(300,))
def hypot_double(n: int) -> Built:
    return (
        flat(n, 128),
        lambda g: [blank(n, np.float64), g.random(n), g.random(n), n],
        lambda a: _near(np.hypot(a[1], a[2]) / (1 + a[1]), 1e-13),
    )


@trial("options", (800_001,), small=(300,))
def option_prices(n: int) -> Built:
    def expected(a: Given) -> Outcomes:
        from scipy.special import ndtr

        s, k, t = (_exact(x) for x in a[2:5])
        d1 = (np.log(s / k) + (0.02 + 0.5 * 0.09) * t) / (0.3 * np.sqrt(t))
        discounted = k * np.exp(-0.02 * t)
        call = s * ndtr(d1) - discounted * ndtr(d1 - 0.3 * np.sqrt(t))
        return [Near(value=call, error=1e-3), Near(value=call - s + discounted, error=1e-3)]

    def make(g: Generator) -> Given:
        numbers = [
            (low + (high - low) * fractions(n)(g)).astype(f32)
            for low, high in ((5, 30), (5, 30), (0.25, 5))
        ]
        return [blank(n), blank(n), *numbers, f32(0.02), f32(0.3), n]

    return flat(n, 128), make, expected


@trial("random numbers", (300_032, 100), small=(256, 9))
def throw_darts(threads: int, throws: int) -> Built:
    def expected(a: Given) -> Outcome:
        x = np.arange(threads, dtype=u32) * u32(747796405) + u32(9) | u32(1)
        count = np.zeros(threads, u32)
        for _ in range(throws):
            x = _xorshift(x, 1)
            low, high = x & u32(0xFFFF), x >> u32(16)
            count += low * low + high * high < low * low
        return count

    return flat(threads, 128), [blank(threads, u32), u32(9), throws], expected


@trial("integrators", (250_001, 80), small=(300, 5))
def lorenz_steps(n: int, steps: int) -> Built:
    def expected(a: Given) -> Outcome:
        x, y, z, w = _exact(a[0]).T
        for _ in range(steps):
            d = 10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z
            x, y, z = x + 0.001 * d[0], y + 0.001 * d[1], z + 0.001 * d[2]
        return _near(np.stack([x, y, z, w], axis=1), 1e-3)

    return (
        flat(n, 256), [fractions(n, 4), f32(0.001), steps, n], expected
    )  # fmt: skip


@trial("neighbour lists", (100_003, 40), small=(300, 5))
def pair_forces(n: int, each: int) -> Built:
    def make(g: Generator) -> Given:
        near = (np.arange(n) + g.integers(-2000, 2001, (each, n))) % n
        return [blank((n, 4)), 9 * fractions(n, 4)(g), near.astype(i32), each, n]

    def expected(a: Given) -> Outcome:
        atoms, out = _exact(a[1])[:, :3], np.zeros((n, 4))
        for row in a[2]:
            d = atoms - atoms[row]
            r2 = 1 / ((d * d).sum(axis=1) + 0.5)
            out[:, :3] += (r2**4 * (2 * r2**3 - 1))[:, None] * d
        return _near(out)

    return flat(n, 128), make, expected


@trial("butterflies", (3_000_000, 500), small=(600, 50))
def butterflies(n: int, half: int) -> Built:
    def expected(a: Given) -> Outcome:
        x = _exact(a[0]).view(np.complex128).reshape(-1, 2, half)
        turned = x[:, 1] * np.exp(-1j * np.pi * np.arange(half) / half)
        out = 0.5 * np.stack([x[:, 0] + turned, x[:, 0] - turned], axis=1)
        return _near(out.view(np.float64))

    return (
        flat(n // 2, 256), [real((n, 2)), half, n], expected
    )  # fmt: skip


@trial("butterflies", (5001,), small=(3,))
def hadamard_rows(rows: int) -> Built:
    def expected(a: Given) -> Outcome:
        x = _exact(a[1]).reshape(rows, *[2] * 9)
        for axis in range(1, 10):
            low, high = np.split(x, 2, axis)
            x = np.concatenate([low + high, low - high], axis)
        return _near(x)

    return (
        grid_of(rows, 256), [blank(rows * 512), real(rows * 512)], expected
    )  # fmt: skip


@trial("divisions", (500_001, 20), small=(300, 5))
def roots_by_newton(n: int, steps: int) -> Built:
    def expected(a: Given) -> Outcome:
        x = number = _exact(a[1]) + 1
        for _ in range(steps):
            x = 0.5 * (x + number / x)
        return _near(x)

    return (
        flat(n, 256), [blank(n), fractions(n), steps, n], expected
    )  # fmt: skip


@trial("small matrices", (700_001,), small=(300,))
def invert_threes(n: int) -> Built:
    def make(g: Generator) -> Given:
        matrices = real((9, n))(g)
        matrices[::4] += 4
        return [blank((9, n)), matrices, n]

    return (
        flat(n, 128),
        make,
        lambda a: _near(np.linalg.inv(_exact(a[1]).T.reshape(n, 3, 3)).reshape(n, 9).T),
    )


@trial("small matrices", (400_001,), small=(300,))
def factor_fours(n: int) -> Built:
    def make(g: Generator) -> Given:
        matrices = real((n, 4, 4))(g) + 5 * np.eye(4, dtype=f32)
        return [blank((n, 4, 4)), matrices, n]

    def expected(a: Given) -> Outcome:
        m = _exact(a[1])
        for k in range(3):
            m[:, k + 1 :, k] /= m[:, k, k, None]
            m[:, k + 1 :, k + 1 :] -= m[:, k + 1 :, k, None] * m[:, k, None, k + 1 :]
        return _near(m)

    return flat(n, 128), make, expected


@trial("tridiagonal", (40_001, 50), small=(100, 7))
def solve_tridiagonal(n: int, length: int) -> Built:
    def make(g: Generator) -> Given:
        low, high = (fractions(length, n)(g) for _ in range(2))
        mid = (3 + fractions(length, n)(g)).astype(f32)
        return [
            blank((length, n)), blank((length, n)), low, mid, high, length, n
        ]  # fmt: skip

    def expected(a: Given) -> Outcomes:
        low, mid, high = (_exact(x) for x in a[2:5])
        x, c = np.zeros((length, n)), np.zeros((length, n))
        for k in range(length):
            before = (c[k - 1], x[k - 1]) if k else (0.0, 0.0)
            scale = 1 / (mid[k] - low[k] * before[0])
            c[k], x[k] = high[k] * scale, (1 - low[k] * before[1]) * scale
        for k in range(length - 2, -1, -1):
            x[k] -= c[k] * x[k + 1]
        return [_near(x), _near(c)]

    return flat(n, 64), make, expected


@trial("elimination", (20_001,), small=(6,))
def eliminate_by_warps(n: int) -> Built:
    def make(g: Generator) -> Given:
        systems = real((n, 16, 17))(g)
        systems[:, :, :16] += 20 * np.eye(16, dtype=f32)
        return [systems, n]

    def expected(a: Given) -> Outcome:
        x = _exact(a[0])
        solved = np.linalg.solve(x[:, :, :16], x[:, :, 16:])
        eye = np.broadcast_to(np.eye(16), (n, 16, 16))
        return _near(np.concatenate([eye, solved], axis=2))

    return _rows_of_warps(n), make, expected


@trial("rotations", (1_000_001,), small=(300,))
def rotate_by_quaternions(n: int) -> Built:
    def make(g: Generator) -> Given:
        turns = real((n, 4))(g)
        turns /= np.linalg.norm(turns, axis=1, keepdims=True)
        return [blank((n, 3)), real((n, 3)), turns, n]

    def expected(a: Given) -> Outcome:
        v, q = _exact(a[1]), _exact(a[2])
        t = 2 * np.cross(q[:, :3], v)
        return _near(v + q[:, 3:] * t + np.cross(q[:, :3], t))

    return flat(n, 256), make, expected


# Streams.


@trial("read streams", (500_000,), (1_000_001,), (3_000_001,), (8_000_001,), small=(500,))
def read_stream(n: int) -> Built:
    return (
        flat(n, 256), [np.zeros(1, f32), fractions(4 * n), n], lambda a: []
    )  # fmt: skip


@trial("read streams", (750_001, 264), (2_500_001, 264), small=(5000, 2))
def read_deep(n: int, blocks: int) -> Built:
    def expected(a: Given) -> Outcome:
        threads = blocks * 256
        whole = np.zeros((-(-n // threads) * threads, 4))
        whole[:n] = a[1].reshape(n, 4)
        return _near(whole.reshape(-1, threads, 4).sum(axis=(0, 2)))

    return (
        grid_of(blocks, 256),
        [blank(blocks * 256), fractions(4 * n), n],
        expected,
    )


@trial("triads", (900_001, 1056), (7_000_001, 1056), small=(900, 2))
def add_three(n: int, blocks: int) -> Built:
    return (
        grid_of(blocks, 256),
        [blank(n), fractions(n), fractions(n), fractions(n), n],
        lambda a: _near(_exact(a[1]) + _exact(a[2]) * a[3]),
    )


@trial("fills", (1_000_001,), (4_000_001,), small=(500,))
def fill_pairs(n: int) -> Built:
    return (
        flat(n, 256),
        [blank((n, 2), np.float64), np.float64(0.5), n],
        lambda a: np.stack([np.full(n, 0.5), 0.5 + np.arange(n)], axis=1),
    )


@trial("shifted copies", (6_000_001, 3), (2_000_001, 1), small=(500, 3))
def copy_late(n: int, offset: int) -> Built:
    return (
        flat(n, 256),
        [blank(n), fractions(n + offset), offset, n],
        lambda a: a[1][offset:],
    )


@trial("shifted copies", (5_000_001,), small=(500,))
def reverse_order(n: int) -> Built:
    return (
        flat(n, 384),
        [blank(n, i32), native_integers(-99, 99, n, i32), n],
        lambda a: a[1][::-1].copy(),
    )


@trial("pitched copies", (5003, 1001), small=(9, 200))
def copy_pitched(height: int, width: int) -> Built:
    def expected(a: Given) -> Outcomes:
        out = a[0].copy()
        out[:, :width] = a[1][:, :width]
        return [out]

    return (
        tiles(width, height, (128, 1)),
        [
            np.zeros((height, width + 23), f32), fractions(height, width + 7),
            width, width + 23, width + 7,
        ],
        expected,
    )  # fmt: skip


@trial("split sums", (700_001, 9), (3_000_001, 4), small=(500, 3))
def add_splits(n: int, splits: int) -> Built:
    return (
        flat(n, 256),
        [blank(n), fractions(splits, n), splits, n],
        lambda a: _near(_exact(a[1]).sum(axis=0)),
    )


@trial("rotating buffers", (1_000_001, 6), (3_000_001, 7), small=(500, 4))
def rotate_buffers(size: int, rounds: int) -> Built:
    def expected(a: Given) -> Outcome:
        ring = _exact(a[0])
        for k in range(rounds):
            ring[(k + 1) % 3] = ring[k % 3] * 0.5 + k
        return _near(ring)

    return flat(size, 256), [fractions(3, size), size, rounds], expected


@trial("optimizers", (2_000_001,), small=(500,))
def adam_step(n: int) -> Built:
    def expected(a: Given) -> Outcomes:
        weights, first, second, grads = (_exact(x) for x in a[:4])
        first = 0.9 * first + 0.1 * grads
        second = 0.999 * second + 0.001 * grads**2
        weights = weights - 0.01 * first / (np.sqrt(second) + 1e-8)
        return [_near(weights), _near(first), _near(second)]

    return (
        flat(n, 256), [*(fractions(n) for _ in range(4)), f32(0.01), n], expected
    )  # fmt: skip


# Matrix products.


def _product(
    m: int, n: int, k: int, *, dtype: type = np.float32, transposed: bool = False
) -> tuple[Given, Expected]:
    """C, A, B and their extents; C gets A·B, or A·Bᵀ, on top of its zeros."""

    given = [
        lambda _: np.zeros((m, n), dtype), real((m, k), dtype),
        real((n, k) if transposed else (k, n), dtype), m, n, k,
    ]  # fmt: skip
    return given, lambda a: _near(_exact(a[1]) @ (_exact(a[2]).T if transposed else _exact(a[2])))


@trial("product by dots", (300, 333, 700), small=(5, 20, 70))
def product_by_dots(m: int, n: int, k: int) -> Built:
    return tiles(n, m, (8, 1), (32, 8)), *_product(m, n, k, transposed=True)


@trial("product of plain tiles", (600, 700, 500), (1001, 999, 1003), small=(30, 50, 40))
def product_24(m: int, n: int, k: int) -> Built:
    return tiles(n, m, (24, 24)), *_product(m, n, k)


@trial("product of register tiles", (800, 960, 500), (1111, 1777, 901), small=(90, 100, 30))
def product_fives(m: int, n: int, k: int) -> Built:
    return tiles(n, m, (80, 80), (16, 16)), *_product(m, n, k)


@trial("product of columns", (800, 900, 700), (1500, 1300, 333), small=(40, 150, 40))
def product_columns(m: int, n: int, k: int) -> Built:
    return tiles(n, m, (128, 32), (128, 1)), *_product(m, n, k)


@trial("product of register tiles", (704, 832, 520), (1472, 1344, 808), small=(64, 128, 24))
def product_ahead(m: int, n: int, k: int) -> Built:
    return tiles(n, m, (64, 64), (64, 1)), *_product(m, n, k)


@trial(
    "product of slices",
    (300, 280, 5000, 256),
    (96, 90, 20_000, 512),
    small=(40, 50, 150, 64),
)
def product_sliced(m: int, n: int, k: int, width: int) -> Built:
    given, expected = _product(m, n, k)
    grid = -(-n // 32), -(-m // 32), -(-k // width)
    return (grid, (32, 8, 1)), [*given, width], expected


@trial("product of doubles", (500, 600, 700), small=(20, 40, 50))
def product_double(m: int, n: int, k: int) -> Built:
    return tiles(n, m, (16, 16)), *_product(m, n, k, dtype=np.float64)


@trial("products of small ones", (300_001,), small=(200,))
def products_of_sixes(n: int) -> Built:
    def expected(a: Given) -> Outcome:
        left, right = (_exact(x).reshape(6, 6, n) for x in a[1:3])
        return _near(np.einsum("rdn,dsn->rsn", left, right))

    return (
        flat(n, 128),
        [blank((36, n)), real((36, n)), real((36, n)), n],
        expected,
    )


@trial("products of small ones", (20_001,), small=(3,))
def products_of_twenties(n: int) -> Built:
    return (
        grid_of(n, 100),
        [blank((n, 20, 20)), real((n, 20, 20)), real((n, 20, 20))],
        lambda a: _near(_exact(a[1]) @ _exact(a[2])),
    )


@trial("product of bytes", (500, 480, 200), small=(20, 40, 9))
def product_bytes(m: int, n: int, quads: int) -> Built:
    def expected(a: Given) -> Outcomes:
        left, right = (x.view(np.int8).astype(np.float64) for x in a[1:3])
        return [(left @ right.T).astype(i32)]

    return (
        tiles(n, m, (16, 16)),
        [
            blank((m, n), i32), native_integers(-(2**31), 2**31, (m, quads), i32),
            native_integers(-(2**31), 2**31, (n, quads), i32), m, n, quads,
        ],
        expected,
    )  # fmt: skip


@trial("vector by matrix", (3001, 2003, 12), (9000, 1500, 30), small=(200, 50, 3))
def vector_matrix(n: int, k: int, height: int) -> Built:
    return (
        tiles(n, height, (128, 1)),
        [np.zeros(n, f32), real(k), real((k, n)), n, k],
        lambda a: _near(_exact(a[1]) @ _exact(a[2])),
    )
