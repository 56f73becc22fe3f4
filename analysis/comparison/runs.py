"""Comparison of two profiles, or of two launches: changed counts and changed times.

Launches are matched by label and shape, two of `simulate --json` or `run --json` in any case.
Counts are compared as `analysis.comparison.counts` says. Times get a verdict from the intervals of
their medians (`analysis.comparison.statistics`). Predicted times are deterministic, so any
difference is a change.

Values that depend on more than the kernel are compared only if the rest is equal:

| number                           | needs                                                        |
|----------------------------------|--------------------------------------------------------------|
| theory                           | nothing                                                      |
| registers, shared, local bytes   | one device, or one architecture                              |
| simulated counters               | one device, or one architecture                              |
| those that model traffic         | the same; of a launch that was simulated or run one device   |
| occupancy                        | one device                                                   |
| hardware counters                | one device; L2 and DRAM also one state of L2 at the start    |
| predicted times                  | one device and state of L2                                   |
| times                            | one GPU and state of L2; the CPU reference's never           |

A count of the first side that the second lacks is lost, which is a change too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median

from analysis.comparison.causes import (
    CauseChange,
    LineCostChange,
    cause_changes,
    line_cost_changes,
)
from analysis.comparison.counts import CountChange, CountsOfKind, Outcome, kinds
from analysis.comparison.statistics import TimeVerdict, median_interval
from analysis.comparison.times import (
    PredictionChange,
    TimeChange,
    predicted_change,
    time_change,
)
from analysis.errors import InputError
from analysis.problem import Gemm
from analysis.records.counters import MODELLED
from analysis.records.launch import LaunchRecord
from analysis.records.profile import Grade, Launched, Measured, Profile, Status

# 2: predicted times; 3: whether a missing record had counts; 4: launches as profiles have them;
# 6: causes and costs of lines
COMPARISON_SCHEMA_VERSION = 6


_BETWEEN_PARTS = re.compile(r",(?![^\[]*\])")  # commas outside of brackets


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """Profile of one side of the comparison."""

    created: str
    command: str
    status: str
    executor: str
    device: str
    toolkit_version: str
    commit: str | None


Source = ComparedRun | LaunchRecord


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Difference of the environments; None if a side does not know the value."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One launch on both sides: a variant at a shape, or a kernel."""

    label: str
    shape: Gemm | None  #: None for a kernel
    status_before: Status
    status_after: Status
    compared: int  #: number of compared counts
    counts: tuple[CountChange, ...]  #: counts that differ
    time: TimeChange | None
    lost: tuple[str, ...] = ()  #: results that the second side should have and lacks
    #: differences in the origin of the numbers, and numbers that were therefore not compared
    notes: tuple[str, ...] = ()
    predicted: PredictionChange | None = None
    causes: tuple[CauseChange, ...] = ()  #: costs that moved, of predicted times
    line_costs: tuple[LineCostChange, ...] = ()  #: the same by source line

    @property
    def changed(self) -> tuple[CountChange, ...]:
        return tuple(one for one in self.counts if one.verdict == Outcome.CHANGED)


@dataclass(frozen=True, kw_only=True)
class Key:
    """A record that only one profile has; `has_counts` says whether it would be compared."""

    label: str
    shape: Gemm | None
    has_counts: bool


@dataclass(frozen=True, kw_only=True)
class RunComparison:
    """Changes from one profile or launch to another: the document of `compare --json`.

    `estimated`: a sentence for each side that has counters which are estimates, with the command
    that makes them exact.
    """

    schema_version: int
    before: Source
    after: Source
    counts: Outcome
    times: Outcome
    predictions: Outcome
    pairs: tuple[Pair, ...]
    only_before: tuple[Key, ...]
    only_after: tuple[Key, ...]
    environment: tuple[Setting, ...]
    notes: tuple[str, ...]
    estimated: tuple[str, ...] = ()


_Key = tuple[str, Gemm | None]


@dataclass(frozen=True, kw_only=True)
class _RunSide:
    """One side of a comparison: its kind, its launches, and their settings.

    `device` is a key; `remedy` says how to obtain counts that this side has and the other lacks.
    """

    is_of: str
    run: Source
    device: str | None
    launches: Mapping[_Key, Launched]
    settings: Mapping[str, str | None]
    remedy: str = ""


