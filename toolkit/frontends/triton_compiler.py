"""Compilation by Triton for a GPU that need not be here, with its own specialisation.

A parameter is specialised as a launch by Triton would: an integer of value 1 is a constant, and
pointers and integers that 16 divides are known to be so (arrays are allocated with such addresses).

A load with a mask is inline assembly of several lines, and its PTX counts the Python line up with
each of them (Triton 3.9): the access would belong to a later line. The PTX is assembled once more
without these; the line table is taken if the machine code is the same.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from analysis.errors import (
    CompileError,
    InputError,
    UnknownNameError,
    UnsupportedError,
    first_line,
    shortened,
)
from analysis.geometry import WARP_SIZE
from toolkit.frontends.front_end import as_array
from toolkit.machine_code.kernel import Kernel

_USUAL_OPTIONS = ("num_warps", "num_stages", "maxnreg")  # for a message
_FP_FUSION = "TRITON_DEFAULT_FP_FUSION"  # Triton warns about its future default at each start
_INLINE = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LOCATION = re.compile(r"^\s*\.loc\s.*\n", re.MULTILINE)

#: NumPy's type of a number of each of Triton's types
SCALARS: dict[str, Callable[[Any], np.generic]] = {
    "u1": np.bool_,
    "i1": np.bool_,
    "fp16": np.float16,
    "fp32": np.float32,
    "f32": np.float32,
    "fp64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
}


def check_options(
    name: str, options: Mapping[str, Any], parameters: Sequence[str], arch: str
) -> None:
    """Raise UnknownNameError for a define that is neither a parameter nor an option of Triton."""
    with _quiet():
        known = vars(_backend(arch).parse_options({}))
    for option in options:
        if option not in known:
            raise UnknownNameError(
                f"parameter or option of {name}", option, [*parameters, *_USUAL_OPTIONS]
            )
    if options.get("num_ctas", 1) != 1:
        raise UnsupportedError(f"{name}: num_ctas = {options['num_ctas']} is not supported: give 1")


@dataclass(frozen=True)
class _Pointer:
    """A tensor with what Triton asks of it to compile; addresses are multiples of 16."""

    dtype: str

    def data_ptr(self) -> int:
        return 0


def _for_triton(value: Any) -> Any:
    """An argument as Triton specialises on it: a typed pointer, or a number of Python."""
    array = as_array(value)
    if array is not None:
        return _Pointer(array.dtype.name)
    return value.item() if isinstance(value, np.generic) else value


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_FP_FUSION)
        yield


def _backend(arch: str) -> Any:
    from triton.compiler import make_backend

    return make_backend(_target(arch))


def _target(arch: str) -> Any:
    from triton.backends.compiler import GPUTarget

    return GPUTarget("cuda", int(arch.removeprefix("sm_").rstrip("af")), WARP_SIZE)


def compiled_by_triton(
    function: Any, name: str, given: Mapping[str, Any], options: Mapping[str, Any], arch: str
) -> Any:
    """The kernel that Triton would launch with these values on a GPU of `arch`."""
    import triton
    from triton.compiler import ASTSource
    from triton.runtime.jit import create_function_from_signature

    backend = _backend(arch)
    values = {name: _for_triton(value) for name, value in given.items()}
    with _quiet():
        try:
            binder = create_function_from_signature(function.signature, function.params, backend)
            specialised = binder(**values)[1]
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            reason = f"no type {error}" if isinstance(error, KeyError) else first_line(error)
            raise InputError(f"{name}: Triton refuses an argument: {reason}") from error
        types = {name: one[0] for name, one in zip(values, specialised, strict=True)}
        check_types(name, types)
        source = ASTSource(
            fn=function,
            signature=types,
            constexprs={
                (k,): values[name] for k, name in enumerate(values) if types[name] == "constexpr"
            },
            attrs={
                (k,): backend.parse_attr(one[1])
                for k, one in enumerate(specialised)
                if one[0] != "constexpr" and isinstance(one[1], str)
            },
        )
        try:
            return triton.compile(source, target=_target(arch), options=dict(options))
        except Exception as error:
            raise CompileError(_in_one_line(function, name, error)) from error


def check_types(name: str, types: Mapping[str, Any]) -> None:
    for parameter, kind in types.items():
        plain = isinstance(kind, str) and (kind == "constexpr" or kind[0] == "*" or kind in SCALARS)
        if not plain:
            raise UnsupportedError(
                f"{name}: its parameter `{parameter}` is of Triton's type {kind}, which is not "
                "supported: pass pointers and numbers"
            )


def _in_one_line(function: Any, name: str, error: Exception) -> str:
    """A mistake that Triton found, with its line in the Python file where that is known."""
    node = getattr(error, "node", None)
    reason = getattr(error, "error_message", None) or _last_cause(error)
    file = Path(function.file_name).name
    if node is None or not hasattr(node, "lineno"):
        return f"Triton cannot compile {name} of {file}: {shortened(reason, 300)}"
    line = function.def_file_line_number + node.lineno - 1
    return f"{file}, line {line}: Triton cannot compile {name}: {shortened(reason, 300)}"


def _last_cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return first_line(error)


def with_right_lines(compiled: Any, kernel: Kernel) -> Kernel:
    """Copy of the kernel in which inline assembly counts for one line of Python.

    It has no lines if the PTX cannot be assembled to the same machine code.
    """
    ptx, metadata = compiled.asm["ptx"], compiled.metadata
    mended = _INLINE.sub(lambda match: _at_one_line(match[0]), ptx)
    if mended == ptx:
        return kernel
    backend = _backend(f"sm_{metadata.target.arch}")
    with _quiet():
        known = vars(backend.parse_options({}))
        given = {key: value for key, value in metadata._asdict().items() if key in known}
        try:
            image = backend.make_cubin(
                mended, {}, backend.parse_options(given), metadata.target.arch
            )
        except Exception:  # of a Triton that assembles in another way
            return replace(kernel, lines={})
    again = Kernel.from_image(image, metadata.name)
    return replace(kernel, lines=again.lines if again.code == kernel.code else {})


def _at_one_line(assembly: str) -> str:
    """Inline assembly with the first of its locations alone."""
    first = _LOCATION.search(assembly)
    rest = first.end() if first else 0
    return assembly[:rest] + _LOCATION.sub("", assembly[rest:])
