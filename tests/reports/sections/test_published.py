"""Published times as rows beside the roofs of theory."""

import pytest

from analysis.records.profile import Published
from analysis.theory import Ceiling
from reports import render
from reports.sections.published import publications
from tests.reports.profiles_by_hand import change, view

FLOP = 2 * 4096**3


@pytest.fixture
def published(in_theory):
    roof = Ceiling(name="load/store unit", flop_per_s=FLOP / 0.04, time_s=0.04, basis="")
    one = Published(
        label="tiled <32x32>",
        rung="tiled:tile=16",
        time_s=0.05,
        flop_per_s=FLOP / 0.05,
        roof=roof,
        source="A text",
        caveat="Its clock is not known.",
    )
    other = Published(
        label="a library",
        rung="vectorized",
        time_s=0.01,
        flop_per_s=FLOP / 0.01,
        roof=None,
        source="A text",
        caveat="Its clock is not known.",
    )
    made = change(in_theory, "tiled", published=(one,))
    return change(made, "vectorized", published=(other,))


def test_a_row_has_time_rate_roof_and_share(published):
    (publication,) = publications(view(published))
    assert (publication.source, publication.caveat) == ("A text", "Its clock is not known.")
    tiled, library = publication.table.rows
    assert [cell.text for cell in tiled] == [
        "tiled", "50.00 ms", "2.75 TFLOP/s", "3.44 TFLOP/s", "80.0 %", "tiled <32x32>",
    ]  # fmt: skip
    assert tiled[0].details == ("as tiled:tile=16",)
    assert [cell.text for cell in library][3:5] == ["–", "–"]
    assert library[0].details == ()
    grades = [grade for grade, _ in publication.table.grades]
    assert grades == ["", "published", "theory", ""]


def test_nothing_published_has_no_section(in_theory):
    assert publications(view(in_theory)) == ()
    assert "Published timings" not in render(in_theory)


def test_the_page_says_source_and_caveat(published):
    page = render(published)
    assert ">Published timings</h3>" in page
    assert "A text." in page
    assert "Its clock is not known." in page
    assert "tiled &lt;32x32&gt;" in page
    assert '<span class="badge published">published</span>' in page


def test_the_last_column_can_be_left_out(published):
    (publication,) = publications(view(published))
    narrow = publication.table.without_last_column
    assert narrow.columns[-1].title == "of the roof"
    assert {len(row) for row in narrow.rows} == {len(narrow.columns)}
