"""Every number that decides what the model answers: its value, where it stands, and its evidence.

    python -m benchmarks.constants
    python -m benchmarks.constants --kind fitted --markdown

A number is *documented* (with its source), *measured* (with the command or the record), *fitted*
(with the launches) or *technical*: it bounds work or memory, or spells a format, and no hardware
decides it; numbers of an architecture may be *taken over* from another one, or *not measured*.
Values are read from the code. Fitted numbers come with the mean error of what they
change, with them and without, which `benchmarks/rules_on_trial.py --errors` records. Exits with 1
where a number has no row, a row has no number, or a fitted number lacks these errors.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from analysis.devices import DEVICES
from analysis.hardware.sm_constants import CONSTANTS, SUFFIX
from analysis.traffic.block_schedule import LOADS, BlockProgress
from kernels.ladder import LADDER
from kernels.variant import Variant
from validation import ROOT, recordings

ERRORS = ROOT / "validation" / "timing" / "recorded" / "rule_errors.json"
SM_CODE = "analysis/sm"  # its C files
SM_VALUES = "analysis/hardware/machines"  # a file per architecture
DEVICE_VALUES = "analysis/device_table.py"
KINDS = ("documented", "measured", "fitted", "technical", "taken over", "not measured", "left out")
# Parts of which a fitted number needs its errors; what chooses a rung is fitted on other launches.
PARTS, PARTS_OF_CHOICE = ("select h200", "fit h200"), ("choice h200",)
NO_LIMIT = 1 << 30
SIGNIFICANT = 4


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Evidence for a number; `rule` names the trial of a number that belongs to another's rule."""

    kind: str
    source: str
    rule: str | None = None


def documented(source: str) -> Evidence:
    return Evidence(kind="documented", source=source)


def measured(source: str, rule: str | None = None) -> Evidence:
    return Evidence(kind="measured", source=source, rule=rule)


def fitted(launches: str, rule: str | None = None) -> Evidence:
    return Evidence(kind="fitted", source=launches, rule=rule)


def technical(reason: str) -> Evidence:
    return Evidence(kind="technical", source=reason)


_PROBES = "python -m toolkit.microbenchmarks"
_BLOCK_TIMES = "python -m benchmarks.block_times"
_COUNTERS = "sectors of 76 launches on tensor cores (tensor_counters_h200.json), ncu, H200"
_REACH = "python -m benchmarks.l2_reach"
_LOAD_CYCLES = "python -m benchmarks.global_load_cycles"
_SECTORS = "sectors of the ladder at 512 to 8192, H100 and H200"
_GUIDE = "CUDA C++ Programming Guide"
_PATTERNS = f"{_PROBES}: 50 of 51 patterns of register reads"
_WAITS = "counters of 21 to 26 recorded launches that wait (docs/validation.md)"
_TUNED = "products of toolkit/tuned/h200.json and docs/against_cublas.md"
_LAYOUT = technical("a layout or a format")
_ENOUGH = technical("a bound on work or memory")
_UNEQUAL = technical(
    "60 timed launches are within 3.6% of equal blocks, 10 others above 7% (decision 54)"
)

