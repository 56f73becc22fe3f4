"""What to do by hand about a cause that no edit removes, in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from analysis.records.counters import InstructionCounts
from analysis.timing.predicted import Effect
from toolkit.remedies.facts import Facts

LEAST_COST = 0.1  # of the time: sentences about smaller costs would be noise


@dataclass(frozen=True, kw_only=True)
class Advice:
    effect: Effect
    lines: tuple[int, ...]
    text: str


def _conflicts(facts: Facts) -> Advice:
    lines = sorted(facts.conflicting_lines)
    return Advice(
        effect=Effect.CONFLICTS,
        lines=tuple(lines),
        text="let the lanes of a warp access different banks: pad rows of the array or XOR its "
        "columns",
    )


def _uncoalesced(facts: Facts) -> Advice:
    lines = sorted(facts.uncoalesced_lines)
    return Advice(
        effect=Effect.UNCOALESCED,
        lines=tuple(lines),
        text="let neighbouring threads access neighbouring addresses, through shared memory if "
        "need be",
    )


def _local(facts: Facts) -> Advice:
    lines = sorted(facts.lines(lambda one: one.space == "local"))
    return Advice(
        effect=Effect.LOCAL_MEMORY,
        lines=tuple(lines),
        text="index local arrays only with constants, or use fewer registers, so that nothing is "
        "kept in local memory",
    )


def _idle(facts: Facts) -> Advice:
    return Advice(
        effect=Effect.IDLE_SMS,
        lines=(),
        text=f"divide the work into more blocks of equal size: {facts.device.sm_count} SMs have "
        f"room for {facts.occupancy.blocks_per_sm * facts.device.sm_count:,}",
    )


def _divergence(facts: Facts) -> Advice:
    lines = sorted(facts.lines(lambda one: bool(one.divergent)))
    return Advice(
        effect=Effect.DIVERGENCE,
        lines=tuple(lines),
        text="let all lanes of a warp take the same branch",
    )


def _double(facts: Facts) -> Advice | None:
    if facts.source.names_double or not facts.double_lines:
        return None
    return Advice(
        effect=Effect.FP64_PIPE,
        lines=tuple(sorted(facts.double_lines)),
        text="use FP32 literals and functions, such as 0.5f and sqrtf: FP64 is slower",
    )


def _said(
    effect: Effect, text: str, wanted: Callable[[InstructionCounts], bool] | None = None
) -> Callable[[Facts], Advice]:
    """Advice with the lines of the `wanted` instructions."""

    def advice(facts: Facts) -> Advice:
        lines = facts.lines(wanted) if wanted else frozenset[int]()
        return Advice(effect=effect, lines=tuple(sorted(lines)), text=text)

    return advice


def _is_atomic(one: InstructionCounts) -> bool:
    return one.space in ("global", "generic") and one.action in ("atomic", "reduction")


_MORE_LOADS = "start several loads before the first value is used, or have more warps per SM"

ADVICE: Mapping[Effect, Callable[[Facts], Advice | None]] = {
    Effect.FP64_PIPE: _double,
    Effect.CONFLICTS: _conflicts,
    Effect.UNCOALESCED: _uncoalesced,
    Effect.LOCAL_MEMORY: _local,
    Effect.IDLE_SMS: _idle,
    Effect.DIVERGENCE: _divergence,
    Effect.ATOMICS: _said(
        Effect.ATOMICS,
        "combine values in registers or shared memory first, so that fewer atomic operations "
        "reach the same address",
        _is_atomic,
    ),
    Effect.OTHER_BLOCKS: _said(
        Effect.OTHER_BLOCKS,
        "let fewer blocks wait for each other: give each block more work between two waits, or "
        "end the launch and start another one",
    ),
    Effect.CONSTANTS: _said(
        Effect.CONSTANTS,
        "read what lanes index differently from shared or global memory instead of constants",
    ),
    Effect.BARRIERS: _said(
        Effect.BARRIERS,
        "let fewer warps wait for each other: exchange values by shuffles within a warp, or use "
        "smaller blocks",
        lambda one: one.opcode == "BAR",
    ),
    Effect.DRAM_LATENCY: _said(Effect.DRAM_LATENCY, _MORE_LOADS),
    Effect.L2_LATENCY: _said(Effect.L2_LATENCY, _MORE_LOADS),
    Effect.L1_LATENCY: _said(Effect.L1_LATENCY, _MORE_LOADS),
    Effect.SHARED_LATENCY: _said(
        Effect.SHARED_LATENCY,
        "start several reads of shared memory before the first value is used, or have more warps "
        "per SM",
    ),
    Effect.DEPENDENCES: _said(
        Effect.DEPENDENCES,
        "give each thread several independent operations, such as four sums instead of one, or "
        "have more warps per SM",
    ),
    Effect.FETCH: _said(
        Effect.FETCH, "unroll less, so that the code of a loop fits in the instruction caches"
    ),
}


# What is left of these after another cause is mended is not known before.
WAITS = (
    Effect.DRAM_LATENCY,
    Effect.L2_LATENCY,
    Effect.L1_LATENCY,
    Effect.SHARED_LATENCY,
    Effect.DEPENDENCES,
)


def advised(facts: Facts, removed: Collection[Effect]) -> Iterator[Advice]:
    """Sentences for the causes that cost much and that no remedy removes, largest first.

    Waiting is one of them only if nothing that can be avoided costs more.
    """
    costs = sorted(facts.predicted.costs, key=lambda cost: -cost.time_s)
    largest = next((cost for cost in costs if not cost.is_roof and cost.effect in ADVICE), None)
    for cost in costs:
        if cost.effect in WAITS and cost is not largest:
            continue
        of, is_large = ADVICE.get(cost.effect), cost.time_s >= LEAST_COST * facts.predicted.time_s
        advice = of(facts) if of and is_large and cost.effect not in removed else None
        if advice is not None:
            yield advice
