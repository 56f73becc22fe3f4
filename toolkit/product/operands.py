"""Layouts of a product: strides of arrays as transposes and leading dimensions.

Strides are in elements. Nothing here needs a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from analysis.errors import InputError, ShapeError
from analysis.problem import FLOAT_BYTES, LARGEST_DIMENSION

MOST_WORK = 10**6  # of NumPy's search for a common element
WIDEST_BYTES = 16  # of one access of a thread: a larger alignment has no use


@dataclass(frozen=True, slots=True)
class OperandView:
    """An argument of a call: its layout, and the words that a message describes it with."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    alignment: int  #: of the address, in bytes, at most `WIDEST_BYTES`

    def __str__(self) -> str:
        return f"{self.name} (float32, shape {self.shape}, strides {self.strides} elements)"

    @property
    def extent_bytes(self) -> tuple[int, int]:
        """Begin and end of all elements, in bytes after the first one's address."""
        steps = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        low, high = sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
        return FLOAT_BYTES * low, FLOAT_BYTES * (high + 1)


@dataclass(frozen=True, slots=True)
class Operand:
    """A matrix, or a batch of them: element (i, j) of matrix n is at i·row + j·column + n·batch."""

    rows: int
    columns: int
    row: int
    column: int
    batch: int  #: 0 if all products of the batch use the same matrix
    address_alignment: int

    @property
    def transpose(self) -> Operand:
        return replace(self, rows=self.columns, columns=self.rows, row=self.column, column=self.row)

    @property
    def pitch(self) -> int | None:
        """Leading dimension if elements of a row are neighbours, None otherwise."""
        if self.column != 1 and self.columns > 1:
            return None
        if self.rows == 1:
            return self.columns
        return self.row if self.row >= self.columns else None

    @property
    def is_transposed(self) -> bool:
        """True if only the transpose is stored by rows."""
        return self.pitch is None and self.transpose.pitch is not None

    @property
    def is_plain(self) -> bool:
        """True if a leading dimension, with or without a transpose, describes the matrix."""
        return self.pitch is not None or self.transpose.pitch is not None

    @property
    def leading(self) -> int:
        """Leading dimension of the matrix as it is stored. It must be plain."""
        found = self.transpose.pitch if self.is_transposed else self.pitch
        assert found is not None
        return found

    def alignment(self, batches: int) -> int:
        """Alignment in bytes of every stored row, at most `WIDEST_BYTES`. It must be plain."""
        stored_rows = self.columns if self.is_transposed else self.rows
        found = self.address_alignment
        if stored_rows > 1:
            found = gcd(found, FLOAT_BYTES * self.leading)
        if batches > 1 and self.batch:
            found = gcd(found, FLOAT_BYTES * self.batch)
        return found

    def span(self, batches: int) -> int:
        """Elements from the first to the end of the last, of a matrix without negative strides."""
        last = (self.rows - 1) * self.row + (self.columns - 1) * self.column
        return last + (batches - 1) * self.batch + 1


@dataclass(frozen=True, slots=True)
class Layout:
    """C = A·B of `batches` matrices. If `is_swapped`, A and B are the transposes of b and a."""

    a: Operand
    b: Operand
    c: Operand
    batches: int
    is_swapped: bool = False

    @property
    def m(self) -> int:
        return self.c.rows

    @property
    def n(self) -> int:
        return self.c.columns

    @property
    def k(self) -> int:
        return self.a.columns

    @property
    def transpose(self) -> Layout:
        """The same product as Cᵀ = Bᵀ·Aᵀ."""
        return Layout(
            self.b.transpose, self.a.transpose, self.c.transpose, self.batches, not self.is_swapped
        )


def shape_of_product(a: OperandView, b: OperandView) -> tuple[int, ...]:
    """Shape of a·b. Raises ShapeError if there is none."""
    for one in (a, b):
        _check_axes(one)
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"{a} times {b}: {a.name} has {a.shape[-1]} columns and {b.name} has {b.shape[-2]} "
            "rows: give as many, or a transposed view of one of them"
        )
    batches = {one.shape[0] for one in (a, b) if len(one.shape) == 3} - {1}
    if len(batches) > 1:
        raise ShapeError(
            f"{a} times {b}: batches of {a.shape[0]} and {b.shape[0]} matrices: give as many, or "
            "one matrix"
        )
    product = a.shape[-2], b.shape[-1]
    if len(a.shape) == len(b.shape) == 2:
        return product
    return (batches.pop() if batches else 1, *product)