# The evidence of each number, by file; machine files and devices.py have it beside each number.
TABLE: Mapping[str, Mapping[str, Evidence]] = {
    "analysis/traffic/block_schedule.py": {
        "BUSY_ALONE_THREADS BUSY_AHEAD_THREADS": measured(_BLOCK_TIMES),
        "LARGEST_BLOCK": measured("times of 1 to 8 blocks per SM of rungs 2 to 5, 8 and 11, H200"),
        "BESIDE_THE_FIRST": fitted("double-buffered, async-copy at K = 4096", "LIFE_ALONE"),
        "LIFE_ALONE": measured(f"{_BLOCK_TIMES} --shape 2048 double-buffered async-copy"),
        "DRIFT_OF_SLACK SLACK_WITHOUT_DRIFT": fitted("rungs of bulk copies at 8192", "DRIFT"),
        "STEPS_IN_STEP STEPS_WITHOUT_BARRIERS": fitted(_SECTORS),
        "LOADS": fitted(_SECTORS, "STEPS_IN_STEP"),
        "HELD_BY_CONFLICTS": fitted("vectorized at 4096"),
        "AHEAD": fitted("sectors of rungs that copy ahead, H100 and H200"),
        "AHEAD_WITHOUT_NEIGHBOUR": fitted("the same, one block per SM", "AHEAD"),
        "PAST_L1_IN_SEVERAL_WAVES": measured(_COUNTERS),
        "GOLDEN": technical("any number that spreads its multiples evenly"),
        "PACES_OF_COPIES": fitted("split-k and async-copy at 8192, H100 and H200"),
        "FAST_SMS": measured("python -m benchmarks.code_fetch", "FAST_BY"),
        "FAST_BY": fitted("wide-thread-tile at 8192"),
    },
    "analysis/traffic/l2.py": {
        "MOMENTS TOGETHER ROUNDS": technical("a resolution"),
        "WINDOWS": _ENOUGH,
        "NEGLIGIBLE": technical(
            "drops the rest of a smooth curve; set after two public launches in a warm L2"
        ),
        "PAIR_BYTES": documented("ncu: DRAM transfers two sectors of 32 bytes at a time"),
        "FAR _TWO_PARTITIONS": documented("NVIDIA A100 and H100 whitepapers: two equal partitions"),
        "_READ_REACH _WRITE_REACH _READ_PART _WRITE_PART _READ_WIDTH _WRITE_WIDTH": measured(
            _REACH
        ),
        "_DIRTY_PART": fitted("split-k at 2048, H200; 0.67 and 0.70 measured"),
        "_BOTH_SIDES _MERGING_SMS": measured(_REACH),
        "SHARED_BY_COPIES": fitted("wide-thread-tile and async-copy"),
        "MERGED_STORES OF_BYTES": fitted("coarsened-2d, H100", "MERGED_STORES"),
        "WIDE_BYTES": fitted("vectorized, whose stores were never merged"),
        "PART_REACH": measured("python -m benchmarks.l2_states: lines stored in part"),
        "COVERED": technical("tells stores of parts of sectors from rounding"),
        "GPCS DEALT_FIRST": measured("recorded SMs of the blocks of launches of 8 to 800, H100"),
        "FAR_FROM_WRITER": fitted("rungs that share tiles at 512 and 1024"),
    },
    "analysis/timing/l2_atomics.py": {
        "MOST_WINDOWS": _ENOUGH,
        "RUN_LINES LINES_OF_PAIR APART": measured(
            "additions to two addresses at a time, H100 (docs/timing.md)"
        ),
        "CROWDED": technical("above which a text says so"),
        "MOST_CROWDED": measured("walks over 24 and 64 lines, H100 (docs/timing.md)"),
    },
    "analysis/timing/l2_stores.py": {
        "MEETING": technical("under a microsecond at one slice"),
    },
    "analysis/timing/model_runs.py": {
        "MEET_BY_WAITS": fitted("the ladder, H200"),
        "MOST_IN_STEP": _ENOUGH,
        "BEYOND_L1": technical("a tenth less at L2 is no table that L1 keeps"),
    },
    "toolkit/execution/in_time.py": {
        "TICKS QUANTUM QUANTUM_OF_SHARED MOST_INSTRUCTIONS": _ENOUGH,
        "CLOCKS_OF_POLLS": measured(f"{_PROBES} --only one_number_loads"),
        "CLOCKS_OF_SHARED": measured(
            f"{_PROBES} --only shared_sum_32_warps_own, H200: 3.7 for two in long loops, 4.6 in "
            "loops of 8"
        ),
    },
    "analysis/timing/modelled_sm.py": {
        "FEWEST_L1_LINES": technical("keeps a run of the model going"),
        "DIRTY_SHARE": fitted("kernels that read, H200"),
        "DIRTY_AT_FIRST TURNAROUND": measured("python -m benchmarks.l2_states"),
        "WRITTEN_PAIR_BYTES": measured(f"{_PROBES} --only stg_4_of_32_bytes_at_random_512"),
        "LOCAL_READ_FROM LOCAL_READ_ALL": measured(f"{_PROBES} --only local_follow"),
        "LOCAL_WRITTEN_FROM LOCAL_WRITTEN_ALL": measured(
            "DRAM bytes of arrays in local memory of 64 to 512 bytes per thread, ncu, H200"
        ),
        "DOUBLES_AT_ONCE": measured("toolkit/microbenchmarks/tensor.py: DMMA, H200"),
        "END_OF_ONE_SM": measured("toolkit/microbenchmarks/first_use.py: one block, H200"),
        "ENDS_ALONE": Evidence(
            kind="not measured", source="three launches of unequal blocks stay within 10%"
        ),
        "MEASURED_CAPABILITY MEASURED_L2_BYTES": documented(
            "sm_90.toml: `l2_bytes_per_clock` is that of an H100"
        ),
        "PART_OF_LINE_BYTES PARTS_IN_STEP": measured(_COUNTERS),
        "ALL_SECTORS SECTORS_OF_MASK": technical("four sectors of a line, a bit each"),
    },
    "analysis/timing/repetitions.py": {"SHORTENED SHORTENED_FOR_COSTS": _ENOUGH},
    "analysis/timing/costs.py": {
        "AT_ROOF LEAST_LOST MUCH_ALONE MUCH_LEFT MOST_LINES LEAST_OF_LINE": _ENOUGH,
        "RANKED_BY MANY_TIMES": _ENOUGH,
        "MOSTLY": technical("what is said of a pipe"),
        "THREADS": technical("cores that replays use"),
    },
    "analysis/timing/samples.py": {"STEADY": _ENOUGH},
    "analysis/comparison/scorecard.py": {
        "STORE_ARBITRATION LOAD_ARBITRATION LOAD_REMAINDER": measured(
            "counters of 110 recorded launches (docs/validation.md)"
        ),
        "L2_ERROR DRAM_ERROR": technical("the errors that docs/validation.md promises"),
        "BARRIER_WAITS FLAG_WAITS FLAG_WAITS_OF_ALL GUARDS": measured(_WAITS),
        "NEGLIGIBLE_BYTES": technical("a launch of no work has traffic of its own"),
    },
    "analysis/access.py": {
        "WORD_BYTES BANKS": documented(_GUIDE),
        "PRODUCT_M PRODUCT_N PRODUCT_K": documented("PTX ISA: shapes of mma.sync"),
    },
    "analysis/coalescing.py": {
        "SECTOR_BYTES LINE_BYTES": documented(_GUIDE),
        "_GROUPS_PER_REQUEST": documented(f"{_GUIDE}: 32 banks of 4 bytes"),
        "LINES_PER_CLOCK CLOCKS_PER_WIDE_LOAD": measured(_LOAD_CYCLES),
    },
    "toolkit/execution/footprint.py": {
        "BIN_FLOATS": _ENOUGH,
        "_SECTORS _FIRST": _LAYOUT,
    },
    "toolkit/execution/rung_accesses.py": {"MOST_ACCESSES MOST_PARTS": _ENOUGH},
    f"{SM_CODE}/load_store.c": {
        "STORED_LINE_CLOCKS": measured(
            "loads and stores of 32 lines in place, 8 warps on an SM of an H200 (decision 184)"
        )
    },
    "analysis/sm/__init__.py": {
        "BARRIER_ARRIVES BARRIER_WARPS_SHIFT": _LAYOUT,
        "CODE_LINE SCHEDULERS LINE_BYTES": documented("NVIDIA H100 whitepaper"),
        "BANKS": measured(_PATTERNS),
        "CODE_WAYS": measured(_PROBES),
        "PRODUCT_OF_REGISTERS PRODUCT_ENDS_GROUP": _LAYOUT,
        "NO_SCOREBOARD UNLIMITED MOST_QUEUED COMMON IN_L2 FLAG CONSTANT LOCAL RUN": _LAYOUT,
        "READS_BYTES SPACE_BIT SPACES": _LAYOUT,
    },
    f"{SM_CODE}/stream_format.h": {
        "TAG_BANKS": measured(
            "recorded loads of lines of one bank and of several (tests/analysis/tag_banks.py)"
        ),
        "LANES SECTOR SECTORS_OF_LINE": documented("NVIDIA H100 whitepaper"),
        "CONSTANT LOCAL": _LAYOUT,
        "STEP_TAKEN STEP_OFF STEP_RUN STEP_UNDONE COMMON IN_L2 FLAG RANK_SHIFT": _LAYOUT,
        "MOST_MBARRIERS": _ENOUGH,
    },
    f"{SM_CODE}/machine.h": {
        "BARRIERS": documented("PTX ISA: bar"),
        "BARRIER_WARPS_SHIFT BARRIER_WARPS BARRIER_ARRIVES": _LAYOUT,
        "SCHEDULERS": documented("NVIDIA H100 whitepaper"),
        "BANKS": measured(_PATTERNS),
        "SCOREBOARDS NONE SLOTS MOST_QUEUED": _LAYOUT,
        "PRODUCT_COLUMNS PRODUCT_OF_REGISTERS PRODUCT_ENDS_GROUP": _LAYOUT,
    },
    f"{SM_CODE}/products.h": {
        "WARPS_OF_GROUP": documented("PTX ISA, wgmma: four warps"),
    },
    f"{SM_CODE}/products.c": {
        "WAVEFRONTS_OF_A COLUMNS_PER_WAVEFRONT": measured(
            "ncu on an H100: 16 + N / 4 wavefronts of a wgmma, or N / 4"
        ),
    },
    f"{SM_CODE}/sm.h": {
        "MOST_SETS": measured(
            "16 sets give the share of 192 to 288 KiB that hits again (l1_hits_again), H200"
        ),
        "MERGING_STORES MOST_MERGED_LINES": measured(f"{_PROBES} --only parts_of_"),
        "EVICTED LEAST_LINES_OF_SETS": technical("lines of 8 MiB of an SM; a small L1 is one set"),
        "NOT_KEPT REG_SHIFT CLOCKS STATES ROWS NO_ROOM": _LAYOUT,
        "GROUPS": documented("PTX ISA, wgmma: four warps of at most 32"),
        "CACHED_CONSTANT_LINES": measured("loads of tables of 1 to 64 KiB of constants, H200"),
        "MOST_CONSTANT_LINES": technical("lines of two banks of constants"),
        "WAITING_CONSTANT_LOADS": measured(
            "clocks of random tables of 3 to 64 KiB on one SM, H200 (decision 76)"
        ),
        "UNIFORM_LINES WARPS_IN_STEP BLOCKS_IN_STEP EVICTED_CLOCKS": measured(
            f"{_PROBES} --only uldc_: a table of 4 KiB by blocks per SM, H200 (decision 147)"
        ),
        "BACK_TO_BACK": Evidence(
            kind="not measured",
            source="1,000 taps, 840 µs on an H200, are predicted at 722, 721, 721, 163 and 159 µs "
            "with 0, 2, 3, 4 and 8; 128 polynomials, 284 µs, at 719, 585, 521, 454 and 432",
        ),
    },
    f"{SM_CODE}/l2.h": {"WHOLE": _LAYOUT},
    f"{SM_CODE}/l2.c": {
        "STORED_LOOKUPS": measured("Nsight Compute, tag requests of L2 of an H200 (decision 193)"),
        "PHASES LN2": _LAYOUT,
    },
    f"{SM_CODE}/l1.c": {"NO_LINE": _LAYOUT},
    f"{SM_CODE}/load_store.h": {
        "ON_THEIR_WAY": measured(f"{_PROBES}: up to 12 of four schedulers"),
        "COPY_PLACES": measured(f"{_PROBES}: 24 loads, or 13.4 copies"),
        "BYPASS_READ_CLOCKS": measured(
            "rounds of 1, 2, 4 and 8 copies past L1 and by L1 of one warp, H200 (decision 174)"
        ),
        "BYPASS_ROOM": fitted(
            "four launches of the first half, H200: best of 0, 100 and 200 (decision 174)"
        ),
        "MATRIX_CLOCKS": measured(
            "a loop of LDSMs on an H100: x1, x2, x4 take 23, 25, 29, and a wavefront per matrix"
        ),
    },
    f"{SM_CODE}/registers.h": {
        "KEPT_FOR AT_ONCE BY_SECOND NOT_NEXT LATER ANY": measured(_PATTERNS),
        "CLOCKS_AHEAD": _LAYOUT,
    },
    f"{SM_CODE}/blocks.c": {"OPENING_CLOCKS": measured(f"{_PROBES} --only barriers_, H200")},
    f"{SM_CODE}/code.h": {
        "CODE_LINE": documented("NVIDIA H100 whitepaper"),
        "CODE_WAYS CODE_AHEAD": measured(_PROBES),
        "FAR_LINES": measured(f"{_PROBES} --only jump: 101 to 118 clocks beyond five lines, H200"),
    },
    "toolkit/execution/block_counts.py": {
        "LEAST_OF_OWN": technical("tells blocks with work of their own from those of a queue"),
    },
    "toolkit/execution/blocks_alone.py": {
        "LEAST_ALONE": technical("tells blocks that read what all blocks append from others"),
        "RARE": technical("warp instructions between barriers, beside which one costs little"),
    },
    "toolkit/execution/traffic.py": {
        "WIDEST_BYTES": documented(f"{_GUIDE}: at most 16 bytes per thread"),
        "MOST_LINES NEXT_BYTES": fitted("launches on trial, part fit", "MOST_LINES"),
    },
    "toolkit/execution/replayed_streams.py": {"MOST_STEPS CUT_STEPS WINDOWS MOST_IN_TIME": _ENOUGH},
    "toolkit/execution/observation.py": {
        "LEAST_BLOCKS MOST_SAMPLED MOST_FURTHER MOST_VISITS": _ENOUGH,
        "MOST_FOLLOWED MOST_OF_FOLLOWED FIRST_FOLLOWED FEWEST_FIRST": _ENOUGH,
        "MOST_OF_LONG MOST_OF_LONG_S FEWEST_LONG": _ENOUGH,
        "DRAWN DRAWN_FOR_SLOW_PATHS": technical("shares of blocks that may differ unseen"),
    },
    "toolkit/execution/executed.py": {"MOST_PART MOST_EXECUTED MOST_SECTORS": _ENOUGH},
    "toolkit/execution/class_accesses.py": {
        "DRAWN_FOR_ACCESSES": _ENOUGH,
        "MOMENTS FEW_VISITS": technical("a resolution"),
    },
    "toolkit/execution/sampling.py": {
        "CONFIDENCE NARROW": technical("what estimates are held to"),
        "STANDARD_ERRORS_OF_FEW": documented(
            "quantiles of Student's t distribution (test_sampling)"
        ),
        "STANDARD_ERRORS": technical("intervals hold in 95% of made-up samples (test_sampling)"),
    },
    "toolkit/execution/proof.py": {
        "NOBODY": _LAYOUT,
        "MOST_CLASSES FIRST_LOOKED_AT": _ENOUGH,
    },
    "toolkit/sass/atomics.py": {
        "FEW_LINES LEAST_STORES": technical(
            "bound the lines of a tally; far below the 1,024 stores from which a line counts"
        )
    },
    "toolkit/sass/deciding_loads.py": {"STACK_POINTER": documented("the ABI of CUDA: R1")},
    "toolkit/sass/origins.py": {"SAME BLOCK_INDEX DATA": _LAYOUT},
    "toolkit/sass/regions.py": {
        "OF_PREDICATE ALL_SHARED ALL_LOCAL ALL_LANES _ALL_PREDICATES": _LAYOUT,
    },
    "analysis/traffic/groups.py": {
        "TOO_MANY": _LAYOUT,
        "MOST_ENTRIES MOST_SPREAD": _ENOUGH,
    },
    "toolkit/execution/launch_time.py": {
        "LEAST_APART": fitted("rungs of bulk copies at 8192", "DRIFT")
    },
    "toolkit/execution/representatives.py": {
        "PERIOD": technical("places of rows in a sector: blocks of each are executed")
    },
    "toolkit/execution/rung_plan.py": {
        "POINTS STEPS_AND_SECTORS TIMED_STEPS MANY_WARPS WHOLE_K": technical(
            "values of K and places of which counts are proved to be alike"
        ),
        "FULL_K_BUDGET ANCHOR_BUDGET ANCHORS APART_BUDGET TOGETHER_BUDGET TOGETHER_K": _ENOUGH,
        "PROVEN_KINDS ALL_BLOCKS_BUDGET": _ENOUGH,
    },
    "toolkit/rungs/best.py": {
        "START_CLOCKS SUMS_OF_SPLITS_CLOCKS": fitted(_TUNED),
        "SUMS_OF_WORKERS_CLOCKS SUM_OF_A_WORKER_CLOCKS": fitted(_TUNED, "sums of workers"),
        "WORKERS_PER_SM": technical("rungs with workers have two of them per SM"),
    },
    "toolkit/sass/schedule_facts.py": {
        "SHARE_AHEAD": measured("machine code of the ladder, sm_75 to sm_120: 0, or 0.56 to 0.63")
    },
    "toolkit/sass/timing_table.py": {
        "_CONTROL_BITS AFTER_COPIES PAST_L1 _OPERAND_SLOTS": _LAYOUT,
        "_DOUBLES": documented("PTX ISA: the shapes of DMMA"),
        "BANK_CLOCKS_OF_FLOATS BANK_CLOCKS_OF_HALVES BANK_CLOCKS_OF_INTEGERS": measured(
            "32 products of warps beside 1, 2 and 4 FMUL of registers of one bank, H200 "
            "(decision 174)"
        ),
    },
    "toolkit/sass/requests.py": {"GLOBAL SHARED": _LAYOUT},
    "toolkit/sass/module_variables.py": {"WORD CONSTANT_BANK": _LAYOUT},
    "toolkit/sass/printed.py": {"MOST_PRINTED": _ENOUGH},
    "toolkit/sass/textures.py": {"OF_MEMORY OF_SURFACE FIRST_HANDLE OF_ARRAY": _LAYOUT},
    "toolkit/sass/streams.py": {"THREADS MANY_SEGMENTS": _ENOUGH, "UNDONE UNDONE_LINE": _LAYOUT},
    "toolkit/execution/accesses.py": {
        "_PAIRS ALL_SECTORS": technical("bits of a mask"),
        "_SECTORS": _LAYOUT,
        "MOST_ACCESSES MOST_ACCESSES_OF_WAITING ROUNDS": _ENOUGH,
        "TAKEN_LATER": technical("puts a read behind the write that it waits for"),
        "AT_ONCE": technical("tells blocks without work from others"),
    },
    "toolkit/execution/replay.py": {
        "LATE": _UNEQUAL,
        "EQUALLY_BUSY": technical(
            "polls and guarded steps of divisions differ by less from one execution to another "
            "(decision 103)"
        ),
        "MOST_REPLAYED MOST_SAMPLED KINDS": _ENOUGH,
    },
    "toolkit/execution/schedule.py": {
        "UNEQUAL": _UNEQUAL,
        "EQUAL_BLOCKS": _ENOUGH,
        "SMS EAGER FIRST_OTHERS OTHERS": measured(f"{_PROBES} --only dealt_"),
        "LATER": measured("recorded SMs of blocks on an H200, beside the constant"),
    },
    "toolkit/sass/polls.py": {"EVERYWHERE": _LAYOUT},
    "toolkit/sass/unread_values.py": {"NO_VALUES DATA_SOURCE _PREDICATES": _LAYOUT},
    "toolkit/sass/waits.py": {"LONGEST WORD_BYTES WIDEST_RESULT _WRITTEN": _LAYOUT},
}
# Numbers that have no name: the text in which they stand, each in parentheses.
UNNAMED: Mapping[tuple[str, str], tuple[str, Evidence]] = {
    ("analysis/timing/blocks_of_sm.py", "rounds of blocks that are replayed"): (
        r"rounds = (\d+) if unlike else waves",
        measured("tests/analysis/timing/test_predict.py: lines against replays of all blocks"),
    ),
    ("analysis/timing/modelled_sm.py", "warps per scheduler up to which code stays"): (
        r"code_lines=.* if self.warps <= (\d+) \* SCHEDULERS",
        measured(f"{_PROBES}: one and two; more were not measured"),
    ),
}
# Of toolkit/sass, what executes and checks: none of it decides a time or a sector below L1.
EXECUTION = ("checker", "faults", "machine", "space", "tensor_maps", "translate")


