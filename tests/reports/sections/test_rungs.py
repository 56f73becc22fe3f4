"""Reasons why each rung beats the one before, in words and as tables."""

from dataclasses import replace

from analysis.comparison.steps import Change, Ends, Step, Weight
from reports.sections.rungs import reason, sentence, table
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


def test_a_sentence_names_the_gain_the_reason_and_the_price():
    price = weight("shared memory", "shared wavefronts", 0.0, 12e-6)
    assert sentence(step(FASTER, SECTORS, reason=L1, price=price), grade="recorded") == (
        "new is 1.50× (predicted) and 2.00× (recorded) as fast as old. The largest reason is L1: "
        "L1 sectors fall from 80,000 to 20,000, 4.00× fewer, and the time that L1 alone needs "
        "falls from 40.0 µs to 10.0 µs (by predicted bounds). Against it, the time that shared "
        "memory alone needs rises from 0 s to 12.0 µs."
    )


def test_a_step_of_the_gap_is_named_as_one():
    ports = replace(weight("register ports", None, 619e-6, 222e-6), is_step=True)
    hidden = replace(weight("exposed latency", None, -86e-6, 21e-6), is_step=True)
    made = step(FASTER, reason=ports, price=hidden, basis="predicted steps")
    assert sentence(made).endswith(
        "The largest reason is register ports: the part of register ports in the gap from nominal "
        "peak falls from 619 µs to 222 µs (by predicted steps). Against it, the part of "
        "exposed latency in the gap from nominal peak rises from −86.0 µs to 21.0 µs."
    )
    assert reason(made) == "register ports: 619 µs → 222 µs"


def test_more_busy_sms_are_fewer_idle_ones():
    idle = replace(weight("idle SMs and partial wave", "busy SMs", 29e-6, 12e-6), is_step=True)
    said = sentence(step(FASTER, change("busy SMs", 16, 32), reason=idle))
    assert "busy SMs rise from 16 to 32, and the part of idle SMs and partial wave in" in said
    assert "on 32 SMs" not in said


def test_equal_times_are_said_to_need_no_reason():
    equal = change("time", 2.00e-3, 1.96e-3)
    assert sentence(step(equal)).endswith("Below 3.0 % there is nothing to explain.")


def test_fewer_busy_sms_are_named_where_less_work_takes_longer():
    slower = change("time", 1e-3, 1.25e-3)
    busy = change("busy SMs", 132, 64)
    of_shared = weight("shared memory", "shared wavefronts", 76e-6, 87e-6)
    wavefronts = change("shared wavefronts", 20_000, 11_000)
    said = sentence(step(slower, wavefronts, busy, reason=of_shared))
    assert "new is 0.800× (predicted) as fast as old." in said
    assert (
        "shared wavefronts fall from 20,000 to 11,000, 1.82× fewer, but the time that shared "
        "memory alone needs rises from 76.0 µs to 87.0 µs on 64 SMs instead of 132"
    ) in said
    # DRAM is there for all SMs
    of_dram = weight("DRAM", "DRAM bytes", 1e-6, 2e-6)
    assert "SMs" not in sentence(step(slower, busy, reason=of_dram))


def test_higher_occupancy_and_a_shorter_wait_agree():
    latency = weight("latency", "occupancy", 4e-6, 2e-6)
    said = sentence(step(FASTER, change("occupancy", 0.25, 0.5), reason=latency))
    assert "occupancy rises from 25.0 % to 50.0 %, and the time that latency alone" in said


def test_grades_that_disagree_are_said_to():
    at_odds = Change(
        quantity="time", predicted=Ends(before=2, after=1), measured=Ends(before=1, after=2)
    )
    assert "as fast as old: the two do not agree on which is faster." in sentence(step(at_odds))


def test_no_reason_is_said_to_be_none():
    assert sentence(step(FASTER)).endswith("No resource explains it, by predicted bounds.")
    assert reason(step(FASTER)) == "–"


def test_a_reason_is_short_on_a_terminal():
    assert reason(step(SECTORS, reason=L1)) == "L1 sectors 4.00× fewer: 40.0 µs → 10.0 µs"
    assert reason(step(change("L1 sectors", 0, 7), reason=L1)) == "L1: 40.0 µs → 10.0 µs"
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
