"""Differences between theory, simulation and hardware, with a verdict for each counter.

`reports/sections/scorecard.py` draws them.

The class of a counter defines agreement (`analysis.records.counters`): exact ones are equal to the
last digit, noisy ones differ at most by the observed arbitration of the hardware, modelled ones by
an error stated here. Simulation is compared with hardware if both exist. A closed form counts full
warps and may differ at edges for a known reason, which does not affect the verdict. If the counted
machine code is not the simulated one, a difference is no mismatch: the compilers wrote different
instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from analysis.comparison.agreement import Comparison, closed_forms, comparisons, known_reason
from analysis.records.counters import ALL_COUNTERS, MODELLED, Counter, CounterClass, Wait
from analysis.records.description import MetricUnit
from analysis.records.metrics import BANK_CONFLICTS, SHARED_WAVEFRONTS
from analysis.records.profile import Record, Score, Verdict

# Beginning of the note on a record if its L2 and DRAM traffic was counted later than the rest.
TRAFFIC_COUNTED = "L2 and DRAM traffic counted in one pass, "

# Wavefronts that arbitration with other traffic adds on the hardware; it never removes any.
# Stores: up to 17% of the counted ones in 159 of 166 recorded launches. In the others, all with
# fewer than 20,000 of them, up to 24%; wider would hide a conflict in one of five requests.
STORE_ARBITRATION = 0.18
# Loads: up to 1.13% where guards leave lanes idle.
LOAD_ARBITRATION = 0.015
# The additional wavefronts are conflicts, which have a counter of their own. If it was counted,
# wavefronts less conflicts must agree to this: the largest error seen in kernels with conflicts.
LOAD_REMAINDER = 0.002
# Estimates: the stated errors of the model of the caches (docs/validation.md). The error of DRAM is
# larger, because other traffic and the state of L2 at the start affect it too.
L2_ERROR, DRAM_ERROR = 0.10, 0.15
# Polls that waits add on hardware. In the simulator, each wait succeeds at once or after a few
# polls. At barriers that bulk copies complete, hardware waits within one instruction, up to a time
# limit: up to 0.0007% timed out in 21 recorded launches.
BARRIER_WAITS = 0.0001
# Flags of other blocks are polled in a loop. Polls were 2.5% of the global loads of a launch of
# 34 µs in which all blocks wait for copies, and up to 0.97% in 25 other launches.
FLAG_WAITS = 0.05
FLAG_WAITS_OF_ALL = 0.005  # relative to all instructions: 0.27% and up to 0.1%
# If one block represents others that share tiles in the same way, guarded steps of divisions depend
# on the operands: up to 0.033% of the lanes in products with K = 20 and 5.
GUARDS = 0.001
_PREDICATED = "smsp__thread_inst_executed_pred_on.sum"
NEGLIGIBLE_BYTES = 2**20  # of traffic: every launch has some that the kernel does not request

_CONFLICTS_OF = dict(zip(SHARED_WAVEFRONTS, BANK_CONFLICTS, strict=True))
_WAVEFRONTS_OF = dict(zip(BANK_CONFLICTS, SHARED_WAVEFRONTS, strict=True))
_SHARED_LOADS = SHARED_WAVEFRONTS[0]


def _tolerance(counter: Counter) -> float:
    if counter.counter_class == CounterClass.MODELLED:
        return DRAM_ERROR if counter.unit == MetricUnit.BYTES else L2_ERROR
    if counter.tag in (_SHARED_LOADS, BANK_CONFLICTS[0]):
        return LOAD_ARBITRATION
    return STORE_ARBITRATION if counter.counter_class == CounterClass.NOISY else 0.0


TOLERANCES: Mapping[str, float] = MappingProxyType(
    {name: _tolerance(counter) for name, counter in ALL_COUNTERS.items()}
)


def scores(record: Record, *, counted_in: Record | None = None) -> tuple[Score, ...]:
    """Score of every counter that a grade of a record has, in the order of `ALL_COUNTERS`.

    The hardware's counts are the record's own, or those of `counted_in`: the same variant and
    shape in an earlier run.
    """
    source = counted_in or record
    measured: Mapping[str, int] = source.counted.counters if source.counted else {}
    simulated: Mapping[str, int] = record.simulated.counters if record.simulated else {}
    theory = closed_forms(record.theory) if record.theory else {}
    judge = _Judge(
        record=record,
        theory=theory,
        simulated=simulated,
        measured=measured,
        compared={one.counter: one for one in comparisons(record) if one.counter},
        other_code=_other_code(record, source),
    )
    names = theory.keys() | simulated.keys() | measured.keys()
    return tuple(judge.score(counter) for name, counter in ALL_COUNTERS.items() if name in names)


def scored(record: Record) -> Record:
    """The record with its scores, derived from its counters."""
    return replace(record, scores=scores(record))


def scores_of(record: Record) -> tuple[Score, ...]:
    """Stored scores of a record; derived for files of older versions without scores."""
    return record.scores or scores(record)


def disagreements(found: Iterable[Score]) -> tuple[Score, ...]:
    """Exact counters that differ without an explanation."""
    return tuple(one for one in found if one.grade == CounterClass.EXACT and one.is_apart)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The scores of one class that compare two grades, without counters that are 0 by both.

    `worst`: the score with the ratio farthest from 1, except for those that are within the
    tolerance only because of small counts.
    """

    equal: int
    within: int
    explained: int
    mismatches: int
    worst: Score | None

    @property
    def compared(self) -> int:
        return self.equal + self.within + self.explained + self.mismatches


