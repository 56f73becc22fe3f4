"""Triton kernels: compiled by Triton for a GPU that need not be here, with its own specialisation.

A parameter is specialised as a launch by Triton would: an integer of value 1 is a constant, and
pointers and integers that 16 divides are known to be so (arrays are allocated with such addresses).
Machine code has the parameters that are no constants, then pointers to scratch memory.

A load with a mask is inline assembly of several lines, and its PTX counts the Python line up with
each of them (Triton 3.9): the access would belong to a later line. The PTX is assembled once more
without these; the line table is taken if the machine code is the same.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import repeat
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.argument_types import shown
from analysis.errors import (
    CompileError,
    InputError,
    UnknownNameError,
    UnsupportedError,
    first_line,
    shortened,
)
from analysis.geometry import WARP_SIZE
from reports.text import many
from toolkit.frontends.prepared import (
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
from toolkit.launch.launch import three
from toolkit.machine_code.kernel import Kernel

_SCRATCH = ("global_scratch", "profile_scratch")  # in the order of the parameters
_USUAL_OPTIONS = ("num_warps", "num_stages", "maxnreg")  # for a message
_MOST_SHOWN = 4  # configurations of an autotuned kernel in a message
_FP_FUSION = "TRITON_DEFAULT_FP_FUSION"  # Triton warns about its future default at each start
_INLINE = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LOCATION = re.compile(r"^\s*\.loc\s.*\n", re.MULTILINE)
_SCALARS: dict[str, Callable[[Any], np.generic]] = {
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


def prepared(compiled: Any, request: FrontEndRequest) -> PreparedLaunch:
    """The launch of a `@triton.jit` function, or of a kernel that Triton has compiled.

    Raises InputError for arguments that the kernel does not take, CompileError as Triton compiles,
    and UnsupportedError for parameters that are not supported.
    """
    if hasattr(compiled, "asm"):
        return _launch(compiled, _given_to_compiled(compiled, request), request)
    function, given = _chosen(compiled, request)
    bound = _bound(function, given, request)
    return _launch(_compiled(function, bound, request.arch), bound, request)


@dataclass(frozen=True, kw_only=True)
class _Bound:
    """Values of the parameters by name, in order, and Triton's options."""

    name: str
    values: Mapping[str, Any]
    positions: Mapping[str, int]  # of the user's arguments, by name
    options: Mapping[str, Any]

    @property
    def meta(self) -> dict[str, Any]:
        """What Triton gives to a function that computes the grid."""
        return {**self.options, **self.values}


# Which constexprs: those of `defines`, of a configuration of @autotune, and of @heuristics.


@dataclass(frozen=True, kw_only=True)
class _Given:
    defines: dict[str, Any]
    heuristics: Sequence[Mapping[str, Callable[[dict[str, Any]], Any]]]


def _chosen(compiled: Any, request: FrontEndRequest) -> tuple[Any, _Given]:
    """The function within @autotune and @heuristics, and the values that they choose."""
    defines = {name: _python_value(value) for name, value in request.defines.items()}
    heuristics: list[Mapping[str, Callable[[dict[str, Any]], Any]]] = []
    while not hasattr(compiled, "params"):
        if hasattr(compiled, "configs"):
            defines = _of_configuration(compiled, defines)
        elif hasattr(compiled, "values"):
            heuristics.append(compiled.values)
        compiled = compiled.fn
    return compiled, _Given(defines=defines, heuristics=heuristics)


def _python_value(value: object) -> Any:
    """A value of --define, which is text: a number, True, None, a type such as tl.float32."""
    if not isinstance(value, str):
        return value
    if value.startswith("tl."):
        import triton.language

        return getattr(triton.language, value.removeprefix("tl."), value)
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value


def _of_configuration(tuner: Any, defines: dict[str, Any]) -> dict[str, Any]:
    """`defines`, completed by the one configuration of @autotune that agrees with them."""
    configurations = [one.all_kwargs() for one in tuner.configs]
    agreeing = [
        one
        for one in configurations
        if all(one[name] == value for name, value in defines.items() if name in one)
    ]
    if len(agreeing) == 1:
        return {**agreeing[0], **defines}
    if all(name in defines for one in tuner.configs for name in one.kwargs):
        return defines
    name = tuner.base_fn.__name__
    listed = "; ".join(_written(one) for one in (agreeing or configurations)[:_MOST_SHOWN])
    more = ", …" if len(agreeing or configurations) > _MOST_SHOWN else ""
    raise InputError(
        f"{name} is autotuned, and {len(agreeing) or 'none'} of its {len(configurations)} "
        f"configurations agree with defines: choose one ({listed}{more})"
    )


def _written(configuration: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in configuration.items() if value is not None)


# Arguments.


