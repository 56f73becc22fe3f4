"""The annotated source: what each line costs."""

from dataclasses import replace

import pytest

from reports.ladder import View
from reports.sections.source import (
    all_annotated,
    annotated,
    counts_document,
    listing_document,
    summary,
)
from tests.reports.profiles_by_hand import change, record_of, view


def test_each_line_has_its_share_of_the_instructions(in_trace):
    found = annotated(view(in_trace), "tiled")
    assert [one.line.number for one in found.lines] == [2, 3, 4]
    assert [one.line.executed for one in found.lines] == [10, 20, 70]
    assert [line.share for line in found.lines] == [0.1, 0.2, 0.7]


def test_a_line_has_sectors_against_the_ideal_and_conflicts(in_trace):
    found = annotated(view(in_trace), "tiled")
    _, copy, product = found.lines
    assert copy.line.per_request("units", shared=False) == 32  # 320 of 10 requests
    assert copy.line.per_request("ideal", shared=False) == 4  # 40 of 10 requests
    assert copy.line.per_request("excess", shared=True) == 0
    assert product.line.per_request("units", shared=False) is None
    assert product.line.per_request("units", shared=True) == 2  # 20 wavefronts
    assert product.line.per_request("excess", shared=True) == 1  # 10 without conflicts
    assert len(copy.reasons) == len(product.reasons) == 1


def test_without_machine_code_there_is_none(in_simulation):
    assert all_annotated(view(in_simulation)) == ()


def test_counts_of_other_machine_code_are_not_shown(in_trace):
    record = record_of(in_trace, "tiled")
    short = replace(record.simulated, executed=(1, 2))
    changed = change(in_trace, "tiled", simulated=short)
    assert annotated(view(changed), "tiled") is None


def test_the_document_is_what_the_page_reads(in_trace):
    found = all_annotated(view(in_trace))
    assert [one.listing.label for one in found][:2] == ["naive-uncoalesced", "naive-coalesced"]
    counts = counts_document(found)["tiled"]
    assert counts["executed"] == (10, 10, 10, 70, 0)
    assert counts["lines"][1][:8] == [3, "20", 0.2, "20.0 %", "32 / 4", 0.875, "0", 0.0]
    assert listing_document(found[0].listing)["source"][0] == "// a kernel <b>of four lines</b>"


def test_a_sentence_says_where_the_instructions_go(in_trace):
    assert summary(annotated(view(in_trace), "tiled")) == (
        "70.0 % of the warp instructions of tiled are of line 4. "
        "Uncoalesced or conflicting: lines 3 and 4."
    )


@pytest.mark.parametrize("label", ["cublas", "nothing"])
def test_what_was_not_simulated_has_no_source(in_trace, label):
    assert annotated(view(in_trace), label) is None


def test_a_name_that_stands_for_another_shows_the_source_of_that(in_trace):
    tiled = record_of(in_trace, "tiled")
    stands = replace(tiled, label="best", simulated=replace(tiled.simulated, listing="vectorized"))
    made = replace(in_trace, records=(stands,))
    (found,) = all_annotated(View(made, stands.shape))
    assert (found.label, found.listing.label) == ("best", "vectorized")
    assert counts_document([found])["best"]["listing"] == "vectorized"
