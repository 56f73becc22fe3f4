"""Reasons why each rung beats the one before, in words and as tables."""

from dataclasses import replace

from analysis.comparison.steps import Change, Ends, Step, Weight
from analysis.timing.predicted import Effect
from reports.sections.rungs import brief, reason, table, why
from tests.reports.profiles_by_hand import view


def weight(resource, quantity, before_s, after_s):
    return Weight(resource=resource, quantity=quantity, time_s=Ends(before=before_s, after=after_s))


def change(quantity, before, after):
    return Change(quantity=quantity, predicted=Ends(before=before, after=after), measured=None)


def step(*changes, **more):
    values = {
        "before": "old", "after": "new", "changes": changes, "weights": (), "reason": None,
        "price": None, "basis": "predicted bounds",
    }  # fmt: skip
    return Step(**(values | more))  # type: ignore[arg-type]


FASTER = Change(
    quantity="time", predicted=Ends(before=3e-3, after=2e-3), measured=Ends(before=4e-3, after=2e-3)
)
L1 = weight("L1", "L1 sectors", 40e-6, 10e-6)
SECTORS = change("L1 sectors", 80_000, 20_000)


def test_a_count_is_told_by_what_serves_it():
    assert why(step(FASTER, SECTORS, reason=L1)) == "L1 serves 4.00× fewer sectors."
    assert brief(step(FASTER, SECTORS, reason=L1)) == "L1 sectors 4.00× fewer"
    more = change("shared wavefronts", 10_000, 15_000)
    of_shared = weight("shared memory", "shared wavefronts", 10e-6, 15e-6)
    assert why(step(FASTER, more, reason=of_shared)) == (
        "Shared memory serves 1.50× more wavefronts."
    )
    assert brief(step(FASTER, more, reason=of_shared)) == "wavefronts 1.50× more"


def test_a_part_of_the_time_is_told_by_its_change():
    banks = replace(weight(Effect.REGISTER_BANKS, None, 532e-6, 211e-6), is_part=True)
    made = step(FASTER, reason=banks, basis="predicted parts")
    assert why(made) == "Register-bank conflicts cost 321 µs less."
    assert brief(made) == "register banks 532 → 211 µs"
    assert reason(made) == "register-bank conflicts: 532 µs → 211 µs"


def test_equal_times_need_no_reason():
    equal = change("time", 2.00e-3, 1.96e-3)
    assert why(step(equal, SECTORS, reason=L1)) == "Within 3 % of old: no single cause stands out."
    assert brief(step(equal, SECTORS, reason=L1)) == ""


def test_a_measured_time_decides_whether_a_reason_is_told():
    same = Change(
        quantity="time", predicted=Ends(before=3, after=2), measured=Ends(before=3, after=2.99)
    )
    assert brief(step(same, SECTORS, reason=L1)) == ""


def test_no_reason_is_said_to_be_none():
    assert reason(step(FASTER)) == "–"
    assert brief(step(FASTER)) == ""


def test_a_reason_is_short_on_a_terminal():
    assert reason(step(SECTORS, reason=L1)) == "L1 sectors 4.00× fewer: 40.0 µs → 10.0 µs"
    assert reason(step(change("L1 sectors", 0, 7), reason=L1)) == "L1: 40.0 µs → 10.0 µs"
    latency = weight("latency", "occupancy", 40e-6, 10e-6)
    assert reason(step(change("occupancy", 0.5, 1.0), reason=latency)).startswith(
        "occupancy 2.00× higher: "
    )
    fp32 = weight("FP32", None, 4e-6, 8e-6)
    assert reason(step(change("busy SMs", 132, 64), reason=fp32)) == (
        "FP32 on 64 SMs instead of 132: 4.00 µs → 8.00 µs"
    )


def test_the_table_has_the_gain_by_each_grade(in_prediction, on_gpu):
    alone = table(view(in_prediction).steps)
    assert [column.grade for column in alone.columns] == ["", "predicted", ""]
    both = table(view(in_prediction, on_gpu).steps, grade="recorded")
    assert [column.grade for column in both.columns] == ["", "predicted", "recorded", ""]
    assert [row[0].text for row in both.rows] == [
        "naive-coalesced", "tiled", "coarsened-1d", "coarsened-2d", "vectorized",
    ]  # fmt: skip
    assert both.rows[0][2].text == "6.70×"  # 459.418 ms / 68.5564 ms


def test_a_roof_without_a_time_is_not_the_limit():
    """Its unit may still be busy, but another one limits the kernel."""
    pipe = replace(weight(Effect.FP32_PIPE, None, 2.09e-3, 0.0), is_part=True)
    made = step(FASTER, reason=pipe, basis="predicted parts")
    assert brief(made) == "FP32 pipe: not the limit"
    assert brief(replace(made, reason=weight(Effect.FP32_PIPE, None, 0.0, 2.09e-3))) == (
        "FP32 pipe: now the limit"
    )
    assert reason(made) == "FP32 pipe: 2.09 ms → not the limit"
    barriers = replace(pipe, resource=Effect.BARRIERS)
    assert brief(replace(made, reason=barriers)) == "barriers 2.09 → 0 ms"
