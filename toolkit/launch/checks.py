"""Checks of a launch before anything runs: each error says what is wrong, and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.device_table import LIMITS
from analysis.devices import limits_of
from analysis.errors import InputError
from analysis.geometry import Geometry
from analysis.occupancy import Resources, occupancy
from reports import text
from toolkit.launch.element_types import is_bytes, small_float
from toolkit.launch.launch import Argument, check_numpy
from toolkit.launch.tensor_map import MAP_BYTES, TensorMap
from toolkit.launch.texture import HANDLE_BYTES, Surface, Texture
from toolkit.machine_code.attributes import KernelParameter
from toolkit.machine_code.signature import Declared

# CUDA C++ Programming Guide, "Compute Capabilities", the same for all that are known here
MAX_THREADS_PER_BLOCK = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65_535, 65_535)

MAX_CLUSTER = 16  # where the kernel allows more than the 8 of all devices

# Of a block on an architecture that the table of limits does not have: the most of any.
MOST_SHARED = max(facts["shared_bytes_per_block_optin"][0] for facts in LIMITS.values())

POINTER_BYTES = 8

# What a source calls a handle, the argument that it takes, and how the command line writes it.
HANDLE_TYPES = {
    "texture": ("cudaTextureObject_t", "texture", "toolkit.Texture(x), or tex:f32[512,512]"),
    "surface": ("cudaSurfaceObject_t", "surface", "toolkit.Surface(x), or surf:f32[512,512]"),
}

Array = NDArray[np.generic] | np.generic  # an argument that has a type of NumPy's


def check_geometry(kernel: str, geometry: Geometry) -> None:
    """Raise InputError for a grid or block that no device takes."""
    threads = geometry.threads_per_block
    if threads > MAX_THREADS_PER_BLOCK:
        raise InputError(
            f"{kernel}: a block of {_times(geometry.block)} = {threads:,} threads: a block has at "
            f"most {MAX_THREADS_PER_BLOCK:,}: take a smaller one and more blocks"
        )
    for what, extents, most in (
        ("block", geometry.block, MAX_BLOCK),
        ("grid", geometry.grid, MAX_GRID),
    ):
        for axis, extent, limit in zip("xyz", extents, most, strict=True):
            if extent > limit:
                raise InputError(
                    f"{kernel}: a {what} of {_times(extents)}: {axis} = {extent:,} is over "
                    f"{limit:,}: spread it over the other axes"
                )


def check_shared(kernel: str, static_bytes: int, dynamic_bytes: int, architecture: str) -> None:
    """Raise InputError for more shared memory than a block can have."""
    limits = limits_of(architecture)
    most = MOST_SHARED if limits is None else limits.shared_bytes_per_block_optin
    if dynamic_bytes < 0:
        raise InputError(
            f"{kernel}: {dynamic_bytes} bytes of dynamic shared memory: give 0 or more"
        )
    total_bytes = static_bytes + dynamic_bytes
    if total_bytes > most:
        raise InputError(
            f"{kernel}: {total_bytes:,} bytes of shared memory per block "
            f"({static_bytes:,} static, {dynamic_bytes:,} dynamic): {architecture} has "
            f"{most:,}: use smaller tiles"
        )


def check_fits(
    kernel: str,
    geometry: Geometry,
    resources: Resources,
    *,
    max_threads: int | None,
    required_block: Sequence[int] | None,
    cluster: Sequence[int],
    arch: str,
) -> None:
    """Raise InputError for a block that was not compiled for, or that no SM has room for.

    `max_threads` is what the kernel was compiled for with __launch_bounds__, `required_block` with
    __block_size__, `cluster` with __cluster_dims__.
    """
    if prod(cluster) > MAX_CLUSTER:
        raise InputError(
            f"{kernel}: its __cluster_dims__ is {_times(cluster)}: a cluster has at most "
            f"{MAX_CLUSTER} blocks"
        )
    if any(n % of for n, of in zip(geometry.grid, cluster, strict=True)):
        raise InputError(
            f"{kernel}: a grid of {_times(geometry.grid)}: its __cluster_dims__ is "
            f"{_times(cluster)}: launch a multiple of that"
        )
    threads = geometry.threads_per_block
    if required_block is not None and tuple(required_block) != geometry.block:
        raise InputError(
            f"{kernel}: a block of {_times(geometry.block)}: its __block_size__ is "
            f"{_times(required_block)}: launch it with that"
        )
    if max_threads is not None and threads > max_threads:
        raise InputError(
            f"{kernel}: a block of {_times(geometry.block)} = {threads:,} threads: its "
            f"__launch_bounds__ promises at most {max_threads:,}"
        )
    limits = limits_of(arch)
    if limits is None:
        return
    try:
        occupancy(
            limits,
            threads_per_block=threads,
            registers_per_thread=resources.registers_per_thread,
            shared_bytes_per_block=resources.static_shared_bytes + geometry.dynamic_shared_bytes,
        )
    except InputError as error:
        raise InputError(f"{kernel}: {error}") from error


def check_arguments(
    kernel: str,
    arguments: Sequence[Argument],
    parameters: Sequence[KernelParameter],
    declared: Sequence[Declared] | None = None,
) -> None:
    """Raise InputError for arguments that are not those of the kernel.

    `parameters` are those of the machine code; `declared` is what the source says of them,
    None where it is not known.
    """
    check_numpy(kernel, arguments)
    if declared is not None and len(declared) != len(parameters):
        declared = None
    if len(arguments) != len(parameters):
        each = [d.text for d in declared or ()] or [f"{one.size} bytes" for one in parameters]
        listed = f" ({', '.join(each)})" if each else ""
        raise InputError(
            f"{kernel} takes {text.many(len(parameters), 'argument')}{listed}, "
            f"{len(arguments)} {'was' if len(arguments) == 1 else 'were'} given"
        )
    for index, (argument, parameter) in enumerate(zip(arguments, parameters, strict=True)):
        what = f"argument {index} of {kernel}"
        if isinstance(argument, TensorMap):
            _check_map(what, parameter, declared[index] if declared else None)
            continue
        if isinstance(argument, Texture | Surface):
            _check_object(what, argument, parameter, declared[index] if declared else None)
            _check_apart(what, argument, arguments)
            continue
        _check_bytes(what, argument)
        if declared is None:
            _check_size(what, argument, parameter)
        else:
            _check_declared(
                f"{what} ({declared[index].text})", argument, parameter, declared[index]
            )


def _check_map(what: str, parameter: KernelParameter, declared: Declared | None) -> None:
    """Raise InputError where the kernel takes no tensor map, by value or by pointer."""
    is_plain = declared is not None and not (declared.pointer and declared.dtype is None)
    if parameter.size != MAP_BYTES and (parameter.size != POINTER_BYTES or is_plain):
        raise InputError(
            f"{what} is a tensor map of {MAP_BYTES} bytes: the kernel's parameter has "
            f"{parameter.size}: declare it `const __grid_constant__ CUtensorMap` or "
            f"`const CUtensorMap*`, or give {_of_size(parameter.size)}"
        )


def _check_object(
    what: str, argument: Texture | Surface, parameter: KernelParameter, declared: Declared | None
) -> None:
    """Raise InputError where the kernel takes no handle of such an object."""
    kind = type(argument).__name__.lower()
    if declared is not None:
        other = next((x for x in HANDLE_TYPES.values() if x[0] in declared.text), None)
        if declared.pointer or (other is not None and other[1] != kind):
            wanted = "an array" if declared.pointer or other is None else f"a {other[1]}"
            raise InputError(f"{what} ({declared.text}) is a {kind}: give {wanted}")
    if parameter.size != HANDLE_BYTES:
        raise InputError(
            f"{what} is a {kind}, whose handle has {HANDLE_BYTES} bytes: the kernel's parameter "
            f"has {parameter.size}: give {_of_size(parameter.size)}"
        )


def _check_apart(what: str, argument: Texture | Surface, arguments: Sequence[Argument]) -> None:
    """Raise InputError where memory of a buffer would be a CUDA array too."""
    if isinstance(argument, Texture) and argument.is_memory:
        others = [
            x
            for x in arguments
            if isinstance(x, Surface) or (isinstance(x, Texture) and not x.is_memory)
        ]
        shared = any(x.array is argument.array for x in others)
    else:
        shared = any(x is argument.array for x in arguments)
    if shared:
        raise InputError(
            f"{what}: its array is a buffer as well, and a CUDA array is other memory: give a copy "
            "(array.copy())"
        )


def _check_bytes(what: str, argument: Array) -> None:
    """Raise InputError for a type whose bytes mean nothing on a device."""
    dtype = argument.dtype
    if dtype.hasobject:
        raise InputError(f"{what} holds Python objects: give an array of numbers")
    if any(
        field.kind in "SUMm" or field.kind + str(field.itemsize) in _FOREIGN
        for field in _leaves(dtype)
    ):
        raise InputError(f"{what} is of type {dtype}: a device has no such numbers")
    if not all(field.isnative for field in _leaves(dtype)):
        raise InputError(
            f"{what} is big-endian ({dtype.str}): convert it: x.astype(x.dtype.newbyteorder('='))"
        )


_FOREIGN = {"f16", "c32"}  # long double, and complex of it


def _leaves(dtype: np.dtype[Any]) -> list[np.dtype[Any]]:
    """The types of the fields of a struct, nested ones included; else the type itself."""
    if dtype.subdtype is not None:
        return _leaves(dtype.subdtype[0])
    if dtype.fields is None:
        return [dtype]
    return [leaf for field in dtype.fields.values() for leaf in _leaves(field[0])]


def _check_size(what: str, argument: Array, parameter: KernelParameter) -> None:
    """Raise InputError where the size says that an argument cannot be meant."""
    if isinstance(argument, np.ndarray):
        if parameter.size != POINTER_BYTES:
            scalar = " (x[()] is that of an array without axes)" if argument.ndim == 0 else ""
            raise InputError(
                f"{what} is an array, which is passed as a pointer of {POINTER_BYTES} bytes: the "
                f"kernel's parameter has {parameter.size}: give {_of_size(parameter.size)}{scalar}"
            )
    elif argument.nbytes != parameter.size:
        raise InputError(
            f"{what} is {_shown(argument)} of {argument.nbytes} bytes: the kernel's parameter has "
            f"{parameter.size}: give {_of_size(parameter.size)}"
        )


def _check_declared(
    what: str, argument: Array, parameter: KernelParameter, declared: Declared
) -> None:
    """Check a size as `_check_size` does, with the parameter's declaration in the message."""
    is_array = isinstance(argument, np.ndarray)
    for name, kind, remedy in HANDLE_TYPES.values():
        if name in declared.text and is_array and not declared.pointer:
            raise InputError(f"{what} is an array: give a {kind}: {remedy}")
    if declared.pointer and not is_array:
        raise InputError(f"{what} is {_shown(argument)}: give an array: it becomes a device buffer")
    if declared.kind is not None and not declared.pointer and is_array:
        scalar = f"x[()] of type {declared.dtype}" if argument.ndim == 0 else declared.dtype
        raise InputError(f"{what} is an array: give a value, {scalar}")
    if declared.kind is not None and not _fits(argument, declared, exactly=not is_array):
        kind = f"an array of {argument.dtype.name}" if is_array else _shown(argument)
        raise InputError(
            f"{what} is {kind}: give {declared.dtype}{_conversion(argument, declared)}"
        )
    _check_size(what, argument, parameter)


