"""Advice on a cause that no edit removes: what to do by hand, in one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

from analysis.geometry import WARP_SIZE
from analysis.records.counters import InstructionCounts
from analysis.timing.costs import OF_INTEGERS
from analysis.timing.effects import is_of_one_thread
from analysis.timing.predicted import ALIKE, WAITS, Cost, Effect
from toolkit.machine_code.source_tree import line_text
from toolkit.remedies.facts import Facts, conflicts, is_double, is_uncoalesced

MUCH_WIDE = 0.05  # of the executed instructions: each goes with about four others
# a product with 64 bits of two registers; a constant factor is the size of an element
_WIDE = re.compile(r"(@\S+ )?IMAD\.WIDE(\.U32)? R\w+, R\w+(\.reuse)?, R")
# The upper half of a product of two registers: a division has one, and another one in the
# reciprocal, which may stand before a loop. The factor of a constant divisor is in the instruction.
_QUOTIENT = re.compile(r"(@\S+ )?IMAD\.HI(\.U32)? R\w+, U?R\w+(\.reuse)?, U?R")
# A call that reduces an angle, and a literal of FP64
_ANGLES = re.compile(r"\b(sin|cos|tan|sincos)f?\s*\(")
_DOUBLE = re.compile(r"(?<![\w.])(\d+\.\d*|\.\d+|\d+[eE][+-]?\d+)(?![\w.])")
MUCH_EMPTY = 0.25  # of the lanes of a block: so many without a thread cost more than most branches
OF_DIVISION = 9  # instructions for each of them
LEAST_COST = 0.1  # of the time: sentences about smaller costs would be noise


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A sentence on a cause.

    `most_s`: the most that it saves, not more than the cause costs. `worth_s`: the same, by which
    sentences are ranked.
    """

    effect: Effect
    lines: tuple[int, ...]
    text: str
    most_s: float = inf
    worth_s: float = 0.0


# Advice on a cause of a launch, None where the facts speak against it
Rule = Callable[[Facts, Effect], Advice | None]


def _idle(facts: Facts, effect: Effect) -> Advice:
    return Advice(
        effect=effect,
        lines=(),
        text=f"divide the work into more blocks of equal size: {facts.device.sm_count} SMs have "
        f"room for {facts.occupancy.blocks_per_sm * facts.device.sm_count:,}",
    )


def _double(facts: Facts, effect: Effect) -> Advice | None:
    """Advice on accidental FP64, which may be the reason of another cause: its functions also take
    instructions of other pipes.
    """
    del effect
    lines = facts.charged_lines(is_double)
    if facts.source.names_double or not lines:
        return None
    return Advice(
        effect=Effect.FP64_PIPE,
        lines=lines,
        text="use FP32 literals and functions, such as 0.5f and sqrtf: FP64 is slower",
    )


def _large_angles(facts: Facts, effect: Effect) -> Advice | None:
    """Advice on arguments of sinf, cosf and tanf that their fast path does not take.

    Beyond 105,615 they are reduced with a product of FP64 and an array in local memory (CUDA C++
    Programming Guide, "Arithmetic Instructions").
    """
    del effect
    lines = facts.charged_lines(lambda one: one.opcode == "DMUL")
    if not lines or lines != facts.charged_lines(is_double):
        return None
    if not all(_ANGLES.search(line_text(facts.source, one)) for one in lines):
        return None
    if any(_DOUBLE.search(line_text(facts.source, one)) for one in lines):
        return None
    return Advice(
        effect=Effect.FP64_PIPE,
        lines=lines,
        text="reduce the arguments of sinf, cosf and tanf below 105,615 before the call: beyond, "
        "they take FP64 and local memory",
    )


def _wide(facts: Facts, effect: Effect) -> Advice | None:
    """Advice on arithmetic with 64-bit integers, where it is much of what the kernel executes."""
    charged = [one for one in facts.execution.instructions if one.charged]
    all_executed = sum(one.executed for one in charged)
    if sum(one.executed for one in charged if _is_wide(one)) < MUCH_WIDE * all_executed:
        return None
    return Advice(
        effect=effect,
        lines=facts.charged_lines(_is_wide),
        text="use 32-bit integers where values fit: each 64-bit operation takes several "
        "instructions",
    )


