"""`matmul` with precision "fp32x" as a competitor of rungs on a GPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from toolkit.product.matmul import PrecisionWarning, matmul


class Floats:
    """A float32 matrix at an address on the GPU, as libraries exchange them."""

    def __init__(self, address: Any, rows: int, columns: int) -> None:
        self.shape = rows, columns
        self.__cuda_array_interface__ = {
            "shape": self.shape,
            "typestr": "<f4",
            "data": (int(address), False),
            "version": 3,
        }


@contextmanager
def fp32x_product(arguments: Sequence[Any]) -> Iterator[Callable[[], Any]]:
    """A function that launches C = A·B. `arguments` are addresses of A, B, C, then M, N and K."""
    a, b, c = arguments[:3]
    m, n, k = map(int, arguments[3:6])
    floats = Floats(a, m, k), Floats(b, k, n), Floats(c, m, n)
    product = partial(matmul, *floats, precision="fp32x")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)  # the record has a note
        product()
    yield product
