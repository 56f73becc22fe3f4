"""Numbers of the GPUs that this project knows, each with its source.

`LIMITS` has the facts that all GPUs of a compute capability share, `MODELS` the facts of each
model, `MEASURED` the ceilings that a benchmark reached. A fact is written once, as `(value,
source)`, under the name of the field of `Device` (analysis/devices.py).

Sizes are bytes, and the "GB" of a datasheet's memory size are GiB (a driver reports a little
less: it keeps some for error correction and itself). Bandwidths of datasheets are powers of ten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KIB, MIB, GIB = 2**10, 2**20, 2**30

ComputeCapability = tuple[int, int]

# A value and its source. The value has the type of its field.
Fact = tuple[Any, str]
Facts = dict[str, Fact]


def values_and_sources(facts: Mapping[str, Fact]) -> tuple[dict[str, Any], dict[str, str]]:
    """Values of facts and their sources, both by the name of the field."""
    return (
        {field: value for field, (value, _) in facts.items()},
        {field: source for field, (_, source) in facts.items()},
    )


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
    shared_bytes_per_clock: Fact = (128, _BANKS),
) -> Facts:
    """Limits that all devices of one compute capability share, per SM, block or thread."""
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


LIMITS: Mapping[ComputeCapability, Facts] = {
    row["compute_capability"][0]: row
    for row in (
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
            shared_bytes_per_clock=(
                64,
                "NVIDIA GA102 whitepaper: 128 bytes per clock, 64 on Turing",
            ),
        ),
        _limits((8, 0), "Ampere", lanes=64, threads=2048, blocks=32, sm_kib=164, optin_kib=163),
        _limits((8, 6), "Ampere", lanes=128, threads=1536, blocks=16, sm_kib=100, optin_kib=99),
        _limits(
            (8, 9), "Ada Lovelace", lanes=128, threads=1536, blocks=24, sm_kib=100, optin_kib=99
        ),
        _limits((9, 0), "Hopper", lanes=128, threads=2048, blocks=32, sm_kib=228, optin_kib=227),
        _limits(
            (10, 0), "Blackwell", lanes=128, threads=2048, blocks=32, sm_kib=228, optin_kib=227
        ),
        _limits((12, 0), "Blackwell", lanes=128, threads=1536, blocks=24, sm_kib=100, optin_kib=99),
    )
}


# --- the models ---------------------------------------------------------------------------


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
_H100_CLOCK = f"{_H100}: boost clock of FP32 outside the Tensor Cores"
_H200 = "NVIDIA H200 Tensor Core GPU datasheet, H200 SXM"
_H200_DRIVER = "CUDA driver 580 on an H200"
_B200 = "NVIDIA Blackwell datasheet, Individual Blackwell GPU Specifications, HGX B200"
_B200_DRIVER = "CUDA driver on a B200, as reported in pytorch/ao pull request 4002"
_RTX_5090 = "NVIDIA RTX Blackwell GPU Architecture whitepaper, Appendix A, GeForce RTX 5090"


def _reported(*names: str, note: str = "") -> Fact:
    return names, f"as cuDeviceGetName reports it{note}"


def _model(
    compute_capability: ComputeCapability,
    source: str,
    *,
    memory: tuple[int, str],
    pins: tuple[float, int] | None = None,
    **given: Any,
) -> Facts:
    """Facts of one model; values without a source of their own come from `source`.

    `memory` is its size in GiB and its type. `pins` are the bits per second of a pin and the number
    of pins: the bandwidth is their product. A driver reports the name as it is here, unless
    `driver_names` says otherwise.
    """
    facts = {
        field: one if isinstance(one, tuple) else (one, source) for field, one in given.items()
    }
    limits, size_gib = LIMITS[compute_capability], memory[0]
    facts["dram_bytes"] = (size_gib * GIB, f"{source}: {size_gib} GB {memory[1]}")
    if pins is not None:
        rate, bits = pins
        text = f"{source}: {rate / 1e9:g} Gbit/s · {bits} bit / 8"
        facts["dram_bytes_per_s"] = (rate * bits / 8, text)
    if facts["fp32_flop_per_s"][1] == source:
        lanes = limits["fp32_lanes_per_sm"][0] * facts["sm_count"][0]
        flop_per_s, clock_hz = facts["fp32_flop_per_s"][0], facts["boost_clock_hz"][0]
        text = f"{flop_per_s / 1e12:g} TFLOPS; 2 · {lanes:,} lanes · {clock_hz / 1e9:.3f} GHz"
        facts["fp32_flop_per_s"] = (flop_per_s, f"{source}: {text}")
    by_default = {
        "driver_names": _reported(facts["name"][0]),
        "l2_bytes_per_s": (None, "NVIDIA publishes no nominal figure"),
    }
    return by_default | facts | limits


_GA100: dict[str, Any] = {
    "chip": ("GA100", _A100),
    "sm_count": (108, _A100),
    "boost_clock_hz": (1410e6, _A100),
    "fp32_flop_per_s": 19.5e12,
    "tensor_flop_per_s": (312e12, f"{_A100}: 312 TFLOPS without sparsity"),
    "l2_bytes": (40_960 * KIB, _A100),
    "l2_bytes_per_s": (
        5120 * 1410e6,
        f"{_A100_L2}: reads 5,120 bytes per clock; at the boost clock",
    ),
}

MODELS: Mapping[str, Facts] = {
    "gtx-1080-ti": _model(
        (6, 1),
        _GTX_1080_TI,
        name="NVIDIA GeForce GTX 1080 Ti",
        chip="GP102",
        sm_count=(28, f"{_GTX_1080_TI}: 3,584 CUDA cores of 128 per SM"),
        boost_clock_hz=1582e6,
        fp32_flop_per_s=(11.34e12, "derived: 2 · 3,584 lanes · 1.582 GHz = 11.34 TFLOP/s"),
        memory=(11, "GDDR5X"),
        pins=(11e9, 352),
        l2_bytes=(2816 * KIB, f"{_GTX_1080_TI}: 256 KB for each of 11 memory controllers"),
    ),
    "t4": _model(
        (7, 5),
        _T4,
        name="NVIDIA T4",
        driver_names=_reported("Tesla T4"),
        chip="TU104",
        sm_count=40,
        boost_clock_hz=1590e6,
        sustained_clock_hz=(
            585e6,
            "NVIDIA T4 product brief: base clock, about what the power limit of 70 W leaves "
            "(forums.developer.nvidia.com/t/264462: products of 4096 in a row reach 24 of 65 "
            "TFLOP/s in half precision, 37%, which NVIDIA calls expected; 585 / 1,590 is 37%)",
        ),
        tensor_flop_per_s=(65e12, f"{_T4}: 65 TFLOPS in mixed precision"),
        fp32_flop_per_s=(
            8.1e12,
            f"{_T4}: 8.1 TFLOPS; 2 · 2,560 lanes · 1.590 GHz is 8.14, rounded down there",
        ),
        memory=(16, "GDDR6"),
        pins=(10e9, 256),
        l2_bytes=4096 * KIB,
    ),
    "v100": _model(
        (7, 0),
        _V100,
        name=("NVIDIA V100 SXM2 16 GB", f"{_V100}: the SXM2 module; the PCIe card is slower"),
        driver_names=_reported("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB"),
        chip="GV100",
        sm_count=80,
        boost_clock_hz=1530e6,
        tensor_flop_per_s=(125e12, f"{_V100}: 125 TFLOPS"),
        fp32_flop_per_s=(15.7e12, f"{_V100}: 15.7 TFLOPS; 2 · 5,120 lanes · 1.530 GHz is 15.67"),
        memory=(16, "HBM2; a later module has 32 GB"),
        dram_bytes_per_s=(900e9, f"{_V100}: 900 GB/s; 2 · 877 MHz · 4,096 bit / 8 is 898"),
        l2_bytes=6144 * KIB,
        l2_bytes_per_s=(
            2048 * 1530e6,
            f"{_A100_L2}: V100 reads 2,048 bytes per clock; at the boost clock",
        ),
    ),
    "rtx-3090": _model(
        (8, 6),
        _RTX_3090,
        name="NVIDIA GeForce RTX 3090",
        chip="GA102",
        sm_count=82,
        boost_clock_hz=1695e6,
        tensor_flop_per_s=(
            71.2e12,
            f"{_RTX_3090}: 71 TFLOPS with FP32 accumulation; 2 · 256 · 82 SMs · 1.695 GHz",
        ),
        fp32_flop_per_s=(
            35_580e9,
            f"{_RTX_3090}: 35.6 TFLOPS; 2 · 10,496 lanes · 1.695 GHz = 35,581 GFLOP/s, which is "
            "published rounded to 35.58 TFLOP/s",
        ),
        memory=(24, "GDDR6X"),
        dram_bytes_per_s=(
            936.2e9,
            f"{_RTX_3090}: 936 GB/s; 16 · 1,219 MHz · 384 bit / 8 = 936.2 GB/s",
        ),
        l2_bytes=6144 * KIB,
    ),
    "rtx-a6000": _model(
        (8, 6),
        _RTX_A6000,
        name="NVIDIA RTX A6000",
        chip="GA102",
        sm_count=84,
        boost_clock_hz=1800e6,
        tensor_flop_per_s=(154.8e12, f"{_RTX_A6000}: 154.8 TFLOPS with FP32 accumulation"),
        fp32_flop_per_s=38.7e12,
        memory=(48, "GDDR6"),
        pins=(16e9, 384),
        l2_bytes=6144 * KIB,
    ),
    "a100-40gb": _model(
        (8, 0),
        _A100,
        name="NVIDIA A100 SXM4 40 GB",
        driver_names=_reported(
            "NVIDIA A100-SXM4-40GB",
            "NVIDIA A100-PCIE-40GB",
            note="; the PCIe card has the same nominal figures and a lower power limit",
        ),
        memory=(40, "HBM2"),
        dram_bytes_per_s=(1555e9, f"{_A100}: 2 · 1,215 MHz · 5,120 bit / 8"),
        **_GA100,
    ),
    "a100-80gb": _model(
        (8, 0),
        _A100_80GB,
        name=("NVIDIA A100 SXM4 80 GB", f"{_A100_80GB}; the PCIe card's memory is slower"),
        driver_names=_reported("NVIDIA A100-SXM4-80GB"),
        memory=(80, "HBM2e"),
        dram_bytes_per_s=(2039e9, f"{_A100_80GB}: 2 · 1,593 MHz · 5,120 bit / 8"),
        **_GA100,
    ),
    "rtx-4090": _model(
        (8, 9),
        _RTX_4090,
        name="NVIDIA GeForce RTX 4090",
        chip="AD102",
        sm_count=128,
        boost_clock_hz=2520e6,
        tensor_flop_per_s=(165.2e12, f"{_RTX_4090}: 165.2 TFLOPS with FP32 accumulation"),
        fp32_flop_per_s=82.6e12,
        memory=(24, "GDDR6X"),
        pins=(21e9, 384),
        l2_bytes=73_728 * KIB,
    ),
    "l4": _model(
        (8, 9),
        _L4,
        name="NVIDIA L4",
        chip="AD104",
        sm_count=58,
        boost_clock_hz=2040e6,
        tensor_flop_per_s=(121e12, f"{_L4}: 121 TFLOPS without sparsity"),
        fp32_flop_per_s=30.3e12,
        memory=(24, "GDDR6"),
        pins=(12.5e9, 192),
        l2_bytes=49_152 * KIB,
    ),
    "l40s": _model(
        (8, 9),
        _L40S,
        name="NVIDIA L40S",
        chip="AD102",
        sm_count=(142, f"{_L40S}: 18,176 CUDA cores of 128 per SM"),
        boost_clock_hz=(2520e6, "NVIDIA L40S product brief, Product Specifications"),
        tensor_flop_per_s=(362e12, f"{_L40S}: 362 TFLOPS without sparsity"),
        fp32_flop_per_s=91.6e12,
        memory=(48, "GDDR6"),
        pins=(18e9, 384),
        l2_bytes=(98_304 * KIB, f"{_ADA}, NVIDIA L40: the same chip with its full L2"),
    ),
    "h100-pcie": _model(
        (9, 0),
        _H100,
        name="NVIDIA H100 PCIe 80 GB",
        driver_names=_reported("NVIDIA H100 PCIe"),
        chip="GH100",
        sm_count=114,
        boost_clock_hz=(1755e6, _H100_CLOCK),
        tensor_flop_per_s=(756e12, f"{_H100}: 756 TFLOPS without sparsity"),
        fp32_flop_per_s=51.2e12,
        memory=(80, "HBM2e"),
        dram_bytes_per_s=(
            2039e9,
            f"{_H100}: 5,120 bit, 2,000 GB/s there; 2 · 1,593 MHz · 5,120 bit / 8 = 2,039 GB/s",
        ),
        l2_bytes=50 * MIB,
    ),
    "h100-sxm": _model(
        (9, 0),
        _H100,
        name="NVIDIA H100 SXM5 80 GB",
        driver_names=_reported("NVIDIA H100 80GB HBM3"),
        chip="GH100",
        sm_count=132,
        boost_clock_hz=(1980e6, _H100_CLOCK),
        tensor_flop_per_s=(989.4e12, f"{_H100}: 989.4 TFLOPS without sparsity, at 1.83 GHz"),
        fp32_flop_per_s=66.9e12,
        memory=(80, "HBM3"),
        tensor_clock_hz=(
            1870e6,
            "such that it is 1.62 GHz at full load: an H100 80GB HBM3 in loops of HMMA (1.65 GHz) "
            "and HGMMA (1.58 to 1.65 GHz)",
        ),
        dram_bytes_per_s=(3352e9, f"{_H100}: 2 · 2,619 MHz · 5,120 bit / 8 = 3,352 GB/s"),
        l2_bytes=50 * MIB,
    ),
    "h200": _model(
        (9, 0),
        _H200,
        name="NVIDIA H200 SXM 141 GB",
        driver_names=_reported("NVIDIA H200"),
        chip="GH100",
        sm_count=(132, f"{_H200_DRIVER}; the H100 SXM has as many"),
        boost_clock_hz=(1980e6, _H200_DRIVER),
        tensor_clock_hz=(
            1795e6,
            "Nsight Compute on an H200: 1.77 to 1.86 GHz in 34 launches whose tensor cores were "
            "busy for 5 to 36% of the time",
        ),
        tensor_flop_per_s=(
            989.4e12,
            f"{_H200}: 1,979 TFLOPS with sparsity, half without, as of the H100 SXM",
        ),
        fp32_flop_per_s=(
            66.9e12,
            f"{_H200}: 67 TFLOPS; 2 · 16,896 lanes · 1.980 GHz = 66.9, as of the H100 SXM",
        ),
        memory=(141, "HBM3e; CUDA driver 580 leaves 139.8 GiB"),
        dram_bytes_per_s=(
            4.8e12,
            f"{_H200}: 4.8 TB/s; 2 · 3,201 MHz · 6,016 bit / 8 of CUDA driver 580 is 4.81",
        ),
        l2_bytes=(60 * MIB, _H200_DRIVER),
    ),
    "b200": _model(
        (10, 0),
        _B200,
        name="NVIDIA B200 180 GB",
        driver_names=_reported("NVIDIA B200"),
        chip="GB100",
        sm_count=(148, _B200_DRIVER),
        boost_clock_hz=(
            1965e6,
            "nvidia-smi on a B200: maximum SM clock; NVIDIA publishes no boost clock",
        ),
        tensor_flop_per_s=(2250e12, f"{_B200}: 4.5 PFLOPS with sparsity, half without"),
        fp32_flop_per_s=(
            75e12,
            f"{_B200}: 75 TFLOPS; 2 · 18,944 lanes · 1.965 GHz is 74.5, rounded up there",
        ),
        memory=(180, "HBM3e; the CUDA driver leaves 178.35 GiB"),
        dram_bytes_per_s=(7.7e12, f"{_B200}: 7.7 TB/s; 2 · 3,996 MHz · 7,680 bit / 8 is 7.67"),
        l2_bytes=(
            253 * MIB // 2,
            f"{_B200_DRIVER}: 126.5 MB (NVIDIA Blackwell Tuning Guide: 126 MB)",
        ),
    ),
    "rtx-5090": _model(
        (12, 0),
        _RTX_5090,
        name="NVIDIA GeForce RTX 5090",
        chip="GB202",
        sm_count=170,
        boost_clock_hz=2407e6,
        tensor_flop_per_s=(209.5e12, f"{_RTX_5090}: 209.5 TFLOPS with FP32 accumulation"),
        fp32_flop_per_s=104.8e12,
        memory=(32, "GDDR7"),
        pins=(28e9, 512),
        l2_bytes=98_304 * KIB,
    ),
}

# Ceilings that benchmarks reached, by the fields of `MeasuredCeilings`.
MEASURED: Mapping[str, Mapping[str, Any]] = {
    "h100-sxm": {
        "source": "microbenchmarks on an H100 80GB HBM3 at 1,980 MHz: FFMA, device copy (read "
        "and write), L2 read of 16 MB, shared loads",
        "fp32_flop_per_s": 64.2e12,
        "dram_bytes_per_s": 2861e9,
        "l2_bytes_per_s": 6956e9,
        "shared_bytes_per_s": 32.8e12,
    },
    "h200": {
        "source": "benchmarks/ceilings.py on an NVIDIA H200 at 1,980 MHz, driver 580.159.04, "
        "2026-11-21: FFMA, device copy (read and write), L2 read of 15.7 MB, shared loads",
        "fp32_flop_per_s": 63.7e12,
        "dram_bytes_per_s": 4279e9,
        "l2_bytes_per_s": 7.70e12,
        "shared_bytes_per_s": 33.2e12,
    },
}
