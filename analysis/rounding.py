"""Error bound of a correct float32 product, and the check of a result against it.

The bound is componentwise: it reveals one wrong element, however large its neighbours are. It grows
only with sqrt(K), so that it also reveals a lost term or a lower-precision format at large K.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, sqrt
from typing import TYPE_CHECKING, Any

from analysis.argument_types import checked, shown
from analysis.errors import InputError, first_line
from analysis.problem import LARGEST_DIMENSION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

UNIT_ROUNDOFF = 2.0**-24  # float32, round to nearest
SMALLEST_FLOAT = 2.0**-149  # float32's smallest subnormal

# Each rounding fails the probabilistic bound with at most 2·exp(-λ²/2): 3e-8 at λ = 6. A lower
# λ finds smaller mistakes and would, over 4096² elements, now and then refuse a correct kernel.
CONFIDENCE_LAMBDA = 6.0

GEMM_BOUND = (
    "float32 product in any order of summation: the smaller of nu/(1 - nu) (Higham 2002) and "
    "exp(6·sqrt(n)·u + n·u²/(1 - u)) - 1 (Higham and Mary 2019), n = K + 3, "
    "times |alpha||A||B| + |beta||C|"
)


@checked
def gemm_error_bound(
    k: int,
    abs_product: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    abs_c: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Largest |computed - exact| of each element of a correct alpha·A·B + beta·C in float32.

    `abs_product` is |A||B| (m×n, computed in float64 from float32 inputs). `abs_c` is |C|, which is
    needed if beta ≠ 0. alpha and beta are rounded to float32. The bound is

        g · (|alpha| |A||B| + |beta| |C|),    n = k + 3 roundings, u = 2^-24
        g = min(n·u / (1 - n·u), exp(λ·sqrt(n)·u + n·u²/(1 - u)) - 1),    λ = 6

    plus the possible loss of products too small for float32. The first is Higham, "Accuracy and
    Stability of Numerical Algorithms", 2nd ed., section 3.5, and always holds; the second is
    Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci.
    Comput. 41(5), 2019, Theorem 2.4, for rounding errors that are independent with mean zero:
    random matrices comply, a matrix of one repeated value may not. Subnormal numbers must not
    be flushed to zero. Raises InputError if k is out of range or |C| is missing, and for
    magnitudes that are negative, no numbers or of two shapes.
    """
    import numpy as np

    if not 1 <= k <= LARGEST_DIMENSION:
        raise InputError(f"k = {k}: a product has 1 to {LARGEST_DIMENSION} terms")
    scale = _magnitudes("abs_product", abs_product)
    shape = scale.shape
    if alpha not in (-1, 1):
        scale = abs(alpha) * scale
    if beta:
        if abs_c is None:
            raise InputError(f"beta = {beta}: the bound needs |C|")
        of_c = _magnitudes("abs_c", abs_c)
        if of_c.shape != shape:
            raise InputError(f"abs_product of shape {shape}, abs_c {of_c.shape}: they must agree")
        scale = scale + abs(beta) * of_c
    # Each of k products and two more operations may underflow by half the smallest number. If every
    # term is 0, none underflows and none is rounded.
    underflow = (k * max(abs(alpha), 1.0) + 2) * SMALLEST_FLOAT
    bound = np.asarray(_relative_bound(k + 3) * scale)
    return np.add(bound, underflow, out=bound, where=scale > 0)


def widened(bound: NDArray[np.float64], k: int, product_error: float) -> NDArray[np.float64]:
    """A bound of `gemm_error_bound` for products with an error of their own, relative to each."""
    return bound * (1 + product_error / _relative_bound(k + 3)) if product_error else bound


@checked
def compare(
    result: ArrayLike,
    reference: ArrayLike,
    bound: ArrayLike,
    *,
    description: str = GEMM_BOUND,
) -> Check:
    """Verdict on `result` (float32, m×n) against `reference` and `bound` (float64, m×n).

    It passes if |result - reference| ≤ bound for every element; an element with bound 0 must match
    exactly, and NaN or infinity in the result fails. `description` describes the bound. Raises
    InputError if the shapes differ or are empty, if the reference or the bound is not finite, and
    for a negative bound.
    """
    import numpy as np

    computed, expected = as_floats("result", result), as_floats("reference", reference)
    allowed = _magnitudes("bound", bound)
    if computed.ndim != 2 or not computed.size:
        raise InputError(f"result of shape {computed.shape}: give a matrix with elements")
    if not computed.shape == expected.shape == allowed.shape:
        raise InputError(
            f"result of shape {computed.shape}, reference {expected.shape}, "
            f"bound {allowed.shape}: they must agree"
        )
    _check_finite("reference", expected)
    _check_finite("bound", allowed)
    error = np.abs(computed - expected)
    # if the bound is 0, an exact match counts as 0 and anything else as infinite
    ratio = np.where(error == 0, 0.0, np.inf)
    with np.errstate(over="ignore"):  # infinite is far enough above the bound
        np.divide(error, allowed, out=ratio, where=allowed > 0)
    # argmax stops at the first NaN, if there is one
    row, column = (int(index) for index in np.unravel_index(np.argmax(ratio), ratio.shape))
    worst = float(ratio[row, column])
    largest_error = float(np.max(error))
    return Check(
        passed=worst <= 1,  # False for NaN
        worst_ratio=_finite(worst),
        worst_row=row,
        worst_column=column,
        max_absolute_error=_finite(largest_error),
        bound=description,
    )


def _relative_bound(roundings: int) -> float:
    """Relative bound g for n roundings: the smaller of the certain and the probabilistic one."""
    n, u = roundings, UNIT_ROUNDOFF
    probabilistic = expm1(CONFIDENCE_LAMBDA * sqrt(n) * u + n * u**2 / (1 - u))
    if n * u >= 1:  # the certain bound is infinite here
        return probabilistic
    return min(n * u / (1 - n * u), probabilistic)


def as_floats(name: str, matrix: ArrayLike) -> NDArray[np.float64]:
    """The matrix in float64. Raises InputError for what holds anything but real numbers."""
    import numpy as np

    try:
        given = np.asarray(matrix)
    except ValueError as error:  # of lists of different lengths
        raise InputError(f"{name} = {shown(matrix)}: {first_line(error)}") from None
    if given.size and given.dtype.kind not in "fiub":
        raise InputError(f"{name} of type {given.dtype}: give real numbers")
    return given.astype(np.float64, copy=False)


def _magnitudes(name: str, matrix: ArrayLike) -> NDArray[np.float64]:
    found = as_floats(name, matrix)
    if found.min(initial=0) < 0:
        raise InputError(f"{name} has an element below 0: give magnitudes")
    return found


def _check_finite(name: str, matrix: NDArray[Any]) -> None:
    import numpy as np

    wrong = ~np.isfinite(matrix)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InputError(
            f"{name} at row {row}, column {column} is {matrix[row, column]}: "
            "the inputs overflow or are not finite"
        )


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None


@dataclass(frozen=True, kw_only=True)
class Check:
    """Comparison of a launch's output with a float64 reference.

    `worst_ratio` is the largest |error| / bound over all elements (above 1 fails). It is None
    if it is not finite (the output holds NaN or infinity, or has an error where the bound is 0),
    and so is `max_absolute_error`; the row and column then name the first such element. `bound`
    describes the bound in words.
    """

    passed: bool
    worst_ratio: float | None
    worst_row: int
    worst_column: int
    max_absolute_error: float | None
    bound: str