def compare(before: Profile, after: Profile) -> RunComparison:
    """Every difference between two profiles, record by record.

    Raises InputError if they have no record in common.
    """
    ours, theirs = _of_profile(before), _of_profile(after)
    if not ours.launches.keys() & theirs.launches.keys():
        raise InputError(_nothing_in_common(ours.launches, theirs.launches))
    return _compared(ours, theirs, _notes_on_profiles(before, after))


def compare_launches(before: LaunchRecord, after: LaunchRecord) -> RunComparison:
    """Every difference between two launches of `simulate --json` or `run --json`.

    Raises InputError if their machine code has different architectures, or if they have neither a
    counter in common nor measured times.
    """
    ours, theirs = (one.resources.architecture for one in (before, after))
    if ours != theirs:
        raise InputError(
            f"the launches are of two architectures, {ours} and {theirs}: "
            "simulate both with the same --arch"
        )
    if before.device != after.device:  # counters modelled for another device are not comparable
        kept = {name: n for name, n in after.counters.items() if name not in MODELLED}
        after = replace(after, counters=kept)
    are_timed = before.samples_s and after.samples_s
    if not (are_timed or before.counters.keys() & after.counters.keys()):
        raise InputError("the launches have no counter in common: simulate both again")
    doubts = (before.doubt("first"), after.doubt("second"))
    notes = list(_notes_on_launches(before, after))
    if _lines_differ(before, after):
        before, after = _without_lines(before), _without_lines(after)
    found = _compared(_of_launch(before, before), _of_launch(after, before), notes)
    return replace(found, estimated=tuple(filter(None, doubts)))


def _compared(before: _RunSide, after: _RunSide, notes: Iterable[str]) -> RunComparison:
    ours, theirs = before.launches, after.launches
    pairs = tuple(_pair(key, before, after) for key in ours if key in theirs)
    only_before = tuple(_key(key, ours[key]) for key in ours if key not in theirs)
    return RunComparison(
        schema_version=COMPARISON_SCHEMA_VERSION,
        before=before.run,
        after=after.run,
        counts=_counts_verdict(pairs, only_before),
        times=_verdict(
            (pair.time.verdict for pair in pairs if pair.time),
            TimeVerdict.SLOWER,
            (Outcome.SLOWER, Outcome.NOT_SLOWER),
        ),
        predictions=_verdict(
            (pair.predicted.verdict for pair in pairs if pair.predicted),
            Outcome.CHANGED,
            (Outcome.CHANGED, Outcome.SAME),
        ),
        pairs=pairs,
        only_before=only_before,
        only_after=tuple(_key(key, theirs[key]) for key in theirs if key not in ours),
        environment=tuple(
            Setting(name=name, before=before.settings.get(name), after=after.settings.get(name))
            for name in dict.fromkeys([*before.settings, *after.settings])
            if before.settings.get(name) != after.settings.get(name)
        ),
        notes=tuple(notes),
    )


def _counts_verdict(pairs: tuple[Pair, ...], only_before: tuple[Key, ...]) -> Outcome:
    if any(pair.changed or pair.lost for pair in pairs) or any(k.has_counts for k in only_before):
        return Outcome.CHANGED
    return Outcome.SAME if any(pair.compared for pair in pairs) else Outcome.NOT_COMPARED


def _verdict(found: Iterable[str], bad: str, told: tuple[Outcome, Outcome]) -> Outcome:
    """The first of `told` if a bad verdict was found, the second if only others were."""
    verdicts, (is_bad, is_good) = list(found), told
    if not verdicts:
        return Outcome.NOT_COMPARED
    return is_bad if bad in verdicts else is_good


# Sides.


def _of_profile(profile: Profile) -> _RunSide:
    environment = profile.environment
    launches: dict[_Key, Launched] = {}
    for record in profile.records:  # the first one of each
        launches.setdefault((record.label, record.shape), record)
    return _RunSide(
        is_of="profile",
        run=ComparedRun(
            created=profile.created,
            command=profile.command,
            status=profile.status,
            executor=profile.executor,
            device=profile.device.name,
            toolkit_version=environment.toolkit_version,
            commit=environment.commit,
        ),
        device=profile.device.key,
        launches=launches,
        settings={
            "device": profile.device.name,
            "executor": profile.executor,
            "toolkit version": environment.toolkit_version,
            "commit": environment.commit,
            **environment.software,
            **environment.hardware,
        },
    )


