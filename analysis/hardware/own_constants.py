"""Constants that `python -m toolkit.microbenchmarks` measured on a GPU, for the model of time.

`RULES` says how a constant follows from results of the benchmarks. A constant is among them only if
the benchmarks measure what the model means by it; `NOT_DETERMINED` gives the reason for each other
constant. docs/machines.md has both as tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from analysis.devices import DEVICES, Device, OwnConstants
from analysis.errors import InputError, shortened
from analysis.hardware.sm_constants import NAMES, constants_for

SCHEMA_VERSION = 1
REMEDY = "give what `python -m toolkit.microbenchmarks --output FILE` wrote"
# Significant digits. Loops of the benchmarks themselves take up to 1%. With 1.0004 clocks for a
# request instead of 1, the replay of coarsened-2d at 2048 takes another course, and its predicted
# time is 4% shorter.
SIGNIFICANT = 3
FARTHEST = 100  # largest ratio of a constant to the usual one, and the reverse
# The file has bytes per second; the model needs the fraction of the nominal bandwidth of that GPU.
NOMINAL = "nominal"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Rule that computes a constant from results of the benchmarks."""

    #: names of benchmarks, for their values, or paths into their details, such as
    #: "code_48_kib_all_sms_cycles/cycles_by_warps_per_scheduler/1"
    results: tuple[str, ...]
    formula: str  #: the rule in words, in which A and B are the results
    of: Callable[..., float]


def _equal(result: str) -> Rule:
    return Rule(results=(result,), formula="A", of=lambda a: a)


def _by(formula: str, of: Callable[..., float], *results: str) -> Rule:
    return Rule(results=results, formula=formula, of=of)


_BY_WARPS = "code_48_kib_all_sms_cycles/cycles_by_warps_per_scheduler"
_TURNOVER = "block_turnover_32_threads_cycles"

