"""Comparison of two profiles: changed counts and changed times.

Records are matched by label and shape. Counts of theory, of the compiler and of the simulator, and
exact counters of the hardware, are deterministic: any difference is a change. Counters with
arbitration and modelled ones are compared with the tolerances of `analysis.comparison.scorecard`.
Times get a verdict from the intervals of their medians (`analysis.comparison.statistics`).
Predicted times are deterministic, so any difference is a change.

Values that depend on more than the kernel are compared only if the rest is equal:

| number                           | needs                                                        |
|----------------------------------|--------------------------------------------------------------|
| theory                           | nothing                                                      |
| registers, shared, local bytes   | one device, or one architecture                              |
| simulated counters               | one device, or one architecture                              |
| occupancy                        | one device                                                   |
| hardware counters                | one device; L2 and DRAM also one state of L2 at the start    |
| predicted times                  | one device and state of L2                                   |
| times                            | one GPU and state of L2; the CPU reference's never           |

A count of the first profile that the second lacks is lost, which is a change too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from analysis.comparison.lines import LineChange, line_changes
from analysis.comparison.scorecard import TOLERANCES, within
from analysis.comparison.statistics import TimeVerdict, quotient, time_verdict
from analysis.errors import InputError
from analysis.geometry import Geometry
from analysis.occupancy import Resources
from analysis.problem import Gemm
from analysis.records.counters import ALL_COUNTERS, OF_BULK_COPIES
from analysis.records.profile import Counted, Interval, Measured, Profile, Record, Simulated, Status
from analysis.theory import Theory
from analysis.timing.predicted import Predicted

COMPARISON_SCHEMA_VERSION = 3  # 2: predicted times; 3: whether a missing record had counts
MOST_NAMES = 8  # of missing counts in one line

ROUNDING = 1e-9  # of a predicted time: far above what an order of sums does, below any cycle

Grade = Literal["theory", "compiled", "simulated", "measured"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """Profile of one side of the comparison."""

    created: str
    command: str
    status: str
    executor: str
    device: str
    toolkit_version: str
    commit: str | None


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Difference of the environments; None if a side does not know the value."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, kw_only=True)
class CountChange:
    """A number that differs: `within` its tolerance (above 0), or `changed`.

    `name`: a counter, or what is counted. `lines`: lines of a simulated counter, the largest
    difference first.
    """

    grade: Grade
    name: str
    before: int
    after: int
    tolerance: float
    verdict: Literal["changed", "within"]
    lines: tuple[LineChange, ...] = ()

    @property
    def ratio(self) -> float | None:
        """After over before, None if before is 0."""
        return self.after / self.before if self.before else None


@dataclass(frozen=True, kw_only=True)
class TimeChange:
    """Two medians, and the verdict on them; `reason` says why a verdict is ambiguous.

    `change` is after over before, `change_interval` what it lies in: each end is wrong with a
    chance of at most 5%.
    """

    before_s: float
    after_s: float
    before_interval_s: Interval | None
    after_interval_s: Interval | None
    before_samples: int
    after_samples: int
    change: float | None
    change_interval: Interval | None
    verdict: TimeVerdict
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class PredictionChange:
    """Two predicted times, their limiters, and whether anything of them changed.

    `change` is after over before.
    """

    before_s: float
    after_s: float
    limiter_before: str
    limiter_after: str
    change: float | None
    verdict: Literal["changed", "same"]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One variant at one shape in both profiles.

    `compared` numbers were looked at, `counts` are those that differ. `lost` says what the second
    profile ought to have and has not, `notes` what differs in how the numbers came about and what
    was therefore not compared.
    """

    label: str
    shape: Gemm
    status_before: Status
    status_after: Status
    compared: int
    counts: tuple[CountChange, ...]
    time: TimeChange | None
    lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    predicted: PredictionChange | None = None

    @property
    def changed(self) -> tuple[CountChange, ...]:
        return tuple(one for one in self.counts if one.verdict == "changed")


@dataclass(frozen=True, kw_only=True)
class Key:
    """A record that only one profile has; `has_counts` says whether it would be compared."""

    label: str
    shape: Gemm
    has_counts: bool


