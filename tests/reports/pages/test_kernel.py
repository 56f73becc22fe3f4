"""The page of one launch: its size, words and sums, on three grades and with facts missing."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from reports.pages.kernel import notebook_frame, page
from reports.sections.kernel_source import MOST_LINES, excerpt, highlighted
from reports.sections.time_parts import PartClass, parts
from tests.reports.launches import CASES, LAUNCHES, LONG_NAME, executed, page_of, reports

MOST_BYTES = 400_000
VOID = {"meta", "link", "br"}


class Tags(HTMLParser):
    """Open tags at the end of a document, and all attributes that name a place elsewhere."""

    def __init__(self, html):
        super().__init__()
        self.open, self.places, self.text = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        self.places += [
            v for k, v in attributes if k in ("src", "href", "srcset", "data", "action")
        ]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("name", [*LAUNCHES, *CASES])
def test_a_page_is_small_whole_and_fetches_nothing(name):
    html = page_of(name)
    assert len(html.encode()) <= MOST_BYTES
    tags = Tags(html)
    assert tags.open == []
    assert all(place.startswith(("#", "data:,")) for place in tags.places)
    assert "plotly" not in html.lower()
    style = html.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.parametrize("name", [*LAUNCHES, *CASES])
def test_parts_of_the_bar_sum_to_its_time(name):
    report = reports()[name] if name in CASES else executed(name).report
    found = parts(report)
    whole_s = max(report.measured_s or 0, report.predicted.time_s if report.predicted else 0)
    assert sum(part.time_s for part in found) == pytest.approx(whole_s)
    assert len(found) <= 8
    assert sum(part.kind == PartClass.CAUSE for part in found) <= 1
    is_longer = name in ("both",)
    assert sum(part.kind == PartClass.UNEXPLAINED for part in found) == is_longer


@pytest.mark.parametrize(
    ("name", "grade", "number"),
    [
        ("transpose", "predicted", None),
        ("measured", "measured", 1.2),
        ("both", "measured", 1.2),
        ("faster", "measured", 0.8),
        ("not predicted", "no time", None),
    ],
)
def test_the_number_has_its_grade(name, grade, number):
    html = page_of(name)
    time_s = executed("transpose").predicted.time_s * (number or 1)
    found = re.search(r'<div class="big"><span class="v">(.*?)</span>.*?<i>(.*?)<', html, re.DOTALL)
    assert found[2].rstrip("; ") == grade
    if grade == "no time":
        assert found[1] == "–"
    else:
        assert float(found[1]) == pytest.approx(time_s * 1e6, rel=0.005)
    assert html.count('class="unexplained" x="0"') == (name in ("both", "faster"))


def test_a_remedy_is_in_the_verdict_and_the_bar():
    html = page_of("remedies")
    assert "Remedy 1 makes it" in html
    assert "1.50× faster" in html  # 6 / 4 µs
    assert "with remedy 1" in html
    assert "alternative to remedy 1" in html
    assert '<span class="u">−2.00 µs</span>' in html
    assert '<span class="u">at most 0.500 µs</span>' in html  # of one that was not made
    assert "Remed" not in page_of("transpose")


def test_a_page_without_facts_says_which():
    assert "Not predicted: blocks wait for each other." in page_of("not predicted")
    assert "compiled without -lineinfo" in page_of("no lines")
    assert "the launch was not executed on the CPU" in page_of("measured")
    assert "accesses neither shared nor global memory" in page_of("no memory")
    assert "limited by" in page_of("earlier version").lower()


def test_estimated_counters_are_told_at_the_top():
    report = replace(executed("copy").report, uncertainty="Counters are estimates from 9 blocks")
    first = page(report).split('class="big"')[0]
    assert "counters are estimates from 9 blocks" in first


def test_a_bare_report_is_a_page():
    one = reports()["measured"]
    html = page(
        replace(one, samples_s=(), geometry=None, device=None, file=None, source=None, counters={})
    )
    assert Tags(html).open == []
    assert "Not predicted: no device was named" in html


def test_a_long_name_is_whole_once():
    html = page_of("long name")
    body = html.split("<ol>")[0].split("<body>")[1]
    assert LONG_NAME not in body
    assert html.count(LONG_NAME) == 1  # in the table of the launch


def test_markup_of_a_source_is_escaped():
    html = page_of("markup")
    assert "<b>bold</b>" not in html
    assert "<img" not in html
    assert "&lt;/script&gt;&lt;b&gt;bold" in html
    assert html.count("</script>") == 1
    assert html.count("</style>") == 1
    assert "{{ 7 * 7 }}" in html


def test_accesses_of_a_line_keep_their_values():
    html = page_of("transpose")
    row = re.search(r'<tr[^>]*><td class="r ln" data-v="12">.*?</tr>', html)[0]
    assert "32 (ideal 1)" in row  # wavefronts of the shared load
    assert ">4<" in row  # sectors of the global store


def test_a_long_source_is_shown_around_its_expensive_lines():
    report = executed("softmax").report
    filler = "\n" * 100
    moved = [
        replace(one, line=one.line + 100 * (one.line > 5)) if one.line else one
        for one in report.instructions
    ]
    lines = report.source.split("\n")
    source = "\n".join(lines[:5]) + filler + "\n".join(["", *lines[5:]])
    costs = tuple(
        replace(one, line=one.line + 100 * (one.line > 5)) if one.line else one
        for one in report.predicted.lines
    )
    shown = excerpt(
        replace(
            report,
            source=source,
            instructions=moved,
            predicted=replace(report.predicted, lines=costs),
        ),
        (1e-6, "µs"),
    )
    numbers = [line.number for line in shown if line.number]
    assert len(numbers) <= MOST_LINES
    assert any(line.is_hot for line in shown)
    assert any(line.number is None for line in shown)  # lines that are left out


def test_highlighting_escapes():
    assert highlighted('int x = "<b>"; // <i>') == (
        '<span class="kw">int</span> x = &#34;&lt;b&gt;&#34;; <span class="cm">// &lt;i&gt;</span>'
    )


def test_lines_of_python_have_its_comments_and_keywords():
    assert highlighted("for i in x // 2:  # 'half'", "kernel.py") == (
        '<span class="kw">for</span> i <span class="kw">in</span> x // 2:  '
        '<span class="cm"># &#39;half&#39;</span>'
    )
    assert highlighted('y = "# for"', "kernel.py") == "y = &#34;# for&#34;"


def test_a_notebook_shows_the_first_screen():
    frame = executed("transpose")._repr_html_()
    assert frame == notebook_frame(executed("transpose").report)
    assert frame.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert "Machine code" not in frame
