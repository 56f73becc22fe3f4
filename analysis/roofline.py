"""Roofline: attainable FLOP/s, the minimum of the compute roof and of each level's bandwidth roof.

Source: Williams, Waterman and Patterson, "Roofline: An Insightful Visual Performance Model for
Multicore Architectures", CACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from analysis.access import Tiling
from analysis.argument_types import checked
from analysis.devices import Device, MeasuredCeilings, TensorFormat
from analysis.errors import InputError
from analysis.vocabulary import Vocabulary


class LevelName(Vocabulary):
    """A memory level, the nearest to the SM first."""

    SHARED = "shared"
    L1 = "L1"
    L2 = "L2"
    DRAM = "DRAM"


@dataclass(frozen=True, kw_only=True)
class Level:
    """Bandwidth of one memory level in bytes per second, nominal and reached; None if unknown."""

    name: LevelName
    bytes_per_s: float | None
    measured_bytes_per_s: float | None


@dataclass(frozen=True, kw_only=True)
class Roofline:
    """Roofs of one device: FP32, and the memory levels with a known rate."""

    flop_per_s: float
    measured_flop_per_s: float | None
    levels: tuple[Level, ...]


@dataclass(frozen=True, kw_only=True)
class TensorRoof:
    """Rate of float32 products that tensor cores make of several products of shorter parts."""

    format: TensorFormat  #: of the parts
    products: int  #: for each product of floats
    flop_per_s: float  #: of the products of floats: the nominal rate over `products`

    @property
    def name(self) -> str:
        """'1/3 TF32 peak': a product of floats takes three of TF32."""
        return f"1/{self.products} {self.format} peak"


def tensor_roofs(tilings: Iterable[Tiling], device: Device) -> tuple[TensorRoof, ...]:
    """Roofs of the tilings that multiply on tensor cores, each once, where the rate is known."""
    used = dict.fromkeys(
        (one.tensor.format, one.tensor.products) for one in tilings if one.tensor is not None
    )
    return tuple(
        TensorRoof(format=parts, products=products, flop_per_s=rate / products)
        for parts, products in used
        if (rate := device.tensor_rate(parts)) is not None
    )


@checked
def bandwidth_ceiling(intensity: float, bandwidth_bytes_per_s: float) -> float:
    """FLOP/s that a bandwidth allows at `intensity` FLOP per byte.

    Raises InputError for a negative intensity, and for a bandwidth that is not above 0.
    """
    if intensity < 0:
        raise InputError(f"intensity = {intensity}: give 0 or more")
    _check_rates(bandwidth_bytes_per_s=bandwidth_bytes_per_s)
    return intensity * bandwidth_bytes_per_s


@checked
def ridge_point(peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> float:
    """Intensity in FLOP per byte at which the bandwidth's roof meets the peak.

    Raises InputError for a rate that is not above 0.
    """
    _check_rates(peak_flop_per_s=peak_flop_per_s, bandwidth_bytes_per_s=bandwidth_bytes_per_s)
    return peak_flop_per_s / bandwidth_bytes_per_s


@checked
def attainable(peak_flop_per_s: float, bandwidth_bytes_per_s: float, intensity: float) -> float:
    """FLOP/s under both roofs at `intensity` FLOP per byte.

    Raises InputError as `bandwidth_ceiling` and `ridge_point`.
    """
    _check_rates(peak_flop_per_s=peak_flop_per_s)
    return min(peak_flop_per_s, bandwidth_ceiling(intensity, bandwidth_bytes_per_s))


@checked
def share_of_peak(flop_per_s: float, device: Device) -> float:
    """`flop_per_s` as a fraction of the device's nominal FP32 rate.

    Raises InputError for a negative rate.
    """
    if flop_per_s < 0:
        raise InputError(f"flop_per_s = {flop_per_s}: give 0 or more")
    return flop_per_s / device.fp32_flop_per_s


@checked
def roofline(device: Device) -> Roofline:
    """Roofs of `device`, the fastest level first; levels without a known rate are left out."""
    measured = device.measured or MeasuredCeilings(source="none")
    shared = device.shared_bytes_per_s, measured.shared_bytes_per_s
    # L1 and shared memory are one data path since Volta (Volta Tuning Guide, section "Unified
    # Shared Memory/L1/Texture Cache"); the rate of a separate L1 is not published
    l1 = shared if device.compute_capability >= (7, 0) else (None, None)
    levels = (
        _level(LevelName.SHARED, *shared),
        _level(LevelName.L1, *l1),
        _level(LevelName.L2, device.l2_bytes_per_s, measured.l2_bytes_per_s),
        _level(LevelName.DRAM, device.dram_bytes_per_s, measured.dram_bytes_per_s),
    )
    return Roofline(
        flop_per_s=device.fp32_flop_per_s,
        measured_flop_per_s=measured.fp32_flop_per_s,
        levels=tuple(level for level in levels if level.bytes_per_s or level.measured_bytes_per_s),
    )


def _check_rates(**rates: float) -> None:
    for name, rate in rates.items():
        if rate <= 0:
            raise InputError(f"{name} = {rate}: give more than 0")


def _level(name: LevelName, nominal: float | None, measured: float | None) -> Level:
    return Level(name=name, bytes_per_s=nominal, measured_bytes_per_s=measured)
