"""Theoretical occupancy: number of blocks of a kernel that one SM can hold, and its limiters.

The rules are those of NVIDIA's `cuda_occupancy.h` (CUDA Toolkit 13.0), and the same as those of
the driver's cuOccupancyMaxActiveBlocksPerMultiprocessor, for compute capability 7.0 and
later with the largest shared-memory carve-out:

- registers are allocated to whole warps, rounded up to the allocation unit, from one of the SM's
  partitions: a warp never spans two;
- shared memory is allocated to whole blocks: their request plus the driver's reservation,
  rounded up to the allocation unit.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.argument_types import checked
from analysis.devices import Device, Limits
from analysis.errors import InputError
from analysis.geometry import WARP_SIZE, ceil_div
from analysis.vocabulary import Vocabulary


class Limiter(Vocabulary):
    """Resource that keeps an SM from holding another block."""

    REGISTERS = "registers"
    SHARED_MEMORY = "shared memory"
    THREADS = "threads"
    BLOCKS = "blocks"


@checked
def occupancy(
    device: Limits,
    *,
    threads_per_block: int,
    registers_per_thread: int,
    shared_bytes_per_block: int,
) -> Occupancy:
    """Blocks that one SM of `device` can hold at the same time, and every binding limit.

    Instead of a device, the limits of an architecture will do (`analysis.devices.limits_of`).

    `shared_bytes_per_block` is static plus dynamic. Source: the head of this file. Raises
    InputError if not even one block can be resident, because such a launch fails.
    """
    limits = block_limits(
        device,
        threads_per_block=threads_per_block,
        registers_per_thread=registers_per_thread,
        shared_bytes_per_block=shared_bytes_per_block,
    )
    blocks = min(limits.values())
    return Occupancy(
        blocks_per_sm=blocks,
        warps_per_sm=blocks * ceil_div(threads_per_block, WARP_SIZE),
        max_warps_per_sm=device.max_warps_per_sm,
        limiters=tuple(name for name, limit in limits.items() if limit == blocks),
    )


@checked
def block_limits(
    device: Limits,
    *,
    threads_per_block: int,
    registers_per_thread: int,
    shared_bytes_per_block: int,
) -> dict[Limiter, int]:
    """Blocks per SM that each resource allows, without resources that the kernel does not use.

    Arguments and errors are those of `occupancy`.
    """
    _check_block(device, threads_per_block, registers_per_thread, shared_bytes_per_block)
    warps_per_block = ceil_div(threads_per_block, WARP_SIZE)
    limits: dict[Limiter, int] = {
        Limiter.THREADS: device.max_warps_per_sm // warps_per_block,
        Limiter.BLOCKS: device.max_blocks_per_sm,
    }
    if registers_per_thread:
        warps = _warps_by_registers(device, registers_per_thread)
        limits[Limiter.REGISTERS] = warps // warps_per_block
    shared_bytes = _allocated_shared_bytes(device, shared_bytes_per_block)
    if shared_bytes:
        limits[Limiter.SHARED_MEMORY] = device.shared_bytes_per_sm // shared_bytes
    return limits


@checked
def waves(geometry_blocks: int, device: Device, occupancy: Occupancy) -> float:
    """Number of waves: times that blocks fill the whole device. The fraction is the tail.

    Raises InputError for fewer than one block.
    """
    if geometry_blocks < 1:
        raise InputError(f"geometry_blocks = {geometry_blocks}: give 1 or more")
    return geometry_blocks / (occupancy.blocks_per_sm * device.sm_count)


def _registers_per_warp(device: Limits, registers_per_thread: int) -> int:
    unit = device.register_allocation_unit
    return ceil_div(registers_per_thread * WARP_SIZE, unit) * unit


def _warps_by_registers(device: Limits, registers_per_thread: int) -> int:
    # the granularity is the number of partitions, which have equal shares of the registers
    partitions = device.warp_allocation_granularity
    registers_per_partition = device.registers_per_sm // partitions
    warps_per_partition = registers_per_partition // _registers_per_warp(
        device, registers_per_thread
    )
    return warps_per_partition * partitions


def _allocated_shared_bytes(device: Limits, shared_bytes_per_block: int) -> int:
    unit = device.shared_allocation_unit
    return ceil_div(shared_bytes_per_block + device.reserved_shared_bytes_per_block, unit) * unit


def _check_block(
    device: Limits, threads_per_block: int, registers_per_thread: int, shared_bytes_per_block: int
) -> None:
    """Raise InputError if not even one block can be resident."""
    if threads_per_block < 1 or registers_per_thread < 0 or shared_bytes_per_block < 0:
        raise InputError(
            f"block of {threads_per_block} threads, {registers_per_thread} registers per thread "
            f"and {shared_bytes_per_block} shared bytes: give at least 1, 0 and 0"
        )
    if threads_per_block > device.max_threads_per_block:
        raise InputError(
            f"block of {threads_per_block} threads exceeds {device.max_threads_per_block}, the "
            f"most that {device.name} takes: launch smaller blocks"
        )
    if registers_per_thread > device.max_registers_per_thread:
        raise InputError(
            f"{registers_per_thread} registers per thread exceed "
            f"{device.max_registers_per_thread}, the most that {device.name} addresses: "
            "compile with a lower --maxrregcount"
        )
    if shared_bytes_per_block > device.shared_bytes_per_block_optin:
        raise InputError(
            f"{shared_bytes_per_block} shared bytes per block exceed "
            f"{device.shared_bytes_per_block_optin}, the most that {device.name} gives one "
            "block: use smaller tiles"
        )
    # The launch check assumes that a block's warps spread evenly over all partitions.
    granularity = device.warp_allocation_granularity
    warps = ceil_div(ceil_div(threads_per_block, WARP_SIZE), granularity) * granularity
    registers = warps * _registers_per_warp(device, registers_per_thread)
    if registers > device.registers_per_sm:
        raise InputError(
            f"block of {threads_per_block} threads with {registers_per_thread} registers each "
            f"takes {registers}, more than the {device.registers_per_sm} of one SM of "
            f"{device.name}: launch smaller blocks or compile with __launch_bounds__"
        )


@dataclass(frozen=True, kw_only=True)
class Occupancy:
    """Theoretical occupancy: blocks of a kernel that one SM can hold at the same time."""

    blocks_per_sm: int
    warps_per_sm: int
    max_warps_per_sm: int
    limiters: tuple[Limiter, ...]

    @property
    def fraction(self) -> float:
        return self.warps_per_sm / self.max_warps_per_sm


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Resources that the compiler allocates for a kernel, per thread or per block.

    `architecture` is the one it was compiled for ("sm_86"); `note` says so if it is not the
    device's own.
    """

    architecture: str
    compiler: str
    registers_per_thread: int
    static_shared_bytes: int
    local_bytes: int
    note: str | None = None
