"""Texture and surface objects as the native core reads them, and their handles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.layout import dtype_of
from toolkit.launch.launch import Argument, buffer_of
from toolkit.launch.texture import ADDRESS_MODES, Surface, Texture

# As texture.h has it; axes from the innermost on.
OBJECT = dtype_of(
    "u8 address handle; u4 size[3] layers; u1 kind axes channels bytes type linear normalized "
    "to_float mode[3] reserved[5]",
    align=True,
)
OF_ARRAY, OF_MEMORY, OF_SURFACE = range(3)
_TYPES = "uif"  # kinds of NumPy's types, in the order of texture.h
# Handles that no address or small number looks like; they have 32 bits, as those of a driver.
FIRST_HANDLE = 0x7E500000


def handle_of(position: int) -> np.uint64:
    """The handle of the object that is the argument at a position."""
    return np.uint64(FIRST_HANDLE + position)


def table(
    arguments: Sequence[Argument],
    arrays: Mapping[int, NDArray[np.generic]],
    addresses: Mapping[int, int],
) -> NDArray[Any]:
    """A row for each texture and surface among the arguments; `arrays` are at `addresses`."""
    objects = {k: x for k, x in enumerate(arguments) if isinstance(x, Texture | Surface)}
    rows = np.zeros(len(objects), dtype=OBJECT)
    for row, (position, argument) in zip(rows, objects.items(), strict=True):
        texels = argument.texels
        row["address"] = addresses[buffer_of(argument, arrays)]
        row["handle"] = handle_of(position)
        row["size"] = (*texels.size, 1, 1)[:3]
        row["layers"] = texels.layers or 0
        row["axes"], row["channels"] = texels.axes, texels.channels
        row["bytes"], row["type"] = texels.dtype.itemsize, _TYPES.index(texels.dtype.kind)
        row["kind"] = OF_SURFACE
        if isinstance(argument, Texture):
            row["kind"] = OF_MEMORY if argument.is_memory else OF_ARRAY
            row["linear"] = argument.filter == "linear"
            row["normalized"], row["to_float"] = argument.normalized, argument.read == "float"
            row["mode"] = [ADDRESS_MODES.index(mode) for mode in argument.modes]
    return rows
