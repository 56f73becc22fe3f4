"""The page: every figure, table and sentence of a profile, in one HTML file without a network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from types import ModuleType

import plotly.graph_objects as go
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from jinja2.utils import htmlsafe_json_dumps
from plotly.offline import get_plotlyjs

from analysis.devices import Device
from analysis.errors import InputError
from analysis.problem import Gemm
from analysis.result import Profile
from reports import ladder, style, text
from reports.figures import (
    accesses,
    gap,
    hierarchy,
    parity,
    patterns,
    performance,
    predicted,
    roofline,
    samples,
)
from reports.headline import Answer, answer, standing
from reports.hierarchy import launches
from reports.hierarchy import table as hierarchy_table
from reports.machine_code import MachineCode, machine_code
from reports.prediction import Prediction, Steps, prediction, rung_steps
from reports.published import Publication, publications
from reports.scorecard import Scorecard, scorecard
from reports.table import Table, ceilings_table, ladder_table, sampling_table

GRADES = {
    "theory": "Closed forms of the tiling and the device's nominal rates, without execution.",
    "simulated": "Counted while the machine code was executed on the CPU, under Nsight Compute's "
    "names; the basis says which blocks of the grid were executed and what stands for the others. "
    "Nothing was timed.",
    "predicted": "A model's time for the machine code on the device, and what limits it; the basis "
    "says what was executed for it, and whose constants were used. The share of a limiter is the "
    "part of the time that it is busy. A prediction is no measurement.",
    "measured": "Samples of a clock around launches on the device; the median stands for them, "
    "with a 95% interval of the median; sampling stops when it is narrow enough, which makes it "
    "slightly optimistic. A time of a result that failed its check is not shown.",
    "recorded": "Measured too, in an earlier run on the same GPU model, at the date that stands "
    "beside it.",
    "published": "What a text states of such a kernel on such a device, not run by this toolkit; "
    "source and caveat stand beside it, and the roof is that of the rung it is taken for.",
    "compiled": "What the compiler reports for the kernel (registers, shared and local memory), "
    "and the occupancy that follows from it and the device's limits: theoretical, not observed.",
    "checked": "The result against a float64 reference and an error bound, on every element or on "
    "those that stand beside the verdict; a ratio above 1 fails.",
    "nominal": "A data sheet's or a driver's figure, at the boost clock.",
}

OBTAINED = {
    "gpu": "Measured on the device",
    "simulate": "Simulated: the machine code was executed on the CPU, and not timed",
    "theory": "Theory only: nothing was launched",
}


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure of the page: its heading, how to read it, and Plotly's JSON if it has data."""

    title: str
    reading: str
    figure: go.Figure

    @property
    def json(self) -> str:
        """The figure for a script element: '<', '>' and '&' are escaped, so no tag can close it."""
        figure = go.Figure(self.figure).update_layout(title=None, margin={"t": 44})
        return htmlsafe_json_dumps(figure, dumps=lambda value: value.to_json())

    @property
    def why_empty(self) -> str:
        """What stands in place of a figure without data."""
        return "" if self.figure.data else self.figure.layout.annotations[0].text


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """Everything that the page says about one shape."""

    shape: str
    answer: Answer
    table: Table
    prediction: Prediction | None
    predicted: Drawing
    gap: Drawing
    steps: Steps | None
    published: tuple[Publication, ...]
    ceilings: Table
    levels: Table
    samplings: tuple[Table, ...]
    machine_code: MachineCode | None
    scorecard: Scorecard | None
    parity: Drawing
    drawings: dict[str, Drawing]


