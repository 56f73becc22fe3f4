"""Print the table of constants of docs/timing.md anew.

    python -m benchmarks.timing_tables

tests/analysis/hardware/test_sm_constants.py holds the document to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from analysis.hardware.sm_constants import CONSTANTS

SIGNIFICANT = 4
HERE = " (docs/timing.md)"  # the document that has the table


def table() -> Iterator[str]:
    """The constants of sm_90 with their sources, and what other architectures have instead."""
    yield "| constant | sm_90 | unit | kind | source | elsewhere |"
    yield "|---|---|---|---|---|---|"
    for name, entry in CONSTANTS["sm_90"].entries.items():
        source = entry.source.replace(HERE, "")
        yield (
            f"| `{name}` | {_shown(entry.value)} | {entry.unit} | {entry.kind} | {source} | "
            f"{_elsewhere(name, entry.value)} |"
        )


def _elsewhere(name: str, usual: float) -> str:
    values = {arch: constants.entries[name].value for arch, constants in CONSTANTS.items()}
    return "; ".join(f"{arch}: {_shown(v)}" for arch, v in values.items() if v != usual)


def _shown(value: float) -> str:
    is_whole = float(value).is_integer()
    return f"{int(value):,}" if is_whole else f"{value:.{SIGNIFICANT}g}"


if __name__ == "__main__":
    print("\n".join(table()))
