"""Trust in a predicted time: the error of launches like it, or that there are none."""

from dataclasses import replace

import pytest

from analysis.comparison import accuracy
from analysis.comparison.held_out import HeldOut
from analysis.devices import DEVICES
from analysis.timing.predicted import Resource
from reports.pages.kernel import page
from reports.sections import launch_facts as facts
from tests.reports.launches import executed

LIMITER = Resource.DRAM


@pytest.fixture
def report(monkeypatch):
    """A launch on an H100 that DRAM limits, and five held-out launches like it."""
    row = HeldOut("h100-sxm", "other kernels", LIMITER, 5, 0.1234)
    monkeypatch.setattr(accuracy, "HELD_OUT", (row,))
    one = executed("copy").report
    return replace(one, predicted=replace(one.predicted, limiter=LIMITER, interval_s=None))


def test_a_time_has_its_interval_on_the_page(report):
    predicted = replace(report.predicted, time_s=10e-6, interval_s=(9.1e-6, 12e-6))
    found = replace(report, predicted=predicted)
    assert facts.error_short(found) == "9.10 to 12.0 µs in 80 % of launches like it"
    assert "9.10 to 12.0 µs in 80 % of launches like it</a>" in page(found)
    assert found.answer.time_sentence == (
        "copy: 10.0 µs (9.10 to 12.0) predicted on NVIDIA H100 SXM5 80 GB, L2 dirty."
    )
    other = replace(found, predicted=replace(predicted, limiter=Resource.L2))
    assert facts.error_sentence(other) == (
        "80 % interval: 80 % of the held-out launches were inside theirs"
    )


def test_a_time_has_the_error_of_launches_like_it_and_their_number(report):
    assert facts.error_short(report) == "mean error 12.3 %, 5 launches"
    assert facts.error_sentence(report) == (
        "mean error 12.3 % on 5 held-out launches of this GPU that DRAM limits"
    )
    first = next(facts.error_rows(report))
    assert first == (DEVICES["h100-sxm"].name, "the same limiter, DRAM, held out", "5", "12.3")
    assert "mean error 12.3 %, 5 launches</a>" in page(report)


@pytest.mark.parametrize(
    "changes", [{"is_rung": True}, {"device": DEVICES["h200"]}, {"device": DEVICES["l40s"]}]
)
def test_of_other_launches_it_says_that_none_was_measured(report, changes):
    other = replace(report, **changes)
    assert facts.error_short(other) == facts.error_sentence(other) == facts.NONE_ALIKE
    assert "no similar launch was measured</a>" in page(other)


def test_another_limiter_is_not_alike(report):
    other = replace(report, predicted=replace(report.predicted, limiter=Resource.L2))
    assert facts.error_short(other) == "no similar launch was measured"
    assert "No similar launch was measured." in facts.trust_sentence(other)


def test_a_limit_of_blocks_has_one_name():
    one = executed("copy").report
    few = replace(one, geometry=replace(one.geometry, block=(32, 1, 1)))
    assert "theoretical occupancy, limited by blocks. " in facts.occupancy_sentence(few)
    first, *_ = facts.occupancy_bars(few)
    assert (first.name, first.class_) == ("blocks", "s1")


def test_without_a_predicted_time_there_is_no_error(report):
    assert facts.error_short(replace(report, predicted=None)) == ""