RULES: Mapping[str, Rule] = {
    "global_queue": _equal("queue_global_loads_requests"),
    "operand_clocks": _by(  # 5 registers instead of 2
        "(A - B) / 3",
        lambda a, b: (a - b) / 3,
        "sts_128_one_scheduler_cycles",
        "sts_32_one_scheduler_cycles",
    ),
    "register_latency": _by(
        "(A - B) / 3", lambda a, b: (a - b) / 3, "lds_128_latency_cycles", "lds_32_latency_cycles"
    ),
    "shared_latency": _equal("lds_32_latency_cycles"),
    "l1_latency": _equal("l1_hit_latency_cycles"),
    "l2_latency": _equal("l2_hit_latency_cycles"),
    "atomic_latency": _equal("atom_add_latency_cycles"),
    "shared_atomic_latency": _equal("atoms_add_1_ways_latency_cycles"),
    "constant_latency": _by(  # without the multiply-add for the next address
        "A - 5", lambda a: a - 5, "ldc_1_words_latency_cycles"
    ),
    "constant_word_latency": _by(
        "(A - B) / 31",
        lambda a, b: (a - b) / 31,
        "ldc_32_words_latency_cycles",
        "ldc_1_words_latency_cycles",
    ),
    "constant_miss_latency": _equal("ldc_miss_latency_cycles"),
    "barrier_latency": _by(  # that of no warp at all
        "2 A - B", lambda a, b: 2 * a - b, "barrier_1_warps_cycles", "barrier_2_warps_cycles"
    ),
    "barrier_per_warp": _by(
        "(A - B) / 16",
        lambda a, b: (a - b) / 16,
        "barrier_32_warps_cycles",
        "barrier_16_warps_cycles",
    ),
    "block_start": _equal("block_gap_32_threads_cycles/deciles/1"),
    "block_interval": _by("A / B", lambda a, b: a / b, _TURNOVER, f"{_TURNOVER}/blocks_per_sm"),
    "fence_clocks": _by(  # one for the data, one for what follows
        "(A - B) / 2", lambda a, b: (a - b) / 2, "flag_1_fences_cycles", "flag_0_fences_cycles"
    ),
    "fetch_clocks": _equal(f"{_BY_WARPS}/1"),
    "fma_halves": _by(  # one pipe takes a multiply-add of either kind every second clock
        "2 / A, 1 or 2", lambda a: min(2.0, max(1.0, 2 / a)), "ffma_beside_imad_issue_cycles"
    ),
    "request_clocks": _equal("lds_32_cycles"),
    "load_clocks": _equal("l1_32_rows_1_cycles"),
    "store_line_bytes": _by(  # 32 lines, and 128 bytes
        "A / 32 · 128 / B",
        lambda a, b: a / 32 * 128 / b,
        "stg_32_lines_one_sm_cycles",
        "stg_32_one_sm_cycles",
    ),
    "part_bytes": _by(
        "128 · A / B",
        lambda a, b: 128 * a / b,
        "stg_4_of_32_bytes_in_order_16_mib_cycles",
        "stg_32_all_sms_cycles",
    ),
    "dram_pair_bytes": _by(
        "128 · A / B",
        lambda a, b: 128 * a / b,
        "gather_32_lines_of_1_sectors_512_mib_cycles",
        "gather_8_lines_of_4_sectors_512_mib_cycles",
    ),
    "constant_clocks": _by("A / 32", lambda a: a / 32, "ldc_32_words_cycles"),
    "constant_clocks_of_one": _by("A / 32", lambda a: a / 32, "ldc_32_words_one_scheduler_cycles"),
    "least_constant_clocks": _equal("ldc_1_words_one_scheduler_cycles"),
    "constant_line_clocks": _equal("ldc_line_all_sms_cycles"),
    "constant_line_clocks_alone": _equal("ldc_line_one_sm_cycles"),
    "products_in_flight": _equal("wgmma_in_flight_products"),
    "group_fence_clocks": _equal("wgmma_fence_cycles"),
    "proxy_fence_clocks": _equal("wgmma_proxy_fence_cycles"),
    "product_column_clocks": _by("A / 256", lambda a: a / 256, "wgmma_256_shared_interval_cycles"),
    "least_beside_products": _equal("wgmma_64_shared_loads_beside_per_cycle"),
    "idle_beside_products": _by(  # those use half of shared memory
        "2 (A - B)",
        lambda a, b: 2 * (a - b),
        "wgmma_64_registers_loads_beside_per_cycle",
        "wgmma_64_shared_loads_beside_per_cycle",
    ),
    "product_register_clocks": _by(
        "A - 16", lambda a: a - 16, "wgmma_32_registers_interval_cycles"
    ),
    "barrier_unit_clocks": _by("A / 32", lambda a: a / 32, "barrier_16_warps_2_blocks_cycles"),
    "write_bytes_per_clock": _by("128 / A", lambda a: 128 / a, "stg_32_all_sms_cycles"),
    "fetch_clocks_of_several": _equal(f"{_BY_WARPS}/2"),
    "far_fetch_clocks": _equal("code_144_kib_all_sms_cycles"),
    "most_l2_bytes_per_clock": _equal("l2_read_128_one_sm_bytes_per_cycle"),
    "most_write_bytes_per_clock": _by("128 / A", lambda a: 128 / a, "stg_32_one_sm_cycles"),
    "dram_efficiency": _by(
        "A / (B - C) / nominal bandwidth",
        lambda a, b, c, nominal: a / (b - c) / nominal,
        "dram_read_bytes_per_s/bytes",
        "dram_read_bytes_per_s/seconds",
        "empty_kernel_256_threads_s",
        NOMINAL,
    ),
    "l2_slice_bytes": _equal("l2_bytes_per_slice"),
    "atomic_part_s": _equal("red_u32_word_s"),
    "atomic_whole_s": _equal("red_u32_line_s"),
    "atomic_sum_s": _equal("red_f32_word_s"),
    "store_s": _equal("st_word_beside_loads_s"),
    "store_line_s": _equal("st_line_beside_loads_s"),
    "next_block_s": _equal("empty_blocks_256_threads_s"),
    "launch_s": _equal("empty_kernel_256_threads_s"),
    "units.FMA": _by(
        "A · (2 / B, 1 or 2)",
        lambda a, b: a * round(min(2.0, max(1.0, 2 / b))),
        "ffma_issue_cycles",
        "ffma_beside_imad_issue_cycles",
    ),
    "units.FMA_HEAVY": _equal("imad_issue_cycles"),
    "units.FMA_WIDE": _equal("imad_wide_issue_cycles"),
    "units.HALF": _equal("hfma2_issue_cycles"),
    "units.ALU": _equal("iadd3_issue_cycles"),
    "units.FP64": _equal("dfma_issue_cycles"),
    "units.XU": _equal("mufu_ex2_issue_cycles"),
    "units.TENSOR": _equal("hmma_16816_f32_interval_cycles"),
    "units.TENSOR_SHORT": _equal("hmma_1688_f32_interval_cycles"),
    "units.TENSOR_DOUBLE": _equal("dmma_1684_interval_cycles"),
    "latencies.TENSOR_DOUBLE": _by(
        "A - B", lambda a, b: a - b, "dmma_1684_latency_cycles", "dmma_1684_interval_cycles"
    ),
    "latencies.XU": _equal("mufu_ex2_latency_cycles"),
    "latencies.FP64": _equal("dfma_latency_cycles"),
}

