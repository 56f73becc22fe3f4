"""Results of `simulate` and `run`: files, page, terminal or JSON, and a remedy that is applied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from analysis.errors import InputError
from toolkit.cli.options import (
    FITTING,
    Apply,
    Details,
    Json,
    Lines,
    Page,
    Remedies,
    Rounding,
    Save,
    Top,
)
from toolkit.cli.output import check_is_no_input, check_output, print_json, write

if TYPE_CHECKING:
    from toolkit.cli.call import Call, SimulatedCall
    from toolkit.machine_code.kernel_source import Source


@dataclass(frozen=True, kw_only=True)
class ResultOptions:
    """Options for the output of a launch, which `simulate` and `run` have in common."""

    save: Save = None
    lines: Lines = True
    top: Top = None
    verbose: Details = False
    html: Page = None
    as_json: Json = False
    remedies: Remedies = True
    apply: Apply = None
    rounding: Rounding = False

    @property
    def shown_lines(self) -> int | None:
        """Number of source lines to show, `FITTING` unless it is given, None for none."""
        number = FITTING if self.top is None else self.top
        return number if self.lines else None

    def check_apply(self, *, predict: bool = True) -> None:
        """Raise BadParameter for options of remedies that go with others only."""
        if self.apply and not predict:
            raise typer.BadParameter("not with --no-predict", param_hint="'--apply'")
        if self.apply and not self.remedies:
            raise typer.BadParameter("not with --no-remedies", param_hint="'--apply'")
        if self.rounding and not self.apply:
            raise typer.BadParameter("goes with --apply", param_hint="'--rounding'")

    def check(self, call: Call) -> None:
        """Raise InputError before the launch for a page or a remedy that cannot be written."""
        if self.html:
            check_page(self.html, call)
        if self.apply:
            from toolkit.cli.remedies import check_applies

            check_applies(call, self.apply)

    def show(self, found: SimulatedCall, kernel: Callable[[], Source], *, left_out: bool) -> None:
        """Write the files and the page, print the answer, and apply the remedy.

        `left_out`: also print which device code of the file was left out.
        """
        from toolkit.cli import launch_tables
        from toolkit.cli.remedies import apply_remedy

        pages = {self.html: launch_tables.page(found)} if self.html else {}
        write({**found.files(), **pages})
        if self.as_json:
            print_json(launch_tables.document(found))
        else:
            launch_tables.print_simulated(found, top=self.shown_lines, verbose=self.verbose)
            if left_out:
                launch_tables.print_left_out(kernel())
        if self.apply:
            apply_remedy(found, self.apply, rounding=self.rounding, is_quiet=self.as_json)


def check_page(html: Path, call: Call) -> None:
    """Raise InputError if a page cannot be written to `html`, or something else is there."""
    from toolkit.store.user_files import check_page_name, same_file

    check_output(html)
    fills = [getattr(item, "fill", None) for item in call.arguments]
    check_is_no_input(html, [call.source, *(fill for fill in fills if isinstance(fill, Path))])
    if any(same_file(html, saved) for saved in call.saves.values()):
        raise InputError(f"cannot write the page to {html}: --save writes that file: give another")
    check_page_name(html)
