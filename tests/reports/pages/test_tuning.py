"""Results of a tuning run, in words, as a table and as a page."""

from dataclasses import replace
from html.parser import HTMLParser

from reports.pages.tuning import candidates_table, figure, lead, outcomes_table, page, points
from tests.reports.tuned_by_hand import (
    DEFAULT,
    LEFT_OUT,
    SHAPE,
    TUNING,
    UNMEASURED,
    WINNER,
    WRONG,
    candidate,
)


def test_the_lead_names_the_winner_its_time_and_its_speed_over_cublas():
    assert lead(TUNING, SHAPE) == (
        "coarsened-1d at 64 × 64 × 64 on NVIDIA H200 SXM 141 GB: bk=8,tm=8 takes 1.000 ms, "
        "0.800× of cuBLAS; no other is tied with it"
    )


def test_the_lead_names_those_that_are_tied():
    other = replace(DEFAULT, is_tied=True)
    both = replace(SHAPE, candidates=(WINNER, other, WRONG, LEFT_OUT))
    assert lead(TUNING, both).endswith("; tied with it: bk=4,tm=16")
    assert "the defaults (bk=4,tm=16) are among the best" in points(both)


def test_without_a_measurement_the_lead_says_predicted():
    assert lead(TUNING, UNMEASURED).endswith("bk=4,tm=16 should be fastest, 400 µs (predicted)")


def test_the_points_tell_the_space_the_stages_and_the_yardsticks():
    assert list(points(SHAPE)) == [
        "the best by prediction, 7 samples each",
        "9 combinations of values, 3 violate a constraint, 1 left out, 1 failed",
        "2 configurations measured, 1 of them in an earlier run (from the cache)",
        "predictions put 1 of 1 pairs of measured configurations in the measured order",
        "the fastest was number 2 of 4 by predicted time",
        "the defaults (bk=4,tm=16) take 2.00× as long (measured)",  # 0.8 / 0.4
        "checked against float64: right at this shape and, for ragged edges, at 63 × 63 × 63 and "
        "65 × 65 × 65",
        "cuBLAS in the same rounds: 800.0 µs (measured)",
    ]


def test_pairs_that_were_measured_in_another_order_are_not_counted():
    # predicted and swept: the first two are swapped
    times = ((3e-3, 1e-3), (2e-3, 2e-3), (4e-3, 3e-3))
    swept = [candidate(bk, 16, *both) for bk, both in zip((4, 8, 16), times, strict=True)]
    said = list(points(replace(SHAPE, candidates=tuple(swept))))
    assert "predictions put 2 of 3 pairs of measured configurations in the measured order" in said


def test_what_could_not_be_obtained_is_said():
    assert "no cuBLAS beside it" in list(points(replace(SHAPE, notes=("no cuBLAS beside it",))))


def test_what_many_configurations_lack_is_said_once():
    lacking = [replace(one, notes=("not predicted: no core",)) for one in UNMEASURED.candidates]
    said = list(points(replace(UNMEASURED, candidates=tuple(lacking))))
    assert said[-1] == "3 of 3 not predicted: no core"


def test_winners_stand_first_and_every_row_has_its_outcome():
    table = candidates_table(SHAPE)
    rows = [[cell.text for cell in row] for row in table.rows]
    assert [column.title for column in table.columns[:2]] == ["bk", "tm"]
    assert [row[:2] for row in rows] == [["8", "8"], ["16", "8"], ["4", "16"], ["16", "16"]]
    assert [row[-1] for row in rows] == [
        "best, or tied",
        "failed: wrong result: <b>C[0][0]</b>",
        "slower",
        "left out: not measured: enough",
    ]
    assert table.rows[1][-1].is_bad


def test_the_page_explains_intervals_only_where_they_were_measured():
    assert "95 % interval" in page(TUNING)
    assert "95 % interval" not in page(replace(TUNING, shapes=(UNMEASURED,)))


def test_columns_without_a_number_are_left_out():
    titles = [column.title for column in candidates_table(UNMEASURED).columns]
    assert titles == ["bk", "tm", "time", "limiter", "outcome"]


def test_a_screen_shows_no_configuration_that_was_left_out_and_only_so_many():
    assert [row[-1].text for row in outcomes_table(SHAPE, most=9).rows][2:] == ["slower"]
    assert len(outcomes_table(SHAPE, most=2).rows) == 2


def test_the_page_has_every_shape_and_escapes_what_it_was_given():
    other = replace(UNMEASURED, shape=replace(UNMEASURED.shape, m=65))
    html = page(replace(TUNING, shapes=(SHAPE, other)))
    assert "<b>C[0][0]" not in html
    assert TUNING.command in html
    assert html.count("<table") == 2
    assert "Every configuration, 65 × 64 × 64" in html
    assert "<script" not in html


def test_intervals_are_explained_where_they_were_measured():
    said = "the 95 % interval of its speed relative to cuBLAS"
    assert said in page(TUNING)
    assert said not in page(replace(TUNING, shapes=(UNMEASURED,)))


def test_bars_show_the_best_grade_of_time_that_there_is():
    assert figure(SHAPE).title == "Time of a configuration: measured in the final round"
    assert figure(UNMEASURED).title == "Time of a configuration: predicted"
    html = page(TUNING)
    drawn = html.split('<figure class="times">')[1].split("</figure>")[0]
    assert drawn.index("bk=8,tm=8") < drawn.index("bk=4,tm=16")  # the faster one is first
    many = tuple(candidate(n, 1, n * 1e-3, n * 1e-3) for n in range(1, 41))
    assert "the 12 fastest of 40, " in figure(replace(SHAPE, candidates=many)).title
    assert figure(replace(SHAPE, candidates=(WRONG,))) is None


def test_the_page_asks_for_nothing_from_elsewhere():
    found = []

    class Sources(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.extend(value or "" for name, value in attrs if name in ("src", "href"))

    Sources().feed(page(TUNING))
    assert set(found) == {"data:,", "#main"}
