"""The page: complete, self-contained, and inert whatever its texts hold."""

import json
import re
import subprocess
import sys
from base64 import b64decode
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from zlib import decompress

import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs

from analysis.errors import InputError
from analysis.timing.predicted import Cost, Effect, TimeBound
from reports import render
from reports.pages.page import plotly
from tests.reports.profiles_by_hand import (
    SHAPE,
    SMALL,
    change,
    foreseen,
    predicted,
    profile,
    record_of,
    rung,
    with_ceilings,
)
from toolkit.store.recorded_runs import recorded_run

# below the chart, of a measured run without simulation: nothing was predicted or traced
MEASURED = ["Roofline of all rungs", "Samples round by round"]
RATES = 2  # figures of the chart: for a screen and for a telephone
EVIL = "</script><img src=x onerror=alert(1)><script>alert(1)</script>{{ 7 * 7 }}"
LIMIT_BYTES = 1_600_000
PAGES_OWN = 3  # scripts: Plotly, the page's own, the panes of the rungs
PLOTLY_SHA256 = "79542150855a52c567260e3137095dbe2b744e6d702a5cabe67da246942fba7a"


class Page(HTMLParser):
    """Contents of a page for a parser: tags with their attributes, text by tag, and ids."""

    def __init__(self, html):
        super().__init__()
        self.tags = Counter()
        self.attributes = []
        self.elements = []
        self.open = []
        self.texts = []
        self.json = []
        self.held = []
        self.packed = Counter()
        self._class = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.elements.append(dict(attrs))
        self.open.append(tag)
        is_packed = ("type", "application/octet-stream") in attrs
        self._class = str(dict(attrs).get("class")) if is_packed else ""
        self.packed[self._class] += is_packed

    def handle_endtag(self, tag):
        self._class = ""

    def handle_data(self, data):
        if self._class.startswith("figure"):
            self.json.append(json.loads(decompress(b64decode(data, validate=True))))
        elif self._class in ("rungs", "shapes"):
            self.held.append(json.loads(decompress(b64decode(data, validate=True))))
        elif self.open and not self._class:
            self.texts.append((self.open[-1], data))

    def texts_of(self, tag):
        return [" ".join(text.split()) for at, text in self.texts if at == tag and text.strip()]

    def values(self, name):
        return [value for _, attribute, value in self.attributes if attribute == name]


def page_of(profile, **how):
    return Page(render(profile, **how))


@pytest.fixture
def evil(on_gpu):
    """A profile with markup in every text."""
    records = tuple(
        replace(
            r, variant=r.variant if r.rung is None else EVIL, label=f"{r.label}{EVIL}", title=EVIL,
            idea=EVIL, notes=(EVIL,), reason=EVIL, resources=None if r.rung is None else replace(
                rung(2, SHAPE, on_gpu.device, is_measured=False).resources, note=EVIL
            ),
            theory=r.theory and replace(
                r.theory,
                limiter=EVIL,
                ceilings=tuple(replace(c, name=EVIL, basis=EVIL) for c in r.theory.ceilings),
            ),
        )
        for r in on_gpu.records
    )  # fmt: skip
    device = replace(
        on_gpu.device, name=EVIL, chip=EVIL, sources=dict.fromkeys(on_gpu.device.sources, EVIL)
    )
    environment = replace(
        on_gpu.environment, commit=EVIL, software={EVIL: EVIL}, hardware={EVIL: EVIL}
    )
    return replace(
        on_gpu, records=records, device=device, environment=environment, command=EVIL, created=EVIL
    )


def figures_of(page):
    """The titles of the figures below the chart."""
    titles = page.texts_of("summary")
    return [one for one in titles if one in (*MEASURED, "Rate over size")]


def test_sections_come_in_order(in_trace):
    headings = page_of(foreseen(in_trace)).texts_of("h2")
    assert [one for one in headings if not one.startswith(("4", "7"))] == [
        "Roofline", "Launch and occupancy", "Memory", "Lines with the most instructions",
        "How far to trust it", "All rungs", "Device and environment",
    ]  # fmt: skip


def test_headings_descend_one_level_at_a_time(in_theory, on_gpu):
    levels = [int(n) for n in re.findall(r"<h([1-6])", render(in_theory, recorded=on_gpu))]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_ids_are_unique_and_links_have_their_targets(in_trace):
    page = page_of(foreseen(in_trace))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    links = {str(link)[1:] for link in page.values("href") if str(link).startswith("#")}
    assert links <= set(ids)


def test_navigation_shows_links_to_sections_that_exist(in_trace, in_theory):
    def shown(made):
        html = render(made)
        return re.findall(r'<a href="#([a-z]+)">', html.partition("<nav")[2].partition("</nav>")[0])

    assert shown(foreseen(in_trace)) == [
        "summary", "time", "roof", "memory", "lines", "trust", "more",
    ]  # fmt: skip
    assert shown(in_theory) == ["summary", "time", "roof", "trust", "more"]
    assert shown(replace(in_theory, records=())) == []


