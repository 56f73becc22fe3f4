"""The answer in words, for every kind of profile."""

from dataclasses import replace

from analysis.records.profile import Interval, Ratio
from reports.sections.headline import answer, standing
from tests.reports.profiles_by_hand import (
    SHAPE,
    SMALL,
    change,
    measured,
    passed,
    profile,
    theory_of,
    view,
)


def all_of(view):
    found = answer(view)
    return "\n".join((found.lead, *found.points))


def test_a_measured_profile_names_the_fastest_rung(on_gpu):
    lead = answer(view(on_gpu)).lead
    assert lead == (
        "vectorized is the fastest rung measured: "
        "18.3 TFLOP/s (median 7.512 ms), "  # 137.4 GFLOP / 7.512 ms
        "51.4 % of the FP32 peak and 69.0 % of cuBLAS."
    )


def test_it_says_what_limits_and_how_far_below_that_it_runs(on_gpu):
    points = answer(view(on_gpu)).points
    assert points[0] == (
        "In theory vectorized is limited by FP32 at 35.6 TFLOP/s; "
        "it reaches 51.4 % of that ceiling."
    )
    assert "vectorized is 61.2× as fast as naive-uncoalesced, the first rung measured." in points


def test_an_interval_around_one_is_not_told_apart_from_cublas(on_gpu):
    ratio = Ratio(peer="cublas", median=0.997, interval=Interval(low=0.99, high=1.004))
    close = measured(5.2e-3, SHAPE, relative_to_cublas=ratio)
    lead = answer(view(change(on_gpu, "vectorized", measured=close))).lead
    assert lead.endswith("99.7 % of cuBLAS, not told apart by these samples.")


def test_without_cublas_no_share_of_it_is_named(on_gpu):
    alone = measured(7.5e-3, SHAPE)
    records = tuple(r for r in on_gpu.records if r.label == "vectorized")
    changed = change(replace(on_gpu, records=records), "vectorized", measured=alone)
    assert "cuBLAS" not in answer(view(changed)).lead


def test_theory_names_the_highest_roof_and_every_limiter(in_theory):
    said = all_of(view(in_theory))
    assert "have the highest roofs" in said
    assert "Nothing was launched: these are ceilings, not times." in said
    assert "Limited by " in said


def test_roofs_within_five_percent_of_the_highest_are_equals(in_theory):
    roofs = {"coarsened-1d": 42.5e12, "coarsened-2d": 45.3e12, "vectorized": 44.5e12}
    changed = in_theory
    for record in in_theory.records:
        if record.theory:
            limited = replace(record.theory, attainable_flop_per_s=roofs.get(record.label, 1e12))
            changed = change(changed, record.label, theory=limited)
    lead = answer(view(changed)).lead
    assert lead.startswith(
        "In theory coarsened-2d and vectorized have the highest roofs: "
        "45.3 and 44.5 TFLOP/s; the highest is "
    )


def test_a_single_limiter_at_one_roof_is_said_once(in_theory):
    theory = theory_of(3, SHAPE, in_theory.device)
    limited = replace(theory, limiter="load/store unit", attainable_flop_per_s=8.36e12)
    said = all_of(view(change(in_theory, "naive-coalesced", theory=limited)))
    assert "Limited by the load/store unit: naive-coalesced at 8.36 TFLOP/s." in said


def test_failures_and_skips_are_told(on_gpu):
    wrong = replace(passed(), passed=False, worst_ratio=312.4)
    changed = change(on_gpu, "tiled", check=wrong)
    changed = change(changed, "coarsened-1d", status="failed", reason="no resources")
    said = all_of(view(changed))
    assert "tiled failed the check: an error of 312× the bound at row 17, column 4." in said
    assert "coarsened-1d failed: no resources." in said
    assert "one-block was skipped: a single block computes at most 32 × 32." in said


def test_records_of_one_reason_share_a_sentence(on_gpu):
    changed = on_gpu
    for label in ("naive-coalesced", "tiled", "cublas"):
        changed = change(changed, label, status="skipped", reason="interrupted")
    points = answer(view(changed)).points
    assert "naive-coalesced, tiled and cublas were skipped: interrupted." in points
    assert sum("skipped" in point for point in points) == 2  # one-block has its own reason


def test_rungs_that_a_device_is_too_old_for_share_a_sentence(on_gpu):
    changed = on_gpu
    for label in ("tiled", "vectorized"):
        reason = f"{label} needs sm_90 or later, and this is sm_86: choose another device"
        changed = change(changed, label, status="skipped", reason=reason)
    points = answer(view(changed)).points
    assert (
        "tiled and vectorized were skipped: each needs sm_90 or later, and this is sm_86: choose "
        "another device."
    ) in points
    alone = change(on_gpu, "tiled", status="skipped", reason="tiled needs sm_90")
    assert "tiled was skipped: it needs sm_90." in answer(view(alone)).points


