"""The roofline of a device, with every rung at its intensity: in theory and as measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import plotly.graph_objects as go

from analysis import roofline as model
from analysis.devices import Device
from analysis.records.profile import Grade, Measured, Record
from analysis.roofline import LevelName
from analysis.theory import Theory
from reports import ladder, style, text
from reports.figures import roofs
from reports.ladder import View

TITLE = "Roofline"
READING = (
    "Each rung stands at the FLOP per byte of its global loads as the source writes them; rungs "
    "of one intensity are moved apart a little, so that none hides another. A rung's attainable "
    "rate (theory) and its measured rate are joined: the line is the gap. The small open symbol "
    "is the bound without caches, intensity times DRAM bandwidth, drawn no higher than the FP32 "
    "peak. Caches let a rung pass it: a load that hits L1 is bound by L1's roof, not by DRAM's."
)

# Between neighbours of one intensity: a marker's width apart on a page of 1000 px, and still far
# less than the factor 2 between the ladder's different intensities, as is a whole group's width.
SPREAD, WIDEST_GROUP = 1.12, 1.5

# shared and L1: one data path
_LEVELS = {LevelName.L1: "L1/shared", LevelName.L2: "L2", LevelName.DRAM: "DRAM"}


def figure(view: View) -> go.Figure:
    """Roofs of the profile's device and one vertical line per rung of `shape`, log-log."""
    title = style.title_of(TITLE, view)
    records = tuple(r for r in view.rungs if r.theory)
    if not records:
        return style.empty(title, "No rung has a theory at this shape.")
    intensities = [record.theory.intensity_loads for record in records if record.theory]
    span = roofs.span_of(intensities, view.profile.device, margin=5)
    rungs = [_rung(view, record, x) for record, x in zip(records, _places(records), strict=True)]
    return style.figure(
        title,
        [
            *_roofs(view.profile.device, span),
            *_cublas(view, span),
            *rungs,
            *_keys(view, records),
        ],
        height=600,
        xaxis=style.axis(
            "arithmetic intensity of global loads, FLOP/B", type="log", dtick=1, tickformat=","
        ),
        yaxis=style.rate_axis(type="log", dtick=1),
    )


def _places(records: tuple[Record, ...]) -> Iterator[float]:
    """The horizontal place of each rung: its intensity, spread where several share one."""
    intensities = [record.theory.intensity_loads for record in records if record.theory]
    for number, intensity in enumerate(intensities):
        # sums of one traffic in another order differ in their last digits
        equal = [math.isclose(intensity, other) for other in intensities]
        before, shared = sum(equal[:number]), sum(equal)
        step = min(SPREAD, WIDEST_GROUP ** (1 / max(1, shared - 1)))
        yield intensity * step ** (before - (shared - 1) / 2)


def _roofs(device: Device, span: roofs.Span) -> Iterator[style.Part]:
    of_device = model.roofline(device)
    drawn = tuple(level for level in of_device.levels if level.name in _LEVELS)
    for level in drawn:
        yield from roofs.level(_LEVELS[level.name], level, of_device, span)
    yield from roofs.lids(replace(of_device, levels=drawn), span)


def _cublas(view: View, span: roofs.Span) -> Iterator[style.Part]:
    for measured, grade in view.each_cublas:
        roof = roofs.flat("cuBLAS", measured.flop_per_s, span.low, span, grade)
        yield roof | {"line": style.ink(dash=style.DASHES[grade]), "showlegend": True}


def _rung(view: View, record: Record, x: float) -> style.Part:
    """One rung: measured, attainable and recorded on one line, the uncached bound apart."""
    look = style.looks(view.profile)[record.label]
    points = list(_points(view, record))
    return style.scatter(
        "lines+markers",
        [x for _ in points],
        [rate for _, rate, _ in points],
        [about for _, _, about in points],
        name=style.plain(record.label),
        connectgaps=False,
        line={"color": look.colour, "width": 2},
        marker=style.graded(
            look,
            [kind for kind, _, _ in points],
            [9 if kind == "uncached" else 12 for kind, _, _ in points],
        )
        | {"opacity": 1},  # Plotly makes markers of several sizes translucent
    )


def _points(view: View, record: Record) -> Iterator[tuple[str, float | None, str]]:
    """(kind, FLOP/s, hover text) of a rung's points; a gap keeps the uncached bound apart."""
    theory, measured = record.theory, record.trusted
    if theory is None:
        return
    if measured:
        yield Grade.MEASURED, measured.flop_per_s, _about_measured(record, measured, Grade.MEASURED)
    yield "attainable", theory.attainable_flop_per_s, _about_theory(record, theory)
    earlier = view.earlier(record)
    if earlier:
        about = _about_measured(record, earlier, view.recorded_label)
        yield Grade.RECORDED, earlier.flop_per_s, about
    yield "gap", None, ""
    yield (
        "uncached",
        min(theory.uncached.flop_per_s, view.profile.device.fp32_flop_per_s),
        style.hover(
            record.label,
            f"bound without caches (theory): {text.flop_per_s(theory.uncached.flop_per_s)}",
            f"at {text.flop_per_byte(theory.intensity_loads)}",
            theory.uncached.basis,
        ),
    )


def _about_measured(record: Record, measured: Measured, grade: str) -> str:
    theory = record.theory
    return style.hover(
        record.label,
        f"{grade}: {text.flop_per_s(measured.flop_per_s)}",
        f"median {text.seconds(measured.median_s)}",
        f"{text.percent(measured.flop_per_s / theory.attainable_flop_per_s)} of attainable"
        if theory
        else "",
    )


def _about_theory(record: Record, theory: Theory) -> str:
    return style.hover(
        record.label,
        f"attainable (theory): {text.flop_per_s(theory.attainable_flop_per_s)}",
        f"limited by {theory.limiter}",
        f"at {text.flop_per_byte(theory.intensity_loads)} of global loads",
        *(f"{c.name}: {text.flop_per_s(c.flop_per_s)}" for c in theory.ceilings),
    )


def _keys(view: View, records: tuple[Record, ...]) -> Iterator[style.Part]:
    """Legend entries for what the symbols' fills mean, as far as they occur."""
    if any(record.trusted for record in records):
        yield style.key(Grade.MEASURED, "circle" + style.FILLS[Grade.MEASURED])
    yield style.key("attainable (theory)", "circle" + style.FILLS["attainable"])
    if view.recorded and any(map(view.earlier, records)):
        name = ladder.recorded_on(view.recorded)
        yield style.key(name, "circle" + style.FILLS[Grade.RECORDED])
    yield style.key("bound without caches (theory)", "circle" + style.FILLS["uncached"])
    yield roofs.line_key("nominal roof", "solid")
    if view.profile.device.measured:
        yield roofs.line_key("measured roof", "dash")
