"""Steps between nominal peak and predicted time: variations of the model of an SM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from analysis.sm import Machine
from analysis.timing.predicted import Cause

WORK_LEFT_OUT = 2  # clocks of an omitted latency; not 0, so that each event still occurs
AMPLE = 1e9  # bytes per clock: no limit

# Steps of the gap: each is a run of the model that includes more effects than the previous one.
GAP = (
    (
        Cause.INSTRUCTIONS,
        "issue",
        "issue slots that are not multiply-adds, and dependences of fixed latency",
    ),
    (Cause.PORTS, "ports", "conflicts of register banks, and slots that loads take to write"),
    (
        Cause.WAVEFRONTS,
        "no conflicts",
        "shared memory and L1 as fast as they take wavefronts, without bank conflicts",
    ),
    (Cause.CONFLICTS, "wavefronts", "further wavefronts of shared memory"),
)


def has_conflicts(code: NDArray[Any], steps: NDArray[Any]) -> bool:
    """True if an access to shared memory takes longer than without bank conflicts."""
    free = code["free_clocks"][steps["pc"]]
    return bool(((free > 0) & (steps["clocks"] > free)).any())


def variations(machine: Machine) -> dict[str, Machine]:
    """The model with fewer effects, by name. L2 and DRAM have no part in any of them."""
    issue = replace(
        machine,
        bank_count=0,
        write_slots=0.0,
        operand_clocks=0,
        block_interval=0,
        register_latency=0,
        barrier_unit_clocks=0.0,
        free_memory=1,
        **dict.fromkeys(
            ("shared_latency", "l1_latency", "l2_latency", "dram_latency", "block_start"),
            WORK_LEFT_OUT,
        ),
        dram_scatter=0.0,
        flag_clocks=0,
        **dict.fromkeys(
            ("atomic_latency", "shared_atomic_latency", "barrier_latency"), WORK_LEFT_OUT
        ),
        barrier_per_warp=0,
        fetch_latency=0,
        fetch_clocks=0,
        code_lines=0,
        miss_clocks=0.0,
        l2_bytes_per_clock=AMPLE,
        write_bytes_per_clock=AMPLE,
        dram_bytes_per_clock=AMPLE,
        dram_share=0.0,
        dram_write_share=0.0,
        waiting_share=0.0,
    )
    ports = replace(issue, bank_count=machine.bank_count, write_slots=machine.write_slots)
    wavefronts = replace(ports, free_memory=0, operand_clocks=machine.operand_clocks)
    return {
        "wavefronts": wavefronts,
        "no conflicts": replace(wavefronts, free_conflicts=1),
        "ports": ports,
        "issue": issue,
    }
