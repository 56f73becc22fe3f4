"""The answer on one launch, for the page and the terminal: its time, the cause, and the line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.devices import Device
from analysis.errors import shortened
from analysis.l2_state import L2State
from analysis.records.counters import InstructionCounts, of_lines
from analysis.records.profile import Interval
from analysis.records.source_lines import AccessTotal, distinct_accesses
from analysis.timing.predicted import NAMED, UNAVOIDABLE, Cost, Effect, Predicted
from reports import text
from reports.sections.prediction import limits

LIMITS = 2 / 3  # of the time: a part above it limits the launch, whatever else costs time
NAMED_BESIDE_ROOF = 0.05  # of the time: less is within the error of a launch at its roof
LEADS = 0.1  # of the time: an avoidable cause above it is named before what does not limit
MOST_VALUES = 2  # of one line in a sentence

_SUBJECTS = {
    Effect.FP32_PIPE: "the FP32 pipe",
    Effect.FP64_PIPE: "the FP64 pipe",
    Effect.FP16_PIPE: "the FP16 pipe",
    Effect.INTEGER_PIPE: "the integer multiply pipe",
    Effect.LOGIC_PIPE: "the ALU pipe",
    Effect.SPECIAL_PIPE: "the special-function pipe",
    Effect.OTHER_INSTRUCTIONS: "instruction issue",
    Effect.BLOCK_START: "the start of blocks",
    Effect.LAUNCH: "the launch itself",
}
_PLURAL = frozenset(
    {
        Effect.IDLE_SMS,
        Effect.CONFLICTS,
        Effect.UNCOALESCED,
        Effect.ONE_THREAD,
        Effect.DIVERGENCE,
        Effect.REGISTER_BANKS,
        Effect.ATOMICS,
        Effect.STORES,
        Effect.CONSTANTS,
        Effect.SHARED_WAVEFRONTS,
        Effect.L1_WAVEFRONTS,
        Effect.TENSOR_PIPE,
    }
)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Three sentences on one launch, and what they name.

    `cause` is the largest avoidable part of the time, None if it is negligible or not known.
    `place` is the (file, line) that `line_sentence` names.
    """

    time_sentence: str
    cause_sentence: str
    line_sentence: str
    cause: Cost | None = None
    place: tuple[str, int] | None = None


def answer(
    name: str,
    predicted: Predicted | None,
    instructions: Sequence[InstructionCounts],
    device: Device | None,
    file: str | None,
    *,
    measured_s: float | None = None,
    interval: Interval | None = None,
    basis: str | None = None,
    blocks: int | None = None,
    l2: L2State | None = None,
) -> Answer:
    """The answer on a launch of the kernel `name`.

    `measured_s` is the median of measured times, and `interval` its 95% interval. `predicted` is
    the time on `device`, None where `basis` says why there is none. Lines are of `file`, unless the
    sentence names another. `blocks` is the number of blocks of the grid, `l2` what measured
    launches found in L2.
    """
    cause = cause_of(predicted) if predicted else None
    place, line_sentence = _line(predicted, instructions, cause, file)
    return Answer(
        time_sentence=_time(shortened(name), predicted, device, measured_s, interval, basis, l2),
        cause_sentence=_cause(predicted, cause, device, blocks, is_measured=measured_s is not None),
        line_sentence=line_sentence,
        cause=cause,
        place=place,
    )


def cause_of(predicted: Predicted) -> Cost | None:
    """The largest avoidable part of the time, None if it is negligible.

    Where a roof limits the launch, more is negligible.
    """
    avoidable = [cost for cost in predicted.costs if cost.is_avoidable]
    largest = max(avoidable, key=lambda cost: cost.time_s, default=None)
    # the roof of issue has two parts: FP32 arithmetic and other instructions
    roof_s = sum(cost.time_s for cost in predicted.costs if cost.is_roof)
    is_at_roof = roof_s >= LIMITS * predicted.time_s
    least = NAMED_BESIDE_ROOF if is_at_roof else NAMED
    return largest if largest and largest.time_s >= least * predicted.time_s else None


