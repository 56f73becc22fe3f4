"""Search for the edits of a launch that save time: tried one by one, then in pairs, and ranked."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from difflib import unified_diff

from analysis.errors import ToolkitError
from analysis.records.remedy import Remedy
from analysis.timing.predicted import UNAVOIDABLE, Effect, Predicted
from toolkit.machine_code.kernel import Kernel
from toolkit.remedies.edit import Edit
from toolkit.remedies.facts import LEAST_SAVED
from toolkit.remedies.kernel_launch import KernelLaunch
from toolkit.remedies.result import LIMIT_S
from toolkit.remedies.trial import RefusedError, Trial, Trials

MOST_SHOWN = 5
PAIRED = 3  # remedies that are tried together with one before them
ALL = 0.9  # of what can be avoided: as good as all


@dataclass(frozen=True, kw_only=True)
class Search:
    """Trials of edits, relative to the predicted time of the launch as it is."""

    trials: Trials
    predicted: Predicted
    refused: list[str] = field(default_factory=list)
    untried: list[Edit] = field(default_factory=list)
    until_s: float = field(default_factory=lambda: time.process_time() + LIMIT_S)

    def ranked(self, edits: Sequence[Edit]) -> list[tuple[Remedy, Edit]]:
        """Remedies that save something, and their edits."""
        before_s = self.predicted.time_s
        tried = self._tried(edits, self.refused)
        worth = [one for one in tried if self._saves(before_s, one.time_s)]
        worth = _without_equals(_in_order(worth, LEAST_SAVED * before_s))[:MOST_SHOWN]
        found = [self._remedy(number, one) for number, one in enumerate(worth, 1)]
        return self._paired(found, worth)

    def _saves(self, before_s: float, after_s: float) -> bool:
        return before_s - after_s >= LEAST_SAVED * self.predicted.time_s

    def _leaves_nothing(self, trial: Trial) -> bool:
        """True if a remedy saves about all that can be avoided: others can only replace it."""
        avoidable_s = sum(
            one.time_s
            for one in self.predicted.costs
            if not one.is_roof and one.effect not in UNAVOIDABLE
        )
        return self.predicted.time_s - trial.time_s >= ALL * avoidable_s

    def _tried(self, edits: Sequence[Edit], refused: list[str]) -> Iterator[Trial]:
        """Trials that succeed.

        Lines on edits that change results are added to `refused`. Edits for other causes are left
        out once nothing is left for them to save.
        """
        only: Effect | None = None
        # read as edits are compiled, so that those for other causes are not compiled any more
        wanted = (edit for edit in edits if only in (None, edit.effect))
        for edit, kernel in _compiled_ahead(self.trials.launch, wanted):
            if only not in (None, edit.effect):
                continue
            if time.process_time() > self.until_s:
                self.untried.append(edit)
                continue
            trial = self._trial(edit, kernel, refused)
            if trial is None:
                continue
            if self._saves(self.predicted.time_s, trial.time_s) and self._leaves_nothing(trial):
                only = edit.effect
            yield trial

    def _trial(self, edit: Edit, kernel: Future[Kernel], refused: list[str]) -> Trial | None:
        """The trial of an edit; None if it fails, or if neither machine code nor launch change."""
        try:
            compiled = kernel.result()
            if compiled.code == self.trials.kernel.code and not edit.options:
                return None
            return self.trials.tried(edit, compiled)
        except RefusedError as error:
            refused.append(f"{edit.title}: {error}")
        except ToolkitError:
            pass
        return None

    def _paired(
        self, found: Sequence[Remedy], trials: Sequence[Trial]
    ) -> list[tuple[Remedy, Edit]]:
        """Remedies with their relation to those before them, for the first three."""
        result = [(remedy, one.edit) for remedy, one in zip(found, trials, strict=True)]
        for other in range(1, len(found[:PAIRED])):
            for one in range(other):
                if not result[one][0].instead_of and not result[one][0].after:
                    result[other] = self._related(
                        result[other][0], trials[other], trials[one], one + 1
                    )
                    break
        return result

    def _related(
        self, remedy: Remedy, trial: Trial, larger: Trial, number: int
    ) -> tuple[Remedy, Edit]:
        """A remedy relative to one that saves more: instead of it, or after it."""
        both = None if self._leaves_nothing(larger) else larger.edit.with_other(trial.edit)
        if both is not None and time.process_time() > self.until_s:
            return remedy, trial.edit
        pair = next(self._tried([both], []), None) if both else None
        if both is None or pair is None or not self._saves(larger.time_s, pair.time_s):
            return replace(remedy, instead_of=(number,)), trial.edit
        joint = replace(
            self._remedy(remedy.number, pair),
            effect=remedy.effect,
            lines=remedy.lines,
            title=remedy.title,
            before_s=larger.time_s,
            after=(number,),
        )
        return joint, both

    def _remedy(self, number: int, trial: Trial) -> Remedy:
        launch, edit, comparison = self.trials.launch, trial.edit, trial.comparison
        rounds = comparison.is_rounding
        equal = "values differ by rounding" if rounds else "equal bit for bit"
        return Remedy(
            number=number,
            effect=edit.effect,
            lines=edit.lines,
            title=edit.title,
            before_s=self.predicted.time_s,
            after_s=trial.time_s,
            compared=f"{comparison.text}: {equal}",
            diff=diff_of(launch, edit),
            arguments=edit.arguments,
            is_rounding=rounds,
            error=error_of(comparison.error, comparison.bound) if rounds else "",
        )


def _compiled_ahead(
    launch: KernelLaunch, edits: Iterable[Edit]
) -> Iterator[tuple[Edit, Future[Kernel]]]:
    """Edits with their machine code. The next edit is compiled while one is tried."""
    pool = ThreadPoolExecutor(1)
    try:
        begun: tuple[Edit, Future[Kernel]] | None = None
        for edit in edits:
            ahead = edit, pool.submit(launch.edited(edit).compiled)
            if begun is not None:
                yield begun
            begun = ahead
        if begun is not None:
            yield begun
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def diff_of(launch: KernelLaunch, edit: Edit) -> str:
    """Unified diff of the source; empty if an edit changes only options."""
    old, new = (text.splitlines(keepends=True) for text in (launch.text, edit.applied(launch.text)))
    return "".join(unified_diff(old, new, launch.name, launch.name))


def error_of(error: float, bound: float) -> str:
    return f"largest relative error {error:.1e}, at most {bound:.1e} is accepted"


def _in_order(trials: Sequence[Trial], alike_s: float) -> list[Trial]:
    """Trials by their time; of those that differ by less than `alike_s` the simpler one is first.

    Edits are proposed in order of simplicity.
    """
    left, found = list(trials), list[Trial]()
    while left:
        best_s = min(one.time_s for one in left)
        found.append(next(one for one in left if one.time_s <= best_s + alike_s))
        left.remove(found[-1])
    return found


def _without_equals(trials: Sequence[Trial]) -> list[Trial]:
    """Trials without those that choose another size, or other options, than the best one does."""
    found = list[Trial]()
    for one in trials:
        if not any(one.edit.has_other_options(other.edit) for other in found):
            found.append(one)
    return found
