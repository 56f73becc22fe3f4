"""Whether every instruction finds its registers ready: by scoreboards, or by clocks.

This knows nothing of how an order is found either. It follows all ways through a kernel:

- A register that a load or another instruction of variable latency writes must not be touched
  before its scoreboard was waited for, nor one be written that a store is still to read. Loads and
  stores keep their order: the scoreboard of a later one stands for those of before, and what a
  load writes may be what an earlier store reads.
- A result of fixed latency must not be read sooner than the compiler let an instruction of the same
  opcode read one: in the kernel as it was compiled, or an FFMA's by another in 4 clocks.

Where the compiler's own code does not pass there is something that is not understood here, and the
kernel is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from analysis.sm import Unit
from toolkit.machine_code.instruction import Instruction
from toolkit.machine_code.patching import WAIT, WAIT_BITS
from toolkit.machine_code.patching import field as bits
from toolkit.reorder.blocks import Block
from toolkit.reorder.flow import Code
from toolkit.reorder.words import reuse, scoreboards, stall_clocks

NONE = 7
LONGEST = 16  # clocks after which a result of fixed latency is there, whatever made it

# What is under way: whether it has scoreboards of its own, and those any of which says that it is
# over, none where that is still to be seen.
UnderWay = tuple[bool, frozenset[int]]
UNNAMED: UnderWay = (False, frozenset())


@dataclass
class _Pending:
    """By register: what is under way."""

    writes: dict[int, set[UnderWay]] = field(default_factory=dict)
    reads: dict[int, set[UnderWay]] = field(default_factory=dict)

    def copy(self) -> _Pending:
        return _Pending(*({r: set(x) for r, x in of.items()} for of in (self.writes, self.reads)))

    def merge(self, other: _Pending) -> bool:
        """Add what is under way on another way here; whether that was new."""
        is_new = False
        for mine, others in ((self.writes, other.writes), (self.reads, other.reads)):
            for register, found in others.items():
                known = mine.setdefault(register, set())
                is_new |= not found <= known
                known |= found
        return is_new

    def waited(self, mask: int) -> None:
        done = {k for k in range(6) if mask >> k & 1}
        for of in (self.writes, self.reads):
            for register in list(of):
                of[register] = {under_way for under_way in of[register] if not under_way[1] & done}
                if not of[register]:
                    del of[register]

    def requested(self, scoreboards: Collection[int]) -> None:
        """Requests read their registers in order, and those without a scoreboard of their own are
        over when a later one is."""
        for register, found in self.writes.items():
            if UNNAMED in found:
                self.writes[register] = found - {UNNAMED} | {(False, frozenset(scoreboards))}
        for register, found in self.reads.items():
            self.reads[register] = {
                (is_own, over if is_own else over.union(scoreboards)) for is_own, over in found
            }


def unready(code: Code, blocks: Sequence[Block]) -> list[str]:
    """What touches a register too early for its scoreboard, as text."""
    entry = {block.start: _Pending() for block in blocks}
    waiting = [block.start for block in blocks]
    by_start = {block.start: block for block in blocks}
    while waiting:
        block = by_start[waiting.pop()]
        after = entry[block.start].copy()
        for _ in _walk(code, block, after):
            pass
        for following in block.following:
            if entry[following].merge(after) and following not in waiting:
                waiting.append(following)
    return [found for block in blocks for found in _walk(code, block, entry[block.start].copy())]


def _walk(code: Code, block: Block, pending: _Pending) -> Iterator[str]:
    """Follow a block; what comes too early."""
    for position in range(block.start, block.end):
        word, instruction = code.words[position], code.instructions[position]
        pending.waited(bits(word, WAIT, WAIT_BITS))
        if instruction.opcode == "DEPBAR":
            pending.waited(0b111_111)
        is_load = code.units[position] == Unit.LSU
        for register in code.read[position] & pending.writes.keys():
            yield _said(instruction, f"R{register} is read before it was loaded")
        for done, registers in (("loaded", pending.writes), ("stored", pending.reads)):
            for register in code.written[position] & registers.keys():
                if not is_load:
                    yield _said(instruction, f"R{register} is written before it was {done}")
        _note(code, position, pending)


def _said(instruction: Instruction, what: str) -> str:
    return f"{instruction.located}: {what}"


def _note(code: Code, position: int, pending: _Pending) -> None:
    """What an instruction of variable latency begins."""
    if code.has_fixed_latency(position):
        for register in code.written[position]:
            pending.writes.pop(register, None)
        return
    write, read = scoreboards(code.words[position])
    is_request = code.units[position] == Unit.LSU
    own = {write, read} - {NONE}
    if is_request and own:
        pending.requested(own)
    for register in code.written[position]:
        if is_request or write != NONE:
            pending.writes[register] = {(write != NONE, frozenset({write} - {NONE}))}
    for register in code.read[position]:
        if is_request or read != NONE:
            pending.reads.setdefault(register, set()).add((read != NONE, frozenset(own)))


# Clocks.

Ages = dict[int, dict[str, int]]  # by register: clocks since an opcode wrote it, at least


def soonest(code: Code, blocks: Sequence[Block]) -> dict[tuple[str, str], int]:
    """By the opcodes of a producer of fixed latency and of a consumer: the fewest clocks between
    them, up to `LONGEST`."""
    entry: dict[int, Ages] = {block.start: {} for block in blocks}
    found: dict[tuple[str, str], int] = {}
    is_changing = True
    while is_changing:
        is_changing = False
        for block in blocks:
            ages = {r: dict(of) for r, of in entry[block.start].items()}
            for position in range(block.start, block.end):
                _age(code, position, ages, found)
            for following in block.following:
                is_changing |= _merge(entry[following], ages)
    return found


def _age(code: Code, position: int, ages: Ages, found: dict[tuple[str, str], int]) -> None:
    opcode, clocks = code.instructions[position].opcode, stall_clocks(code.words[position])
    for register in code.read[position]:
        for producer, age in ages.get(register, {}).items():
            pair = producer, opcode
            found[pair] = min(age, found.get(pair, LONGEST))
    for register in code.written[position]:
        ages[register] = {opcode: 0} if code.has_fixed_latency(position) else {}
    for of in ages.values():
        for producer in list(of):
            of[producer] += clocks
            if of[producer] >= LONGEST:
                del of[producer]


def _merge(into: Ages, ages: Ages) -> bool:
    is_new = False
    for register, of in ages.items():
        mine = into.setdefault(register, {})
        for producer, age in of.items():
            if age < mine.get(producer, LONGEST):
                mine[producer], is_new = age, True
    return is_new


MEASURED: Mapping[tuple[str, str], int] = {("FFMA", "FFMA"): 4}  # docs/timing.md


def too_soon(
    before: Mapping[tuple[str, str], int], after: Mapping[tuple[str, str], int]
) -> list[str]:
    """Pairs of opcodes that follow each other sooner than the compiler let them, as text."""
    return [
        f"{consumer} reads the result of {producer} after {clocks} clocks, not {allowed}"
        for (producer, consumer), clocks in after.items()
        if clocks
        < (allowed := MEASURED.get((producer, consumer), before.get((producer, consumer), LONGEST)))
    ]


# Operands that are kept.


def kept_wrongly(code: Code) -> list[str]:
    """Multiply-adds that keep a value for the next one which is replaced before that, as text."""
    return [
        _said(code.instructions[position], f"R{register} is kept, and replaced before it is used")
        for position, (*sources, _) in code.operands.items()
        for slot, register in enumerate(sources)
        if reuse(code.words[position]) >> slot & 1 and _is_replaced(code, position, slot, register)
    ]


def _is_replaced(code: Code, position: int, slot: int, register: int) -> bool:
    """Whether a register is written before the next multiply-add that has it in the same slot."""
    is_written = False
    while position < len(code.words) and (code.moves(position) or code.keeps(position)):
        is_written |= register in code.written[position]
        position += 1
        if code.moves(position):
            return is_written and code.operands[position][slot] == register
    return False
