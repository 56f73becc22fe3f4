"""Random matrices for one shape, and the float64 reference that every result is held against."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from analysis.errors import InputError
from analysis.problem import Gemm
from analysis.rounding import GEMM_BOUND, Check, compare, gemm_error_bound, widened

Matrix = NDArray[np.float32]
Tile = tuple[range, range]  # rows and columns of C

MOST_WASTE = 2  # rectangles of a product, for each that is wanted
MOST_ELEMENTS = 1 << 20  # of a product at a time: 8 MiB


def bound_text(product_error: float) -> str:
    """The bound in words, for products that may be off by `product_error` of each."""
    if not product_error:
        return GEMM_BOUND
    return f"{GEMM_BOUND}, and {product_error:.2g} |A||B| for products of parts"


@dataclass(frozen=True, kw_only=True)
class ReferenceProduct:
    """C = A·B in float64 and how far float32 may be from it, on `rows` of C."""

    exact: NDArray[np.float64]
    bound: NDArray[np.float64]
    rows: NDArray[np.int64]
    of_rows: int
    k: int

    def check(self, result: Matrix, product_error: float = 0.0) -> Check:
        """The verdict on `result` (m×n, float32), whose products may be off by `product_error`."""
        description = bound_text(product_error)
        if len(self.rows) != self.of_rows:
            description += f"; on {len(self.rows)} of {self.of_rows} rows, chosen at random"
        bound = widened(self.bound, self.k, product_error)
        verdict = compare(result[self.rows], self.exact, bound, description=description)
        return replace(verdict, worst_row=int(self.rows[verdict.worst_row]))


@dataclass(frozen=True, kw_only=True)
class TileReference:
    """C = A·B in float64 and how far float32 may be from it, on a rectangle of C."""

    exact: NDArray[np.float64]
    bound: NDArray[np.float64]
    rows: range
    columns: range
    k: int

    def check(self, result: Matrix, product_error: float = 0.0) -> Check:
        """The verdict on the rectangle's elements of `result`, as of `ReferenceProduct.check`."""
        tile = result[_slice(self.rows), _slice(self.columns)]
        bound = widened(self.bound, self.k, product_error)
        verdict = compare(tile, self.exact, bound, description=bound_text(product_error))
        return replace(
            verdict,
            worst_row=self.rows[verdict.worst_row],
            worst_column=self.columns[verdict.worst_column],
        )


