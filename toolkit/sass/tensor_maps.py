"""Tensor maps as the native core reads them: a description of ours in the driver's 128 bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from analysis.layout import dtype_of
from toolkit.launch.launch import Argument, buffer_of
from toolkit.launch.tensor_map import DATA_TYPES, MAP_BYTES, MOST_AXES, MapTiling, TensorMap
from toolkit.launch.texture import Surface, Texture
from toolkit.machine_code.attributes import KernelParameter
from toolkit.machine_code.kernel import POINTER_BYTES
from toolkit.sass.textures import handle_of

MARK = 0x50414D524F534E54  # "TNSORMAP": what has it not is no tensor map

# As bulk.h has it; axes from the innermost on.
DESCRIPTION = dtype_of(
    f"u8 mark address size[{MOST_AXES}] pitch[{MOST_AXES}]; u2 box[{MOST_AXES}]; "
    "u1 axes element_bytes data_type swizzle reserved[18]"
)
assert DESCRIPTION.itemsize == MAP_BYTES


def described(
    arguments: Sequence[Argument],
    arrays: Mapping[int, NDArray[np.generic]],
    addresses: Mapping[int, int],
) -> list[NDArray[np.generic] | np.generic]:
    """The arguments, with 128 bytes for each tensor map; `arrays` have buffers at `addresses`.

    Textures and surfaces become their handles.
    """
    values: list[NDArray[np.generic] | np.generic] = []
    for position, argument in enumerate(arguments):
        if isinstance(argument, TensorMap):
            address = addresses[buffer_of(argument, arrays)] + argument.offset
            values.append(description(argument.tiling, address))
        elif isinstance(argument, Texture | Surface):
            values.append(handle_of(position))
        else:
            values.append(argument)
    return values


def maps_in_memory(
    arguments: Sequence[Argument], parameters: Sequence[KernelParameter]
) -> list[int]:
    """Positions of the tensor maps that the kernel takes by pointer: these are in global memory."""
    return [
        position
        for position, (argument, parameter) in enumerate(zip(arguments, parameters, strict=True))
        if isinstance(argument, TensorMap) and parameter.size == POINTER_BYTES
    ]


def description(tiling: MapTiling, address: int) -> np.void:
    """The tensor map of an array at an address of the simulated device."""
    made = np.zeros((), dtype=DESCRIPTION)
    axes = len(tiling.shape)
    made["mark"], made["address"] = MARK, address
    made["size"][:axes] = tiling.shape[::-1]
    made["pitch"][:axes] = tiling.pitches_bytes[::-1]
    made["box"][:axes] = tiling.box[::-1]
    made["axes"], made["element_bytes"] = axes, tiling.dtype.itemsize
    made["data_type"] = DATA_TYPES[tiling.dtype.name]
    made["swizzle"] = tiling.swizzle
    return np.void(made.tobytes())