_FITTED = "fitted, so that predicted times agree with measured ones"
_NO_BENCHMARK = "no benchmark has this unit alone"
NOT_DETERMINED: Mapping[str, str] = {
    "bank_count": "the rules of the register file are written for two banks",
    "dram_latency": _FITTED,
    "branch_clocks": f"{_FITTED}; a jump takes more or less by where it leads",
    "fetch_latency": _FITTED,
    "least_product_clocks": "the benchmark's products are of one warpgroup",
    "product_latency": "a round of the benchmark has a fence and a loop too",
    "product_latency_of_registers": "a round of the benchmark has a fence and a loop too",
    "product_release": "it follows from when the eighth product is issued",
    "integers_share": "which instructions share a pipe follows from no single benchmark",
    "bypass_clocks": "Nsight Compute counts it",
    "whole_line_bytes": "it depends on how far apart the lines of a store are",
    "sector_clocks": _FITTED,
    "write_slots": "what a load costs beside FFMAs depends on how many there are",
    "miss_clocks": _FITTED,
    "merged_l2_bytes_per_clock": "SMs reach it in step, and others less",
    "l2_bytes_per_clock": "in the benchmark all SMs read the same 8 MiB",
    "lookup_clocks": "how often a store is looked up depends on the partitions of L2",
    "fill_share": "it follows from mixes of loads and stores, none of which has it alone",
    "dirty_start_s": "`python -m benchmarks.l2_states` measures it",
    "dram_scatter": _FITTED,
    "dram_spread": _FITTED,
    "code_bytes": "loops show between which two sizes it is",
    "cached_code_bytes": "loops show between which two sizes it is",
    "flag_latency": _FITTED,
    "l1_bytes": "it is between two sizes of which fewer and fewer lines hit again",
    "l2_line_bytes": "it is relative to `l2_bytes_per_clock`",
    "atomic_window": "several windows have the measured lines that are busy in a walk",
    "units.CONTROL": _NO_BENCHMARK,
    "units.UNIFORM": _NO_BENCHMARK,
    "units.LSU": _NO_BENCHMARK,
    "units.CONVERT_64": "a document gives it",
    "latencies.UNIFORM": _NO_BENCHMARK,
    "latencies.CONTROL": _NO_BENCHMARK,
}


def own_constants(document: object, file: str, device: Device) -> OwnConstants:
    """Constants of a document of `python -m toolkit.microbenchmarks`, for a device.

    `file` names the document. Results that it lacks, because its run was stopped or a benchmark
    failed, leave constants out, which `OwnConstants.lacks` names. Raises InputError for another
    document, one of another architecture, one without any constant, and an impossible number.
    """
    if not isinstance(document, dict):
        raise InputError(f"{file}: no measured constants: {REMEDY}")
    version, results = document.get("schema_version"), document.get("constants")
    gpu, architecture = document.get("name"), document.get("architecture")
    if not (isinstance(results, dict) and isinstance(gpu, str) and isinstance(architecture, str)):
        raise InputError(f"{file}: no measured constants: {REMEDY}")
    if version != SCHEMA_VERSION:
        raise InputError(
            f"{file}: schema_version = {shortened(repr(version))}, this version reads "
            f"{SCHEMA_VERSION}: measure again"
        )
    if architecture != device.sm_arch:
        raise InputError(
            f"{file}: its constants are of {shortened(architecture)} ({shortened(gpu)}), and "
            f"{device.name} is of {device.sm_arch}: measure such a GPU, or choose a device of "
            f"{shortened(architecture)}"
        )
    measured_on = device if document.get("device") == device.key else None
    measured_on = measured_on or DEVICES.get(str(document.get("device")))
    nominal = {"value": measured_on.dram_bytes_per_s if measured_on else None}
    known = {**results, NOMINAL: nominal}
    values = {}
    for name, rule in RULES.items():
        found = [_result(known, path, file) for path in rule.results]
        numbers = [number for number in found if number is not None]
        if len(numbers) == len(found):
            values[name] = _checked(name, rule.of(*numbers), rule, file, device)
    if not values:
        raise InputError(f"{file}: it determines no constant: {REMEDY}, of a whole run")
    return OwnConstants(
        file=file, gpu=gpu, values=values, lacks=tuple(name for name in RULES if name not in values)
    )


def _result(results: Mapping[str, Any], path: str, file: str) -> float | None:
    """A result by its path, None if the file has none. Raises InputError for an impossible one."""
    name, *inside = path.split("/")
    found = results.get(name)
    if found is None or (isinstance(found, dict) and found.get("value") is None):
        return None
    for key in ("detail", *inside) if inside else ("value",):
        try:
            found = found[int(key)] if isinstance(found, list) else found[key]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    if isinstance(found, bool) or not isinstance(found, int | float):
        found = float("nan")
    if not (isfinite(found) and found > 0):
        raise InputError(f"{file}: {path} is not a number above 0: {REMEDY}, unedited")
    return float(found)


def _checked(name: str, value: float, rule: Rule, file: str, device: Device) -> float:
    """A constant, whole or of three digits. Raises InputError if it is far from the usual one."""
    usual = constants_for(device.sm_arch).entries[name].value
    found = round(value) if NAMES[name] is int else float(f"{value:.{SIGNIFICANT}g}")
    if not (usual / FARTHEST <= found <= usual * FARTHEST):
        raise InputError(
            f"{file}: {name} would be {found:.4g}, usually it is {usual:.4g}: measure "
            f"{', '.join(path for path in rule.results if path != NOMINAL)} again"
        )
    return found
