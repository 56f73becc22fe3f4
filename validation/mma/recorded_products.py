"""Outputs of an H100: some 1,000 of each form with their operands, as they ship."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from validation.mma.forms import FORMS, Array, Form, N

FILE = Path(__file__).parent / "recorded" / "vectors_sm_90.npz"


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """Outputs of one form: row of A, column of B, C and D of each, as bits; and its class."""

    form: Form
    a: Array
    b: Array
    c: Array
    d: Array
    kind: Array

    def tiles(self) -> tuple[Array, Array, Array]:
        """A, B and C of tiles: N of these outputs are on the diagonal of each."""
        tiles = -(-len(self.d) // N)
        a = np.zeros((tiles, self.form.m, self.a.shape[1]), self.a.dtype)
        b = np.zeros((tiles, N, self.b.shape[1]), self.b.dtype)
        c = np.zeros((tiles, self.form.m, N), self.form.sum)
        at, row = self._places
        a[at, row], b[at, row], c[at, row, row] = self.a, self.b, self.c
        return a, b, c

    def of_tiles(self, sums: Array) -> Array:
        at, row = self._places
        found: Array = sums[at, row, row]
        return found

    @property
    def _places(self) -> tuple[Array, Array]:
        number = np.arange(len(self.d))
        return number // N, number % N


@cache
def _stored() -> dict[str, Any]:
    with np.load(FILE) as stored:
        return dict(stored)


def names() -> list[str]:
    return [name for name in FORMS if f"{name}.d" in _stored()]


def classes() -> list[str]:
    return [str(name) for name in _stored()["classes"]]


def vectors(name: str) -> Vectors:
    parts = {part: _stored()[f"{name}.{part}"] for part in ("a", "b", "c", "d", "class")}
    return Vectors(form=FORMS[name], kind=parts.pop("class"), **parts)
