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
    Arguments,
    Array,
    Draw,
    Given,
    Make,
    Shape,
    blank,
    flat,
    fractions,
    grid_of,
    native_integers,
    real,
    tiles,
)
from validation.timing.declared import LAST_BITS, OPTIONS, Build, Built, Declared, Size

FOLDER = Path(__file__).parent / "trial"
PARTS = ("fit", "select", "final")
COMPILERS = ("NVRTC", "nvcc")
DEVICES = ("h100", "h200")


def _chosen_by_hash(text: str, among: Sequence[str]) -> str:
    return among[int(sha256(text.encode()).hexdigest(), 16) % len(among)]


def recorded(device: str) -> dict[str, Any]:
    """Times and counters of every launch on a GPU: "h100" or "h200"."""
    path = FOLDER.with_name("recorded") / f"trial_{device}.json.xz"
    document: dict[str, Any] = json.loads(lzma.decompress(path.read_bytes()))
    return document


@dataclass(frozen=True, kw_only=True)
class Trial(Declared):
    """A kernel with its family."""

    family: str

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

    def code(self, architecture: str) -> Kernel:
        """Machine code of the kernel by its compiler; raises UnavailableError without that."""
        image = _image(Path(self.file).stem, self.compiler, architecture)
        return Kernel.from_image(image, self.kernel)


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


def trial(family: str, *sizes: Size, small: Size, error: float = 0.0) -> Callable[[Build], Build]:
    """Add the kernel that is called like the function, which builds a launch of a size."""

    def add(build: Build) -> Build:
        TRIALS.append(
            Trial(
                kernel=build.__name__,
                file=f"../timing/trial/{FILES[build.__name__]}.cu",
                family=family,
                build=build,
                sizes=sizes,
                small=small,
                error=error,
            )
        )
        return build

    return add


i32, u32, f32 = np.int32, np.uint32, np.float32