def _bound(function: Any, given: _Given, request: FrontEndRequest) -> _Bound:
    """The value of each parameter: by name, else the next argument, else its default."""
    name = function.__name__
    parameters = [one.name for one in function.params]
    values = {key: value for key, value in given.defines.items() if key in parameters}
    options = {key: value for key, value in given.defines.items() if key not in parameters}
    _check_options(name, options, parameters, request.arch)
    chosen = {key for heuristics in given.heuristics for key in heuristics}
    open_names = [one for one in parameters if one not in values and one not in chosen]
    if len(request.arguments) > len(open_names):
        raise InputError(
            f"{name} takes {', '.join(open_names) or 'no argument'} beside "
            f"{', '.join(sorted({*values, *chosen})) or 'nothing'}, and {len(request.arguments)} "
            "arguments were given"
        )
    positions = {key: k for k, key in enumerate(open_names[: len(request.arguments)])}
    values |= {key: request.arguments[k] for key, k in positions.items()}
    for one in function.params:
        if one.has_default:
            values.setdefault(one.name, one.default)
    for heuristics in given.heuristics:
        for key, value in heuristics.items():
            values[key] = value({**values, **options})
    if missing := [one for one in function.params if one.name not in values]:
        raise InputError(f"{name}: no value for {_asked(missing)}")
    return _Bound(
        name=name,
        values={one: values[one] for one in parameters},
        positions=positions,
        options=options,
    )


def _asked(missing: Sequence[Any]) -> str:
    first = missing[0].name
    is_constant = missing[0].is_constexpr
    missing = [one for one in missing if one.is_constexpr == is_constant]
    listed = ", ".join(f"`{one.name}`" for one in missing)
    if is_constant:
        return f"{listed}: give defines={{'{first}': …}}, or -D {first}=… in the command"
    return f"{listed}: give {many(len(missing), 'more argument')}"


def _check_options(
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
    """What Triton asks of a tensor to compile for it; addresses are multiples of 16."""

    dtype: str

    def data_ptr(self) -> int:
        return 0


def _for_triton(value: Any) -> Any:
    """An argument as Triton specialises on it: a typed pointer, or a number of Python."""
    array = as_array(value)
    if array is not None:
        return _Pointer(array.dtype.name)
    return value.item() if isinstance(value, np.generic) else value


# Compilation.


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


def _compiled(function: Any, bound: _Bound, arch: str) -> Any:
    """The kernel that Triton would launch with these values on a GPU of `arch`."""
    import triton
    from triton.compiler import ASTSource
    from triton.runtime.jit import create_function_from_signature

    backend = _backend(arch)
    values = {name: _for_triton(value) for name, value in bound.values.items()}
    with _quiet():
        try:
            binder = create_function_from_signature(function.signature, function.params, backend)
            specialised = binder(**values)[1]
        except TypeError as error:
            raise InputError(f"{bound.name}: Triton refuses an argument: {error}") from error
        types = {name: one[0] for name, one in zip(values, specialised, strict=True)}
        _check_types(bound.name, types)
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
            return triton.compile(source, target=_target(arch), options=dict(bound.options))
        except Exception as error:
            raise CompileError(_in_one_line(function, bound.name, error)) from error


def _check_types(name: str, types: Mapping[str, Any]) -> None:
    for parameter, kind in types.items():
        plain = isinstance(kind, str) and (
            kind == "constexpr" or kind[0] == "*" or kind in _SCALARS
        )
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


# The launch.


def _given_to_compiled(compiled: Any, request: FrontEndRequest) -> _Bound:
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
    _check_types(name, source.signature)
    open_names = [one for one in names if source.signature[one] != "constexpr"]
    if len(open_names) != len(request.arguments):
        raise InputError(
            f"{name} takes {', '.join(open_names)}, and {len(request.arguments)} arguments were "
            "given (constants are compiled in)"
        )
    positions = {key: k for k, key in enumerate(open_names)}
    return _Bound(
        name=name,
        values={
            one: request.arguments[positions[one]] if one in positions else constants.get(k)
            for k, one in enumerate(names)
        },
        positions=positions,
        options={},
    )


def _launch(compiled: Any, bound: _Bound, request: FrontEndRequest) -> PreparedLaunch:
    metadata, source = compiled.metadata, compiled.src
    kernel = _with_right_lines(compiled, Kernel.from_image(compiled.asm["cubin"], metadata.name))
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


def _with_right_lines(compiled: Any, kernel: Kernel) -> Kernel:
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


def _grid(request: FrontEndRequest, bound: _Bound) -> Extent:
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
        grid = grid if isinstance(grid, int) else tuple(grid)
    return three(grid, "grid")


def _parameter(name: str, kind: str, bound: _Bound) -> Parameter:
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
        scalar = _SCALARS[kind](value)
    except (OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"argument `{name}` of {bound.name} is {shown(value)}: the kernel is compiled for "
            f"{kind}: {first_line(error)}"
        ) from error
    return Parameter(value=scalar, name=name, argument=position)


def _check_element(name: str, kind: str, array: NDArray[np.generic], bound: _Bound) -> None:
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
            "not known: see docs/sources.md for those that were tried"
        )
    for name, _ in zip(_SCRATCH, repeat(None, count), strict=False):
        size = getattr(metadata, f"{name}_size", 0) or 0
        if size:
            yield Parameter(value=np.zeros(size * prod(grid), np.uint8), name=name)
        else:
            yield hidden(0, name)
