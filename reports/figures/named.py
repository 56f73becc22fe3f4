"""The figures of a profile by name: `FIGURES[name](view, chosen)`.

The variant with the label `chosen` stands out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from reports import style
from reports.figures import hierarchy, ladder, rounds, sizes
from reports.ladder import View

FIGURES: Mapping[str, Callable[[View, str | None], style.Figure]] = MappingProxyType(
    {
        "ladder": ladder.figure,
        "hierarchy": hierarchy.figure,
        "rounds": rounds.figure,
        "sizes": lambda view, chosen: sizes.figure(
            view.profile, recorded=view.recorded, chosen=chosen
        ),
    }
)
