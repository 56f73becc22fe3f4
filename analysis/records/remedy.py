"""Remedies for the causes of a predicted time: edits of a kernel, and what they save."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.timing.predicted import Effect


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A change to a kernel or its launch, and the time that it is predicted to save.

    A verified remedy was made: the edited kernel compiles, the executed blocks write the same
    values, and its predicted time is `after_s`. Otherwise `after_s` is None, `title` says in one
    sentence what to do, and `most_s` is the time that the launch loses to the cause: no edit saves
    more in the model. A remedy `after` others is made on top of them: `before_s` is the time
    with them, `diff` and `arguments` are those of all. `measured_s` is the measured time with it,
    None where it was not measured.
    """

    #: from 1, the largest saving first; of those about as large, the simpler edit. Sentences are
    #: ranked by what their cause costs.
    number: int
    effect: Effect  # the cause that it removes
    lines: tuple[int, ...]  # of the source, that change; empty for a change of the launch
    title: str  # such as "pad each row of tile: tile[TILE][TILE + 1]"
    before_s: float  # predicted time without it
    after_s: float | None  # predicted time with it
    most_s: float | None = None  # the most that a remedy saves which was not made
    measured_s: float | None = None
    compared: str = ""  # such as "40 of 8,192 blocks compared: equal bit for bit"
    diff: str = ""  # unified diff of the source, empty where only options change
    arguments: tuple[str, ...] = ()  # changed options of `simulate`, such as ("--block", "32,4")
    is_rounding: bool = False  # changes rounding or the order of sums
    error: str = ""  # error bound of a remedy that changes rounding
    instead_of: tuple[int, ...] = ()  # remedies with which it saves no more than the larger one
    after: tuple[int, ...] = ()  # remedies after which it saves something

    def __repr__(self) -> str:
        """One line for a prompt: what it changes, and the predicted times; fields have the rest."""
        lines = f" of line {', '.join(map(str, self.lines))}" if self.lines else ""
        times = [time_s for time_s in (self.before_s, self.after_s) if time_s is not None]
        shown = " to ".join(f"{1e6 * time_s:,.2f}" for time_s in times)
        at_most = "" if self.most_s is None else f", saves at most {1e6 * self.most_s:,.2f} µs"
        made = "predicted" if self.after_s is not None else f"without it, not made{at_most}"
        return f"<Remedy {self.number}{lines}: {self.title}: {shown} µs {made}>"

    @property
    def saved_s(self) -> float | None:
        """Time that it saves, None if it was not made."""
        return None if self.after_s is None else self.before_s - self.after_s
