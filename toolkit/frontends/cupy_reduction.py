"""ReductionKernel of CuPy: CuPy writes its CUDA C++ and chooses its launch with no GPU.

`axis` and `keepdims` of the call are given as defines. Where CuPy finds nvcc, it takes a kernel of
CUB for an array whose last axes are reduced: a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from analysis.argument_types import shown
from analysis.errors import InputError, UnsupportedError, first_line
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
from toolkit.frontends.front_end import (
    FrontEndRequest,
    Parameter,
    PreparedLaunch,
    own_launch,
    split_structs,
)

_MOST_IN_INT32 = 0x7FFFFFFF
_OF_CUB = (
    "this is CuPy's own reduction: where CuPy finds nvcc, and its accelerators have cub, it "
    "launches CUB's code for this array (CUPY_ACCELERATORS= leaves it out)"
)


def prepared(compiled: Any, request: FrontEndRequest) -> PreparedLaunch:
    """The launch of a ReductionKernel; outputs that are not given are made.

    Raises InputError for arguments that CuPy does not take, UnsupportedError for raw arrays whose
    reduced axes are not the first ones.
    """
    name, given = compiled.name, given_arguments(compiled, request)
    shape = common_shape(compiled, given[: compiled.nin], compiled.in_params)
    reduced, kept, keepdims = _axes(compiled, request.defines, len(shape))
    out_shape = tuple(
        1 if k in reduced else n for k, n in enumerate(shape) if keepdims or k in kept
    )
    types = types_of(compiled, given)
    made = _with_outputs(compiled, given, types, out_shape)
    inputs, outputs, in_shape, out_shape = _views(compiled, made, shape, (*reduced, *kept), kept)
    block, stride, blocks = _specs(compiled, inputs, in_shape, out_shape)
    text = _text(compiled, given, [*inputs, *outputs], types, in_shape, out_shape, block)
    kernel = written_kernel(text, name, request, compiled.options)
    groups = fields_of([*inputs, *outputs], types, compiled._params)
    last = Parameter(value=np.int32(stride), name="_block_stride")
    kernel, parameters = split_structs(
        kernel, [*groups, indexer(in_shape, "_in_ind"), indexer(out_shape, "_out_ind"), [last]]
    )
    grid = (blocks, 1, 1)
    own_launch(request, name, "CuPy", grid, (block, 1, 1))
    return PreparedLaunch(
        kernel=replace(kernel, source=text, file=f"{name}.cu"),
        grid=grid,
        block=(block, 1, 1),
        dynamic_shared_bytes=0,
        parameters=parameters,
        remarks=(_OF_CUB,) if _may_be_of_cub(inputs, outputs, reduced, len(shape)) else (),
    )


def _axes(compiled: Any, defines: Mapping[str, object], axes: int) -> tuple[Shape, Shape, bool]:
    """Axes that are reduced, those that stay, and whether the first stay with length 1."""
    from cupy._core._reduction import _get_axis

    if unknown := sorted(defines.keys() - {"axis", "keepdims"}):
        raise InputError(
            f"{compiled.name}: a ReductionKernel takes axis and keepdims in defines, "
            f"not {unknown[0]}"
        )
    axis, keepdims = (_number(compiled, defines, name) for name in ("axis", "keepdims"))
    try:
        reduced, kept = _get_axis(axis, axes)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{compiled.name}: CuPy refuses axis {shown(axis)} of arrays with {axes} axes: "
            f"{first_line(error)}"
        ) from error
    return reduced, kept, bool(keepdims)


def _number(compiled: Any, defines: Mapping[str, object], name: str) -> Any:
    """A define, which is text on the command line: `-D axis=1`, `-D axis=0,1`."""
    value = defines.get(name)
    if not isinstance(value, str):
        return value
    if value in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[value]
    try:
        numbers = tuple(int(one) for one in value.split(","))
    except ValueError:
        raise InputError(
            f"{compiled.name}: {name} is {shown(value)}: give a number, such as {name}=1"
        ) from None
    return numbers if len(numbers) > 1 else numbers[0]


def _with_outputs(
    compiled: Any, given: Sequence[Any], types: Sequence[np.dtype[Any]], shape: Shape
) -> list[Any]:
    """Arguments with all outputs. Raises InputError for one of another shape."""
    made = list(given)
    for k, parameter in enumerate(compiled.out_params, start=compiled.nin):
        if made[k] is None:
            made[k] = np.zeros(shape, types[k])
        elif not parameter.raw and np.shape(made[k]) != shape:
            raise InputError(
                f"argument {k} `{parameter.name}` of {compiled.name} has shape "
                f"{np.shape(made[k])}, and the result has {shape}: give an array of that shape, "
                "or none"
            )
    return made


def _views(
    compiled: Any, made: Sequence[Any], shape: Shape, order: Sequence[int], kept: Shape
) -> tuple[list[Any], list[Any], Shape, Shape]:
    """Inputs with the reduced axes first, outputs, and the shapes of both with joined axes."""
    is_moved = list(order) != sorted(order)
    if is_moved and any(one.raw for one in compiled.in_params):
        raise UnsupportedError(
            f"{compiled.name}: CuPy reduces only the first axes if an array is raw: give axis=0, "
            "or so many of the first axes"
        )
    loop = tuple(shape[k] for k in order)
    out = tuple(shape[k] for k in kept)
    inputs, in_shape = _joined(
        made[: compiled.nin],
        compiled.in_params,
        lambda value: broadcast(value, shape).permuted(order),
        loop,
        compiled.reduce_dims,
    )
    outputs, out_shape = _joined(
        made[compiled.nin :],
        compiled.out_params,
        lambda value: replace(whole(value.reshape(out)), array=value),
        out,
        compiled.reduce_dims,
    )
    return inputs, outputs, in_shape, out_shape


def _joined(
    values: Sequence[Any], parameters: Sequence[Any], view: Any, shape: Shape, joins: bool
) -> tuple[list[Any], Shape]:
    """Values with a view of each array, and their shape in the loop."""
    found, looped = list(values), []
    for k, (value, parameter) in enumerate(zip(values, parameters, strict=True)):
        if isinstance(value, np.ndarray):
            found[k] = whole(value) if parameter.raw else view(value)
            looped += [] if parameter.raw else [k]
    views = [found[k] for k in looped]
    if joins and len(shape) > 1:
        views = joined(views)
    for k, one in zip(looped, views, strict=True):
        found[k] = one
    return found, views[0].shape if views else shape


def _specs(
    compiled: Any, inputs: Sequence[Any], in_shape: Shape, out_shape: Shape
) -> tuple[int, int, int]:
    """Threads of a block, elements that a block makes of the result, and blocks: CuPy's."""
    from cupy._core._reduction import _get_block_specs

    most = 1
    for value, parameter in zip(inputs, compiled.in_params, strict=True):
        if not isinstance(value, CupyView) or parameter.raw:
            continue
        adjacent = 1
        for stride, n in zip(value.strides[::-1], out_shape[::-1], strict=False):
            if stride != adjacent * value.array.itemsize:
                break
            adjacent *= n
        most = max(most, adjacent)
    block, stride, blocks = _get_block_specs(prod(in_shape), prod(out_shape), most, -1)
    return block, stride, blocks


