"""Print the table of constants of docs/timing.md anew.

    python -m benchmarks.timing_tables

tests/analysis/hardware/test_sm_constants.py holds the document to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from analysis.hardware.sm_constants import CONSTANTS, SmConstants
from analysis.sm import Unit

ABOUT_THE_RECORD = ("architecture", "taken_from", "is_fitted", "sources")
SIGNIFICANT = 4
# What docs/timing.md says once.
SHORT = {
    "measured on an H200, CUDA 13.0 (python -m toolkit.microbenchmarks)": "H200",
    "measured on an H100, CUDA 13.0 (docs/timing.md)": "H100",
    " on the ladder on an H200 (docs/validation.md)": "",
}


def table() -> Iterator[str]:
    """The constants of sm_90 with their sources, and what other architectures have instead."""
    hopper = CONSTANTS["sm_90"]
    yield "| constant | sm_90 | source | elsewhere |"
    yield "|---|---|---|---|"
    for name in vars(hopper):
        if name not in ABOUT_THE_RECORD:
            value = _shown(getattr(hopper, name))
            source = hopper.sources[name]
            for known, short in SHORT.items():
                source = source.replace(known, short)
            yield f"| `{name}` | {value} | {source} | {_elsewhere(hopper, name)} |"


def _elsewhere(hopper: SmConstants, name: str) -> str:
    others = [
        f"{c.architecture}: {_difference(getattr(hopper, name), getattr(c, name))}"
        for c in CONSTANTS.values()
        if getattr(c, name) != getattr(hopper, name)
    ]
    return "; ".join(others)


def _difference(usual: Any, value: Any) -> str:
    if isinstance(value, Mapping):
        return _shown({unit: clocks for unit, clocks in value.items() if clocks != usual[unit]})
    return _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{Unit(unit).name} {clocks}" for unit, clocks in value.items())
    return f"{value:.{SIGNIFICANT}g}" if isinstance(value, float) else f"{value:,}"


if __name__ == "__main__":
    print("\n".join(table()))
