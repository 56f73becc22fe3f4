"""Steps from the predicted to the measured time of a launch.

The difference has two parts: the clock that the GPU held, and an unexplained remainder.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

from analysis.records.profile import GpuState, Measured
from analysis.timing.predicted import GapCause, Predicted


@dataclass(frozen=True, kw_only=True)
class GapStep:
    """A step from the predicted to the measured time; below 0 if it makes the time shorter."""

    name: GapCause
    time_s: float
    detail: str


def are_comparable(predicted: Predicted, measured: Measured) -> bool:
    """True if both times are between CUDA events, from the same state of L2."""
    return measured.clock == "CUDA events" and measured.l2 == predicted.l2


def over_measured(predicted: Predicted | None, measured: Measured | None) -> float | None:
    """Predicted time over measured time, None if they are not comparable."""
    if predicted is None or measured is None or not measured.median_s:
        return None
    comparable = are_comparable(predicted, measured)
    return predicted.time_s / measured.median_s if comparable else None


def held_clock_hz(measured: Measured) -> float | None:
    """The SM clock during a measurement: the mean of those before and after, as far as known."""
    states: tuple[GpuState | None, ...] = (measured.before, measured.after)
    clocks = [state.sm_clock_hz for state in states if state and state.sm_clock_hz]
    return sum(clocks) / len(clocks) if clocks else None


def steps_to_measured(predicted: Predicted, measured: Measured) -> tuple[GapStep, ...]:
    """The steps from the predicted time to the measured median: they sum to the difference.

    The step of the clock assumes that all of a launch except its constant cost are cycles of the
    SM. A launch limited by DRAM does not slow down with the clock, and the remainder then has the
    opposite sign. There is no such step if the clock is not known.
    """
    steps = tuple(_clock_step(predicted, measured))
    rest = fsum([measured.median_s, -predicted.time_s, *(-step.time_s for step in steps)])
    return (
        *steps,
        GapStep(
            name=GapCause.REMAINDER,
            time_s=rest,
            detail="not explained by the model: the measured median minus all steps above",
        ),
    )


def _clock_step(predicted: Predicted, measured: Measured) -> list[GapStep]:
    held_hz = held_clock_hz(measured)
    if held_hz is None or not predicted.clock_hz:
        return []
    share = predicted.clock_hz / held_hz - 1
    return [
        GapStep(
            name=GapCause.HELD_CLOCK,
            time_s=(predicted.time_s - predicted.launch_s) * share,
            detail=(
                f"{held_hz / 1e6:.0f} MHz before and after the samples, on average; the "
                f"prediction is for {predicted.clock_hz / 1e6:.0f} MHz"
            ),
        )
    ]
