"""Causes and source lines whose predicted cost moved."""

import pytest

from analysis.comparison.causes import MOVED, cause_changes, line_cost_changes
from analysis.records.profile import LineCounters
from analysis.timing.predicted import Cost, Effect, LineCost
from tests.records_by_hand import predicted


def of(costs, lines=()):
    return predicted(
        sum(costs.values()),
        costs=tuple(Cost(effect=e, time_s=t, alone_s=t) for e, t in costs.items()),
        lines=tuple(LineCost(file="k.cu", line=n, time_s=t) for n, t in lines),
    )


def test_what_moved_is_ordered_by_how_far():
    before = of({Effect.CONFLICTS: 13e-6, Effect.DRAM_LATENCY: 1e-6, Effect.LAUNCH: 3e-6})
    after = of({Effect.DRAM_LATENCY: 3e-6, Effect.LAUNCH: 3e-6, Effect.IDLE_SMS: 1e-6})
    found = cause_changes(before, after)
    assert [(one.effect, one.before_s, one.after_s) for one in found] == [
        (Effect.CONFLICTS, 13e-6, 0.0),
        (Effect.DRAM_LATENCY, 1e-6, 3e-6),
        (Effect.IDLE_SMS, 0.0, 1e-6),
    ]


def test_what_hardly_moved_is_not_named():
    before = of({Effect.DRAM_BANDWIDTH: 100e-6})
    after = of({Effect.DRAM_BANDWIDTH: 100e-6, Effect.IDLE_SMS: MOVED * 99e-6})
    assert cause_changes(before, after) == ()


def test_records_of_earlier_versions_have_no_causes():
    assert cause_changes(predicted(1e-6), of({Effect.LAUNCH: 1e-6})) == ()


def test_lines_are_matched_by_their_text():
    def lines(*texts):
        return [
            LineCounters(file="k.cu", line=n, text=text, counters={})
            for n, text in enumerate(texts, 1)
        ]

    before = of({Effect.CONFLICTS: 20e-6}, [(1, 15e-6), (2, 5e-6)])
    after = of({Effect.CONFLICTS: 9e-6}, [(2, 4e-6), (3, 5e-6)])
    found = line_cost_changes(before, after, lines("a();", "b();"), lines("", "a();", "b();"))
    (one,) = found
    assert (one.text, one.line_before, one.line_after) == ("a();", 1, 2)
    assert one.difference_s == pytest.approx(-11e-6)
