"""Roofline of one launch: one point for each memory level, all of them at the launch's rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import atan2, ceil, cos, degrees, floor, log10, sin

from markupsafe import Markup

from reports.svg.drawing import NARROW, element, number, path, svg, text, two, width_of

WIDE, WIDE_HEIGHT, NARROW_HEIGHT = 600, 330, 310
TOP, BOTTOM, RIGHT = 26, 44, 16
RADIUS = 5.5
MEETING_PX = 9  # points this close have one label
LINE_PX = 18
USUAL = 0.6  # of a roof: where its name stands
MOST_DECADES = 6


@dataclass(frozen=True, kw_only=True)
class RooflineLevel:
    """A memory level: its bandwidth in bytes per second, and the bytes that it moves."""

    name: str
    bytes_per_s: float
    moved_bytes: float
    bandwidth: str  # as text
    is_hot: bool = False


@dataclass(frozen=True, kw_only=True)
class LaunchRoofline:
    """Work of a launch in `unit`, its rate and the peak per second, and the levels it uses.

    `per_bytes` is the number of bytes that x counts work for: 1 (FLOP/B) or 1000.
    """

    work: float
    rate: float
    peak: float
    rate_label: str
    peak_label: str
    x_label: str
    y_label: str
    scale: float  # of the y axis, such as 1e9
    per_bytes: float
    levels: Sequence[RooflineLevel]
    label: str = ""

    def x(self, level: RooflineLevel) -> float:
        return self.work / level.moved_bytes * self.per_bytes


def roofline(shown: LaunchRoofline) -> Markup:
    return two(
        _Axes.of(shown, WIDE, WIDE_HEIGHT).drawn(), _Axes.of(shown, NARROW, NARROW_HEIGHT).drawn()
    )


@dataclass(frozen=True, kw_only=True)
class _Axes:
    shown: LaunchRoofline
    width: int
    height: int
    left: int
    decades: tuple[float, float, float, float] = field(default=(0, 1, 0, 1))

    @classmethod
    def of(cls, shown: LaunchRoofline, width: int, height: int) -> _Axes:
        xs = [shown.x(level) for level in shown.levels]
        ridges = [shown.peak / one.bytes_per_s * shown.per_bytes for one in shown.levels]
        x0, x1 = floor(log10(min(xs + ridges)) - 0.3), ceil(log10(max(xs + ridges)) + 0.3)
        y0 = floor(log10(shown.rate / shown.scale) - 0.5)
        y1 = log10(shown.peak / shown.scale) + 0.3
        return cls(
            shown=shown,
            width=width,
            height=height,
            left=44 if width == NARROW else 56,
            decades=(float(x0), float(x1), float(y0), y1),
        )

    @property
    def is_narrow(self) -> bool:
        return self.width == NARROW

    @property
    def right(self) -> float:
        return self.width - RIGHT

    @property
    def base(self) -> float:
        return self.height - BOTTOM

    def at_x(self, value: float) -> float:
        x0, x1, _, _ = self.decades
        return self.left + (self.right - self.left) * (log10(value) - x0) / (x1 - x0)

    def at_y(self, rate: float) -> float:
        _, _, y0, y1 = self.decades
        return self.base - (self.base - TOP) * (log10(rate / self.shown.scale) - y0) / (y1 - y0)

    def drawn(self) -> Markup:
        parts = [*self._grid(), *self._roofs(), *self._points()]
        return svg(self.width, self.height, self.shown.label, parts, class_="halo")

    def _grid(self) -> Iterator[Markup]:
        x0, x1, y0, y1 = self.decades
        step_x, step_y = (1 + int(b - a) // MOST_DECADES for a, b in ((x0, x1), (y0, y1)))
        for exponent in range(int(x0), int(x1) + 1, step_x):
            x = self.at_x(10.0**exponent)
            yield path("gl", f"M{number(x)} {TOP}V{number(self.base)}")
            is_last = x > self.right - width_of(_power(exponent)) / 2
            at, anchor = (self.right, "end") if is_last else (x, "middle")
            yield text(at, self.base + 17, _power(exponent), "mu", anchor=anchor)
        for exponent in range(ceil(y0), floor(y1) + 1, step_y):
            y = self.at_y(10.0**exponent * self.shown.scale)
            yield path("gl", f"M{self.left} {number(y)}H{number(self.right)}")
            yield text(self.left - 6, y + 4, _power(exponent), "mu", anchor="end")
        yield text(self.right, self.height - 6, self.shown.x_label, "mu", anchor="end")
        yield text(0, 12, self.shown.y_label, "mu")

    def _roofs(self) -> Iterator[Markup]:
        shown = self.shown
        ridges = {one.name: shown.peak / one.bytes_per_s * shown.per_bytes for one in shown.levels}
        peak_y, left = self.at_y(shown.peak), self.at_x(min(ridges.values()))
        yield path("rf", f"M{number(left)} {number(peak_y)}H{number(self.right)}")
        yield text(self.right, peak_y - 7, shown.peak_label, "b", anchor="end")
        x0, _, y0, _ = self.decades
        order = sorted(shown.levels, key=lambda level: -level.bytes_per_s)
        for above, level in zip([None, *order[:-1]], order, strict=True):
            slope = level.bytes_per_s / shown.per_bytes
            x = max(10.0**x0, 10.0**y0 * shown.scale / slope)
            start, end = (
                (self.at_x(x), self.at_y(slope * x)),
                (self.at_x(ridges[level.name]), peak_y),
            )
            yield path("rf", f"M{_point(start)}L{_point(end)}")
            yield self._roof_label(level, above, start, end)

    def _roof_label(
        self,
        level: RooflineLevel,
        above: RooflineLevel | None,
        start: tuple[float, float],
        end: tuple[float, float],
    ) -> Markup:
        """The name along a roof: above it, or below it where the next roof is too close."""
        slope = atan2(start[1] - end[1], end[0] - start[0])
        label = level.name if self.is_narrow else f"{level.name}  {level.bandwidth}"
        height = width_of(label) * sin(slope)
        place = _label_place(start[1], end[1], height, self.at_y(self.shown.rate))
        x, y = (a + place * (b - a) for a, b in zip(start, end, strict=True))
        is_close = above is not None and cos(slope) * self._between(above, level) < LINE_PX
        shift = 15 if is_close else -6
        turned = (
            f"translate({number(x)} {number(y)}) rotate({number(-degrees(slope))}) "
            f"translate(0 {shift})"
        )
        return element("text", label, transform=turned, text_anchor="middle")

    def _between(self, above: RooflineLevel, below: RooflineLevel) -> float:
        """Vertical distance of two roofs in px."""
        return self.at_y(below.bytes_per_s * self.shown.scale) - self.at_y(
            above.bytes_per_s * self.shown.scale
        )

    def _points(self) -> Iterator[Markup]:
        shown, y = self.shown, self.at_y(self.shown.rate)
        yield path("ax", f"M{self.left} {number(y)}H{number(self.right)}")
        groups = list[list[RooflineLevel]]()
        for level in sorted(shown.levels, key=shown.x):
            if groups and self._x(level) - self._x(groups[-1][0]) < MEETING_PX:
                groups[-1].append(level)
            else:
                groups.append([level])
        for level in shown.levels:
            roof = self.at_y(min(shown.peak, level.bytes_per_s * shown.x(level) / shown.per_bytes))
            class_ = "dh" if level.is_hot else "dr"
            yield path(class_, f"M{number(self._x(level))} {number(y)}V{number(roof)}")
        for level in sorted(shown.levels, key=lambda one: one.is_hot):
            hot = "pt pth" if level.is_hot else "pt"
            yield element("circle", class_=hot, cx=self._x(level), cy=y, r=RADIUS)
        yield from self._labels(groups, y)

    def _x(self, level: RooflineLevel) -> float:
        return self.at_x(self.shown.x(level))

    def _labels(self, groups: Sequence[Sequence[RooflineLevel]], y: float) -> Iterator[Markup]:
        """Names below the points, in as many lines as they need, and the rate above its line.

        Near the peak the rate is one of the labels below.
        """
        middle = [self._x(group[0]) for group in groups]
        rate, rate_px = self.shown.rate_label, width_of(self.shown.rate_label)
        labels = [
            (at, ", ".join(level.name for level in group), any(one.is_hot for one in group))
            for at, group in zip(middle, groups, strict=True)
        ]
        styles: dict[bool | None, str] = {True: "cost b", False: "", None: "b"}
        if y - self.at_y(self.shown.peak) < 2 * LINE_PX:
            yield from self._below([*labels, (self.right, rate, None)], y, styles)
            return
        is_left = max(middle) + RADIUS > self.right - rate_px - 8
        at, anchor = (self.left + 4, "start") if is_left else (self.right, "end")
        yield text(at, y - 8, rate, "b", anchor=anchor)
        yield from self._below(labels, y, styles)

    def _below(
        self,
        labels: Sequence[tuple[float, str, bool | None]],
        y: float,
        styles: Mapping[bool | None, str],
    ) -> Iterator[Markup]:
        """Labels near their places on a line, each in the first row in which it has room."""
        ends = [self.left - 8.0] * (len(labels) + 1)
        for place, label, kind in labels:
            half = width_of(label) / 2
            x = min(max(place, self.left + half), self.right - half)
            row = next(n for n, end in enumerate(ends) if x - half > end + 4)
            ends[row] = x + half
            baseline = y + 20 + row * LINE_PX
            if baseline > self.base - 2:
                baseline = y - 24 - row * LINE_PX
            if kind is None:  # bold text is wider than `width_of`
                yield text(self.right, baseline, label, styles[kind], anchor="end")
            else:
                yield text(x, baseline, label, styles[kind], anchor="middle")


def _label_place(start: float, end: float, height: float, rate: float) -> float:
    """Place of a name of this height along a roof: beside the points, if it has room.

    `start`, `end` and `rate` are the y of the roof's ends and of the points.
    """
    middle = start + USUAL * (end - start)
    top, bottom = rate - RADIUS, rate + 20  # of the points and their names
    if middle + height / 2 < top or middle - height / 2 > bottom:
        return USUAL
    room = max((end, top), (bottom, start), key=lambda one: one[1] - one[0])
    if room[1] - room[0] < height:
        return USUAL
    return (sum(room) / 2 - start) / (end - start)


def _power(exponent: int) -> str:
    return (
        f"{10**exponent:,}"
        if 0 <= exponent <= 4
        else (f"{10.0**exponent:g}" if -3 <= exponent < 0 else f"1e{exponent}")
    )


def _point(at: tuple[float, float]) -> str:
    return f"{number(at[0])} {number(at[1])}"
