"""Output of `profile` and `report` for every shape: the verdict and the ladder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.comparison.agreement import unexplained
from analysis.comparison.statistics import NEGLIGIBLE_CHANGE
from analysis.records.profile import Grade, Profile, Record
from analysis.roofline import LevelName
from reports import text
from reports.ladder import View, shapes
from reports.sections import hierarchy, product_errors, rungs
from reports.sections.breakdown import breakdown
from reports.sections.compact_table import compact_table
from reports.sections.ladder_answer import answer, failures, left_out, on_host, standing
from reports.sections.ladder_rows import Rows, rows
from reports.sections.ladder_summary import summary
from reports.sections.prediction import told_steps, trust, verdict
from reports.sections.scorecard import scorecard
from toolkit.cli.terminal import out, rich_table, say
from toolkit.store.profile_json import dumps


def print_profile(profile: Profile, recorded: Profile | None, *, is_verbose: bool) -> None:
    """Print the verdict and the ladder for every shape, and all else if `is_verbose`."""
    for sentence in standing(profile):
        say(sentence, "yellow")
    for place, shape in enumerate(shapes(profile)):
        if place:
            say("")
        view = View(profile, shape, recorded)
        _print_ladder(rows(view), is_verbose=is_verbose)
        if is_verbose:
            _print_all(view)


def _print_ladder(shown: Rows, *, is_verbose: bool) -> None:
    view, said = shown.view, answer(shown)
    say(said.lead, "bold", indent=0)
    for line in filter(None, (said.limit, said.advice)):
        say(line, indent=0)
    say(f"\nSGEMM {text.shape(view.shape)}, {view.profile.device.name}")
    if shown.rungs:
        out.print()
        out.print(rich_table(summary(shown), is_tight=True))
        out.print()
    for line in (*failures(shown), *_riddles(view.records)):
        say(line, "yellow")
    for line in _notes(shown, is_verbose=is_verbose):
        say(line, indent=2)


def _notes(shown: Rows, *, is_verbose: bool) -> Iterator[str]:
    """Explain the table: how to read it, how far to trust it, what it leaves out, where more is."""
    if any(row.step for row in shown.rungs) and shown.grade != Grade.THEORY:
        within = f"{100 * NEGLIGIBLE_CHANGE:.0f} %"
        yield (
            f"Speedup: over the rung before. Why: empty within {within}, or if no single reason "
            "stands out."
        )
    if shown.grade == Grade.RECORDED and shown.view.recorded:
        yield f"Recorded {text.date(shown.view.recorded.created)} on such a GPU."
    timings = [one for row in shown.rungs if (one := shown.view.timing(row.record))]
    if timings:
        if any(one.ratio for one in timings):
            yield verdict(timings)
        yield trust(shown.view.profile.device)
    yield from product_errors.sentences(shown.view)
    yield from left_out(shown)
    yield from on_host(shown)
    if not is_verbose:
        yield "More: the page, or --verbose."


def _riddles(records: Sequence[Record]) -> Iterator[str]:
    """Differences between closed form and machine code whose reason is not known."""
    for record in records:
        for one in unexplained(record):
            yield (
                f"{record.label}: {one.quantity} of {one.subject}: "
                f"{one.closed_form:,} by the closed form, {one.simulated:,} simulated: "
                f"{one.reason or ''}"
            )


# With --verbose.


def _print_all(view: View) -> None:
    compared = view if any(map(view.earlier, view.records)) else View(view.profile, view.shape)
    out.print("\nevery variant")
    out.print(rich_table(compact_table(compared, out.width)))
    _print_breakdown(view)
    _print_steps(view)
    _print_errors(view)
    _print_levels(view)
    _print_scorecard(view)


def _print_steps(view: View) -> None:
    """Print why each rung is faster or slower than the one before, if a time was predicted."""
    steps = told_steps(view)
    if steps and view.timings:
        found = rungs.table(steps, grade=view.grade_of_times)
        out.print(
            "why each rung is faster or slower than the one before"
        )  # the table may be narrower
        out.print(rich_table(found))


def _print_errors(view: View) -> None:
    """Print the errors of every variant on each class of inputs, if they are known."""
    if product_errors.has_errors(view):
        say(f"{product_errors.TITLE}: rms, maximum, and rms over that of cuBLAS")
        out.print(rich_table(product_errors.table(view)))


def _print_breakdown(view: View) -> None:
    """Print the parts of the times of a few variants."""
    found = breakdown(view)
    if found is None:
        return
    table = rich_table(found)
    if table.__rich_measure__(out, out.options).minimum <= out.width:
        out.print("where the time goes")  # the table may be narrower
        out.print(table)


def _print_levels(view: View) -> None:
    """The intensity of every variant at each memory level, where traffic below L1 is known."""
    found = [
        one
        for one in hierarchy.launches(view)
        if any(one.pair(LevelName.L2)) or any(one.pair(LevelName.DRAM))
    ]
    if found:
        about = f"FLOP per byte at each level, {text.shape(view.shape)} ({hierarchy.grades(found)})"
        say(about)  # a title would be as narrow as its table
        out.print(rich_table(hierarchy.table(found)))


def _print_scorecard(view: View) -> None:
    """Print the scorecard of a shape if hardware counted something or an exact counter is off."""
    found = scorecard(view)
    if found and (found.is_measured or found.bad):
        say(found.verdict)
        out.print(rich_table(found.overview.brief, title=f"scorecard, {text.shape(view.shape)}"))


def shown(result: Profile, recorded: Profile | None, *, as_json: bool, is_verbose: bool) -> str:
    """Complete text for standard output, made before anything is written."""
    if as_json:
        return dumps(result)
    with out.capture() as capture:
        print_profile(result, recorded, is_verbose=is_verbose)
    return capture.get()