def tally(found: Iterable[Score], grade: CounterClass) -> Tally:
    """Tally of the scores of one class."""
    of_class = (one for one in found if one.grade == grade and any(one.by_grade.values()))
    own = [one for one in of_class if one.verdict != Verdict.ALONE]
    mismatches = sum(one.is_apart for one in own)
    return Tally(
        equal=sum(one.verdict == Verdict.EQUAL for one in own),
        within=sum(one.verdict == Verdict.WITHIN for one in own),
        explained=sum(one.verdict == Verdict.APART for one in own) - mismatches,
        mismatches=mismatches,
        worst=max(
            (one for one in own if one.ratio is not None and not _is_negligible(one)),
            key=error,
            default=None,
        ),
    )


def _is_negligible(score: Score) -> bool:
    of_model = score.grade == CounterClass.MODELLED and score.verdict == Verdict.WITHIN
    return of_model and error(score) > score.tolerance


def error(score: Score) -> float:
    """Distance of a score's ratio from 1; 0 if it has none."""
    return abs(score.ratio - 1) if score.ratio is not None else 0.0


def predicted_and_reference(score: Score) -> tuple[int, int] | None:
    """The two numbers that a score compares, the reference second; None if there is only one."""
    return _pair(score.theory, score.simulated, score.measured)


def _pair(
    theory: int | None, simulated: int | None, measured: int | None
) -> tuple[int, int] | None:
    by_trust = [count for count in (simulated, theory, measured) if count is not None]
    return (by_trust[0], by_trust[-1]) if len(by_trust) > 1 else None


def _other_code(record: Record, source: Record) -> str | None:
    """Difference of the counted machine code from the simulated one, None if equal."""
    if record.simulated is None or source.counted is None:
        return None
    simulated = f"{record.simulated.architecture} by {record.simulated.compiler}"
    if source.resources is None:
        return f"the simulated code is {simulated}; the counted code is of an unknown compiler"
    counted = f"{source.resources.architecture} by {source.resources.compiler}"
    if counted == simulated:
        return None
    return f"different machine code: simulated {simulated}, counted {counted}"


