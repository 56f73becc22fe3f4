"""Runs of the model with fewer effects, for the steps between nominal peak and predicted time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from numpy.typing import NDArray

from analysis.sm import Machine, side_by_side
from analysis.timing.model_runs import blocks_run
from analysis.timing.modelled_sm import ModelledSm
from analysis.timing.predicted import Cause
from analysis.timing.sm_totals import SmTotals

WORK_LEFT_OUT = 2  # clocks of an omitted latency; not 0, so that each event still occurs
AMPLE = 1e9  # bytes per clock: no limit


@dataclass(frozen=True, kw_only=True)
class GapClocks:
    """Clocks of four runs of the model; each run includes the effects of the one before it."""

    issue: float
    ports: float
    no_conflicts: float
    wavefronts: float


# Steps of the gap, each with the field of `GapClocks` that includes it.
GAP = (
    (
        Cause.INSTRUCTIONS,
        "issue",
        "issue slots of other instructions than multiply-adds, and fixed latencies",
    ),
    (
        Cause.PORTS,
        "ports",
        "register-bank conflicts, and issue slots in which loads write registers",
    ),
    (
        Cause.WAVEFRONTS,
        "no_conflicts",
        "wavefronts of shared memory and L1, without bank conflicts",
    ),
    (Cause.CONFLICTS, "wavefronts", "additional wavefronts of shared memory"),
)


def gap_runs(sm: ModelledSm, begun: list[Any]) -> GapClocks:
    """Clocks of the runs with fewer effects, for the smallest number of blocks.

    The clocks do not depend on the traffic below L1. Each run is appended to `begun`, so that
    `analysis.sm.end_runs` can end it. Raises UnsteadyError as `Sample.extrapolated` does.
    """
    streams, few = sm.work.sample.replayed, sm.numbers_of_blocks[:1]
    conflict = [has_conflicts(sm.code, one.steps) for one in streams]
    jobs = {
        (name, at): partial(blocks_run, sm, machine, streams[at], few, begun)
        for name, machine in variations(sm.machine).items()
        for at in range(len(streams))
        if name != "no_conflicts" or conflict[at]
    }
    runs = side_by_side(jobs.values(), 1, begun)  # beside the traffic model
    found = {key: ran for key, (ran,) in zip(jobs, runs, strict=True)}

    def clocks(name: str) -> float:
        ran = [found.get((name, at), found["wavefronts", at]) for at in range(len(streams))]
        return sm.work.sample.extrapolated([SmTotals.of(one) for one in ran]).clocks

    return GapClocks(**{name: clocks(name) for _, name, _ in GAP})


def has_conflicts(code: NDArray[Any], steps: NDArray[Any]) -> bool:
    """True if any access to shared memory has bank conflicts."""
    free = code["free_clocks"][steps["pc"]]
    return bool(((free > 0) & (steps["clocks"] > free)).any())


def variations(machine: Machine) -> dict[str, Machine]:
    """Machines with fewer effects, by the field of `GapClocks`. None includes L2 or DRAM."""
    issue = replace(
        machine,
        bank_count=0,
        write_slots=0.0,
        operand_clocks=0,
        block_interval=0,
        first_start=0,
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
        "no_conflicts": replace(wavefronts, free_conflicts=1),
        "ports": ports,
        "issue": issue,
    }
