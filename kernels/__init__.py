"""Kernels that can be launched: the ladder of SGEMM rungs, and the references beside it."""

from kernels.ladder import LADDER, REFERENCES
from kernels.selection import Selection, find, parse_selection
from kernels.variant import Reference, RungParameter, Variant

__all__ = [
    "LADDER",
    "REFERENCES",
    "Reference",
    "RungParameter",
    "Selection",
    "Variant",
    "find",
    "parse_selection",
]
