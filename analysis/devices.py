"""GPUs that this project knows: limits, nominal and measured ceilings, each with its source.

`DEVICES` holds one complete record per model, made of the tables of analysis/device_table.py. For a
GPU that is present, `device_from_driver` asks the driver, and takes from the tables only the facts
that the driver does not report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal

from analysis.argument_types import checked
from analysis.device_table import (
    LIMITS,
    MEASURED,
    MODELS,
    ComputeCapability,
    Fact,
    Facts,
    values_and_sources,
)
from analysis.errors import InputError, UnknownNameError, shortened
from analysis.geometry import WARP_SIZE
from analysis.problem import FLOP_PER_FMA

TensorFormat = Literal["FP16", "TF32"]  # of operands
FIRST_TF32 = (8, 0)  # compute capability

# The clock while tensor cores are busy for a share of the time, relative to that at a low share.
# Fitted on the clocks of 161 launches of validation/timing/tensor_launches.py and
# validation/timing/public_tensor, as Nsight Compute counted them on an H200 (docs/decisions/0195).
RELATIVE_CLOCKS = ((0.0, 1.0), (0.3, 1.0), (0.5, 0.98), (1.0, 0.88))
LEAST_MHZ, MOST_MHZ = 100, 4000  # of a clock that a user gives
GIVEN_CLOCK = "given by the user (--clock)"


@dataclass(frozen=True, kw_only=True)
class MeasuredCeilings:
    """Ceilings that a benchmark reached on such a device, with their sources."""

    source: str
    fp32_flop_per_s: float | None = None
    dram_bytes_per_s: float | None = None
    l2_bytes_per_s: float | None = None
    shared_bytes_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class OwnConstants:
    """Constants of the timing model that were measured on a GPU of the user.

    `file` is the name of the file that has them, `gpu` the name of the GPU. `values` are by the
    names of machine files, such as "l1_latency" and "units.FMA". `lacks` names the constants that
    such a file can have and this one has not.
    """

    file: str
    gpu: str
    values: dict[str, float]
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one SM and of one block, which all devices of a compute capability share.

    Sizes are bytes. `name` stands for whose limits they are in messages: a device's name, or
    "sm_86". `sources` maps each field name to the source of its value.
    """

    name: str
    compute_capability: ComputeCapability
    max_threads_per_block: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    registers_per_sm: int
    max_registers_per_thread: int
    register_allocation_unit: int
    warp_allocation_granularity: int
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    shared_bytes_per_block_optin: int
    reserved_shared_bytes_per_block: int
    shared_allocation_unit: int
    sources: dict[str, str]

    @property
    def max_warps_per_sm(self) -> int:
        return self.max_threads_per_sm // WARP_SIZE

    @property
    def sm_arch(self) -> str:
        """The compiler's name of the architecture: "sm_86"."""
        return f"sm_{_arch_number(self.compute_capability)}"


@dataclass(frozen=True, kw_only=True)
class Device(Limits):
    """One GPU model: its nominal ceilings, its limits, and a source for every field.

    Rates are per second of the whole device, sizes in bytes. `sources` maps each field name to the
    source of its value (except `key`, which is this project's name for the device, and `measured`
    and `constants`, which have their own). `measured` keeps reached ceilings apart from nominal
    ones. `l2_bytes_per_s` is the nominal read bandwidth, None if NVIDIA publishes none.
    `sustained_clock_hz` is the clock that the device holds while it computes matrix products one
    after the other, None if it is not known to differ from the boost clock. `tensor_clock_hz` is
    the clock that it holds while its tensor cores are busy for a small share of the time, but not
    with doubles, None if that was not measured. `tensor_flop_per_s` is the rate of its tensor cores
    with FP16 operands that are not sparse and FP32 sums, None if there are none or it is not known.
    All nominal rates are at the boost clock.
    `driver_names` are the names under which the CUDA driver reports such a GPU. `constants` take
    the place of those of the architecture's machine file in predictions.
    """

    key: str
    chip: str
    architecture: str
    # nominal ceilings
    sm_count: int
    boost_clock_hz: float
    fp32_lanes_per_sm: int
    fp32_flop_per_s: float
    dram_bytes: int
    dram_bytes_per_s: float
    l2_bytes: int
    l2_bytes_per_s: float | None
    shared_bytes_per_clock_per_sm: int
    measured: MeasuredCeilings | None = None
    driver_names: tuple[str, ...] = ()
    sustained_clock_hz: float | None = None
    tensor_clock_hz: float | None = None
    tensor_flop_per_s: float | None = None
    constants: OwnConstants | None = None

    @property
    def held_clock_hz(self) -> float:
        """The clock at which times are predicted, if the tensor cores are idle."""
        return self.sustained_clock_hz or self.boost_clock_hz

    def clock_under_load_hz(self, tensor_share: float) -> float:
        """The clock that the device holds while tensor cores are busy for a share of the time.

        Products of doubles do not count: they leave the clock as it is.
        """
        held = self.held_clock_hz
        if self.tensor_clock_hz is None or not tensor_share:
            return held
        share = min(1.0, tensor_share)
        for (start, first), (end, last) in pairwise(RELATIVE_CLOCKS):
            if share <= end:
                relative = first + (last - first) * (share - start) / (end - start)
                break
        return min(held, relative * self.tensor_clock_hz)

    def tensor_rate(self, operands: TensorFormat) -> float | None:
        """FLOP/s of the tensor cores with operands of a format and FP32 sums, None if unknown."""
        if self.tensor_flop_per_s is None or operands == "FP16":
            return self.tensor_flop_per_s
        # half of FP16's on every architecture that has TF32 (the whitepapers in `sources`)
        return self.tensor_flop_per_s / 2 if self.compute_capability >= FIRST_TF32 else None

    @property
    def shared_bytes_per_s(self) -> float:
        return self.shared_bytes_per_clock_per_sm * self.sm_count * self.boost_clock_hz


