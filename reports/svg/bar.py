"""Stacked bars of times, on one scale that starts at 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from reports.svg.drawing import element, rect, width_of

NARROWEST_PX = 690  # of a bar whose segments have labels
PADDING_PX = 20
CORNER_PX = 3


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A part of a bar: its share of the scale, its value and its name as text, its class."""

    share: float
    value: str
    name: str
    class_: str

    @property
    def label(self) -> str:
        """Return the label that has room: the value and the name, the value, or nothing."""
        room = self.share * NARROWEST_PX - PADDING_PX
        for label in (f"{self.value} {self.name}".strip(), self.value):
            if width_of(label) * 14 / 13 <= room:
                return label
        return ""

    @property
    def is_named(self) -> bool:
        return bool(self.label) and self.label.endswith(self.name)


def bar(segments: Sequence[Segment], label: str, *, height: int) -> Markup:
    """A bar over the whole width of its place, whatever that is."""
    return element(
        "svg",
        [_hatching(), *_drawn(segments, height)],
        class_="stack",
        width="100%",
        height=height,
        role="img",
        aria_label=label,
    )


def _drawn(segments: Sequence[Segment], height: int) -> Iterator[Markup]:
    start = 0.0
    for one in segments:
        inside = [element("title", f"{one.name}: {one.value}".removeprefix(": "))]
        is_hatched, is_saved = one.class_ == "unexplained", one.class_ == "saved"
        edge = 1 if is_saved else 0
        inside.append(
            element(
                "rect",
                class_=one.class_,
                x=edge,
                y=edge,
                width="100%",
                height=height - 2 * edge,
                fill="url(#hatch)" if is_hatched else None,
                rx=CORNER_PX if is_saved else None,
            )
        )
        if one.label:
            value, _, name = one.label.partition(" ")
            words = [element("tspan", value, class_="b"), escape(f" {name}" if name else "")]
            inside.append(
                element("text", words, x=8, y=height / 2 + 5, class_=f"on on-{one.class_}")
            )
        yield element(
            "svg",
            inside,
            x=f"{100 * start:.3f}%",
            width=f"{100 * one.share:.3f}%",
            height=height,
        )
        start += one.share
        yield element("rect", class_="gap", x=f"{100 * start:.3f}%", y=0, width=1, height=height)


def _hatching() -> Markup:
    stripe = element("path", class_="stripe", d="M0 8L8 0M-2 2L2 -2M6 10L10 6")
    pattern = element(
        "pattern",
        [rect("stripes", 0, 0, 8, 8), stripe],
        id="hatch",
        width=8,
        height=8,
        patternUnits="userSpaceOnUse",
    )
    return element("defs", [pattern])
