"""A profile in a cell of a notebook: the answer, and the chart of all rungs, without scripts."""

from __future__ import annotations

from markupsafe import Markup

from analysis.records.profile import Profile
from reports import text
from reports.figures import ladder_still
from reports.figures.ladder import place
from reports.ladder import View, shapes
from reports.sections.ladder_answer import answer, standing
from reports.sections.ladder_rows import rows
from reports.templating import template

HEAD_PX = 220  # of a cell, around its rows


def frame(profile: Profile, recorded: Profile | None = None) -> str:
    """The answer at the first shape, in a frame that keeps its style to itself."""
    found = shapes(profile)
    shown = rows(View(profile, found[0], recorded)) if found else None
    rungs = len(shown.rungs) if shown else 0
    title = f"SGEMM ladder on {profile.device.name}"
    content = template("notebook.html.j2").render(
        title=title,
        shape=text.shape(found[0]) if found else "",
        more=text.many(len(found) - 1, "more shape") if len(found) > 1 else "",
        standing=standing(profile),
        answer=answer(shown) if shown else None,
        drawing=ladder_still.drawing(shown, None, "Rate of each rung") if shown and rungs else None,
    )
    height_px = HEAD_PX + rungs * place(rungs, is_narrow=False).row_px
    return Markup(
        '<iframe srcdoc="{}" style="width:100%;height:{}px;border:0" title="{}"></iframe>'
    ).format(content, height_px, title)