def _conversion(argument: Array, declared: Declared) -> str:
    """Say how an array gets the declared type; empty for a value."""
    if not isinstance(argument, np.ndarray):
        return ""
    if argument.dtype.kind == "c":
        return f" (x.view('float{4 * argument.itemsize}') has its parts side by side)"
    keeps = ", x.view keeps their bytes" if argument.itemsize == declared.size else ""
    is_small = declared.kind not in ("integer", "float")
    wanted = f"ml_dtypes.{declared.dtype}" if is_small else repr(declared.dtype)
    return f" (x.astype({wanted}) converts the values{keeps})"


def _fits(argument: Array, declared: Declared, *, exactly: bool) -> bool:
    """True if a type can stand for the declared one: signed for unsigned, raw bytes for any."""
    dtype, small = argument.dtype, small_float(argument.dtype)
    if small is not None:
        same_size = dtype.itemsize == declared.size
        return declared.kind == small.name or (
            not exactly and same_size and declared.kind == "integer"
        )
    if declared.kind not in ("integer", "float"):  # their bits as integers, or raw
        return (dtype.kind in "iub" and dtype.itemsize == declared.size) or (
            not exactly and (is_bytes(dtype) or dtype.itemsize == 1)
        )
    if not exactly:
        if is_bytes(dtype) or dtype.itemsize == 1 or declared.size == 1:
            return True
        if dtype.kind == "c":  # an array of pairs: of float2 or float4
            is_pair = (declared.kind, 2 * (declared.size or 0)) == ("float", dtype.itemsize)
            return is_pair and declared.components % 2 == 0
        if dtype.itemsize == declared.size == 2:
            return True  # the bits of a half
    kind = "float" if dtype.kind == "f" else "integer"
    return dtype.kind in "fiub" and (kind, dtype.itemsize) == (declared.kind, declared.size)


def _shown(argument: Array) -> str:
    return "a struct" if is_bytes(argument.dtype) else f"{argument.dtype.name} {argument}"


def _of_size(size: int) -> str:
    known = {
        1: "a NumPy scalar such as int8",
        2: "a NumPy scalar such as int16 or float16",
        4: "a NumPy scalar such as int32 or float32",
        8: "an array, or a NumPy scalar such as int64 or float64",
    }
    return known.get(size, f"a struct of {size} bytes (numpy.void)")


def _times(extents: Sequence[int]) -> str:
    return "×".join(map(str, extents))
