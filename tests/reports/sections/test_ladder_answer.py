"""The answer of a profile in words, for every kind of profile."""

from dataclasses import replace

from reports.sections.ladder_answer import answer, failures, left_out, on_host, standing
from reports.sections.ladder_rows import rows
from tests.reports.profiles_by_hand import (
    SHAPE,
    change,
    foreseen,
    measured,
    passed,
    theory_of,
    view,
)


def answered(made, recorded=None):
    return answer(rows(view(made, recorded)))


def only_of(made, *labels):
    return replace(made, records=tuple(r for r in made.records if r.label in labels))


def test_a_measured_profile_is_compared_with_cublas(on_gpu):
    said = answered(on_gpu)
    assert (said.value, said.unit) == ("18.3", "TFLOP/s")  # 137.4 GFLOP / 7.512 ms
    assert said.grade == "measured, vectorized"
    assert said.verdict == "Rung 7 reaches 69.0 % of cuBLAS,"
    assert said.rest == "51.4 % of the FP32 peak."
    assert said.lead == "18.3 TFLOP/s with vectorized: 69.0 % of cuBLAS, 51.4 % of the FP32 peak."


def test_who_reaches_cublas_first_is_named_beside_who_beats_it(on_gpu):
    made = on_gpu
    for label, times in (("coarsened-2d", 1.02), ("vectorized", 1.08)):
        faster = measured(0.00518697 / times, SHAPE, cublas_s=0.00518697)
        made = change(made, label, measured=faster)
    assert answered(made).verdict == "Rung 6 reaches cuBLAS; rung 7 beats it by 8.00 %,"
    alone = change(on_gpu, "vectorized", measured=faster)
    assert answered(alone).verdict == "Rung 7 beats cuBLAS by 8.00 %,"


def test_without_cublas_the_fastest_rung_is_named(on_gpu):
    kept = only_of(on_gpu, "tiled", "vectorized")
    timed = change(kept, "vectorized", measured=measured(7.5e-3, SHAPE))
    made = change(timed, "tiled", measured=measured(51e-3, SHAPE))
    assert answered(made).verdict == "vectorized is fastest,"


def test_a_rung_alone_is_not_called_the_fastest(in_prediction):
    said = answered(only_of(in_prediction, "vectorized"))
    assert (said.verdict, said.rest) == ("vectorized would reach", "46.7 % of the FP32 peak.")


def test_a_predicted_profile_says_so_with_what_limits_it(in_prediction):
    said = answered(in_prediction)
    assert said.grade == "predicted, vectorized"
    assert said.verdict == "vectorized is predicted to be fastest,"
    assert said.lead == "16.6 TFLOP/s predicted with vectorized: 46.7 % of the FP32 peak."
    assert said.limit == (
        "Limited by shared memory, busy 60.0 % of the time; next instruction issue, 50.0 %."
    )


def test_a_recorded_run_leads_and_predictions_say_what_limits(in_prediction, on_gpu):
    said = answered(in_prediction, on_gpu)
    assert said.grade == "recorded 2026-02-03, vectorized"
    assert said.lead.startswith("18.3 TFLOP/s recorded 2026-02-03 with vectorized: 69.0 % of")
    assert said.limit.startswith("Limited by shared memory")


def test_only_rungs_that_were_asked_for_are_praised(in_theory, on_gpu):
    said = answered(only_of(in_theory, "tiled", "naive-coalesced"), on_gpu)
    assert said.grade == "recorded 2026-02-03, tiled"


def test_theory_names_the_highest_ceilings_and_every_limiter(in_theory):
    roofs = {"coarsened-1d": 42.5e12, "coarsened-2d": 45.3e12, "vectorized": 44.5e12}
    made = in_theory
    for record in in_theory.records:
        if record.theory:
            roof = roofs.get(record.label, 1e12)
            limited = replace(record.theory, attainable_flop_per_s=roof, limiter="FP32")
            made = change(made, record.label, theory=limited)
    limited = replace(theory_of(3, SHAPE, in_theory.device), limiter="DRAM")
    limited = replace(limited, attainable_flop_per_s=1e12)
    made = change(made, "naive-coalesced", theory=limited)
    said = answered(made)
    assert said.verdict == "coarsened-2d and vectorized have the highest ceilings."
    assert said.rest == "Nothing was launched: these are ceilings."
    assert "Limited by DRAM: naive-coalesced." in said.limit


