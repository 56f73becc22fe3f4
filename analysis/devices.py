"""The GPUs that this project knows: limits, nominal and measured ceilings, each with its source.

`DEVICES` holds one complete record per model. A fact is written once, as `(value, source)`; what
a whole compute capability shares stands in `_LIMITS` and is copied into every record. A GPU that
is present is described by its driver: `device_from_driver` takes from the driver what it knows
and from here only the rest.

Sizes are bytes, and the "GB" of a datasheet's memory size are GiB (a driver reports a little
less: it keeps some for error correction and itself). Bandwidths of datasheets are powers of ten.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from analysis.errors import InputError, UnknownNameError
from analysis.geometry import WARP_SIZE
from analysis.problem import FLOP_PER_FMA

KIB, MIB, GIB = 2**10, 2**20, 2**30

ComputeCapability = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class MeasuredCeilings:
    """Ceilings that a benchmark reached on such a device, with where they come from."""

    source: str
    fp32_flop_per_s: float | None = None
    dram_bytes_per_s: float | None = None
    l2_bytes_per_s: float | None = None
    shared_bytes_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Device:
    """One GPU model: its nominal ceilings, its limits, and a source for every field.

    Rates are per second of the whole device, sizes in bytes. `sources` maps each field name to
    where its value comes from (but `key`, which is this project's name for the device, and
    `measured`, which carries its own). `measured` keeps reached ceilings apart from nominal ones.
    `l2_bytes_per_s` is the nominal read bandwidth, None where NVIDIA publishes none.
    `sustained_clock_hz` is the clock that it holds while it computes products of matrices, one
    after the other, None where that is not known to be another than the boost clock, at which all
    nominal rates are.
    `driver_names` are the names under which the CUDA driver reports such a GPU.
    """

    key: str
    name: str
    chip: str
    architecture: str
    compute_capability: ComputeCapability
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
    # limits of one SM and of one block
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
    measured: MeasuredCeilings | None = None
    driver_names: tuple[str, ...] = ()
    sustained_clock_hz: float | None = None

    @property
    def held_clock_hz(self) -> float:
        """The clock at which times are predicted."""
        return self.sustained_clock_hz or self.boost_clock_hz

    @property
    def shared_bytes_per_s(self) -> float:
        return self.shared_bytes_per_clock_per_sm * self.sm_count * self.boost_clock_hz

    @property
    def max_warps_per_sm(self) -> int:
        return self.max_threads_per_sm // WARP_SIZE

    @property
    def sm_arch(self) -> str:
        """The compiler's name of the architecture: "sm_86"."""
        return f"sm_{_arch_number(self.compute_capability)}"


@dataclass(frozen=True, kw_only=True)
class DriverFacts:
    """What the CUDA driver says of a GPU (`cuDeviceGetName`, `cuDeviceGetAttribute`, ...).

    Clocks in Hz (the driver counts in kHz), sizes in bytes. `clock_hz` is the driver's peak SM
    clock. The memory's clock and bus width are 0 where a driver does not tell them. The last two
    are attributes of newer drivers: None falls back to the table of compute capabilities.

    Raises InputError where another number is below 1.
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


def find_device(name: str) -> Device:
    """The record of the database that is called `name`.

    Takes a key ("rtx-3090"), the full name or a driver's name of the device, in any case, with
    or without "NVIDIA" in front, spaces and underscores for hyphens. Raises UnknownNameError.
    """
    device = _lookup(name)
    if device is None:
        raise UnknownNameError("device", name, DEVICES)
    return device


def device_from_driver(facts: DriverFacts) -> Device:
    """The complete record of a GPU that is present, as its driver describes it.

    A GPU of the database keeps its record, with the SM count, peak clock and sizes that the
    driver reports where they differ (factory-overclocked cards do), and the rates that follow
    from them. Any other is built from the driver's values and the table of its compute
    capability, or of the nearest lower one that is known, as its `sources` then say.

    Raises InputError for a GPU outside the database that is older than every table row, or
    whose driver does not tell its memory's clock and bus width.
    """
    known = _lookup(facts.name)
    return _as_described(facts) if known is None else _as_reported(known, facts)


def nearest_compilable(
    compute_capability: ComputeCapability, supported: Sequence[int]
) -> tuple[str, str | None]:
    """The architecture to compile for, and a note where it is not the device's own.

    `supported` are the compiler's architectures as numbers (75, 80, ..., 120). The choice is the
    device's own; else the highest one below it; else the lowest: such code cannot run on the
    device, but shows what a kernel would do on its nearest relative. Raises InputError where
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


