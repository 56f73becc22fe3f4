"""Errors of a float32 product relative to |A||B|, on inputs of named classes.

A product's own size says little about its error: where terms cancel, any order of summation loses
digits. |A||B|, the sum of the terms' magnitudes, is what bounds of the error are relative to
(`analysis.rounding`), so that kernels can be compared on any data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from analysis.argument_types import checked
from analysis.errors import InputError, UnknownNameError
from analysis.problem import LARGEST_DIMENSION, Gemm
from analysis.rounding import as_floats

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Matrix = NDArray[np.float32]
    Inputs = tuple[Matrix, Matrix]
    Drawn = tuple[NDArray[np.float64], NDArray[np.float64]]

MOST_ROWS = 256  # of A, and columns of B, that differ; the others repeat them
SPACING = 97  # of the columns of A that "k-scaled" classes change: no multiple of a tile


@dataclass(frozen=True, kw_only=True)
class ProductError:
    """Errors of some elements of C against float64, relative to |A||B|.

    `rms` is the root of their mean square and `maximum` the largest, None if an element of the
    result is not finite. An element whose terms are all zero counts as 0 if it is right.
    """

    data: str  #: class of the inputs, a key of `DATA_CLASSES`
    shape: Gemm  #: of the product that was computed
    seed: int  #: that repeats the inputs
    elements: int  #: number of elements that were compared
    rms: float | None
    maximum: float | None


@dataclass(frozen=True, kw_only=True)
class DataClass:
    """A class of inputs: `make` draws A (m x k) and B (k x n)."""

    meaning: str
    make: Callable[[np.random.Generator, int, int, int], Drawn]


@checked
def product_error(
    result: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    data: str,
    shape: Gemm,
    seed: int,
) -> ProductError:
    """Error of a product against float64, relative to |A||B|.

    Parameters
    ----------
    result
        Elements of C = A·B, m x n.
    a, b
        The rows of A and the columns of B that `result` is of, m x k and k x n.
    data, shape, seed
        Class of the inputs, shape of the whole product and seed, which the result repeats.

    Returns
    -------
    ProductError
        Its `rms` and `maximum` are None if an element of `result` is not finite.

    Raises
    ------
    InputError
        If the shapes do not agree or are empty. UnknownNameError for a class that is not in
        `DATA_CLASSES`.

    Examples
    --------
    >>> import numpy as np
    >>> from analysis.problem import Gemm
    >>> a, b = np.full((1, 2), 3.0, np.float32), np.full((2, 1), 1.0, np.float32)
    >>> product_error([[6.003]], a, b, data="normal", shape=Gemm(m=1, n=1, k=2), seed=0).maximum
    0.0005
    """
    import numpy as np

    _check_class(data)
    x, y, found = as_floats("a", a), as_floats("b", b), as_floats("result", result)
    are_matrices = x.ndim == y.ndim == 2 and x.size > 0 and y.size > 0
    if not (are_matrices and x.shape[1] == y.shape[0] and found.shape == (len(x), y.shape[1])):
        raise InputError(
            f"result of shape {found.shape}, A {x.shape}, B {y.shape}: "
            "give m x n, m x k and k x n, each with elements"
        )
    difference = np.abs(found - x @ y)
    magnitude = np.abs(x) @ np.abs(y)
    relative = np.where(difference == 0, 0.0, np.inf)
    np.divide(difference, magnitude, out=relative, where=magnitude > 0)
    maximum = float(np.max(relative))  # NaN if there is one
    is_finite = bool(np.isfinite(found).all()) and maximum < float("inf")
    return ProductError(
        data=data,
        shape=shape,
        seed=seed,
        elements=found.size,
        rms=float(f"{np.sqrt(np.mean(np.square(relative))):.3g}") if is_finite else None,
        maximum=float(f"{maximum:.3g}") if is_finite else None,
    )


@checked
def sample_inputs(
    data: str, k: int, seed: int, rows: int = MOST_ROWS, columns: int | None = None
) -> Inputs:
    """Rows of A and columns of B of a class, as many of both by default, drawn by a seed.

    They are float32 arrays of shapes (rows, k) and (k, columns). Raises UnknownNameError for a
    class that is not in `DATA_CLASSES`, and InputError for a size out of range or a negative seed.
    """
    import numpy as np

    _check_class(data)
    columns = rows if columns is None else columns
    sizes = {"k": k, "rows": rows, "columns": columns}
    for name, size in sizes.items():
        if not 1 <= size <= LARGEST_DIMENSION:
            raise InputError(f"{name} = {size}: give 1 to {LARGEST_DIMENSION}")
    if seed < 0:
        raise InputError(f"seed = {seed}: give 0 or more")
    place = list(DATA_CLASSES).index(data)
    rng = np.random.default_rng([seed, place, k])
    with np.errstate(over="raise", invalid="raise"):
        a, b = DATA_CLASSES[data].make(rng, rows, k, columns)
        return a.astype(np.float32), b.astype(np.float32)


def _check_class(data: str) -> None:
    if data not in DATA_CLASSES:
        raise UnknownNameError("class of inputs", data, DATA_CLASSES)


def _normal(rng: np.random.Generator, m: int, k: int, n: int) -> Drawn:
    return rng.standard_normal((m, k)), rng.standard_normal((k, n))


def _uniform(rng: np.random.Generator, m: int, k: int, n: int) -> Drawn:
    return rng.random((m, k)), rng.random((k, n))


def _exponents(bits: int) -> Callable[[np.random.Generator, int, int, int], Drawn]:
    """Normal numbers times random powers of two that span 2^bits."""

    def make(rng: np.random.Generator, m: int, k: int, n: int) -> Drawn:
        a, b = _normal(rng, m, k, n)
        return a * _powers(rng, bits, (m, k)), b * _powers(rng, bits, (k, n))

    return make


def _powers(rng: np.random.Generator, bits: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    import numpy as np

    half = bits // 2
    return np.ldexp(1.0, rng.integers(-half, half + 1, shape))


def _rows_and_columns(rng: np.random.Generator, m: int, k: int, n: int) -> Drawn:
    a, b = _normal(rng, m, k, n)
    return a * _powers(rng, 60, (m, 1)), b * _powers(rng, 60, (1, n))


def _some_of_k(bits: int) -> Callable[[np.random.Generator, int, int, int], Drawn]:
    """Every 97th column of A times 2^bits, and that row of B divided by it."""

    def make(rng: np.random.Generator, m: int, k: int, n: int) -> Drawn:
        a, b = _normal(rng, m, k, n)
        a[:, ::SPACING] *= 2.0**bits
        b[::SPACING] *= 2.0**-bits
        return a, b

    return make


def _all_of_k(rng: np.random.Generator, m: int, k: int, n: int) -> Drawn:
    a, b = _normal(rng, m, k, n)
    powers = _powers(rng, 60, (k,))
    return a * powers, b / powers[:, None]


def _one_column(rng: np.random.Generator, m: int, k: int, n: int) -> Drawn:
    a, b = _normal(rng, m, k, n)
    a[:, k // 2] *= 2.0**40
    return a, b


DATA_CLASSES: Mapping[str, DataClass] = MappingProxyType(
    {
        "normal": DataClass(meaning="normal numbers", make=_normal),
        "uniform": DataClass(meaning="uniform in [0, 1): no sum cancels", make=_uniform),
        "exponents-24": DataClass(
            meaning="normal, times random powers of two over 2^24", make=_exponents(24)
        ),
        "exponents-40": DataClass(meaning="the same over 2^40", make=_exponents(40)),
        "exponents-60": DataClass(meaning="the same over 2^60", make=_exponents(60)),
        "rows-columns": DataClass(
            meaning="normal, each row of A and column of B by a power of two over 2^60",
            make=_rows_and_columns,
        ),
        "k-scaled-20": DataClass(
            meaning="normal, every 97th column of A times 2^20, that row of B times 2^-20",
            make=_some_of_k(20),
        ),
        "k-scaled-30": DataClass(meaning="the same with 2^30", make=_some_of_k(30)),
        "k-scaled-all": DataClass(
            meaning="normal, each column of A by a power of two over 2^60, undone in B",
            make=_all_of_k,
        ),
        "one-term": DataClass(
            meaning="normal, one column of A times 2^40: one term dominates", make=_one_column
        ),
    }
)
