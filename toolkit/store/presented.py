"""A profile with what a prompt and a notebook show of it: its verdict, figures, tables, page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from analysis.argument_types import checked
from analysis.errors import InputError, UnknownNameError
from analysis.problem import Gemm, parse_shape
from analysis.records import profile as records
from analysis.records.summaries import rows, rows_of_errors, rows_of_times
from analysis.timing.predicted import RankedCause
from reports import text
from reports.ladder import View, shapes
from reports.sections.ladder_answer import answer, standing
from reports.sections.ladder_rows import rows as rows_of
from toolkit.store import profile_json
from toolkit.store.dataframe import Rows, dataframe
from toolkit.store.recorded_runs import run_beside
from toolkit.store.user_files import write_page

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ShownProfile(records.Profile):
    """A profile as `toolkit.profile` and `toolkit.load` return it.

    It has the fields of the record and equals it. The run that ships for its device is shown beside
    it if it measured nothing itself, as in the page of the command.

    Examples
    --------
    >>> from toolkit import profile
    >>> found = profile(["512"], ["tiled", "coarsened-2d"], device="t4", executor="theory")
    >>> print(repr(found).splitlines()[0])
    <Profile of 2 variants at 512 × 512 × 512 on NVIDIA T4, theory
    >>> found.verdict.split(":")[0]
    '2.29 TFLOP/s in theory'
    >>> found.figure("ladder").layout.title.text
    'Rate of each rung, 512 × 512 × 512 on NVIDIA T4'
    """

    @classmethod
    def of(cls, record: records.Profile) -> ShownProfile:
        """The same profile with the methods of this class."""
        return cls(**{one.name: getattr(record, one.name) for one in fields(record)})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, records.Profile):
            return NotImplemented
        return all(getattr(self, one.name) == getattr(other, one.name) for one in fields(self))

    __hash__ = None  # type: ignore[assignment]  # some fields are dictionaries

    def __repr__(self) -> str:
        """At most three lines: what was profiled, and the answer at the first shape."""
        found = shapes(self)
        labels = {record.label for record in self.records}
        where = text.shape(found[0]) if found else "no shape"
        more = f" and {text.many(len(found) - 1, 'more shape')}" if len(found) > 1 else ""
        told = (
            f"Profile of {text.many(len(labels), 'variant')} at {where}{more} on "
            f"{self.device.name}, {_OBTAINED[self.executor]}",
            *(self.verdict.splitlines()[:1]),
        )
        lines = "\n  ".join(told)
        return f"<{lines}>"

    @property
    def verdict(self) -> str:
        """The answer at each shape, a line each, and warnings about the whole run."""
        found = shapes(self)
        lead = (f"{text.shape(one)}: " if len(found) > 1 else "" for one in found)
        told = (
            f"{a}{answer(rows_of(self._view(one))).lead}"
            for a, one in zip(lead, found, strict=True)
        )
        return "\n".join((*standing(self), *told))

    @property
    def causes(self) -> Mapping[tuple[str, Gemm], tuple[RankedCause, ...]]:
        """Causes of each record with a predicted time, by its label and shape."""
        return {
            (record.label, record.shape): record.trusted_prediction.causes
            for record in self.records
            if record.trusted_prediction
        }

    @checked
    def figure(
        self, name: str, *, shape: str | int | Gemm | None = None, variant: str | None = None
    ) -> go.Figure:
        """A figure of the profile's page as a Plotly figure.

        Parameters
        ----------
        name
            "ladder", "hierarchy", "rounds" or "sizes".
        shape
            One of the profile, by default the first. "sizes" shows all.
        variant
            Label of the variant that stands out.

        Returns
        -------
        plotly.graph_objects.Figure
            Without traces, but with the reason, where the profile has no such data.

        Raises
        ------
        UnknownNameError
            For another name or variant, or a shape that was not profiled.
        InputError
            For a profile without records.
        """
        from reports.figures.named import FIGURES

        if name not in FIGURES:
            raise UnknownNameError("figure", name, FIGURES)
        view = self._view(self._shape(shape))
        labels = [record.label for record in view.records]
        if variant is not None and variant not in labels:
            raise UnknownNameError("variant", variant, labels)
        return FIGURES[name](view, variant).plotly()

    def to_dataframe(self, of: Literal["times", "counters", "errors"] = "times") -> pd.DataFrame:
        """A table of the profile for pandas, which `pip install 'gemm-ladder[pandas]'` installs.

        Parameters
        ----------
        of
            "times": a row per record, with measured and predicted seconds, and the limiter.
            "counters": a row per counter and derived metric of each record.
            "errors": a row per class of inputs of each record, with rms and maximum error; empty
            unless the profile took them.

        Raises
        ------
        UnknownNameError
            For another table.
        UnavailableError
            Without pandas.
        """
        tables: dict[str, Rows] = {
            "times": lambda: rows_of_times(self),
            "counters": lambda: rows(self),
            "errors": lambda: rows_of_errors(self),
        }
        return dataframe(tables, of)

    def html(self) -> str:
        """The page of the profile, which needs no network."""
        from reports import render

        return render(self, recorded=run_beside(self))

    @checked
    def save(self, path: str | Path) -> None:
        """Write the record to a path that ends in .json, or the page to one that ends in .html.

        Raises InputError for another path, or one that cannot be written.
        """
        if Path(path).suffix == ".json":
            profile_json.save(self, path)
        elif Path(path).suffix == ".html":
            write_page(path, self.html)
        else:
            raise InputError(f"{path}: give a path that ends in .json (record) or .html (page)")

    def _repr_html_(self) -> str:
        """The answer and the times of all rungs, for a notebook."""
        from reports.pages.notebook import frame

        return frame(self, run_beside(self))

    def _view(self, shape: Gemm) -> View:
        return View(self, shape, run_beside(self))

    def _shape(self, asked: str | int | Gemm | None) -> Gemm:
        found = shapes(self)
        if not found:
            raise InputError("this profile has no record, so it has no figure: profile a rung")
        if asked is None:
            return found[0]
        wanted = asked if isinstance(asked, Gemm) else parse_shape(str(asked))
        if wanted not in found:
            raise UnknownNameError("shape", str(wanted), map(str, found))
        return wanted


_OBTAINED = {"gpu": "measured", "simulate": "simulated", "theory": "theory"}


@checked
def load(path: str | Path) -> ShownProfile:
    """Read a profile that `save` or the command `profile` wrote.

    Parameters
    ----------
    path
        A profile.json, as it is or compressed by xz, or the journal of a run that was killed.

    Returns
    -------
    ShownProfile
        Equal to the one that was saved.

    Raises
    ------
    RecordError
        For a file that is absent, damaged, foreign or from a newer version.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from toolkit import load, profile, save
    >>> found = profile(["512"], ["tiled"], device="t4", executor="theory")
    >>> with TemporaryDirectory() as folder:
    ...     save(found, Path(folder, "profile.json"))
    ...     load(Path(folder, "profile.json")) == found
    True
    """
    return ShownProfile.of(profile_json.load(path))
