"""Parts of public launches as they were opened, and what documents say of them."""

from statistics import fmean

import pytest

from validation import ROOT
from validation.public_launches.listed import (
    HALVES,
    SEEDS,
    gap_of,
    listed,
    measurements,
)
from validation.public_launches.page import OPENED, look, opened, page
from validation.public_launches.predict import Errors, with_measured

VALIDATION = ROOT.joinpath("docs", "validation.md").read_text("utf-8")
NEWEST = list(OPENED)[-1]
#: Nothing reads the record of a part that is not opened yet.
DRAWN = [part for part in SEEDS if part in OPENED]


@pytest.mark.parametrize("part", DRAWN)
def test_the_gap_comes_from_the_first_half_alone(part):
    document = measurements(part)
    beside = document["beside"]
    assert {row["name"] for row in beside} <= {one.name for one in listed("first")}
    assert document["gap"] == gap_of(beside)
    if document["gap"]["time_s"]:
        assert f"{document['gap']['time_s'] * 1e6:.3f} µs" in VALIDATION


def test_the_halves_have_the_gap_of_short_holds():
    rows = [row for part in HALVES for row in measurements(part)["times"] if "gap_s" in row]
    assert {row["gap_s"] for row in rows} == {1.63e-6}
    assert f"The times of {len(rows)} launches" in VALIDATION
    assert all("gap" in measurements(part) for part in (*HALVES, *DRAWN))


@pytest.mark.parametrize("part", DRAWN)
def test_predictions_are_beside_what_was_measured(part):
    found = opened(part)
    assert with_measured(part, found) == found
    assert {one["label"] for one in found} <= {one.name for one in listed(part)}


def test_all_launches_of_the_newest_part_are_there():
    assert [one["label"] for one in opened(NEWEST)] == [one.name for one in listed(NEWEST)]


@pytest.mark.parametrize("part", OPENED)
def test_each_look_has_a_row_on_the_page(part):
    assert look(part) in VALIDATION


def test_the_page_has_the_tables_of_the_newest_part():
    assert "\n".join(page(NEWEST, opened(NEWEST))) in VALIDATION


def test_the_readme_states_the_newest_part():
    errors = Errors.of(opened(NEWEST))
    readme = ROOT.joinpath("README.md").read_text("utf-8")
    assert f"| {len(errors.timed)}, held out | {fmean(errors.each):.1%} |" in readme
