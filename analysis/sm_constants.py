"""What the timing model knows of an SM, per architecture; every number with its source.

Latencies and clocks are cycles of the SM. An instruction of a unit occupies it for so many clocks
per scheduler: 32 lanes over its lanes there. Where nobody has measured an architecture, a value is
taken over from another one, and its source says so. `python -m toolkit.microbenchmarks` measures
these on a GPU that is at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from analysis.cycles import Unit

KIB = 1024

_GUIDE = "CUDA C++ Programming Guide, arithmetic throughput per compute capability"
_H100 = "measured on an H100, CUDA 13.0 (docs/timing.md)"
_H200 = "measured on an H200, CUDA 13.0 (python -m toolkit.microbenchmarks)"
_FITTED = "fitted on the ladder on an H200 (docs/validation.md)"
_TURING = "measured on an RTX 2070 by github.com/sjfeng1999/gpu-arch-microbenchmark"
_T4 = "Jia et al. 2019, Dissecting the NVidia Turing T4 GPU via Microbenchmarking: 1,270 GB/s"


@dataclass(frozen=True, kw_only=True)
class SmConstants:
    """The constants of one architecture.

    `units` maps a unit to the clocks for which one warp instruction occupies it; `latencies` to
    the clocks until a scoreboard is released where the result's time varies. `fma_halves` is 2
    where multiply-adds have two half-width pipes of which only one takes integer products.
    Bandwidths are bytes per clock: `l2_bytes_per_clock` of one SM when all are busy,
    `most_l2_bytes_per_clock` of one SM alone. `l1_bytes` hold shared memory too. `launch_s` is
    what CUDA events show around an empty launch.
    """

    architecture: str
    units: dict[Unit, int]
    latencies: dict[Unit, int]
    fma_halves: int
    bank_count: int
    bank_depth: int
    write_free: int
    queue: int
    queue_gap: int
    tags_per_clock: int
    shared_latency: int
    l1_latency: int
    l2_latency: int
    dram_latency: int
    atomic_latency: int
    shared_atomic_latency: int
    barrier_latency: int
    barrier_per_warp: int
    branch_clocks: int
    block_start: int
    backlog: int
    l2_bytes_per_clock: float
    most_l2_bytes_per_clock: float
    write_bytes_per_clock: float
    dram_efficiency: float
    l1_bytes: int
    launch_s: float
    taken_from: str | None = None
    is_fitted: bool = False
    sources: dict[str, str] = field(default_factory=dict)


def _constants(architecture: str, **facts: Any) -> SmConstants:
    """A record from `name=(value, source)`; plain values have no source of their own."""
    values = {name: fact[0] if isinstance(fact, tuple) else fact for name, fact in facts.items()}
    sources = {name: fact[1] for name, fact in facts.items() if isinstance(fact, tuple)}
    return SmConstants(architecture=architecture, sources=sources, **values)


def _units(*, fma: int, heavy: int, alu: int, fp64: int, tensor: int = 16) -> dict[Unit, int]:
    return {
        Unit.CONTROL: 1,
        Unit.FMA: fma,
        Unit.FMA_HEAVY: heavy,
        Unit.ALU: alu,
        Unit.FP64: fp64,
        Unit.XU: 8,
        Unit.UNIFORM: 2,
        Unit.LSU: 2,
        Unit.TENSOR: tensor,
    }


_LATENCIES = {Unit.XU: 24, Unit.FP64: 24, Unit.UNIFORM: 24, Unit.CONTROL: 4}

_HOPPER: dict[str, Any] = {
    "units": (_units(fma=2, heavy=2, alu=2, fp64=2), f"{_GUIDE}; {_H100}"),
    "latencies": (_LATENCIES, _H100),
    "fma_halves": (2, _H100),
    "bank_count": (2, _H100),
    "bank_depth": (3, _H100),
    "write_free": (1, _H100),
    "queue": (8, _FITTED),
    "queue_gap": (2, _H100),
    "tags_per_clock": (4, _H200),
    "shared_latency": (23, _H100),
    "l1_latency": (32, _H100),
    "l2_latency": (255, _H100),
    "dram_latency": (500, _H100),
    "atomic_latency": (300, _FITTED),
    "shared_atomic_latency": (60, _FITTED),
    "barrier_latency": (12, _H100),
    "barrier_per_warp": (2, _H100),
    "branch_clocks": (9, _H100),
    "block_start": (300, _FITTED),
    "backlog": (64, _FITTED),
    "l2_bytes_per_clock": (29.8, _H100),
    "most_l2_bytes_per_clock": (64.0, _H100),
    "write_bytes_per_clock": (32.0, _FITTED),
    "dram_efficiency": (0.89, _H200),
    "l1_bytes": (256 * KIB, "NVIDIA H100 whitepaper"),
    "launch_s": (4.4e-6, _H100),
}


def _like_hopper(architecture: str, **changes: Any) -> SmConstants:
    """The constants of an architecture that few have measured: Hopper's, but for `changes`."""
    taken = "as on sm_90: not measured on this architecture"
    facts = {name: (fact[0], taken) for name, fact in _HOPPER.items()}
    return _constants(architecture, **(facts | changes), taken_from="sm_90")


_CONSTANTS = (
    _like_hopper(
        "sm_75",
        units=(_units(fma=2, heavy=2, alu=2, fp64=64), _GUIDE),
        fma_halves=(1, _GUIDE),
        shared_latency=(23, _TURING),
        l1_latency=(32, _TURING),
        l2_latency=(204, f"{_TURING}: 236 in all"),
        l2_bytes_per_clock=(20.0, _T4),
        l1_bytes=(96 * KIB, "NVIDIA Turing whitepaper"),
    ),
    _like_hopper(
        "sm_80",
        units=(_units(fma=2, heavy=2, alu=2, fp64=2), _GUIDE),
        fma_halves=(1, _GUIDE),
        l1_bytes=(192 * KIB, "NVIDIA A100 whitepaper"),
    ),
    _like_hopper(
        "sm_86",
        units=(_units(fma=2, heavy=2, alu=2, fp64=64), _GUIDE),
        l1_bytes=(128 * KIB, "NVIDIA GA102 whitepaper"),
    ),
    _like_hopper(
        "sm_89",
        units=(_units(fma=2, heavy=2, alu=2, fp64=64), _GUIDE),
        l1_bytes=(128 * KIB, "NVIDIA Ada whitepaper"),
    ),
    _constants("sm_90", **_HOPPER, is_fitted=True),
    _like_hopper("sm_100", l1_bytes=(256 * KIB, "CUDA C++ Programming Guide")),
    _like_hopper(
        "sm_120",
        units=(_units(fma=2, heavy=2, alu=1, fp64=64), _GUIDE),
        l1_bytes=(128 * KIB, "NVIDIA RTX Blackwell whitepaper"),
    ),
)
CONSTANTS = MappingProxyType({constants.architecture: constants for constants in _CONSTANTS})


def constants_for(architecture: str) -> SmConstants | None:
    """The constants of "sm_86", None where the model has none for it."""
    return CONSTANTS.get(architecture)
