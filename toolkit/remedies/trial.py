"""Trial of an edit: it is compiled, compared with the original, and its time is predicted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from analysis.errors import ToolkitError, UnavailableError
from analysis.timing.predicted import Explanation, Predicted
from toolkit.launch.launch import Execution
from toolkit.machine_code.kernel import Kernel
from toolkit.remedies.edit import Edit
from toolkit.remedies.kernel_launch import KernelLaunch
from toolkit.remedies.verification import (
    MOST_INSTRUCTIONS,
    OutputComparison,
    Ranges,
    Written,
    compared,
    compared_blocks,
    same_work,
    written_by,
)

EXECUTED = "smsp__inst_executed.sum"
MORE_INSTRUCTIONS = 2  # times those of the original: no faster version executes more
TOO_LONG = "too many instructions to compare"


class RefusedError(ToolkitError):
    """An edit that changes what blocks write. The text has an element that differs."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """An edit that keeps what the compared blocks write, with its time."""

    edit: Edit
    comparison: OutputComparison
    predicted: Predicted

    @property
    def time_s(self) -> float:
        return self.predicted.time_s


@dataclass(frozen=True, kw_only=True)
class Trials:
    """Trials of edits of one launch, whose machine code and execution are known."""

    launch: KernelLaunch
    kernel: Kernel
    execution: Execution
    _written: dict[Ranges, Written] = field(default_factory=dict)

    def compared(self, edit: Edit, changed: KernelLaunch, kernel: Kernel) -> OutputComparison:
        """Raises UnavailableError if that takes too long."""
        launch = self.launch
        executed = self.execution.counters[EXECUTED]
        before = compared_blocks(launch, changed, executed)
        everything = (range(prod(launch.grid)),)
        if before is None or (edit.all_blocks and before != everything):
            raise UnavailableError(TOO_LONG)
        after = same_work(before, launch, changed)
        if before == everything:
            after = (range(prod(changed.grid)),)
        if before not in self._written:
            self._written[before] = written_by(launch, self.kernel, before)
        blocks, of = sum(map(len, before)), prod(launch.grid)
        written = written_by(changed, kernel, after)
        return compared(self._written[before], written, edit, blocks, of)

    def tried(self, edit: Edit, kernel: Kernel) -> Trial:
        """The trial of an edit, whose machine code is `kernel`.

        Raises RefusedError if it changes results, and as `simulate` does.
        """
        changed = self.launch.edited(edit)
        comparison = self.compared(edit, changed, kernel)
        if not (comparison.is_equal or (edit.may_round and comparison.is_rounding)):
            raise RefusedError(comparison.place)
        most = MORE_INSTRUCTIONS * self.execution.counters[EXECUTED] + MOST_INSTRUCTIONS
        limited = replace(changed, max_instructions=min(most, changed.max_instructions))
        execution = limited.simulated(kernel, explanation=Explanation.NONE)
        if execution.predicted is None:
            raise UnavailableError(execution.prediction_basis or "no predicted time")
        return Trial(edit=edit, comparison=comparison, predicted=execution.predicted)
