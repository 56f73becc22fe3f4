"""The library of the NVIDIA driver: its functions, tensor maps, and launches with them.

Pointers, streams and contexts are integers here, as libraries hand them out.

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
    c_char,
    c_char_p,
    c_int,
    c_size_t,
    c_uint,
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

from analysis.errors import LaunchError, OutOfMemoryError, UnavailableError
from analysis.geometry import Geometry
from toolkit.launch.tensor_map import (
    DATA_TYPES,
    L2_PROMOTIONS,
    MAP_ALIGNMENT,
    MAP_BYTES,
    SWIZZLES,
    MapTiling,
)

# cuda.h
MAX_DYNAMIC_SHARED_BYTES = 8
PROGRAMMATIC_STREAM_SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_...
OUT_OF_MEMORY = 2

# Parameters of functions of the driver: i int, u unsigned, p pointer or handle, q 64 bits, B byte.
# Of others, the arguments are of ctypes.
SIGNATURES = {
    "cuInit": "u",
    "cuCtxGetCurrent": "p",
    "cuCtxPushCurrent_v2": "p",
    "cuCtxPopCurrent_v2": "p",
    "cuCtxGetDevice": "p",
    "cuCtxGetId": "pp",
    "cuDeviceGet": "pi",
    "cuDeviceGetName": "pii",
    "cuDeviceTotalMem_v2": "pi",
    "cuDeviceGetAttribute": "pii",
    "cuDevicePrimaryCtxRetain": "pi",
    "cuPointerGetAttribute": "piq",
    "cuModuleLoadData": "pp",
    "cuModuleGetFunction": "ppp",
    "cuFuncSetAttribute": "pii",
    "cuModuleGetGlobal_v2": "pppp",
    "cuMemcpyHtoD_v2": "qpq",
    "cuMemcpyDtoH_v2": "pqq",
    "cuLaunchKernel": "puuuuuuuppp",
    "cuLaunchKernelEx": "pppp",
    "cuLaunchCooperativeKernel": "puuuuuuupp",
    "cuTensorMapEncodeTiled": "puuqppppuuuu",
    "cuMemAlloc_v2": "pq",
    "cuMemFree_v2": "q",
    "cuMemPoolCreate": "pp",
    "cuMemPoolSetAttribute": "pip",
    "cuMemAllocFromPoolAsync": "pqpp",
    "cuMemFreeAsync": "qp",
    "cuMemsetD8Async": "qBqp",
    "cuStreamGetId": "pp",
    "cuStreamIsCapturing": "pp",
    "cuThreadExchangeStreamCaptureMode": "p",
}
KINDS = {"i": c_int, "u": c_uint, "p": c_void_p, "q": c_uint64, "B": c_uint8}


class Driver:
    """Functions of the driver by their names, with their parameters declared."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def __getattr__(self, name: str) -> Any:
        """The function, which returns a status. Raises UnavailableError for an old driver."""
        if not name.startswith("cu"):
            raise AttributeError(name)
        found = getattr(self.library, name, None)
        if found is None:
            raise UnavailableError(
                f"the NVIDIA driver has no {name}: install one of CUDA 12 or later"
            )
        if name in SIGNATURES:
            found.argtypes = [KINDS[kind] for kind in SIGNATURES[name]]
        found.restype = c_int
        setattr(self, name, found)
        return found

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function. Raises LaunchError or OutOfMemoryError if it fails."""
        if status := getattr(self, name)(*arguments):
            raise self.error(name, status)

    def error(self, name: str, status: int) -> LaunchError | OutOfMemoryError:
        """Return the error to raise for a status that a function returned."""
        said = f"{name}: {error_name(self.library, status)}"
        if status == OUT_OF_MEMORY:
            return OutOfMemoryError(
                f"{said}: free memory of this GPU, which other programs may hold"
            )
        return LaunchError(said)


def error_name(library: Any, status: int) -> str:
    """The driver's name for a status: "CUDA_ERROR_NO_DEVICE"."""
    name = c_char_p()
    library.cuGetErrorName(c_int(status), pointer(name))
    return (name.value or b"error %d" % status).decode()


def driver_library() -> Any:
    """The library of the CUDA driver, None where there is no driver."""
    with suppress(OSError):
        return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    return None


@cache
def driver() -> Driver:
    """The driver of this machine. Raises UnavailableError if there is none."""
    library = driver_library()
    if library is None:
        raise UnavailableError(
            "this machine has no NVIDIA driver (if it has an NVIDIA GPU, install the driver)"
        )
    found = Driver(library)
    found.call("cuInit", 0)
    return found


