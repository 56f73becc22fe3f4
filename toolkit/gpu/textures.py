"""Texture and surface objects of a GPU, through the driver: PyCUDA has references only.

Names and numbers are those of cuda.h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import (
    Structure,
    Union,
    byref,
    c_float,
    c_int,
    c_size_t,
    c_uint,
    c_ulonglong,
    c_void_p,
)
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.gpu.driver import driver
from toolkit.launch.launch import Argument, buffer_of
from toolkit.launch.texture import Surface, Texels, Texture

_FORMATS = {
    "uint8": 0x01,
    "uint16": 0x02,
    "uint32": 0x03,
    "int8": 0x08,
    "int16": 0x09,
    "int32": 0x0A,
    "float16": 0x10,
    "float32": 0x20,
}
_ADDRESS_MODES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
_FILTERS = {"point": 0, "linear": 1}
_READ_AS_INTEGER, _NORMALIZED_COORDINATES = 1, 2
_LAYERED, _SURFACE_LDST, _TEXTURE_GATHER = 1, 2, 8
_ARRAY, _LINEAR = 0, 2  # kinds of resources
_IN_DEVICE, _IN_ARRAY = 2, 3  # kinds of memory


class _ArrayDescriptor(Structure):
    _fields_ = (
        *((name, c_size_t) for name in ("width", "height", "depth")),
        ("format", c_int),
        ("channels", c_uint),
        ("flags", c_uint),
    )


class _CopySide(Structure):
    _fields_ = (
        *((name, c_size_t) for name in ("x_bytes", "y", "z", "level")),
        ("memory_type", c_int),
        ("host", c_void_p),
        ("device", c_ulonglong),
        ("array", c_void_p),
        ("reserved", c_void_p),
        ("pitch", c_size_t),
        ("height", c_size_t),
    )


class _Copy(Structure):
    _fields_ = (
        ("source", _CopySide),
        ("target", _CopySide),
        *((name, c_size_t) for name in ("width_bytes", "height", "depth")),
    )


class _Linear(Structure):
    _fields_ = (
        ("address", c_ulonglong),
        ("format", c_int),
        ("channels", c_uint),
        ("bytes", c_size_t),
    )


class _Resource(Union):
    _fields_ = (("array", c_void_p), ("linear", _Linear), ("reserved", c_int * 32))


class _ResourceDescriptor(Structure):
    _fields_ = (("kind", c_int), ("resource", _Resource), ("flags", c_uint))


class _TextureDescriptor(Structure):
    _fields_ = (
        ("address_modes", c_int * 3),
        ("filter", c_int),
        ("flags", c_uint),
        ("anisotropy", c_uint),
        ("level_filter", c_int),
        ("level_bias", c_float),
        ("levels", c_float * 2),
        ("border", c_float * 4),
        ("reserved", c_int * 12),
    )


class TextureObjects:
    """The textures and surfaces among the arguments of a launch, with the CUDA arrays of them.

    `arrays` are those of `buffers_of`, which lie at `addresses`: their contents are copied to the
    CUDA arrays, and back by `copy_back`. Raises LaunchError where the driver refuses.
    """

    def __init__(
        self,
        arguments: Sequence[Argument],
        arrays: Mapping[int, NDArray[np.generic]],
        addresses: Mapping[int, Any],
    ) -> None:
        self._addresses = addresses
        self._arrays: dict[int, tuple[c_void_p, Texels]] = {}
        self._destroy: list[tuple[str, Any]] = []
        self.handles: dict[int, np.uint64] = {}
        objects = {k: x for k, x in enumerate(arguments) if isinstance(x, Texture | Surface)}
        written = {buffer_of(x, arrays) for x in objects.values() if isinstance(x, Surface)}
        for position, argument in objects.items():
            buffer = buffer_of(argument, arrays)
            is_memory = isinstance(argument, Texture) and argument.is_memory
            if not is_memory and buffer not in self._arrays:
                self._arrays[buffer] = (
                    self._new_array(argument.texels, buffer in written),
                    argument.texels,
                )
                self._copy(buffer, to_array=True)
            self.handles[position] = self._new_object(argument, buffer)

    def copy_back(self, buffer: int) -> None:
        """Copy a CUDA array, if the buffer at this position is one, to the buffer's address."""
        if buffer in self._arrays:
            self._copy(buffer, to_array=False)

    def close(self) -> None:
        """Destroy the objects and arrays."""
        while self._destroy:
            name, handle = self._destroy.pop()
            driver().call(name, handle)

    def _new_array(self, texels: Texels, is_surface: bool) -> c_void_p:
        gathers = texels.axes == 2 and texels.layers is None and not is_surface
        descriptor = _ArrayDescriptor(
            **dict(zip(("width", "height", "depth"), texels.size, strict=False)),
            format=_FORMATS[texels.dtype.name],
            channels=texels.channels,
            flags=_SURFACE_LDST * is_surface | _TEXTURE_GATHER * gathers,
        )
        if texels.layers is not None:
            descriptor.depth = texels.layers
            descriptor.flags |= _LAYERED
        array = c_void_p()
        driver().call("cuArray3DCreate_v2", byref(array), byref(descriptor))
        self._destroy.append(("cuArrayDestroy", array))
        return array

    def _copy(self, buffer: int, *, to_array: bool) -> None:
        array, texels = self._arrays[buffer]
        width, height, depth = (*texels.size, 1, 1)[:3]
        row = width * texels.texel_bytes
        linear = _CopySide(
            memory_type=_IN_DEVICE, device=int(self._addresses[buffer]), pitch=row, height=height
        )
        in_array = _CopySide(memory_type=_IN_ARRAY, array=array)
        source, target = (linear, in_array) if to_array else (in_array, linear)
        copy = _Copy(
            source=source,
            target=target,
            width_bytes=row,
            height=height,
            depth=depth if texels.layers is None else texels.layers,
        )
        driver().call("cuMemcpy3D_v2", byref(copy))

    def _new_object(self, argument: Texture | Surface, buffer: int) -> np.uint64:
        texels = argument.texels
        resource = _ResourceDescriptor(kind=_ARRAY)
        if isinstance(argument, Texture) and argument.is_memory:
            resource.kind = _LINEAR
            resource.resource.linear = _Linear(
                address=int(self._addresses[buffer]),
                format=_FORMATS[texels.dtype.name],
                channels=texels.channels,
                bytes=argument.array.nbytes,
            )
        else:
            resource.resource.array = self._arrays[buffer][0]
        handle = c_ulonglong()
        if isinstance(argument, Surface):
            driver().call("cuSurfObjectCreate", byref(handle), byref(resource))
            self._destroy.append(("cuSurfObjectDestroy", handle))
        else:
            as_integer = argument.read == "element" and texels.dtype.kind != "f"
            texture = _TextureDescriptor(
                address_modes=(c_int * 3)(*(_ADDRESS_MODES[mode] for mode in argument.modes)),
                filter=_FILTERS[argument.filter],
                flags=_READ_AS_INTEGER * as_integer | _NORMALIZED_COORDINATES * argument.normalized,
            )
            driver().call(
                "cuTexObjectCreate", byref(handle), byref(resource), byref(texture), c_void_p()
            )
            self._destroy.append(("cuTexObjectDestroy", handle))
        return np.uint64(handle.value)
