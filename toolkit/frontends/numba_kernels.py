"""Kernels of numba-cuda: compiled by Numba for a GPU that need not be here, linked by nvJitLink.

Numba passes an array as its parts: two pointers for its own use, which are null, the number of
elements, the bytes of one, the pointer to the data, the shape, and the strides in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.argument_types import shown
from analysis.errors import (
    CompileError,
    InputError,
    UnavailableError,
    UnsupportedError,
    first_line,
    shortened,
)
from toolkit.frontends.front_end import (
    FrontEndRequest,
    Parameter,
    PreparedLaunch,
    as_array,
    buffer,
    hidden,
)
from toolkit.frontends.python_source import with_python_source
from toolkit.machine_code.kernel import Kernel

# How lines of Numba's messages begin that name a step of Numba's, and where they name a line.
_FRAME = ("Failed in ", "During: ", "File ")
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')

# Options of @cuda.jit that `cuda.compile` takes too; lineinfo is always on.
_KEPT = ("debug", "fastmath", "opt", "launch_bounds")
# Options of @cuda.jit that change the code and are not passed on, with the value that is taken.
_REFUSED: Mapping[str, tuple[object, ...]] = {
    "link": ((), [], None),
    "extensions": ([], (), None),
    "inline": ("never", False, None),
}


def prepared(compiled: Any, request: FrontEndRequest) -> PreparedLaunch:
    """The launch of a `@cuda.jit` function.

    Raises InputError for arguments that Numba does not take, CompileError as it compiles.
    """
    name = compiled.py_func.__name__
    if request.defines:
        raise InputError(f"{name}: Numba has no defines: give values as arguments or as globals")
    arguments = [_as_numba_takes_it(value) for value in request.arguments]
    kernel = _compiled(compiled, name, arguments, request.arch)
    names = compiled.py_func.__code__.co_varnames[: compiled.py_func.__code__.co_argcount]
    parameters = tuple(
        one
        for k, (parameter, value) in enumerate(zip(names, arguments, strict=True))
        for one in _parameters(value, parameter, k)
    )
    grid, block = request.sizes(name)
    if len(parameters) != len(kernel.parameters):
        raise UnsupportedError(
            f"{name} has {len(kernel.parameters)} parameters in machine code, and "
            f"{len(parameters)} were expected: this version of Numba is not known: see "
            "docs/sources/frontends.md for those that were tried"
        )
    return PreparedLaunch(
        kernel=replace(
            with_python_source(kernel, compiled.py_func.__code__.co_filename), name=name
        ),
        grid=grid,
        block=block,
        dynamic_shared_bytes=request.dynamic_shared_bytes,
        parameters=parameters,
    )


def _as_numba_takes_it(value: Any) -> Any:
    array = as_array(value)
    return value if array is None else array


def _parameters(value: Any, name: str, argument: int) -> Iterator[Parameter]:
    """The parameters of the machine code for one argument of the user."""
    if isinstance(value, tuple):
        for k, one in enumerate(value):
            yield from _parameters(one, f"{name}[{k}]", argument)
    elif isinstance(value, np.ndarray):
        yield from _array(value, name, argument)
    else:
        for part in _parts(value, name):
            yield Parameter(value=part, name=name, argument=argument)


def _array(array: NDArray[np.generic], name: str, argument: int) -> Iterator[Parameter]:
    yield hidden(0, f"{name}.meminfo")
    yield hidden(0, f"{name}.parent")
    yield hidden(array.size, f"{name}.size")
    yield hidden(array.itemsize, f"{name}.itemsize")
    yield buffer(array, name, argument)
    for axis, size in enumerate(array.shape):
        yield hidden(size, f"{name}.shape[{axis}]")
    for axis, stride in enumerate(array.strides):
        yield hidden(stride, f"{name}.strides[{axis}]")


def _parts(value: Any, name: str) -> Iterator[np.generic]:
    """A number as Numba passes it: a complex one in two parts."""
    if isinstance(value, bool | np.bool_):
        yield np.bool_(value)
    elif isinstance(value, int):
        yield np.uint64(value) if value >= 2**63 else np.int64(value)
    elif isinstance(value, np.complexfloating):
        yield value.real
        yield value.imag
    elif isinstance(value, float) and not isinstance(value, np.generic):
        yield np.float64(value)
    elif isinstance(value, complex):
        yield np.float64(value.real)
        yield np.float64(value.imag)
    elif isinstance(value, np.integer | np.floating):
        yield value
    else:
        raise UnsupportedError(
            f"argument `{name}` is {shown(value)}: give an array, a number, or a tuple of these"
        )


def _compiled(dispatcher: Any, name: str, arguments: list[Any], arch: str) -> Kernel:
    """The kernel that Numba would launch for these arguments on a GPU of `arch`."""
    try:
        from cuda.core import Linker, LinkerOptions, ObjectCode
        from numba import cuda
        from numba.cuda.typing.typeof import Purpose, typeof
    except ImportError as error:  # the target of older packages of Numba itself
        raise _is_missing(name, error) from error

    function, options = dispatcher.py_func, dispatcher.targetoptions
    count = function.__code__.co_argcount
    if len(arguments) != count:
        takes = ", ".join(function.__code__.co_varnames[:count])
        raise InputError(f"{name} takes {takes}, and {len(arguments)} arguments were given")
    for option, taken in _REFUSED.items():
        if (value := options.get(option)) not in (*taken, None):
            raise UnsupportedError(f"{name}: @cuda.jit({option}={shown(value)}) is not supported")
    number = int(arch.removeprefix("sm_").rstrip("af"))
    capability = divmod(number, 10)
    uses_lto = bool(options.get("lto"))
    try:
        types = tuple(typeof(value, Purpose.argument) for value in arguments)
        with _device_of(capability):
            code, _ = cuda.compile(
                function,
                types,
                device=False,
                abi="numba",
                cc=capability,
                lineinfo=True,
                output="ltoir" if uses_lto else "ptx",
                **{option: options[option] for option in _KEPT if options.get(option) is not None},
            )
        made = ObjectCode.from_ltoir(code) if uses_lto else ObjectCode.from_ptx(_bytes(code))
        linked = Linker(
            made,
            options=LinkerOptions(
                arch=f"sm_{number}",
                lineinfo=True,
                link_time_optimization=uses_lto or None,
                max_register_count=options.get("max_registers"),
            ),
        ).link("cubin")
    except ImportError as error:
        raise _is_missing(name, error) from error
    except Exception as error:
        raise CompileError(_in_one_line(name, error)) from error
    return Kernel.from_image(bytes(linked.code))


@contextmanager
def _device_of(capability: tuple[int, int]) -> Iterator[None]:
    """Functions that a kernel calls are compiled for this compute capability.

    Numba asks for that of the current GPU, which may be another one, or none.
    """
    from numba.cuda import dispatcher

    asked = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    try:
        yield
    finally:
        dispatcher.get_current_device = asked


def _is_missing(name: str, error: ImportError) -> UnavailableError:
    return UnavailableError(
        f"{name} cannot be compiled: {first_line(error)}: pip install 'numba-cuda[cu13]'"
    )


def _in_one_line(name: str, error: Exception) -> str:
    """A mistake that Numba found, with its line in the Python file where that is known."""
    text = f"{error}\n{getattr(error, 'msg', '')}"
    lines = [line.strip() for line in text.splitlines()]
    reason = next((x for x in lines if x and not x.startswith(_FRAME)), type(error).__name__)
    place = _PLACE.search(text)
    where = f"{Path(place[1]).name}, line {place[2]}: " if place else ""
    return f"{where}Numba cannot compile {name}: {shortened(reason, 300)}"


def _bytes(code: str | bytes) -> bytes:
    return code.encode() if isinstance(code, str) else code
