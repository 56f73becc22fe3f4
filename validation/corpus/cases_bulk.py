"""Launches of bulk copies, barriers in shared memory, clusters, and blocks that wait for others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from toolkit.launch.tensor_map import TensorMap
from validation.corpus.case import Argument, Case, Near, Outcome, blank

HOPPER = 90
FLOAT_EPSILON = float(np.finfo(np.float32).eps)


def floats(rng: np.random.Generator, *shape: int) -> NDArray:
    return rng.random(shape, dtype=np.float32)


def laid_out(box: NDArray, swizzle: int) -> NDArray:
    """A box of floats as a copy leaves it in shared memory, row after row, the rest untouched.

    Pieces of 16 bytes: the bits of their number within a row of `swizzle` bytes are XORed with
    those of the number of the 128-byte line.
    """
    room = np.full((32 * 32 * 4) // 16 * 4, -1, np.float32).reshape(-1, 4)
    pitch = max(box.shape[1] * 4, swizzle)
    for row in range(box.shape[0]):
        for piece in range(box.shape[1] // 4):
            at = row * pitch // 16 + piece
            if swizzle:
                at ^= at * 16 // 128 % (swizzle // 16)
            room[at] = box[row, 4 * piece : 4 * piece + 4]
    return room.ravel()


def tile_as_it_lies(columns: int, swizzle: int, column: int, row: int) -> Case:
    """A tile of 32 rows of an array of 70x44 floats, at (row, column); zeros beyond its edges."""

    def make(rng: np.random.Generator) -> list[Argument]:
        tile = TensorMap(floats(rng, 70, 44), (32, columns), swizzle=swizzle)
        return [tile, blank(32 * 32, np.float32), np.int32(column), np.int32(row)]

    def expected(arguments: list[Argument]) -> Sequence[Outcome]:
        array = arguments[0].array
        padded = np.zeros((70 + 128, 44 + 128), np.float32)
        padded[64:134, 64:108] = array
        box = padded[64 + row : 96 + row, 64 + column : 64 + column + columns]
        return [array, laid_out(box, swizzle)]

    return Case(
        name=f"tile_{columns}_swizzled_{swizzle}_at_{row}_{column}",
        file="bulk_copies.cu",
        kernel=f"tile_of_{columns}",
        grid=(1, 1, 1),
        block=(64, 1, 1),
        make=make,
        expected=expected,
        minimum_capability=HOPPER,
    )


def tiled_product(m: int, n: int, k: int) -> Case:
    def make(rng: np.random.Generator) -> list[Argument]:
        a, b = floats(rng, m, k), floats(rng, k, n)
        maps = [TensorMap(a, (32, 32)), TensorMap(b, (32, 32))]
        return [*maps, blank((m, n), np.float32), np.int32(n), np.int32(k)]

    def expected(arguments: list[Argument]) -> Sequence[Outcome]:
        a, b = (arguments[k].array.astype(np.float64) for k in range(2))
        error = 2 * k * FLOAT_EPSILON * (abs(a) @ abs(b)).max()
        return [arguments[0].array, arguments[1].array, Near(value=a @ b, error=error)]

    return Case(
        name=f"tiled_product_{m}x{n}x{k}",
        file="bulk_copies.cu",
        kernel="tiled_product",
        grid=(n // 32, m // 32, 1),
        block=(160, 1, 1),
        make=make,
        expected=expected,
        minimum_capability=HOPPER,
    )


def twice_a_tile(column: int, row: int) -> Case:
    """Of arrays of 40x36: what is beyond their edges is not stored."""

    def make(rng: np.random.Generator) -> list[Argument]:
        arrays = [floats(rng, 40, 36) for _ in range(3)]
        maps = [TensorMap(array, (32, 32)) for array in arrays]
        return [*maps, np.int32(column), np.int32(row)]

    def expected(arguments: list[Argument]) -> Sequence[Outcome]:
        given, stored, added = (arguments[k].array.copy() for k in range(3))
        rows = slice(max(row, 0), min(row + 32, 40))
        columns = slice(max(column, 0), min(column + 32, 36))
        stored[rows, columns] = 2 * given[rows, columns]
        added[rows, columns] += 2 * given[rows, columns]
        return [given, stored, added]

    return Case(
        name=f"twice_a_tile_at_{row}_{column}",
        file="bulk_copies.cu",
        kernel="twice_a_tile",
        grid=(1, 1, 1),
        block=(128, 1, 1),
        make=make,
        expected=expected,
        minimum_capability=HOPPER,
    )


def runs_of_bytes(count: int) -> Case:
    def make(rng: np.random.Generator) -> list[Argument]:
        return [floats(rng, 2 * count), floats(rng, count), np.int32(4 * count)]

    def expected(arguments: list[Argument]) -> Sequence[Outcome]:
        out, given, _ = arguments
        more = given + np.float32(1)
        return [np.concatenate([more, out[count:] + more])]

    return Case(
        name=f"runs_of_bytes_{count}",
        file="bulk_copies.cu",
        kernel="runs_of_bytes",
        grid=(1, 1, 1),
        block=(128, 1, 1),
        make=make,
        expected=expected,
        minimum_capability=HOPPER,
    )


def threads_copy() -> Case:
    return Case(
        name="threads_copy",
        file="bulk_copies.cu",
        kernel="threads_copy",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        make=lambda rng: [blank(128, np.float32), floats(rng, 128)],
        expected=lambda arguments: [arguments[1][::-1].copy()],
        minimum_capability=HOPPER,
    )


def phases() -> Case:
    """At first the phase of parity 0 is not over, and the one before it, of parity 1, is; then the
    other way round. Which arrivals lack before a lane's own depends on the order of the lanes.
    """

    def expected(arguments: list[Argument]) -> Sequence[Outcome]:
        return [np.full(32, 0b0110, np.uint32), None]

    return Case(
        name="phases",
        file="bulk_copies.cu",
        kernel="phases",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        make=lambda rng: [blank(32, np.uint32), blank(32, np.uint32)],
        expected=expected,
        minimum_capability=HOPPER,
    )


def places_in_clusters() -> Case:
    """A grid of 6x4 blocks in clusters of 3x2."""

    def expected(arguments: list[Argument]) -> Sequence[Outcome]:
        found = []
        for y in range(4):
            for x in range(6):
                rank = x % 3 + 3 * (y % 2)
                found.append([rank, 6, x // 3, y // 2, 2, 2, x % 3, y % 2, 3, 2])
        return [np.array(found, np.uint32)]

    return Case(
        name="places_in_clusters",
        file="clusters.cu",
        kernel="places",
        grid=(6, 4, 1),
        block=(1, 1, 1),
        make=lambda rng: [blank((24, 10), np.uint32)],
        expected=expected,
        minimum_capability=HOPPER,
        most_capability=HOPPER,  # later ones keep these numbers elsewhere
    )


def neighbours(clusters: int) -> Case:
    def make(rng: np.random.Generator) -> list[Argument]:
        given = rng.integers(0, 1000, (4 * clusters, 64), dtype=np.uint32)
        return [blank((4 * clusters, 64), np.uint32), given]

    def expected(arguments: list[Argument]) -> Sequence[Outcome]:
        given = arguments[1].reshape(clusters, 4, 64)
        rank = np.arange(4, dtype=np.uint32)[None, :, None]
        read = np.roll(given, -1, axis=1)[..., ::-1]  # of the next one, backwards
        written = 10 * ((rank + 2) % 4)  # by the one two before
        added = 100 + (rank + 1) % 4  # by the one three before
        return [(read + 1000 * written + 1_000_000 * added).astype(np.uint32)]

    return Case(
        name=f"neighbours_{clusters}",
        file="clusters.cu",
        kernel="neighbours",
        grid=(4 * clusters, 1, 1),
        block=(64, 1, 1),
        make=make,
        expected=expected,
        minimum_capability=HOPPER,
    )


def shared_tile(clusters: int) -> Case:
    """Both blocks of a cluster get the tile that one of them loads."""

    def make(rng: np.random.Generator) -> list[Argument]:
        tile = TensorMap(floats(rng, 8 * clusters, 32), (8, 32))
        return [tile, blank((clusters, 2, 256), np.float32)]

    def expected(arguments: list[Argument]) -> Sequence[Outcome]:
        tiles = arguments[0].array.reshape(clusters, 1, 256)
        return [arguments[0].array, np.repeat(tiles, 2, axis=1)]

    return Case(
        name=f"shared_tile_{clusters}",
        file="clusters.cu",
        kernel="shared_tile",
        grid=(2 * clusters, 1, 1),
        block=(64, 1, 1),
        make=make,
        expected=expected,
        minimum_capability=HOPPER,
        most_capability=100,  # sm_120 calls a function of the system for it
    )


def chained(blocks: int, step: int) -> Case:
    """Each block waits for the one before it, or for the one after it."""

    def expected(arguments: list[Argument]) -> Sequence[Outcome]:
        own = np.arange(1, blocks + 1, dtype=np.uint32)[::step]
        sums = np.cumsum(own, dtype=np.uint32)[::step]
        return [sums.copy(), np.ones(blocks, np.uint32)]

    return Case(
        name=f"chained_{blocks}_{'up' if step > 0 else 'down'}",
        file="clusters.cu",
        kernel="chained",
        grid=(blocks, 1, 1),
        block=(32, 1, 1),
        make=lambda rng: [
            blank(blocks, np.uint32),
            np.zeros(blocks, np.uint32),
            np.int32(step),
        ],
        expected=expected,
        minimum_capability=HOPPER,
    )


def grid_barriers(blocks: int) -> Case:
    def expected(arguments: list[Argument]) -> Sequence[Outcome]:
        own = np.arange(1, blocks + 1, dtype=np.uint32)
        return [np.concatenate([own, np.roll(own, -1)]), np.array([2 * blocks], np.uint32)]

    return Case(
        name=f"grid_barriers_{blocks}",
        file="clusters.cu",
        kernel="grid_barriers",
        grid=(blocks, 1, 1),
        block=(64, 1, 1),
        make=lambda rng: [
            blank(2 * blocks, np.uint32),
            np.zeros(1, np.uint32),
            np.uint32(blocks),
        ],
        expected=expected,
        minimum_capability=HOPPER,
    )


def split_sums(parts: int) -> Case:
    """The first half of every four is added twice."""

    def make(rng: np.random.Generator) -> list[Argument]:
        return [np.zeros((32, 4), np.float32), floats(rng, parts, 32, 4)]

    def expected(arguments: list[Argument]) -> Sequence[Outcome]:
        sums = arguments[1].astype(np.float64).sum(axis=0) * [2, 2, 1, 1]
        return [Near(value=sums, error=4 * parts * FLOAT_EPSILON * sums.max())]

    return Case(
        name=f"split_sums_{parts}",
        file="clusters.cu",
        kernel="split_sums",
        grid=(parts, 1, 1),
        block=(32, 1, 1),
        make=make,
        expected=expected,
        minimum_capability=HOPPER,
    )


CASES = (
    tile_as_it_lies(32, 0, 8, 16),
    tile_as_it_lies(32, 128, -4, -5),
    tile_as_it_lies(16, 64, 40, 60),
    tile_as_it_lies(8, 32, 4, 69),
    tile_as_it_lies(16, 128, 0, 0),
    tiled_product(64, 96, 160),
    twice_a_tile(-8, -3),
    twice_a_tile(12, 20),
    runs_of_bytes(100),
    threads_copy(),
    phases(),
    places_in_clusters(),
    neighbours(2),
    shared_tile(3),
    chained(6, 1),
    chained(6, -1),
    grid_barriers(5),
    split_sums(7),
)

COUNTED = (
    tile_as_it_lies(32, 128, -4, -5),
    tiled_product(256, 256, 256),
    tiled_product(512, 384, 1024),
    twice_a_tile(12, 20),
    runs_of_bytes(1000),
    neighbours(33),
    shared_tile(66),
    split_sums(264),
)
