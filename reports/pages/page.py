"""The page of a profile: the ladder, a pane per rung, and figures, in one HTML file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from analysis.devices import Device, Limits
from analysis.errors import InputError
from analysis.records.profile import Grade, Profile
from reports import ladder, style, text
from reports.figures import hierarchy, rounds, sizes
from reports.figures import ladder as rates
from reports.figures import ladder_still as static
from reports.ladder import View
from reports.pages.drawing import Drawing, packed, plotly
from reports.sections import launch_facts as facts
from reports.sections import launch_memory as memory
from reports.sections import product_errors, rung_pane
from reports.sections.kernel_source import line_rows
from reports.sections.ladder_answer import (
    answer,
    failures,
    graded,
    left_out,
    on_host,
    share,
    standing,
)
from reports.sections.ladder_rows import Row, Rows, rows
from reports.sections.ladder_summary import TERA, of_cublas, predicted_rate, rate, speedup
from reports.sections.launch_report import LaunchReport
from reports.sections.prediction import trust, verdict
from reports.sections.rung_report import report_of
from reports.sections.rungs import brief
from reports.sections.scorecard import Scorecard, scorecard
from reports.svg.busy import bars
from reports.svg.errors import errors
from reports.svg.memory_flow import flow
from reports.svg.roofline import roofline
from reports.templating import template

MOST_OPEN, MOST_LINES = 6, 30  # lines of a rung: shown at once, and in all

GRADES = {
    Grade.MEASURED: "CUDA events around each launch; median of the samples",
    Grade.RECORDED: "as measured, in an earlier run on this GPU model",
    Grade.PREDICTED: "a model of an SM replays the machine code",
    Grade.SIMULATED: "the machine code was executed on the CPU",
    Grade.THEORY: "a formula of the tiling and of the device",
    Grade.CHECKED: "compared with a float64 reference and an error bound",
}

# Why a rung may have a lower rate than the line of cuBLAS, and more than 100 % of it
OF_CUBLAS = "median of the ratios in rounds that time both: clocks differ between rounds"


def page(profile: Profile, recorded: Profile | None = None) -> str:
    """The report of a profile, beside an earlier run if there is one, as HTML.

    Raises InputError where that was made on another GPU model.
    """
    if recorded and recorded.device.key != profile.device.key:
        raise InputError(
            f"the recorded run is of {recorded.device.name}, the profile of "
            f"{profile.device.name}: give a run of the same GPU model"
        )
    of_sizes = _drawing(sizes, sizes.figure(profile, recorded=recorded))
    shapes = [
        _shape(rows(View(profile, shape, recorded)), of_sizes) for shape in ladder.shapes(profile)
    ]
    return template("ladder.html.j2").render(
        title=_title(profile, shapes),
        device=profile.device.name,
        warnings=standing(profile),
        names=[one.name for one in shapes],
        first=shapes[0].html if shapes else None,
        present=_IDS.findall(shapes[0].html) if shapes else [],
        shapes=packed(json.dumps([one.html for one in shapes])) if len(shapes) > 1 else None,
        colours=style.COLOURS,
        plotly_js=plotly(),
        device_rows=list(_device_rows(profile.device)),
        environment=list(_environment_rows(profile)),
        recorded_environment=list(_environment_rows(recorded)) if recorded else [],
        recorded_label=ladder.recorded_label(recorded) if recorded else "",
        command=profile.command,
    )


_IDS = re.compile(r'<section[^>]* id="([^"]+)"')


def _title(profile: Profile, shapes: Sequence[_Shape]) -> str:
    told = f": {shapes[0].headline}" if shapes and shapes[0].headline else ""
    return f"SGEMM ladder on {facts.short_device(profile.device)}{told}"


# One shape.


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """One shape of the page: its name, its number for the title, and its HTML."""

    name: str
    headline: str
    html: str


def _shape(shown: Rows, of_sizes: Drawing) -> _Shape:
    view, said, counted = shown.view, answer(shown), scorecard(shown.view)
    chosen = shown.chosen
    label = chosen.label if chosen else None
    found = {row.label: _rung(shown, row, counted) for row in shown.rungs}
    name = text.shape(view.shape)
    html = template("ladder_shape.html.j2").render(
        name=name,
        meta=list(_meta(shown)),
        said=said,
        chosen=label,
        rates=list(_rates(shown, label)),
        still=static.drawing(shown, label, _drawing_label(shown)) if shown.rungs else None,
        why_empty="" if shown.rungs else rates.figure(view).why_empty,
        rung=found[label] if label else None,
        rungs=packed(json.dumps(found)),
        failures=list(failures(shown)),
        trust=_trust(shown),
        table=list(_table(shown)),
        has_measured=shown.is_measured,
        grade=shown.grade,
        drawings=[
            one
            for one in (
                of_sizes,
                _drawing(hierarchy, hierarchy.figure(view, label)),
                _drawing(rounds, rounds.figure(view, label)),
            )
            if not one.figure.why_empty
        ],
        counters=counted,
        errors=product_errors.table(view) if product_errors.has_errors(view) else None,
        errors_said=list(product_errors.sentences(view)),
        classes=list(product_errors.readings()),
        left_out=[*left_out(shown), *on_host(shown)],
    )
    return _Shape(name=name, headline=f"{said.value} {said.unit}".strip(), html=html)


def _meta(shown: Rows) -> Iterator[str]:
    yield shown.view.profile.device.name
    if shown.rungs:
        yield text.many(len(shown.rungs), "kernel")


def _rates(shown: Rows, chosen: str | None) -> Iterator[Drawing]:
    """The figure of all rungs for a screen and for a telephone."""
    for is_narrow in (False, True) if shown.rungs else ():
        figure = rates.figure(shown.view, chosen, is_narrow=is_narrow, is_titled=False)
        yield Drawing(title=rates.TITLE, reading="", figure=figure, top_px=None)


def _drawing_label(shown: Rows) -> str:
    return f"{rates.TITLE} in TFLOP/s, {graded(shown)}"


def _drawing(module: object, figure: style.Figure) -> Drawing:
    title, reading = getattr(module, "TITLE"), getattr(module, "READING")  # noqa: B009
    return Drawing(title=title, reading=reading, figure=figure)


def _table(shown: Rows) -> Iterator[dict[str, str]]:
    """The chart as a table."""
    for row in shown.rungs:
        yield {
            "name": row.label,
            "number": f"{row.record.rung or ''}",
            "measured": rate(row) if shown.is_measured else "",
            "predicted": predicted_rate(row),
            "ceiling": text.three_digits(row.record.theory.attainable_flop_per_s / TERA)
            if row.record.theory
            else "",
            "of_cublas": of_cublas(row),
            "speedup": speedup(row),
            "error": row.error,
            "why": brief(row.step) if row.step else "",
        }


# One rung.


def _rung(shown: Rows, row: Row, counted: Scorecard | None) -> tuple[str, str]:
    """HTML of the pane of a rung, and of the sections below the first screen."""
    report = report_of(shown.view, row)
    pane = template("pane.html.j2").render(pane=rung_pane.pane(shown, row))
    return pane, template("rung.html.j2").render(
        number=row.record.rung,
        label=row.label,
        times=rung_pane.times_sentence(row, shown.grade),
        parts=bars(found, "Parts of the predicted time")
        if row.predicted and (found := rung_pane.time_bars(row.predicted))
        else None,
        counters=dict(counted.everything).get(row.label) if counted else None,
        notes=[one for one in row.record.notes if one],
        **(_launch(report, row) if report else dict.fromkeys(_LAUNCH)),
    )


_LAUNCH = (
    "busy",
    "work",
    "roofline",
    "occupancy",
    "launch",
    "memory",
    "flow",
    "file",
    "lines",
    "more",
)


def _launch(report: LaunchReport, row: Row) -> dict[str, object]:
    busy, shown_roofline = memory.busy_bars(report), memory.launch_roofline(report)
    shown_flow, lines = memory.launch_flow(report), list(_lines(report))
    return {
        "busy": bars(busy, "Share of the time for which each unit is busy") if busy else None,
        "work": text.predicted_seconds(report.work_s) if report.work_s else "",
        "roofline": roofline(shown_roofline) if shown_roofline else None,
        "occupancy": facts.occupancy_sentence(report),
        "launch": [*facts.launch_rows(report), *_check(row)],
        "memory": memory.memory_sentence(report),
        "flow": flow(shown_flow) if shown_flow else None,
        "file": report.file,
        "lines": lines[:MOST_OPEN],
        "more": lines[MOST_OPEN:],
    }


def _check(row: Row) -> Iterator[tuple[str, str]]:
    check = row.record.check
    if check and check.passed and check.worst_ratio is not None:
        yield "worst error of the result", f"{share(check.worst_ratio)} of tolerance"


def _lines(report: LaunchReport) -> Iterator[dict[str, object]]:
    for row in line_rows(report, MOST_LINES) if report.lines else ():
        yield {
            "number": row.number,
            "code": row.code,
            "executed": f"{row.executed:,}",
            "executed_v": row.executed,
            "share": text.three_digits(100 * row.share),
            "sectors": row.sectors,
            "wavefronts": row.wavefronts,
            "is_hot": False,
        }


# How far to trust it.


def _trust(shown: Rows) -> dict[str, object]:
    view = shown.view
    timings = [one for row in shown.rungs if (one := view.timing(row.record))]
    compared = [(one.record.label, one.ratio - 1) for one in timings if one.ratio]
    told = [verdict(timings)] if timings else []
    if timings:
        told.append(trust(view.profile.device))
    return {
        "sentence": " ".join(told) or "No time was predicted.",
        "errors": errors(compared, "Predicted over measured time of each rung")
        if len(compared) > 1
        else None,
        "grades": list(_grades(shown)),
    }


def _grades(shown: Rows) -> Iterator[tuple[str, str, str]]:
    """Yield each shown quantity, its grade, and how it was obtained."""
    records = [row.record for row in shown.rungs]
    if shown.is_measured:
        how = GRADES[Grade.RECORDED if shown.grade == Grade.RECORDED else Grade.MEASURED]
        yield "bars: times", graded(shown), how
        if any(row.measured and row.measured.relative_to_cublas for row in shown.rungs):
            yield "% of cuBLAS", graded(shown), OF_CUBLAS
    if any(row.predicted for row in shown.rungs):
        what = "circles: times, causes" if shown.is_measured else "bars: times, causes"
        yield what, Grade.PREDICTED, GRADES[Grade.PREDICTED]
    if any(one.simulated for one in records):
        yield "instructions, bytes, lines", Grade.SIMULATED, GRADES[Grade.SIMULATED]
    if any(one.theory for one in records):
        yield "ceilings", Grade.THEORY, GRADES[Grade.THEORY]
    if any(one.check for one in records):
        yield "results", Grade.CHECKED, GRADES[Grade.CHECKED]


def _device_rows(device: Device) -> Iterator[tuple[str, str, str, str]]:
    """(field, value, grade, source) of a device: its fields, reached ceilings and own constants."""
    of_limits = {field.name for field in fields(Limits)} - {"name", "compute_capability"}
    for field in sorted(fields(device), key=lambda field: field.name in of_limits):
        if field.name in ("sources", "measured", "constants"):
            continue
        value = getattr(device, field.name)
        grade = Grade.NOMINAL if isinstance(value, int | float) else ""
        source = device.sources.get(field.name, text.ABSENT)
        yield text.words(field.name), text.named(field.name, value), grade, source
    if (measured := device.measured) is not None:
        for field in fields(measured):
            if field.name != "source":
                value = text.named(field.name, getattr(measured, field.name))
                yield f"{text.words(field.name)}, reached", value, Grade.MEASURED, measured.source
    if (own := device.constants) is not None:
        for name, number in own.values.items():
            source = f"{own.file}, measured on {own.gpu}"
            yield f"{name}, of the model of time", f"{number:.4g}", Grade.MEASURED, source


def _environment_rows(profile: Profile) -> Iterator[tuple[str, str]]:
    environment = profile.environment
    yield "created", text.moment(profile.created)
    yield "executor", profile.executor
    yield "run", profile.status
    yield "command", profile.command
    yield "seed of the inputs", f"{profile.seed}"
    yield "toolkit version", environment.toolkit_version
    yield "commit", environment.commit or text.absent("not known")
    yield from environment.software.items()
    yield from environment.hardware.items()
