"""Two profiles or launches beside each other, and what a notebook shows of the comparison."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.argument_types import checked
from analysis.comparison import runs
from analysis.comparison.runs import RunComparison, compare_launches
from analysis.errors import InputError, UnknownNameError
from toolkit.store.profile_json import holds_launch, load, load_launch
from toolkit.store.user_files import same_file

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True, kw_only=True, repr=False)
class ShownComparison(RunComparison):
    """A comparison as `toolkit.compare` returns it, with the fields of the record."""

    def __repr__(self) -> str:
        """Return what was compared, and the first sentences of its page."""
        from reports.pages.comparison import title

        return f"<{title(self)}: {self.verdict}>"

    @property
    def verdict(self) -> str:
        """The first sentences of the page, what got better or worse first."""
        from reports.pages.comparison import sentences

        return " ".join(sentences(self))

    @checked
    def figure(self, name: str = "times") -> go.Figure:
        """A figure of the comparison as a Plotly figure.

        Parameters
        ----------
        name
            "times": the parts of the times of two launches, or the change of each time of two
            profiles.

        Returns
        -------
        plotly.graph_objects.Figure
            Without traces, but with the reason, where no time is known on both sides.

        Raises
        ------
        UnknownNameError
            For another name.
        """
        from reports.figures.comparison import FIGURES

        if name not in FIGURES:
            raise UnknownNameError("figure", name, FIGURES)
        return FIGURES[name](self).plotly()


@checked
def compare(before: str | Path, after: str | Path) -> ShownComparison:
    """Compare two saved profiles, or two of `simulate --json` or `run --json`.

    Parameters
    ----------
    before, after
        Files.

    Returns
    -------
    ShownComparison
        Its `verdict` says what the command `compare` says first; `figure()` draws it.

    Raises
    ------
    InputError
        For one file twice, or one of each kind.
    RecordError
        For a damaged file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from toolkit import compare, profile, save
    >>> with TemporaryDirectory() as folder:
    ...     files = [f"{folder}/{name}.json" for name in ("before", "after")]
    ...     for file in files:
    ...         save(profile(["512"], ["tiled"], device="t4", executor="theory"), file)
    ...     found = compare(*files)
    >>> print(found.verdict)
    Times: none could be compared. Counts: 46 compared in 1 record; none changed.
    >>> found.figure("times").layout.title.text
    'Change of each time'
    """
    found = compare_files(Path(before), Path(after))
    return ShownComparison(**{one.name: getattr(found, one.name) for one in fields(found)})


def compare_files(before: Path, after: Path) -> RunComparison:
    """Differences between two profiles, or between two of `simulate --json` or `run --json`.

    Raises InputError for one file twice, or one of each kind; RecordError for a damaged file.
    """
    if same_file(before, after):
        raise InputError(f"{before} and {after} are one file: give two profiles or launches")
    launches = [path for path in (before, after) if holds_launch(path)]
    if len(launches) == 2:
        return compare_launches(load_launch(before), load_launch(after))
    profiles = [load(path) for path in (before, after) if path not in launches]
    if launches:
        raise InputError(
            f"only {launches[0]} is of `simulate --json` or `run --json`: give two of a kind"
        )
    return runs.compare(*profiles)