# A value and where it comes from. The value has the type of the field that it is for.
_Fact = tuple[Any, str]


def _device(key: str, facts: dict[str, _Fact], measured: MeasuredCeilings | None = None) -> Device:
    facts.setdefault("sustained_clock_hz", (None, "not known to differ from the boost clock"))
    values = {field: value for field, (value, _) in facts.items()}
    sources = {field: source for field, (_, source) in facts.items()}
    return Device(key=key, measured=measured, sources=sources, **values)


def _nominal_fp32(lanes_per_sm: int, sm_count: int, clock_hz: float) -> float:
    """FLOP/s of one fused multiply-add per lane and clock."""
    return FLOP_PER_FMA * lanes_per_sm * sm_count * clock_hz


# --- what the driver says -----------------------------------------------------------------


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


def _reported(**values: Any) -> dict[str, _Fact]:
    """The driver's values as facts, less those that it does not tell (None)."""
    return {
        field: (value, f"CUDA driver: {_DRIVER_ATTRIBUTES[field]}")
        for field, value in values.items()
        if value is not None
    }


def _as_reported(device: Device, facts: DriverFacts) -> Device:
    """A record of the database with what the driver reports otherwise."""
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
    return replace(
        device,
        sources=device.sources | {field: source for field, (_, source) in changes.items()},
        **{field: value for field, (value, _) in changes.items()},
    )


def _as_described(facts: DriverFacts) -> Device:
    """A record built from the driver's values and the table of compute capabilities."""
    limits = _nearest_limits(facts.compute_capability)
    driver = _reported(
        driver_names=(facts.name,),
        boost_clock_hz=facts.clock_hz,
        **{field: getattr(facts, field) for field in _DRIVER_ATTRIBUTES if hasattr(facts, field)},
    )
    derived: dict[str, _Fact] = {
        "chip": ("unknown", "the CUDA driver does not report the chip"),
        "fp32_flop_per_s": _driver_fp32(limits["fp32_lanes_per_sm"][0], facts),
        "dram_bytes_per_s": _driver_dram_bandwidth(facts),
        "l2_bytes_per_s": (None, "the CUDA driver does not report it"),
    }
    return _device(_plain(facts.name), limits | driver | derived)


def _driver_fp32(lanes_per_sm: int, facts: DriverFacts) -> _Fact:
    return (
        _nominal_fp32(lanes_per_sm, facts.sm_count, facts.clock_hz),
        "derived: 2 FLOP · FP32 lanes · SMs · clock, SMs and clock of the CUDA driver",
    )


def _driver_dram_bandwidth(facts: DriverFacts) -> _Fact:
    """Two transfers per clock of the reported memory clock, over the whole bus."""
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


def _nearest_limits(compute_capability: ComputeCapability) -> dict[str, _Fact]:
    """The table's row for a compute capability, or the nearest lower one, said in the sources."""
    if compute_capability in _LIMITS:
        return _LIMITS[compute_capability]
    below = [known for known in _LIMITS if known < compute_capability]
    if not below:
        raise InputError(
            f"compute capability {_dotted(compute_capability)} is older than "
            f"{_dotted(min(_LIMITS))}, the oldest with known limits: use a newer GPU"
        )
    nearest = max(below)
    note = (
        f"assumed as for compute capability {_dotted(nearest)}, the nearest known below "
        f"{_dotted(compute_capability)}"
    )
    return {field: (value, f"{note}; {s}") for field, (value, s) in _LIMITS[nearest].items()}


def _dotted(compute_capability: ComputeCapability) -> str:
    major, minor = compute_capability
    return f"{major}.{minor}"


# --- limits of a compute capability -------------------------------------------------------


