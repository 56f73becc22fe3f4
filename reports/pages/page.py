"""The page: every figure, table and sentence of a profile, in one HTML file without a network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cache, cached_property
from types import ModuleType, SimpleNamespace
from zlib import compress

import plotly.graph_objects as go
from plotly.io.json import to_json_plotly
from plotly.offline import get_plotlyjs

from analysis.devices import Device, Limits
from analysis.errors import InputError
from analysis.records.profile import Grade, Profile
from reports import ladder, style, text
from reports.figures import accesses, gap, hierarchy, lanes, performance, rounds, sizes
from reports.ladder import View
from reports.sections import hierarchy as levels
from reports.sections import rungs
from reports.sections.advice import subject
from reports.sections.breakdown import breakdown
from reports.sections.headline import answer, standing
from reports.sections.ladder_table import ceilings_table, ladder_tables
from reports.sections.prediction import prediction, told_steps
from reports.sections.scorecard import scorecard
from reports.sections.source import all_annotated, counts_document, listing_document, summary
from reports.templating import template

GRADES = {
    Grade.THEORY: "Closed forms of the tiling and the device's nominal rates, without execution.",
    Grade.SIMULATED: (
        "Counted while the machine code was executed on the CPU, under Nsight Compute's names; "
        "the basis says which blocks of the grid were executed and what stands for the others. "
        "Nothing was timed."
    ),
    Grade.PREDICTED: (
        "A model's time for the machine code on the device, and what limits it; the basis says "
        "what was executed for it, and whose constants were used. The share of a limiter is the"
        " part of the time that it is busy. A prediction is no measurement."
    ),
    Grade.MEASURED: (
        "Samples of a clock around launches on the device; the median stands for them, with a "
        "95% interval of the median; sampling stops when it is narrow enough, which makes it "
        "slightly optimistic. A time of a result that failed its check is not shown."
    ),
    Grade.RECORDED: (
        "Measured too, in an earlier run on the same GPU model, at the date that stands beside it."
    ),
    Grade.COMPILED: (
        "What the compiler reports for the kernel (registers, shared and local memory), and the"
        " occupancy that follows from it and the device's limits: theoretical, not observed."
    ),
    Grade.CHECKED: (
        "The result against a float64 reference and an error bound, on every element or on "
        "those that stand beside the verdict; a ratio above 1 fails."
    ),
    Grade.NOMINAL: "A data sheet's or a driver's figure, at the boost clock.",
}

PLOTLY_PACKING = 9  # of zlib: a quarter of a second, and 80 KB less than by its default

TOP_PX = 16  # above a plot: its title and its controls stand outside of it

OBTAINED = {
    "gpu": "Measured on the device",
    "simulate": "Simulated on a CPU",
    "theory": "Theory only: nothing was launched",
}


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure of the page: its heading, how to read it, and Plotly's JSON if it has data."""

    title: str
    reading: str
    figure: go.Figure

    @cached_property
    def packed(self) -> str:
        """The figure's JSON, compressed; its title stands outside of it."""
        figure = self.figure.to_plotly_json()  # a copy by way of go.Figure would be validated anew
        layout = {name: value for name, value in figure["layout"].items() if name != "title"}
        layout["margin"] = layout["margin"] | {"t": TOP_PX}
        return packed(to_json_plotly(figure | {"layout": layout}))

    @property
    def height_px(self) -> int:
        """The room that it takes, known before it is drawn."""
        return int(self.figure.layout.height or 0)

    @property
    def why_empty(self) -> str:
        """Reason why a figure without data is left out; empty if it has data."""
        return "" if self.figure.data else self.figure.layout.annotations[0].text


def packed(content: str, level: int = -1) -> str:
    """Text that a browser unpacks (deflate, base64): no tag can stand in it."""
    return b64encode(compress(content.encode(), level)).decode("ascii")


def page(profile: Profile, recorded: Profile | None = None) -> str:
    """The report of a profile, beside an earlier run if there is one, as HTML.

    Raises InputError where that was made on another GPU model.
    """
    if recorded and recorded.device.key != profile.device.key:
        raise InputError(
            f"the recorded run is of {recorded.device.name}, the profile of "
            f"{profile.device.name}: give a run of the same GPU model"
        )
    with ThreadPoolExecutor(1) as pool:
        plotly_js = pool.submit(plotly)  # compressed meanwhile
        content = _content(profile, recorded)
    return template("report.html.j2").render(
        **content, grades=GRADES, ink=style.INK, plotly_js=plotly_js.result()
    )


@cache
def plotly() -> str:
    """Plotly's JavaScript, as a page holds it."""
    return packed(get_plotlyjs(), PLOTLY_PACKING)


# What the templates read: facts of the run, and a chapter for each of its shapes.


def _content(profile: Profile, recorded: Profile | None) -> dict[str, object]:
    """Everything that the page says about the run, and its chapters."""
    shapes = ladder.shapes(profile)
    of_sizes = _drawing(sizes, sizes.figure(profile, recorded=recorded))
    return {
        "title": f"SGEMM ladder on {profile.device.name}",
        "profile": profile,
        "recorded": recorded,
        "created": text.moment(profile.created),
        "recorded_label": ladder.recorded_label(recorded) if recorded else "",
        "obtained": OBTAINED[profile.executor],
        "standing": standing(profile),
        "listings": packed(json.dumps([listing_document(one) for one in profile.listings])),
        "chapters": [
            _chapter(View(profile, shape, recorded), number) for number, shape in enumerate(shapes)
        ],
        "sizes": of_sizes,
        "sizes_left_out": list(_left_out([of_sizes])),
        "device": list(_device_rows(profile.device)),
        "environment": list(_environment_rows(profile)),
        "recorded_environment": tuple(_environment_rows(recorded)) if recorded else (),
    }


def _chapter(view: View, number: int) -> SimpleNamespace:
    """Everything that the page says about one shape."""
    found = all_annotated(view)
    table, more = ladder_tables(view)
    drawings, moved = _drawings(view), levels.launches(view)
    return SimpleNamespace(
        number=number,
        shape=text.shape(view.shape),
        answer=answer(view),
        table=table,
        more=more,
        prediction=prediction(view),
        breakdown=breakdown(view),
        steps=[rungs.sentence(one, grade=view.grade_of_times) for one in told_steps(view)],
        ceilings=ceilings_table(view),
        levels=levels.table(moved),
        levels_grades=levels.grades(moved),
        scorecard=scorecard(view),
        variants=[
            SimpleNamespace(
                label=one.label,
                summary=summary(one),
                requests=_drawing(lanes, lanes.figure(view, one.label)),
            )
            for one in found
        ],
        first_variant=subject(view),
        source=packed(json.dumps(counts_document(found))),
        drawings=drawings,
        left_out=list(_left_out(drawings.values())),
    )


def _left_out(drawings: Iterable[Drawing]) -> Iterator[str]:
    """Lines that name each figure that is not shown, and the reason."""
    return (f"{one.title}: {one.why_empty}" for one in drawings if one.why_empty)


def _drawings(view: View) -> dict[str, Drawing]:
    """The figures of one shape, by name."""
    return {
        module.__name__.rpartition(".")[2]: _drawing(module, module.figure(view))
        for module in (performance, hierarchy, accesses, gap, rounds)
    }


def _drawing(module: ModuleType, figure: go.Figure) -> Drawing:
    return Drawing(title=module.TITLE, reading=module.READING, figure=figure)


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
    yield "toolkit version", environment.toolkit_version
    yield "commit", environment.commit or text.absent("not known")
    yield from environment.software.items()
    yield from environment.hardware.items()
