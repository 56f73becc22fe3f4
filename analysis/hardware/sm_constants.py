"""Constants of an SM for the timing model, per architecture; every number has a source.

Latencies and clocks are cycles of the SM. An instruction occupies its unit for 32 clocks divided by
the number of the unit's lanes per scheduler. If nobody has measured an architecture, a value is
copied from another one, and its source says so. `python -m toolkit.microbenchmarks` measures these
constants on your GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from analysis.device_table import KIB, values_and_sources
from analysis.sm import Numbers, Unit

Fact = tuple[float | dict[Unit, int], str]  # a value and its source

_GUIDE = "CUDA C++ Programming Guide, arithmetic throughput per compute capability"
_H100 = "measured on an H100, CUDA 13.0 (docs/timing.md)"
_H200 = "measured on an H200, CUDA 13.0 (python -m toolkit.microbenchmarks)"
_FITTED = "fitted on the ladder on an H200 (docs/validation.md)"
_TURING = "measured on an RTX 2070 by github.com/sjfeng1999/gpu-arch-microbenchmark"
_TURING_UNITS = "NVIDIA Turing whitepaper: 16 load/store units per SM, for 32 lanes"
_TURING_L1 = "NVIDIA GA102 whitepaper: L1 of Turing delivers 64 bytes per clock"
_UNITS = "NVIDIA GA102 whitepaper: 16 load/store units per SM, for 32 lanes"
_BENCHES = "measured by github.com/te42kyfo/gpu-benches"
_STRIDES = f"{_BENCHES}: a load of one word or of 32 neighbours takes 2.00"
_CACHE = f"{_BENCHES}: loads of 32 neighbours from L1 take 2.00"
_T4 = "Jia et al. 2019, Dissecting the NVidia Turing T4 GPU via Microbenchmarking: 1,270 GB/s"


@dataclass(frozen=True, kw_only=True)
class SmConstants(Numbers):
    """The constants of one architecture.

    The C code in analysis/sm reads the fields of `Numbers`, analysis/timing/predict.py the others.
    `units` maps a unit to the clocks for which one warp instruction occupies it; `latencies` to
    the clocks until a result of XU, FP64, uniform and control instructions releases its scoreboard.
    Loads have their own: `shared_latency` from the issue of an LDS.32 without bank conflicts to the
    dependent instruction (also of SHFL and mbarriers), `l1_latency`, `l2_latency` and
    `dram_latency`; each further register of a result adds `register_latency`. `fma_halves` is 2
    where multiply-adds have two half-width pipes of which only one takes integer products, and with
    `integers_share` also what the ALU does elsewhere.
    `global_queue` are the requests of an SM that may wait for global memory, where a copy to shared
    memory counts twice. Code outside the instruction cache is fetched 128 bytes every
    `fetch_clocks`, or `fetch_clocks_of_several` where schedulers have more warps than one.
    `request_clocks` are the fewest of the load/store unit for an access of one warp, `miss_clocks`
    those from a load that goes to L2 to the next one.
    Bandwidths are bytes per clock: `l2_bytes_per_clock` of one SM when all are busy,
    `most_l2_bytes_per_clock` of one SM alone. `l1_bytes` hold shared memory too. `launch_s` is
    what CUDA events show around an empty launch. `dram_scatter` is how much longer than
    `dram_latency` a page of DRAM takes on average, `dram_spread` how much longer a request may take
    where DRAM is always busy. `flag_latency` is between the stores of a block's sums and the time
    at which others see its flag.
    """

    architecture: str
    units: dict[Unit, int]
    latencies: dict[Unit, int]
    fetch_clocks_of_several: int
    code_bytes: int
    flag_latency: int
    most_l2_bytes_per_clock: float
    most_write_bytes_per_clock: float
    dram_efficiency: float
    l1_bytes: int
    launch_s: float
    taken_from: str | None = None
    is_fitted: bool = False
    sources: dict[str, str] = field(default_factory=dict)


def _constants(facts: Mapping[str, Fact], **about: Any) -> SmConstants:
    """Constants of an architecture from values with their sources."""
    values, sources = values_and_sources(facts)
    return SmConstants(**values, **about, sources=sources)


def _units(*, alu: int, fp64: int) -> dict[Unit, int]:
    """Clocks for which an instruction occupies each unit; architectures differ in two of them."""
    return {
        Unit.CONTROL: 1,
        Unit.FMA: 2,
        Unit.FMA_HEAVY: 2,
        Unit.FMA_WIDE: 4,
        Unit.HALF: 1,
        Unit.ALU: alu,
        Unit.FP64: fp64,
        Unit.XU: 8,
        Unit.UNIFORM: 2,
        Unit.LSU: 1,
    }


_LATENCIES = {Unit.XU: 17, Unit.FP64: 8, Unit.UNIFORM: 24, Unit.CONTROL: 4}

_HOPPER: Mapping[str, Fact] = {
    "units": (_units(alu=2, fp64=2), _H200),
    "latencies": (_LATENCIES, _H200),
    "fma_halves": (2, _H200),
    "integers_share": (0, "NVIDIA H100 whitepaper: INT32 lanes of their own"),
    "bank_count": (2, _H200),
    "global_queue": (24, f"{_H200}: 24 loads, or 13.4 copies"),
    "operand_clocks": (2, f"{_H200}: STS.32, 64, 128 of one scheduler take 4, 6, 10"),
    "register_latency": (3, f"{_H200}: LDS.32, 64, 128 take 23, 26, 32"),
    "shared_latency": (23, f"{_H200}: LDS.32"),
    "l1_latency": (34, _H200),
    "l2_latency": (283, f"{_H200}: in all and unloaded"),
    "dram_latency": (270, f"{_FITTED}: 270 measured, fastest lines of DRAM and of L2"),
    "dram_scatter": (
        110.0,
        f"{_FITTED}: what waits for lines of 8 and of 136 pages takes 530 and 810 longer",
    ),
    "dram_spread": (1400, "fitted on copies and stencils on an H200 (docs/validation.md)"),
    "atomic_latency": (488, _H200),
    "shared_atomic_latency": (26, _H200),
    "barrier_latency": (12, _H200),
    "barrier_per_warp": (2, _H200),
    "barrier_unit_clocks": (1.5, f"{_H200}: 8 blocks of 8 warps take 95"),
    "branch_clocks": (16, f"{_FITTED}: 9 to 26 measured, by where it leads"),
    "fetch_latency": (300, _FITTED),
    "fetch_clocks": (19, f"{_H200}: all SMs ask; 18 where one does"),
    "fetch_clocks_of_several": (17, f"{_H200}: 17.2 to 17.9, two warps per scheduler"),
    "code_bytes": (32 * KIB, f"{_H200}: loops of up to 30 KiB run at full speed"),
    "block_start": (300, _H200),
    "block_interval": (90, f"{_H200}: 32 blocks at a time take 2,857 more"),
    "flag_latency": (2400, f"{_FITTED}: 1,400 to 3,400 measured, beyond what stores of sums take"),
    "request_clocks": (1.0, f"{_H200}: LDS.32"),
    "load_clocks": (4 / 3, _H200),
    "sector_clocks": (1.2, f"{_FITTED}: 1.1 to 1.3 measured, by the kernel"),
    "miss_clocks": (1.8, f"{_FITTED}: at most 1.5 measured with 32 warps, 2.4 with 4"),
    "store_line_bytes": (64.0, f"{_H200}: 32 lanes in as many lines take 64"),
    "write_slots": (0.5, f"{_H200}: 0.4 to 0.6, LDS.128 beside FFMAs"),
    "l2_bytes_per_clock": (29.8, _H100),
    "most_l2_bytes_per_clock": (122.0, _H200),
    "write_bytes_per_clock": (19.4, _H200),
    "most_write_bytes_per_clock": (32.0, _H200),
    "dram_efficiency": (0.89, _H200),
    "l1_bytes": (256 * KIB, "NVIDIA H100 whitepaper"),
    "launch_s": (2.7e-6, f"{_H200}: an empty kernel, warm"),
}


def _like_hopper(architecture: str, **changes: Fact) -> SmConstants:
    """Constants of an architecture with few measurements: Hopper's, except for `changes`."""
    taken = "as on sm_90: not measured on this architecture"
    facts: dict[str, Fact] = {name: (value, taken) for name, (value, _) in _HOPPER.items()}
    return _constants(facts | changes, architecture=architecture, taken_from="sm_90")


