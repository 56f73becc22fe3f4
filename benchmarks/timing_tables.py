"""Print the table of constants of docs/timing.md, and those of docs/machines.md, anew.

    python -m benchmarks.timing_tables

Tests in tests/analysis/hardware hold the documents to them.
"""

from __future__ import annotations

from collections.abc import Iterator

from analysis.hardware.own_constants import NOMINAL, NOT_DETERMINED, RULES
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


def rules() -> Iterator[str]:
    """Yield the rules by which constants follow from results of the microbenchmarks."""
    yield "| constant | is | A, B: results of the benchmarks |"
    yield "|---|---|---|"
    for name, rule in RULES.items():
        results = ", ".join(f"`{result}`" for result in rule.results if result != NOMINAL)
        yield f"| `{name}` | {rule.formula} | {results} |"


def not_determined() -> Iterator[str]:
    """Constants that the microbenchmarks do not determine, and why."""
    yield "| constant | why not |"
    yield "|---|---|"
    for name, why in NOT_DETERMINED.items():
        yield f"| `{name}` | {why} |"


def _elsewhere(name: str, usual: float) -> str:
    values = {arch: constants.entries[name].value for arch, constants in CONSTANTS.items()}
    return "; ".join(f"{arch}: {_shown(v)}" for arch, v in values.items() if v != usual)


def _shown(value: float) -> str:
    is_whole = float(value).is_integer()
    return f"{int(value):,}" if is_whole else f"{value:.{SIGNIFICANT}g}"


if __name__ == "__main__":
    print("\n".join([*table(), "", *rules(), "", *not_determined()]))
