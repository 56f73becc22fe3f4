"""Records of which a test says what it asks for; all else is something possible."""

from analysis.records.profile import Measured, Record
from analysis.timing.predicted import Predicted


def record(shape, label="v", **more):
    values = {
        "variant": label, "label": label, "title": label, "idea": "", "rung": 1, "parameters": {},
        "shape": shape, "executed_shape": shape,
    }  # fmt: skip
    return Record(**(values | more))


def measured(median_s, **more):
    """One sample, of the median, unless others are given."""
    values = {
        "clock": "CUDA events", "l2": "flushed", "samples_s": (median_s,), "median_s": median_s,
        "interval_s": None, "flop_per_s": 1 / median_s, "stopped_by": "precision",
    }  # fmt: skip
    return Measured(**(values | more))


def predicted(time_s, **more):
    values = {
        "time_s": time_s, "cycles": 1.0, "clock_hz": 1e9, "launch_s": 0.0,
        "flop_per_s": 1 / time_s, "l2": "flushed", "limiter": "issue", "limiter_share": 0.5,
        "next_limiter": "FP32", "next_share": 0.4, "bounds": (), "gap": (), "constants": "c",
        "basis": "b", "is_fitted": False,
    }  # fmt: skip
    return Predicted(**(values | more))