def layout_of(a: OperandView, b: OperandView, out: OperandView) -> Layout:
    """Return out = a·b as the kernels see it: C by rows, and a batch as one product, if possible.

    Raises ShapeError for shapes that do not fit, InputError for an `out` whose elements overlap.
    """
    shape = shape_of_product(a, b)
    if out.shape != shape:
        raise ShapeError(f"{out}: {a.name}·{b.name} has shape {shape}: give out that shape")
    _check_distinct(out)
    batches = shape[0] if len(shape) == 3 else 1
    whole = Layout(_operand(a), _operand(b), _operand(out), batches)
    folded = _folded(_folded(whole).transpose).transpose
    return folded.transpose if folded.c.is_transposed else folded


def tight_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of an array that is stored by rows without gaps.

    >>> tight_strides((2, 3, 5))
    (15, 5, 1)
    """
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def check_overlap(view: OperandView, address: int, out: OperandView, out_address: int) -> None:
    """Raise InputError if two arrays share an element; their extents overlap."""
    try:
        shares = np.shares_memory(
            _in_memory(view, address),
            _in_memory(out, out_address),
            max_work=MOST_WORK,  # type: ignore[arg-type]
        )
    except np.exceptions.TooHardError:
        shares = True  # as far as anyone can say
    if shares:
        raise InputError(
            f"{out} overlaps {view}: give an out of its own, and copy it to its place afterwards"
        )


def _in_memory(view: OperandView, address: int) -> NDArray[np.float32]:
    """A NumPy array at an address of the GPU, which is never read."""
    steps = [FLOAT_BYTES * stride for stride in view.strides]
    interface = {"version": 3, "typestr": "<f4", "data": (address, True), "shape": view.shape}
    holder = type("Holder", (), {"__array_interface__": interface | {"strides": tuple(steps)}})
    return np.asarray(holder())


def _operand(view: OperandView) -> Operand:
    rows, columns = view.shape[-2:]
    row, column = view.strides[-2:]
    batch = view.strides[0] if len(view.shape) == 3 and view.shape[0] > 1 else 0
    return Operand(rows, columns, row, column, batch, view.alignment)


def _folded(layout: Layout) -> Layout:
    """The batch as one product with more rows, if all use one B and rows continue evenly."""
    a, b, c, batches = layout.a, layout.b, layout.c, layout.batches
    is_even = all(one.batch == one.rows * one.row for one in (a, c))
    rows = batches * c.rows
    if batches == 1 or b.batch or not is_even or rows > LARGEST_DIMENSION:
        return layout
    taller = replace(a, rows=rows, batch=0), b, replace(c, rows=rows, batch=0)
    if not all(one.is_plain for one in taller):
        return layout
    return Layout(*taller, 1, layout.is_swapped)


def _check_axes(view: OperandView) -> None:
    if len(view.shape) not in (2, 3):
        hint = f", such as {view.name}[None, :]" if len(view.shape) == 1 else ""
        raise ShapeError(f"{view}: give a matrix, or a batch of matrices (three axes){hint}")
    if 0 in view.shape:
        raise ShapeError(
            f"{view}: it has no elements: give sizes of 1 or more, and leave the call out otherwise"
        )
    if max(view.shape) > LARGEST_DIMENSION:
        raise ShapeError(
            f"{view}: {max(view.shape):,} is too long: give {LARGEST_DIMENSION:,} or less"
        )


def _check_distinct(out: OperandView) -> None:
    """Raise InputError if elements of `out` overlap, or cannot be told apart at a glance."""
    axes = sorted(
        (abs(stride), size) for size, stride in zip(out.shape, out.strides, strict=True) if size > 1
    )
    covered = 1  # elements that the axes so far extend over
    for stride, size in axes:
        if stride < covered:
            raise InputError(
                f"{out}: with these strides elements overlap or interleave, so that it is no "
                "matrix to write to: give a view of rows that lie apart, or a new array"
            )
        covered = (size - 1) * stride + covered
