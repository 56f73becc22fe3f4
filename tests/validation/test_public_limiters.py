"""Limiters and causes of predictions, compared with units and waits that Nsight Compute counted."""

import pytest

from analysis.timing.predicted import Effect, Resource
from validation.public_launches import predict

WAITS = {"stall long_scoreboard": 9.0, "stall wait": 2.0, "stall barrier": 1.0}


def judged(monkeypatch, counters, **cell):
    """The lines on one launch with these counters, predicted at 10 us."""
    monkeypatch.setattr(
        predict, "measurements", lambda half: {"counters": [{"name": "k"} | counters]}
    )
    bounds = {Resource.DRAM: 7e-6, Resource.L2: 5e-6, Resource.LATENCY: 9e-6}
    cell = {"label": "k", "predicted_s": 1e-5, "bounds_s": bounds} | cell
    return list(predict.limiters("first", [cell]))


@pytest.mark.parametrize(
    ("counters", "is_right"),
    [
        ({"DRAM": 70.0, "L2": 50.0}, True),
        ({"DRAM": 66.0, "L2": 70.0}, True),  # as busy, within 5 points
        ({"DRAM": 64.0, "L2": 70.0}, False),
        ({"FP32": 61.0}, False),
    ],
)
def test_a_busy_unit_is_the_busiest_of_the_prediction(monkeypatch, counters, is_right):
    line, *wrong = judged(monkeypatch, counters)
    assert line.startswith("where a unit is busy")
    assert line.endswith(f"{int(is_right)} of 1")
    assert len(wrong) == (not is_right)


@pytest.mark.parametrize(
    ("of_shared", "said", "is_right"),
    [
        (45.0, Resource.SHARED_MEMORY, True),  # most wavefronts of the data path
        (39.0, Resource.SHARED_MEMORY, False),
        (45.0, Resource.L1, True),
    ],
)
def test_the_data_path_is_shared_memory_where_most_wavefronts_are(
    monkeypatch, of_shared, said, is_right
):
    counters = {"L1": 80.0, "shared memory": of_shared, "issue": 60.0}
    line, *_ = judged(monkeypatch, counters, bounds_s={said: 7e-6, Resource.ISSUE: 6e-6})
    assert line.endswith(f"{int(is_right)} of 1")


@pytest.mark.parametrize(
    ("cause", "at_roof", "counters", "is_right"),
    [
        (Effect.DRAM_LATENCY, False, {}, True),
        (Effect.DRAM_LATENCY, True, {}, False),
        (Effect.DEPENDENCES, False, {}, True),
        (Effect.BARRIERS, False, {}, False),  # only the third reason
        (Effect.IDLE_SMS, False, {"active SMs": 40.0}, True),
        (Effect.IDLE_SMS, False, {"active SMs": 95.0}, False),
        (None, False, {}, False),
    ],
)
def test_where_no_unit_is_busy_the_cause_is_what_warps_wait_for(
    monkeypatch, cause, at_roof, counters, is_right
):
    line, *wrong = judged(monkeypatch, WAITS | counters, cause=cause, is_at_roof=at_roof)
    assert line.startswith("where no unit is busy")
    assert line.endswith(f"{int(is_right)} of 1")
    assert len(wrong) == (not is_right)
