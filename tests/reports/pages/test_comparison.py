"""A comparison in sentences and tables, and as a page."""

import json
import re
from base64 import b64decode
from dataclasses import replace
from zlib import decompress

import pytest

from analysis.comparison.runs import compare
from analysis.records.metrics import WARP_INSTRUCTIONS
from analysis.records.profile import Interval
from reports.pages.comparison import doubts, page, remarks, sentences, title
from reports.sections.comparison_tables import shape_sections
from reports.sections.table import Cell
from tests.reports.pages.test_kernel import Tags
from tests.reports.profiles_by_hand import SHAPE, change, cublas, predicted, record_of

EVIL = "</td><script>alert(1)</script><img src=x>"


def edited(record):
    """Three more warp instructions, on a line that moved down by two."""
    if record.simulated is None:
        return record
    counters = record.simulated.counters
    (first, *others) = record.simulated.lines
    counts = first.counters | {WARP_INSTRUCTIONS: first.counters[WARP_INSTRUCTIONS] + 3}
    lines = (replace(first, line=first.line + 2, counters=counts), *others)
    more = counters | {WARP_INSTRUCTIONS: counters[WARP_INSTRUCTIONS] + 3}
    return replace(record, simulated=replace(record.simulated, counters=more, lines=lines))


def scaled(record, factor):
    measured = record.measured
    bounds = Interval(low=measured.interval_s.low * factor, high=measured.interval_s.high * factor)
    return replace(
        record,
        measured=replace(measured, median_s=measured.median_s * factor, interval_s=bounds),
    )


@pytest.fixture
def compared(in_counters):
    """Tiled is edited and 8% slower, vectorized 10% faster, one rung has too few samples."""
    changes = {
        "tiled": lambda r: scaled(edited(r), 1.08),
        "vectorized": lambda r: scaled(r, 0.9),
        "coarsened-1d": lambda r: replace(
            r, measured=replace(r.measured, samples_s=(1e-3,) * 4, interval_s=None)
        ),
    }
    records = tuple(changes.get(r.label, lambda r: r)(r) for r in in_counters.records[1:])
    return compare(in_counters, replace(in_counters, records=records))