def shown(value: Any) -> str:
    """A value as text, in one line."""
    if isinstance(value, Mapping):
        pairs = (f"{key} {shown(one)}" for key, one in value.items())
        return ", ".join(pairs) or "none"
    if isinstance(value, tuple | list):
        return ", ".join(map(shown, value))
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.{SIGNIFICANT}g}"
    return f"{int(value):,}" if isinstance(value, int | float) else " ".join(str(value).split())


# What takes the place of a number where the model runs without it: (module, name, value).
Change = tuple[str, str, Any]


def _even(lifetimes: Any, *args: Any, **options: Any) -> BlockProgress:
    """All blocks progress evenly."""
    return BlockProgress.even(np.ones(len(lifetimes)))


def _together(begins: Any, progress: BlockProgress, *args: Any) -> tuple[Any, BlockProgress]:
    """Blocks of an SM stay together."""
    return begins, progress


class _Prefer(tuple[Variant, ...]):
    """The ladder with another number in its preferences."""


def _prefer(name: str, value: float) -> _Prefer:
    changed: dict[str, Any] = {name: value}
    found = _Prefer(
        replace(
            variant,
            preferences=tuple(
                replace(one, **changed) if getattr(one, name) else one
                for one in variant.preferences
            ),
        )
        for variant in LADDER
    )
    found.__doc__ = f"{name} {shown(value)}"
    return found