def _first(*rules: Rule) -> Rule:
    """Advice of the first rule that has any."""
    return lambda facts, effect: next(filter(None, (rule(facts, effect) for rule in rules)), None)


def _of_slots(
    text: str, wanted: Callable[[InstructionCounts], bool], slots_of_each: int = 1
) -> Rule:
    """Advice on the `wanted` instructions, which is worth the issue slots that they stand for."""

    def advice(facts: Facts, effect: Effect) -> Advice | None:
        charged = [one for one in facts.execution.instructions if one.charged]
        slots = slots_of_each * sum(one.executed for one in charged if wanted(one))
        if not slots:
            return None
        share = min(1.0, slots / sum(one.executed for one in charged))
        return Advice(
            effect=effect,
            lines=facts.charged_lines(wanted),
            text=text,
            most_s=share * facts.predicted.time_s,
        )

    return advice


def _is_conversion(one: InstructionCounts) -> bool:
    return one.opcode in ("I2F", "I2FP", "F2I", "F2IP")


def _is_division(one: InstructionCounts) -> bool:
    """True for a product of a value and the reciprocal of a divisor that is no constant."""
    return bool(_QUOTIENT.match(one.text))


def _is_wide(one: InstructionCounts) -> bool:
    """True for an instruction of 64-bit integer arithmetic other than the address of an element."""
    return bool(_WIDE.match(one.text))


def _said(text: str, wanted: Callable[[InstructionCounts], bool] | None = None) -> Rule:
    """Advice with the lines of the `wanted` instructions."""

    def advice(facts: Facts, effect: Effect) -> Advice:
        lines = facts.charged_lines(wanted) if wanted else ()
        return Advice(effect=effect, lines=lines, text=text)

    return advice


