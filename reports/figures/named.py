"""The figures of a profile by name: `FIGURES[name](view, variant)`.

`variant` is the label of the one that "lanes" shows; the other figures show all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import plotly.graph_objects as go

from reports.figures import accesses, gap, hierarchy, lanes, performance, rounds, sizes
from reports.ladder import View

FIGURES: Mapping[str, Callable[[View, str], go.Figure]] = MappingProxyType(
    {
        "performance": lambda view, _: performance.figure(view),
        "hierarchy": lambda view, _: hierarchy.figure(view),
        "accesses": lambda view, _: accesses.figure(view),
        "gap": lambda view, _: gap.figure(view),
        "rounds": lambda view, _: rounds.figure(view),
        "sizes": lambda view, _: sizes.figure(view.profile, recorded=view.recorded),
        "lanes": lanes.figure,
    }
)