SCHEDULE, TRAFFIC = "analysis.traffic.block_schedule", "analysis.traffic.l2"
TIMING, MODELLED_SM = "analysis.timing.model_runs", "analysis.timing.modelled_sm"
LAUNCH_TRAFFIC, BEST = "toolkit.execution.traffic", "toolkit.rungs.best"
SM = "analysis.hardware.sm_constants"
RULES: Mapping[str, Sequence[Change]] = {
    "HELD_BY_CONFLICTS": [(SCHEDULE, "HELD_BY_CONFLICTS", LOADS)],
    "AHEAD": [(SCHEDULE, "AHEAD", {}), (SCHEDULE, "AHEAD_WITHOUT_NEIGHBOUR", LOADS)],
    "STEPS_WITHOUT_BARRIERS": [(SCHEDULE, "STEPS_WITHOUT_BARRIERS", 1e-9)],
    "STEPS_IN_STEP": [(SCHEDULE, "STEPS_IN_STEP", 1e9)],
    "PACES_OF_COPIES": [(SCHEDULE, "PACES_OF_COPIES", 0.0)],
    "FAST_BY": [(SCHEDULE, "FAST_BY", 0.0)],
    "LIFE_ALONE": [(LAUNCH_TRAFFIC, "block_progress", _even)],
    "DRIFT": [(LAUNCH_TRAFFIC, "drifted", _together)],
    "BUSY_ALONE_THREADS": [(SCHEDULE, "BUSY_ALONE_THREADS", 1 << 20)],
    "BUSY_AHEAD_THREADS": [(SCHEDULE, "BUSY_AHEAD_THREADS", 512)],
    "SHARED_BY_COPIES": [(TRAFFIC, "SHARED_BY_COPIES", 0.0)],
    "MOST_LINES": [(LAUNCH_TRAFFIC, "MOST_LINES", 0)],
    "MERGED_STORES": [(TRAFFIC, "MERGED_STORES", 0.0)],
    "WIDE_BYTES": [(TRAFFIC, "WIDE_BYTES", NO_LIMIT)],
    "_BOTH_SIDES": [(TRAFFIC, "_BOTH_SIDES", 1.0)],
    "_DIRTY_PART": [(TRAFFIC, "_DIRTY_PART", 1.0)],
    "FAR_FROM_WRITER": [(TRAFFIC, "FAR_FROM_WRITER", 1.0)],
    "_MERGING_SMS": [(TRAFFIC, "_MERGING_SMS", 1)],
    "MEET_BY_WAITS": [(TIMING, "MEET_BY_WAITS", 0.0)],
    "DIRTY_SHARE": [(MODELLED_SM, "DIRTY_SHARE", 0.0)],
    # no wait of that kind, no limit, or what was measured
    "dram_latency": [(SM, "dram_latency", 0)],
    "dram_spread": [(SM, "dram_spread", 0)],
    "dram_scatter": [(SM, "dram_scatter", 0.0)],
    "branch_clocks": [(SM, "branch_clocks", 0)],
    "fetch_latency": [(SM, "fetch_latency", 0)],
    "flag_latency": [(SM, "flag_latency", 0)],
    "sector_clocks": [(SM, "sector_clocks", 1.0)],
    "miss_clocks": [(SM, "miss_clocks", 0.0)],
    "BYPASS_ROOM": [(SM_CODE, "BYPASS_ROOM", 0)],
    "share_of_peak": [(BEST, "LADDER", _prefer("share_of_peak", 1.0))],
    "START_CLOCKS": [(BEST, "START_CLOCKS", 0)],
    "SUMS_OF_SPLITS_CLOCKS": [(BEST, "SUMS_OF_SPLITS_CLOCKS", 0)],
    "sums of workers": [
        (BEST, name, 0) for name in ("SUMS_OF_WORKERS_CLOCKS", "SUM_OF_A_WORKER_CLOCKS")
    ],
    "fewest_products": [(BEST, "LADDER", _prefer("fewest_products", 0))],
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One number, or several under one name."""

    name: str
    value: str
    file: str
    kind: str
    source: str
    rule: str | None = None


def numbers_in(path: Path) -> dict[str, Any]:
    """The constants of a Python file, or of a C file, that are written with a number."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".c", ".h"):
        return dict(_numbers_of_c(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)))
    module = import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return {name: getattr(module, name) for name in _names_of_numbers(ast.parse(text))}


