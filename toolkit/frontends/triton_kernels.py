"""Kernels of Triton: the launch that Triton would make of them, without its launcher.

Machine code has the parameters that are no constants, then pointers to scratch memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import repeat
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.argument_types import shown
from analysis.errors import InputError, UnsupportedError, first_line
from analysis.geometry import WARP_SIZE
from toolkit.frontends.front_end import (
    Extent,
    FrontEndRequest,
    Parameter,
    PreparedLaunch,
    as_array,
    buffer,
    chosen_block,
    hidden,
)
from toolkit.frontends.python_source import with_python_source
from toolkit.frontends.triton_compiler import (
    SCALARS,
    check_types,
    compiled_by_triton,
    with_right_lines,
)
from toolkit.frontends.triton_values import Bound, bound_values, chosen
from toolkit.launch.launch import three
from toolkit.machine_code.kernel import Kernel

_SCRATCH = ("global_scratch", "profile_scratch")  # in the order of the parameters


def prepared(compiled: Any, request: FrontEndRequest) -> PreparedLaunch:
    """The launch of a `@triton.jit` function, or of a kernel that Triton has compiled.

    Raises InputError for arguments that the kernel does not take, CompileError as Triton compiles,
    and UnsupportedError for parameters that are not supported.
    """
    if hasattr(compiled, "asm"):
        return _launch(compiled, _given_to_compiled(compiled, request), request)
    function, given = chosen(compiled, request)
    bound = bound_values(function, given, request)
    made = compiled_by_triton(function, bound.name, bound.values, bound.options, request.arch)
    return _launch(made, bound, request)


def _given_to_compiled(compiled: Any, request: FrontEndRequest) -> Bound:
    """Values for a compiled kernel: constants are fixed, and arguments those that are left."""
    name = compiled.metadata.name
    source = compiled.src
    if not hasattr(source, "signature") or request.defines:
        raise InputError(
            f"{name} is compiled: defines do not change it: give the @triton.jit function"
            if request.defines
            else f"{name} was not compiled from a @triton.jit function: give its cubin"
        )
    constants = {key[0]: value for key, value in source.constants.items() if len(key) == 1}
    names = list(source.signature)
    check_types(name, source.signature)
    open_names = [one for one in names if source.signature[one] != "constexpr"]
    if len(open_names) != len(request.arguments):
        raise InputError(
            f"{name} takes {', '.join(open_names)}, and {len(request.arguments)} arguments were "
            "given (constants are compiled in)"
        )
    positions = {key: k for k, key in enumerate(open_names)}
    return Bound(
        name=name,
        values={
            one: request.arguments[positions[one]] if one in positions else constants.get(k)
            for k, one in enumerate(names)
        },
        positions=positions,
        options={},
    )


def _launch(compiled: Any, bound: Bound, request: FrontEndRequest) -> PreparedLaunch:
    metadata, source = compiled.metadata, compiled.src
    kernel = with_right_lines(compiled, Kernel.from_image(compiled.asm["cubin"], metadata.name))
    threads = prod(kernel.required_block or (WARP_SIZE * metadata.num_warps,))
    remedy = f"leave the block out, or give another num_warps than {threads // WARP_SIZE}"
    if request.dynamic_shared_bytes not in (0, metadata.shared):
        raise InputError(
            f"{bound.name}: Triton takes {metadata.shared:,} bytes of shared memory: leave out the "
            "dynamic shared memory"
        )
    grid = _grid(request, bound)
    visible = [
        _parameter(name, kind, bound)
        for name, kind in source.signature.items()
        if kind != "constexpr"
    ]
    function = getattr(source, "fn", None)
    return PreparedLaunch(
        kernel=replace(
            with_python_source(kernel, getattr(function, "file_name", None)), name=bound.name
        ),
        grid=grid,
        block=chosen_block(request, (threads, 1, 1), bound.name, remedy),
        dynamic_shared_bytes=metadata.shared,
        parameters=(*visible, *_scratch(metadata, len(kernel.parameters) - len(visible), grid)),
    )


def _grid(request: FrontEndRequest, bound: Bound) -> Extent:
    """The grid as Triton takes it: sizes, or a function of the values by name."""
    grid = request.grid
    if grid is None:
        raise InputError(f"{bound.name} takes a grid: give sizes or a function of the constexprs")
    if callable(grid):
        try:
            grid = grid(bound.meta)
        except KeyError as error:
            raise InputError(
                f"{bound.name}: grid asks for {error}, which is not among "
                f"{', '.join(bound.meta)}: give it in defines"
            ) from error
        grid = tuple(grid) if isinstance(grid, Iterable) else grid
    return three(grid, "grid")


def _parameter(name: str, kind: str, bound: Bound) -> Parameter:
    value, position = bound.values[name], bound.positions.get(name)
    array = as_array(value)
    if kind.startswith("*"):
        if array is None:
            raise InputError(
                f"argument `{name}` of {bound.name} is {shown(value)}: the kernel is compiled for "
                f"{kind}: give an array"
            )
        if position is None:
            raise InputError(f"{bound.name}: give the array `{name}` in arguments, not in defines")
        _check_element(name, kind, array, bound)
        return buffer(array, name, position)
    if array is not None:
        raise InputError(
            f"argument `{name}` of {bound.name} is an array: the kernel is compiled for {kind}: "
            "give a number"
        )
    try:
        scalar = SCALARS[kind](value)
    except (OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"argument `{name}` of {bound.name} is {shown(value)}: the kernel is compiled for "
            f"{kind}: {first_line(error)}"
        ) from error
    return Parameter(value=scalar, name=name, argument=position)


def _check_element(name: str, kind: str, array: NDArray[np.generic], bound: Bound) -> None:
    """Raise InputError for an array of another type than an annotation or a compiled kernel has."""
    bits = int("".join(filter(str.isdigit, kind.partition("e")[0])) or 8)
    size = 1 if kind in ("*u1", "*i1") else bits // 8
    if array.dtype.itemsize != size:
        raise InputError(
            f"argument `{name}` of {bound.name} is an array of {array.dtype.name}: the kernel is "
            f"compiled for {kind}: convert it (x.astype)"
        )


def _scratch(metadata: Any, count: int, grid: Extent) -> Iterator[Parameter]:
    """Hidden pointers to scratch memory of all blocks, null where the kernel uses none."""
    if not 0 <= count <= len(_SCRATCH):
        raise UnsupportedError(
            f"{metadata.name} has {count} parameters beyond its own: this version of Triton is "
            "not known: see docs/sources/frontends.md for those that were tried"
        )
    for name, _ in zip(_SCRATCH, repeat(None, count), strict=False):
        size = getattr(metadata, f"{name}_size", 0) or 0
        if size:
            yield Parameter(value=np.zeros(size * prod(grid), np.uint8), name=name)
        else:
            yield hidden(0, name)
