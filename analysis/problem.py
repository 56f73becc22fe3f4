"""The problem that every rung of the ladder solves: C = alpha·A·B + beta·C."""

from __future__ import annotations

import re
from dataclasses import dataclass

from analysis.argument_types import check_fields, checked
from analysis.errors import ShapeError, shortened

FLOAT_BYTES = 4
FLOP_PER_FMA = 2  # one multiplication and one addition
LARGEST_DIMENSION = 2**31 - 2**16  # int in the kernels, which step up to 2^15 beyond an edge
MOST_DIGITS = 20  # of a size that a message repeats; int() refuses thousands

_SHAPE = re.compile(r"(\d+)(?:x(\d+)x(\d+))?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Gemm:
    """Shape of a float32 product: A is m×k, B is k×n, C is m×n, all row-major.

    Raises ShapeError for a dimension below 1 or above LARGEST_DIMENSION, InputError for one that is
    no integer.
    """

    m: int
    n: int
    k: int

    def __post_init__(self) -> None:
        check_fields(self)
        for name, value in (("M", self.m), ("N", self.n), ("K", self.k)):
            if not 1 <= value <= LARGEST_DIMENSION:
                raise ShapeError(
                    f"shape {self}: {name} = {value} is out of range: give 1 to {LARGEST_DIMENSION}"
                )

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def flop(self) -> int:
        """Multiplications and additions of A·B: 2·m·n·k."""
        return FLOP_PER_FMA * self.m * self.n * self.k

    @property
    def a_elements(self) -> int:
        return self.m * self.k

    @property
    def b_elements(self) -> int:
        return self.k * self.n

    @property
    def c_elements(self) -> int:
        return self.m * self.n

    @property
    def matrix_bytes(self) -> int:
        """Bytes of A, B and C together."""
        return FLOAT_BYTES * (self.a_elements + self.b_elements + self.c_elements)


@checked
def parse_shape(text: str) -> Gemm:
    """Shape that `text` names: "4096" for a square product, "1000x333x64" for M×N×K.

    Raises ShapeError for anything else.
    """
    match = _SHAPE.fullmatch(text.strip().lower().replace("×", "x"))
    if match is None:
        raise ShapeError(
            f"shape {shortened(text)!r} is not understood: "
            "give one size ('4096') or MxNxK ('1000x333x64')"
        )
    sizes = [size for size in match.groups() if size is not None]
    if max(map(len, sizes)) > MOST_DIGITS:
        raise ShapeError(
            f"shape {shortened(text)!r}: a size is out of range: give 1 to {LARGEST_DIMENSION}"
        )
    m, n, k = (int(size) for size in (sizes * 3)[:3])
    return Gemm(m=m, n=n, k=k)
