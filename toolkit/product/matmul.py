"""`toolkit.matmul`: the product of arrays on the GPU."""

from __future__ import annotations

import math
import warnings
from ctypes import byref, c_float, c_void_p
from functools import partial
from numbers import Real
from threading import RLock, local
from typing import Any, get_args

from analysis.errors import InputError, ToolkitError, UnknownNameError
from toolkit.gpu.driver import driver
from toolkit.product import device
from toolkit.product.arrays import Library, library_of
from toolkit.product.kept_recipes import recipe_of
from toolkit.product.operands import (
    WIDEST_BYTES,
    OperandView,
    check_overlap,
    layout_of,
    shape_of_product,
    tight_strides,
)
from toolkit.product.prepared import Prepared
from toolkit.product.recipe import Precision

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
NAMES = ("a", "b", "out")
MOST_CALLS = 4096  # that a thread keeps: then all are dropped

Key = tuple[Any, ...]
Factors = tuple[float, float]  # alpha and beta


class PrecisionWarning(UserWarning):
    """A product is computed with another precision than the one asked for; the message says why."""


class _Call:
    """A call of one thread that is prepared: all but addresses, factors and the stream."""

    def __init__(
        self,
        context: int,
        views: tuple[OperandView, OperandView, OperandView],
        is_swapped: bool,
        prepared: Prepared,
    ) -> None:
        self.context, self.is_swapped, self.prepared = context, is_swapped, prepared
        self._views, self.shape = views, views[2].shape
        self._extents = [one.extent_bytes for one in views]
        self._current = c_void_p()
        self._get_current = partial(driver().cuCtxGetCurrent, byref(self._current))

    def launch(self, first: int, second: int, out: int, factors: Factors, stream: int) -> None:
        """Launch the product of arrays at these addresses, in their context."""
        if self.is_swapped:
            first, second = second, first
        self._get_current()
        if self._current.value == self.context:
            self.prepared.launch(first, second, out, *factors, stream)
        else:
            with device.pushed(self.context):
                self.prepared.launch(first, second, out, *factors, stream)

    def check_apart(self, *addresses: int) -> None:
        """Raise InputError if the output shares an element with an input."""
        out, (low, high) = addresses[2], self._extents[2]
        for number in (0, 1):
            (first, end), address = self._extents[number], addresses[number]
            if out + low < address + end and address + first < out + high:
                check_overlap(self._views[number], address, self._views[2], out)


class _OfThread(local):
    """Calls that a thread keeps, so that no lock is needed."""

    def __init__(self) -> None:
        self.calls: dict[Key, _Call] = {}


_of_thread = _OfThread()
ONE, ZERO = 1.0, 0.0  # defaults of alpha and beta, which need no check
_preparing = RLock()  # threads that begin with the same product compile it once


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    alpha: float = ONE,
    beta: float = ZERO,
    precision: Precision = "fp32",
    *,
    stream: Any = None,
) -> Any:
    """Return alpha·a·b + beta·out in float32, computed by the ladder's kernels on the arrays' GPU.

    The launches go to the caller's stream, and the call does not wait for them. The same call on
    the same GPU returns the same bits each time.

    Parameters
    ----------
    a, b
        Arrays of shape (m, k) and (k, n), or batches of shape (batch, m, k) and (batch, k, n). One
        of them may have a single matrix, which all products then use. All arrays are of one
        library: tensors of PyTorch, arrays of CuPy, GPUArrays of PyCUDA, or others with a
        `__cuda_array_interface__`. They are float32 and may be views: transposed, with gaps between
        rows, or with any other strides.
    out
        Array of shape (m, n) or (batch, m, n) for the result. It must not overlap a or b. If it is
        left out, the result is a new array.
    alpha, beta
        Factors. If beta is 0, `out` is not read, so that NaN in it does not matter. Any other beta
        needs `out`.
    precision
        "fp32": sums of products in float32. "fp32x": products of FP16 parts on the tensor cores of
        sm_90, which are faster and on most data more accurate (docs/matmul.md says where not).
        Where "fp32" is faster it is taken, and a `PrecisionWarning` says so once for a shape.
    stream
        Stream for arrays of PyCUDA and of the array interface: a stream of PyCUDA, or its handle.
        Without it, the default stream, or the stream that the interface names. PyTorch and CuPy
        have a current stream, which is taken.

    Returns
    -------
    Array of the caller's library
        `out`, or a new array that is stored by rows.

    Raises
    ------
    InputError
        For arrays or factors that cannot be used. `ShapeError` for shapes that do not fit, and
        `OutOfMemoryError` if the GPU has no memory left, are InputErrors too.
    UnavailableError, CompileError
        Without a driver or a compiler, for a GPU before sm_80, and for "fp32x" on one that is not
        sm_90.
    LaunchError
        If the driver refuses a launch. Errors of a running kernel show in a later call.

    Notes
    -----
    The first call of a shape and layout compiles its kernels and keeps them in the user's cache;
    later processes load them from there. Calls may be captured into CUDA graphs. Kernels that need
    a workspace have one for each stream, and one of its own in each graph. matmul computes no
    gradients. If alpha is 0, NaN and infinity in a and b still reach the result.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from toolkit import matmul
    >>> a = torch.randn(512, 256, device="cuda")  # doctest: +SKIP
    >>> b = torch.randn(1024, 256, device="cuda")  # doctest: +SKIP
    >>> c = matmul(a, b.T)  # doctest: +SKIP
    >>> matmul(a, b.T, out=c, alpha=0.5, beta=1.0) is c  # doctest: +SKIP
    True
    """
    try:
        library = library_of(a, "a")
        if library_of(b, "b") is not library:
            raise _of_two_libraries(library, "b", b)
        a_address, a_facts = library.facts(a)
        b_address, b_facts = library.facts(b)
        out_address, out_facts = 0, None
        if out is not None:
            if library_of(out, "out") is not library:
                raise _of_two_libraries(library, "out", out)
            out_address, out_facts = library.facts(out)
        bits = (
            a_address % WIDEST_BYTES << 8
            | b_address % WIDEST_BYTES << 4
            | out_address % WIDEST_BYTES
        )
        key = library, a_facts, b_facts, out_facts, bits, library.identifier(a_facts), precision
        call = _of_thread.calls.get(key)
        if call is None:
            call = _new_call(library, (a, b, out), (a_address, b_address, out_address), key)
        if alpha is not ONE:
            alpha = _factor("alpha", alpha)
        if beta is not ZERO:
            beta = _factor("beta", beta)
        if out is None:
            if beta:
                raise InputError(
                    f"beta = {beta:g} multiplies out, which is missing: give out, or beta = 0"
                )
            out = library.empty(a, call.shape)
            out_address = library.address(out)
            if out_address % WIDEST_BYTES:  # of an allocator of the user's
                return matmul(a, b, out, alpha, beta, precision, stream=stream)
        else:
            call.check_apart(a_address, b_address, out_address)
            library.note_write(out)
        handle = library.stream(a_facts, a, stream)
        call.launch(a_address, b_address, out_address, (alpha, beta), handle)
        return out
    except ToolkitError as error:
        if not str(error).startswith("matmul"):  # of a call within a call
            error.args = (f"matmul: {error}",)
        raise