class LoadedModule:
    """A cubin, loaded in the current context. It stays loaded as long as the context lives.

    All methods raise LaunchError with the driver's name for what went wrong.
    """

    def __init__(self, image: bytes) -> None:
        self._module = c_void_p()
        driver().call("cuModuleLoadData", byref(self._module), image)

    def write(self, symbol: str, content: bytes) -> None:
        """Set a variable in global or constant memory, by its name in the cubin."""
        driver().call("cuMemcpyHtoD_v2", self._address(symbol), content, len(content))

    def read(self, symbol: str, size: int) -> bytes:
        """The first `size` bytes of a variable."""
        content = create_string_buffer(size)
        driver().call("cuMemcpyDtoH_v2", content, self._address(symbol), size)
        return content.raw

    def _address(self, symbol: str) -> int:
        address, size = c_uint64(), c_size_t()
        driver().call(
            "cuModuleGetGlobal_v2", byref(address), byref(size), self._module, symbol.encode()
        )
        return address.value

    def prepared(
        self,
        kernel: str,
        geometry: Geometry,
        parameters: Sequence[bytes],
        stream: int = 0,
        *,
        cooperative: bool = False,
        waits_itself: bool = False,
    ) -> Callable[[], None]:
        """A function that launches a kernel.

        `parameters` are the bytes of each, in order; `stream` is the driver's handle of one, 0 for
        the default one. A kernel that waits by itself may start early (`EarlyLaunch`).
        """
        function = c_void_p()
        driver().call("cuModuleGetFunction", byref(function), self._module, kernel.encode())
        dynamic = geometry.dynamic_shared_bytes
        if dynamic:
            driver().call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED_BYTES, dynamic)
        kept = [create_string_buffer(content, len(content)) for content in parameters]
        pointers = (c_void_p * len(kept))(*map(addressof, kept))
        extents = (*geometry.grid, *geometry.block, dynamic)
        name = "cuLaunchCooperativeKernel" if cooperative else "cuLaunchKernel"
        rest = (stream, pointers) if cooperative else (stream, pointers, None)
        early = EarlyLaunch(extents) if waits_itself else None

        def launch(kept: object = kept) -> None:  # lives as long as this, for the pointers
            if early is None:
                driver().call(name, function, *extents, *rest)
            elif status := early(function, *extents, *rest):
                raise driver().error("cuLaunchKernelEx", status)

        return launch


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute, whose value is a union of 64 bytes."""

    _fields_ = (("id", c_int), ("pad", c_int), ("value", c_int), ("rest", c_char * 60))


class _Configuration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        *((f"{one}_{axis}", c_uint32) for one in ("grid", "block") for axis in "xyz"),
        ("shared_bytes", c_uint32),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("attribute_count", c_uint32),
    )


class EarlyLaunch:
    """cuLaunchKernelEx, called as cuLaunchKernel, of blocks that may start while the launch before
    it on the stream ends (programmatic dependent launch).

    The kernel waits by itself, with griddepcontrol.wait, before it touches global memory. Needs
    sm_90.
    """

    def __init__(self, geometry: Sequence[int]) -> None:
        self._attribute = _Attribute(id=PROGRAMMATIC_STREAM_SERIALIZATION, value=1)
        self._configuration = _Configuration(
            *geometry, attributes=addressof(self._attribute), attribute_count=1
        )
        self._place = c_void_p(addressof(self._configuration))
        self._call: Callable[..., int] = driver().cuLaunchKernelEx

    def __call__(self, function: c_void_p, *others: Any) -> int:
        *_, stream, arguments, extra = others
        self._configuration.stream = stream
        return self._call(self._place, function, arguments, extra)


class StoredMap:
    """The memory of a tensor map at `place`, encoded again when the address of its array changes.

    Raises UnavailableError without a driver of CUDA 12.
    """

    def __init__(self, tiling: MapTiling) -> None:
        self._room = (c_uint8 * (MAP_BYTES + MAP_ALIGNMENT))()
        self.place = addressof(self._room) + -addressof(self._room) % MAP_ALIGNMENT
        self._address: int | None = None
        axes = len(tiling.shape)
        self._lists = (
            _inwards(c_uint64, tiling.shape),
            _inwards(c_uint64, tiling.pitches_bytes[:-1] or (0,)),  # none of them is read then
            _inwards(c_uint32, tiling.box),
            _inwards(c_uint32, (1,) * axes),  # no element is left out
        )
        self._before = (c_void_p(self.place), DATA_TYPES[tiling.dtype.name], axes)
        self._after = (
            *(c_void_p(addressof(one)) for one in self._lists),
            0,  # CU_TENSOR_MAP_INTERLEAVE_NONE
            SWIZZLES.index(tiling.swizzle),
            L2_PROMOTIONS.index(tiling.l2_promotion),
            0,  # CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE: zeros beyond the edges
        )
        self._call: Callable[..., int] = driver().cuTensorMapEncodeTiled

    def encode(self, address: int) -> None:
        """Raises LaunchError where the driver refuses."""
        if address == self._address:
            return
        if status := self._call(*self._before, address, *self._after):
            self._address = None
            raise driver().error("cuTensorMapEncodeTiled", status)
        self._address = address

    @property
    def content(self) -> bytes:
        return string_at(self.place, MAP_BYTES)


@dataclass(frozen=True, kw_only=True)
class EncodedMap:
    """The 128 bytes that a kernel takes for a tensor map."""

    content: bytes


def encoded(tiling: MapTiling, address: int) -> EncodedMap:
    """The tensor map of an array in a GPU's memory, as the driver encodes it.

    Raises UnavailableError without a driver of CUDA 12, LaunchError where it refuses.
    """
    stored = StoredMap(tiling)
    stored.encode(address)
    return EncodedMap(content=stored.content)


def _inwards(kind: Any, values: Sequence[int]) -> Any:
    return (kind * len(values))(*reversed(values))
