"""Driver functions that PyCUDA lacks: tensor maps, launches with them, cooperative launches.

PyCUDA hands the driver one buffer with all parameters of a kernel, and the caller has to know the
offset of each. The 64-byte alignment of a tensor map counts from the start of the constant bank,
not of the parameters: on sm_90 these start at 0x210, so that a map that is the first parameter is
48 bytes after that. Here the driver, which knows the offsets, gets a pointer to each parameter.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import (
    addressof,
    byref,
    c_char_p,
    c_int,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
    create_string_buffer,
    pointer,
    string_at,
)
from dataclasses import dataclass
from functools import cache
from typing import Any

from analysis.errors import LaunchError, UnavailableError
from analysis.geometry import Geometry
from toolkit.launch.tensor_map import (
    DATA_TYPES,
    L2_PROMOTIONS,
    MAP_ALIGNMENT,
    MAP_BYTES,
    SWIZZLES,
    MapTiling,
)

_MAX_DYNAMIC_SHARED_BYTES = 8  # cuda.h, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class LoadedModule:
    """A cubin, loaded in the current context. It stays loaded as long as the context lives.

    All methods raise LaunchError with the driver's name for what went wrong.
    """

    def __init__(self, image: bytes) -> None:
        self._module = c_void_p()
        call_driver("cuModuleLoadData", byref(self._module), c_char_p(image))

    def write(self, symbol: str, content: bytes) -> None:
        """Set a variable in global or constant memory, by its name in the cubin."""
        call_driver(
            "cuMemcpyHtoD_v2", self._address(symbol), c_char_p(content), c_size_t(len(content))
        )

    def read(self, symbol: str, size: int) -> bytes:
        """The first `size` bytes of a variable."""
        content = create_string_buffer(size)
        call_driver("cuMemcpyDtoH_v2", content, self._address(symbol), c_size_t(size))
        return content.raw

    def _address(self, symbol: str) -> c_uint64:
        address, size = c_uint64(), c_size_t()
        call_driver(
            "cuModuleGetGlobal_v2",
            byref(address),
            byref(size),
            self._module,
            c_char_p(symbol.encode()),
        )
        return address

    def prepared(
        self,
        kernel: str,
        geometry: Geometry,
        parameters: Sequence[bytes],
        stream: int = 0,
        *,
        cooperative: bool = False,
    ) -> Callable[[], None]:
        """A function that launches a kernel.

        `parameters` are the bytes of each, in order; `stream` is the driver's handle of one, 0 for
        the default one.
        """
        function = c_void_p()
        call_driver("cuModuleGetFunction", byref(function), self._module, c_char_p(kernel.encode()))
        dynamic = geometry.dynamic_shared_bytes
        if dynamic:
            call_driver(
                "cuFuncSetAttribute", function, c_int(_MAX_DYNAMIC_SHARED_BYTES), c_int(dynamic)
            )
        kept = [create_string_buffer(content, len(content)) for content in parameters]
        pointers = (c_void_p * len(kept))(*map(addressof, kept))
        extents = [c_uint32(extent) for extent in (*geometry.grid, *geometry.block)]
        name = "cuLaunchCooperativeKernel" if cooperative else "cuLaunchKernel"

        def launch(kept: object = kept) -> None:  # lives as long as this, for the pointers
            extra = [] if cooperative else [c_void_p()]
            call_driver(
                name, function, *extents, c_uint32(dynamic), c_void_p(stream), pointers, *extra
            )

        return launch


def call_driver(name: str, *arguments: Any) -> None:
    """Call a function of the driver; `arguments` are of ctypes.

    Raises UnavailableError where there is none of that name, LaunchError where it fails.
    """
    library = _library()
    function = getattr(library, name, None)
    if function is None:
        raise UnavailableError(f"the NVIDIA driver has no {name}: install one of CUDA 12 or later")
    status = function(*arguments)
    if status:
        raise LaunchError(f"{name}: {error_name(library, status)}")


def error_name(library: Any, status: int) -> str:
    """The driver's name for a status: "CUDA_ERROR_NO_DEVICE"."""
    name = c_char_p()
    library.cuGetErrorName(c_int(status), pointer(name))
    return (name.value or b"error %d" % status).decode()


@cache
def _library() -> Any:
    library = driver_library()
    if library is None:
        raise UnavailableError("this machine has no NVIDIA driver: install it")
    return library


def driver_library() -> Any:
    """The library of the CUDA driver, None where there is no driver."""
    with suppress(OSError):
        return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    return None


@dataclass(frozen=True, kw_only=True)
class EncodedMap:
    """The 128 bytes that a kernel takes for a tensor map."""

    content: bytes


def encoded(tiling: MapTiling, address: int) -> EncodedMap:
    """The tensor map of an array in a GPU's memory, as the driver encodes it.

    Raises UnavailableError without a driver of CUDA 12, LaunchError where it refuses.
    """
    inwards = range(len(tiling.shape) - 1, -1, -1)
    pitches = [tiling.pitches_bytes[axis] for axis in inwards[1:]]
    room = (c_uint8 * (MAP_BYTES + MAP_ALIGNMENT))()
    at = addressof(room) + -addressof(room) % MAP_ALIGNMENT
    call_driver(
        "cuTensorMapEncodeTiled",
        c_void_p(at),
        c_uint32(DATA_TYPES[tiling.dtype.name]),
        c_uint32(len(tiling.shape)),
        c_void_p(address),
        _array(c_uint64, [tiling.shape[axis] for axis in inwards]),
        _array(c_uint64, pitches or [0]),  # none of them is read then
        _array(c_uint32, [tiling.box[axis] for axis in inwards]),
        _array(c_uint32, [1 for _ in inwards]),  # no element is left out
        c_uint32(0),  # CU_TENSOR_MAP_INTERLEAVE_NONE
        c_uint32(SWIZZLES.index(tiling.swizzle)),
        c_uint32(L2_PROMOTIONS.index(tiling.l2_promotion)),
        c_uint32(0),  # CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE: zeros beyond the edges
    )
    return EncodedMap(content=string_at(at, MAP_BYTES))


def _array(kind: Any, values: Sequence[int]) -> Any:
    return (kind * len(values))(*values)
