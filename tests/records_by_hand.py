"""Records of which a test says what it asks for; all else is something possible."""

from analysis.occupancy import Occupancy, Resources
from analysis.records.profile import Counted, Measured, Record, Simulated
from analysis.rounding import Check
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
        "clock": "CUDA events", "l2": "dirty", "samples_s": (median_s,), "median_s": median_s,
        "interval_s": None, "flop_per_s": 1 / median_s, "stopped_by": "precision",
    }  # fmt: skip
    return Measured(**(values | more))


def predicted(time_s, **more):
    values = {
        "time_s": time_s, "cycles": 1.0, "clock_hz": 1e9, "launch_s": 0.0,
        "flop_per_s": 1 / time_s, "l2": "dirty", "limiter": "issue", "limiter_share": 0.5,
        "next_limiter": "FP32", "next_share": 0.4, "bounds": (), "constants": "c",
        "basis": "b", "is_fitted": False,
    }  # fmt: skip
    return Predicted(**(values | more))


def resources(**more):
    values = {
        "architecture": "sm_86", "compiler": "NVRTC 13.0.88", "registers_per_thread": 32,
        "static_shared_bytes": 8192, "local_bytes": 0,
    }  # fmt: skip
    return Resources(**(values | more))


def occupancy(**more):
    values = {"blocks_per_sm": 1, "warps_per_sm": 48, "max_warps_per_sm": 48}
    return Occupancy(**(values | {"limiters": ("threads",)} | more))


def simulated(counters, **more):
    values = {
        "architecture": "sm_86", "compiler": "NVRTC 13.0.88", "accesses": (), "lines": (),
        "basis": "all", "blocks_executed": 1,
    }  # fmt: skip
    return Simulated(counters=counters, **(values | more))


def counted(counters, **more):
    values = {"kernels": (), "caches": "flushed", "source": "Nsight Compute 1"}
    return Counted(counters=counters, **(values | more))


def check(**more):
    values = {
        "passed": True, "worst_ratio": 0.1, "worst_row": 1, "worst_column": 2,
        "max_absolute_error": 1e-6, "bound": "a bound",
    }  # fmt: skip
    return Check(**(values | more))
