"""Launches of bulk copies, barriers in shared memory, clusters, and blocks that wait for others."""

from __future__ import annotations

import numpy as np
from numpy import float32, float64, uint32
from numpy.random import Generator

from toolkit.launch.tensor_map import TensorMap
from validation.corpus.case import (
    Array,
    Case,
    Given,
    Near,
    Outcome,
    Outcomes,
    blank,
    fractions,
    grid_of,
    launched,
)

HOPPER = 90
FLOAT_EPSILON = float(np.finfo(float32).eps)


def laid_out(box: Array, swizzle: int) -> Array:
    """A box of floats as a copy leaves it in shared memory, row after row, the rest untouched.

    Pieces of 16 bytes: the bits of their number within a row of `swizzle` bytes are XORed with
    those of the number of the 128-byte line.
    """
    room = np.full((32 * 32 * 4) // 16 * 4, -1, float32).reshape(-1, 4)
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

    def make(rng: Generator) -> Given:
        tile = TensorMap(fractions(70, 44)(rng), (32, columns), swizzle=swizzle)
        return [tile, blank(32 * 32), column, row]

    def expected(arguments: Given) -> Outcomes:
        array = arguments[0].array
        padded = np.zeros((70 + 128, 44 + 128), float32)
        padded[64:134, 64:108] = array
        box = padded[64 + row : 96 + row, 64 + column : 64 + column + columns]
        return [array, laid_out(box, swizzle)]

    return launched(
        f"tile_of_{columns}",
        grid_of(1, 64),
        make,
        expected,
        name=f"tile_{columns}_swizzled_{swizzle}_at_{row}_{column}",
        minimum_capability=HOPPER,
    )


def tiled_product(m: int, n: int, k: int) -> Case:
    def make(rng: Generator) -> Given:
        a, b = fractions(m, k)(rng), fractions(k, n)(rng)
        maps = [TensorMap(a, (32, 32)), TensorMap(b, (32, 32))]
        return [*maps, blank((m, n)), n, k]

    def expected(arguments: Given) -> Outcomes:
        a, b = (arguments[k].array.astype(float64) for k in range(2))
        error = 2 * k * FLOAT_EPSILON * (abs(a) @ abs(b)).max()
        return [arguments[0].array, arguments[1].array, Near(value=a @ b, error=error)]

    return launched(
        "tiled_product",
        ((n // 32, m // 32, 1), (160, 1, 1)),
        make,
        expected,
        label=f"{m}x{n}x{k}",
        minimum_capability=HOPPER,
    )


def twice_a_tile(column: int, row: int) -> Case:
    """Case with arrays of 40x36 elements: the part of a tile beyond their edges is not stored."""

    def make(rng: Generator) -> Given:
        arrays = [fractions(40, 36)(rng) for _ in range(3)]
        maps = [TensorMap(array, (32, 32)) for array in arrays]
        return [*maps, column, row]

    def expected(arguments: Given) -> Outcomes:
        given, stored, added = (arguments[k].array.copy() for k in range(3))
        rows = slice(max(row, 0), min(row + 32, 40))
        columns = slice(max(column, 0), min(column + 32, 36))
        stored[rows, columns] = 2 * given[rows, columns]
        added[rows, columns] += 2 * given[rows, columns]
        return [given, stored, added]

    return launched(
        "twice_a_tile",
        grid_of(1, 128),
        make,
        expected,
        label=f"at_{row}_{column}",
        minimum_capability=HOPPER,
    )


def runs_of_bytes(count: int) -> Case:
    def expected(arguments: Given) -> Outcome:
        out, given, _ = arguments
        more = given + float32(1)
        return np.concatenate([more, out[count:] + more])

    return launched(
        "runs_of_bytes",
        grid_of(1, 128),
        [fractions(2 * count), fractions(count), 4 * count],
        expected,
        label=count,
        minimum_capability=HOPPER,
    )


def threads_copy() -> Case:
    return launched(
        "threads_copy",
        grid_of(1, 32),
        [blank(128), fractions(128)],
        lambda arguments: arguments[1][::-1].copy(),
        minimum_capability=HOPPER,
    )


def phases() -> Case:
    """At first the phase of parity 0 is not over, and the one before it, of parity 1, is; then the
    other way round. Which arrivals lack before a lane's own depends on the order of the lanes.
    """

    return launched(
        "phases",
        grid_of(1, 32),
        [blank(32, uint32), blank(32, uint32)],
        lambda arguments: [np.full(32, 0b0110, uint32), None],
        minimum_capability=HOPPER,
    )


def places_in_clusters() -> Case:
    """A grid of 6x4 blocks in clusters of 3x2."""

    def expected(arguments: Given) -> Outcome:
        found = []
        for y in range(4):
            for x in range(6):
                rank = x % 3 + 3 * (y % 2)
                found.append([rank, 6, x // 3, y // 2, 2, 2, x % 3, y % 2, 3, 2])
        return np.array(found, uint32)

    return launched(
        "places",
        ((6, 4, 1), (1, 1, 1)),
        [blank((24, 10), uint32)],
        expected,
        name="places_in_clusters",
        minimum_capability=HOPPER,
        most_capability=HOPPER,
    )


def neighbours(clusters: int) -> Case:
    def make(rng: Generator) -> Given:
        given = rng.integers(0, 1000, (4 * clusters, 64), dtype=uint32)
        return [blank((4 * clusters, 64), uint32), given]

    def expected(arguments: Given) -> Outcomes:
        given = arguments[1].reshape(clusters, 4, 64)
        rank = np.arange(4, dtype=uint32)[None, :, None]
        read = np.roll(given, -1, axis=1)[..., ::-1]  # of the next one, backwards
        written = 10 * ((rank + 2) % 4)  # by the one two before
        added = 100 + (rank + 1) % 4  # by the one three before
        return [(read + 1000 * written + 1_000_000 * added).astype(uint32)]

    return launched(
        "neighbours",
        grid_of(4 * clusters, 64),
        make,
        expected,
        label=clusters,
        minimum_capability=HOPPER,
    )


def shared_tile(clusters: int) -> Case:
    """Both blocks of a cluster get the tile that one of them loads."""

    def make(rng: Generator) -> Given:
        tile = TensorMap(fractions(8 * clusters, 32)(rng), (8, 32))
        return [tile, blank((clusters, 2, 256))]

    def expected(arguments: Given) -> Outcomes:
        tiles = arguments[0].array.reshape(clusters, 1, 256)
        return [arguments[0].array, np.repeat(tiles, 2, axis=1)]

    return launched(
        "shared_tile",
        grid_of(2 * clusters, 64),
        make,
        expected,
        label=clusters,
        minimum_capability=HOPPER,
        most_capability=100,
    )


def chained(blocks: int, step: int) -> Case:
    """Each block waits for the one before it, or for the one after it."""

    def expected(arguments: Given) -> Outcomes:
        own = np.arange(1, blocks + 1, dtype=uint32)[::step]
        sums = np.cumsum(own, dtype=uint32)[::step]
        return [sums.copy(), np.ones(blocks, uint32)]

    return launched(
        "chained",
        grid_of(blocks, 32),
        [
            blank(blocks, uint32),
            np.zeros(blocks, uint32),
            step,
        ],
        expected,
        label=f"{blocks}_{'up' if step > 0 else 'down'}",
        minimum_capability=HOPPER,
    )


def grid_barriers(blocks: int) -> Case:
    def expected(arguments: Given) -> Outcomes:
        own = np.arange(1, blocks + 1, dtype=uint32)
        return [np.concatenate([own, np.roll(own, -1)]), np.array([2 * blocks], uint32)]

    return launched(
        "grid_barriers",
        grid_of(blocks, 64),
        [
            blank(2 * blocks, uint32),
            np.zeros(1, uint32),
            uint32(blocks),
        ],
        expected,
        label=blocks,
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
)

COUNTED = (
    tile_as_it_lies(32, 128, -4, -5),
    tiled_product(256, 256, 256),
    tiled_product(512, 384, 1024),
    twice_a_tile(12, 20),
    runs_of_bytes(1000),
    neighbours(33),
    shared_tile(66),
)
