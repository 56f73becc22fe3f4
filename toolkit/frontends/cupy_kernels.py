"""Kernels of CuPy: their text, compiled here with the options that CuPy would add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.errors import InputError, first_line
from toolkit.frontends import cupy_elementwise, cupy_reduction
from toolkit.frontends.cuda_text import compiled_text, launch_of_text
from toolkit.frontends.cupy_options import cupy_options
from toolkit.frontends.front_end import FrontEndRequest, PreparedLaunch
from toolkit.frontends.python_source import files_of
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.signature import Declared
from toolkit.store.user_files import read_file


def prepared(compiled: Any, request: FrontEndRequest) -> PreparedLaunch:
    """The launch of a RawKernel, a RawModule, an ElementwiseKernel or a ReductionKernel.

    Raises InputError for arguments that CuPy or the kernel does not take, CompileError for a text
    that does not compile.
    """
    match type(compiled).__name__:
        case "ElementwiseKernel":
            return cupy_elementwise.prepared(compiled, request)
        case "ReductionKernel":
            return cupy_reduction.prepared(compiled, request)
    kernel = _compiled(compiled, request)
    return launch_of_text(kernel, request, _as_cupy_passes(kernel, request.arguments))


def _compiled(compiled: Any, request: FrontEndRequest) -> Kernel:
    if path := getattr(compiled, "file_path", None):
        try:
            return Kernel.from_image(read_file(path), request.kernel)
        except (OSError, InputError) as error:
            raise InputError(f"RawModule of {path}: {first_line(error)}: give a cubin") from error
    own = own_name(compiled)
    if own is not None and request.kernel not in (None, own):
        raise InputError(f"the kernel of CuPy is {own}, not {request.kernel}")
    options, headers = cupy_options(compiled.options)
    return compiled_text(
        compiled.code,
        own or request.kernel,
        request=request,
        options=options,
        headers=headers,
        paths=files_of(compiled),
    )


def own_name(compiled: Any) -> str | None:
    """The name of a RawKernel, or the only name expression of a RawModule."""
    names: Sequence[str] = getattr(compiled, "name_expressions", None) or []
    return names[0] if len(names) == 1 else getattr(compiled, "name", None)


def _as_cupy_passes(kernel: Kernel, arguments: Sequence[Any]) -> list[Any]:
    """Numbers of Python as CuPy passes them: 8 bytes, of which an integer parameter takes its own.

    Raises InputError for a float of Python where the kernel declares a float of 4 bytes: it would
    read half of a double.
    """
    declared = [*(kernel.declared or ()), *([None] * len(arguments))]
    sizes = [*(one.size for one in kernel.parameters), *([8] * len(arguments))]
    return [
        _passed(value, declared[k], sizes[k], k, kernel.name) for k, value in enumerate(arguments)
    ]


def _passed(value: Any, declared: Declared | None, size: int, position: int, kernel: str) -> Any:
    if isinstance(value, np.generic) or not isinstance(value, int | float | complex):
        return value
    if isinstance(value, bool):
        return np.bool_(value)
    plain = declared.dtype if declared is not None and not declared.pointer else None
    if isinstance(value, complex):
        return np.complex128(value)
    if isinstance(value, float):
        if declared is not None and plain in ("float16", "float32"):
            raise InputError(
                f"argument {position} of {kernel} ({declared.text}) is {value!r}: CuPy passes a "
                f"Python float as a double, of which the kernel reads half: give numpy.{plain}"
            )
        return np.float64(value)
    dtype = plain if plain and "int" in plain else f"int{8 * min(size, 8)}"
    try:
        return np.dtype(dtype).type(value)
    except OverflowError as error:
        raise InputError(
            f"argument {position} of {kernel} is {value:,}: it does not fit in {dtype}"
        ) from error
