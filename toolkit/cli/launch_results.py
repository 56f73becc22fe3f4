"""Results of `simulate` and `run`: files, page, terminal or JSON, and a remedy that is applied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from analysis.errors import InputError
from toolkit.cli.output import check_is_no_input, check_output, print_json, write

if TYPE_CHECKING:
    from toolkit.cli.call import Call, SimulatedCall
    from toolkit.machine_code.kernel_source import Source


@dataclass(frozen=True, kw_only=True)
class ResultOptions:
    """Options for the output of a launch. `top`: number of source lines, None for none."""

    html: Path | None
    as_json: bool
    top: int | None
    verbose: bool
    left_out: bool
    apply: int | None
    rounding: bool

    def check(self, call: Call) -> None:
        """Raise InputError before the launch for a page or a remedy that cannot be written."""
        if self.html:
            check_page(self.html, call)
        if self.apply:
            from toolkit.cli.remedies import check_applies

            check_applies(call, self.apply)

    def show(self, found: SimulatedCall, kernel: Callable[[], Source]) -> None:
        """Write the files and the page, print the answer, and apply the remedy."""
        from toolkit.cli import launch_tables
        from toolkit.cli.remedies import apply_remedy

        pages = {self.html: launch_tables.page(found)} if self.html else {}
        write({**found.files(), **pages})
        if self.as_json:
            print_json(launch_tables.document(found))
        else:
            launch_tables.print_simulated(found, top=self.top, verbose=self.verbose)
            if self.left_out:
                launch_tables.print_left_out(kernel())
        if self.apply:
            apply_remedy(found, self.apply, rounding=self.rounding, is_quiet=self.as_json)


def check_apply(apply: int | None, *, rounding: bool, remedies: bool, predict: bool = True) -> None:
    """Raise BadParameter for options of remedies that go with others only."""
    if apply and not predict:
        raise typer.BadParameter("not with --no-predict", param_hint="'--apply'")
    if apply and not remedies:
        raise typer.BadParameter("not with --no-remedies", param_hint="'--apply'")
    if rounding and not apply:
        raise typer.BadParameter("goes with --apply", param_hint="'--rounding'")


def check_page(html: Path, call: Call) -> None:
    """Raise InputError if a page cannot be written to `html`, or something else is there."""
    from toolkit.store.user_files import same_file

    check_output(html)
    fills = [getattr(item, "fill", None) for item in call.arguments]
    check_is_no_input(html, [call.source, *(fill for fill in fills if isinstance(fill, Path))])
    if any(same_file(html, saved) for saved in call.saves.values()):
        raise InputError(f"cannot write the page to {html}: --save writes that file: give another")
