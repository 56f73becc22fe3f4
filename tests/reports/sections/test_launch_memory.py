"""Bytes of a launch at DRAM: the page shows those that the bound on its time counts."""

import re

from analysis.records.metrics import DRAM_TRAFFIC
from analysis.timing.predicted import Resource
from reports.sections.launch_memory import launch_flow, launch_roofline
from tests.reports.launches import executed


def _counted_in_the_bound(predicted):
    """Bytes at DRAM, and those of them that were dirty before, as the bound says in words."""
    bound = next(one for one in predicted.bounds if one.name == Resource.DRAM)
    found = re.match(r"([\d,]+) bytes at .*, ([\d,]+) of them to write back", bound.basis)
    return [int(digits.replace(",", "")) for digits in found.groups()]


def test_lines_that_were_dirty_before_are_those_of_the_bound():
    report = executed("copy").report
    every, dirty = _counted_in_the_bound(report.predicted)
    assert dirty > 0
    assert round(report.predicted.dirty_bytes) == dirty
    flow = launch_flow(report)
    read, written = (report.counters[name] for name in DRAM_TRAFFIC)
    assert flow.dram_read.moved_bytes == read
    assert round(flow.dram_write.moved_bytes) == written + dirty
    assert read + written + dirty == every  # full sectors: DRAM moves nothing else
    assert flow.dram_note[0].startswith(f"{dirty / 1e6:.3g} MB ")


def test_the_roofline_has_the_same_bytes():
    report = executed("copy").report
    level = next(one for one in launch_roofline(report).levels if one.name == Resource.DRAM)
    assert round(level.moved_bytes) == _counted_in_the_bound(report.predicted)[0]
