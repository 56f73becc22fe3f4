"""Metrics: what a few counters together say of a launch, None where they say nothing."""

from __future__ import annotations

from collections.abc import Mapping

WARP_INSTRUCTIONS = "smsp__inst_executed.sum"
THREAD_INSTRUCTIONS = "smsp__thread_inst_executed.sum"
FFMA, FADD, FMUL = (
    f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum" for name in ("ffma", "fadd", "fmul")
)
GLOBAL_LOAD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
SHARED_WAVEFRONTS, BANK_CONFLICTS = (
    tuple(f"l1tex__data_{what}_mem_shared_op_{short}.sum" for short in ("ld", "st"))
    for what in ("pipe_lsu_wavefronts", "bank_conflicts_pipe_lsu")
)

Counters = Mapping[str, int]


def total(counters: Counters, *names: str) -> int:
    """The sum of some counters; one that is not there is 0."""
    return sum(counters.get(name, 0) for name in names)


def fp32_flop(counters: Counters) -> int:
    """Single-precision operations of the lanes, a fused multiply-add counted as two."""
    return 2 * total(counters, FFMA) + total(counters, FADD, FMUL)


def ffma_share(counters: Counters) -> float | None:
    """How much of what the lanes executed is multiply-adds, the rest being what feeds them."""
    executed = total(counters, THREAD_INSTRUCTIONS)
    return total(counters, FFMA) / executed if executed else None


def conflict_share(counters: Counters) -> float | None:
    """How many of the wavefronts of shared memory are there because of bank conflicts."""
    wavefronts = total(counters, *SHARED_WAVEFRONTS)
    return total(counters, *BANK_CONFLICTS) / wavefronts if wavefronts else None
