"""The page: complete, self-contained, and inert whatever its texts hold."""

import json
import re
from base64 import b64decode
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from zlib import decompress

import plotly.graph_objects as go
import pytest

from analysis.errors import InputError
from analysis.timing.predicted import GapStep, TimeBound
from reports import render
from tests.reports.profiles_by_hand import (
    SHAPE,
    SMALL,
    change,
    predicted,
    profile,
    record_of,
    rung,
    with_ceilings,
)

# of a measured run without simulation: nothing was predicted, counted or traced
FIGURES = {
    "Performance of the ladder",
    "Hierarchical roofline",
    "Accesses per element of C",
    "Samples round by round",
}
UNMEASURED = FIGURES - {"Samples round by round"}
EVIL = "</script><img src=x onerror=alert(1)><script>alert(1)</script>{{ 7 * 7 }}"
LIMIT_BYTES = 2_200_000  # plotly.js alone has 4.8 million, and 1.8 as it is packed
PAGES_OWN = 3  # scripts: Plotly, the page's own, the listings


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
        if self._class == "figure":
            self.json.append(json.loads(decompress(b64decode(data, validate=True))))
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


def test_sections_come_in_order(on_gpu):
    headings = page_of(on_gpu).texts_of("h2")
    assert headings == [
        "4096 × 4096 × 4096", "The ladder", "Hierarchical roofline",
        "Theory, simulation, hardware", "Annotated source",
        "Samples round by round", "Figures without data", "Device record", "Environment",
        "How to reproduce", "How each number was obtained",
    ]  # fmt: skip


def test_headings_descend_one_level_at_a_time(in_theory, on_gpu):
    levels = [int(n) for n in re.findall(r"<h([1-6])", render(in_theory, recorded=on_gpu))]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_ids_are_unique_and_every_reference_has_its_target():
    page = page_of(profile(SHAPE, SMALL, is_measured=True))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert set(page.values("aria-labelledby")) | set(page.values("for")) <= set(ids)


def test_figures_carry_a_description(on_gpu):
    page = page_of(on_gpu)
    labels = [
        value for tag, name, value in page.attributes if (tag, name) == ("figure", "aria-label")
    ]
    assert {label.split(".")[0] for label in labels if label} == FIGURES


def test_the_page_is_self_contained(on_gpu):
    page = page_of(on_gpu)
    assert not [value for value in page.values("src") if value]
    links = {str(link) for link in page.values("href")}
    assert all(link == "data:," or link.startswith("#") for link in links)
    assert "default-src 'none'" in str(page.values("content"))
    assert page.packed["figure"] == len(FIGURES)
    assert page.tags["script"] == PAGES_OWN + len(FIGURES)


def test_it_is_not_much_larger_than_plotly(on_gpu):
    assert len(render(on_gpu).encode()) < LIMIT_BYTES


def test_theory_has_no_samples_and_says_why(in_theory):
    page = page_of(in_theory)
    assert len(page.json) == len(UNMEASURED)
    left_out = "Samples round by round: Nothing was measured on a GPU here."
    assert left_out in page.texts_of("li")
    assert not {"Samples round by round", "The gap, explained"} & set(page.texts_of("h2"))


def test_memory_levels_have_a_table_too(in_counters):
    page = page_of(in_counters)
    assert "FLOP per byte of every variant at every level (measured)" in page.texts_of("summary")
    assert "Memory levels" in page.values("aria-label")
    assert "68.72" in page.texts_of("td")


def test_figures_have_no_second_title(on_gpu):
    figures = page_of(on_gpu).json
    assert not any(figure["layout"].get("title", {}).get("text") for figure in figures)


@pytest.mark.parametrize(
    "what", ["on_gpu", "in_prediction", "in_counters", "in_trace", "in_theory"]
)
def test_plotly_accepts_every_figure(what, request):
    figures = page_of(request.getfixturevalue(what)).json
    assert figures
    for figure in figures:
        go.Figure(figure)  # which raises ValueError for a name or a value that it does not know


def test_a_selector_stands_where_there_are_several_shapes():
    one = page_of(profile(SHAPE))
    two = page_of(profile(SHAPE, SMALL))
    assert one.tags["select"] == 0
    assert two.texts_of("option") == ["4096 × 4096 × 4096", "2048 × 2048 × 2048"]
    assert two.values("data-shape") == ["0", "1"]
    assert page_hides(two) == ["1"]


def page_hides(page):
    """The chapters that are not shown at first."""
    return [
        attributes.get("data-shape")
        for attributes in page.elements
        if "hidden" in attributes and "data-shape" in attributes
    ]


def test_every_device_field_stands_with_its_source(in_theory):
    page = render(in_theory)
    for text in ("936.2 GB/s", "1.695 GHz", "24 GiB", "48 KiB (49,152 B)", "GA102", "8.6"):
        assert f"<td>{text}" in page
    for source in in_theory.device.sources.values():
        assert source.split("'")[0] in page


def test_reached_ceilings_are_told_apart(in_theory):
    cells = page_of(with_ceilings(in_theory)).texts_of("th")
    assert "DRAM bytes per s, reached" in cells


