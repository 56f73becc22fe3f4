"""The chapter on predicted times: words and tables."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.devices import find_device
from analysis.l2_state import L2State
from analysis.timing.predicted import Cost, Effect, Predicted, TimeBound
from reports.figures import hierarchy, ladder
from reports.pages.drawing import Drawing
from reports.sections.ladder_answer import answer
from reports.sections.ladder_rows import rows
from reports.sections.ladder_summary import summary
from reports.sections.prediction import (
    limits,
    signed_seconds,
    told_steps,
    trust,
    verdict,
)
from reports.sections.rungs import table, why
from tests.reports.profiles_by_hand import change, foreseen, passed, predicted, record_of, view


def test_without_predictions_no_step_has_counts(in_simulation):
    assert told_steps(view(in_simulation)) == ()


def test_unmeasured_predictions_are_said_to_be_unchecked(in_prediction):
    assert verdict(view(in_prediction).timings) == "No rung was timed here."


@pytest.mark.parametrize(
    ("device", "said"),
    [
        (
            "h200",
            "this GPU: mean error 5.1 % on 26 held-out launches, 4.0 % on 120 fitted launches.",
        ),
        (
            "rtx-3090",
            "this GPU: mean error 9.7 % on 18 held-out launches; most constants are those of "
            "sm_90.",
        ),
        (
            "rtx-a6000",
            "NVIDIA GeForce RTX 3090 (also sm_86): mean error 9.7 % on 18 held-out launches; most "
            "constants are those of sm_90.",
        ),
        (
            "l40s",
            "this GPU were never compared with measured times; most constants are those of sm_90.",
        ),
    ],
)
def test_predictions_say_how_well_they_were_checked(device, said):
    assert trust(find_device(device)) == f"Predictions for {said}"


def test_the_verdict_says_how_far_off_they_are(on_gpu):
    made = foreseen(on_gpu)
    tiled = record_of(made, "tiled")
    off = predicted(tiled, 0.0516459 * 0.8)
    made = change(made, "tiled", predicted=off.predicted)
    # five are 10% above, one 1.25× below: (1.1⁵ · 1.25)^(1/6) - 1 = 12.4%
    assert verdict(view(made).timings) == (
        "6 rungs were timed: predictions are 12.4 % off on average, −20.0 % at worst (tiled)."
    )


def test_one_comparable_time_is_told_alone(on_gpu):
    made = foreseen(on_gpu)
    (tiled,) = (o for o in view(made).timings if o.record.label == "tiled")
    assert verdict([tiled]) == "The prediction of tiled is +10.0 % off."


def test_a_recorded_time_stands_in_and_another_state_of_l2_does_not(in_prediction, on_gpu):
    found = view(in_prediction, on_gpu).timings
    assert {one.grade for one in found} == {"recorded 2026-02-03 on NVIDIA GeForce RTX 3090"}
    assert [one.ratio for one in found] == pytest.approx([1.1] * 6)
    warm = tuple(
        replace(r, measured=replace(r.measured, l2="warm")) if r.measured else r
        for r in on_gpu.records
    )
    found = view(in_prediction, replace(on_gpu, records=warm)).timings
    assert {(one.measured, one.ratio) for one in found} == {(None, None)}


def test_a_wrong_result_has_no_predicted_time(in_prediction):
    wrong = replace(passed(), passed=False)
    made = change(in_prediction, "tiled", check=wrong)
    assert "tiled" not in [o.record.label for o in view(made).timings]


TIMES = st.floats(0.0, 1e4)
NAMES = st.sampled_from(["issue", "shared memory", "latency", "half precision", "<b>", ""])
PREDICTIONS = st.builds(
    Predicted,
    time_s=st.floats(1e-9, 1e4),
    cycles=TIMES,
    clock_hz=st.floats(1e6, 1e10),
    launch_s=TIMES,
    flop_per_s=st.floats(1.0, 1e18),
    l2=st.sampled_from(list(L2State)),
    limiter=NAMES,
    limiter_share=st.floats(0.0, 1.0),
    next_limiter=NAMES,
    next_share=st.floats(0.0, 1.0),
    bounds=st.lists(st.builds(TimeBound, name=NAMES, time_s=TIMES, basis=NAMES), max_size=5).map(
        tuple
    ),
    costs=st.lists(
        st.builds(Cost, effect=st.sampled_from(list(Effect)), time_s=TIMES, alone_s=TIMES),
        max_size=5,
        unique_by=lambda cost: cost.effect,
    ).map(tuple),
    constants=NAMES,
    basis=NAMES,
    is_fitted=st.booleans(),
)


@given(predictions=st.lists(st.none() | PREDICTIONS, min_size=7, max_size=7), data=st.data())
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20
)
def test_any_prediction_can_be_told_and_drawn(
    in_simulation,
    on_gpu,
    predictions,
    data,
):
    of_rungs = dict(zip([record.label for record in on_gpu.records], predictions, strict=False))
    base = data.draw(st.sampled_from([in_simulation, on_gpu]))
    recorded = data.draw(st.sampled_from([None, on_gpu]))
    records = tuple(replace(r, predicted=of_rungs.get(r.label)) for r in base.records)
    made = replace(base, records=records)
    shown = rows(view(made, recorded))
    answer(shown)
    summary(shown)
    for draw in (ladder, hierarchy):
        drawn = draw.figure(view(made, recorded))
        drawn.plotly()  # raises ValueError for a name or a value that Plotly does not know
        assert Drawing(title="", reading="", figure=drawn).packed  # so does JSON for NaN
    table(view(made, recorded).steps)
    assert all(map(why, told_steps(view(made, recorded))))


def test_limits_are_words(in_prediction):
    assert limits(in_prediction.records[1].predicted) == (
        "limited by shared memory (busy 60.0 % of the time), then issue (50.0 %)"
    )
    assert signed_seconds(-1.2e-6) == "−1.20 µs"
    assert signed_seconds(0.0) == "+0 s"


def test_a_measured_run_without_predictions_has_no_steps(in_counters):
    assert told_steps(view(in_counters)) == ()
