"""Blocks that wait for each other, executed in time.

How often a loop polls, how far a block looks back, and how often a compare-and-swap fails depend on
when each warp asks. Here all resident blocks run side by side, each warp by a clock of its own: an
instruction waits for its operands, a request for L2 and for the slice that serves it. Shared units
of an SM are left out, so that the result is a lower bound on the time, that of the longest path of
waits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.hardware.sm_constants import SmConstants
from analysis.sm import NO_SCOREBOARD, Kind, Unit
from toolkit.machine_code.instruction import Instruction
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.core.binding import PACE, SCOREBOARDS
from toolkit.sass.isa.memory import is_strong
from toolkit.sass.machine import ticks_in_time
from toolkit.sass.timing_table import machine_code
from toolkit.sass.waits import loops

TICKS = 16  # of a clock
# Clocks for which warps run one after the other: a part of the latency of what they exchange.
QUANTUM, QUANTUM_OF_SHARED = 64, 4
# Clocks of the load/store unit for a load of shared memory or an exchange: on an H200, 32 warps
# that make 8 sums each, at addresses of their own, take 4.6 per sum, in long loops 3.7.
CLOCKS_OF_SHARED = 2.3
# Clocks of a slice of L2 for a load that passes L1: on an H200, 1,056 threads that load one number
# take 0.51 per load (one_number_loads). If they add to it in turn, an addition and a load take 4.5,
# of which the load waits 2.6 for the addition (LOAD_AFTER_ADD of toolkit/sass/core/core.h).
CLOCKS_OF_POLLS = 0.53
# A launch that executes more is not followed to its end: about 10 s of a core.
MOST_INSTRUCTIONS = 60_000_000
_SWAPS = {"CAS", "CAST", "EXCH"}
# Arithmetic units, and opcodes of others, whose instructions no other warp can observe. What loads
# of shared memory find is ordered by barriers, or by mbarriers, which are not among them.
_ARITHMETIC = {Unit.FMA, Unit.FMA_HEAVY, Unit.FMA_WIDE, Unit.HALF, Unit.FP64}
_PRIVATE = {
    *("LDS", "LDSM", "SHFL", "MOV", "SEL", "IADD3", "LOP3", "LEA", "SHF", "PRMT", "ISETP"),
    *("FSETP", "PLOP3", "FMNMX", "MUFU", "I2F", "F2F", "F2FP", "HMMA", "IMMA"),
    *("IABS", "VIMNMX", "LDC", "ULDC", "R2UR", "NOP", "PMTRIG"),
    *("UMOV", "UIADD3", "ULOP3", "ULEA", "USHF", "UISETP"),
}
_AT_L2 = ("LD", "LDG", "ATOM", "ATOMG", "RED", "REDG")


def waits_for_other_blocks(kernel: Kernel) -> bool:
    """True if a loop asks for what other blocks write, or exchanges what they may have changed."""
    code = kernel.instructions
    return any(_asks_others(code[index]) for loop in loops(code) for index in loop)


def _asks_others(one: Instruction) -> bool:
    if one.opcode in ("LD", "LDG"):
        return is_strong(one)
    return one.opcode in ("ATOM", "ATOMG") and bool(_SWAPS & set(one.modifiers))


def repeats_sums(kernel: Kernel) -> bool:
    """True if a loop repeats an exchange in shared memory until no other warp has come before."""
    code = kernel.instructions
    return any(
        code[k].opcode == "ATOMS" and _SWAPS & set(code[k].modifiers)
        for loop in loops(code)
        for k in loop
    )


def with_warps_in_time(
    bound: BoundLaunch, kernel: Kernel, constants: SmConstants, clock_hz: float
) -> BoundLaunch:
    """Copy of a bound launch whose warps run side by side, each by its own clock, so that exchanges
    in shared memory fail as on a GPU.
    """
    found = paces(kernel, constants, clock_hz)
    of_shared = [one.opcode in ("LDS", "ATOMS") for one in kernel.instructions]
    found["of_unit"] = np.where(of_shared, round(TICKS * CLOCKS_OF_SHARED), 0)
    found["is_of_sm"] = of_shared
    found["is_private"] &= ~np.array(of_shared)
    return replace(bound, paces=found, quantum=TICKS * QUANTUM_OF_SHARED)


@dataclass(frozen=True)
class Waits:
    """Clocks until all blocks have ended that wait for each other, if nothing else counted.

    Fewer clocks if the launch was not followed to its end.
    """

    clocks: float = 0.0
    is_whole: bool = True


def clocks_of_waits(
    bound: BoundLaunch, kernel: Kernel, constants: SmConstants, clock_hz: float
) -> Waits:
    """Clocks until all blocks have ended, with their warps executed side by side.

    `bound` is used up. Raises FaultError.
    """
    in_time = replace(
        bound,
        paces=paces(kernel, constants, clock_hz),
        quantum=TICKS * QUANTUM,
        at_once=True,
        most_accesses=0,
    )
    start = round(TICKS * constants.block_start)
    ticks, is_whole = ticks_in_time(in_time, start, MOST_INSTRUCTIONS)
    return Waits(ticks / TICKS, is_whole)


def paces(kernel: Kernel, constants: SmConstants, clock_hz: float) -> NDArray[np.void]:
    """Return the clocks that a warp takes for each instruction (`core.PACE`)."""
    c, code = constants, machine_code(kernel)
    found = np.zeros(len(code), dtype=PACE)
    found["wait"] = code["wait"]
    found["scoreboard"] = np.where(
        code["write_barrier"] == NO_SCOREBOARD, SCOREBOARDS, code["write_barrier"]
    )
    stall = np.maximum(1, code["stall"].astype(np.float64))
    stall[code["kind"] == Kind.FENCE] += c.fence_clocks
    stall[code["kind"] == Kind.BRANCH] += c.branch_clocks
    latency = np.full(len(code), float(c.latencies[Unit.XU]))
    latency[np.isin(code["kind"], (Kind.SHARED_LOAD, Kind.SHARED_STORE))] = c.shared_latency
    latency[np.isin(code["kind"], (Kind.BULK_LOAD, Kind.BULK_STORE))] = c.l2_latency
    of_unit = np.zeros(len(code))
    for index, instruction in enumerate(kernel.instructions):
        if instruction.opcode in _AT_L2:
            latency[index] = _latency(instruction, c)
            if instruction.opcode not in ("LD", "LDG"):
                of_unit[index] = c.atomic_part_s * clock_hz
            elif is_strong(instruction):
                found["is_load"][index] = True
                of_unit[index] = CLOCKS_OF_POLLS
        elif instruction.opcode == "ATOMS":
            latency[index] = c.shared_atomic_latency
    found["is_private"] = [
        (unit in _ARITHMETIC or one.opcode in _PRIVATE) and not clocks
        for one, unit, clocks in zip(kernel.instructions, code["unit"], of_unit, strict=True)
    ]
    for name, clocks in (("stall", stall), ("latency", latency), ("of_unit", of_unit)):
        found[name] = np.rint(TICKS * clocks)
    return found


def _latency(instruction: Instruction, c: SmConstants) -> float:
    if instruction.opcode not in ("LD", "LDG"):
        return c.atomic_latency
    return c.l2_latency + (0 if is_strong(instruction) else c.dram_latency)
