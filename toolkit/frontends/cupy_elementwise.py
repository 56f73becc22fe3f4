"""ElementwiseKernel of CuPy: CuPy writes its CUDA C++, with no GPU, and it is compiled here.

Arrays are passed as structs: the pointer, the number of elements, the shape, the strides in bytes.
CuPy joins the axes of arrays without gaps, and launches blocks of 128 threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.argument_types import shown
from analysis.errors import InputError, first_line
from toolkit.frontends.cupy_options import cupy_options
from toolkit.frontends.prepared import (
    FrontEndRequest,
    Parameter,
    PreparedLaunch,
    as_array,
    buffer,
    hidden,
    split_structs,
)
from toolkit.launch.launch import three
from toolkit.machine_code.kernel_source import compile_kernel

_ARRAY, _INDEXER, _SCALAR = 1, 2, 3  # kinds of arguments in CuPy
_BLOCK = 128
_MOST_WITH_32_BITS = 2**31  # bytes of an array whose elements 32 bits can address


def prepared(compiled: Any, request: FrontEndRequest) -> PreparedLaunch:
    """The launch of an ElementwiseKernel; outputs that are not given are made.

    Raises InputError for arguments that CuPy does not take, or that differ in shape.
    """
    name = compiled.name
    given = _given(compiled, request)
    shape = _shape(compiled, given)
    types = _types(compiled, given)
    arguments = [
        np.zeros(shape, dtype) if value is None else value
        for value, dtype in zip(given, types, strict=True)
    ]
    text = _text(compiled, arguments, types)
    options, headers = cupy_options(())
    kernel = compile_kernel(
        text,
        name,
        target=request.arch,
        name=f"{name}.cu",
        options=[*request.options, *options],
        headers=headers,
    )
    size = prod(shape)
    groups = [
        _fields(value, dtype, parameter, k)
        for k, (value, dtype, parameter) in enumerate(
            zip(arguments, types, compiled.params, strict=False)
        )
    ]
    indexer = [hidden(value, "_ind") for value in (size, size, 0)]
    kernel, parameters = split_structs(kernel, [*groups, indexer])
    grid, block = (-(-size // _BLOCK), 1, 1), (min(_BLOCK, size), 1, 1)
    for what, own, asked in (("grid", grid, request.grid), ("block", block, request.block)):
        if asked is not None and (callable(asked) or three(asked, what) != own):
            raise InputError(f"{name}: CuPy launches a {what} of {own[0]}: leave the {what} out")
    return PreparedLaunch(
        kernel=replace(kernel, source=text, file=f"{name}.cu"),
        grid=grid,
        block=block,
        dynamic_shared_bytes=0,
        parameters=parameters,
    )


def _given(compiled: Any, request: FrontEndRequest) -> list[Any]:
    """Arguments, arrays as those of NumPy, with None for each output that is not given."""
    if request.defines:
        raise InputError(f"{compiled.name}: an ElementwiseKernel has no defines: leave them out")
    given = [value if (x := as_array(value)) is None else x for value in request.arguments]
    if len(given) not in (compiled.nin, compiled.nin + compiled.nout):
        raise InputError(
            f"{compiled.name} takes {compiled.nin} inputs, and {compiled.nout} outputs if you "
            f"give them, and {len(given)} arguments were given"
        )
    for k, value in enumerate(given):
        if not isinstance(value, np.ndarray | np.generic | int | float | complex):
            raise InputError(f"argument {k} of {compiled.name} is {shown(value)}: give an array")
    return [*given, *([None] * (compiled.nin + compiled.nout - len(given)))]


def _shape(compiled: Any, given: Sequence[Any]) -> tuple[int, ...]:
    """The shape that all arrays share whose elements CuPy reads by itself (not raw ones)."""
    shapes: set[tuple[int, ...]] = {
        value.shape
        for value, parameter in zip(given, compiled.params, strict=False)
        if isinstance(value, np.ndarray) and not parameter.raw
    }
    if len(shapes) != 1:
        listed = " and ".join(map(str, sorted(shapes))) or "none"
        raise InputError(
            f"{compiled.name}: the shapes of its arrays are {listed}: give at least one array, and "
            "all of one shape (numpy.broadcast_to(x, shape).copy())"
        )
    (shape,) = shapes
    if prod(shape) == 0:
        raise InputError(f"{compiled.name}: its arrays are empty, so CuPy launches nothing")
    return shape


def _types(compiled: Any, given: Sequence[Any]) -> list[np.dtype[Any]]:
    """The type of each argument as CuPy decides it; those of arrays are their own."""
    inputs, outputs, _ = _decided(compiled, given)
    decided = [np.dtype(one) for one in (*inputs, *outputs)]
    return [
        value.dtype if isinstance(value, np.ndarray) else dtype
        for value, dtype in zip(given, decided, strict=True)
    ]


def _decided(compiled: Any, given: Sequence[Any]) -> Any:
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


def _text(compiled: Any, arguments: Sequence[Any], types: Sequence[np.dtype[Any]]) -> str:
    """The CUDA C++ that CuPy writes for arguments of these types."""
    import cupy
    from cupy._core import _carray, _kernel, _scalar, core

    infos = tuple(
        _kernel._ArgInfo(_ARRAY, cupy.ndarray, dtype.type, *_layout(value, parameter))
        if isinstance(value, np.ndarray)
        else _kernel._ArgInfo(_SCALAR, _scalar.CScalar, dtype.type, 0, True, True)
        for value, dtype, parameter in zip(arguments, types, compiled.params, strict=False)
    )
    indexer = _kernel._ArgInfo(_INDEXER, _carray.Indexer, None, 1, True, _is_small(arguments))
    text: str = _kernel._get_elementwise_kernel_code(
        (*infos, indexer),
        _decided(compiled, arguments)[2],
        compiled.params,
        compiled.operation,
        compiled.name,
        compiled.preamble,
        **compiled.kwargs,
    )
    headers = "".join(f"#include <{header}>\n" for header in core._cupy_header_list)
    return headers + text


def _layout(array: NDArray[np.generic], parameter: Any) -> tuple[int, bool, bool]:
    """Number of axes, whether there are no gaps, and whether 32 bits address the elements."""
    return len(_axes(array, parameter)), True, _is_small([array])


def _axes(array: NDArray[np.generic], parameter: Any) -> tuple[int, ...]:
    """The shape that CuPy passes: axes are joined unless the kernel indexes the array itself."""
    return array.shape if parameter.raw else (array.size,)


def _is_small(arguments: Sequence[Any]) -> bool:
    return all(x.nbytes <= _MOST_WITH_32_BITS for x in arguments if isinstance(x, np.ndarray))


def _fields(value: Any, dtype: np.dtype[Any], parameter: Any, argument: int) -> list[Parameter]:
    """The fields of the struct of an array, or a number."""
    name = parameter.name
    if not isinstance(value, np.ndarray):
        return [Parameter(value=dtype.type(value), name=name, argument=argument)]
    if not value.flags.c_contiguous:
        raise InputError(f"argument {argument} `{name}`: give numpy.ascontiguousarray(x)")
    shape = _axes(value, parameter)
    strides = [value.itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return [
        buffer(value, name, argument),
        *(hidden(number, name) for number in (value.size, *shape, *strides)),
    ]