def _of_launch(one: LaunchRecord, first: LaunchRecord) -> _RunSide:
    """A side of one launch, under the name of the first."""
    defines = [f"{name}={value}" for name, value in sorted(one.defines.items())]
    return _RunSide(
        is_of="launch",
        run=one,
        device=one.device,
        launches={(first.kernel, None): replace(one.launched, measured=_measured(one))},
        settings={
            "kernel": one.kernel,
            "arguments": ", ".join(one.arguments),
            "variables": ", ".join(one.settings),
            "cooperative": "yes" if one.cooperative else "no",
            "defines": ", ".join(defines),
            "options": " ".join(one.options),
            "heap": "" if one.heap_bytes is None else f"{one.heap_bytes:,} bytes",
            "constants": one.constants or "",
            "clock": "" if one.clock_mhz is None else f"{one.clock_mhz:,g} MHz",
            "accesses beyond all arrays": "allowed" if one.allow_out_of_bounds else "errors",
            "executed blocks": one.basis,
        },
        remedy=f": give --device {one.device}" if one.device else "",
    )


def _measured(one: LaunchRecord) -> Measured | None:
    if not one.samples_s:
        return None
    return Measured(
        clock="CUDA events",
        l2=one.l2,
        samples_s=one.samples_s,
        median_s=median(one.samples_s),
        interval_s=median_interval(one.samples_s),
        flop_per_s=0.0,
        stopped_by="sample limit",
    )


def _key(key: _Key, of: Launched) -> Key:
    counts = [of.theory, of.geometry, of.resources, of.simulated, of.counted]
    return Key(label=key[0], shape=key[1], has_counts=any(counts))


def _nothing_in_common(ours: Iterable[_Key], theirs: Iterable[_Key]) -> str:
    shapes = [{shape for _, shape in keys} for keys in (ours, theirs)]
    if shapes[0] & shapes[1] or not all(shapes):
        what, names = "variant", [{label for label, _ in keys} for keys in (ours, theirs)]
    else:
        what, names = "shape", [set(map(str, some)) for some in shapes]
    first, second = (", ".join(sorted(some)) or "none" for some in names)
    return (
        f"the profiles have no {what} in common: the first has {first}, the second {second}: "
        f"profile the same --{what}"
    )


def _notes_on_profiles(before: Profile, after: Profile) -> Iterator[str]:
    """Notes that apply to all records."""
    if before.device.key != after.device.key:
        yield (
            f"the devices differ, {before.device.name} and {after.device.name}: "
            "times, measured or predicted, occupancy and hardware counters are not compared; "
            "theory is compared, and so are registers and simulated counters if both devices have "
            "one architecture"
        )
    for which, profile in (("first", before), ("second", after)):
        if profile.status != "complete":
            yield f"the {which} profile was {profile.status}: it may lack records"


def _notes_on_launches(before: LaunchRecord, after: LaunchRecord) -> Iterator[str]:
    if before.device != after.device:
        named = [one.device or "none" for one in (before, after)]
        yield (
            f"the devices differ, {named[0]} before and {named[1]} after: neither modelled traffic "
            "nor times are compared"
        )
    for which, one in (("first", before), ("second", after)):
        if one.uncertainty:
            yield f"the {which} launch: {one.uncertainty}"
    given = [text for one in (before, after) for text in (*one.arguments, *one.settings)]
    random = any(map(has_random_content, given))
    if random and before.seed != after.seed:
        yield "the random content differs: if counts depend on it, give both the same --seed"
    if _lines_differ(before, after):
        which = "first" if before.inner_lines else "second"
        yield (
            f"source lines are not compared: only the {which} launch counts inlined functions at "
            "their own lines: give --inner-lines to both, or to neither"
        )


