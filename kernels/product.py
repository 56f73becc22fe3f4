"""A matrix product with everything that decides how it is computed: sizes, layouts and batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from analysis.argument_types import check_fields
from analysis.errors import ShapeError
from analysis.problem import FLOAT_BYTES, FLOP_PER_FMA, LARGEST_DIMENSION, Gemm

MOST_BATCH = 65_535  # blocks along z of a grid
TIGHT = -1  # a batch whose matrices are stored without gaps between them
QUAD_BYTES = 16  # four floats: the widest access of a thread, and what bulk copies align to


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Layout of one operand: row-major, its transpose if `transposed`, `pitch` floats a row."""

    rows: int  #: of the stored matrix
    columns: int  #: of the stored matrix
    pitch: int  #: floats from one stored row to the next

    @property
    def span(self) -> int:
        """Floats from the first element to the end of the last row."""
        return (self.rows - 1) * self.pitch + self.columns


def side_by_side(batch: int, stride: int, columns: int, pitch: int) -> bool:
    """True if each row of all matrices of a batch is a part of one long row."""
    return stride >= columns and (batch - 1) * stride + columns <= pitch


@dataclass(frozen=True, kw_only=True)
class Product:
    """C = alpha·op(A)·op(B) + beta·C in float32, `batch` times; op(A) is m×k, op(B) k×n, C m×n.

    Leading dimensions and distances between the matrices of a batch are in floats. A leading
    dimension of 0 and a distance of TIGHT stand for the smallest; a distance of 0 for an A or B
    that all products share. The matrices of a batch may lie side by side, as the heads of an
    attention do. Raises ShapeError for sizes below 1, and for strides that overlap rows or matrices
    of C; InputError for a field of another type.
    """

    m: int
    n: int
    k: int
    transpose_a: bool = False  #: A is stored as k×m
    transpose_b: bool = False  #: B is stored as n×k
    lda: int = 0
    ldb: int = 0
    ldc: int = 0
    batch: int = 1
    stride_a: int = TIGHT
    stride_b: int = TIGHT
    stride_c: int = TIGHT
    alpha: float = 1.0
    beta: float = 0.0
    alignments: tuple[int, int, int] = (QUAD_BYTES,) * 3  #: of A, B and C, in bytes

    def __post_init__(self) -> None:
        check_fields(self)
        Gemm(m=self.m, n=self.n, k=self.k)  # checks the sizes
        if not 1 <= self.batch <= MOST_BATCH:
            raise ShapeError(f"product {self}: batch = {self.batch}: give 1 to {MOST_BATCH}")
        a, b = (self.k, self.m) if self.transpose_a else (self.m, self.k), (self.k, self.n)
        b = b[::-1] if self.transpose_b else b
        for name, (rows, columns) in (("a", a), ("b", b), ("c", (self.m, self.n))):
            pitch = getattr(self, f"ld{name}") or columns
            if pitch < columns:
                raise ShapeError(
                    f"product {self}: ld{name} = {pitch} is less than the {columns} columns of "
                    f"{name.upper()}: give {columns} or more"
                )
            if pitch > LARGEST_DIMENSION:
                raise ShapeError(
                    f"product {self}: ld{name} = {pitch} is out of range: give at most "
                    f"{LARGEST_DIMENSION}"
                )
            least = (rows - 1) * pitch + columns
            given = getattr(self, f"stride_{name}")
            stride = rows * pitch if given == TIGHT else given
            is_shared = stride == 0 and name != "c"
            is_apart = stride >= least or side_by_side(self.batch, stride, columns, pitch)
            if self.batch > 1 and not (is_apart or is_shared):
                raise ShapeError(
                    f"product {self}: stride_{name} = {stride} is less than the {least} floats of "
                    f"{name.upper()}: give {least} or more, or 0 for an A or B that all share"
                )
            object.__setattr__(self, f"ld{name}", pitch)
            object.__setattr__(self, f"stride_{name}", stride)

    @classmethod
    def of(cls, shape: Gemm) -> Product:
        """The product of a shape whose matrices are stored without gaps."""
        return cls(m=shape.m, n=shape.n, k=shape.k)

    def __str__(self) -> str:
        batch = f"{self.batch}x " if self.batch > 1 else ""
        layout = "".join("T" if one else "N" for one in (self.transpose_a, self.transpose_b))
        return f"{batch}{self.m}x{self.n}x{self.k} {layout}"

    @cached_property
    def a(self) -> Matrix:
        rows, columns = (self.k, self.m) if self.transpose_a else (self.m, self.k)
        return Matrix(rows=rows, columns=columns, pitch=self.lda)

    @cached_property
    def b(self) -> Matrix:
        rows, columns = (self.n, self.k) if self.transpose_b else (self.k, self.n)
        return Matrix(rows=rows, columns=columns, pitch=self.ldb)

    @cached_property
    def c(self) -> Matrix:
        return Matrix(rows=self.m, columns=self.n, pitch=self.ldc)

    @cached_property
    def in_quads(self) -> tuple[bool, bool, bool]:
        """Of A, B and C: true if each stored row of all of its matrices begins on 16 bytes."""
        of_a, of_b, of_c = self.alignments
        return (
            self._in_quads(self.lda, self.stride_a, of_a),
            self._in_quads(self.ldb, self.stride_b, of_b),
            self._in_quads(self.ldc, self.stride_c, of_c),
        )

    @property
    def multiply_adds(self) -> int:
        return self.batch * self.m * self.n * self.k

    @property
    def flop(self) -> int:
        return FLOP_PER_FMA * self.multiply_adds

    @property
    def matrix_bytes(self) -> int:
        """Bytes of all elements of A, B and C, without gaps."""
        a, b, c = self.m * self.k, self.k * self.n, self.m * self.n
        return FLOAT_BYTES * self.batch * (a + b + c)

    @property
    def allocated_bytes(self) -> int:
        """Bytes from the first to the last element of A, B and C, with the gaps."""
        spans = (
            (self.a.span, self.stride_a),
            (self.b.span, self.stride_b),
            (self.c.span, self.stride_c),
        )
        return FLOAT_BYTES * sum((self.batch - 1) * stride + span for span, stride in spans)

    def _in_quads(self, pitch: int, stride: int, alignment: int) -> bool:
        floats = pitch if self.batch == 1 else pitch | stride
        return (floats * FLOAT_BYTES | alignment) % QUAD_BYTES == 0
