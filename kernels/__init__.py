"""What can be launched: the ladder of SGEMM kernels, and the references beside it."""

from kernels.registry import (
    LADDER,
    REFERENCES,
    Parameter,
    Reference,
    Selection,
    Variant,
    find,
    parse_selection,
)

__all__ = [
    "LADDER",
    "REFERENCES",
    "Parameter",
    "Reference",
    "Selection",
    "Variant",
    "find",
    "parse_selection",
]
