"""Launches that a profiler counts, and the records that get what it counted."""

from __future__ import annotations

from analysis.devices import find_device
from analysis.problem import parse_shape
from analysis.records.profile import Profile, Record
from kernels.selection import parse_selection
from toolkit.gpu.nsight_compute.attribution import CountableLaunch
from toolkit.profiling.record import planned


def launch_of(label: str, shape: str = "64x64x64") -> CountableLaunch:
    selection = parse_selection(label)
    record = planned(selection, parse_shape(shape), find_device("h100-sxm"))
    return CountableLaunch(record, getattr(selection.variant, "entry", None))


def record_of(result: Profile, label: str, shape: str = "") -> Record:
    return next(r for r in result.records if r.label == label and str(r.shape).startswith(shape))