def test_a_variant_alone_is_not_called_the_fastest(in_prediction, in_theory, on_gpu):
    def alone(made):
        records = tuple(r for r in made.records if r.label == "vectorized")
        return answer(view(replace(made, records=records))).lead

    assert alone(on_gpu).startswith("vectorized was measured: 18.3 TFLOP/s")
    assert alone(in_prediction).startswith("vectorized is predicted: 16.6 TFLOP/s")
    assert alone(in_theory) == (
        "In theory vectorized reaches 35.6 TFLOP/s at most, 100.0 % of the FP32 peak. Nothing was "
        "launched: this is a ceiling, not a time."
    )


def test_a_result_with_nan_is_told_without_a_ratio(on_gpu):
    wrong = replace(passed(), passed=False, worst_ratio=None)
    said = all_of(view(change(on_gpu, "tiled", check=wrong)))
    assert "tiled failed the check: no finite ratio of error to bound at row 17" in said


def test_an_unchecked_result_is_said_to_be_one(on_gpu):
    changed = change(on_gpu, "vectorized", check=None)
    assert answer(view(changed)).lead.endswith("Its result was not checked.")


def test_all_skipped(in_theory):
    skipped = tuple(
        replace(r, status="skipped", reason="too small", theory=None) for r in in_theory.records
    )
    lead = answer(view(replace(in_theory, records=skipped))).lead
    assert "no rung ran, for the reasons below" in lead


def test_references_alone(on_gpu):
    references = tuple(record for record in on_gpu.records if record.rung is None)
    lead = answer(view(replace(on_gpu, records=references))).lead
    assert lead == "No rung of the ladder was profiled."


def test_no_record_at_all(in_theory):
    assert standing(replace(in_theory, records=())) == (
        "This profile holds no record: no rung was profiled.",
    )


def test_an_interrupted_run_is_said_to_be_one(on_gpu):
    assert standing(replace(on_gpu, status="interrupted"))[0].startswith("The run was interrupted")


def test_a_recorded_answer_leads_and_its_ceiling_follows(in_theory, on_gpu):
    found = answer(view(in_theory, on_gpu))
    assert found.lead.startswith(
        "vectorized is the fastest rung recorded 2026-02-03: 18.3 TFLOP/s (median 7.512 ms), "
        "51.4 % of"
    )
    assert found.points[0] == (
        "In theory vectorized is limited by FP32 at 35.6 TFLOP/s; it reaches 51.4 % of that "
        "ceiling."
    )


def test_a_recorded_rung_that_was_not_asked_for_is_not_praised(in_theory, on_gpu):
    some = tuple(r for r in in_theory.records if r.label in ("tiled", "naive-coalesced"))
    found = answer(view(replace(in_theory, records=some), on_gpu))
    assert found.lead.startswith("tiled is the fastest rung recorded 2026-02-03: ")
    assert "vectorized" not in "\n".join((found.lead, *found.points))


def test_an_own_measurement_leads_before_a_recorded_one(on_gpu):
    found = answer(view(on_gpu, on_gpu))
    assert "fastest rung measured" in found.lead
    assert "fastest rung recorded 2026-02-03" in found.points[0]


def test_a_recorded_run_of_other_shapes_says_which(in_theory):
    other = profile(SMALL, is_measured=True)
    said = all_of(view(in_theory, other))
    assert "has no measurement at this shape (it covers 2048 × 2048 × 2048)" in said


def test_a_predicted_answer_leads_where_nothing_was_measured(in_prediction):
    found = answer(view(in_prediction))
    assert found.lead == (
        "vectorized is predicted to be the fastest rung: 16.6 TFLOP/s (8.26 ms), 46.7 % of the "
        "FP32 peak, limited by shared memory (busy 60.0 % of the time)."
    )
    assert found.trust.startswith("Predictions for this GPU: mean error 11.3 % on 18 held-out ")
    assert found.points[0].startswith("To try next")
    assert "Limited by" not in all_of(view(in_prediction))  # the model says it


def test_a_recorded_answer_leads_before_a_predicted_one(in_prediction, on_gpu):
    found = answer(view(in_prediction, on_gpu))
    assert "recorded 2026-02-03" in found.lead
    # what limits the recorded one, and how far the ladder led, come first
    assert found.points[0].startswith("In theory vectorized is limited by")
    assert found.points[2].startswith("vectorized is predicted to be the fastest rung")
    assert "they are 10.0 % off on average, and +10.0 % at worst" in found.points[2]


def test_the_largest_step_is_explained(in_prediction):
    points = answer(view(in_prediction)).points
    (step,) = [point for point in points if point.startswith("The largest step of the ladder: ")]
    # 459.418 ms / 68.5564 ms, and of both the longest bound by far is 3/5 of it
    assert "naive-coalesced is 6.70× (predicted) as fast as naive-uncoalesced. " in step
    assert "The largest reason is shared memory: " in step
    assert "falls from 303 ms to 45.2 ms (by predicted bounds)." in step


def test_without_predictions_nothing_of_them_is_said(in_simulation):
    said = all_of(view(in_simulation))
    assert "predicted" not in said
    assert "largest step" not in said
