"""Ceilings on the FLOP/s of a launch, from its access counts and the device's nominal rates.

The roofline model of Williams, Waterman and Patterson (CACM 52(4), 2009). Nothing is executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from analysis.access import WAVEFRONT_BYTES, AccessCounts, Pattern
from analysis.argument_types import checked
from analysis.devices import Device
from analysis.errors import InputError
from analysis.intensity import (
    compulsory_bytes,
    intensity_of_accesses,
    intensity_of_compulsory_bytes,
    intensity_of_loads,
)

# From this compute capability on, L1 and shared memory have one data path: Volta Tuning Guide,
# "Unified Shared Memory/L1/Texture Cache".
UNIFIED_L1 = (7, 0)


@checked
def theory(
    counts: AccessCounts,
    patterns: tuple[Pattern, ...],
    device: Device,
    *,
    blocks: int | None = None,
) -> Theory:
    """Intensities (FLOP per byte) and ceilings (FLOP/s) of one launch on `device`.

    `counts` are of the whole launch. `patterns` are its warp-level requests; if there are none,
    the load/store unit sets no ceiling. `blocks` is the number of blocks in the grid: if it is
    below the SM count, the ceilings of FP32 and of the load/store unit are those of the busy SMs
    (None: all SMs are busy). Rates are nominal, at the boost clock. Raises InputError if `blocks`
    < 1, or if the kernel loads nothing from global memory.
    """
    if blocks is not None and blocks < 1:
        raise InputError(f"blocks = {blocks}: give 1 or more")
    busy_sms = min(blocks or device.sm_count, device.sm_count)
    ceilings = _ceilings(counts, patterns, device, busy_sms)
    lowest = max(ceilings, key=lambda ceiling: ceiling.time_s)
    return Theory(
        flop=counts.problem.flop,
        accesses=counts,
        patterns=patterns,
        intensity_loads=intensity_of_loads(counts),
        intensity_accesses=intensity_of_accesses(counts),
        intensity_compulsory=intensity_of_compulsory_bytes(counts),
        uncached=_ceiling(
            "DRAM, uncached",
            counts,
            counts.bytes("global", "load") / device.dram_bytes_per_s,
            "every global load reads DRAM at the nominal bandwidth; cache hits raise this roof",
        ),
        ceilings=ceilings,
        attainable_flop_per_s=lowest.flop_per_s,
        limiter=lowest.name,
        busy_sms=busy_sms,
    )


def _ceilings(
    counts: AccessCounts, patterns: tuple[Pattern, ...], device: Device, busy_sms: int
) -> tuple[Ceiling, ...]:
    sms, of_sms = f"all {busy_sms} SMs", ""
    if busy_sms < device.sm_count:
        sms = f"{busy_sms} of {device.sm_count} SMs"
        of_sms = f" of {busy_sms} SMs" if busy_sms > 1 else " of 1 SM"
    ceilings = [
        *_of_arithmetic(counts, device, busy_sms, sms, of_sms),
        _ceiling(
            "DRAM",
            counts,
            compulsory_bytes(counts) / device.dram_bytes_per_s,
            "every matrix moves once between DRAM and a cold L2, at the nominal bandwidth",
        ),
    ]
    clocks = _load_store_clocks(patterns, device)
    if clocks:
        ceilings.append(
            _ceiling(
                f"load/store unit{of_sms}",
                counts,
                clocks / (busy_sms * device.boost_clock_hz),
                "one clock per wavefront of shared requests, and for global requests one clock per "
                f"word in the fullest bank or per four lines, on {sms} at "
                f"{device.boost_clock_hz / 1e6:,.0f} MHz (a card with a higher boost clock exceeds "
                "it), if every load hits L1 (rules found on an H100 and an H200)",
            )
        )
    return tuple(ceilings)


def _of_arithmetic(
    counts: AccessCounts, device: Device, busy_sms: int, sms: str, of_sms: str
) -> Iterator[Ceiling]:
    """Ceiling of the units that multiply: FP32, or tensor cores if their rate is known."""
    tensor, share = counts.tiling.tensor, busy_sms / device.sm_count
    if tensor is None:
        yield _ceiling(
            f"FP32{of_sms}",
            counts,
            counts.problem.flop / (device.fp32_flop_per_s * share),
            f"2mnk FLOP at the nominal FP32 rate of {sms}",
        )
    elif rate := device.tensor_rate(tensor.format):
        yield _ceiling(
            f"tensor cores{of_sms}",
            counts,
            tensor.products * counts.problem.flop / (rate * share),
            f"{tensor.products} products of 2mnk FLOP each at the nominal {tensor.format} rate of "
            f"{sms}, without sparsity",
        )


def _load_store_clocks(patterns: tuple[Pattern, ...], device: Device) -> float:
    """Estimated clocks that all requests occupy the load/store units, summed over SMs.

    Each request takes as many clocks as that of the first warp, and stores as many as loads
    (`coalescing.global_cycles`, `coalescing.shared_wavefronts`).
    """
    # A wavefront of 128 bytes occupies Turing's data path of 64 bytes for two clocks.
    clocks_per_wavefront = WAVEFRONT_BYTES / device.shared_bytes_per_clock_per_sm
    clocks_of_global = sum(p.requests * p.cycles for p in patterns if p.space == "global")
    clocks_of_shared = clocks_per_wavefront * sum(
        p.requests * p.cycles for p in patterns if p.space == "shared"
    )
    if device.compute_capability < UNIFIED_L1:  # two data paths work in parallel
        return max(clocks_of_global, clocks_of_shared)
    return clocks_of_global + clocks_of_shared


def _ceiling(name: str, counts: AccessCounts, time_s: float, basis: str) -> Ceiling:
    return Ceiling(name=name, flop_per_s=counts.problem.flop / time_s, time_s=time_s, basis=basis)


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """Ceiling on the FLOP/s of a launch from one resource."""

    name: str  #: name of the resource
    flop_per_s: float
    time_s: float  #: time of the launch at this rate
    basis: str  #: the assumptions


@dataclass(frozen=True, kw_only=True)
class Theory:
    """Intensities (FLOP per byte) and ceilings of one launch on one device."""

    flop: int  #: 2mnk
    accesses: AccessCounts  #: as given to `theory`
    patterns: tuple[Pattern, ...]  #: as given to `theory`
    intensity_loads: float  #: of global loads, without cache hits
    intensity_accesses: float  #: of global loads and stores, without cache hits
    intensity_compulsory: float  #: of `intensity.compulsory_bytes`
    #: rate if every global load reads DRAM; a kernel with cache hits can exceed it, so it is not
    #: among the `ceilings`
    uncached: Ceiling
    ceilings: tuple[Ceiling, ...]
    attainable_flop_per_s: float  #: the lowest of the ceilings
    limiter: str  #: name of that ceiling
    busy_sms: int  #: number of SMs that execute at least one block