@dataclass(frozen=True, kw_only=True)
class _Judge:
    """Judges the counts of one launch by all grades."""

    record: Record
    theory: Mapping[str, int]
    simulated: Mapping[str, int]
    measured: Mapping[str, int]
    compared: Mapping[str, Comparison]
    other_code: str | None

    def score(self, counter: Counter) -> Score:
        name = counter.tag
        theory, simulated, measured = (
            counts.get(name) for counts in (self.theory, self.simulated, self.measured)
        )
        pair = _pair(theory, simulated, measured)
        has_noise = measured is not None or not pair
        verdict = self._verdict(name, pair) if pair else Verdict.ALONE
        reason, is_explained = self._reason(name, verdict)
        return Score(
            counter=name,
            grade=counter.counter_class,
            theory=theory,
            simulated=simulated,
            measured=measured,
            ratio=pair[0] / pair[1] if pair and pair[1] else None,
            tolerance=max(TOLERANCES[name], self._waits(name)) if has_noise else 0.0,
            verdict=verdict,
            reason=reason,
            is_explained=is_explained,
        )

    def _verdict(self, name: str, pair: tuple[int, int]) -> Verdict:
        predicted, reference = pair
        if predicted == reference:
            return Verdict.EQUAL
        if name not in self.measured:  # neither closed forms nor the simulator have noise
            return Verdict.APART
        least = -GUARDS * reference if self._has_flags and name == _PREDICATED else 0.0
        if (
            name in self.simulated
            and least <= reference - predicted <= self._waits(name) * reference
        ):
            return Verdict.WITHIN
        beside = self.simulated if name in self.simulated else {}
        is_close = within(name, predicted, reference, predictions=beside, counts=self.measured)
        return Verdict.WITHIN if is_close else Verdict.APART

    def _waits(self, name: str) -> float:
        """Fraction that waits may add to a counter, 0 if the rung has no such waits."""
        theory = self.record.theory
        if theory is None or not theory.accesses.tiling.bulk:
            return 0.0
        polled_at = ALL_COUNTERS[name].polled_at
        if self._has_flags and Wait.FLAG in polled_at:
            return FLAG_WAITS_OF_ALL if Wait.BARRIER in polled_at else FLAG_WAITS
        return BARRIER_WAITS if Wait.BARRIER in polled_at else 0.0

    @property
    def _has_flags(self) -> bool:
        """True if blocks may wait for others: partial sums are exchanged between blocks."""
        theory, geometry = self.record.theory, self.record.geometry
        if theory is None or not theory.accesses.tiling.leaves_sums:
            return False
        # closed forms count the threads of one block for each tile
        is_split = geometry is not None and geometry.threads >= 2 * theory.accesses.threads
        return theory.accesses.tiling.slices == 1 or is_split

    def _reason(self, name: str, verdict: Verdict) -> tuple[str | None, bool]:
        """Reason why grades differ, and whether it explains the verdict."""
        of_theory, is_apart = self._of_theory(name), verdict == Verdict.APART
        is_compared = name in self.simulated and name in self.measured
        if not is_compared or verdict == Verdict.EQUAL:
            return of_theory, not is_apart or of_theory is not None
        # an estimate's error is its own, whichever compiler's code it is of
        own = None if name in MODELLED else self.other_code
        if own is None and not is_apart:
            own = self._noise(name)
        parts = [own, f"theory: {of_theory}" if of_theory else None]
        return "; ".join(filter(None, parts)) or None, not is_apart or own is not None

    def _noise(self, name: str) -> str | None:
        """Known reason why the hardware's count differs within its tolerance, else None."""
        if name == _SHARED_LOADS:
            return "arbitration on the hardware adds conflicts"
        if not self._waits(name):
            return None
        if self.measured[name] > self.simulated[name]:
            return "hardware polls repeatedly while it waits; the simulator polls a few times"
        return "guarded steps of divisions depend on the operands"

    def _of_theory(self, name: str) -> str | None:
        """Reason why the closed form differs from the simulation, or else from the hardware."""
        count = self.simulated.get(name, self.measured.get(name))
        theory = self.record.theory
        if theory is None or count is None or self.theory.get(name, count) == count:
            return None
        one = self.compared.get(name)
        if one is not None and not one.is_equal:
            return one.reason if one.is_explained else None
        return known_reason(theory, name, count)


def within(
    name: str,
    predicted: int,
    counted: int,
    *,
    predictions: Mapping[str, int],
    counts: Mapping[str, int],
) -> bool:
    """True if the hardware count is within the tolerance of the prediction.

    `predictions` and `counts` are all counters of either side: those that belong together are
    judged together.
    """
    tolerance = TOLERANCES[name]
    excess = counted - predicted
    if name in MODELLED:
        is_negligible = (
            ALL_COUNTERS[name].unit.size_bytes * max(predicted, counted) < NEGLIGIBLE_BYTES
        )
        return is_negligible or abs(excess) <= tolerance * counted
    if name in _WAVEFRONTS_OF:
        return 0 <= excess <= tolerance * counts.get(_WAVEFRONTS_OF[name], counted)
    conflicts = _CONFLICTS_OF.get(name, "")
    if name == _SHARED_LOADS and conflicts in predictions and conflicts in counts:
        explained = counts[conflicts] - predictions[conflicts]
        return excess >= 0 and abs(excess - explained) <= LOAD_REMAINDER * counted
    return 0 <= excess <= tolerance * counted