# Calls of a shape and layout that is new to this thread.


def _new_call(
    library: Library, arrays: tuple[Any, Any, Any], addresses: tuple[int, int, int], key: Key
) -> _Call:
    _, *facts, _, _, precision = key
    if precision not in PRECISIONS:
        raise UnknownNameError("precision", str(precision), PRECISIONS)
    views: list[OperandView] = []
    for name, array, address, fact in zip(NAMES, arrays, addresses, facts, strict=True):
        if array is None:  # a new array
            shape = shape_of_product(*views)
            views.append(OperandView(name, shape, tight_strides(shape), WIDEST_BYTES))
        else:
            views.append(library.view(name, array, address, fact, is_output=name == "out"))
    a, b, out = views
    layout = layout_of(a, b, out)
    context = _one_context(library, arrays, addresses, facts)
    with device.pushed(context), device.while_capturing(), _preparing:
        kept = device.context_of(context)
        recipe = recipe_of(layout, device.facts_of(kept.ordinal), precision)
        prepared = Prepared(recipe, kept)
    if recipe.note:
        warnings.warn(recipe.note, PrecisionWarning, stacklevel=3)
    calls = _of_thread.calls
    if len(calls) >= MOST_CALLS:
        calls.clear()
    calls[key] = _Call(context, (a, b, out), layout.is_swapped, prepared)
    return calls[key]


def _one_context(
    library: Library, arrays: tuple[Any, ...], addresses: tuple[int, ...], facts: list[Any]
) -> int:
    """Handle of the context of all arrays. Raises InputError if there are several."""
    found = 0
    for name, array, address, fact in zip(NAMES, arrays, addresses, facts, strict=True):
        if array is None:
            continue
        context = library.context(name, array, address, fact)
        found = found or context
        if context != found:
            raise InputError(
                f"{name} (shape {tuple(array.shape)}) is on {library.place(array)}, and a on "
                f"{library.place(arrays[0])}: copy it to the GPU and context of a"
            )
    return found


def _of_two_libraries(library: Library, name: str, array: Any) -> InputError:
    return InputError(
        f"a is an array of {library.name} and {name} a {type(array).__module__}."
        f"{type(array).__qualname__}: give arrays of one library, {library.from_other.format(name)}"
    )


def _factor(name: str, value: Any) -> float:
    """alpha or beta as the kernels take it. Raises InputError for what is no number of float32."""
    if type(value) is not float and not isinstance(value, Real):
        raise InputError(
            f"{name} is a {type(value).__name__}: give a number of Python, float({name})"
        )
    rounded = float(c_float(float(value)).value)
    if math.isinf(rounded) and not math.isinf(value):
        raise InputError(f"{name} = {float(value):g} does not fit in float32: give at most 3.4e38")
    return rounded
