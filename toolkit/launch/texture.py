"""Texture and surface objects: arrays that a kernel takes as `cudaTextureObject_t` and
`cudaSurfaceObject_t`.

Shapes are in the order of NumPy, the innermost axis last; coordinates in a kernel are the other way
round: `tex2D<float>(t, column, row)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.argument_types import check_types
from analysis.errors import InputError, UnknownNameError

HANDLE_BYTES = 8
CHANNELS = (1, 2, 4)
TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32")
FILTERS = ("point", "linear")
ADDRESS_MODES = ("clamp", "wrap", "mirror", "border")  # in the order of texture.h
READS = ("element", "float")

# CUDA Programming Guide, "Technical Specifications per Compute Capability", 7.5 to 12.0: texels
# along each axis, the innermost first, and layers.
_MOST_OF_MEMORY = 1 << 28
_MOST = {1: (131_072,), 2: (131_072, 65_536), 3: (16_384, 16_384, 16_384)}
_MOST_LAYERED = {1: (32_768,), 2: (32_768, 32_768)}
_MOST_LAYERS = 2048

Filter = Literal["point", "linear"]
Read = Literal["element", "float"]


@dataclass(frozen=True, kw_only=True)
class Texels:
    """Contents of an array for a texture or a surface.

    `size` is in texels, the innermost axis first; `layers` is None without layers.
    """

    size: tuple[int, ...]
    layers: int | None
    channels: int
    dtype: np.dtype[Any]

    @property
    def axes(self) -> int:
        return len(self.size)

    @property
    def texel_bytes(self) -> int:
        return self.channels * self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class Texture:
    """An argument of a launch: a texture object of `array`.

    The array becomes a CUDA array, and an output of the launch; textures and surfaces of one array
    (the same object) share it. Mipmaps, anisotropic filters and cubemaps are not supported.

    Parameters
    ----------
    array
        Of 8-, 16- or 32-bit integers, float16 or float32: [width], [height, width] or
        [depth, height, width], behind the layers, and before the channels if there are several.
    filter
        "point", or "linear", which needs values that are fetched as floats.
    address
        What a coordinate outside means: "clamp", "wrap", "mirror" or "border" (zeros), for all axes
        or one for each, x first. "wrap" and "mirror" need normalized coordinates.
    normalized
        If true, coordinates are from 0 to 1, else from 0 to the number of texels.
    read
        "element": values as they are; "float": integers of 8 and 16 bits as floats up to 1.
    channels
        1, 2 or 4: the size of the array's last axis if it is not 1.
    layered
        If true, the array's first axis are the layers, of 1D or 2D.
    memory
        If true, linear memory for `tex1Dfetch`, which has neither filter nor address mode; an array
        that is an argument too shares its buffer. By default it is true for one axis unless
        `filter`, `address` or `normalized` is given: `tex1D` needs an array (`memory=False`).

    Raises
    ------
    InputError
        For what CUDA does not create a texture object of.

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit import Texture, simulate
    >>> source = '''extern "C" __global__ void middle(cudaTextureObject_t t, float *y) {
    ...     y[threadIdx.x] = tex2D<float>(t, threadIdx.x + 1.0f, 0.5f); }'''
    >>> image = np.arange(8, dtype=np.float32).reshape(1, 8)
    >>> arguments = [Texture(image, filter="linear"), np.zeros(4, np.float32)]
    >>> simulate(source, grid=1, block=4, arguments=arguments).outputs[1]
    array([0.5, 1.5, 2.5, 3.5], dtype=float32)
    """

    array: NDArray[Any]
    filter: Filter = "point"
    address: str | Sequence[str] | None = None
    normalized: bool = False
    read: Read = "element"
    channels: int = 1
    layered: bool = False
    memory: bool | None = None
    texels: Texels = field(init=False, repr=False)
    modes: tuple[str, str, str] = field(init=False, repr=False)
    is_memory: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_types(type(self), vars(self), "texture: ")
        for name, allowed in (("filter", FILTERS), ("read", READS)):
            if getattr(self, name) not in allowed:
                raise UnknownNameError(f"texture: {name}", getattr(self, name), allowed)
        texels = texels_of(self.array, self.channels, self.layered, "texture")
        asks = self.filter != "point" or self.address is not None or self.normalized
        plain = texels.axes == 1 and not self.layered and not asks
        object.__setattr__(self, "texels", texels)
        object.__setattr__(self, "is_memory", plain if self.memory is None else self.memory)
        object.__setattr__(self, "modes", self._modes())
        self._check_kind(asks)
        self._check_values()
        _check_size(texels, self.is_memory)

    def _modes(self) -> tuple[str, str, str]:
        given = self.address or "clamp"
        modes = [given] * 3 if isinstance(given, str) else list(given)
        for mode in modes:
            if mode not in ADDRESS_MODES:
                raise UnknownNameError("texture: address mode", mode, ADDRESS_MODES)
            if mode in ("wrap", "mirror") and not self.normalized:
                raise InputError(
                    f"texture: address {mode!r} needs normalized coordinates (CUDA clamps others): "
                    "give normalized, or clamp"
                )
        if not self.texels.axes <= len(modes) <= 3:
            raise InputError(
                f"texture: {len(modes)} address modes: give one, or one for each of the "
                f"{self.texels.axes} axes"
            )
        # a GPU reads a 1D texture as a 2D one of one row, beyond which a border would begin
        x, y, z = (*modes[: self.texels.axes], "clamp", "clamp")[:3]
        return x, y, z

    def _check_kind(self, asks: bool) -> None:
        if not self.is_memory:
            return
        if self.texels.axes != 1 or self.layered:
            raise InputError(
                f"texture: linear memory of shape {self.array.shape}: it has one axis: leave out "
                "memory"
            )
        if asks:
            raise InputError(
                "texture: linear memory has no filter, address mode or normalized coordinates: "
                "leave out memory"
            )

    def _check_values(self) -> None:
        dtype = self.texels.dtype
        if self.read == "float" and (dtype.kind == "f" or dtype.itemsize > 2):
            raise InputError(
                f"texture: read 'float' of {dtype.name}: it is for integers of 8 and 16 bits: "
                "leave it out"
            )
        if self.filter == "linear" and dtype.kind != "f" and self.read != "float":
            remedy = "read them as float" if dtype.itemsize < 4 else "take float32"
            raise InputError(f"texture: a linear filter of {dtype.name}: {remedy}")


@dataclass(frozen=True, eq=False)
class Surface:
    """An argument of a launch: a surface object of `array`, which the kernel may read and write.

    Parameters
    ----------
    array
        As of `Texture`; it is an output of the launch.
    channels
        1, 2 or 4: the size of the array's last axis if it is not 1.
    layered
        If true, the array's first axis are the layers, of 1D or 2D.

    Raises
    ------
    InputError
        For what CUDA does not create a surface object of.

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit import Surface, simulate
    >>> source = '''extern "C" __global__ void mark(cudaSurfaceObject_t s) {
    ...     surf2Dwrite(1.0f, s, threadIdx.x * 4, 1); }'''
    >>> surface = Surface(np.zeros((2, 2), np.float32))
    >>> simulate(source, grid=1, block=2, arguments=[surface]).outputs[0]
    array([[0., 0.],
           [1., 1.]], dtype=float32)
    """

    array: NDArray[Any]
    channels: int = 1
    layered: bool = False
    texels: Texels = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_types(type(self), vars(self), "surface: ")
        texels = texels_of(self.array, self.channels, self.layered, "surface")
        object.__setattr__(self, "texels", texels)
        _check_size(texels, is_memory=False)


def texels_of(array: NDArray[Any], channels: int, layered: bool, what: str) -> Texels:
    """The texels of an array. Raises InputError where it cannot be a `what`."""
    if array.dtype.name not in TYPES:
        raise InputError(f"{what}: an array of {array.dtype}: give one of {', '.join(TYPES)}")
    if channels not in CHANNELS:
        raise InputError(f"{what}: {channels} channels: give 1, 2 or 4")
    shape = array.shape
    if channels > 1:
        if not shape or shape[-1] != channels:
            raise InputError(
                f"{what}: {channels} channels in an array of shape {shape}: its last axis is the "
                f"channels: give one of shape [..., {channels}]"
            )
        shape = shape[:-1]
    layers = None
    if layered and shape:
        layers, *rest = shape
        shape = tuple(rest)
    most = 2 if layered else 3
    if not 1 <= len(shape) <= most or not all(shape) or layers == 0:
        raise InputError(
            f"{what}: an array of shape {array.shape}{' with layers' if layered else ''}"
            f"{f' and {channels} channels' if channels > 1 else ''}: give 1 to {most} axes of "
            "texels"
        )
    return Texels(size=shape[::-1], layers=layers, channels=channels, dtype=array.dtype)


def _check_size(texels: Texels, is_memory: bool) -> None:
    most: tuple[int, ...] = (
        (_MOST_OF_MEMORY,)
        if is_memory
        else (_MOST if texels.layers is None else _MOST_LAYERED)[texels.axes]
    )
    for axis, size, limit in zip("xyz", texels.size, most, strict=False):
        if size > limit:
            raise InputError(f"texture: {size:,} texels along {axis}: there are at most {limit:,}")
    if texels.layers is not None and texels.layers > _MOST_LAYERS:
        raise InputError(f"texture: {texels.layers:,} layers: there are at most {_MOST_LAYERS:,}")
