"""Reports: a Profile in, one self-contained HTML page out.

    from reports import render
    html = render(profile)

Pure: nothing here reads a clock, a network or a file, apart from the page's own template.
`reports.text` is the one place for units and rounding; `reports.figures` holds one figure a file,
each of them usable in a notebook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.records.profile import Profile

__all__ = ["render"]


def render(profile: Profile, *, recorded: Profile | None = None) -> str:
    """The report of `profile` as one HTML page that needs no network.

    `recorded` is an earlier, measured run on the same GPU model. It is drawn beside the profile,
    labelled with its date and device, for readers who have no such GPU. Raises InputError when
    it was made on another model.
    """
    # The page needs Plotly and Jinja; whoever imports reports.text alone should not wait for them.
    from reports.pages.page import page

    return page(profile, recorded)