def _time(
    name: str,
    predicted: Predicted | None,
    device: Device | None,
    measured_s: float | None,
    interval: Interval | None,
    basis: str | None,
    l2: L2State | None,
) -> str:
    state = l2 or (predicted.l2 if predicted else None)
    where = f" on {device.name}" if device else ""
    found = f", L2 {state}" if state else ""
    at = _clock(predicted, device)
    told = text.predicted_within(predicted.time_s, predicted.interval_s) if predicted else None
    if measured_s is not None:
        also = f", {told} predicted{at}" if told else ""
        one = text.seconds if interval else text.predicted_seconds
        return (
            f"{name}: {text.with_interval(measured_s, interval, one)} measured{where}{found}{also}."
        )
    if told:
        return f"{name}: {told} predicted{where}{at}{found}."
    return f"{name}: {basis or 'not predicted'}."


def _clock(predicted: Predicted | None, device: Device | None) -> str:
    """The SM clock of a prediction, if it is not the boost clock."""
    if predicted is None or device is None or predicted.clock_hz == device.boost_clock_hz:
        return ""
    return f" at {predicted.clock_hz / 1e6:,.0f} MHz"


# The cause.


def _cause(
    predicted: Predicted | None,
    cause: Cost | None,
    device: Device | None,
    blocks: int | None,
    *,
    is_measured: bool,
) -> str:
    if predicted is None:
        return "What limits it is unknown without a predicted time."
    if not predicted.costs:
        return f"{text.capital(limits(predicted))}."
    whole_s = predicted.time_s
    largest = max(_with_issue_as_one(predicted), key=lambda cost: cost.time_s)
    end = " predicted" if is_measured else ""
    of = f"{text.part_of_time(largest.time_s, whole_s)}{end}"
    if cause is largest:
        why = _detail(cause, device, blocks)
        return f"{_does(cause, _weight(cause, whole_s))}: {of}{f'; {why}' if why else ''}."
    if largest.is_roof and largest.detail:
        of += f"; {largest.detail}"
    if cause is None:
        return f"{_does(largest, _weight(largest, whole_s))}: {of}."
    scale, unit = text.time_unit(whole_s)
    part = text.three_digits(cause.time_s / scale)
    if largest.time_s < LIMITS * whole_s and cause.time_s >= LEADS * whole_s:
        first = text.part_of_time(cause.time_s, whole_s)
        of_largest = f"{text.three_digits(largest.time_s / scale)} {unit}"
        verb = "need" if largest.is_roof else "take"
        return f"{_does(cause, 'cost')} {first}{end}. {_does(largest, verb)} {of_largest}."
    return (
        f"{_does(largest, _weight(largest, whole_s))}: {of}. "
        f"{_does(cause, 'cost')} {part} {unit}{_in_brackets(_detail(cause, device, blocks))}."
    )


def _with_issue_as_one(predicted: Predicted) -> list[Cost]:
    """The costs; where issue is the roof, its two parts, FP32 arithmetic and the rest, are one."""
    roof = [one for one in predicted.costs if one.is_roof]
    if not any(one.effect == Effect.OTHER_INSTRUCTIONS for one in roof):
        return list(predicted.costs)
    of_pipe = [one for one in roof if one.effect == Effect.FP32_PIPE]
    of_fp32 = sum(one.time_s for one in of_pipe)
    work = "integer products" if any(one.detail for one in of_pipe) else "FP32 arithmetic"
    part = text.three_digits(of_fp32 / text.time_unit(predicted.time_s)[0])
    issue = Cost(
        effect=Effect.OTHER_INSTRUCTIONS,
        time_s=sum(one.time_s for one in roof),
        alone_s=0.0,
        detail=f"{part} of it for {work}" if of_fp32 > NAMED * predicted.time_s else "",
    )
    return [*(one for one in predicted.costs if not one.is_roof), issue]


def _weight(cost: Cost, whole_s: float) -> str:
    """Verb of the largest part of a time."""
    if cost.effect in UNAVOIDABLE:
        return "take the most time"
    return "limit it" if cost.time_s >= LIMITS * whole_s else "take the most time"


def _does(cost: Cost, verb: str) -> str:
    """'Idle SMs limit it', 'DRAM bandwidth limits it'"""
    first, _, rest = verb.partition(" ")
    inflected = first if cost.effect in _PLURAL else f"{first}s"
    return f"{text.capital(_SUBJECTS.get(cost.effect, cost.effect))} {inflected} {rest}".rstrip()


def _detail(cost: Cost, device: Device | None, blocks: int | None) -> str:
    """Reason in words, empty if the effect says it all."""
    if cost.detail or cost.effect != Effect.IDLE_SMS or device is None or blocks is None:
        return cost.detail
    if blocks < device.sm_count:
        idle = device.sm_count - blocks
        return f"{idle} of {device.sm_count} SMs have no block"
    return f"{blocks:,} blocks fill {device.sm_count} SMs unevenly"


