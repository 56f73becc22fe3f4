"""Widths of intervals, from the recorded first predictions of parts that were held out."""

import numpy as np
import pytest

from analysis.comparison.interval import COVERED, LaunchArrays, MeasuredLaunch, measured_launches
from analysis.comparison.like_launches import COLUMNS, HELD_OUT, LAUNCHES, PAIR_SHARE
from analysis.l2_state import L2State
from analysis.records import words_of_results
from analysis.timing.predicted import Resource
from benchmarks import held_out_widths
from benchmarks.held_out_widths import (
    LOOKS,
    Look,
    calibration,
    covered,
    crossed,
    factor_of,
    figure,
    held_out_factor,
    looks,
    pair_share,
    public,
    source_of,
)
from benchmarks.intervals import WithInterval, known_of, quarters, written
from validation import ROOT, recordings
from validation.public_launches.listed import FOLDER

FOUND = looks()
VALIDATION, README, TRUST = (
    ROOT.joinpath(*name.split("/")).read_text("utf-8")
    for name in ("docs/validation.md", "README.md", "docs/trust.md")
)


def launch(error, share=0.5, l2=L2State.DIRTY):
    busy = [0.0] * (len(Resource) + 1)
    busy[0] = share
    return MeasuredLaunch(limiter=Resource.ISSUE, l2=l2, busy=tuple(busy), error=error)


def look(errors, programs, spread=0.1):
    """A part whose development launches have errors of up to `spread`, on both sides."""
    like = [launch(x) for x in np.linspace(-spread, spread, 200)]
    return Look(
        part="part",
        model="0",
        launches=[launch(x) for x in errors],
        programs=programs,
        like=LaunchArrays.of(like),
    )


@pytest.mark.parametrize(
    ("needed", "factor"),
    [
        ([0.1, 0.2, 0.3, 0.4], 0.4),  # 0.8 * 5
        ([5.0, 1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0], 8.0),  # 0.8 * 10
        ([2.0], 2.0),  # there is no more
    ],
)
def test_four_fifths_of_one_more_lie_within_the_factor(needed, factor):
    assert factor_of(needed) == factor


def test_a_launch_needs_its_error_over_the_end_on_its_side():
    one = look([0.02, -0.04], ["a", "b"])
    ends = one.unscaled()
    assert [x.low for x in ends] == [ends[0].low] * 2
    assert one.needed() == pytest.approx([0.02 / ends[0].high, -0.04 / ends[0].low])
    assert [x.holds for x in one.scaled(max(one.needed()) * 1.001)] == [True, True]
    assert [x.holds for x in one.scaled(min(one.needed()) * 0.999)] == [False, False]


def test_the_factor_is_that_of_the_newest_part():
    """A test of the newest part takes the factor of the one before."""
    found = {
        "second": look([0.3, -0.3], ["a", "b"]),
        "third": look([0.2, -0.2], ["a", "b"]),
        "final": look([0.9, -0.9], ["a", "b"]),
    }
    assert public(found) == ["second", "third"]
    assert held_out_factor(found) == round(factor_of(found["third"].needed()), 2)
    assert [source_of(found, part) for part in found] == ["third", "second", "third"]
    found["fourth"] = look([0.1, -0.1], ["a", "b"])
    assert held_out_factor(found) == round(factor_of(found["fourth"].needed()), 2)
    assert [source_of(found, part) for part in found] == ["fourth", "fourth", "fourth", "third"]


def test_pairs_are_of_one_program():
    one = look([0.03, 0.05, 0.3], ["a", "a", "b"])
    (needed,) = one.needed_of_pairs(1.0)
    low, high = one.unscaled()[0].low, one.unscaled()[0].high
    assert needed == pytest.approx(0.02 / np.hypot(low, high))


def test_quarters_are_by_width():
    rows = [
        WithInterval(launch=launch(np.log(1 / (1 + error))), low=-width, high=width)
        for error, width in ((0.4, 0.4), (0.1, 0.1), (0.2, 0.2), (0.3, 0.3))
    ]
    assert quarters(rows) == pytest.approx((0.1, 0.4))


def test_what_ships_comes_from_the_record():
    assert held_out_factor(FOUND) == HELD_OUT
    assert pair_share(FOUND) == PAIR_SHARE
    assert round(covered(FOUND), 2) == COVERED
    table = held_out_widths.TABLE.read_text("utf-8")
    assert written(measured_launches(COLUMNS, LAUNCHES), HELD_OUT, PAIR_SHARE) == table


@pytest.mark.parametrize("part", public(FOUND)[1:])
def test_the_record_has_the_first_predictions_of_a_part(part):
    known = list(known_of(FOLDER / f"{part}_predicted.json", part))
    (row,) = (one for one in recordings.read(LOOKS)["looks"] if one["part"] == part)
    assert [one["label"] for one in row["launches"]] == [one.label for one in known]
    errors = [one.error for one in FOUND[part].launches]
    assert errors == pytest.approx([one.launch.error for one in known], abs=6e-4)


def test_no_launch_of_a_part_is_among_those_that_it_is_compared_with():
    """The development launches of the model that looked first have other errors or features."""
    for part in public(FOUND):
        there = {
            (int(limiter), int(state), *map(float, busy), round(float(error), 3))
            for limiter, state, busy, error in zip(
                FOUND[part].like.limiters,
                FOUND[part].like.states,
                FOUND[part].like.busy,
                FOUND[part].like.errors,
                strict=True,
            )
        }
        own = LaunchArrays.of(FOUND[part].launches)
        same = [
            row
            for row in zip(own.limiters, own.states, own.busy, own.errors, strict=True)
            if (int(row[0]), int(row[1]), *map(float, row[2]), round(float(row[3]), 3)) in there
        ]
        assert not same


@pytest.mark.parametrize("number", range(len(FOUND)), ids=list(FOUND))
def test_the_page_has_the_results(number):
    _, part, rows = list(crossed(FOUND))[number]
    own = FOUND[part].unscaled()

    def shown(tested):
        held = np.mean([one.holds for one in tested])
        width = np.median([one.half_width for one in tested])
        return f"{held:.0%}, {width:.1%}"

    narrow, wide = quarters(rows)
    row = (
        f"| {len(rows)} | {shown(own)} | {factor_of(FOUND[part].needed()):.2f} | {shown(rows)} | "
        f"{narrow:.1%}, {wide:.1%} ({wide / narrow:.2f}) |"
    )
    assert row in VALIDATION
    limiters = {
        name: [one.holds for one in rows if one.launch.limiter == name]
        for name in {one.launch.limiter for one in rows}
    }
    for name, holds in limiters.items():
        if len(holds) >= 10:
            assert f"{name} {np.mean(holds):.0%} of {len(holds)}" in VALIDATION


def test_words_have_the_share_that_held():
    share = f"{100 * COVERED:.0f}"
    assert f"it contained the measured time of {share}% of the public launches" in README
    (interval,) = (one for one in words_of_results.ENTRIES if one.word == "interval")
    assert f"{share} of 100 were inside" in " ".join(interval.sentences)
    assert f"{share}% of {sum(len(FOUND[x].launches) for x in public(FOUND))}" in TRUST
    assert f"HELD_OUT`, {HELD_OUT:.2f}" in VALIDATION
    assert f"PAIR_SHARE`, {PAIR_SHARE:.2f}" in VALIDATION


def test_the_figure_is_that_of_the_record():
    drawn = ROOT.joinpath("docs", "figures", "interval_calibration.svg").read_text("utf-8")
    assert figure(calibration(FOUND)) == drawn
