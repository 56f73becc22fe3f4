"""Results of an H100: vectors of every form, and maps of descriptors, as they ship."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation.wgmma.products import ROW_BYTES, ROWS, Bytes, Form, Words

FOLDER = Path(__file__).parent / "recorded"
ELEMENT_BYTES = 2  # of the maps


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """Outputs of one form: row of A, column of B, C and D of each, as bits."""

    form: Form
    scale: int  # 0: the sums so far do not count
    a: NDArray[Any]
    b: NDArray[Any]
    c: NDArray[Any]
    d: NDArray[Any]

    @property
    def count(self) -> int:
        return len(self.d)

    def tiles(self) -> tuple[Bytes, Bytes, Words]:
        """A, B and C of blocks of 64 x 64: vector n is on the diagonal of block n // 64."""
        blocks = -(-self.count // ROWS)
        c = np.zeros((blocks, ROWS, ROWS), dtype=np.uint32)
        c[self._diagonal] = self.c
        return self._rows(self.a, blocks), self._rows(self.b, blocks), c

    def on_diagonal(self, sums: Words) -> Words:
        return sums[self._diagonal]

    @property
    def _diagonal(self) -> tuple[NDArray[np.int64], ...]:
        number = np.arange(self.count)
        return number // ROWS, number % ROWS, number % ROWS

    def _rows(self, x: NDArray[Any], blocks: int) -> Bytes:
        filled = np.zeros((blocks * ROWS, x.shape[1]), dtype=x.dtype)
        filled[: self.count] = x
        rows = filled.view(np.uint8).reshape(blocks, ROWS, -1)
        assert rows.shape[2] == ROW_BYTES * self.form.links
        return rows


@cache
def _stored() -> dict[str, Any]:
    with np.load(FOLDER / "vectors_sm_90.npz") as stored:
        return dict(stored)


def names() -> list[str]:
    return list(_instructions())


def _instructions() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(_stored()["meta"]))["instructions"]
    return found


def vectors(name: str) -> Vectors:
    about = _instructions()[name]
    a, b, c, d = (_stored()[f"{name}.{part}"] for part in "abcd")
    return Vectors(
        form=Form(
            a=about["a"],
            b=about["b"],
            sums=about["c"],
            n=ROWS,
            in_registers="_rs" in name,
            negated=(bool(about["neg"] & 1), bool(about["neg"] & 2)),
            saturates="_sat" in name,
            links=about["chained"],
        ),
        scale=about["scale_d"],
        a=a,
        b=b,
        c=c,
        d=d.astype(np.uint32),
    )


@dataclass(frozen=True, kw_only=True)
class Map:
    """Elements that a descriptor read: [row][k], counted in 16 bits from the start of memory."""

    layout: int  # as in the descriptor: 0 no swizzle, 1 of 128 bytes, 2 of 64, 3 of 32
    transposed: bool
    leading: int
    stride: int
    start: int
    base: int
    elements: NDArray[np.uint16]


def maps(operand: str) -> Iterator[Map]:
    with np.load(FOLDER / "descriptors_sm_90.npz") as stored:
        cases, elements = stored[f"{operand}_case"], stored[operand]
    for case, read in zip(cases.tolist(), elements, strict=True):
        layout, transposed, leading, stride, start, base = case
        yield Map(
            layout=layout,
            transposed=bool(transposed),
            leading=leading,
            stride=stride,
            start=start,
            base=base,
            elements=read,
        )
