"""Cases of cooperation: reductions, scans, sorts, votes, shuffles, atomics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

import numpy as np
from numpy import float16, float32, float64, int32, int64, uint8, uint32, uint64
from numpy.random import Generator

from validation.corpus.case import (
    AnyOrder,
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
    words,
)

FLOAT_EPSILON = 2.0**-24


def grid_stride_sums(x: Array, grid: int, block: int) -> tuple[Array, Array]:
    """Per block, the sum of what its threads visit, and the sum of magnitudes."""
    padded = np.zeros(-(-len(x) // (grid * block)) * grid * block)
    padded[: len(x)] = x
    visited = padded.reshape(-1, grid, block)
    return visited.sum(axis=(0, 2)), abs(visited).sum(axis=(0, 2))


def block_sum(n: int, grid: int, block: int) -> Case:
    def expected(args: Given) -> Outcome:
        total, magnitude = grid_stride_sums(args[1], grid, block)
        steps = n / (grid * block) + 12
        return Near(value=total, error=steps * FLOAT_EPSILON * magnitude)

    return launched(
        "block_sum",
        grid_of(grid, block),
        [blank(grid), real(n), n],
        expected,
        label=n,
    )


def tree_max(n: int, block: int) -> Case:
    return launched(
        "tree_max",
        flat(n, block),
        [
            np.full(1, -(2**31), int32),
            integers(-(2**31), 2**31, n),
            n,
        ],
        lambda a: a[1].max(keepdims=True),
        label=n,
        dynamic_shared_bytes=4 * block,
    )


def softmax(rows: int, columns: int) -> Case:
    def expected(args: Given) -> Outcome:
        x = args[1].astype(float64)
        exponential = np.exp(x - x.max(axis=1, keepdims=True))
        value = exponential / exponential.sum(axis=1, keepdims=True)
        return Near(value=value, error=1e-5 * value + 1e-30)

    return launched(
        "softmax_rows",
        ((-(-rows // 4), 1, 1), (32, 4, 1)),
        [
            blank((rows, columns)),
            lambda rng: (5 * real((rows, columns))(rng)).astype(float32),
            rows,
            columns,
        ],
        expected,
        label=f"{rows}x{columns}",
    )


def dot_double(n: int) -> Case:
    def expected(args: Given) -> Outcome:
        products = args[1] * args[2]
        error = 1e-14 * (abs(products).sum() + abs(args[0]))
        return Near(value=args[0] + products.sum(), error=error)

    return launched(
        "dot_double",
        grid_of(3, 64),
        [
            np.array([0.25]),
            real(n, float64),
            real(n, float64),
            n,
        ],
        expected,
        label=n,
    )


def warp_reductions(block: int) -> Case:
    def expected(args: Given) -> Outcome:
        warps = args[1].reshape(-1, 32)
        per_warp = [
            warps.sum(axis=1, dtype=uint32),
            warps.min(axis=1),
            warps.view(int32).max(axis=1).view(uint32),
            np.bitwise_and.reduce(warps, axis=1),
            np.bitwise_xor.reduce(warps, axis=1),
        ]
        return np.repeat(np.stack(per_warp, 1), 32, axis=0)

    return launched(
        "warp_reductions",
        grid_of(1, block),
        [blank((block, 5), uint32), words(block)],
        expected,
    )


# Scans and sorts.


def scan_blocks(n: int) -> Case:
    def expected(args: Given) -> Outcome:
        sums = [np.cumsum(part, dtype=int32) for part in np.split(args[1], range(256, n, 256))]
        return np.concatenate(sums)

    return launched(
        "scan_blocks",
        flat(n, 256),
        [blank(n, int32), words(n, int32), n],
        expected,
        label=n,
    )


def compact(blocks: int) -> Case:
    def expected(args: Given) -> Outcomes:
        out = args[0].copy()
        parts = args[2].reshape(blocks, 128)
        for block, part in enumerate(parts):
            kept = part[part > 0]
            out[128 * block : 128 * block + len(kept)] = kept
        return [out, (parts > 0).sum(axis=1).astype(int32)]

    return launched(
        "compact",
        grid_of(blocks, 128),
        [
            blank(128 * blocks, int32),
            blank(blocks, int32),
            integers(-50, 51, 128 * blocks),
        ],
        expected,
        label=blocks,
    )


def rank_sort(n: int) -> Case:
    return launched(
        "rank_sort",
        flat(n, 64),
        [
            blank(n),
            integers(1, n, n, float32),  # with equal ones
            n,
        ],
        lambda a: np.sort(a[1]),
        label=n,
    )


# Votes and shuffles.


def votes(blocks: int) -> Case:
    def expected(args: Given) -> Outcome:
        out = np.zeros((blocks, 32, 6), uint32)
        for warp, values in zip(out, args[1].reshape(blocks, 32), strict=True):
            keys = np.trunc(values / 10)
            warp[:, 0], warp[:, 1] = (values > -50).all(), (values > 45).any()
            warp[:, 2] = ballot(values & 1)
            warp[:, 3] = [ballot(keys == key) for key in keys]
            alike = len(set((values < 0).tolist())) == 1
            warp[:, 4], warp[:, 5] = (2**32 - 1 if alike else 0), alike << 8
        return out

    return launched(
        "votes",
        grid_of(blocks, 32),
        [
            blank((blocks, 32, 6), uint32),
            lambda rng: np.concatenate(
                [rng.integers(0, 20, 32), rng.integers(-60, 60, 32 * (blocks - 1))]
            ).astype(int32),
        ],
        expected,
        label=blocks,
    )


def ballot(values: Array) -> int:
    return sum(1 << lane for lane, value in enumerate(values.tolist()) if value)


def shuffles() -> Case:
    def expected(args: Given) -> Outcome:
        x, lane = args[1], np.arange(32)
        in_16, in_8, in_4 = lane & 16, lane & 24, lane & 28
        columns = [
            x[np.full(32, 7)],
            x[in_16 | (x & 15)],
            x[np.where(lane >= 3, lane - 3, lane)],
            x[np.where(lane - in_8 >= 2, lane - 2, lane)],
            x[np.where(lane + 5 < 32, lane + 5, lane)],
            x[np.where(lane + 1 < in_4 + 4, lane + 1, lane)],
            x[lane ^ 9],
            x[lane ^ 4],
            x[31 - lane] + (31 - lane).astype(int32),
        ]
        return np.stack(columns, 1)

    return launched(
        "shuffles",
        grid_of(1, 32),
        [blank((32, 9), int32), words(32, int32)],
        expected,
    )


def shuffle_predicate() -> Case:
    def expected(args: Given) -> Outcome:
        lane = np.arange(32)
        inside = lane + 6 < 32
        return np.stack([args[1][np.where(inside, lane + 6, lane)], inside], 1).astype(int32)

    return launched(
        "shuffle_predicate",
        grid_of(1, 32),
        [blank((32, 2), int32), words(32, int32)],
        expected,
    )


def lane_registers(block: tuple[int, int, int]) -> Case:
    count = int(np.prod(block))

    def expected(args: Given) -> Outcome:
        lane = np.arange(count, dtype=uint64) % 32
        own = uint64(1) << lane
        below, everything = own - 1, uint64(2**32 - 1)
        at_most = below | own
        columns = [lane, below, at_most, everything ^ at_most, everything ^ below, own]
        return np.stack(columns, 1).astype(uint32)

    return launched(
        "lane_registers",
        ((1, 1, 1), block),
        [blank((count, 6), uint32)],
        expected,
    )


# Atomics.


def histogram_shared(n: int, grid: int) -> Case:
    return launched(
        "histogram_shared",
        grid_of(grid, 128),
        [
            integers(0, 9, 256, uint32),
            lambda rng: (
                rng.integers(0, 256, n).astype(uint8) & rng.integers(0, 256, n).astype(uint8)
            ),
            n,
        ],
        lambda args: args[0] + np.bincount(args[1], minlength=256).astype(uint32),
        label=n,
    )


def histogram_weighted(n: int) -> Case:
    return launched(
        "histogram_weighted",
        flat(n),
        [
            small(16),
            integers(0, 16, n),
            small(n),
            n,
        ],
        lambda args: args[0] + np.bincount(args[1], args[2], 16).astype(float32),
        label=n,
    )


def fold(function: Callable[[int, int], int], start: int, values: list[int], dtype: type) -> int:
    mask: int = 2 ** (8 * np.dtype(dtype).itemsize) - 1
    return reduce(lambda a, b: function(a, b) & mask, values, int(start) & mask)


def global_reductions(n: int) -> Case:
    def expected(args: Given) -> Outcomes:
        s, u, wide, d, x = args[:5]
        signed = x.tolist()
        unsigned = [value & 0xFFFFFFFF for value in signed]
        whole = [value & (2**64 - 1) for value in signed]
        total = sum(signed)
        s = [s[0] + total, s[1] - total, min(s[2], *signed), max(s[3], *signed)]
        u = [
            fold(int.__and__, u[0], [value | 0xFFFF for value in unsigned], uint32),
            fold(int.__or__, u[1], [value & 0x0F0F for value in unsigned], uint32),
            fold(int.__xor__, u[2], unsigned, uint32),
            min(int(u[3]), *unsigned),
            max(int(u[4]), *unsigned),
            fold(lambda old, _: 0 if old >= 999 else old + 1, u[5], signed, uint32),
            fold(lambda old, _: 499 if old in (0,) or old > 499 else old - 1, u[6], signed, uint32),
        ]
        wide = [
            fold(int.__add__, wide[0], [value << 20 for value in whole], uint64),
            max(int(wide[1]), *((value << 8) & (2**64 - 1) for value in whole)),
            fold(int.__xor__, wide[2], [value * value for value in signed], uint64),
        ]
        return [
            np.array(s, int32),
            np.array(u, uint32),
            np.array(wide, uint64),
            d + float(total),
        ]

    return launched(
        "global_reductions",
        flat(n, 96),
        [
            integers(-9, 9, 4),
            integers(0, 2**32, 7, uint32),
            integers(0, 2**63, 3, uint64),
            np.array([0.5]),
            integers(-100_000, 100_000, n),
            n,
        ],
        expected,
        label=n,
    )


def tickets(n: int) -> Case:
    def make(rng: Generator) -> Given:
        ticket, swapped, wide = (blank(n + 1, t)(rng) for t in (uint32, uint32, uint64))
        ticket[n], wide[n], swapped[n] = 5, 7, 2**31
        return [ticket, wide, swapped, n]

    def expected(args: Given) -> Outcomes:
        given = np.arange(n + 1)
        return [
            AnyOrder(value=(5 + given).astype(uint32)),
            AnyOrder(value=7 + given.astype(uint64) * uint64(3 << 31)),
            AnyOrder(value=np.append(given[:n], 2**31).astype(uint32)),
        ]

    return launched("tickets", flat(n, 64), make, expected, label=n)


def shared_atomics(blocks: int) -> Case:
    def one(values: Array) -> list[int]:
        x = values.tolist()
        unsigned = [value & 0xFFFFFFFF for value in x]
        xor = fold(int.__xor__, 0, unsigned, uint32)
        squares, largest = sum(value * value for value in x), max(unsigned)
        return [
            sum(x), min(0, *x), max(0, *x), xor, 1, 1, 1, 1,
            fold(int.__and__, 2**32 - 1, [value | 0xFF for value in unsigned], uint32),
            fold(int.__or__, 0, unsigned, uint32),
            len(x) % 41, 0,
            squares, squares >> 32, largest, 0,
        ]  # fmt: skip

    def expected(args: Given) -> Outcome:
        rows = [[v & 0xFFFFFFFF for v in one(part)] for part in args[1].reshape(blocks, -1)]
        return np.array(rows, uint32).view(int32)

    return launched(
        "shared_atomics",
        grid_of(blocks, 96),
        [
            blank((blocks, 16), int32),
            integers(-(2**20), 2**20, 96 * blocks),
        ],
        expected,
        label=blocks,
    )


def cas_product(n: int) -> Case:
    def expected(args: Given) -> Outcomes:
        odd = args[2].tolist()
        product = reduce(int.__mul__, odd, 1)
        narrow, wide = int(args[0][0]) * product, int(args[1][0]) * product
        return [
            np.array([narrow & (2**32 - 1)], uint32),
            np.array([wide & (2**64 - 1)], uint64),
        ]

    return launched(
        "cas_product",
        flat(n, 64),
        [
            np.array([3], uint32),
            np.array([5], uint64),
            lambda rng: rng.integers(0, 2**32, n).astype(uint32) | uint32(1),
            n,
        ],
        expected,
        label=n,
    )


def last_block_sums(blocks: int) -> Case:
    def expected(args: Given) -> Outcomes:
        partial = args[3].reshape(blocks, -1).sum(axis=1).astype(int32)
        return [partial.sum(keepdims=True, dtype=int32), partial]

    return launched(
        "last_block_sums",
        grid_of(blocks, 64),
        [
            blank(1, int32),
            blank(blocks, int32),
            np.zeros(1, uint32),
            integers(-1000, 1000, 64 * blocks),
        ],
        expected,
    )


def spin_lock(blocks: int) -> Case:
    return launched(
        "spin_lock",
        grid_of(blocks, 64),
        [np.zeros(1, int32), np.array([100], int32)],
        lambda a: [a[0], a[1] + int32(2 * blocks)],
    )


def half_adds(n: int) -> Case:
    def expected(args: Given) -> Outcomes:
        sums = args[0].view(float16).reshape(4, 2).copy()
        for i, pair in enumerate(args[1].view(float16).reshape(n, 2)):
            sums[i % 4] += pair
        return [sums.view(uint32).ravel()]

    return launched(
        "half_adds",
        flat(n, 64),
        lambda rng: [
            small(8, float16)(rng).view(uint32),
            small(2 * n, float16)(rng).view(uint32),
            n,
        ],
        expected,
        label=n,
    )


def tile_of(t: int) -> range:
    return range(t // 8 * 8, t // 8 * 8 + 8)


def lanes_where(lanes: Iterable[int], condition: Callable[[int], object]) -> int:
    return sum(1 << lane for lane in lanes if condition(lane))


def tile_votes() -> Case:
    def steps(x: list[int], t: int) -> int:
        most = t * 7 % 5
        return next((k for k in range(most) if x[(t + k) & 31] >= 40), most)

    def one(x: list[int], t: int) -> list[int]:
        tile = tile_of(t)
        same = all(x[j] >> 5 == x[t] >> 5 for j in tile)
        return [
            lanes_where(tile, lambda j: x[j] > 0),
            any(x[j] > 40 for j in tile) + 2 * all(x[j] < 30 for j in tile),
            lanes_where(tile, lambda j: x[j] & 1 == x[t] & 1),
            lanes_where(tile, lambda j: same),
            same,
            steps(x, t ^ 7),
            x[t ^ 1],
            8,
            x[t + 1] if t + 1 in tile else x[t],
        ]

    return launched(
        "tile_votes",
        grid_of(1, 32),
        [
            blank((32, 9), uint32),
            # in the second tile all are alike above their last five bits
            lambda rng: np.where(
                tiles_of_lanes() == 1, rng.integers(0, 32, 32), rng.integers(-50, 50, 32)
            ).astype(int32),
        ],
        lambda a: unsigned([one(a[1].tolist(), t) for t in range(32)]),
    )


def tiles_of_lanes() -> Array:
    return np.arange(32) // 8


def unsigned(rows: list[list[int]]) -> Array:
    return (np.array(rows, int64) & 0xFFFFFFFF).astype(uint32)


def interleaved_votes() -> Case:
    def one(x: list[int], t: int) -> list[int]:
        third = range(t % 3, 32, 3)
        return [
            lanes_where(third, lambda j: x[j] > sum(x[: j % 4])),
            any(x[j] > 45 for j in third),
            x[t if t < 3 else t - 3],
        ]

    return launched(
        "interleaved_votes",
        grid_of(1, 32),
        [blank((32, 3), uint32), integers(-50, 50, 32)],
        lambda a: unsigned([one(a[1].tolist(), t) for t in range(32)]),
    )


def generic_atomics() -> Case:
    t = np.arange(64)

    def expected(args: Given) -> Outcomes:
        out = args[0].copy()
        out[0] += t[t % 2 == 0].sum()
        out[1] = max(out[1], 3 * 61)
        out[2] += 64 - 20
        out[3] = t[t % 2 == 1].sum() + 10_000 * 3 * 63
        places = args[3].copy()
        places[1] = 12  # 7 + 5
        places[2:] = np.where(t == 7, places[2:], t + 5)
        tickets = AnyOrder(
            value=np.append(out[:4], [*range(20), *range(args[0][2], args[0][2] + 44)])
        )
        sums, wide = args[1].copy(), args[2].copy()
        sums[0] += t[t & 4 == 0].sum()
        wide[0] += t[t & 8 == 0].sum()
        sums[1], wide[1] = t[t & 4 != 0].sum(), t[t & 8 != 0].sum()
        return [tickets, sums, wide, places]

    return launched(
        "generic_atomics",
        grid_of(1, 64),
        [
            np.append([100, 17, 1000, 0], np.zeros(64)).astype(int32),
            np.array([3, 0], float32),
            np.array([5, 0], float64),
            np.full(2 + 64, 9, uint64),
        ],
        expected,
    )


def named_barriers() -> Case:
    def expected(args: Given) -> Outcomes:
        t = np.arange(128)
        late = np.where(t < 64, 0, 128 - 71)
        return [(3 * (t ^ 63) + np.where(t < 64, 0, 3 * (t - 64)) + 1000 * late).astype(int32)]

    return launched(
        "named_barriers",
        grid_of(2, 128),
        [blank(128, int32), 1],
        expected,
    )


def lane_lock(blocks: int) -> Case:
    return launched(
        "lane_lock",
        grid_of(blocks, 45),
        [np.zeros(1, int32), np.array([100], int32)],
        lambda a: [a[0], a[1] + int32(45 * blocks)],
        label=blocks,
    )


def add_vectors(n: int) -> Case:
    def expected(args: Given) -> Outcomes:
        i = np.arange(n)
        sums, pairs, old = (x.copy() for x in args[:3])
        for k in range(4):
            mine = i[i % 4 == k]
            sums[k] += [len(mine), 2 * len(mine), 3 * len(mine), mine.sum()]
        for k in range(2):
            mine = i[i % 2 == k]
            pairs[k] += [mine.sum(), len(mine)]
        old[:n] = old[n:]
        old[n:] += [1, 2, 3, 4]
        return [sums, pairs, old]

    return launched(
        "add_vectors",
        flat(n, 64),
        [
            small((4, 4)),
            small((2, 2)),
            small((2 * n, 4)),
            n,
        ],
        expected,
        label=n,
        minimum_capability=90,
    )


def half_vectors() -> Case:
    def expected(args: Given) -> Outcomes:
        sums, extremes = args[0].copy(), args[1].view(float16).copy()
        x = args[2].view(float16).reshape(32, 2)
        halves = sums[:4].view(float16).reshape(4, 2)
        halves += x.sum(axis=0)
        # in bfloat16 the upper halves of floats: 32 times (-2, 1), on zeros
        sums[4:] = 0x4200C280
        extremes[:2] = np.minimum(extremes[:2], x.min(axis=0))
        extremes[4:] = np.maximum(extremes[4:].reshape(2, 2), x.max(axis=0)).ravel()
        return [sums, extremes.view(uint32)]

    return launched(
        "half_vectors",
        grid_of(1, 32),
        lambda rng: [
            np.append(small(8, float16)(rng).view(uint32), np.zeros(2, uint32)),
            small(8, float16)(rng).view(uint32),
            small(64, float16)(rng).view(uint32),
        ],
        expected,
        minimum_capability=90,
    )


def swap_quads() -> Case:
    t = np.arange(32, dtype=uint64)
    known = np.stack([t, t << uint64(40)], axis=1)

    def expected(args: Given) -> Outcomes:
        written = np.stack([7 * t, ~t], axis=1)
        stored = (args[2] == known).all(axis=1)
        replaced = known + np.array([1, 1 << 40], uint64)
        return [
            np.concatenate([args[1], args[2]]),
            written,
            np.where(stored[:, None], replaced, args[2]),
        ]

    def make(rng: Generator) -> Given:
        place = known.copy()
        place[rng.permutation(32)[:16], rng.integers(0, 2, 16)] ^= uint64(1 << 50)
        return [blank((64, 2), uint64), words(64, uint64)(rng).reshape(32, 2), place]

    return launched("swap_quads", grid_of(1, 32), make, expected, minimum_capability=90)


CASES = (
    block_sum(1000, 3, 128),
    tree_max(900, 256),
    softmax(7, 77),
    softmax(5, 20),
    dot_double(500),
    warp_reductions(96),
    scan_blocks(700),
    compact(3),
    rank_sort(150),
    votes(3),
    shuffles(),
    shuffle_predicate(),
    lane_registers((7, 5, 3)),
    histogram_shared(3000, 2),
    histogram_weighted(333),
    global_reductions(300),
    tickets(200),
    shared_atomics(2),
    cas_product(100),
    last_block_sums(5),
    spin_lock(3),
    half_adds(150),
    tile_votes(),
    interleaved_votes(),
    generic_atomics(),
    named_barriers(),
    lane_lock(2),
    add_vectors(100),
    half_vectors(),
    swap_quads(),
)

COUNTED = (
    block_sum(100_000, 64, 256),
    tree_max(50_000, 256),
    softmax(300, 777),
    dot_double(20_000),
    scan_blocks(30_000),
    compact(100),
    votes(20),
    shuffles(),
    histogram_shared(100_000, 32),
    histogram_weighted(20_000),
    global_reductions(5_000),
    shared_atomics(20),
    tickets(5_000),
)