_GUIDE = "CUDA C++ Programming Guide"
_CAPABILITY_PAGE = "NVIDIA, CUDA GPU Compute Capability"
_SPECIFICATIONS = f"{_GUIDE}, Technical Specifications per Compute Capability"
_LANES = (
    f"{_GUIDE}, Throughput of Native Arithmetic Instructions: 32-bit floating-point multiply-add "
    "results per clock cycle per SM"
)
_BANKS = f"{_GUIDE}, Shared Memory: 32 banks of 32 bits per clock cycle"
_OCCUPANCY_HEADER = "CUDA Toolkit 13.0 occupancy calculator, cuda_occupancy.h"


def _limits(
    compute_capability: ComputeCapability,
    architecture: str,
    *,
    lanes: int,
    threads: int,
    blocks: int,
    sm_kib: int,
    optin_kib: int,
    shared_bytes_per_clock: _Fact = (128, _BANKS),
) -> dict[str, _Fact]:
    """What every device of one compute capability has in common, per SM, block or thread."""
    ampere_or_newer = compute_capability >= (8, 0)
    return {
        "compute_capability": (compute_capability, _CAPABILITY_PAGE),
        "architecture": (architecture, "NVIDIA CUDA Compiler Driver NVCC, GPU Feature List"),
        "fp32_lanes_per_sm": (lanes, _LANES),
        "shared_bytes_per_clock_per_sm": shared_bytes_per_clock,
        "max_threads_per_block": (1024, _SPECIFICATIONS),
        "max_threads_per_sm": (threads, _SPECIFICATIONS),
        "max_blocks_per_sm": (blocks, _SPECIFICATIONS),
        "registers_per_sm": (64 * KIB, _SPECIFICATIONS),
        "max_registers_per_thread": (255, _SPECIFICATIONS),
        "register_allocation_unit": (
            256,
            f"{_OCCUPANCY_HEADER}: cudaOccRegAllocationGranularity, registers per warp",
        ),
        "warp_allocation_granularity": (
            4,
            f"{_OCCUPANCY_HEADER}: cudaOccSubPartitionsPerMultiprocessor",
        ),
        "shared_bytes_per_sm": (sm_kib * KIB, _SPECIFICATIONS),
        "shared_bytes_per_block": (
            48 * KIB,
            f"{_SPECIFICATIONS}: what a block gets without opting in to more",
        ),
        "shared_bytes_per_block_optin": (optin_kib * KIB, _SPECIFICATIONS),
        "reserved_shared_bytes_per_block": (
            1 * KIB if ampere_or_newer else 0,
            f"{_OCCUPANCY_HEADER}: the driver reserves 1 KB per block from 8.0 on "
            "(NVIDIA Ampere GPU Architecture Tuning Guide, Shared Memory)",
        ),
        "shared_allocation_unit": (
            128 if ampere_or_newer else 256,
            f"{_OCCUPANCY_HEADER}: cudaOccSMemAllocationGranularity",
        ),
    }


_ROWS = (
    _limits((6, 1), "Pascal", lanes=128, threads=2048, blocks=32, sm_kib=96, optin_kib=48),
    _limits((7, 0), "Volta", lanes=64, threads=2048, blocks=32, sm_kib=96, optin_kib=96),
    _limits(
        (7, 5),
        "Turing",
        lanes=64,
        threads=1024,
        blocks=16,
        sm_kib=64,
        optin_kib=64,
        shared_bytes_per_clock=(64, "NVIDIA GA102 whitepaper: 128 bytes per clock, 64 on Turing"),
    ),
    _limits((8, 0), "Ampere", lanes=64, threads=2048, blocks=32, sm_kib=164, optin_kib=163),
    _limits((8, 6), "Ampere", lanes=128, threads=1536, blocks=16, sm_kib=100, optin_kib=99),
    _limits((8, 9), "Ada Lovelace", lanes=128, threads=1536, blocks=24, sm_kib=100, optin_kib=99),
    _limits((9, 0), "Hopper", lanes=128, threads=2048, blocks=32, sm_kib=228, optin_kib=227),
    _limits((10, 0), "Blackwell", lanes=128, threads=2048, blocks=32, sm_kib=228, optin_kib=227),
    _limits((12, 0), "Blackwell", lanes=128, threads=1536, blocks=24, sm_kib=100, optin_kib=99),
)

_LIMITS: Mapping[ComputeCapability, dict[str, _Fact]] = {
    row["compute_capability"][0]: row for row in _ROWS
}


