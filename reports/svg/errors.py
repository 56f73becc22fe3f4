"""Errors of predicted times: a dot per rung."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from markupsafe import Markup

from reports import text as words
from reports.svg.drawing import NARROW, element, number, path, svg, text, two, width_of

WIDE, SIDE_PX, HEIGHT = 600, 30, 96
BASE, RADIUS, APART, EDGE_PX = 58, 4.5, 11, 8

Error = tuple[str, float]  # name, predicted over measured time less 1


def errors(found: Sequence[Error], label: str) -> Markup:
    """Dots from the most negative to the most positive error; the ends have names."""
    return two(_drawing(found, label, WIDE), _drawing(found, label, NARROW))


def _drawing(found: Sequence[Error], label: str, width: int) -> Markup:
    ordered = sorted(found, key=lambda one: one[1])
    step = _step(max(abs(error) for _, error in found))
    most = step * ceil(max(abs(error) for _, error in found) / step)
    scale = (width / 2 - SIDE_PX) / most
    parts = list(_axis(width, step, most, scale))
    used: list[tuple[float, float]] = []
    for name, error in ordered:
        x, y = width / 2 + error * scale, float(BASE)
        while any(abs(x - a) < APART and abs(y - b) < APART for a, b in used):
            y -= APART
        used.append((x, y))
        title = element("title", f"{name} {words.change(error)}")
        parts.append(element("circle", [title], class_="pt", cx=x, cy=y, r=RADIUS))
    parts += _ends(ordered, width, scale)
    lowest = min(y for _, y in used)
    return _moved(parts, width, label, max(0.0, 26 - lowest))


def _moved(parts: Sequence[Markup], width: int, label: str, down: float) -> Markup:
    """A drawing with room for dots that are above each other."""
    inner = element("g", parts, transform=f"translate(0 {number(down)})" if down else None)
    return svg(width, int(HEIGHT + down), label, [inner])


def _axis(width: int, step: float, most: float, scale: float) -> Iterator[Markup]:
    for k in range(-round(most / step), round(most / step) + 1):
        x = width / 2 + k * step * scale
        sign = "+" if k > 0 else "−" if k < 0 else ""
        yield path("gl", f"M{number(x)} 22V68")
        yield text(x, 86, f"{sign}{abs(100 * k * step):g}", "mu", anchor="middle")


def _ends(ordered: Sequence[Error], width: int, scale: float) -> Iterator[Markup]:
    """Names of the two rungs whose errors are largest, one if there is no room for two."""
    ends = [ordered[0], ordered[-1]] if len(ordered) > 1 else [ordered[0]]
    labels = [f"{name} {words.change(error)}" for name, error in ends]
    halves = [width_of(label) / 2 + EDGE_PX for label in labels]
    places = [
        min(max(width / 2 + error * scale, half), width - half)
        for (_, error), half in zip(ends, halves, strict=True)
    ]
    if len(ends) == 2 and places[1] - places[0] < sum(halves) + 8:
        worst = max((0, 1), key=lambda k: abs(ends[k][1]))
        labels, places = [labels[worst]], [places[worst]]
    for label, x in zip(labels, places, strict=True):
        yield text(x, 14, label, anchor="middle")


def _step(largest: float) -> float:
    """Distance of the ticks, so that at most four are on either side."""
    return next(
        step
        for step in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100, 1e9)
        if largest <= 4 * step
    )