def _in_brackets(why: str) -> str:
    return f" ({why})" if why else ""


# The line.


def _line(
    predicted: Predicted | None,
    instructions: Sequence[InstructionCounts],
    cause: Cost | None,
    file: str | None,
) -> tuple[tuple[str, int] | None, str]:
    lines = of_lines(one for one in instructions if one.executed)
    if not instructions:
        return None, "Its source lines were not counted."
    if not lines:
        return None, "No source lines: the machine code was compiled without -lineinfo."
    effects = [cause.effect] if cause else [] if predicted else list(_WASTE)
    times = {(one.file, one.line): one.time_s for one in predicted.lines} if predicted else {}
    for effect in effects:
        if found := _of_effect(effect, lines, times, file):
            return found
    if predicted is not None and predicted.lines:
        known = [one for one in predicted.lines if one.file is not None and one.line is not None]
        dearest = max(known, key=lambda one: one.time_s, default=None)
        if dearest is None or dearest.time_s < NAMED * predicted.time_s:
            return None, "No source line stands out."
        assert dearest.file is not None
        assert dearest.line is not None
        place = dearest.file, dearest.line
        of = text.part_of_time(dearest.time_s, predicted.time_s)
        return place, f"{_name(place, file)} costs most: {of}."
    executed = {place: sum(one.executed for one in of) for place, of in lines.items()}
    place = max(executed, key=lambda one: executed[one])
    share = text.percent(executed[place] / sum(executed.values()))
    return place, f"{_name(place, file)} has the most warp instructions: {share}."


def _of_effect(
    effect: Effect,
    lines: Mapping[tuple[str, int], Sequence[InstructionCounts]],
    times: Mapping[tuple[str | None, int | None], float],
    file: str | None,
) -> tuple[tuple[str, int], str] | None:
    """The line with the worst accesses that an effect is about, None if it is about none."""
    if effect == Effect.LOCAL_MEMORY:
        moved = {place: _local_sectors(of) for place, of in lines.items()}
        place = max(moved, key=lambda one: (moved[one], times.get(one, 0.0)))
        if not moved[place]:
            return None
        share = text.percent(moved[place] / sum(moved.values()))
        return place, f"{_name(place, file)} accesses local memory most: {share}."
    wasted = {place: _wasted(effect, of) for place, of in lines.items()}
    if not any(wasted.values()):
        return None
    excess = {place: sum(one.excess for one in of) for place, of in wasted.items()}
    place = max(excess, key=lambda one: (excess[one], times.get(one, 0.0)))
    return place, f"{_name(place, file)} takes {per_request(wasted[place])}."


def _name(place: tuple[str, int], file: str | None) -> str:
    return f"Line {place[1]}{'' if place[0] == file else f' of {shortened(place[0])}'}"


_WASTE = {
    Effect.CONFLICTS: "shared",
    Effect.UNCOALESCED: "global",
    Effect.LOCAL_MEMORY: "local",
}


def _wasted(effect: Effect, instructions: Sequence[InstructionCounts]) -> list[AccessTotal]:
    """The accesses of a line that an effect is about, those of one action, the worst first."""
    space = _WASTE.get(effect)
    accesses = distinct_accesses(one for one in instructions if one.space == space)
    of = [one for one in accesses if one.excess > 0]
    of.sort(key=lambda one: -one.excess)
    return [one for one in of if one.action == of[0].action]


def _local_sectors(instructions: Sequence[InstructionCounts]) -> int:
    """Sectors of local memory that a line reads and writes; all of them are avoidable."""
    return sum(one.sectors for one in instructions if one.space == "local")


def per_request(accesses: Sequence[AccessTotal]) -> str:
    """'32 wavefronts per shared load, ideal 1'; of unlike accesses each value.

    All of them are of one space and action, at least one.
    """
    one, shown = accesses[0], accesses[:MOST_VALUES]
    unit = "wavefronts" if one.space == "shared" else "sectors"
    values = [text.per_each(a.units / a.requests) for a in shown]
    ideals = [text.per_each(a.ideal / a.requests) for a in shown]
    if len(set(ideals)) == 1:
        ideals = ideals[:1]
    worst = f" (worst {len(shown)} of {len(accesses)})" if len(shown) < len(accesses) else ""
    return (
        f"{text.listing(values)} {unit} per {one.space} {one.action}, "
        f"ideal {text.listing(ideals)}{worst}"
    )
