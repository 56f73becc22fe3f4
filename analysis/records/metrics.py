"""Metrics derived from counters of a launch; None if they are not defined for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from analysis.records.counters import InstructionCounts
from analysis.records.description import Format, Group, Metric, MetricUnit
from analysis.records.operations import half_operations

WARP_INSTRUCTIONS = "smsp__inst_executed.sum"
THREAD_INSTRUCTIONS = "smsp__thread_inst_executed.sum"
FFMA, FADD, FMUL, DFMA, DADD, DMUL = (
    f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum"
    for name in ("ffma", "fadd", "fmul", "dfma", "dadd", "dmul")
)
HMMA = "sm__inst_executed_pipe_tensor_op_hmma.sum"
L1_REQUESTS, L1_SECTORS = (
    {
        (space, short): f"l1tex__t_{quantity}_pipe_lsu_mem_{space}_op_{short}.sum"
        for space in ("global", "local")
        for short in ("ld", "st")
    }
    for quantity in ("requests", "sectors")
)
GLOBAL_LOAD_SECTORS = L1_SECTORS["global", "ld"]
SHARED_INSTRUCTIONS, SHARED_WAVEFRONTS, BANK_CONFLICTS = (
    tuple(f"{what}_{short}.sum" for short in ("ld", "st"))
    for what in (
        "smsp__sass_inst_executed_op_shared",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op",
    )
)
L2_TRAFFIC = ("lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_op_write.sum")
DRAM_TRAFFIC = ("dram__bytes_read.sum", "dram__bytes_write.sum")

# Roofline: a product of 32 × 32 matrices and more is above, copies, reductions, matrix-vector
# products and stencils of few points are below.
ARITHMETIC_FLOP_PER_BYTE = 4.0

Counters = Mapping[str, int]


def total(counters: Counters, *names: str) -> int:
    """Sum of some counters; a missing one counts as 0."""
    return sum(counters.get(name, 0) for name in names)


def fp32_flop(counters: Counters) -> int:
    """Single-precision operations of the lanes, a fused multiply-add counted as two."""
    return 2 * total(counters, FFMA) + total(counters, FADD, FMUL)


# FLOP per lane, but of half precision.
_FLOP = {
    "FFMA": 2,
    "FFMA32I": 2,
    "FADD": 1,
    "FADD32I": 1,
    "FMUL": 1,
    "FMUL32I": 1,
    "FFMA2": 4,
    "FADD2": 2,
    "FMUL2": 2,
    "DFMA": 2,
    "DADD": 1,
    "DMUL": 1,
}


def flop(instructions: Iterable[InstructionCounts]) -> int:
    """Floating-point operations of all lanes in any precision, excluding those of tensor cores."""
    return sum(
        (_FLOP.get(one.opcode, 0) or half_operations(one.opcode, one.text)) * one.predicated
        for one in instructions
    )


def is_arithmetic(instructions: Iterable[InstructionCounts], counters: Counters) -> bool:
    """True if FLOP/s describe a launch: a matrix product, but no copy, reduction or stencil."""
    moved = total(counters, *DRAM_TRAFFIC)
    return flop(instructions) >= ARITHMETIC_FLOP_PER_BYTE * moved > 0


# Descriptions.


@dataclass(frozen=True, kw_only=True)
class Derived(Metric):
    """A metric that follows from the counters of a launch: a sum of some, or a quotient of sums."""

    #: Tags of the counters to sum.
    tags: tuple[str, ...]
    #: Tags of those whose sum divides it; empty if nothing does.
    by: tuple[str, ...] = ()
    #: Tag of the counter below which the table of a launch shows it; empty if nowhere.
    below: str = ""

    def of(self, counters: Counters) -> float | None:
        """Its value, None where the counters say nothing of it. One that is not there is 0."""
        if not self.by:
            return total(counters, *self.tags)
        divisor = total(counters, *self.by)
        return total(counters, *self.tags) / divisor if divisor else None

    def is_known(self, counters: Counters) -> bool:
        """True if all counters are there that it follows from."""
        return counters.keys() >= {*self.tags, *self.by}


FFMA_SHARE = Derived(
    tag="ffma_share",
    label="FFMA share",
    short="FFMA",
    unit=MetricUnit.SHARE,
    format=Format.PERCENT,
    group=Group.INSTRUCTIONS,
    hint="of what the lanes executed; the rest feeds the multiply-adds",
    tags=(FFMA,),
    by=(THREAD_INSTRUCTIONS,),
)
SECTORS_LOADED = Derived(
    tag="sectors_loaded",
    label="sectors loaded",
    unit=MetricUnit.SECTORS,
    format=Format.DIGITS,
    group=Group.GLOBAL,
    hint="from global memory",
    tags=(GLOBAL_LOAD_SECTORS,),
)
WAVEFRONTS = Derived(
    tag="shared_wavefronts",
    label="shared wavefronts",
    unit=MetricUnit.WAVEFRONTS,
    format=Format.DIGITS,
    group=Group.SHARED,
    hint="of loads and stores",
    tags=SHARED_WAVEFRONTS,
)
CONFLICT_SHARE = Derived(
    tag="bank_conflict_share",
    label="bank conflicts",
    unit=MetricUnit.SHARE,
    format=Format.PERCENT,
    group=Group.SHARED,
    hint="of the wavefronts of shared memory",
    tags=BANK_CONFLICTS,
    by=SHARED_WAVEFRONTS,
)


def _derived() -> Iterable[Derived]:
    yield Derived(
        tag="active_threads_per_instruction",
        label="active threads per warp instruction",
        unit=MetricUnit.THREADS_PER_INSTRUCTION,
        format=Format.OF_A_WARP,
        group=Group.INSTRUCTIONS,
        tags=(THREAD_INSTRUCTIONS,),
        by=(WARP_INSTRUCTIONS,),
        below=THREAD_INSTRUCTIONS,
    )
    for bits, (multiply_add, *others) in ((32, (FFMA, FADD, FMUL)), (64, (DFMA, DADD, DMUL))):
        yield Derived(
            tag=f"flop_fp{bits}",
            label=f"FP{bits} FLOP outside the tensor cores",
            unit=MetricUnit.OPERATIONS,
            format=Format.DIGITS,
            group=Group.INSTRUCTIONS,
            tags=(multiply_add, multiply_add, *others),  # a multiply-add is two
            below=multiply_add,
        )
    yield FFMA_SHARE
    yield SECTORS_LOADED
    words = {"ld": "loads", "st": "stores"}
    for (space, short), sectors in L1_SECTORS.items():
        yield Derived(
            tag=f"sectors_per_request_{space}_{short}",
            label="sectors per request",
            unit=MetricUnit.SECTORS_PER_REQUEST,
            format=Format.COUNT,
            group=Group(f"{space} memory"),
            hint=f"of {space} {words[short]}",
            tags=(sectors,),
            by=(L1_REQUESTS[space, short],),
            below=sectors,
        )
    yield WAVEFRONTS
    yield CONFLICT_SHARE
    for short, wavefronts, conflicts, issued in zip(
        words, SHARED_WAVEFRONTS, BANK_CONFLICTS, SHARED_INSTRUCTIONS, strict=True
    ):
        yield Derived(
            tag=f"bank_conflicts_per_access_{short}",
            label="bank conflicts per access",
            unit=MetricUnit.CONFLICTS_PER_ACCESS,
            format=Format.COUNT,
            group=Group.SHARED,
            hint=f"of shared {words[short]}",
            tags=(conflicts,),
            by=(issued,),
            below=wavefronts,
        )


METRICS: Mapping[str, Derived] = MappingProxyType({one.tag: one for one in _derived()})