def _numbers_of_c(text: str) -> Iterator[tuple[str, str]]:
    for body in re.findall(r"\benum \{(.*?)\}", text, re.DOTALL):
        yield from re.findall(r"(\w+) = (-?\d[^,]*?)\s*(?:,|$)", body)
    yield from re.findall(r"^#define (\w+) (\(?-?\d.*?)\s*$", text, re.MULTILINE)
    yield from re.findall(r"^static const \w+ (\w+) = (.+?);", text, re.MULTILINE)


def _names_of_numbers(module: ast.Module) -> Iterator[str]:
    for statement in module.body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        else:
            continue
        assert statement.value is not None
        names = [one for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
        if _has_number(statement.value):
            yield from (one.id for one in names if one.id.isupper())


def _has_number(node: ast.AST) -> bool:
    """True if an expression has a number, other than an index."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    inside = [node.value] if isinstance(node, ast.Subscript) else ast.iter_child_nodes(node)
    return any(map(_has_number, inside))


def files() -> list[str]:
    """The files whose constants need a row: of the table, of the model in C, of toolkit/sass."""
    found = [
        *sorted((ROOT / SM_CODE).glob("*.[ch]")),
        *(
            path
            for path in sorted((ROOT / "toolkit" / "sass").glob("*.py"))
            if path.stem not in (*EXECUTION, "__init__")
        ),
    ]
    return list(dict.fromkeys([*TABLE, *(path.relative_to(ROOT).as_posix() for path in found)]))


def evidence_of(file: str) -> dict[str, Evidence]:
    """The rows of a file, by name."""
    table = TABLE.get(file, {})
    return {name: one for names, one in table.items() for name in names.split()}


def rows() -> list[Row]:
    """All rows that have a number, in the order of the files."""
    return [
        *_rows_of_files(),
        *_rows_without_a_name(),
        *_of_ladder(),
        *_of_architectures(),
        *_of_devices(),
    ]


def _rows_of_files() -> Iterator[Row]:
    for file in TABLE:
        known = evidence_of(file)
        for name, value in numbers_in(ROOT / file).items():
            if name in known:
                yield _row(file, name, value, known[name])


def _row(file: str, name: str, value: Any, why: Evidence) -> Row:
    rule = why.rule or (name if name in RULES else None)
    return Row(
        name=name, value=shown(value), file=file, kind=why.kind, source=why.source, rule=rule
    )


def _rows_without_a_name() -> Iterator[Row]:
    for (file, name), (pattern, why) in UNNAMED.items():
        match = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"))
        if match is not None:
            yield _row(file, name, match.groups(), why)


def _of_ladder() -> Iterator[Row]:
    for variant in LADDER:
        for one in variant.preferences:
            with_these = " ".join([variant.name, *(f"{k}={v}" for k, v in one.parameters.items())])
            for name in ("share_of_peak", "fewest_products"):
                if value := getattr(one, name):
                    why = fitted(_TUNED, name)
                    yield _row("kernels/ladder.py", f"{name} of {with_these}", value, why)


def _of_architectures() -> Iterator[Row]:
    for architecture, constants in CONSTANTS.items():
        taken, file = 0, f"{SM_VALUES}/{architecture}{SUFFIX}"
        for name, entry in constants.entries.items():
            if entry.kind == "taken over":
                taken += 1
                continue
            rule = name if constants.is_fitted and name in RULES else None
            of_architecture = name if constants.is_fitted else f"{architecture} {name}"
            why = Evidence(kind=entry.kind, source=entry.source, rule=rule)
            yield _row(file, of_architecture, entry.value, why)
        if taken:
            why = Evidence(kind="taken over", source="not measured on this architecture")
            value = f"as on {constants.taken_from}"
            yield _row(file, f"{architecture}: {taken} others", value, why)


def _of_devices() -> Iterator[Row]:
    for key, device in DEVICES.items():
        for name, source in device.sources.items():
            value = getattr(device, name)
            if isinstance(value, int | float):
                why = Evidence(kind=_kind(source), source=source)
                yield _row(DEVICE_VALUES, f"{key} {name}", value, why)


def _kind(source: str) -> str:
    """The kind that a source in the code speaks of."""
    if "fitted" in source:
        return "fitted"
    return "measured" if re.search("measured|[Mm]icrobenchmark|reported", source) else "documented"


def without(rule: str) -> str:
    """Text that names the replacement of a rule in its trial."""
    return ", ".join(
        value.__doc__.rstrip(".")
        if callable(value) or isinstance(value, _Prefer)
        else shown(value)
        if len(RULES[rule]) == 1
        else f"{name} {shown(value)}"
        for _, name, value in RULES[rule]
    )


def values_of(rule: str, every: Sequence[Row]) -> dict[str, str]:
    """The numbers that a rule consists of: its errors are those of these values."""
    return {row.name: row.value for row in every if row.rule == rule}


def problems(every: Sequence[Row], errors: Mapping[str, Any]) -> Iterator[str]:
    """Problems of the table, each with the remedy."""
    here = "benchmarks/constants.py"
    for file in files():
        if not (ROOT / file).exists():
            yield f"{file} is gone: move its rows in TABLE of {here} to where its numbers went"
            continue
        found, known = numbers_in(ROOT / file), evidence_of(file)
        for name in found.keys() - known.keys():
            yield f"{file}: {name} has no row: say in TABLE of {here} what it rests on"
        for name in known.keys() - found.keys():
            yield f"{file} has no number {name}: rename or remove its row in TABLE of {here}"
    for file, name in UNNAMED.keys() - {(row.file, row.name) for row in every}:
        yield f"{file} has no {name} any more: change or remove its row in UNNAMED of {here}"
    for row in every:
        if row.kind == "fitted":
            yield from _missing_errors(row, every, errors)


def _missing_errors(row: Row, every: Sequence[Row], errors: Mapping[str, Any]) -> Iterator[str]:
    name = f"{row.file}: {row.name} is fitted"
    if row.rule is None:
        yield f"{name}, and nothing in RULES takes its place"
        return
    of_choice = any(module == BEST for module, *_ in RULES[row.rule])
    values = values_of(row.rule, every)
    for part in PARTS_OF_CHOICE if of_choice else PARTS:
        words = part.split()
        remedy = (
            f"python -m benchmarks.rules_on_trial --part {words[0]} --device {words[1]} "
            f"--only '{row.rule}' --errors"
        )
        found = errors.get(part, {}).get(row.rule)
        if found is None:
            yield f"{name}, and its error with and without it on {part} is not known: {remedy}"
        elif found["values"] != values:
            yield (
                f"{name}: its errors on {part} were found with {found['values']}, the code has "
                f"{values}: {remedy}"
            )


def recorded_errors() -> dict[str, Any]:
    """By part and rule: `values`, and what `rules_on_trial.summary` says; empty without a file."""
    if not ERRORS.exists():
        return {}
    found: dict[str, Any] = recordings.read(ERRORS)
    return found


UNCHANGED = "changes nothing"
HERE = " (docs/validation.md)"  # the document that has the table


def error_of(found: Mapping[str, Any] | None) -> str:
    """The errors of a rule on a part, in one line."""
    if found is None:
        return "–"
    parts = [
        f"{what} {one['with']:.1%} → {one['without']:.1%} ({one['cells']})"
        for what, one in found.items()
        if what != "values" and one["cells"]
    ]
    return ", ".join(parts) or UNCHANGED


def table(every: Sequence[Row], errors: Mapping[str, Any]) -> Iterator[str]:
    """A line for each number, and below a rule's last one its errors."""
    last = {row.rule: row for row in every}
    for row in every:
        yield f"{row.file}: {row.name} = {row.value}: {row.kind}, {row.source}"
        if row.rule is not None and last[row.rule] is row:
            yield f"    instead: {without(row.rule)}"
            for part, found in errors.items():
                if row.rule in found:
                    yield f"    {part}: {error_of(found[row.rule])}"


def markdown(every: Sequence[Row], errors: Mapping[str, Any]) -> Iterator[str]:
    """The rules with their numbers and errors, for docs/validation.md; what changes none at last.

    A rule has errors on parts of launches, or on the choice of a rung.
    """
    yield "| numbers | kind | on | instead | errors on *select*, or of the choice | on *fit* |"
    yield "|---|---|---|---|---|---|"
    unchanged = []
    for rule in RULES:
        of_rule = [row for row in every if row.rule == rule]
        numbers = ", ".join(f"`{row.name}` {row.value}" for row in of_rule)
        select, fit = (error_of(errors.get(part, {}).get(rule)) for part in PARTS)
        if rule in errors.get(PARTS_OF_CHOICE[0], {}):
            select = error_of(errors[PARTS_OF_CHOICE[0]][rule])
        elif {select, fit} == {UNCHANGED}:
            unchanged.append(numbers)
            continue
        kinds = ", ".join(dict.fromkeys(row.kind for row in of_rule))
        sources = "; ".join(dict.fromkeys(row.source.replace(HERE, "") for row in of_rule))
        yield f"| {numbers} | {kinds} | {sources} | {without(rule)} | {select} | {fit} |"
    yield ""
    yield f"Without these no time or counter changes by more than 1%: {'; '.join(unchanged)}."


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", choices=KINDS, help="numbers of this kind alone")
    parser.add_argument("--markdown", action="store_true", help="the rules, for the document")
    chosen = parser.parse_args(argv)
    every, errors = rows(), recorded_errors()
    named = [row for row in every if chosen.kind in (None, row.kind)]
    print("\n".join((markdown if chosen.markdown else table)(named, errors)))
    missing = list(problems(every, errors))
    for problem in missing:
        print(problem, file=sys.stderr)
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
