"""Arrays as CuPy passes them to kernels: structs of the pointer, the size, the shape and strides.

CuPy broadcasts arrays by strides of 0, and joins axes that lie behind one another in all arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.argument_types import shown
from analysis.errors import InputError, first_line
from reports.text import many
from toolkit.frontends.front_end import FrontEndRequest, Parameter, as_array, buffer, hidden

_ARRAY, _INDEXER, _SCALAR = 1, 2, 3  # kinds of arguments in CuPy
_MOST_WITH_32_BITS = 2**31  # bytes of an array whose elements 32 bits can address

Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class CupyView:
    """An array as a kernel indexes it; strides are in bytes."""

    array: NDArray[np.generic]
    shape: Shape
    strides: Shape

    def permuted(self, axes: Sequence[int]) -> CupyView:
        return CupyView(
            array=self.array,
            shape=tuple(self.shape[k] for k in axes),
            strides=tuple(self.strides[k] for k in axes),
        )

    @property
    def is_contiguous(self) -> bool:
        size = self.array.itemsize
        for n, stride in zip(self.shape[::-1], self.strides[::-1], strict=True):
            if n != 1 and stride != size:
                return False
            size *= n
        return True

    def fields(self, name: str, argument: int) -> list[Parameter]:
        """The fields of CuPy's struct."""
        numbers = (prod(self.shape), *self.shape, *self.strides)
        return [buffer(self.array, name, argument), *(hidden(x, name) for x in numbers)]


def whole(array: NDArray[np.generic]) -> CupyView:
    """An array that the kernel indexes itself."""
    return CupyView(array=array, shape=array.shape, strides=array.strides)


def broadcast(array: NDArray[np.generic], shape: Shape) -> CupyView:
    """Array of fewer or shorter axes, as one of `shape`."""
    return CupyView(array=array, shape=shape, strides=np.broadcast_to(array, shape).strides)


def joined(views: Sequence[CupyView]) -> list[CupyView]:
    """Views of one shape without axes of length 1, neighbouring axes joined where all allow it."""
    axes = [k for k, n in enumerate(views[0].shape) if n != 1] if views else []
    shape: list[int] = []
    strides: list[list[int]] = [[] for _ in views]
    for k in axes:
        n = views[0].shape[k]
        if shape and all(s[-1] == v.strides[k] * n for s, v in zip(strides, views, strict=True)):
            shape[-1] *= n
            for own, view in zip(strides, views, strict=True):
                own[-1] = view.strides[k]
            continue
        shape.append(n)
        for own, view in zip(strides, views, strict=True):
            own.append(view.strides[k])
    if not axes and views and views[0].shape:  # one element
        shape, strides = [1], [[view.array.itemsize] for view in views]
    return [
        CupyView(array=view.array, shape=tuple(shape), strides=tuple(own))
        for view, own in zip(views, strides, strict=True)
    ]


def indexer(shape: Shape, name: str) -> list[Parameter]:
    """CuPy's struct that finds the place of an element: size, shape, and a place."""
    return [hidden(x, name) for x in (prod(shape), *shape, *[0] * len(shape))]


def given_arguments(compiled: Any, request: FrontEndRequest) -> list[Any]:
    """Arguments, arrays as those of NumPy, with None for each output that is not given."""
    given = [value if (x := as_array(value)) is None else x for value in request.arguments]
    if len(given) not in (compiled.nin, compiled.nin + compiled.nout):
        raise InputError(
            f"{compiled.name} takes {many(compiled.nin, 'input')}, and "
            f"{many(compiled.nout, 'output')} if you give them, but was given "
            f"{many(len(given), 'argument')}"
        )
    for k, value in enumerate(given):
        if not isinstance(value, np.ndarray | np.generic | int | float | complex):
            raise InputError(f"argument {k} of {compiled.name} is {shown(value)}: give an array")
        if isinstance(value, np.ndarray) and not value.flags.c_contiguous:
            name = [*compiled.in_params, *compiled.out_params][k].name
            raise InputError(f"argument {k} `{name}`: give numpy.ascontiguousarray(x)")
    return [*given, *([None] * (compiled.nin + compiled.nout - len(given)))]


