"""Launches of a product as plain data, without an address, so that they can be kept on disk.

It depends on the sizes, the layouts and the device, and not on addresses, alpha or beta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Precision = Literal["fp32", "fp32x"]
Buffer = Literal["A", "B", "C", "workspace", "copy of A", "copy of B", "product"]
COPIES: tuple[Buffer, ...] = ("copy of A", "copy of B", "product")


@dataclass(frozen=True, slots=True)
class BufferPlace:
    """A place in a buffer."""

    buffer: Buffer
    offset_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Map:
    """A tensor map of a matrix that begins at `pointer`, as a `MapTiling` describes it."""

    pointer: BufferPlace
    shape: tuple[int, ...]
    pitches: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    l2_promotion: int
    dtype: str = "float32"


@dataclass(frozen=True, slots=True)
class Scalar:
    """alpha or beta of the call."""

    name: Literal["alpha", "beta"]


@dataclass(frozen=True, slots=True)
class Value:
    """The bytes of an argument that is the same in each call."""

    content: bytes


Argument = BufferPlace | Map | Scalar | Value


@dataclass(frozen=True, slots=True)
class RecipeStep:
    """One launch of a kernel."""

    image: bytes  #: cubin
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int  #: dynamic shared memory
    arguments: tuple[Argument, ...]
    #: True if the kernel itself waits for the launch before it (griddepcontrol.wait), so that its
    #: blocks may start while that one ends.
    waits_itself: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """All launches of a product, in their order on one stream."""

    steps: tuple[RecipeStep, ...]
    workspace_bytes: int = 0
    #: First bytes of the workspace, which are zero before the first launch and after the last.
    zeroed_bytes: int = 0
    #: Bytes of each of `COPIES`, 0 if it is not needed.
    copies_bytes: tuple[int, int, int] = (0, 0, 0)
    #: One line for the caller if another precision computes the product than the one asked for.
    note: str = ""
