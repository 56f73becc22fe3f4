"""Rungs that are explained by the parts of their times, and the sentences on them."""

from dataclasses import replace

import pytest

from analysis.timing.predicted import Cost, Effect
from reports.sections.advice import advice
from reports.sections.ladder_answer import limited
from reports.sections.ladder_rows import rows
from reports.sections.rung_pane import OTHERS, pane, time_bars
from reports.sections.rungs import brief, why
from tests.reports.profiles_by_hand import change, record_of, view

BEFORE = {
    Effect.UNCOALESCED: 30e-3,
    Effect.BARRIERS: 4e-3,
    Effect.FETCH: 0.1e-3,
    Effect.FP32_PIPE: 15e-3,
    Effect.REMAINDER: 1.9e-3,
    Effect.LAUNCH: 2e-6,
}
AFTER = {
    Effect.UNCOALESCED: 2e-3,
    Effect.BARRIERS: 9e-3,
    Effect.DRAM_LATENCY: 0.2e-3,
    Effect.FP32_PIPE: 15e-3,
    Effect.REMAINDER: 2.8e-3,
    Effect.LAUNCH: 2e-6,
}


def spent(made, label, parts_s):
    """The profile in which a rung takes the sum of these parts."""
    costs = tuple(Cost(effect=one, time_s=s, alone_s=s) for one, s in parts_s.items())
    predicted = record_of(made, label).predicted
    return change(
        made,
        label,
        predicted=replace(predicted, costs=costs, time_s=sum(parts_s.values())),
    )


@pytest.fixture
def shown(in_prediction):
    """Tiled is faster than the rung before, because its accesses are coalesced."""
    made = spent(in_prediction, "naive-coalesced", BEFORE)
    return rows(view(spent(made, "tiled", AFTER)))


def test_the_reason_is_the_part_that_changed_the_most(shown):
    step = shown.row("tiled").step
    assert step.basis == "predicted parts"
    assert step.reason.resource == Effect.UNCOALESCED
    assert step.price.resource == Effect.BARRIERS  # 5 ms more
    # the times of L1 changed too, and their counts have a sentence of their own
    assert why(replace(step, changes=())) == "Uncoalesced accesses cost 28.0 ms less."
    assert brief(replace(step, changes=())) == "uncoalesced 30.0 → 2.00 ms"


def test_changes_of_parts_add_up_to_the_change_of_the_time(shown):
    step = shown.row("tiled").step
    changes = [one.time_s.after - one.time_s.before for one in step.weights]
    assert sum(changes) == pytest.approx(sum(AFTER.values()) - sum(BEFORE.values()))


def test_parts_of_the_pane_add_up_to_the_time(shown):
    found = pane(shown, shown.row("tiled"))
    assert found.unit == "ms"
    assert [one.name for one in found.parts] == [
        "uncoalesced accesses",  # the largest of both rungs first
        "FP32 pipe",
        "waiting at barriers",
        "work that does not overlap",
        OTHERS,  # 0.1 and 0.2 ms
    ]
    for end, parts in (("before", BEFORE), ("after", AFTER)):
        values = [float(getattr(one, end).value) for one in found.parts]
        assert sum(values) == pytest.approx(1e3 * (sum(parts.values()) - 2e-6), rel=1e-3)
    assert "With the launch itself, 2.00 µs, they add up to 29.0 ms." in found.note
    assert found.limit == "most time: FP32 pipe"


def test_a_part_that_is_gone_is_shown_beside_that_of_the_rung_before(in_prediction):
    gone = {name: s for name, s in AFTER.items() if name != Effect.UNCOALESCED}
    made = spent(spent(in_prediction, "naive-coalesced", BEFORE), "tiled", gone)
    first, *_ = pane(rows(view(made)), rows(view(made)).row("tiled")).parts
    assert (first.name, first.before.value, first.after.value) == (
        "uncoalesced accesses",
        "30.0",
        "0",
    )


def test_bars_mark_the_largest_part_that_can_be_avoided(shown):
    bars = time_bars(shown.row("tiled").predicted)
    assert [(bar.name, bar.class_) for bar in bars[:3]] == [
        ("FP32 pipe", "s1"),
        ("waiting at barriers", "c0"),
        ("work that does not overlap", "s2"),
    ]


def test_the_answer_names_the_two_largest_parts(shown):
    predicted = shown.row("tiled").predicted
    assert (
        limited(predicted)
        == "Largest parts of the time: FP32 pipe, 51.7 %; waiting at barriers, 31.0 %."
    )


def test_advice_is_on_the_largest_part_with_a_remedy(in_prediction):
    found = advice(rows(view(spent(in_prediction, "vectorized", AFTER))))
    assert found.startswith("Try next: hide 9.00 ms of stalls on memory and barriers")
    alone = {Effect.FP32_PIPE: 20e-3, Effect.BARRIERS: 0.1e-3}
    assert "nothing" in advice(rows(view(spent(in_prediction, "vectorized", alone))))
