"""Metrics derived from counters of a launch; None if they are not defined for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from analysis.records.counters import InstructionCounts

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


# FLOP per lane. Half-precision instructions that only move or convert a value do not count.
_FLOP = {
    **{"FFMA": 2, "FFMA32I": 2, "FADD": 1, "FADD32I": 1, "FMUL": 1, "FMUL32I": 1},
    **{"FFMA2": 4, "FADD2": 2, "FMUL2": 2},
    **{"DFMA": 2, "DADD": 1, "DMUL": 1},
    **{"HFMA2": 4, "HADD2": 2, "HMUL2": 2},
}
_NO_ARITHMETIC = ("-RZ, RZ", ", -RZ, ")  # HFMA2 with which a constant is loaded, HADD2.F32 of x + 0


def flop(instructions: Iterable[InstructionCounts]) -> int:
    """Floating-point operations of all lanes in any precision, excluding those of tensor cores."""
    return sum(
        _FLOP.get(one.opcode, 0) * one.predicated
        for one in instructions
        if not (one.opcode.startswith("H") and any(mark in one.text for mark in _NO_ARITHMETIC))
    )


def ffma_share(counters: Counters) -> float | None:
    """Fraction of the executed thread instructions that are FFMA; None if nothing was executed."""
    executed = total(counters, THREAD_INSTRUCTIONS)
    return total(counters, FFMA) / executed if executed else None


def conflict_share(counters: Counters) -> float | None:
    """Fraction of shared-memory wavefronts that bank conflicts cause; None without wavefronts."""
    wavefronts = total(counters, *SHARED_WAVEFRONTS)
    return total(counters, *BANK_CONFLICTS) / wavefronts if wavefronts else None


def is_arithmetic(instructions: Iterable[InstructionCounts], counters: Counters) -> bool:
    """True if FLOP/s describe a launch: a matrix product does, a copy or a stencil does not."""
    moved = total(counters, *(f"dram__bytes_{way}.sum" for way in ("read", "write")))
    return flop(instructions) >= ARITHMETIC_FLOP_PER_BYTE * moved > 0