def with_clock(device: Device, clock_mhz: float) -> Device:
    """The device, whose SM clock under load is given. Raises InputError for no such clock."""
    if not (isinstance(clock_mhz, int | float) and LEAST_MHZ <= clock_mhz <= MOST_MHZ):
        raise InputError(
            f"a clock of {shortened(str(clock_mhz))} MHz: give the SM clock in MHz, "
            f"from {LEAST_MHZ} to {MOST_MHZ:,}"
        )
    own = {"sustained_clock_hz": GIVEN_CLOCK, "tensor_clock_hz": "not needed: the clock was given"}
    return replace(
        device,
        sustained_clock_hz=1e6 * clock_mhz,
        tensor_clock_hz=None,
        sources={**device.sources, **own},
    )


@dataclass(frozen=True, kw_only=True)
class DriverFacts:
    """Facts that the CUDA driver reports of a GPU (`cuDeviceGetName`, `cuDeviceGetAttribute`, ...).

    Clocks in Hz (the driver counts in kHz), sizes in bytes. `clock_hz` is the driver's peak SM
    clock. The memory's clock and bus width are 0 if a driver does not report them. The last two
    are attributes of newer drivers: None selects the table of compute capabilities.

    Raises InputError if another number is below 1.
    """

    name: str
    compute_capability: ComputeCapability
    sm_count: int
    clock_hz: float
    memory_clock_hz: float
    memory_bus_width_bits: int
    l2_bytes: int
    dram_bytes: int
    max_threads_per_sm: int
    registers_per_sm: int
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    shared_bytes_per_block_optin: int
    max_blocks_per_sm: int | None = None
    reserved_shared_bytes_per_block: int | None = None

    def __post_init__(self) -> None:
        for field in _POSITIVE_DRIVER_FACTS:
            value = getattr(self, field)
            if not value >= 1:
                raise InputError(
                    f"the CUDA driver reports {field} = {value} for {self.name!r}: at least 1 "
                    "was expected; choose a device of the database instead"
                )


_POSITIVE_DRIVER_FACTS = (
    "sm_count",
    "clock_hz",
    "l2_bytes",
    "dram_bytes",
    "max_threads_per_sm",
    "registers_per_sm",
    "shared_bytes_per_sm",
    "shared_bytes_per_block",
    "shared_bytes_per_block_optin",
)


@checked
def find_device(name: str) -> Device:
    """Record of the database for the device `name`.

    The name is a key ("rtx-3090"), the full name or a driver's name of the device, in any case,
    with or without "NVIDIA" in front, with spaces or underscores for hyphens. Raises
    UnknownNameError.
    """
    device = _lookup(name)
    if device is None:
        others = "`python -m toolkit list devices` lists all"
        raise UnknownNameError("device", name, DEVICES, others=others)
    return device