def has_random_content(argument: str) -> bool:
    """True for an argument, as a user writes it, that is filled at random at least in part.

    >>> has_random_content("x=f32[64]"), has_random_content("tex:f32[8,8]=zeros,linear")
    (True, False)
    """
    found = re.fullmatch(r"(?:\w+=)?(?:tex|surf):(.*)", argument, re.DOTALL)
    parts = _BETWEEN_PARTS.split(found[1])[:1] if found else [argument]
    if found := re.fullmatch(r"(?:\w+=)?struct\[[^\]]*\]:?(.*)", argument, re.DOTALL):
        fields = _BETWEEN_PARTS.split(found[1])
        return any("=" not in field or field.endswith("=random") for field in fields)
    return any(part.endswith(("]", "]=random")) for part in parts)


def _lines_differ(before: LaunchRecord, after: LaunchRecord) -> bool:
    """True if inlined functions are counted at other lines; records may not know it."""
    known = {before.inner_lines, after.inner_lines}
    return known == {True, False}


def _without_lines(one: LaunchRecord) -> LaunchRecord:
    predicted = replace(one.predicted, lines=()) if one.predicted else None
    return replace(one, lines=(), predicted=predicted)


# Pairs.


def _pair(key: _Key, before: _RunSide, after: _RunSide) -> Pair:
    ours, theirs = before.launches[key], after.launches[key]
    same_device = before.device == after.device
    found = list(kinds(ours, theirs, same_device=same_device))
    time, why_not = time_change(ours.trusted, theirs.trusted, same_device)
    predicted, about = predicted_change(
        ours.trusted_prediction, theirs.trusted_prediction, same_device
    )
    causes: tuple[CauseChange, ...] = ()
    line_costs: tuple[LineCostChange, ...] = ()
    if predicted is not None:
        causes, line_costs = _moved(ours, theirs)
    return Pair(
        label=key[0],
        shape=key[1],
        status_before=ours.status,
        status_after=theirs.status,
        compared=sum(kind.compared for kind in found),
        counts=tuple(change for kind in found for change in kind.changes(ours, theirs)),
        time=time,
        lost=tuple(_lost(ours, theirs, found, before.remedy)),
        notes=(
            *_origin_notes(ours, theirs, before.is_of),
            *(note for note in (*(kind.note for kind in found), why_not, about) if note),
        ),
        predicted=predicted,
        causes=causes,
        line_costs=line_costs,
    )


def _lost(
    before: Launched, after: Launched, found: Iterable[CountsOfKind], remedy: str
) -> Iterator[str]:
    """Results that the second side should have and lacks; `remedy` says how to obtain counts."""
    if after.status != "ok":
        if before.status == "ok":
            yield _outcome(after)
        return
    not_simulated = [note for note in after.notes if note.startswith("not simulated")]
    for kind in found:
        if kind.missing and kind.grade == Grade.SIMULATED and not_simulated:
            yield from not_simulated
        elif kind.missing:
            yield kind.missing + remedy


def _moved(
    before: Launched, after: Launched
) -> tuple[tuple[CauseChange, ...], tuple[LineCostChange, ...]]:
    """Parts of two predicted times that differ: by cause, and by source line."""
    ours, theirs = before.predicted, after.predicted
    assert ours is not None
    assert theirs is not None
    lines = [one.simulated.lines if one.simulated else () for one in (before, after)]
    return cause_changes(ours, theirs), line_cost_changes(ours, theirs, *lines)


def _outcome(record: Launched) -> str:
    return f"{record.status}: {record.reason or 'no reason was kept'}"


def _origin_notes(before: Launched, after: Launched, is_of: str) -> Iterator[str]:
    """Differences in origin of the numbers: the outcome, the compiler, the source of counters."""
    if before.status != "ok":
        yield _outcome(before).replace(":", f" in the first {is_of}:", 1)
    ours, theirs = before.resources, after.resources
    if ours and theirs:
        if ours.compiler != theirs.compiler:
            yield f"compiled by {ours.compiler} before, by {theirs.compiler} after"
        if ours.architecture != theirs.architecture:
            yield f"compiled for {ours.architecture} before, for {theirs.architecture} after"
    for what, first, second in (
        ("simulated", before.simulated, after.simulated),
        ("counted by hardware", before.counted, after.counted),
        ("predicted", before.predicted, after.predicted),
    ):
        if bool(first) != bool(second):
            yield f"{what} in the {'first' if first else 'second'} {is_of} only"
