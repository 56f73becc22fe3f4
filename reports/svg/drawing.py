"""Elements of SVG, escaped, and the width of text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from markupsafe import Markup, escape

NARROW = 368  # px: a telephone of 400 px without its margins
TEXT = 7.2  # px: average width of a character of 13 px


def element(name: str, content: str | Iterable[Markup] = "", /, **attributes: object) -> Markup:
    """An element; `class_` is its class, `_` of other names is a hyphen.

    Text is escaped unless it is Markup. Numbers are rounded to a tenth of a pixel.
    """
    inner = escape(content) if isinstance(content, str) else "".join(content)
    written = "".join(
        f' {_name(key)}="{_value(value)}"'
        for key, value in attributes.items()
        if value not in (None, "")
    )
    return Markup(f"<{name}{written}>{inner}</{name}>")


def svg(
    width: int, height: int, label: str, parts: Iterable[Markup], *, class_: str = ""
) -> Markup:
    """A drawing of a fixed size, described by `label`."""
    return element(
        "svg",
        parts,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        class_=class_,
        role="img",
        aria_label=label,
    )


def text(
    x: float, y: float, content: str, class_: str = "", *, anchor: str = "", **more: object
) -> Markup:
    """Text that starts at `x`, or ends there ("end"), or has its middle there ("middle")."""
    return element("text", content, x=x, y=y, class_=class_, text_anchor=anchor, **more)


def path(class_: str, d: str, **more: object) -> Markup:
    return element("path", class_=class_, d=d, **more)


def rect(class_: str, x: float, y: float, width: float, height: float, **more: object) -> Markup:
    return element("rect", class_=class_, x=x, y=y, width=width, height=height, **more)


def two(wide: str, narrow: str) -> Markup:
    """Both drawings of a figure, of which a page shows one."""
    return Markup('<div class="wide">{}</div><div class="nar">{}</div>').format(wide, narrow)


def width_of(content: str) -> float:
    """Pixels that a text of 13 px takes, rather too many."""
    return TEXT * len(content)


def number(value: float) -> str:
    """A coordinate to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


@cache
def _name(key: str) -> str:
    return key if key in ("viewBox", "patternUnits") else key.removesuffix("_").replace("_", "-")


def _value(value: object) -> str:
    if isinstance(value, float):
        return number(value)
    return str(value) if isinstance(value, int) else escape(value)
