"""Cases of cooperation: reductions, scans, sorts, votes, shuffles, atomics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from validation.corpus.case import AnyOrder, Case, Near, blank, flat, real, small, words

FLOAT_EPSILON = 2.0**-24


def grid_stride_sums(x: NDArray, grid: int, block: int) -> tuple[NDArray, NDArray]:
    """Per block, the sum of what its threads visit, and the sum of magnitudes."""
    padded = np.zeros(-(-len(x) // (grid * block)) * grid * block)
    padded[: len(x)] = x
    visited = padded.reshape(-1, grid, block)
    return visited.sum(axis=(0, 2)), abs(visited).sum(axis=(0, 2))


def block_sum(n: int, grid: int, block: int) -> Case:
    def expected(args: list) -> list:
        total, magnitude = grid_stride_sums(args[1], grid, block)
        steps = n / (grid * block) + 12
        return [Near(value=total, error=steps * FLOAT_EPSILON * magnitude)]

    return Case(
        name=f"block_sum_{n}",
        file="reduce.cu",
        kernel="block_sum",
        grid=(grid, 1, 1),
        block=(block, 1, 1),
        make=lambda rng: [blank(grid, np.float32), real(rng, n), np.int32(n)],
        expected=expected,
    )


def tree_max(n: int, block: int) -> Case:
    return Case(
        name=f"tree_max_{n}",
        file="reduce.cu",
        kernel="tree_max",
        grid=flat(n, block)[0],
        block=(block, 1, 1),
        dynamic_shared_bytes=4 * block,
        make=lambda rng: [
            np.full(1, -(2**31), np.int32),
            rng.integers(-(2**31), 2**31, n).astype(np.int32),
            np.int32(n),
        ],
        expected=lambda a: [a[1].max(keepdims=True)],
    )


def softmax(rows: int, columns: int) -> Case:
    def expected(args: list) -> list:
        x = args[1].astype(np.float64)
        exponential = np.exp(x - x.max(axis=1, keepdims=True))
        value = exponential / exponential.sum(axis=1, keepdims=True)
        return [Near(value=value, error=1e-5 * value + 1e-30)]

    return Case(
        name=f"softmax_rows_{rows}x{columns}",
        file="reduce.cu",
        kernel="softmax_rows",
        grid=(-(-rows // 4), 1, 1),
        block=(32, 4, 1),
        make=lambda rng: [
            blank((rows, columns), np.float32),
            (5 * real(rng, (rows, columns))).astype(np.float32),
            np.int32(rows),
            np.int32(columns),
        ],
        expected=expected,
    )


def dot_double(n: int) -> Case:
    def expected(args: list) -> list:
        products = args[1] * args[2]
        error = 1e-14 * (abs(products).sum() + abs(args[0]))
        return [Near(value=args[0] + products.sum(), error=error)]

    return Case(
        name=f"dot_double_{n}",
        file="reduce.cu",
        kernel="dot_double",
        grid=(3, 1, 1),
        block=(64, 1, 1),
        make=lambda rng: [
            np.array([0.25]),
            real(rng, n, np.float64),
            real(rng, n, np.float64),
            np.int32(n),
        ],
        expected=expected,
    )


def warp_reductions(block: int) -> Case:
    def expected(args: list) -> list:
        warps = args[1].reshape(-1, 32)
        per_warp = [
            warps.sum(axis=1, dtype=np.uint32),
            warps.min(axis=1),
            warps.view(np.int32).max(axis=1).view(np.uint32),
            np.bitwise_and.reduce(warps, axis=1),
            np.bitwise_xor.reduce(warps, axis=1),
        ]
        return [np.repeat(np.stack(per_warp, 1), 32, axis=0)]

    return Case(
        name="warp_reductions",
        file="reduce.cu",
        kernel="warp_reductions",
        grid=(1, 1, 1),
        block=(block, 1, 1),
        make=lambda rng: [blank((block, 5), np.uint32), words(rng, block)],
        expected=expected,
    )


# Scans and sorts.


def scan_blocks(n: int) -> Case:
    def expected(args: list) -> list:
        sums = [np.cumsum(part, dtype=np.int32) for part in np.split(args[1], range(256, n, 256))]
        return [np.concatenate(sums)]

    grid, block = flat(n, 256)
    return Case(
        name=f"scan_blocks_{n}",
        file="scan_sort.cu",
        kernel="scan_blocks",
        grid=grid,
        block=block,
        make=lambda rng: [blank(n, np.int32), words(rng, n, np.int32), np.int32(n)],
        expected=expected,
    )


def compact(blocks: int) -> Case:
    def expected(args: list) -> list:
        out = args[0].copy()
        parts = args[2].reshape(blocks, 128)
        for block, part in enumerate(parts):
            kept = part[part > 0]
            out[128 * block : 128 * block + len(kept)] = kept
        return [out, (parts > 0).sum(axis=1).astype(np.int32)]

    return Case(
        name=f"compact_{blocks}",
        file="scan_sort.cu",
        kernel="compact",
        grid=(blocks, 1, 1),
        block=(128, 1, 1),
        make=lambda rng: [
            blank(128 * blocks, np.int32),
            blank(blocks, np.int32),
            rng.integers(-50, 51, 128 * blocks).astype(np.int32),
        ],
        expected=expected,
    )


def bitonic_sort(block: int) -> Case:
    return Case(
        name=f"bitonic_sort_{2 * block}",
        file="scan_sort.cu",
        kernel="bitonic_sort",
        grid=(1, 1, 1),
        block=(block, 1, 1),
        dynamic_shared_bytes=8 * block,
        make=lambda rng: [words(rng, 2 * block)],
        expected=lambda a: [np.sort(a[0])],
    )


def rank_sort(n: int) -> Case:
    grid, block = flat(n, 64)
    return Case(
        name=f"rank_sort_{n}",
        file="scan_sort.cu",
        kernel="rank_sort",
        grid=grid,
        block=block,
        make=lambda rng: [
            blank(n, np.float32),
            rng.integers(1, n, n).astype(np.float32),  # with equal ones
            np.int32(n),
        ],
        expected=lambda a: [np.sort(a[1])],
    )


# Votes and shuffles.


def votes(blocks: int) -> Case:
    def expected(args: list) -> list:
        out = np.zeros((blocks, 32, 6), np.uint32)
        for warp, values in zip(out, args[1].reshape(blocks, 32), strict=True):
            keys = np.trunc(values / 10)
            warp[:, 0], warp[:, 1] = (values > -50).all(), (values > 45).any()
            warp[:, 2] = ballot(values & 1)
            warp[:, 3] = [ballot(keys == key) for key in keys]
            alike = len(set((values < 0).tolist())) == 1
            warp[:, 4], warp[:, 5] = (2**32 - 1 if alike else 0), alike << 8
        return [out]

    return Case(
        name=f"votes_{blocks}",
        file="warp.cu",
        kernel="votes",
        grid=(blocks, 1, 1),
        block=(32, 1, 1),
        make=lambda rng: [
            blank((blocks, 32, 6), np.uint32),
            np.concatenate(
                [rng.integers(0, 20, 32), rng.integers(-60, 60, 32 * (blocks - 1))]
            ).astype(np.int32),
        ],
        expected=expected,
    )


def ballot(values: NDArray) -> int:
    return sum(1 << lane for lane, value in enumerate(values.tolist()) if value)


def partial_masks() -> Case:
    def expected(args: list) -> list:
        x = args[1].astype(np.int64).tolist()
        result = []
        for lane in range(32):
            if lane < 12:
                result.append(ballot(args[1][:12] > 0) + (x[(lane + 5) % 12] & 0xFF))
            elif lane & 1:
                result.append(0xAAAAA000 ^ (x[13 if lane == 31 else lane + 2] & 0xFFFFFFFF))
            else:
                result.append(any(x[other] > 40 for other in range(12, 32, 2)) + 7)
        pairs = [(result[lane] + result[lane ^ 1]) & 0xFFFFFFFF for lane in range(32)]
        return [np.array(pairs, np.uint32)]

    return Case(
        name="partial_masks",
        file="warp.cu",
        kernel="partial_masks",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        make=lambda rng: [blank(32, np.uint32), rng.integers(-60, 60, 32).astype(np.int32)],
        expected=expected,
    )


def shuffles() -> Case:
    def expected(args: list) -> list:
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
            x[31 - lane] + (31 - lane).astype(np.int32),
        ]
        return [np.stack(columns, 1)]

    return Case(
        name="shuffles",
        file="warp.cu",
        kernel="shuffles",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        make=lambda rng: [blank((32, 9), np.int32), words(rng, 32, np.int32)],
        expected=expected,
    )


def shuffle_predicate() -> Case:
    def expected(args: list) -> list:
        lane = np.arange(32)
        inside = lane + 6 < 32
        return [np.stack([args[1][np.where(inside, lane + 6, lane)], inside], 1).astype(np.int32)]

    return Case(
        name="shuffle_predicate",
        file="warp.cu",
        kernel="shuffle_predicate",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        make=lambda rng: [blank((32, 2), np.int32), words(rng, 32, np.int32)],
        expected=expected,
    )


def matrix_by_shuffles(matrices: int) -> Case:
    return Case(
        name=f"matrix_by_shuffles_{matrices}",
        file="warp.cu",
        kernel="matrix_by_shuffles",
        grid=(matrices // 8, 1, 1),
        block=(128, 1, 1),
        make=lambda rng: [
            blank((matrices, 4, 4), np.float32),
            small(rng, (matrices, 4, 4)),
            small(rng, (matrices, 4, 4)),
        ],
        expected=lambda a: [a[1] @ a[2]],
    )


def aggregated_atomics(n: int) -> Case:
    def expected(args: list) -> list:
        return [args[0] + np.bincount(args[1], minlength=8).astype(np.int32)]

    grid, block = flat(n, 96)
    return Case(
        name=f"aggregated_atomics_{n}",
        file="warp.cu",
        kernel="aggregated_atomics",
        grid=grid,
        block=block,
        make=lambda rng: [
            rng.integers(0, 9, 8).astype(np.int32),
            rng.integers(0, 8, n).astype(np.int32),
            np.int32(n),
        ],
        expected=expected,
    )


def lane_registers(block: tuple[int, int, int]) -> Case:
    count = int(np.prod(block))

    def expected(args: list) -> list:
        lane = np.arange(count, dtype=np.uint64) % 32
        own = np.uint64(1) << lane
        below, everything = own - 1, np.uint64(2**32 - 1)
        at_most = below | own
        columns = [lane, below, at_most, everything ^ at_most, everything ^ below, own]
        return [np.stack(columns, 1).astype(np.uint32)]

    return Case(
        name="lane_registers",
        file="warp.cu",
        kernel="lane_registers",
        grid=(1, 1, 1),
        block=block,
        make=lambda rng: [blank((count, 6), np.uint32)],
        expected=expected,
    )


# Atomics.


def histogram_shared(n: int, grid: int) -> Case:
    def expected(args: list) -> list:
        return [args[0] + np.bincount(args[1], minlength=256).astype(np.uint32)]

    return Case(
        name=f"histogram_shared_{n}",
        file="atomics.cu",
        kernel="histogram_shared",
        grid=(grid, 1, 1),
        block=(128, 1, 1),
        make=lambda rng: [
            rng.integers(0, 9, 256).astype(np.uint32),
            rng.integers(0, 256, n).astype(np.uint8) & rng.integers(0, 256, n).astype(np.uint8),
            np.int32(n),
        ],
        expected=expected,
    )


def histogram_weighted(n: int) -> Case:
    def expected(args: list) -> list:
        return [args[0] + np.bincount(args[1], args[2], 16).astype(np.float32)]

    grid, block = flat(n)
    return Case(
        name=f"histogram_weighted_{n}",
        file="atomics.cu",
        kernel="histogram_weighted",
        grid=grid,
        block=block,
        make=lambda rng: [
            small(rng, 16),
            rng.integers(0, 16, n).astype(np.int32),
            small(rng, n),
            np.int32(n),
        ],
        expected=expected,
    )


def fold(
    function: Callable[[int, int], int], start: NDArray, values: list[int], dtype: type
) -> int:
    mask = 2 ** (8 * np.dtype(dtype).itemsize) - 1
    return reduce(lambda a, b: function(a, b) & mask, values, int(start) & mask)


def global_reductions(n: int) -> Case:
    def expected(args: list) -> list:
        s, u, wide, d, x = args[:5]
        signed = x.tolist()
        unsigned = [value & 0xFFFFFFFF for value in signed]
        whole = [value & (2**64 - 1) for value in signed]
        total = sum(signed)
        s = [s[0] + total, s[1] - total, min(s[2], *signed), max(s[3], *signed)]
        u = [
            fold(int.__and__, u[0], [value | 0xFFFF for value in unsigned], np.uint32),
            fold(int.__or__, u[1], [value & 0x0F0F for value in unsigned], np.uint32),
            fold(int.__xor__, u[2], unsigned, np.uint32),
            min(int(u[3]), *unsigned),
            max(int(u[4]), *unsigned),
            fold(lambda old, _: 0 if old >= 999 else old + 1, u[5], signed, np.uint32),
            fold(
                lambda old, _: 499 if old in (0,) or old > 499 else old - 1, u[6], signed, np.uint32
            ),
        ]
        wide = [
            fold(int.__add__, wide[0], [value << 20 for value in whole], np.uint64),
            max(int(wide[1]), *((value << 8) & (2**64 - 1) for value in whole)),
            fold(int.__xor__, wide[2], [value * value for value in signed], np.uint64),
        ]
        return [
            np.array(s, np.int32),
            np.array(u, np.uint32),
            np.array(wide, np.uint64),
            d + float(total),
        ]

    grid, block = flat(n, 96)
    return Case(
        name=f"global_reductions_{n}",
        file="atomics.cu",
        kernel="global_reductions",
        grid=grid,
        block=block,
        make=lambda rng: [
            rng.integers(-9, 9, 4).astype(np.int32),
            rng.integers(0, 2**32, 7).astype(np.uint32),
            rng.integers(0, 2**63, 3).astype(np.uint64),
            np.array([0.5]),
            rng.integers(-100_000, 100_000, n).astype(np.int32),
            np.int32(n),
        ],
        expected=expected,
    )


def tickets(n: int) -> Case:
    def make(rng: np.random.Generator) -> list:
        ticket, swapped = blank(n + 1, np.uint32), blank(n + 1, np.uint32)
        wide = blank(n + 1, np.uint64)
        ticket[n], wide[n], swapped[n] = 5, 7, 2**31
        return [ticket, wide, swapped, np.int32(n)]

    def expected(args: list) -> list:
        given = np.arange(n + 1)
        return [
            AnyOrder(value=(5 + given).astype(np.uint32)),
            AnyOrder(value=7 + given.astype(np.uint64) * np.uint64(3 << 31)),
            AnyOrder(value=np.append(given[:n], 2**31).astype(np.uint32)),
        ]

    grid, block = flat(n, 64)
    return Case(
        name=f"tickets_{n}",
        file="atomics.cu",
        kernel="tickets",
        grid=grid,
        block=block,
        make=make,
        expected=expected,
    )


def shared_atomics(blocks: int) -> Case:
    def one(values: NDArray) -> list[int]:
        x = values.tolist()
        unsigned = [value & 0xFFFFFFFF for value in x]
        xor = fold(int.__xor__, 0, unsigned, np.uint32)
        squares, largest = sum(value * value for value in x), max(unsigned)
        return [
            sum(x), min(0, *x), max(0, *x), xor, 1, 1, 1, 1,
            fold(int.__and__, 2**32 - 1, [value | 0xFF for value in unsigned], np.uint32),
            fold(int.__or__, 0, unsigned, np.uint32),
            len(x) % 41, 0,
            squares, squares >> 32, largest, 0,
        ]  # fmt: skip

    def expected(args: list) -> list:
        rows = [[v & 0xFFFFFFFF for v in one(part)] for part in args[1].reshape(blocks, -1)]
        return [np.array(rows, np.uint32).view(np.int32)]

    return Case(
        name=f"shared_atomics_{blocks}",
        file="atomics.cu",
        kernel="shared_atomics",
        grid=(blocks, 1, 1),
        block=(96, 1, 1),
        make=lambda rng: [
            blank((blocks, 16), np.int32),
            rng.integers(-(2**20), 2**20, 96 * blocks).astype(np.int32),
        ],
        expected=expected,
    )


def cas_product(n: int) -> Case:
    def expected(args: list) -> list:
        odd = args[2].tolist()
        product = reduce(int.__mul__, odd, 1)
        narrow, wide = int(args[0][0]) * product, int(args[1][0]) * product
        return [
            np.array([narrow & (2**32 - 1)], np.uint32),
            np.array([wide & (2**64 - 1)], np.uint64),
        ]

    grid, block = flat(n, 64)
    return Case(
        name=f"cas_product_{n}",
        file="atomics.cu",
        kernel="cas_product",
        grid=grid,
        block=block,
        make=lambda rng: [
            np.array([3], np.uint32),
            np.array([5], np.uint64),
            rng.integers(0, 2**32, n).astype(np.uint32) | np.uint32(1),
            np.int32(n),
        ],
        expected=expected,
    )


def last_block_sums(blocks: int) -> Case:
    def expected(args: list) -> list:
        partial = args[3].reshape(blocks, -1).sum(axis=1).astype(np.int32)
        return [partial.sum(keepdims=True, dtype=np.int32), partial]

    return Case(
        name="last_block_sums",
        file="atomics.cu",
        kernel="last_block_sums",
        grid=(blocks, 1, 1),
        block=(64, 1, 1),
        make=lambda rng: [
            blank(1, np.int32),
            blank(blocks, np.int32),
            np.zeros(1, np.uint32),
            rng.integers(-1000, 1000, 64 * blocks).astype(np.int32),
        ],
        expected=expected,
    )


def spin_lock(blocks: int) -> Case:
    return Case(
        name="spin_lock",
        file="atomics.cu",
        kernel="spin_lock",
        grid=(blocks, 1, 1),
        block=(64, 1, 1),
        make=lambda rng: [np.zeros(1, np.int32), np.array([100], np.int32)],
        expected=lambda a: [a[0], a[1] + np.int32(2 * blocks)],
    )


def half_adds(n: int) -> Case:
    def expected(args: list) -> list:
        sums = args[0].view(np.float16).reshape(4, 2).copy()
        for i, pair in enumerate(args[1].view(np.float16).reshape(n, 2)):
            sums[i % 4] += pair
        return [sums.view(np.uint32).ravel()]

    grid, block = flat(n, 64)
    return Case(
        name=f"half_adds_{n}",
        file="atomics.cu",
        kernel="half_adds",
        grid=grid,
        block=block,
        make=lambda rng: [
            small(rng, 8, np.float16).view(np.uint32),
            small(rng, 2 * n, np.float16).view(np.uint32),
            np.int32(n),
        ],
        expected=expected,
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

    return Case(
        name="tile_votes",
        file="cooperation.cu",
        kernel="tile_votes",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        make=lambda rng: [
            blank((32, 9), np.uint32),
            # in the second tile all are alike above their last five bits
            np.where(
                tiles_of_lanes() == 1, rng.integers(0, 32, 32), rng.integers(-50, 50, 32)
            ).astype(np.int32),
        ],
        expected=lambda a: [unsigned([one(a[1].tolist(), t) for t in range(32)])],
    )


def tiles_of_lanes() -> NDArray:
    return np.arange(32) // 8


def unsigned(rows: list[list[int]]) -> NDArray:
    return (np.array(rows, np.int64) & 0xFFFFFFFF).astype(np.uint32)


def interleaved_votes() -> Case:
    def one(x: list[int], t: int) -> list[int]:
        third = range(t % 3, 32, 3)
        return [
            lanes_where(third, lambda j: x[j] > sum(x[: j % 4])),
            any(x[j] > 45 for j in third),
            x[t if t < 3 else t - 3],
        ]

    return Case(
        name="interleaved_votes",
        file="cooperation.cu",
        kernel="interleaved_votes",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        make=lambda rng: [blank((32, 3), np.uint32), rng.integers(-50, 50, 32).astype(np.int32)],
        expected=lambda a: [unsigned([one(a[1].tolist(), t) for t in range(32)])],
    )


def generic_atomics() -> Case:
    t = np.arange(64)

    def expected(args: list) -> list:
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

    return Case(
        name="generic_atomics",
        file="cooperation.cu",
        kernel="generic_atomics",
        grid=(1, 1, 1),
        block=(64, 1, 1),
        make=lambda rng: [
            np.append([100, 17, 1000, 0], np.zeros(64)).astype(np.int32),
            np.array([3, 0], np.float32),
            np.array([5, 0], np.float64),
            np.full(2 + 64, 9, np.uint64),
        ],
        expected=expected,
    )


def named_barriers() -> Case:
    def expected(args: list) -> list:
        t = np.arange(128)
        late = np.where(t < 64, 0, 128 - 71)
        return [(3 * (t ^ 63) + np.where(t < 64, 0, 3 * (t - 64)) + 1000 * late).astype(np.int32)]

    return Case(
        name="named_barriers",
        file="cooperation.cu",
        kernel="named_barriers",
        grid=(2, 1, 1),
        block=(128, 1, 1),
        make=lambda rng: [blank(128, np.int32), np.int32(1)],
        expected=expected,
    )


def lane_lock(blocks: int) -> Case:
    return Case(
        name=f"lane_lock_{blocks}",
        file="cooperation.cu",
        kernel="lane_lock",
        grid=(blocks, 1, 1),
        block=(45, 1, 1),
        make=lambda rng: [np.zeros(1, np.int32), np.array([100], np.int32)],
        expected=lambda a: [a[0], a[1] + np.int32(45 * blocks)],
    )


def add_vectors(n: int) -> Case:
    def expected(args: list) -> list:
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

    grid, block = flat(n, 64)
    return Case(
        name=f"add_vectors_{n}",
        file="atomic_vectors.cu",
        kernel="add_vectors",
        grid=grid,
        block=block,
        make=lambda rng: [
            small(rng, (4, 4)),
            small(rng, (2, 2)),
            small(rng, (2 * n, 4)),
            np.int32(n),
        ],
        expected=expected,
        minimum_capability=90,
    )


def half_vectors() -> Case:
    def expected(args: list) -> list:
        sums, extremes = args[0].copy(), args[1].view(np.float16).copy()
        x = args[2].view(np.float16).reshape(32, 2)
        halves = sums[:4].view(np.float16).reshape(4, 2)
        halves += x.sum(axis=0)
        # in bfloat16 the upper halves of floats: 32 times (-2, 1), on zeros
        sums[4:] = 0x4200C280
        extremes[:2] = np.minimum(extremes[:2], x.min(axis=0))
        extremes[4:] = np.maximum(extremes[4:].reshape(2, 2), x.max(axis=0)).ravel()
        return [sums, extremes.view(np.uint32)]

    return Case(
        name="half_vectors",
        file="atomic_vectors.cu",
        kernel="half_vectors",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        make=lambda rng: [
            np.append(small(rng, 8, np.float16).view(np.uint32), np.zeros(2, np.uint32)),
            small(rng, 8, np.float16).view(np.uint32),
            small(rng, 64, np.float16).view(np.uint32),
        ],
        expected=expected,
        minimum_capability=90,
    )


def swap_quads() -> Case:
    t = np.arange(32, dtype=np.uint64)
    known = np.stack([t, t << np.uint64(40)], axis=1)

    def expected(args: list) -> list:
        written = np.stack([7 * t, ~t], axis=1)
        stored = (args[2] == known).all(axis=1)
        replaced = known + np.array([1, 1 << 40], np.uint64)
        return [
            np.concatenate([args[1], args[2]]),
            written,
            np.where(stored[:, None], replaced, args[2]),
        ]

    def make(rng: np.random.Generator) -> list:
        place = known.copy()
        place[rng.permutation(32)[:16], rng.integers(0, 2, 16)] ^= np.uint64(1 << 50)
        return [blank((64, 2), np.uint64), words(rng, 64, np.uint64).reshape(32, 2), place]

    return Case(
        name="swap_quads",
        file="atomic_vectors.cu",
        kernel="swap_quads",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        make=make,
        expected=expected,
        minimum_capability=90,
    )


CASES = (
    block_sum(1000, 3, 128),
    tree_max(900, 256),
    softmax(7, 77),
    softmax(5, 20),
    dot_double(500),
    warp_reductions(96),
    scan_blocks(700),
    compact(3),
    bitonic_sort(128),
    rank_sort(150),
    votes(3),
    partial_masks(),
    shuffles(),
    shuffle_predicate(),
    matrix_by_shuffles(16),
    aggregated_atomics(500),
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
    bitonic_sort(1024),
    votes(20),
    shuffles(),
    matrix_by_shuffles(1024),
    aggregated_atomics(20_000),
    histogram_shared(100_000, 32),
    histogram_weighted(20_000),
    global_reductions(5_000),
    shared_atomics(20),
    tickets(5_000),
)