@dataclass(frozen=True, kw_only=True)
class ProfileComparison:
    """Changes from one profile to another: the document of `compare --json`."""

    schema_version: int
    before: Run
    after: Run
    counts: Literal["changed", "same", "not compared"]
    times: Literal["slower", "not slower", "not compared"]
    predictions: Literal["changed", "same", "not compared"]
    pairs: tuple[Pair, ...]
    only_before: tuple[Key, ...]
    only_after: tuple[Key, ...]
    environment: tuple[Setting, ...]
    notes: tuple[str, ...]


def compare(before: Profile, after: Profile) -> ProfileComparison:
    """Every difference between two profiles, record by record.

    Raises InputError where they have no record in common.
    """
    ours, theirs = _by_key(before), _by_key(after)
    common = [key for key in ours if key in theirs]
    if not common:
        raise InputError(_nothing_in_common(ours, theirs))
    sides = _Sides(before, after)
    pairs = tuple(sides.pair(ours[key], theirs[key]) for key in common)
    only_before = tuple(_key(ours[key]) for key in ours if key not in theirs)
    return ProfileComparison(
        schema_version=COMPARISON_SCHEMA_VERSION,
        before=_run(before),
        after=_run(after),
        counts=_counts_verdict(pairs, only_before),
        times=_times_verdict(pairs),
        predictions=_predictions_verdict(pairs),
        pairs=pairs,
        only_before=only_before,
        only_after=tuple(_key(theirs[key]) for key in theirs if key not in ours),
        environment=tuple(_settings(before, after)),
        notes=tuple(sides.notes()),
    )


_Key = tuple[str, Gemm]


def _by_key(profile: Profile) -> dict[_Key, Record]:
    """Records by key, the first one of each."""
    found: dict[_Key, Record] = {}
    for record in profile.records:
        found.setdefault((record.label, record.shape), record)
    return found


def _key(record: Record) -> Key:
    counts = [record.theory, record.geometry, record.resources, record.simulated, record.counted]
    return Key(label=record.label, shape=record.shape, has_counts=any(counts))


def _nothing_in_common(ours: Mapping[_Key, Record], theirs: Mapping[_Key, Record]) -> str:
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


def _run(profile: Profile) -> Run:
    return Run(
        created=profile.created,
        command=profile.command,
        status=profile.status,
        executor=profile.executor,
        device=profile.device.name,
        toolkit_version=profile.environment.toolkit_version,
        commit=profile.environment.commit,
    )


def _settings(before: Profile, after: Profile) -> Iterator[Setting]:
    ours, theirs = _environment(before), _environment(after)
    for name in dict.fromkeys([*ours, *theirs]):
        if ours.get(name) != theirs.get(name):
            yield Setting(name=name, before=ours.get(name), after=theirs.get(name))


def _environment(profile: Profile) -> dict[str, str | None]:
    environment = profile.environment
    return {
        "device": profile.device.name,
        "executor": profile.executor,
        "toolkit version": environment.toolkit_version,
        "commit": environment.commit,
        **environment.software,
        **environment.hardware,
    }


def _counts_verdict(
    pairs: tuple[Pair, ...], only_before: tuple[Key, ...]
) -> Literal["changed", "same", "not compared"]:
    if any(pair.changed or pair.lost for pair in pairs) or any(k.has_counts for k in only_before):
        return "changed"
    return "same" if any(pair.compared for pair in pairs) else "not compared"


def _times_verdict(pairs: tuple[Pair, ...]) -> Literal["slower", "not slower", "not compared"]:
    verdicts = [pair.time.verdict for pair in pairs if pair.time]
    if "slower" in verdicts:
        return "slower"
    return "not slower" if verdicts else "not compared"


def _predictions_verdict(pairs: tuple[Pair, ...]) -> Literal["changed", "same", "not compared"]:
    verdicts = [pair.predicted.verdict for pair in pairs if pair.predicted]
    if "changed" in verdicts:
        return "changed"
    return "same" if verdicts else "not compared"


