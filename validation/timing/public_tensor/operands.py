"""Operands of public kernels, and what must come out of them, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.launch.tensor_map import TensorMap
from validation.timing.tensor_launches import Arguments, numbers_of, random_words

EDGE = 4  # rows at either end of a result that are compared with float64
Array = np.ndarray[Any, Any]
Expected = list[tuple[int, Array]]  # numbers, and where they begin in the output


@dataclass(frozen=True)
class Operand:
    """Array of random numbers; zeros without a seed. `kind`: as of `random_words`."""

    kind: str
    count: int
    seed: int = 0

    def make(self) -> Array:
        found = random_words(self.kind, self.count if self.seed else 1, self.seed)
        return found if self.seed else np.zeros(self.count, found.dtype)


@dataclass(frozen=True)
class Tiled:
    """Tensor map of a row-major matrix of BF16 in columns of 64, as fast.cu makes it.

    `rows` and `columns` of the box; 2, 3 or 5 axes.
    """

    operand: Operand
    height: int
    width: int
    rows: int
    columns: int
    axes: int = 3
    swizzle: int = 128

    def make(self) -> TensorMap:
        words, pitch = self.operand.make(), 2 * self.width
        if self.axes == 2:
            return TensorMap(
                words.reshape(self.height, self.width),
                (self.rows, self.columns),
                swizzle=self.swizzle,
                l2_promotion=0,
            )
        more = self.axes - 3
        return TensorMap(
            words,
            (*(1,) * more, self.columns // 64, self.rows, 64),
            swizzle=self.swizzle,
            l2_promotion=0,
            shape=(*(1,) * more, self.width // 64, self.height, 64),
            pitches=(*(words.nbytes,) * more, 128, pitch),
        )


Value = Operand | Tiled | np.generic


def made(values: Sequence[Value]) -> Arguments:
    return [one.make() if isinstance(one, Operand | Tiled) else one for one in values]


def content_of(argument: Any, kind: str) -> Array:
    """Numbers of an operand in float64."""
    return numbers_of(
        kind, np.ravel(argument.array if isinstance(argument, TensorMap) else argument)
    )


def product(
    kind: str,
    m: int,
    n: int,
    k: int,
    *,
    a: int = 0,
    b: int = 1,
    by_rows: bool = False,
    by_columns: bool = False,
    then: Callable[[Array, Arguments, slice], Array] = lambda sums, arguments, rows: sums,
) -> Callable[[Arguments], Expected]:
    """The first and last rows of C = A B.

    `by_rows`: B is stored as k rows, not n; `by_columns`: C is stored as n columns, of which the
    first and the last are computed. `then` gives what becomes of the sums of these rows.
    """

    def numbers(arguments: Arguments) -> Expected:
        left = content_of(arguments[a], kind).reshape(m, k)
        right = content_of(arguments[b], kind)
        right = right.reshape(k, n) if by_rows else right.reshape(n, k).T
        if by_columns:
            left, right = right.T, left.T
        found = []
        for rows in (slice(0, EDGE), slice(len(left) - EDGE, len(left))):
            sums = then(left[rows] @ right, arguments, rows)
            found.append((rows.start * right.shape[1], sums))
        return found

    return numbers


def scaled(alpha: float, beta: float, c: int) -> Callable[[Array, Arguments, slice], Array]:
    """alpha times the sums plus beta times C, argument `c`."""

    def then(sums: Array, arguments: Arguments, rows: slice) -> Array:
        width = sums.shape[1]
        before = arguments[c][rows.start * width : rows.stop * width].astype(np.float64)
        found: Array = alpha * sums + beta * before.reshape(sums.shape)
        return found

    return then


def attention(
    kind: str, heads: int, length: int, head: int, *, is_causal: bool = False, q: int = 0
) -> Callable[[Arguments], Expected]:
    """First rows of the first head and last rows of the last one; arrays are (heads, length, head).

    Q, K and V are arguments `q` to q + 2.
    """

    def numbers(arguments: Arguments) -> Expected:
        of = [content_of(one, kind).reshape(heads, length, head) for one in arguments[q : q + 3]]
        found = []
        for at, start in ((0, 0), (heads - 1, length - EDGE)):
            rows = attended(of[0][at], of[1][at], of[2][at], start, is_causal)
            found.append(((at * length + start) * head, rows))
        return found

    return numbers


def attended(q: Array, k: Array, v: Array, start: int, is_causal: bool) -> Array:
    """Attention of EDGE rows from `start` on, in one head."""
    scores = q[start : start + EDGE] @ k.T / q.shape[1] ** 0.5
    if is_causal:
        scores[np.arange(len(k)) > start + np.arange(EDGE)[:, None]] = -np.inf
    weights = np.exp(scores - scores.max(1, keepdims=True))
    found: Array = weights @ v / weights.sum(1, keepdims=True)
    return found


def zeros(kind: str, count: int) -> Operand:
    return Operand(kind, count)


def pair(kind: str, m: int, n: int, k: int) -> tuple[Operand, Operand]:
    return Operand(kind, m * k, 1), Operand(kind, n * k, 2)
