"""A program with the memory, the banks and the geometry of one launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import Geometry
from toolkit.sass.isa.registry import Lowered
from toolkit.sass.module_variables import MemoryUse
from toolkit.sass.regions import Regions
from toolkit.sass.space import Buffer


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Matrix whose lines are recorded as if its rows were `kept_pitch` bytes apart, not `pitch`."""

    address: int
    size_bytes: int
    pitch: int
    kept_pitch: int


@dataclass(frozen=True, kw_only=True)
class BoundLaunch:
    """A program with everything that a launch adds to it."""

    lowered: Lowered
    geometry: Geometry
    banks: Mapping[int, NDArray[np.uint8]]
    buffers: Sequence[Buffer]
    shared_base: int
    shared_bytes: int
    local_bytes: int
    in_order: bool  # blocks one after the other: their atomics then always meet in one order
    cluster: tuple[int, int, int] = (1, 1, 1)  # blocks along each axis that run together
    blocks_meet: bool = False  # a block may wait for what others write
    most_resident: int = 1  # clusters that run at a time where they wait for each other
    at_once: bool = False  # as many run from the beginning
    most_accesses: int = 0  # to note of each worker's blocks; 0: none
    most_steps: int = 0  # to keep of each worker's warps; 0: none
    cuts: bool = False  # streams end with these steps, and so does a block at its limit
    spread: Spread | None = None
    notes_requests: bool = False  # the first of each instruction
    notes_atomics: bool = False  # with these, also that of each atomic operation
    regions: Regions | None = None  # where values come from is followed, with these regions
    notes_work: bool = False  # of each block
    heap_bytes: int = 0  # of malloc; 0: nothing calls it
    use: MemoryUse | None = None  # what executed code did with the memory of the module
    checks_products: bool = False  # and of proxy fences, by the sanitizer
    checked_bytes: int = (
        0  # of a cell of the sanitizer (toolkit.sass.checker); 0: nothing is checked
    )
    registers: int = 0  # of each thread at the start
    textures: NDArray[Any] | None = None  # texture and surface objects (toolkit.sass.textures)
    paces: NDArray[Any] | None = None  # of instructions (`core.PACE`): blocks run in time
    quantum: int = 1  # ticks for which warps then run side by side
    # of each `period` of instructions that a worker executes in time, `window` in its middle
    # are kept
    window: int = 0
    period: int = 0  # 0: all are kept
    tickets: NDArray[Any] | None = None  # numbers that blocks find changed (`core.TICKET`)
    # A warp that polls in vain leaves its loop; otherwise this is a deadlock.
    gives_up: bool = False
    # Beyond all arrays, global reads give zeros and stores are lost; otherwise this is a fault.
    leaves_bounds: bool = False

    @property
    def cluster_blocks(self) -> int:
        return prod(self.cluster)

    @property
    def clusters(self) -> int:
        return self.geometry.blocks // self.cluster_blocks

    def restore(self) -> None:
        """Undo all stores to buffers, unless they are bound in place."""
        for buffer in self.buffers:
            if buffer.shared:
                buffer.shared[1][:] = 0

    def cluster_of(self, block: int) -> int:
        """The number of the cluster, counted like blocks, that a block is in."""
        found, stride = 0, 1
        for extent, of_cluster in zip(self.geometry.grid, self.cluster, strict=True):
            block, at = divmod(block, extent)
            found += stride * (at // of_cluster)
            stride *= extent // of_cluster
        return found