def _rows_of_warps(rows: int, height: int = 4) -> Shape:
    return (-(-rows // height), 1, 1), (32, height, 1)


def _words(*shape: int) -> Draw:
    return native_integers(0, 2**32, shape, u32)


def _bytes(*shape: int) -> Draw:
    return native_integers(0, 256, shape, np.uint8)


def _starts(g: Generator, rows: int, mean: int, *, equal: bool = False) -> Array:
    """Start of each row, then the total: rows of equal length, or of a long-tailed one."""
    lengths = np.full(rows, mean) if equal else g.geometric(1 / mean, rows) - 1
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


# Reductions and scans.


@trial("totals", (3_000_017, 264), (25_000_003, 1056), small=(5000, 3), error=LAST_BITS)
def squares_total(n: int, blocks: int) -> Built:
    return grid_of(blocks, 256), [np.zeros(1, f32), fractions(n), n]


@trial("totals", (1_500_004, 396), (3_000_003, 1320), small=(1300, 2))
def dot_wide(n: int, blocks: int) -> Built:
    return grid_of(blocks, 128), [blank(blocks), fractions(4 * n), fractions(4 * n), n]


@trial("least", (9_999_991,), small=(5000,))
def least_of_blocks(n: int) -> Built:
    blocks = -(-n // 1024)
    return grid_of(blocks, 256), [blank(blocks, i32), lambda g: g.permutation(n).astype(f32), n]


@trial("votes", (2_000_000,), (11_000_000,), small=(3010,))
def count_between(n: int) -> Built:
    words = 8 * -(-n // 256)
    return flat(n, 256), [blank(words, u32), native_integers(-99, 100, n, i32), -50, 20, n]


@trial("segments", (60_000, 90), (20_011, 700), small=(50, 60))
def segment_sums(segments: int, mean: int) -> Built:
    def make(g: Generator) -> Given:
        starts = _starts(g, segments, mean)
        return [blank(segments), starts, fractions(max(1, starts[-1])), segments]

    return flat(32 * segments, 128), make


@trial("column reductions", (1777, 4000), (300, 50_001), small=(19, 70))
def column_means(rows: int, columns: int) -> Built:
    return tiles(columns, 8, (32, 8)), [blank(columns), fractions(rows, columns), rows, columns]


@trial("row statistics", (30_011, 250), (3001, 5000), small=(9, 100))
def row_variances(rows: int, columns: int) -> Built:
    return _rows_of_warps(rows, 8), [blank(rows), fractions(rows, columns), rows, columns]


@trial("scans", (700_001,), (6_000_001,), small=(3000,))
def scan_quads(n: int) -> Built:
    blocks = -(-n // 1024)
    return grid_of(blocks, 256), [
        blank(n, i32),
        blank(blocks, i32),
        native_integers(-99, 100, n, i32),
        n,
    ]


@trial("scans", (6_000_001,), small=(3000,))
def shift_blocks(n: int) -> Built:
    def make(g: Generator) -> Given:
        offsets = g.integers(0, 2**20, -(-n // 1024), i32)
        return [blank(n, i32), native_integers(-99, 100, n, i32), offsets, n]

    return flat(n, 192), make


@trial("column scans", (200, 30_001), small=(20, 70))
def running_columns(rows: int, columns: int) -> Built:
    return flat(columns, 64), [blank(rows * columns), fractions(rows, columns), rows, columns]


@trial("row scans", (9001, 777), small=(9, 70))
def running_maxima(rows: int, columns: int) -> Built:
    def make(g: Generator) -> Given:
        values = g.integers(-(2**31), 2**31, (rows, columns), i32)
        return [blank(rows * columns, i32), values, rows, columns]

    return _rows_of_warps(rows), make


# Rows.


@trial("softmax", (10_007, 300), (2049, 3000), small=(9, 45), error=LAST_BITS)
def softmax_online(rows: int, columns: int) -> Built:
    return _rows_of_warps(rows), [blank(rows * columns), fractions(rows, columns), rows, columns]


@trial("softmax", (3000, 900), (1500, 501), small=(3, 300))
def log_softmax(rows: int, quads: int) -> Built:
    return grid_of(rows, 256), [blank(rows * quads * 4), fractions(rows, 4 * quads), quads]


@trial("softmax", (5000, 2003), small=(3, 300), error=LAST_BITS)
def cross_entropy(rows: int, columns: int) -> Built:
    def make(g: Generator) -> Given:
        targets = g.integers(0, columns, rows, i32)
        return [blank(rows), fractions(rows, columns), targets, columns]

    return grid_of(rows, 256), make


@trial("normalization", (7001, 768), (2500, 4100), small=(3, 300))
def layer_norm(rows: int, columns: int) -> Built:
    return grid_of(rows, 256), [
        blank(rows * columns),
        fractions(rows, columns),
        fractions(columns),
        fractions(columns),
        columns,
    ]


@trial("normalization", (9000, 640), small=(9, 70), error=LAST_BITS)
def rms_norm(rows: int, columns: int) -> Built:
    return _rows_of_warps(rows), [
        blank(rows * columns),
        fractions(rows, columns),
        fractions(columns),
        rows,
        columns,
    ]


@trial("per channel", (1536, 3136), small=(6, 300))
def batch_norm(planes: int, plane: int) -> Built:
    channels = planes // 2
    return tiles(plane, planes, (256, 1)), [
        blank(planes * plane),
        fractions(planes, plane),
        fractions(channels, 4),
        channels,
        plane,
    ]


@trial("activations", (2000, 3000), (500, 1111), small=(9, 70), error=LAST_BITS)
def gelu_bias(rows: int, columns: int) -> Built:
    return flat(rows * columns, 256), [
        blank(rows * columns),
        real((rows, columns)),
        fractions(columns),
        columns,
        rows * columns,
    ]


@trial("activations", (5_000_001, 792), small=(5000, 3))
def drop_some(n: int, blocks: int) -> Built:
    return grid_of(blocks, 256), [blank(n), blank(n, np.uint8), fractions(n), u32(77), n]


@trial("row selection", (20_001, 400), small=(9, 70))
def first_two(rows: int, columns: int) -> Built:
    return _rows_of_warps(rows, 8), [blank((rows, 2)), fractions(rows, columns), rows, columns]


def _embedding(tokens: int, width: int, words: int) -> Make:
    return [
        blank((tokens, width)),
        fractions(words, width),
        native_integers(0, words, tokens, i32),
        width,
    ]


@trial("gathered rows", (20_000, 300, 50_000), (9000, 100, 3000), small=(20, 100, 30))
def embed_tokens(tokens: int, width: int, words: int) -> Built:
    return grid_of(tokens, 128), _embedding(tokens, width, words)


@trial("scattered sums", (9000, 300, 4000), small=(20, 100, 7), error=LAST_BITS)
def embed_backward(tokens: int, width: int, words: int) -> Built:
    return grid_of(tokens, 128), [
        np.zeros((words, width), f32),
        fractions(tokens, width),
        native_integers(0, words, tokens, i32),
        width,
    ]


@trial("rotary positions", (1000, 24, 40), small=(5, 3, 40))
def rotate_pairs(positions: int, heads: int, pairs: int) -> Built:
    n = positions * heads * pairs

    def make(g: Generator) -> Given:
        angles = g.random((positions, pairs))
        turns = np.stack([np.cos(angles), np.sin(angles)], axis=2).astype(f32)
        return [real((positions, heads, pairs, 2)), turns, heads, pairs, n]

    return flat(n, 256), make


@trial("attention", (3000, 200), (999, 777), small=(5, 30), error=LAST_BITS)
def attend(queries: int, keys: int) -> Built:
    return _rows_of_warps(queries), [
        blank(queries * 64),
        real((queries, 64)),
        real((keys, 64)),
        real((keys, 64)),
        queries,
        keys,
    ]


# Planes.


@trial("transposes", (40, 333, 517), (900, 67, 61), small=(2, 33, 21))
def transpose_batch(batch: int, height: int, width: int) -> Built:
    return tiles(width, height, (16, 16), planes=batch), [
        blank((batch, width, height)),
        fractions(batch, height, width),
        width,
        height,
    ]


@trial("transposes", (4001, 3003), small=(70, 45))
def transpose_bytes(width: int, height: int) -> Built:
    return tiles(width, height, (32, 32), (32, 8)), [
        blank(width * height, np.uint8),
        _bytes(height, width),
        width,
        height,
    ]


@trial("pixels", (3_000_001,), small=(500,))
def planar_from_pixels(pixels: int) -> Built:
    return flat(pixels, 256), [blank(3 * pixels), _bytes(pixels, 3), pixels]


@trial("blurs", (2500, 1999), small=(5, 300))
def blur_rows(height: int, width: int) -> Built:
    return tiles(width, height, (256, 1)), [
        blank(width * height),
        fractions(height, width),
        fractions(15),
        width,
    ]


@trial("blurs", (2500, 1999), (700, 641), small=(20, 70))
def blur_columns(height: int, width: int) -> Built:
    return tiles(width, height, (32, 8)), [
        blank(width * height),
        fractions(height, width),
        fractions(15),
        width,
        height,
    ]


@trial("edges", (3999, 2501), small=(70, 20))
def edges_of_bytes(width: int, height: int) -> Built:
    return tiles(width, height, (32, 8)), [
        blank(width * height, np.uint8),
        _bytes(height, width),
        width,
        height,
    ]


@trial("heat", (2001, 1503), (3501, 3003), small=(70, 20))
def heat_double(width: int, height: int) -> Built:
    return tiles(width, height, (64, 4)), [
        blank((height, width), np.float64),
        lambda g: g.random((height, width)),
        np.float64(0.1),
        width,
        height,
    ]


@trial("cubes", (130,), (251,), small=(21,))
def average_cube(side: int) -> Built:
    inner = side - 2
    return tiles(inner, inner, (32, 8), planes=-(-inner // 16)), [
        np.zeros((side,) * 3, f32),
        fractions(side, side, side),
        side,
    ]


@trial("pooling", (150, 222, 226), small=(2, 20, 70))
def max_pool(planes: int, height: int, width: int) -> Built:
    down, across = height // 2, width // 2
    return tiles(across, down, (32, 8), planes=planes), [
        blank(planes * down * across),
        fractions(planes, height, width),
        width,
        height,
    ]


@trial("pooling", (256, 113, 113), small=(2, 21, 71))
def mean_pool(planes: int, height: int, width: int) -> Built:
    down, across = (height - 1) // 2, (width - 1) // 2
    return tiles(across * down, planes, (128, 1)), [
        blank(planes * down * across),
        fractions(planes, height, width),
        width,
        height,
    ]


@trial("convolutions", (250, 333), (601, 799), small=(12, 50))
def convolve_channels(height: int, width: int) -> Built:
    down, across = height - 2, width - 2
    return tiles(across, down, (32, 8)), [
        blank(8 * down * across),
        fractions(16, height, width),
        real((16, 9, 8)),
        width,
        height,
    ]


@trial("convolutions", (96, 113, 150), small=(2, 21, 40))
def convolve_depthwise(planes: int, height: int, width: int) -> Built:
    return tiles(width, height, (32, 16), (32, 8), planes), [
        blank(planes * height * width),
        fractions(planes, height, width),
        real((planes, 25)),
        width,
        height,
    ]


@trial("resampling", (1500, 2300), (3000, 1100), small=(30, 50))
def resize_bilinear(source: int, to: int) -> Built:
    return tiles(to, to, (32, 8)), [blank(to * to), fractions(source, source), source, to]


@trial("resampling", (2777,), small=(50,))
def turn_picture(side: int) -> Built:
    cosine, sine = 52_000, 39_894
    return tiles(side, side, (16, 16)), [
        blank(side * side, u32),
        _words(side, side),
        cosine,
        sine,
        side,
    ]


@trial("medians", (2000, 1501), small=(70, 20))
def median_of_nine(width: int, height: int) -> Built:
    return tiles(width, height, (32, 8)), [
        blank(width * height),
        fractions(height, width),
        width,
        height,
    ]


@trial("bit planes", (777, 6001), small=(70, 9))
def dilate_bits(words: int, height: int) -> Built:
    return tiles(words, height, (128, 1)), [
        blank(words * height, u32),
        _words(height, words),
        words,
        height,
    ]


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


@trial("sparse", (200_000, 12, 1), (100_003, 25, 0), small=(300, 5, 0))
def sparse_by_threads(rows: int, mean: int, equal: int) -> Built:
    return flat(rows, 128), _sparse(rows, mean, bool(equal))


@trial("sparse", (60_000, 80, 1), (100_003, 40, 0), small=(50, 40, 0))
def sparse_by_warps(rows: int, mean: int, equal: int) -> Built:
    return flat(32 * rows, 256), _sparse(rows, mean, bool(equal))


@trial("sparse", (300_007, 9), small=(300, 5))
def sparse_ellpack(rows: int, width: int) -> Built:
    def make(g: Generator) -> Given:
        near = np.arange(rows) + g.integers(-500, 501, (width, rows))
        return [
            blank(rows, np.float64), (near % rows).astype(i32), g.random((width, rows)),
            g.random(rows), width, rows,
        ]  # fmt: skip

    return flat(rows, 192), make


@trial("graphs", (400_000, 8), (60_000, 30), small=(300, 5))
def relax_vertices(vertices: int, mean: int) -> Built:
    def make(g: Generator) -> Given:
        starts = _starts(g, vertices, mean)
        edges = max(1, int(starts[-1]))
        targets, weights = (
            native_integers(0, vertices, edges, i32),
            native_integers(0, 999, edges, i32),
        )
        lengths = native_integers(0, 10**6, vertices, i32)
        return [blank(vertices, i32), lengths, starts, targets, weights, vertices]

    return flat(vertices, 256), make


@trial("permutations", (1_000_003,), small=(500,))
def gather_quads(n: int) -> Built:
    return flat(n, 256), [blank(4 * n), fractions(n, 4), lambda g: g.permutation(n).astype(i32), n]


@trial("permutations", (900_001,), (5_000_011,), small=(500,))
def scatter_words(n: int) -> Built:
    return flat(n, 256), [blank(n, u32), _words(n), lambda g: g.permutation(n).astype(i32), n]


@trial("histograms", (6_000_001, 528), small=(5000, 3))
def bins_of_warps(n: int, blocks: int) -> Built:
    return grid_of(blocks, 256), [np.zeros(64, u32), fractions(n), n]


@trial("histograms", (1_000_003, 4096), (1_000_003, 1_000_000), small=(900, 100))
def bins_in_l2(n: int, count: int) -> Built:
    return flat(n, 256), [np.zeros(count, u32), _words(n), u32(count), n]


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

    return flat(n, 128), make


@trial("look-ups", (3_000_001, 5000), small=(500, 30))
def interpolate(n: int, steps: int) -> Built:
    return flat(n, 256), [blank(n), fractions(n), fractions(steps + 1), steps, n]


@trial("merging", (700_001, 300_003), small=(100, 300))
def merge_two(n: int, m: int) -> Built:
    return flat(n + m, 128), lambda g: [
        blank(n + m, i32),
        np.sort(g.integers(0, 2**20, n, i32)),
        np.sort(g.integers(0, 2**20, m, i32)),
        n,
        m,
    ]


@trial("queues", (5000, 396), (30_000, 792), small=(20, 3))
def task_queue(tasks: int, blocks: int) -> Built:
    def make(g: Generator) -> Given:
        lengths = np.minimum(g.geometric(1 / 150, tasks), 3000).astype(i32)
        return [blank((tasks, 128)), lengths, np.zeros(2, u32), tasks]

    return grid_of(blocks, 128), make


@trial("triangles", (3001,), small=(150,))
def triangle_rows(side: int) -> Built:
    return grid_of(side, 128), [blank(4 * side), fractions(side, side), side]


@trial(
    "unequal blocks",
    (4000, 200, 1500, 37),
    (1000, 100, 3000, 500),
    small=(9, 5, 20, 4),
)
def few_long_blocks(blocks: int, usual: int, rare: int, every: int) -> Built:
    return grid_of(blocks, 128), [blank((blocks, 128), u32), usual, rare, every]


@trial("modular powers", (150_001,), small=(300,))
def powers_below(n: int) -> Built:
    return flat(n, 128), [blank(n, u32), _words(n), u32(1_000_003), n]


@trial("sorting", (2**22, 2**7), (2**21, 1), small=(1024, 4))
def sort_step(n: int, distance: int) -> Built:
    run = 4 * distance
    return flat(n // 2, 256), [_words(n), distance, run, n]


@trial("sorting", (400_001,), small=(1200,))
def sort_tiles(n: int) -> Built:
    return grid_of(-(-n // 512), 256), [blank(n), fractions(n), n]


@trial("digits", (2_000_003,), small=(5000,))
def digit_counts(n: int) -> Built:
    blocks = -(-n // 2048)
    return grid_of(blocks, 256), [blank(16 * blocks, u32), _words(n), 12, n]


# Bytes, bits and structures.


@trial("mapped bytes", (5_000_001,), small=(500,))
def map_bytes(n: int) -> Built:
    return flat(n, 256), [blank(n, np.uint8), _bytes(n), _bytes(256), n]


@trial("text", (6_000_001,), small=(500,))
def upper_case(quads: int) -> Built:
    return flat(quads, 256), [_bytes(4 * quads), quads]


@trial("text", (2_500_003,), small=(500,))
def count_lines(n: int) -> Built:
    warps = 8 * -(-n // 256)
    return flat(n, 256), [blank(warps, u32), _bytes(16 * n), n]


def _crc_table() -> Array:
    table = np.arange(256, dtype=u32)
    for _ in range(8):
        table = np.where(table & u32(1), table >> u32(1) ^ u32(0xEDB88320), table >> u32(1))
    return table


@trial("checksums", (60_001, 90), small=(300, 20))
def checksums(n: int, length: int) -> Built:
    return flat(n, 256), [blank(n, u32), _bytes(n, length), _crc_table(), length, n]


@trial("packed bits", (7_000_001,), small=(500,))
def bits_of_signs(n: int) -> Built:
    return flat(n, 256), [blank(-(-n // 32), u32), real(n), n]


@trial("packed bits", (12_000_001,), small=(500,))
def bytes_of_bits(n: int) -> Built:
    words = -(-n // 32)
    return flat(n, 512), [blank(n, np.uint8), _words(words), n]


@trial("letters", (2_000_001,), small=(500,))
def encode_sixes(n: int) -> Built:
    return flat(n, 256), [blank(4 * n, np.uint8), _bytes(3 * n), _bytes(64), n]


@trial("structures", (500_001,), (2_000_003,), small=(500,))
def move_points(n: int) -> Built:
    return flat(n, 256), [fractions(n, 3), fractions(n, 3), f32(0.5), n]


def _bodies(g: Generator, n: int) -> Array:
    """Bodies of five words: x, y and mass as floats, kind and age as integers."""
    bodies = g.integers(0, 99, (n, 5), i32)
    bodies.view(f32)[:, :3] = fractions(n, 3)(g)
    return bodies


@trial("structures", (1_500_001,), small=(500,))
def age_bodies(n: int) -> Built:
    return flat(n, 128), [blank((n, 5), i32), lambda g: _bodies(g, n), f32(0.5), n]


@trial("structures", (1_500_001, 528), small=(900, 2))
def split_bodies(n: int, blocks: int) -> Built:
    return grid_of(blocks, 256), [blank(n), blank(n), blank(n), lambda g: _bodies(g, n), n]


@trial("three bytes", (2_000_001,), small=(500,))
def luma_of_pixels(n: int) -> Built:
    return flat(n, 256), [blank(3 * n, np.uint8), _bytes(3 * n), n]


@trial("bit distances", (500_001,), small=(500,))
def bit_distances(n: int) -> Built:
    return flat(n, 128), [blank(n, i32), _words(n, 16), _words(16), n]


@trial("edit distances", (250_001,), small=(300,))
def edit_distances(n: int) -> Built:
    return flat(n, 128), [
        blank(n, i32),
        native_integers(97, 101, (12, n), np.uint8),
        native_integers(97, 101, 12, np.uint8),
        n,
    ]


@trial("mixing", (400_001, 60), small=(300, 5))
def mix_rounds(n: int, rounds: int) -> Built:
    return flat(n, 256), [blank((n, 2), u32), _words(n, 2), rounds, n]


# Arithmetic.


@trial("double chains", (700_001, 60), small=(300, 5))
def logistic_double(n: int, steps: int) -> Built:
    return flat(n, 256), [blank(n, np.float64), lambda g: g.random(n), steps, n]


@trial("double roots", (1_200_001,), small=(300,))
def hypot_double(n: int) -> Built:
    return flat(n, 128), lambda g: [blank(n, np.float64), g.random(n), g.random(n), n]


@trial("options", (800_001,), small=(300,), error=LAST_BITS)
def option_prices(n: int) -> Built:
    def make(g: Generator) -> Given:
        numbers = [
            (low + (high - low) * fractions(n)(g)).astype(f32)
            for low, high in ((5, 30), (5, 30), (0.25, 5))
        ]
        return [blank(n), blank(n), *numbers, f32(0.02), f32(0.3), n]

    return flat(n, 128), make


@trial("random numbers", (300_032, 100), small=(256, 9))
def throw_darts(threads: int, throws: int) -> Built:
    return flat(threads, 128), [blank(threads, u32), u32(9), throws]


@trial("integrators", (250_001, 80), small=(300, 5))
def lorenz_steps(n: int, steps: int) -> Built:
    return flat(n, 256), [fractions(n, 4), f32(0.001), steps, n]


@trial("neighbour lists", (100_003, 40), small=(300, 5))
def pair_forces(n: int, each: int) -> Built:
    def make(g: Generator) -> Given:
        near = (np.arange(n) + g.integers(-2000, 2001, (each, n))) % n
        return [blank((n, 4)), 9 * fractions(n, 4)(g), near.astype(i32), each, n]

    return flat(n, 128), make


@trial("butterflies", (3_000_000, 500), small=(600, 50))
def butterflies(n: int, half: int) -> Built:
    return flat(n // 2, 256), [real((n, 2)), half, n]


@trial("butterflies", (5001,), small=(3,))
def hadamard_rows(rows: int) -> Built:
    return grid_of(rows, 256), [blank(rows * 512), real(rows * 512)]


@trial("divisions", (500_001, 20), small=(300, 5))
def roots_by_newton(n: int, steps: int) -> Built:
    return flat(n, 256), [blank(n), fractions(n), steps, n]


@trial("small matrices", (700_001,), small=(300,))
def invert_threes(n: int) -> Built:
    def make(g: Generator) -> Given:
        matrices = real((9, n))(g)
        matrices[::4] += 4
        return [blank((9, n)), matrices, n]

    return flat(n, 128), make


@trial("small matrices", (400_001,), small=(300,))
def factor_fours(n: int) -> Built:
    def make(g: Generator) -> Given:
        matrices = real((n, 4, 4))(g) + 5 * np.eye(4, dtype=f32)
        return [blank((n, 4, 4)), matrices, n]

    return flat(n, 128), make


@trial("tridiagonal", (40_001, 50), small=(100, 7))
def solve_tridiagonal(n: int, length: int) -> Built:
    def make(g: Generator) -> Given:
        low, high = (fractions(length, n)(g) for _ in range(2))
        mid = (3 + fractions(length, n)(g)).astype(f32)
        return [blank((length, n)), blank((length, n)), low, mid, high, length, n]

    return flat(n, 64), make


@trial("elimination", (20_001,), small=(6,))
def eliminate_by_warps(n: int) -> Built:
    def make(g: Generator) -> Given:
        systems = real((n, 16, 17))(g)
        systems[:, :, :16] += 20 * np.eye(16, dtype=f32)
        return [systems, n]

    return _rows_of_warps(n), make


@trial("rotations", (1_000_001,), small=(300,))
def rotate_by_quaternions(n: int) -> Built:
    def make(g: Generator) -> Given:
        turns = real((n, 4))(g)
        turns /= np.linalg.norm(turns, axis=1, keepdims=True)
        return [blank((n, 3)), real((n, 3)), turns, n]

    return flat(n, 256), make


# Streams.


@trial("read streams", (500_000,), (1_000_001,), (3_000_001,), (8_000_001,), small=(500,))
def read_stream(n: int) -> Built:
    return flat(n, 256), [np.zeros(1, f32), fractions(4 * n), n]


@trial("read streams", (750_001, 264), (2_500_001, 264), small=(5000, 2))
def read_deep(n: int, blocks: int) -> Built:
    return grid_of(blocks, 256), [blank(blocks * 256), fractions(4 * n), n]


@trial("triads", (900_001, 1056), (7_000_001, 1056), small=(900, 2))
def add_three(n: int, blocks: int) -> Built:
    return grid_of(blocks, 256), [blank(n), fractions(n), fractions(n), fractions(n), n]


@trial("fills", (1_000_001,), (4_000_001,), small=(500,))
def fill_pairs(n: int) -> Built:
    return flat(n, 256), [blank((n, 2), np.float64), np.float64(0.5), n]


@trial("shifted copies", (6_000_001, 3), (2_000_001, 1), small=(500, 3))
def copy_late(n: int, offset: int) -> Built:
    return flat(n, 256), [blank(n), fractions(n + offset), offset, n]


@trial("shifted copies", (5_000_001,), small=(500,))
def reverse_order(n: int) -> Built:
    return flat(n, 384), [blank(n, i32), native_integers(-99, 99, n, i32), n]


@trial("pitched copies", (5003, 1001), small=(9, 200))
def copy_pitched(height: int, width: int) -> Built:
    return tiles(width, height, (128, 1)), [
        np.zeros((height, width + 23), f32),
        fractions(height, width + 7),
        width,
        width + 23,
        width + 7,
    ]


@trial("split sums", (700_001, 9), (3_000_001, 4), small=(500, 3))
def add_splits(n: int, splits: int) -> Built:
    return flat(n, 256), [blank(n), fractions(splits, n), splits, n]


@trial("rotating buffers", (1_000_001, 6), (3_000_001, 7), small=(500, 4))
def rotate_buffers(size: int, rounds: int) -> Built:
    return flat(size, 256), [fractions(3, size), size, rounds]


@trial("optimizers", (2_000_001,), small=(500,))
def adam_step(n: int) -> Built:
    return flat(n, 256), [*(fractions(n) for _ in range(4)), f32(0.01), n]


# Matrix products.


def _product(m: int, n: int, k: int, *, dtype: type = f32, transposed: bool = False) -> Arguments:
    """C of zeros, A, B or its transpose, and their extents."""
    return [
        lambda _: np.zeros((m, n), dtype), real((m, k), dtype),
        real((n, k) if transposed else (k, n), dtype), m, n, k,
    ]  # fmt: skip


@trial("product by dots", (300, 333, 700), small=(5, 20, 70))
def product_by_dots(m: int, n: int, k: int) -> Built:
    return tiles(n, m, (8, 1), (32, 8)), _product(m, n, k, transposed=True)


@trial("product of plain tiles", (600, 700, 500), (1001, 999, 1003), small=(30, 50, 40))
def product_24(m: int, n: int, k: int) -> Built:
    return tiles(n, m, (24, 24)), _product(m, n, k)


@trial("product of register tiles", (800, 960, 500), (1111, 1777, 901), small=(90, 100, 30))
def product_fives(m: int, n: int, k: int) -> Built:
    return tiles(n, m, (80, 80), (16, 16)), _product(m, n, k)


@trial("product of columns", (800, 900, 700), (1500, 1300, 333), small=(40, 150, 40))
def product_columns(m: int, n: int, k: int) -> Built:
    return tiles(n, m, (128, 32), (128, 1)), _product(m, n, k)


@trial("product of register tiles", (704, 832, 520), (1472, 1344, 808), small=(64, 128, 24))
def product_ahead(m: int, n: int, k: int) -> Built:
    return tiles(n, m, (64, 64), (64, 1)), _product(m, n, k)


@trial(
    "product of slices",
    (300, 280, 5000, 256),
    (96, 90, 20_000, 512),
    small=(40, 50, 150, 64),
    error=LAST_BITS,
)
def product_sliced(m: int, n: int, k: int, width: int) -> Built:
    grid = -(-n // 32), -(-m // 32), -(-k // width)
    return (grid, (32, 8, 1)), [*_product(m, n, k), width]


@trial("product of doubles", (500, 600, 700), small=(20, 40, 50))
def product_double(m: int, n: int, k: int) -> Built:
    return tiles(n, m, (16, 16)), _product(m, n, k, dtype=np.float64)


@trial("products of small ones", (300_001,), small=(200,))
def products_of_sixes(n: int) -> Built:
    return flat(n, 128), [blank((36, n)), real((36, n)), real((36, n)), n]


@trial("products of small ones", (20_001,), small=(3,))
def products_of_twenties(n: int) -> Built:
    return grid_of(n, 100), [blank((n, 20, 20)), real((n, 20, 20)), real((n, 20, 20))]


@trial("product of bytes", (500, 480, 200), small=(20, 40, 9))
def product_bytes(m: int, n: int, quads: int) -> Built:
    return tiles(n, m, (16, 16)), [
        blank((m, n), i32),
        native_integers(-(2**31), 2**31, (m, quads), i32),
        native_integers(-(2**31), 2**31, (n, quads), i32),
        m,
        n,
        quads,
    ]


@trial("vector by matrix", (3001, 2003, 12), (9000, 1500, 30), small=(200, 50, 3), error=LAST_BITS)
def vector_matrix(n: int, k: int, height: int) -> Built:
    return tiles(n, height, (128, 1)), [np.zeros(n, f32), real(k), real((k, n)), n, k]
