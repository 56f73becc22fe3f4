"""Tuned configurations of which a test says what it asks for; all else is something possible."""

from analysis.devices import find_device
from analysis.records.profile import Interval
from toolkit.store.tuned import Tuned


def entry(shape="4096x4096x4096", **more):
    values = {
        "device": find_device("h200").name, "architecture": "sm_90", "variant": "coarsened-1d",
        "parameters": {"bk": 8, "tm": 8}, "time_s": 0.01, "ratio_to_cublas": 0.5,
        "interval": Interval(low=0.49, high=0.51), "tied_with": ({"bk": 16, "tm": 8},),
        "date": "2025-01-02", "toolkit_version": "0.1.0", "commit": "abcdef0",
    }  # fmt: skip
    return Tuned(shape=shape, **(values | more))