# --- the database -------------------------------------------------------------------------


_GTX_1080_TI = "NVIDIA GeForce GTX 1080 Ti specifications, geforce.com"
_T4 = "NVIDIA Turing GPU Architecture whitepaper, Appendix B, Tesla T4"
_V100 = "NVIDIA Tesla V100 GPU Architecture whitepaper, Comparison of NVIDIA Tesla GPUs"
_GA102 = "NVIDIA Ampere GA102 GPU Architecture whitepaper V2"
_RTX_3090 = f"{_GA102}, Appendix A, GeForce RTX 3090"
_RTX_A6000 = f"{_GA102}, Appendix C, RTX A6000"
_A100 = "NVIDIA A100 Tensor Core GPU Architecture whitepaper, Comparison of NVIDIA Data Center GPUs"
_A100_L2 = "NVIDIA A100 Tensor Core GPU Architecture whitepaper, A100 L2 Cache"
_A100_80GB = "NVIDIA A100 Tensor Core GPU datasheet, A100 80GB SXM"
_ADA = "NVIDIA Ada GPU Architecture whitepaper V2"
_RTX_4090 = f"{_ADA}, Appendix A, GeForce RTX 4090"
_L4 = f"{_ADA}, NVIDIA L4"
_L40S = "NVIDIA L40S datasheet"
_H100 = "NVIDIA H100 Tensor Core GPU Architecture whitepaper, Comparison of A100 and H100"
_H200 = "NVIDIA H200 Tensor Core GPU datasheet, H200 SXM"
_B200 = "NVIDIA Blackwell datasheet, Individual Blackwell GPU Specifications, HGX B200"
_B200_DRIVER = "CUDA driver on a B200, as reported in pytorch/ao pull request 4002"
_RTX_5090 = "NVIDIA RTX Blackwell GPU Architecture whitepaper, Appendix A, GeForce RTX 5090"

_NAMES = "as cuDeviceGetName reports it"
_A100_L2_BANDWIDTH = (
    5120 * 1410e6,
    f"{_A100_L2}: reads 5,120 bytes per clock; at the boost clock",
)
_NO_L2_BANDWIDTH = (None, "NVIDIA publishes no nominal figure")


def _record(
    key: str,
    compute_capability: ComputeCapability,
    source: str,
    measured: MeasuredCeilings | None = None,
    /,
    **facts: Any,
) -> Device:
    """A record of the database; a value that stands alone comes from `source`.

    A driver reports the name as it is here, and no nominal bandwidth of L2 is known, unless the
    facts say otherwise.
    """
    told: dict[str, _Fact] = {
        field: fact if isinstance(fact, tuple) else (fact, source) for field, fact in facts.items()
    }
    names: dict[str, _Fact] = {"name": told["name"], "driver_names": ((told["name"][0],), _NAMES)}
    limits = _LIMITS[compute_capability]
    return _device(
        key, names | told | {"l2_bytes_per_s": _NO_L2_BANDWIDTH} | told | limits, measured
    )