@checked
def limits_of(architecture: str) -> Limits | None:
    """Limits of an architecture such as "sm_90a", by the table of compute capabilities.

    None if the table does not have it.
    """
    plain = _plain_arch(architecture)
    for compute_capability, facts in LIMITS.items():
        if plain == f"sm_{_arch_number(compute_capability)}":
            values, sources = values_and_sources(facts)
            known = {field.name for field in fields(Limits)}
            return Limits(
                name=plain, sources=sources, **{k: v for k, v in values.items() if k in known}
            )
    return None


def most_sms(architecture: str) -> int:
    """Number of SMs of the largest device of an architecture in the database, 0 without one."""
    plain = _plain_arch(architecture)
    return max((one.sm_count for one in DEVICES.values() if one.sm_arch == plain), default=0)


def device_from_driver(facts: DriverFacts) -> Device:
    """Complete record of a GPU that is present, from its driver's facts.

    A GPU of the database keeps its record, but takes the SM count, peak clock and sizes that the
    driver reports if they differ (on factory-overclocked cards they do), and the rates that follow
    from them. The record of any other GPU is built from the driver's values and the table of its
    compute capability, or of the nearest lower one that is known, as its `sources` then say.

    Raises InputError for a GPU outside the database that is older than every table row, or
    whose driver does not report its memory's clock and bus width.
    """
    known = _lookup(facts.name)
    return _as_described(facts) if known is None else _as_reported(known, facts)


def nearest_compilable(
    compute_capability: ComputeCapability, supported: Sequence[int]
) -> tuple[str, str | None]:
    """Architecture to compile for, and a note if it is not the device's own.

    `supported` are the compiler's architectures as numbers (75, 80, ..., 120). The choice is the
    device's own; else the highest one below it; else the lowest: such code cannot run on the
    device, but shows the behaviour of a kernel on its nearest relative. Raises InputError if
    `supported` is empty.
    """
    if not supported:
        raise InputError("the compiler supports no architecture: check its installation")
    own = _arch_number(compute_capability)
    below = [number for number in supported if number <= own]
    chosen = max(below, default=min(supported))
    if chosen == own:
        return f"sm_{own}", None
    return f"sm_{chosen}", (
        f"compiled for sm_{chosen}, because this compiler does not support the device's own "
        f"sm_{own}: registers, instructions and occupancy may differ on the device"
    )


def _plain_arch(architecture: str) -> str:
    """ "sm_90" for "sm_90a": such code has more instructions, but the limits are the same."""
    return architecture.rstrip("af")


def _arch_number(compute_capability: ComputeCapability) -> int:
    major, minor = compute_capability
    return 10 * major + minor


def _lookup(name: str) -> Device | None:
    wanted = _plain(name)
    for device in DEVICES.values():
        if wanted in map(_plain, (device.key, device.name, *device.driver_names)):
            return device
    return None


def _plain(name: str) -> str:
    # Drivers before release 470 left out the "NVIDIA " of "NVIDIA GeForce RTX 3090".
    return re.sub(r"[\s_-]+", "-", name.strip().casefold()).removeprefix("nvidia-")


def _device(key: str, facts: Facts, measured: MeasuredCeilings | None = None) -> Device:
    facts.setdefault("sustained_clock_hz", (None, "not known to differ from the boost clock"))
    facts.setdefault("tensor_clock_hz", (None, "not measured"))
    facts.setdefault("tensor_flop_per_s", (None, "no tensor cores, or a rate that is not known"))
    values, sources = values_and_sources(facts)
    return Device(key=key, measured=measured, sources=sources, **values)


def _nominal_fp32(lanes_per_sm: int, sm_count: int, clock_hz: float) -> float:
    """FLOP/s of one fused multiply-add per lane and clock."""
    return FLOP_PER_FMA * lanes_per_sm * sm_count * clock_hz


# --- facts from the driver ----------------------------------------------------------------


_DRIVER_ATTRIBUTES = {
    "name": "cuDeviceGetName",
    "driver_names": "cuDeviceGetName",
    "compute_capability": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR",
    "sm_count": "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
    "boost_clock_hz": "CU_DEVICE_ATTRIBUTE_CLOCK_RATE",
    "l2_bytes": "CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE",
    "dram_bytes": "cuDeviceTotalMem",
    "max_threads_per_sm": "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR",
    "max_blocks_per_sm": "CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR",
    "registers_per_sm": "CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR",
    "shared_bytes_per_sm": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "shared_bytes_per_block": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK",
    "shared_bytes_per_block_optin": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "reserved_shared_bytes_per_block": "CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK",
}