_CONSTANTS = (
    _like_hopper(
        "sm_70",
        units=(_units(alu=2, fp64=4), _GUIDE),
        fma_halves=(1, _GUIDE),
        l1_latency=(30, f"{_BENCHES} on a V100"),
        l2_latency=(184, f"{_BENCHES} on a V100: 214 in all"),
        l2_bytes_per_clock=(23.0, f"{_BENCHES} on a V100: 2,544 GB/s"),
        l1_bytes=(128 * KIB, "NVIDIA V100 whitepaper"),
    ),
    _like_hopper(
        "sm_75",
        units=(_units(alu=2, fp64=64), _GUIDE),
        fma_halves=(1, _GUIDE),
        shared_latency=(23, _TURING),
        l1_latency=(32, _TURING),
        l2_latency=(204, f"{_TURING}: 236 in all"),
        l2_bytes_per_clock=(20.0, _T4),
        l1_bytes=(96 * KIB, "NVIDIA Turing whitepaper"),
        request_clocks=(2.0, _TURING_UNITS),
        load_clocks=(2.0, _TURING_L1),
        sector_clocks=(2.0, _TURING_UNITS),
    ),
    _like_hopper(
        "sm_80",
        units=(_units(alu=2, fp64=2), _GUIDE),
        fma_halves=(1, _GUIDE),
        l1_bytes=(192 * KIB, "NVIDIA A100 whitepaper"),
    ),
    _like_hopper(
        "sm_86",
        units=(_units(alu=2, fp64=64), _GUIDE),
        integers_share=(1, "NVIDIA GA102 whitepaper: 16 lanes for FP32, 16 for FP32 or INT32"),
        l1_bytes=(128 * KIB, "NVIDIA GA102 whitepaper"),
        request_clocks=(2.0, f"{_UNITS}; {_STRIDES} on an A40"),
        load_clocks=(2.0, f"{_STRIDES} on an A40"),
        sector_clocks=(2.0, f"{_STRIDES} on an A40"),
        l2_bytes_per_clock=(16.7, f"{_BENCHES} on an A40: 2,430 GB/s"),
    ),
    _like_hopper(
        "sm_89",
        units=(_units(alu=2, fp64=64), _GUIDE),
        integers_share=(1, "NVIDIA Ada whitepaper: 16 lanes for FP32, 16 for FP32 or INT32"),
        l1_bytes=(128 * KIB, "NVIDIA Ada whitepaper"),
        request_clocks=(2.0, f"{_CACHE} on an L40"),
        load_clocks=(2.0, f"{_CACHE} on an L40"),
        sector_clocks=(2.0, f"{_CACHE} on an L40"),
        l2_bytes_per_clock=(16.1, f"{_BENCHES} on an L40: 5,710 GB/s"),
    ),
    _constants(_HOPPER, architecture="sm_90", is_fitted=True),
    _like_hopper("sm_100", l1_bytes=(256 * KIB, "CUDA C++ Programming Guide")),
    _like_hopper(
        "sm_120",
        units=(_units(alu=1, fp64=64), _GUIDE),
        l1_bytes=(128 * KIB, "NVIDIA RTX Blackwell whitepaper"),
    ),
)
CONSTANTS = MappingProxyType({constants.architecture: constants for constants in _CONSTANTS})


def constants_for(architecture: str) -> SmConstants:
    """Constants of "sm_86", or those of the nearest architecture, which then says so."""
    if architecture in CONSTANTS:
        return CONSTANTS[architecture]
    number = int(architecture.removeprefix("sm_"))
    nearest = min(CONSTANTS, key=lambda known: abs(int(known.removeprefix("sm_")) - number))
    return replace(
        CONSTANTS[nearest], architecture=architecture, taken_from=nearest, is_fitted=False
    )
