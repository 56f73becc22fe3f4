"""Schedule of a kernel, read from its machine code: how and when tiles reach shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from analysis.access import Copies
from toolkit.machine_code.instruction import RZ, Instruction, Register
from toolkit.machine_code.kept import kept
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.timing_table import machine_code
from toolkit.sass.waits import loops, waits

BULK = {"UTMALDG", "UBLKCP"}
ASYNCHRONOUS = {"LDGSTS"}
BARRIERS = {"BAR", "SYNCS"}
# Of a loop's loads from shared memory, those between a global load and the first instruction that
# waits for its scoreboard. In the ladder, on sm_75 to sm_120, they are none of them, or 0.56 to
# 0.63 where the next tile is loaded while one is multiplied.
SHARE_AHEAD = 0.25
# Opcodes that add to a register: multiply-adds to their last operand, additions to either.
MULTIPLY_ADDS = {"FFMA", "DFMA", "HFMA2", "FFMA2"}
ADDITIONS = {"FADD", "DADD", "HADD2", "FADD2"}


@dataclass(frozen=True, kw_only=True)
class ScheduleFacts:
    """Copies of tiles to shared memory, whether they overlap the computation, and barriers.

    `past_l1`: all asynchronous copies pass L1 by. `sums` are groups of indices of instructions that
    add to the same accumulator. `waits` is True if some loop only waits for a value that another
    block writes.
    """

    copies: Copies
    fetches_ahead: bool
    has_barriers: bool
    past_l1: bool = False
    sums: tuple[tuple[int, ...], ...] = ()
    waits: bool = False

    def steps(self, executed: Sequence[int]) -> int:
        """Additions to one accumulator over all warps: K times their number in a matrix product.

        `executed` is the number of executions of each instruction. If there are several
        accumulators, the one of the median addition counts. 0 for a kernel without any.
        """
        found = sorted(sum(executed[index] for index in indices) for indices in self.sums)
        half, so_far = sum(found) / 2, 0
        for count in found:
            so_far += count
            if so_far >= half:
                return count
        return 0


@lru_cache(maxsize=64)
@kept
def schedule_facts(kernel: Kernel) -> ScheduleFacts:
    """Facts about how the code of a kernel fetches tiles and waits.

    Raises as `Kernel.instructions` does.
    """
    opcodes = {instruction.opcode for instruction in kernel.instructions}
    copies: Copies = "loads"
    if opcodes & BULK:
        copies = "bulk"
    elif opcodes & ASYNCHRONOUS:
        copies = "asynchronous"
    return ScheduleFacts(
        copies=copies,
        fetches_ahead=copies != "loads"
        or ({"LDG", "LDS", "STS"} <= opcodes and _loads_ahead(kernel)),
        has_barriers=bool(opcodes & BARRIERS),
        past_l1=copies == "asynchronous"
        and all(
            "BYPASS" in one.modifiers for one in kernel.instructions if one.opcode in ASYNCHRONOUS
        ),
        sums=tuple(map(tuple, _sums(kernel))),
        waits=any(waits(kernel.instructions)),
    )


def _sums(kernel: Kernel) -> list[list[int]]:
    """The additions to each sum, which may move from register to register on its way."""
    sums: list[list[int]] = []
    held: dict[int, list[int]] = {}  # by register
    words = machine_code(kernel)["registers"]
    for index, instruction in enumerate(kernel.instructions):
        result = next(iter(instruction.operands), None)
        if not isinstance(result, Register) or result.file != "R":
            continue
        before = [held[r] for r in _addends(instruction) if r in held]
        for register in range(result.index, result.index + max(1, int(words[index]))):
            held.pop(register, None)
        if instruction.opcode in MULTIPLY_ADDS | ADDITIONS and result.index != RZ:
            own = max(before, key=len, default=[])
            if not own:
                sums.append(own)
            own.append(index)
            held[result.index] = own
    return sums


def _addends(instruction: Instruction) -> list[int]:
    operands = instruction.operands[-1:] if instruction.opcode in MULTIPLY_ADDS else ()
    if instruction.opcode in ADDITIONS:
        operands = instruction.operands[1:]
    return [one.index for one in operands if isinstance(one, Register) and one.file == "R"]


def _loads_ahead(kernel: Kernel) -> bool:
    """True if in some loop the median global load is in flight for half of the tile's reads."""
    opcodes = [instruction.opcode for instruction in kernel.instructions]
    table = machine_code(kernel)
    for loop in loops(kernel.instructions):
        body = [opcodes[index] for index in loop]
        reads = body.count("LDS")
        if not reads or "STS" not in body:
            continue
        shares = []
        for start, index in enumerate(loop):
            if opcodes[index] != "LDG":
                continue
            barrier, between = int(table["write_barrier"][index]), 0
            for step in range(1, len(loop) + 1):
                other = loop[(start + step) % len(loop)]
                if int(table["wait"][other]) >> barrier & 1:
                    break
                between += opcodes[other] == "LDS"
            shares.append(between / reads)
        if shares and sorted(shares)[len(shares) // 2] >= SHARE_AHEAD:
            return True
    return False