def test_the_page_is_self_contained(on_gpu):
    page = page_of(on_gpu)
    assert not [value for value in page.values("src") if value]
    links = {str(link) for link in page.values("href")}
    assert all(link == "data:," or link.startswith("#") for link in links)
    assert "default-src 'none'" in str(page.values("content"))
    assert len(page.json) == RATES + len(MEASURED)
    assert page.tags["script"] == PAGES_OWN + len(page.json)


def test_it_holds_an_official_bundle_of_plotly():
    held = decompress(b64decode(plotly()))
    assert held.startswith(b"/**\n* plotly.js (cartesian - minified) v4.1.1")
    assert sha256(held).hexdigest() == PLOTLY_SHA256


def test_python_and_the_page_draw_with_one_version_of_plotly():
    assert get_plotlyjs()[:60].split("v")[1].split()[0] == "4.1.1"


def test_it_is_small(on_gpu):
    assert len(render(foreseen(on_gpu), recorded=on_gpu).encode()) < LIMIT_BYTES / 2
    run = recorded_run("h200")
    some = tuple(r for r in run.records if r.shape == SHAPE)
    assert len(render(replace(run, records=some)).encode()) < LIMIT_BYTES


def test_figures_without_data_are_left_out(in_theory, on_gpu):
    assert figures_of(page_of(on_gpu)) == MEASURED
    assert figures_of(page_of(in_theory)) == []
    several = profile(SHAPE, SMALL, is_measured=True)
    assert figures_of(page_of(several))[0] == "Rate over size"


def test_figures_have_no_second_title(on_gpu):
    figures = page_of(on_gpu).json
    assert not any(figure["layout"].get("title", {}).get("text") for figure in figures)


@pytest.mark.parametrize(
    "what", ["on_gpu", "in_prediction", "in_counters", "in_trace", "in_theory"]
)
def test_plotly_accepts_every_figure(what, request):
    figures = page_of(request.getfixturevalue(what)).json
    assert len(figures) >= RATES
    for figure in figures:
        go.Figure(figure)  # which raises ValueError for a name or a value that it does not know


def test_no_page_waits_for_plotly_to_be_imported():
    pages = "reports.pages.page, reports.pages.comparison, reports.pages.kernel"
    code = f"import sys, {pages}; sys.exit('plotly' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_selector_stands_where_there_are_several_shapes():
    one = page_of(profile(SHAPE))
    two = page_of(profile(SHAPE, SMALL))
    assert one.tags["select"] == 0
    assert two.texts_of("option") == ["4096 × 4096 × 4096", "2048 × 2048 × 2048"]
    shapes = next(held for held in two.held if isinstance(held, list))
    assert "2048 × 2048 × 2048" in shapes[1]
    assert "4096" not in Page(shapes[1]).texts_of("h1")[0]


def test_every_rung_has_a_pane(in_trace):
    made = foreseen(in_trace)
    parts = (Cost(effect=Effect.CONFLICTS, time_s=56.8e-3, alone_s=0.0),)
    tiled = replace(record_of(made, "tiled").predicted, costs=parts)
    (panes,) = page_of(change(made, "tiled", predicted=tiled)).held
    assert list(panes) == [r.label for r in in_trace.records if r.theory]
    pane, sections = panes["tiled"]
    assert "56.8 ms" in pane  # 51.6459 ms + 10%
    assert "most time: shared bank conflicts" in pane
    assert "Tiles of A and B are shared by a block." in pane
    assert "Parts of the time" in pane
    assert "56.8 ms predicted." in sections
    assert "How busy each unit is" in sections


def test_every_device_field_stands_with_its_source(in_theory):
    page = render(in_theory)
    for text in ("936.2 GB/s", "1.695 GHz", "24 GiB", "48 KiB (49,152 B)", "GA102", "8.6"):
        assert f'<td class="full">{text}' in page
    for source in in_theory.device.sources.values():
        assert source.split("'")[0] in page


def test_reached_ceilings_are_told_apart(in_theory):
    cells = page_of(with_ceilings(in_theory)).texts_of("td")
    assert "DRAM bytes per s, reached" in cells


def test_a_simulation_has_every_counter_of_each_rung(in_simulation):
    (panes,) = page_of(in_simulation).held
    assert "counters of tiled" in panes["tiled"][1]


def test_how_to_reproduce(in_theory):
    page = page_of(in_theory)
    assert in_theory.command in page.texts_of("code")
    assert "20260203" in page.texts_of("td")