def common_shape(compiled: Any, given: Sequence[Any], parameters: Sequence[Any]) -> Shape:
    """The shape to which arrays are broadcast that the kernel does not index itself."""
    shapes = [
        value.shape
        for value, parameter in zip(given, parameters, strict=False)
        if isinstance(value, np.ndarray) and not parameter.raw
    ]
    listed = " and ".join(sorted(set(map(str, shapes)))) or "none"
    if not shapes:
        raise InputError(
            f"{compiled.name}: the shapes of its arrays are {listed}: give at least one array"
        )
    try:
        shape: Shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise InputError(
            f"{compiled.name}: the shapes of its arrays are {listed}, which NumPy does not "
            "broadcast either: reshape them"
        ) from None
    if prod(shape) == 0:
        raise InputError(f"{compiled.name}: its arrays are empty, so CuPy launches nothing")
    return shape


def decided(compiled: Any, given: Sequence[Any]) -> Any:
    """CuPy's types of inputs and outputs, and what the letters of types stand for."""
    from cupy._core._kernel import _decide_params_type

    dtypes = [value.dtype if isinstance(value, np.ndarray) else None for value in given]
    outputs = dtypes[compiled.nin :]
    try:
        return _decide_params_type(
            compiled.in_params,
            compiled.out_params,
            tuple(dtypes[: compiled.nin]),
            () if None in outputs else tuple(outputs),
        )
    except (TypeError, ValueError, KeyError) as error:
        raise InputError(
            f"{compiled.name}: CuPy refuses the types of its arguments: {first_line(error)}"
        ) from error


def types_of(compiled: Any, given: Sequence[Any]) -> list[np.dtype[Any]]:
    """The type of each argument as CuPy decides it; those of arrays are their own."""
    inputs, outputs, _ = decided(compiled, given)
    types = [np.dtype(one) for one in (*inputs, *outputs)]
    return [
        value.dtype if isinstance(value, np.ndarray) else dtype
        for value, dtype in zip(given, types, strict=True)
    ]


def fields_of(
    values: Sequence[CupyView | Any], types: Sequence[np.dtype[Any]], declared: Sequence[Any]
) -> list[list[Parameter]]:
    """The fields of each array, or a number, by what CuPy declares of its parameters."""
    return [
        value.fields(one.name, k)
        if isinstance(value, CupyView)
        else [Parameter(value=dtype.type(value), name=one.name, argument=k)]
        for k, (value, dtype, one) in enumerate(zip(values, types, declared, strict=False))
    ]


def array_info(view: CupyView) -> Any:
    """Properties of an array on which CuPy's text depends."""
    import cupy
    from cupy._core import _kernel

    kind, axes = view.array.dtype.type, len(view.shape)
    small = is_small([view])
    return _kernel._ArgInfo(_ARRAY, cupy.ndarray, kind, axes, view.is_contiguous, small)


def scalar_info(dtype: np.dtype[Any]) -> Any:
    from cupy._core import _kernel, _scalar

    return _kernel._ArgInfo(_SCALAR, _scalar.CScalar, dtype.type, 0, True, True)


def indexer_info(axes: int, small: bool) -> Any:
    from cupy._core import _carray, _kernel

    return _kernel._ArgInfo(_INDEXER, _carray.Indexer, None, axes, True, small)


def is_small(arguments: Sequence[Any]) -> bool:
    """True if 32 bits address all elements."""
    return all(
        prod(x.shape) * x.array.itemsize <= _MOST_WITH_32_BITS
        for x in arguments
        if isinstance(x, CupyView)
    )


def with_headers(text: str) -> str:
    """Text with the headers that CuPy puts before each of its kernels."""
    from cupy._core import core

    return "".join(f"#include <{header}>\n" for header in core._cupy_header_list) + text
