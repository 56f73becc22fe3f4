"""Hierarchical roofline: bytes that a launch moves at each memory level, and the roof of each.

FLOP per byte differ from level to level, and each level has a roof of its own; the lowest bounds
the launch. The bytes of a level are those to which its bandwidth applies:

- shared  wavefronts of loads and stores, 128 bytes each: the width of the data path, for any
          number of lanes. A bank conflict costs another wavefront; a broadcast delivers more bytes
          to lanes than it moves.
- L1      32-byte sectors of global and local loads and stores. L1 and shared memory are one data
          path since Volta, but have separate roofs here. The ceiling of the load/store unit in
          `analysis.theory` counts both.
- L2      sectors that SMs read, and those written. Reads exclude transfers between the
          partitions of L2, because an SM does not wait twice and reached bandwidths are those of
          SMs. Writes include them, because no counter separates them.
- DRAM    bytes read and written.

Source: Yang, Kurth, Williams, "Hierarchical Roofline analysis for GPUs: Accelerating performance
optimization for the NERSC-9 Perlmutter system", Concurrency and Computation 32(20), 2020.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType

from analysis.comparison.agreement import closed_forms
from analysis.devices import Device
from analysis.records.counters import ALL_COUNTERS
from analysis.records.metrics import (
    DRAM_TRAFFIC,
    L1_SECTORS,
    L2_TRAFFIC,
    SHARED_WAVEFRONTS,
    total,
)
from analysis.records.profile import Grade, Record
from analysis.roofline import Level, LevelName, roofline
from analysis.timing.predicted import Resource


@dataclass(frozen=True, kw_only=True)
class Movement:
    """Movement at a level: the counters to sum, all of one unit."""

    counters: tuple[str, ...]

    @property
    def bytes_per_count(self) -> int:
        return ALL_COUNTERS[self.counters[0]].unit.size_bytes


MOVEMENTS: Mapping[LevelName, Movement] = MappingProxyType(
    {
        LevelName.SHARED: Movement(counters=SHARED_WAVEFRONTS),
        LevelName.L1: Movement(counters=tuple(L1_SECTORS.values())),
        LevelName.L2: Movement(counters=L2_TRAFFIC),
        LevelName.DRAM: Movement(counters=DRAM_TRAFFIC),
    }
)


@dataclass(frozen=True, kw_only=True)
class LevelBound:
    """Bytes that a launch moves at one level, and the FLOP/s that they allow.

    `flop_per_byte` is None where nothing moves: such a level bounds nothing. `nominal_flop_per_s`
    and `reached_flop_per_s` are the level's roofs at that intensity, below the lid of FP32 or
    above it; None where no such bandwidth is known.
    """

    level: LevelName
    moved_bytes: int
    flop_per_byte: float | None
    nominal_flop_per_s: float | None
    reached_flop_per_s: float | None

    @property
    def flop_per_s(self) -> float | None:
        """The nominal roof, or else the reached one."""
        return self.nominal_flop_per_s or self.reached_flop_per_s


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """Bounds of a launch at every level that one grade counted, the level nearest the SM first.

    `attainable_flop_per_s`: the lowest roof of all levels and of the ceilings of theory (FP32 if
    there are none). `limiter`: the name of that roof. Roofs of resources that each SM has count
    only SMs with a block.
    """

    grade: Grade
    levels: tuple[LevelBound, ...]
    attainable_flop_per_s: float
    limiter: str

    @property
    def limiting_level(self) -> LevelName | None:
        """The level of the lowest roof, None where no roof is known."""
        return min(_roofs(self.levels), key=itemgetter(0), default=(0.0, None))[1]

    def level(self, name: LevelName) -> LevelBound | None:
        """One level, None if it was not counted."""
        return next((one for one in self.levels if one.level == name), None)


def predicted_hierarchy(record: Record, device: Device) -> Hierarchy | None:
    """Hierarchy from simulated counters, or else from closed forms (L1 and shared memory only)."""
    if record.simulated:
        return _hierarchy(record, device, record.simulated.counters, Grade.SIMULATED)
    if record.theory:
        return _hierarchy(record, device, closed_forms(record.theory), Grade.THEORY)
    return None


def measured_hierarchy(record: Record, device: Device) -> Hierarchy | None:
    """Hierarchy from hardware counters, None if none was counted."""
    if record.counted is None:
        return None
    return _hierarchy(record, device, record.counted.counters, Grade.MEASURED)


def moved_bytes(counters: Mapping[str, int]) -> dict[LevelName, int]:
    """Bytes at every level with complete counters.

    Local memory counts as unused if it was not counted: closed forms have none.
    """
    found: dict[LevelName, int] = {}
    for level, movement in MOVEMENTS.items():
        if all(name in counters or "_local_" in name for name in movement.counters):
            found[level] = movement.bytes_per_count * total(counters, *movement.counters)
    return found


def _hierarchy(
    record: Record, device: Device, counters: Mapping[str, int], grade: Grade
) -> Hierarchy | None:
    busy = record.theory.busy_sms / device.sm_count if record.theory else 1.0
    roofs = {level.name: level for level in roofline(device).levels}
    levels = tuple(
        _bound(record.shape.flop, level, moved, roofs.get(level), busy)
        for level, moved in moved_bytes(counters).items()
    )
    if not levels:
        return None
    limits = [_of_theory(record, device), *_roofs(levels)]
    rate, limiter = min(limits, key=itemgetter(0))
    return Hierarchy(grade=grade, levels=levels, attainable_flop_per_s=rate, limiter=limiter)


def _of_theory(record: Record, device: Device) -> tuple[float, str]:
    """Roof of the closed forms, or else the FP32 rate of the device."""
    theory = record.theory
    if theory is None:
        return device.fp32_flop_per_s, Resource.FP32
    return theory.attainable_flop_per_s, theory.limiter


def _roofs(levels: tuple[LevelBound, ...]) -> list[tuple[float, LevelName]]:
    return [(one.flop_per_s, one.level) for one in levels if one.flop_per_s is not None]


def _bound(flop: int, name: LevelName, moved: int, roof: Level | None, busy: float) -> LevelBound:
    # each SM has these for itself
    share = busy if name in (LevelName.SHARED, LevelName.L1) else 1.0

    def at(bandwidth: float | None) -> float | None:
        return share * bandwidth * flop / moved if bandwidth and moved else None

    return LevelBound(
        level=name,
        moved_bytes=moved,
        flop_per_byte=flop / moved if moved else None,
        nominal_flop_per_s=at(roof.bytes_per_s if roof else None),
        reached_flop_per_s=at(roof.measured_bytes_per_s if roof else None),
    )
