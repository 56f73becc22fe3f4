"""Limits of a simulation, and its needs of host memory: checked before anything is executed."""

from __future__ import annotations

from math import prod

from analysis.argument_types import shown
from analysis.errors import InputError
from analysis.geometry import Geometry
from toolkit.execution.representatives import Blocks, Grid
from toolkit.launch.host_resources import shortage
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.machine import UNLIMITED

MOST_WORKERS = 1024
# Host memory for the records of one block, if each block has its own: 46 bytes measured at the peak
# with 2^24 blocks.
BLOCK_BYTES = 48
# Largest number of blocks with a record each. With more, plans and the traffic model take minutes.
MOST_TOLD_APART = 1 << 24
COPIES_OF_VARIABLES = 3  # `__device__` variables, linked and bound
MOST_BLOCKS = 2**32 - 1  # numbers of blocks have 32 bits in the core's sanitizer


def check_limits(blocks: Blocks, max_instructions: int, workers: int | None = None) -> None:
    """Raise InputError for a selection or a limit that is out of range."""
    if blocks not in ("all", "representative") and (isinstance(blocks, str) or blocks < 1):
        raise InputError(
            f"blocks = {shown(blocks)}: give 'all', 'representative' or a number from 1 on"
        )
    for name, value, most in (
        ("max_instructions", max_instructions, UNLIMITED),
        ("workers", workers, MOST_WORKERS),
    ):
        if value is not None and not 1 <= value <= most:
            raise InputError(f"{name} = {shown(value)}: give 1 to {most:,}")


def selected(blocks: Blocks, grid: Grid) -> Blocks:
    """`blocks`, or "all" for a number that covers the whole grid."""
    return "all" if not isinstance(blocks, str) and blocks >= prod(grid) else blocks


def check_blocks(kernel: str, blocks: int) -> None:
    """Raise InputError if host memory has no room for the records of each block."""
    if lack := shortage(BLOCK_BYTES * blocks):
        raise InputError(
            f"{kernel}: records of {blocks:,} blocks take {lack}: launch fewer blocks, or "
            "execute a number of them, such as 100 (--blocks 100)"
        )
    if blocks > MOST_TOLD_APART:
        raise InputError(
            f"{kernel}: {blocks:,} blocks exceed the limit of {MOST_TOLD_APART:,}: "
            "launch fewer blocks, or execute a number of them, such as 100 (--blocks 100)"
        )


def check_room(cubin: Kernel, geometry: Geometry) -> None:
    """Raise InputError for too many blocks, or for variables that exceed host memory."""
    if geometry.blocks > MOST_BLOCKS:
        raise InputError(
            f"{cubin.name}: a grid of {geometry.blocks:,} blocks: the simulator takes at most "
            f"{MOST_BLOCKS:,}: launch fewer"
        )
    if lack := shortage(COPIES_OF_VARIABLES * sum(x.size for x in cubin.variables)):
        raise InputError(f"{cubin.name}: its variables take {lack}: make them smaller")


def check_buffers(kernel: str, bound: BoundLaunch) -> None:
    """Raise InputError if host memory has no room for copies of all buffers."""
    if lack := shortage(sum(buffer.bytes for buffer in bound.buffers)):
        raise InputError(f"{kernel}: copies of its buffers take {lack}: pass smaller arrays")
