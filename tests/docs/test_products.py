"""The figure and the tables of the 300 products are those of the recorded run."""

import json

from benchmarks.product_tables import (
    FIGURE,
    OTHERS,
    RECORDED,
    estimates,
    figure,
    others,
    regret,
    table,
    worst,
)
from docs.snippets.pages import ROOT
from validation.products.law import products

RECORDS = json.loads(RECORDED.read_text(encoding="utf-8"))["records"]
PAGE = (ROOT / "docs" / "against_cublas.md").read_text(encoding="utf-8")


def test_the_run_has_every_product_of_the_law():
    assert [one["name"] for one in RECORDS] == [case.name for case in products()]
    assert [one["product"] for one in RECORDS] == [str(case.product) for case in products()]


def test_the_page_shows_the_tables_of_the_run():
    assert "\n".join(table(RECORDS)) in PAGE
    assert "\n".join(worst(RECORDS)) in PAGE


def test_the_page_says_how_far_estimates_and_choices_are_off():
    words = " ".join(PAGE.split())
    assert estimates(RECORDS) in words
    assert regret(RECORDS) in words
    assert others(json.loads(OTHERS.read_text(encoding="utf-8"))) in words


def test_the_figure_is_that_of_the_run():
    assert FIGURE.read_text(encoding="utf-8") == "\n".join(figure(RECORDS)) + "\n"
    assert f"(figures/{FIGURE.name})" in PAGE
