"""A profile in a cell of a notebook: the answer, and a bar per rung, without scripts."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from analysis.records.profile import Grade, Profile
from reports import text
from reports.ladder import View, shapes
from reports.sections.headline import Headline, answer, standing
from reports.svg.busy import ROW_PX, Bar, bars
from reports.templating import template

HEAD_PX = 260  # of a cell, above its bars


def frame(profile: Profile, recorded: Profile | None = None) -> str:
    """The answer at the first shape, in a frame that keeps its style to itself."""
    found = shapes(profile)
    view = View(profile, found[0], recorded) if found else None
    rows = list(_rows(view)) if view else []
    title = f"SGEMM ladder on {profile.device.name}"
    content = template("notebook.html.j2").render(
        title=title,
        shape=text.shape(found[0]) if found else "",
        more=text.many(len(found) - 1, "more shape") if len(found) > 1 else "",
        standing=standing(profile),
        answer=answer(view) if view else Headline(lead=""),
        bars=bars(rows, "Time of each rung; the shorter the better") if rows else None,
    )
    return Markup(
        '<iframe srcdoc="{}" style="width:100%;height:{}px;border:0" title="{}"></iframe>'
    ).format(content, HEAD_PX + ROW_PX * len(rows), title)


def _rows(view: View) -> Iterator[Bar]:
    """A bar per rung with a time: measured, else recorded, else predicted."""
    times = dict(_times(view))
    longest = max((time_s for time_s, _ in times.values()), default=0.0)
    for label, (time_s, grade) in times.items():
        yield Bar(
            name=label,
            share=time_s / longest,
            value=text.predicted_seconds(time_s),
            class_="s2" if grade == Grade.PREDICTED else "s1",
        )


def _times(view: View) -> Iterator[tuple[str, tuple[float, str]]]:
    for record in view.rungs:
        measured, predicted = record.trusted or view.earlier(record), record.trusted_prediction
        if measured:
            yield record.label, (measured.median_s, Grade.MEASURED)
        elif predicted:
            yield record.label, (predicted.time_s, Grade.PREDICTED)