def test_a_simulation_has_every_counter_of_each_rung(in_simulation):
    page = page_of(in_simulation)
    assert "Every counter of tiled by theory, simulation and hardware" in page.texts_of("summary")
    subtitle = "Simulated on a CPU, 2026-02-03"
    assert any(t.startswith(subtitle) for t in page.texts_of("p"))
    assert len(page.json) == len(UNMEASURED)


def test_markup_in_simulated_texts_stays_inert(in_simulation):
    record = record_of(in_simulation, "tiled")
    lines = tuple(replace(one, file=EVIL, text=EVIL) for one in record.simulated.lines)
    simulated = replace(record.simulated, lines=lines, basis=EVIL, architecture=EVIL, compiler=EVIL)
    page = page_of(change(in_simulation, "tiled", simulated=simulated, label=EVIL))
    assert page.tags["img"] == 0
    assert len(page.json) == len(UNMEASURED)
    assert EVIL in page.texts_of("td")


def test_how_to_reproduce(in_theory):
    page = page_of(in_theory)
    assert in_theory.command in page.texts_of("code")
    assert any("20260203" in text for text in page.texts_of("p"))


def test_a_recorded_run_is_labelled_with_date_and_device(in_theory, on_gpu):
    page = page_of(in_theory, recorded=on_gpu)
    label = "recorded 2026-02-03 on NVIDIA GeForce RTX 3090"
    assert label in page.texts_of("span")
    assert f"Of the run {label}" in page.texts_of("h3")
    assert len(page.json) == len(FIGURES)  # its samples too


def test_a_recorded_run_of_another_gpu_is_refused(in_theory, on_gpu):
    other = replace(on_gpu, device=replace(on_gpu.device, key="t4", name="Tesla T4"))
    with pytest.raises(InputError, match="recorded run is of Tesla T4"):
        render(in_theory, recorded=other)


def test_markup_in_any_text_stays_inert(evil):
    page = page_of(evil, recorded=evil)
    assert page.tags["img"] == 0
    assert page.tags["script"] == PAGES_OWN + len(page.json)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert EVIL in page.texts_of("code")  # shown as it is, not as a template


def test_labels_in_figures_are_literal_to_plotly(evil):
    for figure in page_of(evil).json:
        shown = json.dumps(figure)
        assert "<img" not in shown
        assert "&lt;img" in shown or "img" not in shown


def test_a_profile_without_records(in_theory):
    page = page_of(replace(in_theory, records=()))
    assert "This profile holds no record: no rung was profiled." in page.texts_of("p")
    assert "Device record" in page.texts_of("h2")


def test_an_interrupted_profile_says_so(on_gpu):
    page = page_of(replace(on_gpu, status="interrupted"))
    assert "The run was interrupted: what is missing was not reached." in page.texts_of("p")


def test_all_skipped_is_a_page_too(in_theory):
    skipped = tuple(
        replace(r, status="skipped", reason="too small", theory=None) for r in in_theory.records
    )
    page = page_of(replace(in_theory, records=skipped))
    assert not page.json
    assert page.texts_of("td").count("skipped") == 7


def test_rendering_is_pure(on_gpu):
    assert render(on_gpu) == render(on_gpu)


def test_the_subtitle_tells_the_moment_in_utc(in_theory):
    said = page_of(in_theory).texts_of("p")
    assert any("nothing was launched, 2026-02-03 04:05 UTC." in one for one in said)


def test_grades_say_what_an_interval_and_an_occupancy_are(on_gpu):
    grades = " ".join(page_of(on_gpu).texts_of("dd"))
    assert "95% interval of the median; sampling stops when it is narrow enough" in grades
    assert "slightly optimistic" in grades
    assert "registers" in grades


def test_predicted_times_have_a_chapter_and_a_grade(in_prediction, in_theory):
    page = page_of(in_prediction)
    assert "Predicted time" in page.texts_of("h3")
    assert "Why each rung beats the one before, or does not" in page.texts_of("h3")
    assert "The gap, explained" in page.texts_of("h2")
    assert "predicted" in page.texts_of("span")
    assert any("A prediction is no measurement." in one for one in page.texts_of("dd"))
    assert len(page.json) == len(UNMEASURED) + 1  # the gap
    without = page_of(in_theory)
    assert "Predicted time" not in without.texts_of("h3")


def test_markup_in_a_prediction_stays_inert(evil):
    name = next(record.label for record in evil.records if record.rung == 4)
    record = record_of(evil, name)
    foreseen = predicted(
        record, 1e-3, limiter=EVIL, next_limiter=EVIL, constants=EVIL, basis=EVIL,
        gap=(GapStep(name=EVIL, time_s=1e-3, detail=EVIL),),
        bounds=(TimeBound(name=EVIL, time_s=1e-4, basis=EVIL),),
    ).predicted  # fmt: skip
    page = page_of(change(evil, name, predicted=foreseen, status="ok", check=None))
    assert "Predicted time" in page.texts_of("h3")
    assert page.tags["img"] == 0
    assert EVIL in page.texts_of("td")
    assert not any("<img" in json.dumps(figure) for figure in page.json)
