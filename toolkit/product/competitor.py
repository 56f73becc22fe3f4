"""Competitors of a comparison on a GPU: a rung, cuBLAS, or `matmul` with another precision."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from analysis.problem import Gemm
from kernels.selection import Selection
from kernels.variant import Variant
from toolkit.gpu.launch import Task
from toolkit.gpu.product_launch import task_of_product
from toolkit.product.matmul import PrecisionWarning, matmul
from toolkit.product.recipe import Precision


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


def task_of_competitor(selection: Selection, problem: Gemm, executed: Gemm, seed: int) -> Task:
    """The product of `problem`, padded to `executed`, by a rung or a reference."""
    variant = selection.variant
    task = task_of_product(selection, problem, executed, seed)
    if isinstance(variant, Variant) or variant.precision is None:
        return task
    return replace(task, library=partial(matmul_product, precision=variant.precision))


@contextmanager
def matmul_product(arguments: Sequence[Any], precision: Precision) -> Iterator[Callable[[], Any]]:
    """A function that launches C = A·B. `arguments` are addresses of A, B, C, then M, N and K."""
    a, b, c = arguments[:3]
    m, n, k = map(int, arguments[3:6])
    floats = Floats(a, m, k), Floats(b, k, n), Floats(c, m, n)
    product = partial(matmul, *floats, precision=precision)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)  # the record has a note
        product()
    yield product
