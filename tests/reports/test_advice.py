"""What to try next, from what a prediction and its counts show."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from analysis.result import Bound, Profile
from reports.advice import advice


def with_bounds(build: SimpleNamespace, made: Profile, **bounds_s: float) -> Profile:
    """The profile whose fastest rung has these bounds, in a time of 10 ms."""
    record = next(r for r in made.records if r.label == "vectorized")
    bounds = tuple(
        Bound(name=name.replace("_", " "), time_s=time_s, basis="")
        for name, time_s in bounds_s.items()
    )
    predicted = replace(record.predicted, time_s=5e-3, bounds=bounds)
    return build.change(made, "vectorized", predicted=predicted)


def test_conflicts_are_worth_what_the_next_bound_leaves(
    build: SimpleNamespace, in_prediction: Profile
) -> None:
    # a quarter of the wavefronts are conflicts: 5 ms become 3.75
    made = with_bounds(build, in_prediction, shared_memory=5e-3, issue=1e-3)
    said = advice(made, build.SHAPE)
    assert said.startswith("To try next on vectorized: a thread computes 8 × 8 elements")
    assert "25.0 % of its shared wavefronts are bank conflicts" in said
    assert "from 5.000 ms to 3.750 ms" in said
    assert said.index("8 × 8") < said.index("25.0 %")  # half of the time saves more


def test_a_change_below_another_bound_saves_nothing(
    build: SimpleNamespace, in_prediction: Profile
) -> None:
    made = with_bounds(build, in_prediction, shared_memory=4.99e-3, FP32=5e-3)
    assert advice(made, build.SHAPE) == (
        "To try next: nothing that these counts show would save more than 3.0 % of the time of "
        "vectorized."
    )


def test_time_above_every_bound_is_waiting(build: SimpleNamespace, in_prediction: Profile) -> None:
    made = with_bounds(build, in_prediction, FP32=2e-3)
    said = advice(made, build.SHAPE)
    assert "3.000 ms of its 5.000 ms are more than its longest bound: warps wait." in said
    assert "Fewer barriers" in said  # two thirds of the warps fit: others could run


def test_few_warps_and_idle_sms_have_their_own_remedy(
    build: SimpleNamespace, in_prediction: Profile
) -> None:
    made = with_bounds(build, in_prediction, FP32=2e-3)
    record = next(r for r in made.records if r.label == "vectorized")
    few = replace(record.occupancy, warps_per_sm=12)
    said = advice(build.change(made, "vectorized", occupancy=few), build.SHAPE)
    assert "The occupancy of 25.0 %, limited by registers and shared memory" in said
    idle = replace(record.theory, busy_sms=16)
    said = advice(build.change(made, "vectorized", theory=idle), build.SHAPE)
    assert "Only 16 of 82 SMs have a block" in said


def test_without_a_prediction_there_is_none(
    build: SimpleNamespace, in_simulation: Profile, on_gpu: Profile
) -> None:
    assert advice(in_simulation, build.SHAPE) == ""
    assert advice(on_gpu, build.SHAPE) == ""
