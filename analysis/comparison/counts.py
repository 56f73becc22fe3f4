"""Comparison of the counts of two launches: which numbers differ, and by what tolerance.

Counts of theory, of the compiler and of the simulator, and exact counters of the hardware, are
deterministic: any difference is a change. Counters with arbitration and modelled ones are compared
with the tolerances of `analysis.comparison.scorecard`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from analysis.comparison.lines import LineChange, line_changes
from analysis.comparison.scorecard import TOLERANCES, within
from analysis.records.counters import ALL_COUNTERS, MODELLED, OF_BULK_COPIES, OF_TENSOR_CORES
from analysis.records.description import MetricUnit
from analysis.records.profile import Counted, Grade, Launched, LineCounters, Simulated
from analysis.vocabulary import Vocabulary

MOST_NAMES = 8  # of missing counts in one line
LOCAL_BYTES = "local bytes"

Counts = Mapping[str, int]


class Outcome(Vocabulary):
    """Verdict of a comparison of two numbers."""

    CHANGED = "changed"
    WITHIN = "within"  # the tolerance
    SAME = "same"
    SLOWER = "slower"
    NOT_SLOWER = "not slower"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True, kw_only=True)
class CountChange:
    """A number that differs: within its tolerance (above 0), or changed.

    `name`: the tag of a counter, or what is counted. `label` and `unit` are of the description of
    the counter; of other counts they are the name and None. `lines`: lines of a simulated counter,
    the largest difference first.
    """

    grade: Grade
    name: str
    before: int
    after: int
    tolerance: float
    verdict: Outcome
    lines: tuple[LineChange, ...] = ()
    label: str
    unit: MetricUnit | None

    @property
    def ratio(self) -> float | None:
        """After over before, None if before is 0."""
        return self.after / self.before if self.before else None

    @property
    def is_worse(self) -> bool | None:
        """True if it costs more time than before, False if less, None where it is no cost itself.

        Instructions and traffic cost time, and so does local memory.
        """
        is_cost = self.grade in (Grade.SIMULATED, Grade.MEASURED) or self.name == LOCAL_BYTES
        if self.verdict != Outcome.CHANGED or not is_cost:
            return None
        return self.after > self.before


@dataclass(frozen=True, kw_only=True)
class CountsOfKind:
    """One kind of counts of two launches; those of a side that lacks the kind are empty.

    `note` names counts that were left out.
    """

    grade: Grade
    before: Counts
    after: Counts
    note: str = ""

    @property
    def compared(self) -> int:
        return len(self.before.keys() & self.after.keys())

    @property
    def missing(self) -> str:
        """Names of the counts that only the first side has; empty without any."""
        names = [name for name in self.before if name not in _with_copies(self.after, self.before)]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        listed = f"{', '.join(names[:MOST_NAMES])}{more}"
        return f"missing now ({self.grade}): {listed}" if names else ""

    def changes(self, before: Launched, after: Launched) -> Iterator[CountChange]:
        """The counts that both sides have and that differ, in the order of the first.

        Where one of two sides with counts has bulk copies alone, those of the other are none.
        """
        ours = _with_copies(self.before, self.after)
        theirs = _with_copies(self.after, self.before)
        is_simulated = self.grade == Grade.SIMULATED
        for name in ours:
            if name in theirs and ours[name] != theirs[name]:
                counter = ALL_COUNTERS.get(name)
                tolerance = _tolerance(self.grade, name)
                is_noise = tolerance and _is_noise(name, ours, theirs)
                yield CountChange(
                    grade=self.grade,
                    name=name,
                    label=counter.label if counter else name,
                    unit=counter.unit if counter else None,
                    before=ours[name],
                    after=theirs[name],
                    tolerance=tolerance,
                    verdict=Outcome.WITHIN if is_noise else Outcome.CHANGED,
                    lines=line_changes(name, _lines(before), _lines(after)) if is_simulated else (),
                )


def kinds(before: Launched, after: Launched, *, same_device: bool) -> Iterator[CountsOfKind]:
    """Every kind of counts that may be compared."""
    foreseen = _theory(before), _theory(after)
    if all(foreseen):
        foreseen = _filled(*foreseen), _filled(*reversed(foreseen))
    yield CountsOfKind(grade=Grade.THEORY, before=foreseen[0], after=foreseen[1])

    def same_machine(name: str) -> bool:
        """True if both are of one machine, or if one side has none."""
        sides = [getattr(one, name) for one in (before, after)]
        return same_device or None in sides or sides[0].architecture == sides[1].architecture

    compiled: dict[str, tuple[str, ...]] = {
        "geometry": ("blocks", "threads_per_block", "dynamic_shared_bytes")
    }
    if same_machine("resources"):
        compiled["resources"] = ("registers_per_thread", "static_shared_bytes", "local_bytes")
    if same_device:
        compiled["occupancy"] = ("blocks_per_sm", "warps_per_sm")
    for name, fields in compiled.items():
        ours, theirs = (_named(getattr(one, name), fields) for one in (before, after))
        yield CountsOfKind(grade=Grade.COMPILED, before=ours, after=theirs)
    if same_machine("simulated"):
        ours, theirs = _counters(before.simulated), _counters(after.simulated)
        yield CountsOfKind(grade=Grade.SIMULATED, before=ours, after=theirs)
    if same_device:
        yield _of_hardware(before.counted, after.counted)


def _lines(of: Launched) -> tuple[LineCounters, ...]:
    return of.simulated.lines if of.simulated else ()


def _counters(of: Simulated | Counted | None) -> Counts:
    return of.counters if of else {}


def _of_hardware(before: Counted | None, after: Counted | None) -> CountsOfKind:
    """Hardware counters, without traffic if the states of L2 differ."""
    ours, theirs, note = _counters(before), _counters(after), ""
    if before and after and before.caches != after.caches:
        ours, theirs = _unmodelled(ours), _unmodelled(theirs)
        note = (
            f"L2 was {before.caches} before and {after.caches} after when the hardware "
            "counted: L2 and DRAM traffic is not compared"
        )
    return CountsOfKind(grade=Grade.MEASURED, before=ours, after=theirs, note=note)


def _theory(of: Launched) -> dict[str, int]:
    """Counts of the closed forms by description."""
    theory = of.theory
    if theory is None:
        return {}
    accesses = theory.accesses
    found: dict[str, int] = defaultdict(int)
    found |= {"FLOP": theory.flop, "threads": accesses.threads}
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


def _named(of: object, fields: Iterable[str]) -> Counts:
    """Fields as counts by their names in words; empty without an object."""
    return {one.replace("_", " ").replace("sm", "SM"): getattr(of, one) for one in fields if of}


def _unmodelled(counters: Counts) -> dict[str, int]:
    unmodelled = ALL_COUNTERS.keys() - MODELLED.keys()
    return {name: count for name, count in counters.items() if name in unmodelled}


def _with_copies(own: Counts, other: Counts) -> Counts:
    optional = (*OF_BULK_COPIES, *OF_TENSOR_CORES)
    absent = {name: 0 for name in optional if own and name in other and name not in own}
    return {**own, **absent}


def _tolerance(grade: Grade, name: str) -> float:
    """Tolerance of a counter: the simulator has no noise, but its model of caches has errors."""
    if grade == Grade.MEASURED or (grade == Grade.SIMULATED and name in MODELLED):
        return TOLERANCES.get(name, 0.0)
    return 0.0


def _is_noise(name: str, before: Counts, after: Counts) -> bool:
    """True if the difference may be noise of either side."""
    ours, theirs = before[name], after[name]
    return within(name, ours, theirs, predictions=before, counts=after) or within(
        name, theirs, ours, predictions=after, counts=before
    )
