"""Kernels of the CuTe DSL: the cubin that `cute.compile` keeps, which needs no GPU.

Its host code, which computes the launch and builds descriptors, is not executed: grid, dynamic
shared memory and the arguments are those of the `@cute.kernel` function. A tensor of static layout
is passed as its pointer.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from analysis.argument_types import shown
from analysis.errors import InputError, UnsupportedError, first_line
from toolkit.frontends.front_end import (
    FrontEndRequest,
    Parameter,
    PreparedLaunch,
    as_array,
    buffer,
    chosen_block,
)
from toolkit.frontends.python_source import running_files
from toolkit.launch.checks import POINTER_BYTES
from toolkit.launch.launch import three
from toolkit.machine_code.attributes import KernelParameter
from toolkit.machine_code.elf import cubin_file
from toolkit.machine_code.kernel import Kernel

_OPTIONS = '"--keep-cubin --generate-line-info --gpu-arch sm_90a"'
_OWN_NAME = re.compile(r"(?:kernel_)?(?:cutlass_)?(?P<name>\w+?)(?:_tensor\w*|_?_\d+)?")
_NUMBERS: dict[tuple[type, int], Any] = {
    (bool, 1): np.bool_,
    (int, 1): np.int8,
    (int, 2): np.int16,
    (int, 4): np.int32,
    (int, 8): np.int64,
    (float, 2): np.float16,
    (float, 4): np.float32,
    (float, 8): np.float64,
}


def prepared(compiled: Any, request: FrontEndRequest) -> PreparedLaunch:
    """The launch of what `cute.compile` returned.

    Raises InputError where it kept no cubin, or for arguments that the kernel does not take, and
    UnsupportedError for tensors whose layout is passed too.
    """
    image = getattr(compiled.artifacts, "CUBIN", None)
    if not image:
        raise InputError(
            f"{compiled.function_name}: cute.compile kept no cubin: compile it with "
            f"options={_OPTIONS}"
        )
    if request.defines:
        raise InputError(f"{compiled.function_name} is compiled: defines do not change it")
    symbols = {_own_name(symbol): symbol for symbol in cubin_file(image).kernels}
    kernel = Kernel.from_image(image, symbols.get(request.kernel or "", request.kernel))
    kernel = replace(kernel, name=_own_name(kernel.symbol))
    if request.grid is None or callable(request.grid):
        raise InputError(f"{kernel.name} takes a grid: give the sizes that its launch() has")
    block = kernel.required_block or request.block
    if block is None:
        raise InputError(f"{kernel.name} takes a block: give the sizes that its launch() has")
    return PreparedLaunch(
        kernel=_with_source(kernel),
        grid=three(request.grid, "grid"),
        block=chosen_block(request, three(block, "block"), kernel.name, "leave the block out"),
        dynamic_shared_bytes=request.dynamic_shared_bytes,
        parameters=tuple(_parameters(kernel, request)),
    )


def _own_name(symbol: str) -> str:
    """The name of the function, of which the symbol has the types too."""
    match = _OWN_NAME.fullmatch(symbol)
    return match["name"] if match else symbol


def _with_source(kernel: Kernel) -> Kernel:
    """Kernel with the text of the Python file that its line table names first, if one is known."""
    file = kernel.lines[min(kernel.lines)].file if kernel.lines else None
    modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    paths = {path for path in (*running_files(), *filter(None, modules)) if Path(path).name == file}
    if file is None or len({Path(path).resolve() for path in paths}) != 1:
        return kernel
    return replace(kernel, file=file, source="".join(linecache.getlines(paths.pop())) or None)


def _parameters(kernel: Kernel, request: FrontEndRequest) -> Iterator[Parameter]:
    if len(request.arguments) != len(kernel.parameters):
        raise InputError(
            f"{kernel.name} has {len(kernel.parameters)} parameters, and "
            f"{len(request.arguments)} arguments were given: give those of the @cute.kernel "
            "function, without its constants"
        )
    for k, (value, parameter) in enumerate(zip(request.arguments, kernel.parameters, strict=True)):
        array = as_array(value)
        if array is None:
            yield Parameter(value=_number(value, parameter, kernel), name=str(k), argument=k)
        elif parameter.size != POINTER_BYTES:
            raise UnsupportedError(
                f"argument {k} of {kernel.name} is an array: its parameter has {parameter.size} "
                "bytes, so the layout is passed too, which is not supported: compile it for a "
                "static layout (from_dlpack(x), without mark_layout_dynamic)"
            )
        else:
            yield buffer(array, str(k), k)


def _number(value: Any, parameter: KernelParameter, kernel: Kernel) -> np.generic:
    if isinstance(value, np.generic):
        return value
    dtype = _NUMBERS.get((type(value), parameter.size))
    if dtype is None:
        raise InputError(
            f"argument {parameter.ordinal} of {kernel.name} is {shown(value)}: its parameter has "
            f"{parameter.size} bytes: give an array or a number of NumPy"
        )
    try:
        made: np.generic = dtype(value)
    except OverflowError as error:
        raise InputError(
            f"argument {parameter.ordinal} of {kernel.name}: {first_line(error)}"
        ) from error
    return made
