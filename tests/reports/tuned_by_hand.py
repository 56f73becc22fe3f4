"""A tuning run written by hand: four configurations, one of each outcome."""

from dataclasses import replace

from analysis.devices import find_device
from analysis.problem import parse_shape
from analysis.records.profile import Environment, Interval, Ratio
from analysis.records.tuning import (
    SCHEMA_VERSION,
    Candidate,
    Exclusion,
    Swept,
    TunedShape,
    Tuning,
)
from tests import records_by_hand

SQUARE = parse_shape("64")


def predicted(time_s):
    return records_by_hand.predicted(
        time_s,
        cycles=1e4,
        launch_s=1e-6,
        flop_per_s=SQUARE.flop / time_s,
        limiter="shared memory",
        limiter_share=0.7,
        next_limiter="issue",
        next_share=0.5,
        constants="by hand",
        basis="by hand",
    )


def measured(time_s, of_cublas):
    return records_by_hand.measured(
        time_s,
        samples_s=(time_s,) * 6,
        interval_s=Interval(low=time_s, high=time_s),
        flop_per_s=SQUARE.flop / time_s,
        relative_to_cublas=Ratio(
            peer="cublas",
            median=of_cublas,
            interval=Interval(low=of_cublas - 0.01, high=of_cublas + 0.01),
        ),
    )


def candidate(bk, tm, predicted_s, swept_s=None):
    swept = Swept(samples_s=(swept_s,), from_cache=tm == 8) if swept_s else None
    return Candidate(
        label=f"coarsened-1d:bk={bk},tm={tm}" if (bk, tm) != (4, 16) else "coarsened-1d",
        parameters={"bk": bk, "tm": tm},
        estimate_s=predicted_s / 2,
        predicted=predicted(predicted_s),
        swept=swept,
    )


WINNER = replace(candidate(8, 8, 2e-3, 1e-3), measured=measured(1e-3, 0.8), is_tied=True)
DEFAULT = replace(candidate(4, 16, 4e-3, 2e-3), measured=measured(2e-3, 0.4))
WRONG = replace(candidate(16, 8, 1e-3), status="failed", reason="wrong result: <b>C[0][0]</b>")
LEFT_OUT = replace(candidate(16, 16, 5e-3), status="left out", reason="not measured: enough")

SHAPE = TunedShape(
    shape=SQUARE,
    executed_shape=SQUARE,
    combinations=9,
    exclusions=(Exclusion(constraint="bk * tm >= 64", configurations=3),),
    candidates=(WRONG, WINNER, DEFAULT, LEFT_OUT),
    method="the best by prediction, 7 samples each",
    also_checked=(parse_shape("63"), parse_shape("65")),
    cublas=measured(0.8e-3, 1.0),
)
TUNING = Tuning(
    schema_version=SCHEMA_VERSION,
    created="2025-03-01T12:00:00+00:00",
    command="python -m toolkit tune coarsened-1d --shape 64 --seed 1",
    variant="coarsened-1d",
    seed=1,
    device=find_device("h200"),
    environment=Environment(toolkit_version="0.1.0", commit="abcdef0"),
    shapes=(SHAPE,),
)
UNMEASURED = replace(
    SHAPE,
    candidates=tuple(replace(candidate(bk, 16, bk * 1e-4)) for bk in (4, 8, 16)),
    method="prediction alone",
    also_checked=(),
    cublas=None,
)