@dataclass(frozen=True)
class Workload:
    """A (m×k) and B (k×n), float32, uniform in [-1, 1): no zeros, no pattern to hide a bug."""

    problem: Gemm
    seed: int
    _made: dict[int, Matrix] = field(init=False, default_factory=dict, repr=False, compare=False)

    @property
    def a(self) -> Matrix:
        return self._matrix(0, (self.problem.m, self.problem.k))

    @property
    def b(self) -> Matrix:
        return self._matrix(1, (self.problem.k, self.problem.n))

    def reference(self, most_rows: int | None = None) -> ReferenceProduct:
        """The float64 product, on at most `most_rows` random rows (default: on all)."""
        rows = np.arange(self.problem.m)
        if most_rows is not None and most_rows < len(rows):
            rows = np.sort(self._generator(2).choice(rows, most_rows, replace=False))
        a, b = self.a[rows].astype(np.float64), self.b.astype(np.float64)
        exact = a @ b
        magnitude = np.abs(a, out=a) @ np.abs(b, out=b)
        return ReferenceProduct(
            exact=exact,
            bound=gemm_error_bound(self.problem.k, magnitude),
            rows=rows,
            of_rows=self.problem.m,
            k=self.problem.k,
        )

    def tile_references(self, tiles: Iterable[Tile]) -> dict[Tile, TileReference]:
        """The float64 product on some rectangles of C.

        In one product of all their rows and columns where they fill most of it: many small ones
        take BLAS longer. Else in one for the rectangles of the same rows.
        """
        wanted = list(dict.fromkeys(tiles))
        rows, columns = (list(dict.fromkeys(pieces)) for pieces in zip(*wanted, strict=True))
        if len(rows) * len(columns) <= MOST_WASTE * len(wanted):
            found = self._products(rows, columns)
        else:
            found = {}
            for same in rows:
                found |= self._products([same], [tile[1] for tile in wanted if tile[0] == same])
        return {tile: found[tile] for tile in wanted}

    def check_tiles(
        self, result: Matrix, tiles: Sequence[Tile], product_error: float = 0.0
    ) -> list[Check]:
        """The verdicts on many rectangles of `result` (m×n, float32), some rows at a time.

        Their references are not kept: memory that is used again need not be asked for.
        """
        if not tiles:
            return []
        rows = list(dict.fromkeys(rows for rows, _ in tiles))
        found: dict[Tile, Check] = {}
        for part in _parts(rows, MOST_ELEMENTS // self.problem.n):
            references = self.tile_references(tile for tile in tiles if tile[0] in part)
            found |= {
                tile: reference.check(result, product_error)
                for tile, reference in references.items()
            }
        return [found[tile] for tile in tiles]

    def _products(self, rows: list[range], columns: list[range]) -> dict[Tile, TileReference]:
        """The references of all rectangles of these rows and columns, some rows at a time.

        What is made on the way then stays in caches, and memory is not asked for anew.
        """
        b = np.concatenate([self.b[:, _slice(piece)] for piece in columns], 1, dtype=np.float64)
        parts = list(_parts(rows, MOST_ELEMENTS // max(1, b.shape[1])))
        of_a = [
            np.concatenate([self.a[_slice(piece)] for piece in part], 0, dtype=np.float64)
            for part in parts
        ]
        exact = [a @ b for a in of_a]
        np.abs(b, out=b)
        bound = [gemm_error_bound(self.problem.k, np.abs(a, out=a) @ b) for a in of_a]
        across = _places(columns)
        return {
            (row, column): TileReference(
                exact=exact[n][down, across[column]],
                bound=bound[n][down, across[column]],
                rows=row,
                columns=column,
                k=self.problem.k,
            )
            for n, part in enumerate(parts)
            for row, down in _places(part).items()
            for column in columns
        }

    def padded(self, executed: Gemm) -> tuple[Matrix, Matrix]:
        """A and B with zeros appended up to the executed shape, made side by side."""
        with ThreadPoolExecutor(1) as pool:
            b = pool.submit(lambda: _padded(self.b, executed.k, executed.n))
            return _padded(self.a, executed.m, executed.k), b.result()

    def _matrix(self, stream: int, shape: tuple[int, int]) -> Matrix:
        """Made once. Before Python 3.12, cached properties of all workloads wait for each other."""
        if stream not in self._made:
            values = self._generator(stream).random(shape, dtype=np.float32)
            values *= 2
            values -= 1
            self._made[stream] = values
        return self._made[stream]

    def _generator(self, stream: int) -> np.random.Generator:
        p = self.problem
        return np.random.default_rng([self.seed, stream, p.m, p.n, p.k])


def _parts(pieces: list[range], length: int) -> Iterator[list[range]]:
    """The pieces in turn, as many at a time as are `length` together, but one at least."""
    part: list[range] = []
    for piece in pieces:
        if part and sum(map(len, part)) + len(piece) > length:
            yield part
            part = []
        part.append(piece)
    yield part


def _places(pieces: list[range]) -> dict[range, slice]:
    """Slice of each piece when the pieces are concatenated."""
    ends = np.cumsum([len(piece) for piece in pieces]).tolist()
    return {piece: slice(end - len(piece), end) for piece, end in zip(pieces, ends, strict=True)}


def _slice(part: range) -> slice:
    return slice(part.start, part.stop)


def _padded(matrix: Matrix, rows: int, columns: int) -> Matrix:
    if matrix.shape == (rows, columns):
        return matrix
    return np.pad(matrix, ((0, rows - matrix.shape[0]), (0, columns - matrix.shape[1])))


LARGEST_SEED = 2**63 - 1


def chosen_seed(seed: int | None) -> int:
    """Return `seed`, or a new one for None. Raises InputError if it is out of range."""
    check_seed(seed)
    return secrets.randbits(32) if seed is None else seed


def check_seed(seed: int | None) -> None:
    """Raise InputError for a seed that is out of range."""
    if seed is not None and not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"seed {seed} is out of range: give 0 to {LARGEST_SEED}")


def wrong_result(check: Check) -> str | None:
    """Text that says what is wrong with a result; None if it is right."""
    if check.passed:
        return None
    where = f"C[{check.worst_row}][{check.worst_column}]"
    if check.worst_ratio is None:
        return f"wrong result: {where} is not a number, or infinitely far off"
    return f"wrong result: the error of {where} is {check.worst_ratio:.3g} times its bound"