def rows(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_sentences_say_what_changed_and_where(compared):
    times, counts = sentences(compared)
    assert counts.endswith(" compared in 6 records; 1 changed, in tiled.")
    assert times == (
        "Times: 7 compared: 1 slower (tiled 1.08×), 1 faster (vectorized 1.11×), 1 ambiguous, "
        "4 same."
    )
    assert title(compared) == "Two profiles on NVIDIA GeForce RTX 3090"


def test_nothing_compared_and_nothing_changed_are_told_apart(in_theory):
    times, counts = sentences(compare(in_theory, in_theory))
    assert counts.endswith("; none changed.")
    assert times == "Times: none could be compared."
    only = replace(in_theory, records=(cublas(SHAPE, is_measured=False),))
    assert sentences(compare(only, only))[-1] == "Counts: none could be compared."


def test_a_changed_count_stands_with_both_numbers_and_its_line(
    compared,
):
    (section,) = shape_sections(compared)
    assert rows(section.tables["counts"]) == [
        ["tiled", "warp instructions", "4,294,967,296", "4,294,967,299", "+3", "simulated"]
    ]
    assert section.tables["counts"].rows[0][1].details == (WARP_INSTRUCTIONS,)
    assert rows(section.tables["counts of source lines"]) == [
        ["tiled", "tiled.cu:42 → 44", "sum += a[k] * b[k] && k < K;", "warp instructions", "3", "6"]
    ]
    assert list(section.tables) == ["times", "counts", "counts of source lines"]


def test_times_stand_with_intervals_and_a_sign_before_each_verdict(
    compared,
):
    (section,) = shape_sections(compared)
    verdicts = {row[0].text: row[-1] for row in section.tables["times"].rows}
    assert verdicts["tiled"] == Cell("▲ slower", is_worse=True)
    assert verdicts["vectorized"] == Cell("▼ faster", is_worse=False)
    assert verdicts["cublas"] == Cell("= same")
    assert verdicts["coarsened-1d"].text == "? ambiguous"
    assert verdicts["coarsened-1d"].details[0].startswith("too few samples")
    change = next(row[3] for row in section.tables["times"].rows if row[0].text == "tiled")
    # medians to ± 0.2 %: 1.08 · 0.998 / 1.002 = 1.0757
    assert change == Cell("+8.0 % (+7.6 % to +8.4 %)")
    assert doubts(compared)[0].startswith("coarsened-1d: ambiguous: too few samples")


def test_a_terminal_gets_so_many_rows_of_a_record_and_how_many_more(
    in_simulation,
):
    def doubled(record):
        if record.label != "tiled" or record.simulated is None:
            return record
        counters = {name: 2 * count for name, count in record.simulated.counters.items()}
        return replace(record, simulated=replace(record.simulated, counters=counters))

    after = replace(in_simulation, records=tuple(map(doubled, in_simulation.records)))
    (section,) = shape_sections(compare(in_simulation, after), most=2)
    assert rows(section.tables["counts"])[0][1:] == [
        "warp instructions", "4,294,967,296", "8,589,934,592", "+100.0 %", "simulated",
    ]  # fmt: skip
    assert (
        rows(section.tables["counts"])[2][1] == "… and 11 more"
    )  # 13 of tiled's counters are not 0


def test_remarks_of_one_wording_stand_together(compared):
    assert remarks(compared) == (
        "cpu: times are not compared: times of the host's CPU depend on its other load and are not "
        "those of a kernel",
        "only in the first profile: one-block at 4096 × 4096 × 4096",
    )


def scripts(html):
    """Content of the scripts of a page by class, the last one without a class unpacked as it is."""
    found = dict(re.findall(r'<script type="application/octet-stream" class="(\w+)">(.*?)<', html))
    return {name: decompress(b64decode(held)).decode() for name, held in found.items()}


def without_plotly(html):
    return re.sub(r'class="plotly">[^<]*', "", html)


def test_the_page_is_complete_in_itself(compared):
    html = without_plotly(page(compared))
    assert len(re.findall("<script>", html)) == 1  # what draws the figure
    assert "http" not in html.replace("http-equiv", "")
    for text in (
        "Two profiles on",
        "▲ slower",
        "tiled.cu:42 → 44",
        "Notes",
        "3.0 %",
        "slower</small>",
    ):
        assert text in html


def test_markup_in_a_profile_stays_text(in_counters):
    before = change(in_counters, "tiled", label=EVIL)
    after = replace(before, records=tuple(map(edited, before.records)), command=EVIL)
    html = page(compare(before, after))
    drawn = scripts(html)["figure"]
    for shown in (without_plotly(html), drawn):
        assert "<script>alert" not in shown
        assert "<img" not in shown
        assert "&lt;script&gt;" in shown


def test_the_figure_has_a_bar_for_each_time_that_both_have(compared):
    figure = json.loads(scripts(page(compared))["figure"])
    (bars,) = figure["data"]
    timed = [pair for pair in compared.pairs if pair.time]
    assert len(bars["y"]) == len(timed) > 2
    (at,) = (n for n, name in enumerate(figure["layout"]["yaxis"]["ticktext"]) if "tiled" in name)
    assert bars["x"][at] == pytest.approx(8)  # 1.08 of the time before


def test_a_page_without_times_runs_nothing(in_theory):
    html = page(compare(in_theory, in_theory))
    assert "<script" not in html
    assert "script-src" not in html


def test_better_is_never_drawn_in_the_colour_of_worse(in_simulation):
    def with_counts(factor):
        def changed(record):
            if record.label != "tiled" or record.simulated is None:
                return record
            counters = {k: int(factor * n) for k, n in record.simulated.counters.items()}
            return replace(record, simulated=replace(record.simulated, counters=counters))

        return replace(in_simulation, records=tuple(map(changed, in_simulation.records)))

    for factor, is_worse, shown in ((0.5, False, "gain b"), (2, True, "cost b")):
        found = compare(in_simulation, with_counts(factor))
        (section,) = shape_sections(found)
        changes = [row[4] for row in section.tables["counts"].rows]
        assert {cell.is_worse for cell in changes} == {is_worse}
        classes = set(re.findall(r'data-l="change"[^>]*class="r ([^"]*)"', page(found)))
        assert classes == {shown}


def test_a_profile_where_everything_failed_is_a_page(in_simulation):
    def failed(record):
        return replace(record, status="failed", reason="it does not compile", predicted=None)

    after = replace(in_simulation, records=tuple(map(failed, in_simulation.records)))
    for sides in ((in_simulation, after), (after, after)):
        html = page(compare(*sides))
        assert Tags(html).open == []
        assert "it does not compile" in html


def test_forty_records_are_a_page(in_simulation):
    tiled = record_of(in_simulation, "tiled")
    names = [f"{'t' * 300}-{n}" for n in range(40)]
    before = replace(in_simulation, records=tuple(replace(tiled, label=n) for n in names))
    after = replace(before, records=tuple(map(edited, before.records)))
    html = page(compare(before, after))
    assert Tags(html).open == []
    assert all(name in html for name in names)
    assert len(html.encode()) < 400_000


def test_predicted_times_that_changed_have_a_table(in_prediction):
    tiled = record_of(in_prediction, "tiled")
    slower = predicted(tiled, 2 * 0.0516459 * 1.1, limiter="L1").predicted
    found = compare(in_prediction, change(in_prediction, "tiled", predicted=slower))
    assert sentences(found)[0] == "Predicted times: 6 compared: 1 slower (tiled 2.00×)."
    (section,) = shape_sections(found)
    assert rows(section.tables["predicted times"]) == [
        ["tiled", "56.8 ms", "114 ms", "+100.0 %", "shared memory → L1"]
    ]
    shown = page(found)
    assert "<h3>Predicted times</h3>" in shown
    assert "shared memory → L1" in shown


def test_without_predictions_nothing_is_said_of_them(compared):
    assert not any("Predicted" in sentence for sentence in sentences(compared))
    assert "Predicted times" not in page(compared)
