"""Clocks of a loop on the model of an SM, with nothing but its own instructions to wait for."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.hardware.sm_constants import SmConstants, constants_for
from analysis.sm import LINE_BYTES, SCHEDULERS, STEP, Kind, Machine, Numbers, Ran, Streams, run
from analysis.timing.predict import with_clocks
from toolkit.reorder.blocks import Loop

TURNS = (8, 24)  # of a loop: the difference has neither the beginning nor the end
TAKEN = 1  # of a step: a jump that was taken
SHARED_WAVEFRONTS = {1: 1, 2: 1, 4: 2}  # of a load by the registers that it writes, no conflicts


@dataclass(frozen=True, kw_only=True)
class LoopClocks:
    """Clocks of a scheduler for one turn of a loop by all its warps, and those that it lost."""

    clocks: float
    lost: dict[str, float]

    @property
    def bank_clocks(self) -> float:
        return self.lost["register banks"]

    @property
    def other_clocks(self) -> float:
        return sum(self.lost.values()) - self.bank_clocks


def loop_clocks(
    code: NDArray[Any], loop: Loop, architecture: str, *, warps_per_scheduler: int
) -> LoopClocks:
    """How long a turn of a loop takes each scheduler, all its warps together.

    `code` is the table of `toolkit.sass.timing_table`. Every instruction of the loop is executed,
    whatever its guard; shared memory has no conflicts, and global accesses touch no lines.
    """
    constants = constants_for(architecture)
    table, machine = with_clocks(code, constants), _machine(constants)
    few, many = (
        _ran(table, loop, turns, machine, warps_per_scheduler * SCHEDULERS) for turns in TURNS
    )
    turns = TURNS[1] - TURNS[0]
    return LoopClocks(
        clocks=(many.clocks - few.clocks) / turns,
        lost={name: (many.lost[name] - few.lost[name]) / turns / SCHEDULERS for name in many.lost},
    )


def _machine(constants: SmConstants) -> Machine:
    """The SM of an architecture, whose code is there and whose blocks have begun."""
    numbers = {number.name: getattr(constants, number.name) for number in fields(Numbers)}
    return Machine(
        **numbers | {"fetch_latency": 0, "fetch_clocks": 0},
        slots=1,
        l1_lines=constants.l1_bytes // LINE_BYTES,
        code_lines=0,
        wavefront_clocks=1.0,
        dram_bytes_per_clock=1.0,  # a loop of multiply-adds reads shared memory alone
    )


def _ran(code: NDArray[Any], loop: Loop, turns: int, machine: Machine, warps: int) -> Ran:
    return run(code, _streams(code, loop, turns, warps), [0], machine)


def _streams(code: NDArray[Any], loop: Loop, turns: int, warps: int) -> Streams:
    turn = np.zeros(loop.end - loop.start, dtype=STEP)
    turn["pc"] = np.arange(loop.start, loop.end)
    body = code[loop.start : loop.end]
    for step, row in zip(turn, body, strict=True):
        if row["kind"] == Kind.SHARED_LOAD:
            step["clocks"] = SHARED_WAVEFRONTS.get(int(row["registers"]), 1)
    turn["flags"][-1] = TAKEN
    steps = np.tile(turn, turns)
    return Streams(
        steps=np.tile(steps, warps),
        lines=np.zeros(0, dtype=np.uint64),
        first_step=np.arange(warps, dtype=np.uint64) * np.uint64(len(steps)),
        first_line=np.zeros(warps, dtype=np.uint64),
        first_warp=np.array([0, warps]),
    )