def test_the_cpu_has_no_row_but_a_sentence(on_gpu, in_theory):
    (told,) = on_host(rows(view(on_gpu)))
    assert told == "The host's cpu reaches 393 GFLOP/s."  # 137.4 GFLOP / 0.35 s
    assert list(on_host(rows(view(in_theory)))) == []


def test_failures_are_told_with_their_place(on_gpu):
    wrong = replace(passed(), passed=False, worst_ratio=312.4)
    made = change(on_gpu, "tiled", check=wrong)
    made = change(made, "coarsened-1d", status="failed", reason="no resources")
    told = list(failures(rows(view(made))))
    assert told == [
        "tiled failed the check: an error of 312× the bound at row 17, column 4. No time is shown.",
        "coarsened-1d failed: no resources.",
    ]


def test_a_result_with_nan_is_told_without_a_ratio(on_gpu):
    wrong = replace(passed(), passed=False, worst_ratio=None)
    (told,) = failures(rows(view(change(on_gpu, "tiled", check=wrong))))
    assert "no finite ratio of error to bound at row 17" in told


def test_rungs_that_did_not_run_share_a_sentence_by_reason(on_gpu):
    made = on_gpu
    for label in ("naive-coalesced", "tiled"):
        why = f"{label} cannot run: sm_90 is needed: choose another device"
        made = change(made, label, status="skipped", reason=why, measured=None)
    told = list(left_out(rows(view(made))))
    assert told == [
        "Not run: one-block (a single block computes at most 32 × 32).",
        "Not run: naive-coalesced and tiled (sm_90 is needed).",
    ]


def test_a_reason_is_told_once_without_its_rung(on_gpu):
    made = on_gpu
    for label in ("naive-coalesced", "tiled"):
        why = f"{label} needs sm_90 or later, and NVIDIA T4 is sm_75: choose another device"
        made = change(made, label, status="skipped", reason=why, measured=None)
    assert list(left_out(rows(view(made))))[-1] == (
        "Not run: naive-coalesced and tiled (need sm_90 or later, and NVIDIA T4 is sm_75)."
    )


def test_a_rung_that_selects_another_has_no_row_of_its_own(on_gpu):
    record = next(r for r in on_gpu.records if r.label == "vectorized")
    best = replace(record, label="best", rung=20)
    found = rows(view(replace(on_gpu, records=(*on_gpu.records, best))))
    assert "best" not in [row.label for row in found.rungs]
    assert next(left_out(found)) == "best chooses rung 7 at this size."
    other = replace(best, parameters={"bm": 64})  # with parameters that no other row has
    found = rows(view(replace(on_gpu, records=(*on_gpu.records, other))))
    assert found.rungs[-1].label == "best"


def test_a_profile_where_nothing_ran_says_so(in_theory):
    skipped = tuple(
        replace(r, status="skipped", reason="too small", theory=None) for r in in_theory.records
    )
    said = answered(replace(in_theory, records=skipped))
    assert said.value == ""
    assert said.lead == "Nothing was launched. No rung ran."
    failed = replace(in_theory, records=skipped, executor="simulate")
    assert answered(failed).lead == "Nothing was timed. No rung ran."


def test_references_alone_are_no_ladder(on_gpu):
    references = tuple(record for record in on_gpu.records if record.rung is None)
    said = answered(replace(on_gpu, records=references))
    assert said.lead == "No rung of the ladder was profiled."


def test_warnings_are_about_the_whole_run(in_theory, on_gpu):
    assert standing(replace(in_theory, records=())) == (
        "This profile holds no record: no rung was profiled.",
    )
    assert standing(replace(on_gpu, status="interrupted"))[0].startswith("The run was interrupted")
    assert standing(foreseen(on_gpu)) == ()
