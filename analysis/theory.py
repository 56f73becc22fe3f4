"""The theory grade of a launch: closed forms and ceilings, without executing anything."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.access import WAVEFRONT_BYTES, AccessCounts, Pattern
from analysis.devices import Device
from analysis.intensity import (
    compulsory_bytes,
    intensity_of_accesses,
    intensity_of_compulsory_bytes,
    intensity_of_loads,
)

UNIFIED_L1 = (7, 0)  # Volta Tuning Guide, "Unified Shared Memory/L1/Texture Cache"


def theory(
    counts: AccessCounts,
    patterns: tuple[Pattern, ...],
    device: Device,
    *,
    blocks: int | None = None,
) -> Theory:
    """Closed forms of one launch on `device`, and its lowest roof.

    `counts` are of the whole launch; `patterns` describe its warp-level requests, and may be
    empty: then the load/store unit is no ceiling. `blocks` is the size of the grid: fewer blocks
    than SMs leave SMs idle, which lowers the roofs of resources that each SM has (None: all SMs
    work). Rates are nominal.
    """
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
            "every global load goes to DRAM, at the nominal bandwidth; caches lift this roof",
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
        _ceiling(
            f"FP32{of_sms}",
            counts,
            counts.problem.flop / (device.fp32_flop_per_s * busy_sms / device.sm_count),
            f"2mnk FLOP at the nominal FP32 rate of {sms}",
        ),
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
                "wavefronts of shared requests, and of global ones the words in one bank or a "
                f"quarter of the lines, one per clock, on {sms} at "
                f"{device.boost_clock_hz / 1e6:,.0f} MHz (a card that boosts higher runs past "
                "it), every load hitting L1 (rules found on an H100 and an H200)",
            )
        )
    return tuple(ceilings)


def _load_store_clocks(patterns: tuple[Pattern, ...], device: Device) -> float:
    """Lower bound on the clocks that all requests occupy the load/store units of all SMs."""
    # Turing's data path is 64 bytes wide, and a wavefront takes it for two clocks.
    clocks_per_wavefront = WAVEFRONT_BYTES / device.shared_bytes_per_clock_per_sm
    clocks_of_global = sum(p.requests * p.cycles for p in patterns if p.space == "global")
    clocks_of_shared = clocks_per_wavefront * sum(
        p.requests * p.cycles for p in patterns if p.space == "shared"
    )
    if device.compute_capability < UNIFIED_L1:  # two data paths that work side by side
        return max(clocks_of_global, clocks_of_shared)
    return clocks_of_global + clocks_of_shared


def _ceiling(name: str, counts: AccessCounts, time_s: float, basis: str) -> Ceiling:
    return Ceiling(name=name, flop_per_s=counts.problem.flop / time_s, time_s=time_s, basis=basis)


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """One roof of a launch: at most `flop_per_s`, because of `name`."""

    name: str
    flop_per_s: float
    time_s: float
    basis: str


@dataclass(frozen=True, kw_only=True)
class Theory:
    """Closed forms of one launch on one device.

    `intensity_*` are FLOP per byte: `_loads` counts the global loads as written (the source
    texts' figure), `_accesses` adds the stores, `_compulsory` moves every matrix once.
    `ceilings` are roofs that bound the launch; `attainable_flop_per_s` is the least of them and
    `limiter` its name; `busy_sms` of the device's SMs get a block at all. `uncached` is the roof
    if every global load went to DRAM: the source texts' bandwidth bound, which caches lift, and
    therefore not among `ceilings`.
    """

    flop: int
    accesses: AccessCounts
    patterns: tuple[Pattern, ...]
    intensity_loads: float
    intensity_accesses: float
    intensity_compulsory: float
    uncached: Ceiling
    ceilings: tuple[Ceiling, ...]
    attainable_flop_per_s: float
    limiter: str
    busy_sms: int