def test_a_recorded_run_is_labelled_with_date_and_device(in_theory, on_gpu):
    page = page_of(in_theory, recorded=on_gpu)
    assert "recorded 2026-02-03" in page.texts_of("span")
    (times,) = [one for one in page.texts_of("p") if ": median of " in one]
    assert " recorded: median of " in times  # not "measured", as on the page of that run
    (times,) = [one for one in page_of(on_gpu).texts_of("p") if ": median of " in one]
    assert " measured: median of " in times
    label = "recorded 2026-02-03 on NVIDIA GeForce RTX 3090"
    assert f"The run {label}" in page.texts_of("summary")
    assert figures_of(page) == MEASURED


def test_a_recorded_run_of_another_gpu_is_refused(in_theory, on_gpu):
    other = replace(on_gpu, device=replace(on_gpu.device, key="t4", name="Tesla T4"))
    with pytest.raises(InputError, match="recorded run is of Tesla T4"):
        render(in_theory, recorded=other)


def pieces(page):
    """A page and what its scripts put into it, as parsed HTML."""
    yield page
    for held in page.held:
        for one in held.values() if isinstance(held, dict) else held:
            yield from (Page(html) for html in ([one] if isinstance(one, str) else one))


def test_markup_in_any_text_stays_inert(evil):
    page = page_of(evil, recorded=evil)
    assert page.tags["script"] == PAGES_OWN + len(page.json)
    assert EVIL in page.texts_of("code")  # shown as it is, not as a template
    for piece in pieces(page):
        assert piece.tags["img"] == 0
        assert not [name for _, name, _ in piece.attributes if name.startswith("on")]


def test_markup_in_a_prediction_stays_inert(evil):
    name = next(record.label for record in evil.records if record.rung == 4)
    record = record_of(evil, name)
    foreseen = predicted(
        record, 1e-3, limiter=EVIL, next_limiter=EVIL, constants=EVIL, basis=EVIL,
        costs=(Cost(effect=Effect.CONFLICTS, time_s=1e-3, alone_s=1e-3, detail=EVIL),),
        bounds=(TimeBound(name=EVIL, time_s=1e-4, basis=EVIL),),
    ).predicted  # fmt: skip
    page = page_of(change(evil, name, predicted=foreseen, status="ok", check=None))
    assert any(EVIL in " ".join(t for _, t in piece.texts) for piece in pieces(page))
    assert all(piece.tags["img"] == 0 for piece in pieces(page))


def test_markup_in_simulated_texts_stays_inert(in_trace):
    listing = replace(in_trace.listings[0], source=EVIL, file=EVIL)
    page = page_of(replace(in_trace, listings=(listing, *in_trace.listings[1:])))
    assert all(piece.tags["img"] == 0 for piece in pieces(page))


def test_labels_in_figures_are_literal_to_plotly(evil):
    for figure in page_of(evil).json:
        for part in (*figure["data"], figure["layout"]):
            part.pop("meta", None)  # labels for the script, which draws none of them
        assert "<img" not in json.dumps(figure)


def test_a_profile_without_records(in_theory):
    page = page_of(replace(in_theory, records=()))
    assert "This profile holds no record: no rung was profiled." in page.texts_of("p")
    assert "Device and environment" in page.texts_of("h2")


def test_an_interrupted_profile_says_so(on_gpu):
    page = page_of(replace(on_gpu, status="interrupted"))
    assert "The run was interrupted: what is missing was not reached." in page.texts_of("p")


def test_all_skipped_is_a_page_too(in_theory):
    skipped = tuple(
        replace(r, status="skipped", reason="too small", theory=None) for r in in_theory.records
    )
    page = page_of(replace(in_theory, records=skipped))
    assert not page.json
    assert "No rung has a rate at this shape." in page.texts_of("p")
    assert any("(too small)" in text for text in page.texts_of("p"))


def test_a_failed_rung_is_told_on_the_first_screen(on_gpu):
    failed = change(on_gpu, "tiled", status="failed", reason="out of memory", measured=None)
    assert "tiled failed: out of memory." in page_of(failed).texts_of("p")


def test_rungs_that_failed_for_one_reason_have_one_sentence(on_gpu):
    lost = {"status": "failed", "reason": "out of memory", "measured": None}
    page = page_of(replace(on_gpu, records=tuple(replace(one, **lost) for one in on_gpu.records)))
    (told,) = [one for one in page.texts_of("p") if "failed: out of memory." in one]
    assert told.startswith(on_gpu.records[0].label)
    assert "No rung has a rate at this shape." in page.texts_of("p")


def test_rendering_is_pure(on_gpu):
    assert render(on_gpu) == render(on_gpu)


def test_the_page_says_when_it_was_made_in_utc(in_theory):
    assert "2026-02-03 04:05 UTC" in page_of(in_theory).texts_of("td")
