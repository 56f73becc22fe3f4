"""Description of a metric: written once, and shown everywhere.

As in nvbench's summaries, a number travels under its `tag`. The terminal, the page, `compare`, JSON
and rows for a DataFrame take its label, unit, format, group and hint from the description.
`analysis.records.counters` has those of raw counters, `analysis.records.metrics` those of what
follows from them.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.access import WAVEFRONT_BYTES
from analysis.vocabulary import Vocabulary


class MetricUnit(Vocabulary):
    """MetricUnit of a metric."""

    INSTRUCTIONS = "warp instructions"
    THREAD_INSTRUCTIONS = "thread instructions"
    REQUESTS = "requests"
    SECTORS = "sectors"
    WAVEFRONTS = "wavefronts"
    BYTES = "B"
    OPERATIONS = "operations"
    SHARE = "share"
    THREADS_PER_INSTRUCTION = "threads/instruction"
    SECTORS_PER_REQUEST = "sectors/request"
    CONFLICTS_PER_ACCESS = "conflicts/access"

    @property
    def size_bytes(self) -> int:
        """Bytes that one of them moves, 0 if it moves none."""
        from analysis.coalescing import SECTOR_BYTES  # it imports numpy, for which no --help waits

        sizes = {
            MetricUnit.SECTORS: SECTOR_BYTES,
            MetricUnit.WAVEFRONTS: WAVEFRONT_BYTES,
            MetricUnit.BYTES: 1,
        }
        return sizes.get(self, 0)


class Format(Vocabulary):
    """Format in which `reports.text.written` writes a metric."""

    DIGITS = "digits"  # to the last one
    COUNT = "count"
    OF_A_WARP = "of a warp"
    PERCENT = "percent"


class Group(Vocabulary):
    """Group of a metric; a table of many shows the groups in this order."""

    INSTRUCTIONS = "instructions"
    GLOBAL = "global memory"
    SHARED = "shared memory"
    LOCAL = "local memory"
    GENERIC = "generic memory"
    BELOW_L1 = "L2 and DRAM"


@dataclass(frozen=True, kw_only=True)
class Metric:
    """Description of a metric."""

    #: Its key in every record, of a counter the name at Nsight Compute.
    tag: str
    #: What it counts, in words.
    label: str
    unit: MetricUnit
    format: Format
    group: Group
    #: What a reader of the value should know beyond the label.
    hint: str = ""
    #: The label in a column that has no room for it; empty if there is always room.
    short: str = ""

    @property
    def heading(self) -> str:
        """The label where there is little room."""
        return self.short or self.label