@dataclass(frozen=True)
class _Sides:
    """Two profiles, and the values that may be compared between them."""

    before: Profile
    after: Profile

    @property
    def same_device(self) -> bool:
        return self.before.device.key == self.after.device.key

    def notes(self) -> Iterator[str]:
        """Notes that apply to all records."""
        if not self.same_device:
            yield (
                f"the devices differ, {self.before.device.name} and {self.after.device.name}: "
                "times, measured or predicted, occupancy and hardware counters are not compared; "
                "theory is, and "
                "registers and simulated counters where both are of one architecture"
            )
        for which, profile in (("first", self.before), ("second", self.after)):
            if profile.status != "complete":
                yield f"the {which} profile was {profile.status}: it may lack records"

    def pair(self, before: Record, after: Record) -> Pair:
        compared, counts, notes = 0, [], list(_origin_notes(before, after))
        lost = [_outcome(after)] if before.status == "ok" != after.status else []
        for grade, ours, theirs, note in self._numbers(before, after):
            if note:
                notes.append(note)
            compared += len(ours.keys() & theirs.keys())
            if after.status == "ok" and (missing := missing_counts(grade, ours, theirs)):
                why = [
                    n for n in after.notes if grade == "simulated" and n.startswith("not simulated")
                ]
                lost += why or [missing]
            changes = changed_counts(grade, ours, theirs)
            counts += [_with_lines(change, before, after) for change in changes]
        time, why_not = self._time(before, after)
        predicted, about = self._prediction(before, after)
        return Pair(
            label=before.label,
            shape=before.shape,
            status_before=before.status,
            status_after=after.status,
            compared=compared,
            counts=tuple(counts),
            time=time,
            lost=tuple(lost),
            notes=(*notes, *filter(None, [why_not, about])),
            predicted=predicted,
        )

    def _numbers(
        self, before: Record, after: Record
    ) -> Iterator[tuple[Grade, Mapping[str, int], Mapping[str, int], str]]:
        """(grade, counts before, counts after, what was left out) of every comparable kind.

        The counts of a side that lacks the kind are empty.
        """
        foreseen = _theory(before.theory), _theory(after.theory)
        if all(foreseen):
            foreseen = _filled(*foreseen), _filled(*reversed(foreseen))
        yield "theory", *foreseen, ""
        yield "compiled", launch_counts(before.geometry), launch_counts(after.geometry), ""
        if self._same_machine(before.resources, after.resources):
            yield (
                "compiled",
                resource_counts(before.resources),
                resource_counts(after.resources),
                "",
            )
        if self.same_device:
            yield "compiled", _occupancy(before), _occupancy(after), ""
        if self._same_machine(before.simulated, after.simulated):
            yield "simulated", _counters(before.simulated), _counters(after.simulated), ""
        if self.same_device:
            yield "measured", *_hardware_counts(before.counted, after.counted)

    def _same_machine(
        self, before: Resources | Simulated | None, after: Resources | Simulated | None
    ) -> bool:
        """True if both are of one machine, or if one side has none."""
        if self.same_device or before is None or after is None:
            return True
        return before.architecture == after.architecture

    # Times.

    def _time(self, before: Record, after: Record) -> tuple[TimeChange | None, str]:
        """Change of the times, or the reason why there is none."""
        ours, theirs = before.trusted, after.trusted
        if ours is None or theirs is None:
            if ours is None and theirs is None:
                return None, ""
            which = "first" if theirs is None else "second"
            return None, f"times are not compared: only the {which} profile has one"
        if not self.same_device:
            return None, ""  # said once, for all records
        obstacle = _obstacle(ours, theirs)
        if obstacle:
            return None, f"times are not compared: {obstacle}"
        return _timed(ours, theirs), ""

    def _prediction(self, before: Record, after: Record) -> tuple[PredictionChange | None, str]:
        """Change of the predicted times, and notes on it."""
        ours, theirs = before.trusted_prediction, after.trusted_prediction
        if ours is None or theirs is None or not self.same_device:
            return None, ""
        if ours.l2 != theirs.l2:
            return None, (
                f"predicted times are not compared: of a {ours.l2} L2 before, "
                f"of a {theirs.l2} one after"
            )
        return prediction_change(ours, theirs), other_constants(ours, theirs)


