"""CUDA C++ text within a Python file: compiled here, with the lines of the Python file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolkit.frontends.front_end import FrontEndRequest, Parameter, PreparedLaunch, as_array, buffer
from toolkit.frontends.python_source import files_of, numbered, placed
from toolkit.launch.checks import check_arguments
from toolkit.launch.launch import check_numpy
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.machine_code.signature import signature


@dataclass(frozen=True)
class CudaText:
    """Text of a PyCUDA `SourceModule`, which takes the same arguments and needs a GPU.

    Parameters
    ----------
    source
        The text in CUDA C++, with one kernel or several.
    options
        Options of the compiler, such as ["-use_fast_math"].
    no_extern_c
        If true, the text stands as it is; else within `extern "C" { }`, as in PyCUDA.
    include_dirs
        Folders of the headers that the text includes.
    path
        The Python file that holds the text; by default one that is running, or a module in which
        this object has a name.

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit import CudaText, simulate
    >>> module = CudaText("__global__ void twice(float *x) { x[threadIdx.x] *= 2; }")
    >>> x = np.ones(32, np.float32)
    >>> simulate(module, grid=1, block=32, arguments=[x]).outputs[0][:2]
    array([2., 2.], dtype=float32)
    """

    source: str
    options: Sequence[str] = ()
    no_extern_c: bool = False
    include_dirs: Sequence[str] = ()
    path: str | None = None


def prepared(compiled: CudaText, request: FrontEndRequest) -> PreparedLaunch:
    """The launch of a kernel of a text. Raises as `compile_kernel` and `check_arguments` do."""
    kernel = compiled_text(
        compiled.source,
        request.kernel,
        request=request,
        options=[*compiled.options, *(f"-I{folder}" for folder in compiled.include_dirs)],
        around=("", "") if compiled.no_extern_c else ('extern "C" {\n', "\n}"),
        paths=[compiled.path] if compiled.path else files_of(compiled),
    )
    return launch_of_text(kernel, request, list(request.arguments))


def compiled_text(
    text: str,
    name: str | None,
    *,
    request: FrontEndRequest,
    options: Sequence[str],
    around: tuple[str, str] = ("", ""),
    paths: Iterable[str],
    headers: Sequence[str] = (),
) -> Kernel:
    """A kernel of a text, whose lines are those of the first of `paths` that holds the text."""
    place = placed(text, paths)
    file, line, source = (Path(place[0]).name, *place[1:]) if place else ("kernel.cu", 1, text)
    kernel = compile_kernel(
        f"{around[0]}{numbered(text, line, file)}{around[1]}",
        name,
        target=request.arch,
        name=file,
        folder=Path(place[0]).resolve().parent if place else Path(),
        defines=request.defines,
        options=[*request.options, *options],
        headers=headers,
    )
    return replace(kernel, source=source, file=file, declared=signature(text, kernel.name))


def launch_of_text(
    kernel: Kernel, request: FrontEndRequest, arguments: Sequence[Any]
) -> PreparedLaunch:
    """The launch of a kernel whose parameters are those of the user. Raises InputError."""
    given = [value if (array := as_array(value)) is None else array for value in arguments]
    check_numpy(kernel.name, given)
    check_arguments(kernel.name, given, kernel.parameters, kernel.declared)
    names = [one.name or str(k) for k, one in enumerate(kernel.declared or ())]
    names = names if len(names) == len(given) else [str(k) for k in range(len(given))]
    grid, block = request.sizes(kernel.name)
    return PreparedLaunch(
        kernel=kernel,
        grid=grid,
        block=block,
        dynamic_shared_bytes=request.dynamic_shared_bytes,
        parameters=tuple(
            buffer(value, name, k)
            if as_array(value) is not None
            else Parameter(value=value, name=name, argument=k)
            for k, (name, value) in enumerate(zip(names, given, strict=True))
        ),
    )
