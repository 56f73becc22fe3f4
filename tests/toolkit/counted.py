"""Launches that a profiler counts, and the records that get what it counted."""

from analysis.devices import find_device
from analysis.problem import parse_shape
from kernels.selection import parse_selection
from toolkit.gpu.nsight_compute.attribution import CountableLaunch
from toolkit.profiling.record import planned


def launch_of(label, shape="64x64x64"):
    selection = parse_selection(label)
    record = planned(selection, parse_shape(shape), find_device("h100-sxm"))
    return CountableLaunch(record, getattr(selection.variant, "entry", None))


def record_of(result, label, shape=""):
    return next(r for r in result.records if r.label == label and str(r.shape).startswith(shape))