def other_constants(before: Predicted, after: Predicted) -> str:
    """Note that two times were predicted with different constants, if they were."""
    if before.constants == after.constants:
        return ""
    return f"predicted with constants of {before.constants} before, of {after.constants} after"


def prediction_change(before: Predicted, after: Predicted) -> PredictionChange:
    """Change of two predicted times for one device and state of L2."""
    # sums of another order differ in their last digits: that is no change
    same_time = math.isclose(before.time_s, after.time_s, rel_tol=ROUNDING)
    is_same = same_time and before.limiter == after.limiter
    return PredictionChange(
        before_s=before.time_s,
        after_s=after.time_s,
        limiter_before=before.limiter,
        limiter_after=after.limiter,
        change=after.time_s / before.time_s if before.time_s else None,
        verdict="same" if is_same else "changed",
    )


def _obstacle(before: Measured, after: Measured) -> str:
    """Reason why two times are not comparable; empty if they are."""
    if before.clock != after.clock:
        return f"{before.clock} before, {after.clock} after"
    if before.clock == "host clock":
        return "those of the host's CPU are no kernel's, and vary with all else that it does"
    if before.l2 != after.l2:
        return f"L2 was {before.l2} before and {after.l2} after"
    return ""


def _timed(before: Measured, after: Measured) -> TimeChange:
    change = quotient(after.interval_s, before.interval_s)
    verdict = time_verdict(change)
    return TimeChange(
        before_s=before.median_s,
        after_s=after.median_s,
        before_interval_s=before.interval_s,
        after_interval_s=after.interval_s,
        before_samples=len(before.samples_s),
        after_samples=len(after.samples_s),
        change=after.median_s / before.median_s if before.median_s else None,
        change_interval=change,
        verdict=verdict,
        reason=_why_ambiguous(before, after) if verdict == "ambiguous" else None,
    )


def _why_ambiguous(before: Measured, after: Measured) -> str:
    if before.interval_s is None or after.interval_s is None:
        counts = f"{len(before.samples_s)} before, {len(after.samples_s)} after"
        return f"too few samples for an interval ({counts}): 6 are needed"
    return "the samples allow a change and none: take more, or a steadier clock"


# Counts.


def _outcome(record: Record) -> str:
    return f"{record.status}: {record.reason or 'no reason was kept'}"


