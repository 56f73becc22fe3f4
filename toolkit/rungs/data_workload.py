"""Matrices of a class of inputs, and the elements of C whose errors are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.problem import Gemm
from analysis.product_errors import MOST_ROWS, ProductError, product_error, sample_inputs
from toolkit.rungs.matrices import Matrix, Workload

Places = NDArray[np.int64]


@dataclass(frozen=True)
class DataWorkload(Workload):
    """A and B of a class: their first rows and columns are drawn, and the others repeat them.

    So the reference of any element is one of a small product, whatever the shape.
    """

    data: str = "normal"

    def error_of(self, elements: NDArray[Any], rows: Places, columns: Places) -> ProductError:
        """Error of the elements of C at all pairs of these rows and columns."""
        a, b = self._drawn
        return product_error(
            elements,
            a[rows % MOST_ROWS],
            b[:, columns % MOST_ROWS],
            data=self.data,
            shape=self.problem,
            seed=self.seed,
        )

    def places(self) -> tuple[Places, Places]:
        """Rows and columns of C that are compared: random ones, all where there are few."""
        generator, p = self._generator(3), self.problem
        rows, columns = (
            np.sort(generator.choice(extent, min(extent, MOST_ROWS), replace=False))
            for extent in (p.m, p.n)
        )
        return rows, columns

    @property
    def _drawn(self) -> tuple[Matrix, Matrix]:
        return sample_inputs(self.data, self.problem.k, self.seed)

    def _matrix(self, stream: int, shape: tuple[int, int]) -> Matrix:
        """A (stream 0) or B, made once."""
        if stream not in self._made:
            a, b = self._drawn
            self._made[0] = a[np.arange(self.problem.m) % MOST_ROWS]
            self._made[1] = b[:, np.arange(self.problem.n) % MOST_ROWS]
        return self._made[stream]


def data_workload(data: str, problem: Gemm, seed: int) -> DataWorkload:
    """The workload of a class, by name."""
    return DataWorkload(problem, seed, data)