def _text(
    compiled: Any,
    given: Sequence[Any],
    arguments: Sequence[Any],
    types: Sequence[np.dtype[Any]],
    in_shape: Shape,
    out_shape: Shape,
    block: int,
) -> str:
    """The CUDA C++ that CuPy writes for arguments of these types."""
    from cupy._core import _kernel, _reduction

    infos = [
        array_info(value) if isinstance(value, CupyView) else scalar_info(dtype)
        for value, dtype in zip(arguments, types, strict=True)
    ]
    small = is_small(arguments)
    infos += [indexer_info(len(one), small) for one in (in_shape, out_shape)]
    infos.append(scalar_info(np.dtype(np.int32)))
    long = prod(in_shape) // prod(out_shape) > _MOST_IN_INT32
    index = ("IndexT", "int64" if long else "int32")
    return with_headers(
        _reduction._ReductionKernel_get_cached_function_code(
            compiled.nin,
            compiled.nout,
            compiled._params,
            tuple(infos),
            _kernel._TypeMap((*decided(compiled, given)[2]._pairs, index)),
            compiled.name,
            block,
            compiled.reduce_type,
            compiled.identity,
            compiled.map_expr,
            compiled.reduce_expr,
            compiled.post_map_expr,
            compiled.preamble,
            compiled.options,
        )
    )


def _may_be_of_cub(
    inputs: Sequence[Any], outputs: Sequence[Any], reduced: Shape, axes: int
) -> bool:
    """True if CuPy may take CUB's code: one array, of which the last axes are reduced."""
    return len(inputs) == len(outputs) == 1 and reduced == tuple(range(axes - len(reduced), axes))