def missing_counts(grade: Grade, before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Names of the counts that only the first side has."""
    names = [name for name in before if name not in _with_copies(after, before)]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"missing now ({grade}): {', '.join(names[:MOST_NAMES])}{more}" if names else ""


def _counters(of: Simulated | Counted | None) -> Mapping[str, int]:
    return of.counters if of else {}


def _hardware_counts(
    before: Counted | None, after: Counted | None
) -> tuple[Mapping[str, int], Mapping[str, int], str]:
    """Hardware counters, without traffic if the states of L2 differ."""
    ours, theirs = _counters(before), _counters(after)
    if before is None or after is None or before.caches == after.caches:
        return ours, theirs, ""
    note = (
        f"L2 was {before.caches} before and {after.caches} after when the hardware "
        "counted: L2 and DRAM traffic is not compared"
    )
    return _unmodelled(ours), _unmodelled(theirs), note


def _theory(theory: Theory | None) -> dict[str, int]:
    """Counts of the closed forms by description."""
    if theory is None:
        return {}
    accesses = theory.accesses
    found: dict[str, int] = defaultdict(int)
    found |= {"FLOP": theory.flop, "threads": accesses.threads}
    if accesses.multiply_adds is not None:
        found["multiply-adds"] = accesses.multiply_adds
    for one in accesses.accesses:
        subject = f"{one.space} {one.operation}s of {one.operand}"
        found[f"{subject}: elements"] += one.elements
        found[f"{subject}: instructions"] += one.instructions
    for p in theory.patterns:
        subject = f"{p.space} {p.operation}s of {p.operand}"
        found[f"{subject}: requests"] += p.requests
        found[f"{subject}: cycles"] += p.requests * p.cycles
        for quantity, each in (("sectors", p.sectors), ("wavefronts", p.wavefronts)):
            if each is not None:
                found[f"{subject}: {quantity}"] += p.requests * each
    return dict(found)


def _filled(own: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """Counts, with 0 for accesses that only the other side has."""
    known = {name.partition(":")[0] for name in own}
    absent = {name: 0 for name in other if ":" in name and name.partition(":")[0] not in known}
    return own | absent


def launch_counts(geometry: Geometry | None) -> dict[str, int]:
    """Numbers of the launch geometry; empty without a launch."""
    if geometry is None:
        return {}
    return {
        "blocks": geometry.blocks,
        "threads per block": geometry.threads_per_block,
        "dynamic shared bytes": geometry.dynamic_shared_bytes,
    }


def resource_counts(resources: Resources | None) -> dict[str, int]:
    """Numbers of the compiler's resources; empty if the kernel was not compiled."""
    if resources is None:
        return {}
    return {
        "registers per thread": resources.registers_per_thread,
        "static shared bytes": resources.static_shared_bytes,
        "local bytes": resources.local_bytes,
    }


def _occupancy(record: Record) -> dict[str, int]:
    occupancy = record.occupancy
    if occupancy is None:
        return {}
    return {"blocks per SM": occupancy.blocks_per_sm, "warps per SM": occupancy.warps_per_sm}


def _unmodelled(counters: Mapping[str, int]) -> dict[str, int]:
    return {
        name: count
        for name, count in counters.items()
        if name in ALL_COUNTERS and ALL_COUNTERS[name].grade != "modelled"
    }


def changed_counts(
    grade: Grade, before: Mapping[str, int], after: Mapping[str, int]
) -> list[CountChange]:
    """The counts of one grade that both sides have and that differ, in the order of the first.

    Where one of two sides with counts has bulk copies alone, those of the other are none.
    """
    ours, theirs = _with_copies(before, after), _with_copies(after, before)
    changes = (_count_change(grade, name, ours, theirs) for name in ours if name in theirs)
    return [change for change in changes if change.before != change.after]


def _with_copies(own: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    absent = {name: 0 for name in OF_BULK_COPIES if own and name in other and name not in own}
    return {**own, **absent}


def _count_change(
    grade: Grade, name: str, before: Mapping[str, int], after: Mapping[str, int]
) -> CountChange:
    tolerance = _tolerance(grade, name)
    return CountChange(
        grade=grade,
        name=name,
        before=before[name],
        after=after[name],
        tolerance=tolerance,
        verdict="within" if tolerance and _is_noise(name, before, after) else "changed",
    )


def _tolerance(grade: Grade, name: str) -> float:
    """Tolerance of a counter: the simulator has no noise, but its model of caches has errors."""
    is_modelled = name in ALL_COUNTERS and ALL_COUNTERS[name].grade == "modelled"
    if grade == "measured" or (grade == "simulated" and is_modelled):
        return TOLERANCES.get(name, 0.0)
    return 0.0


def _is_noise(name: str, before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """True if the difference may be noise of either side."""
    ours, theirs = before[name], after[name]
    return within(name, ours, theirs, predictions=before, counts=after) or within(
        name, theirs, ours, predictions=after, counts=before
    )


def _with_lines(change: CountChange, before: Record, after: Record) -> CountChange:
    if change.grade != "simulated" or not (before.simulated and after.simulated):
        return change
    lines = line_changes(change.name, before.simulated.lines, after.simulated.lines)
    return replace(change, lines=lines)


def _origin_notes(before: Record, after: Record) -> Iterator[str]:
    """Differences in origin of the numbers: the outcome, the compiler, the source of counters."""
    if before.status != "ok":
        yield _outcome(before).replace(":", " in the first profile:", 1)
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
            yield f"{what} in the {'first' if first else 'second'} profile only"