def _reported(**values: Any) -> Facts:
    """Driver's values as facts, without those that it does not report (None)."""
    return {
        field: (value, f"CUDA driver: {_DRIVER_ATTRIBUTES[field]}")
        for field, value in values.items()
        if value is not None
    }


def _as_reported(device: Device, facts: DriverFacts) -> Device:
    """Record of the database with the values of the driver that differ from it."""
    reported = _reported(
        sm_count=facts.sm_count,
        boost_clock_hz=facts.clock_hz,
        l2_bytes=facts.l2_bytes,
        dram_bytes=facts.dram_bytes,
    )
    changes = {field: fact for field, fact in reported.items() if fact[0] != getattr(device, field)}
    if {"sm_count", "boost_clock_hz"} & changes.keys():
        changes["fp32_flop_per_s"] = _driver_fp32(device.fp32_lanes_per_sm, facts)
    if "boost_clock_hz" in changes and device.l2_bytes_per_s is not None:
        changes["l2_bytes_per_s"] = (
            device.l2_bytes_per_s * facts.clock_hz / device.boost_clock_hz,
            f"{device.sources['l2_bytes_per_s']}; at the peak clock of the CUDA driver",
        )
    values, sources = values_and_sources(changes)
    return replace(device, sources=device.sources | sources, **values)


def _as_described(facts: DriverFacts) -> Device:
    """Record built from the driver's values and the table of compute capabilities."""
    limits = _nearest_limits(facts.compute_capability)
    driver = _reported(
        driver_names=(facts.name,),
        boost_clock_hz=facts.clock_hz,
        **{field: getattr(facts, field) for field in _DRIVER_ATTRIBUTES if hasattr(facts, field)},
    )
    derived: Facts = {
        "chip": ("unknown", "the CUDA driver does not report the chip"),
        "fp32_flop_per_s": _driver_fp32(limits["fp32_lanes_per_sm"][0], facts),
        "dram_bytes_per_s": _driver_dram_bandwidth(facts),
        "l2_bytes_per_s": (None, "the CUDA driver does not report it"),
    }
    return _device(_plain(facts.name), limits | driver | derived)


def _driver_fp32(lanes_per_sm: int, facts: DriverFacts) -> Fact:
    return (
        _nominal_fp32(lanes_per_sm, facts.sm_count, facts.clock_hz),
        "derived: 2 FLOP · FP32 lanes · SMs · clock, SMs and clock of the CUDA driver",
    )


def _driver_dram_bandwidth(facts: DriverFacts) -> Fact:
    """DRAM bandwidth: two transfers per clock of the reported memory clock, over the whole bus."""
    bandwidth = 2 * facts.memory_clock_hz * facts.memory_bus_width_bits / 8
    if not bandwidth > 0:
        raise InputError(
            f"the CUDA driver reports a memory clock of {facts.memory_clock_hz} Hz and a bus of "
            f"{facts.memory_bus_width_bits} bit for {facts.name!r}, which is not in the database: "
            "its DRAM bandwidth is unknown; choose a device of the database instead"
        )
    return bandwidth, (
        "derived: 2 · CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE · "
        "CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH / 8 of the CUDA driver, as in NVIDIA "
        "Technical Blog, How to Query Device Properties and Handle Errors in CUDA C/C++"
    )


def _nearest_limits(compute_capability: ComputeCapability) -> Facts:
    """Row of a compute capability, or of the nearest lower one, which its sources then say."""
    if compute_capability in LIMITS:
        return LIMITS[compute_capability]
    below = [known for known in LIMITS if known < compute_capability]
    if not below:
        raise InputError(
            f"compute capability {_dotted(compute_capability)} is older than "
            f"{_dotted(min(LIMITS))}, the oldest with known limits: use a newer GPU"
        )
    nearest = max(below)
    note = (
        f"assumed as for compute capability {_dotted(nearest)}, the nearest known below "
        f"{_dotted(compute_capability)}"
    )
    return {field: (value, f"{note}; {s}") for field, (value, s) in LIMITS[nearest].items()}


def _dotted(compute_capability: ComputeCapability) -> str:
    major, minor = compute_capability
    return f"{major}.{minor}"


DEVICES: Mapping[str, Device] = MappingProxyType(
    {
        key: _device(key, facts, MeasuredCeilings(**MEASURED[key]) if key in MEASURED else None)
        for key, facts in MODELS.items()
    }
)