def _partly_filled(facts: Facts, effect: Effect) -> Advice | None:
    """Advice on blocks that leave much of their last warp without threads."""
    threads = prod(facts.block)
    lanes = WARP_SIZE * -(-threads // WARP_SIZE)
    if lanes - threads < MUCH_EMPTY * lanes:
        return None
    return Advice(
        effect=effect,
        lines=(),
        text=f"use blocks of a multiple of {WARP_SIZE} threads: {threads} leave {lanes - threads} "
        f"of {lanes} lanes without a thread",
    )


def _is_atomic(one: InstructionCounts) -> bool:
    return one.space in ("global", "generic") and one.action in ("atomic", "reduction")


def _is_store_to_few(one: InstructionCounts) -> bool:
    """True for a store whose lanes mostly share a sector."""
    is_store = one.space in ("global", "generic") and one.action == "store"
    return is_store and one.sectors < 2 * one.requests


def _waits(text: str) -> Rule:
    """Advice on waiting, which more warps hide too, where an SM has room for them."""

    def advice(facts: Facts, effect: Effect) -> Advice:
        has_room = facts.warps_per_sm < facts.occupancy.max_warps_per_sm
        more = ", or have more warps per SM" if has_room else ""
        return Advice(effect=effect, lines=(), text=f"{text}{more}")

    return advice


_divided = _of_slots(
    "divide fewer integers: use constants or powers of two as divisors, or one more dimension "
    "of the grid instead of a quotient and a remainder",
    _is_division,
    OF_DIVISION,
)
_converts = _of_slots(
    "convert fewer values between integers and floats: keep the value of the last step as a "
    "float, and add to it",
    _is_conversion,
)
_LOADS_FIRST = "start several loads before the first value is used"

ADVICE: Mapping[Effect, Rule] = {
    Effect.FP64_PIPE: _first(_large_angles, _double),
    Effect.INTEGER_PIPE: _first(_divided, _wide),
    Effect.LOGIC_PIPE: _first(_divided, _wide, _converts),
    Effect.SPECIAL_PIPE: _first(_large_angles, _double, _divided, _converts),
    Effect.OTHER_INSTRUCTIONS: _first(_large_angles, _double, _divided, _wide, _converts),
    Effect.CONFLICTS: _said(
        "let the lanes of a warp access different banks: pad rows of the array or XOR its columns",
        conflicts,
    ),
    Effect.UNCOALESCED: _said(
        "let neighbouring threads access neighbouring addresses, through shared memory if need be",
        is_uncoalesced,
    ),
    Effect.LOCAL_MEMORY: _first(
        _large_angles,
        _said(
            "index local arrays only with constants, or use fewer registers, so that nothing is "
            "kept in local memory",
            lambda one: one.space == "local",
        ),
    ),
    Effect.IDLE_SMS: _idle,
    Effect.BLOCK_START: _said(
        "give each block more work: start blocks of more threads, or let each thread compute "
        "several elements",
    ),
    Effect.ONE_THREAD: _said(
        "let the threads of a warp share what a single one computes, or compute it before others "
        "wait for it",
        is_of_one_thread,
    ),
    Effect.DIVERGENCE: _first(
        _partly_filled,
        _said(
            "let all lanes of a warp take the same branch",
            lambda one: bool(one.divergent or (one.predicated < one.threads and one.requests)),
        ),
    ),
    Effect.ATOMICS: _said(
        "combine values in registers or shared memory first, so that fewer atomic operations "
        "reach the same address",
        _is_atomic,
    ),
    Effect.STORES: _said(
        "store once per block after `__syncthreads_or`, or read the value before and store only "
        "if it differs",
        _is_store_to_few,
    ),
    Effect.OTHER_BLOCKS: _said(
        "let fewer blocks wait for each other: give each block more work between two waits, or "
        "end the launch and start another one",
    ),
    Effect.CONSTANTS: _said(
        "read tables that are indexed by lanes or in loops from shared memory instead of constants",
    ),
    Effect.BARRIERS: _said(
        "let fewer warps wait for each other: exchange values by shuffles within a warp, or use "
        "smaller blocks",
        lambda one: one.opcode == "BAR",
    ),
    Effect.DRAM_LATENCY: _waits(_LOADS_FIRST),
    Effect.L2_LATENCY: _waits(_LOADS_FIRST),
    Effect.L1_LATENCY: _waits(_LOADS_FIRST),
    Effect.SHARED_LATENCY: _waits(
        "start several reads of shared memory before the first value is used",
    ),
    Effect.DEPENDENCES: _waits(
        "give each thread several independent operations, such as four sums instead of one",
    ),
    Effect.FETCH: _said("unroll less, so that the code of a loop fits in the instruction caches"),
}


def advised(facts: Facts, removed: Collection[Effect]) -> Iterator[Advice]:
    """Sentences for the causes that cost much and that no remedy removes, largest first.

    Waiting is one of them only if nothing that can be avoided costs clearly more: what is left of
    it after another cause is mended is not known before.
    """
    said = set[str]()
    costs = sorted(
        facts.predicted.costs, key=lambda cost: (cost.worth_s, cost.time_s), reverse=True
    )
    largest_s = max(
        (cost.most_s for cost in costs if not cost.is_roof and cost.effect in ADVICE), default=0.0
    )
    least_s = LEAST_COST * facts.predicted.time_s
    for cost in costs:
        is_small = cost.time_s - cost.first_s < least_s
        is_small_wait = cost.effect in WAITS and cost.most_s < ALIKE * largest_s
        if cost.effect not in ADVICE or cost.effect in removed or is_small or is_small_wait:
            continue
        advice = ADVICE[cost.effect](facts, cost.effect)
        if advice is None or advice.effect in removed or advice.text in said:
            continue
        if advice.most_s >= least_s:
            said.add(advice.text)
            yield replace(
                advice,
                most_s=min(advice.most_s, max(cost.most_s, cost.together_s) + _beside(cost, costs)),
                worth_s=min(advice.most_s, cost.worth_s),
            )


def _beside(cost: Cost, costs: Sequence[Cost]) -> float:
    """Time on the FP32 pipe that advice on other instructions saves too: that of integers."""
    if cost.effect != Effect.OTHER_INSTRUCTIONS:
        return 0.0
    pipes = (one for one in costs if one.effect == Effect.FP32_PIPE)
    return sum(one.time_s for one in pipes if one.detail == OF_INTEGERS)