_RECORDS = (
    _record(
        "gtx-1080-ti",
        (6, 1),
        _GTX_1080_TI,
        name="NVIDIA GeForce GTX 1080 Ti",
        chip="GP102",
        sm_count=(28, f"{_GTX_1080_TI}: 3,584 CUDA cores of 128 per SM"),
        boost_clock_hz=1582e6,
        fp32_flop_per_s=(11.34e12, "derived: 2 · 3,584 lanes · 1.582 GHz = 11.34 TFLOP/s"),
        dram_bytes=(11 * GIB, f"{_GTX_1080_TI}: 11 GB GDDR5X"),
        dram_bytes_per_s=(484e9, f"{_GTX_1080_TI}: 11 Gbit/s · 352 bit / 8"),
        l2_bytes=(2816 * KIB, f"{_GTX_1080_TI}: 256 KB for each of 11 memory controllers"),
    ),
    _record(
        "t4",
        (7, 5),
        _T4,
        name="NVIDIA T4",
        driver_names=(("Tesla T4",), _NAMES),
        chip="TU104",
        sm_count=40,
        boost_clock_hz=1590e6,
        sustained_clock_hz=(
            585e6,
            "NVIDIA T4 product brief: base clock, about what the power limit of 70 W leaves "
            "(forums.developer.nvidia.com/t/264462: products of 4096 in a row reach 24 of 65 "
            "TFLOP/s in half precision, 37%, which NVIDIA calls expected; 585 / 1,590 is 37%)",
        ),
        fp32_flop_per_s=(
            8.1e12,
            f"{_T4}: 8.1 TFLOPS; 2 · 2,560 lanes · 1.590 GHz is 8.14, rounded down there",
        ),
        dram_bytes=(16 * GIB, f"{_T4}: 16 GB GDDR6"),
        dram_bytes_per_s=(320e9, f"{_T4}: 10 Gbit/s · 256 bit / 8"),
        l2_bytes=4096 * KIB,
    ),
    _record(
        "v100",
        (7, 0),
        _V100,
        name=("NVIDIA V100 SXM2 16 GB", f"{_V100}: the SXM2 module; the PCIe card is slower"),
        driver_names=(("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB"), _NAMES),
        chip="GV100",
        sm_count=80,
        boost_clock_hz=1530e6,
        fp32_flop_per_s=(15.7e12, f"{_V100}: 15.7 TFLOPS; 2 · 5,120 lanes · 1.530 GHz is 15.67"),
        dram_bytes=(16 * GIB, f"{_V100}: 16 GB HBM2; a later module has 32 GB"),
        dram_bytes_per_s=(900e9, f"{_V100}: 900 GB/s; 2 · 877 MHz · 4,096 bit / 8 is 898"),
        l2_bytes=6144 * KIB,
        l2_bytes_per_s=(
            2048 * 1530e6,
            f"{_A100_L2}: V100 reads 2,048 bytes per clock; at the boost clock",
        ),
    ),
    _record(
        "rtx-3090",
        (8, 6),
        _RTX_3090,
        name="NVIDIA GeForce RTX 3090",
        chip="GA102",
        sm_count=82,
        boost_clock_hz=1695e6,
        fp32_flop_per_s=(
            35_580e9,
            f"{_RTX_3090}: 35.6 TFLOPS; 2 · 10,496 lanes · 1.695 GHz = 35,581 GFLOP/s, which is "
            "published rounded to 35.58 TFLOP/s",
        ),
        dram_bytes=(24 * GIB, f"{_RTX_3090}: 24 GB GDDR6X"),
        dram_bytes_per_s=(
            936.2e9,
            f"{_RTX_3090}: 936 GB/s; 16 · 1,219 MHz · 384 bit / 8 = 936.2 GB/s",
        ),
        l2_bytes=6144 * KIB,
    ),
    _record(
        "rtx-a6000",
        (8, 6),
        _RTX_A6000,
        name="NVIDIA RTX A6000",
        chip="GA102",
        sm_count=84,
        boost_clock_hz=1800e6,
        fp32_flop_per_s=(38.7e12, f"{_RTX_A6000}: 38.7 TFLOPS; 2 · 10,752 lanes · 1.800 GHz"),
        dram_bytes=(48 * GIB, f"{_RTX_A6000}: 48 GB GDDR6"),
        dram_bytes_per_s=(768e9, f"{_RTX_A6000}: 16 Gbit/s · 384 bit / 8"),
        l2_bytes=6144 * KIB,
    ),
    _record(
        "a100-40gb",
        (8, 0),
        _A100,
        name="NVIDIA A100 SXM4 40 GB",
        driver_names=(
            ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"),
            f"{_NAMES}; the PCIe card has the same nominal figures and a lower power limit",
        ),
        chip="GA100",
        sm_count=108,
        boost_clock_hz=1410e6,
        fp32_flop_per_s=(19.5e12, f"{_A100}: 19.5 TFLOPS; 2 · 6,912 lanes · 1.410 GHz"),
        dram_bytes=(40 * GIB, f"{_A100}: 40 GB HBM2"),
        dram_bytes_per_s=(1555e9, f"{_A100}: 2 · 1,215 MHz · 5,120 bit / 8"),
        l2_bytes=40_960 * KIB,
        l2_bytes_per_s=_A100_L2_BANDWIDTH,
    ),
    _record(
        "a100-80gb",
        (8, 0),
        _A100,
        name=("NVIDIA A100 SXM4 80 GB", f"{_A100_80GB}; the PCIe card's memory is slower"),
        driver_names=(("NVIDIA A100-SXM4-80GB",), _NAMES),
        chip="GA100",
        sm_count=108,
        boost_clock_hz=1410e6,
        fp32_flop_per_s=(19.5e12, f"{_A100_80GB}: 19.5 TFLOPS; 2 · 6,912 lanes · 1.410 GHz"),
        dram_bytes=(80 * GIB, f"{_A100_80GB}: 80 GB HBM2e"),
        dram_bytes_per_s=(2039e9, f"{_A100_80GB}: 2 · 1,593 MHz · 5,120 bit / 8"),
        l2_bytes=40_960 * KIB,
        l2_bytes_per_s=_A100_L2_BANDWIDTH,
    ),
    _record(
        "rtx-4090",
        (8, 9),
        _RTX_4090,
        name="NVIDIA GeForce RTX 4090",
        chip="AD102",
        sm_count=128,
        boost_clock_hz=2520e6,
        fp32_flop_per_s=(82.6e12, f"{_RTX_4090}: 82.6 TFLOPS; 2 · 16,384 lanes · 2.520 GHz"),
        dram_bytes=(24 * GIB, f"{_RTX_4090}: 24 GB GDDR6X"),
        dram_bytes_per_s=(1008e9, f"{_RTX_4090}: 21 Gbit/s · 384 bit / 8"),
        l2_bytes=73_728 * KIB,
    ),
    _record(
        "l4",
        (8, 9),
        _L4,
        name="NVIDIA L4",
        chip="AD104",
        sm_count=58,
        boost_clock_hz=2040e6,
        fp32_flop_per_s=(30.3e12, f"{_L4}: 30.3 TFLOPS; 2 · 7,424 lanes · 2.040 GHz"),
        dram_bytes=(24 * GIB, f"{_L4}: 24 GB GDDR6"),
        dram_bytes_per_s=(300e9, f"{_L4}: 12.5 Gbit/s · 192 bit / 8"),
        l2_bytes=49_152 * KIB,
    ),
    _record(
        "l40s",
        (8, 9),
        _L40S,
        name="NVIDIA L40S",
        chip="AD102",
        sm_count=(142, f"{_L40S}: 18,176 CUDA cores of 128 per SM"),
        boost_clock_hz=(2520e6, "NVIDIA L40S product brief, Product Specifications"),
        fp32_flop_per_s=(91.6e12, f"{_L40S}: 91.6 TFLOPS; 2 · 18,176 lanes · 2.520 GHz"),
        dram_bytes=(48 * GIB, f"{_L40S}: 48 GB GDDR6"),
        dram_bytes_per_s=(864e9, f"{_L40S}: 18 Gbit/s · 384 bit / 8"),
        l2_bytes=(98_304 * KIB, f"{_ADA}, NVIDIA L40: the same chip with its full L2"),
    ),
    _record(
        "h100-pcie",
        (9, 0),
        _H100,
        name="NVIDIA H100 PCIe 80 GB",
        driver_names=(("NVIDIA H100 PCIe",), _NAMES),
        chip="GH100",
        sm_count=114,
        boost_clock_hz=(1755e6, f"{_H100}: boost clock of FP32 outside the Tensor Cores"),
        fp32_flop_per_s=(51.2e12, f"{_H100}: 51.2 TFLOPS; 2 · 14,592 lanes · 1.755 GHz"),
        dram_bytes=(80 * GIB, f"{_H100}: 80 GB HBM2e"),
        dram_bytes_per_s=(
            2039e9,
            f"{_H100}: 5,120 bit, 2,000 GB/s there; 2 · 1,593 MHz · 5,120 bit / 8 = 2,039 GB/s",
        ),
        l2_bytes=50 * MIB,
    ),
    _record(
        "h100-sxm",
        (9, 0),
        _H100,
        MeasuredCeilings(
            source="microbenchmarks on an H100 80GB HBM3 at 1,980 MHz: FFMA, device copy (read "
            "and write), L2 read of 16 MB, shared loads",
            fp32_flop_per_s=64.2e12,
            dram_bytes_per_s=2861e9,
            l2_bytes_per_s=6956e9,
            shared_bytes_per_s=32.8e12,
        ),
        name="NVIDIA H100 SXM5 80 GB",
        driver_names=(("NVIDIA H100 80GB HBM3",), _NAMES),
        chip="GH100",
        sm_count=132,
        boost_clock_hz=(1980e6, f"{_H100}: boost clock of FP32 outside the Tensor Cores"),
        fp32_flop_per_s=(66.9e12, f"{_H100}: 66.9 TFLOPS; 2 · 16,896 lanes · 1.980 GHz"),
        dram_bytes=(80 * GIB, f"{_H100}: 80 GB HBM3"),
        dram_bytes_per_s=(3352e9, f"{_H100}: 2 · 2,619 MHz · 5,120 bit / 8 = 3,352 GB/s"),
        l2_bytes=50 * MIB,
    ),
    _record(
        "h200",
        (9, 0),
        _H200,
        MeasuredCeilings(
            source="benchmarks/ceilings.py on an NVIDIA H200 at 1,980 MHz, driver 580.159.04, "
            "2026-11-21: FFMA, device copy (read and write), L2 read of 15.7 MB, shared loads",
            fp32_flop_per_s=63.7e12,
            dram_bytes_per_s=4279e9,
            l2_bytes_per_s=7.70e12,
            shared_bytes_per_s=33.2e12,
        ),
        name="NVIDIA H200 SXM 141 GB",
        driver_names=(("NVIDIA H200",), _NAMES),
        chip="GH100",
        sm_count=(132, "CUDA driver 580 on an H200; the H100 SXM has as many"),
        boost_clock_hz=(1980e6, "CUDA driver 580 on an H200"),
        fp32_flop_per_s=(
            66.9e12,
            f"{_H200}: 67 TFLOPS; 2 · 16,896 lanes · 1.980 GHz = 66.9, as of the H100 SXM",
        ),
        dram_bytes=(141 * GIB, f"{_H200}: 141 GB HBM3e; CUDA driver 580 leaves 139.8 GiB"),
        dram_bytes_per_s=(
            4.8e12,
            f"{_H200}: 4.8 TB/s; 2 · 3,201 MHz · 6,016 bit / 8 of CUDA driver 580 is 4.81",
        ),
        l2_bytes=(60 * MIB, "CUDA driver 580 on an H200"),
    ),
    _record(
        "b200",
        (10, 0),
        _B200,
        name="NVIDIA B200 180 GB",
        driver_names=(("NVIDIA B200",), _NAMES),
        chip="GB100",
        sm_count=(148, _B200_DRIVER),
        boost_clock_hz=(
            1965e6,
            "nvidia-smi on a B200: maximum SM clock; NVIDIA publishes no boost clock",
        ),
        fp32_flop_per_s=(
            75e12,
            f"{_B200}: 75 TFLOPS; 2 · 18,944 lanes · 1.965 GHz is 74.5, rounded up there",
        ),
        dram_bytes=(180 * GIB, f"{_B200}: 180 GB HBM3e; the CUDA driver leaves 178.35 GiB"),
        dram_bytes_per_s=(7.7e12, f"{_B200}: 7.7 TB/s; 2 · 3,996 MHz · 7,680 bit / 8 is 7.67"),
        l2_bytes=(
            253 * MIB // 2,
            f"{_B200_DRIVER}: 126.5 MB (NVIDIA Blackwell Tuning Guide: 126 MB)",
        ),
    ),
    _record(
        "rtx-5090",
        (12, 0),
        _RTX_5090,
        name="NVIDIA GeForce RTX 5090",
        chip="GB202",
        sm_count=170,
        boost_clock_hz=2407e6,
        fp32_flop_per_s=(104.8e12, f"{_RTX_5090}: 104.8 TFLOPS; 2 · 21,760 lanes · 2.407 GHz"),
        dram_bytes=(32 * GIB, f"{_RTX_5090}: 32 GB GDDR7"),
        dram_bytes_per_s=(1792e9, f"{_RTX_5090}: 28 Gbit/s · 512 bit / 8"),
        l2_bytes=98_304 * KIB,
    ),
)

DEVICES: Mapping[str, Device] = MappingProxyType({device.key: device for device in _RECORDS})
