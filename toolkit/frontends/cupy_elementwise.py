"""ElementwiseKernel of CuPy: CuPy writes its CUDA C++, with no GPU, and it is compiled here.

CuPy launches blocks of 128 threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from analysis.errors import InputError
from toolkit.frontends.cupy_arrays import (
    CupyView,
    Shape,
    array_info,
    broadcast,
    common_shape,
    decided,
    fields_of,
    given_arguments,
    indexer,
    indexer_info,
    is_small,
    joined,
    scalar_info,
    types_of,
    whole,
    with_headers,
)
from toolkit.frontends.cupy_options import written_kernel
from toolkit.frontends.front_end import FrontEndRequest, PreparedLaunch, own_launch, split_structs

_BLOCK = 128


def prepared(compiled: Any, request: FrontEndRequest) -> PreparedLaunch:
    """The launch of an ElementwiseKernel; outputs that are not given are made.

    Raises InputError for arguments that CuPy does not take.
    """
    name = compiled.name
    if request.defines:
        raise InputError(f"{name}: an ElementwiseKernel has no defines: leave them out")
    given = given_arguments(compiled, request)
    shape = _shape(compiled, given)
    types = types_of(compiled, given)
    made = [
        np.zeros(shape, dtype) if value is None else value
        for value, dtype in zip(given, types, strict=True)
    ]
    arguments, joint = _views(compiled, made, shape)
    text = _text(compiled, made, arguments, types, joint)
    kernel = written_kernel(text, name, request, ())
    groups = fields_of(arguments, types, compiled.params)
    kernel, parameters = split_structs(kernel, [*groups, indexer(joint, "_ind")])
    size = prod(shape)
    grid, block = (-(-size // _BLOCK), 1, 1), (min(_BLOCK, size), 1, 1)
    own_launch(request, name, "CuPy", grid, block)
    return PreparedLaunch(
        kernel=replace(kernel, source=text, file=f"{name}.cu"),
        grid=grid,
        block=block,
        dynamic_shared_bytes=0,
        parameters=parameters,
    )


def _shape(compiled: Any, given: Sequence[Any]) -> Shape:
    """The shape of the loop. Raises InputError for an output that is smaller."""
    shape = common_shape(compiled, given, compiled.params)
    for k, parameter in enumerate(compiled.out_params, start=compiled.nin):
        value = given[k]
        if isinstance(value, np.ndarray) and not parameter.raw and value.shape != shape:
            raise InputError(
                f"argument {k} `{parameter.name}` of {compiled.name} has shape {value.shape}, and "
                f"its arrays are broadcast to {shape}: give an output of that shape, or none"
            )
    return shape


def _views(compiled: Any, made: Sequence[Any], shape: Shape) -> tuple[list[CupyView | Any], Shape]:
    """Arguments, with a view of each array; and the shape of the loop after axes were joined."""
    arguments: list[CupyView | Any] = list(made)
    looped = []
    for k, (value, parameter) in enumerate(zip(made, compiled.params, strict=False)):
        if isinstance(value, np.ndarray):
            arguments[k] = whole(value) if parameter.raw else broadcast(value, shape)
            looped += [] if parameter.raw else [k]
    views = joined([arguments[k] for k in looped])
    for k, view in zip(looped, views, strict=True):
        arguments[k] = view
    return arguments, views[0].shape


def _text(
    compiled: Any,
    made: Sequence[Any],
    arguments: Sequence[Any],
    types: Sequence[np.dtype[Any]],
    shape: Shape,
) -> str:
    """The CUDA C++ that CuPy writes for arguments of these types."""
    from cupy._core import _kernel

    infos = tuple(
        array_info(value) if isinstance(value, CupyView) else scalar_info(dtype)
        for value, dtype in zip(arguments, types, strict=True)
    )
    return with_headers(
        _kernel._get_elementwise_kernel_code(
            (*infos, indexer_info(len(shape), is_small(arguments))),
            decided(compiled, made)[2],
            compiled.params,
            compiled.operation,
            compiled.name,
            compiled.preamble,
            **compiled.kwargs,
        )
    )