def page(profile: Profile, recorded: Profile | None = None) -> str:
    """The report of `profile` as HTML; raises InputError where `recorded` is of another GPU."""
    if recorded and recorded.device.key != profile.device.key:
        raise InputError(
            f"the recorded run is of {recorded.device.name}, the profile of "
            f"{profile.device.name}: give a run of the same GPU model"
        )
    return _template().render(
        profile=profile,
        recorded=recorded,
        created=text.moment(profile.created),
        recorded_label=ladder.recorded_label(recorded) if recorded else "",
        obtained=OBTAINED[profile.executor],
        standing=standing(profile),
        chapters=[_chapter(profile, shape, recorded) for shape in ladder.shapes(profile)],
        device=list(_device_rows(profile.device)),
        environment=list(_environment_rows(profile)),
        recorded_environment=list(_environment_rows(recorded)) if recorded else [],
        grades=GRADES,
        ink=style.INK,
        plotly_js=get_plotlyjs(),
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,  # for every name; jinja2's select_autoescape would skip ".j2"
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")


def _chapter(profile: Profile, shape: Gemm, recorded: Profile | None) -> Chapter:
    return Chapter(
        shape=text.shape(shape),
        answer=answer(profile, shape, recorded=recorded),
        table=ladder_table(profile, shape, recorded=recorded),
        prediction=prediction(profile, shape, recorded=recorded),
        predicted=Drawing(
            title=predicted.TITLE,
            reading=predicted.reading(profile, shape, recorded=recorded),
            figure=predicted.figure(profile, shape, recorded=recorded),
        ),
        gap=_drawing(gap, gap.figure(profile, shape, recorded=recorded)),
        steps=rung_steps(profile, shape, recorded=recorded),
        published=publications(profile, shape),
        ceilings=ceilings_table(profile, shape),
        levels=hierarchy_table(launches(profile, shape, recorded)),
        samplings=tuple(_samplings(profile, shape, recorded)),
        machine_code=machine_code(profile, shape),
        scorecard=scorecard(profile, shape, recorded=recorded),
        parity=_drawing(parity, parity.figure(profile, shape, recorded=recorded)),
        drawings={
            "roofline": _drawing(roofline, roofline.figure(profile, shape, recorded=recorded)),
            "hierarchy": _drawing(hierarchy, hierarchy.figure(profile, shape, recorded=recorded)),
            "accesses": _drawing(accesses, accesses.figure(profile, shape)),
            "patterns": _drawing(patterns, patterns.figure(profile, shape)),
            "performance": _drawing(
                performance, performance.figure(profile, shape, recorded=recorded)
            ),
            "samples": _drawing(samples, samples.figure(profile, shape, recorded=recorded)),
        },
    )


def _samplings(profile: Profile, shape: Gemm, recorded: Profile | None) -> Iterator[Table]:
    """The sampling of the profile's own run and of the recorded one, as far as they have any."""
    tables = [sampling_table(profile, shape)]
    if recorded:
        tables.append(sampling_table(recorded, shape, grade=ladder.recorded_label(recorded)))
    return (table for table in tables if table.rows)


def _drawing(module: ModuleType, figure: go.Figure) -> Drawing:
    return Drawing(title=module.TITLE, reading=module.READING, figure=figure)


def _device_rows(device: Device) -> Iterator[tuple[str, str, str, str]]:
    """(field, value, grade, source) of every field of a device, its reached ceilings last."""
    for field in fields(device):
        if field.name in ("sources", "measured"):
            continue
        value = getattr(device, field.name)
        grade = "nominal" if isinstance(value, int | float) else ""
        source = device.sources.get(field.name, text.ABSENT)
        yield text.words(field.name), text.named(field.name, value), grade, source
    measured = device.measured
    for field in fields(measured) if measured else ():
        if field.name != "source":
            value = text.named(field.name, getattr(measured, field.name))
            source = measured.source if measured else ""
            yield f"{text.words(field.name)}, reached", value, "measured", source


def _environment_rows(profile: Profile) -> Iterator[tuple[str, str]]:
    environment = profile.environment
    yield "created", text.moment(profile.created)
    yield "executor", profile.executor
    yield "run", profile.status
    yield "toolkit version", environment.toolkit_version
    yield "commit", environment.commit or text.absent("not known")
    yield from environment.software.items()
    yield from environment.hardware.items()
