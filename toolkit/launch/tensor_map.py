"""Tensor maps: what a bulk copy of tiles (`cp.async.bulk.tensor`) knows of an array.

A kernel takes one as `const __grid_constant__ CUtensorMap`, 128 bytes that the driver encodes, or
as `const CUtensorMap*`: these bytes are in global memory then.
Sizes are in the order of NumPy's shapes, the innermost last; coordinates in a kernel are the other
way round: `{column, row}`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.argument_types import check_types
from analysis.errors import InputError, UnknownNameError

MAP_BYTES = 128
MAP_ALIGNMENT = 64  # CUDA Driver API, cuTensorMapEncodeTiled

# The same; places in SWIZZLES and L2_PROMOTIONS, and numbers of DATA_TYPES, are those of cuda.h.
MOST_AXES = 5
MOST_OF_BOX = 256  # elements along an axis
MOST_SIZE = 1 << 32
MOST_PITCH_BYTES = 1 << 40
UNIT_BYTES = 16  # of which rows of the array and of the box are multiples
SWIZZLES = (0, 32, 64, 128)
L2_PROMOTIONS = (0, 64, 128, 256)
# Bytes are copied as they are, so types that cuda.h lacks have the number of one of their size.
DATA_TYPES = {
    "uint8": 0,
    "int8": 0,
    "float8_e4m3fn": 0,
    "float8_e5m2": 0,
    "uint16": 1,
    "int16": 1,
    "uint32": 2,
    "int32": 3,
    "uint64": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
}


@dataclass(frozen=True, kw_only=True)
class MapTiling:
    """Everything of a tensor map but the address of its array.

    `box` is the tile that one copy moves, in elements. `swizzle` is the length in bytes of the rows
    in shared memory within which pieces of 16 bytes change places, 0 for none. Of what L2 lacks it
    fetches `l2_promotion` bytes. `pitches` are bytes from element to element along each axis but
    the last, where they are others than those of an array that is stored row by row. Raises
    InputError for what the driver would not encode.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    box: tuple[int, ...]
    swizzle: int = 0
    l2_promotion: int = 128
    pitches: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name, allowed in (("swizzle", SWIZZLES), ("l2_promotion", L2_PROMOTIONS)):
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"tensor map: {name} = {getattr(self, name)}: give one of "
                    f"{', '.join(map(str, allowed))} bytes"
                )
        _check_axes(self)
        _check_rows(self)

    @property
    def pitches_bytes(self) -> tuple[int, ...]:
        """Distances between elements along each axis in bytes, the outermost axis first."""
        if self.pitches is not None:
            return (*self.pitches, self.dtype.itemsize)
        return tuple(
            self.dtype.itemsize * prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))
        )

    @property
    def extent_bytes(self) -> int:
        """Bytes from the first element to the end of the last."""
        steps = zip(self.shape, self.pitches_bytes, strict=True)
        return sum((size - 1) * pitch for size, pitch in steps) + self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class TensorMap:
    """An argument of a launch: the tensor map of `array`, cut into tiles of `box`.

    An array that is an argument itself (the same object) shares its buffer with the map, and so do
    maps of one array; any other becomes a buffer, and an output, of its own.

    Parameters
    ----------
    array
        The whole array, of up to five axes.
    box
        Size of a tile along each axis.
    swizzle, l2_promotion
        In bytes, as of `cuTensorMapEncodeTiled`.
    shape, pitches, offset
        A part of the array, from byte `offset` on: of every fourth row, say. `pitches` are bytes
        (see `MapTiling`).

    Raises
    ------
    InputError
        For a part that is not inside of the array, or a tiling that the hardware does not take.

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit import TensorMap
    >>> TensorMap(np.zeros((64, 32), np.float32), (32, 32)).tiling.shape
    (64, 32)
    """

    array: NDArray[Any]
    box: tuple[int, ...]
    swizzle: int = 0
    l2_promotion: int = 128
    shape: tuple[int, ...] | None = None
    pitches: tuple[int, ...] | None = None
    offset: int = 0
    dtype: str | None = None
    tiling: MapTiling = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_types(type(self), vars(self), "tensor map: ")
        tiling = MapTiling(
            shape=self.array.shape if self.shape is None else tuple(self.shape),
            dtype=self.array.dtype if self.dtype is None else _type_of(self.dtype),
            box=tuple(self.box),
            swizzle=self.swizzle,
            l2_promotion=self.l2_promotion,
            pitches=None if self.pitches is None else tuple(self.pitches),
        )
        if self.offset % UNIT_BYTES:
            raise InputError(f"tensor map: offset = {self.offset}: give a multiple of {UNIT_BYTES}")
        if not 0 <= self.offset <= self.array.nbytes - tiling.extent_bytes:
            raise InputError(
                f"tensor map: {tiling.extent_bytes:,} bytes, from the first element of shape "
                f"{tiling.shape} to its last, at byte {self.offset:,} of an array of "
                f"{self.array.nbytes:,}: give fewer rows"
            )
        object.__setattr__(self, "tiling", tiling)


def _type_of(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:  # no type of NumPy
        raise UnknownNameError("type of a tensor map", name, DATA_TYPES) from None


def _check_axes(tiling: MapTiling) -> None:
    axes = len(tiling.shape)
    if tiling.pitches is not None and len(tiling.pitches) != axes - 1:
        raise InputError(
            f"tensor map: pitches {tiling.pitches} of an array of shape {tiling.shape}: give one "
            "for each axis but the last"
        )
    if tiling.dtype.name not in DATA_TYPES:
        raise InputError(
            f"tensor map: an array of {tiling.dtype}: a bulk copy knows {', '.join(DATA_TYPES)}: "
            "take a view of one of them"
        )
    if not 1 <= axes <= MOST_AXES or len(tiling.box) != axes:
        raise InputError(
            f"tensor map: a box {tiling.box} of an array of shape {tiling.shape}: give as many "
            f"sizes as the array has axes, 1 to {MOST_AXES}"
        )
    for size, of_box in zip(tiling.shape, tiling.box, strict=True):
        if not (1 <= size <= MOST_SIZE and 1 <= of_box <= MOST_OF_BOX):
            raise InputError(
                f"tensor map: a box {tiling.box} of an array of shape {tiling.shape}: a box has 1 "
                f"to {MOST_OF_BOX} elements along an axis, an array 1 to {MOST_SIZE:,}"
            )


def _check_rows(tiling: MapTiling) -> None:
    row_bytes = tiling.box[-1] * tiling.dtype.itemsize
    if row_bytes % UNIT_BYTES:
        raise InputError(
            f"tensor map: rows of {row_bytes} bytes in a box {tiling.box}: give a multiple of "
            f"{UNIT_BYTES}"
        )
    if tiling.swizzle and row_bytes > tiling.swizzle:
        raise InputError(
            f"tensor map: rows of {row_bytes} bytes in a box {tiling.box}: swizzle = "
            f"{tiling.swizzle} takes at most as many: make the box narrower"
        )
    for pitch in tiling.pitches_bytes[:-1]:
        if pitch % UNIT_BYTES or not 0 < pitch < MOST_PITCH_BYTES or not isinstance(pitch, int):
            raise InputError(
                f"tensor map: rows {pitch:,} bytes apart in an array of shape {tiling.shape}: give "
                f"a multiple of {UNIT_BYTES} below 2^40: pad the rows"
            )
