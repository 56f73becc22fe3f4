"""Comparison of two launches stored by `simulate --json`: changed counts and their lines.

Counts of machine code are deterministic, so any difference is a change, for any cause: an edit of
the kernel, another grid, other arguments, another compiler. Both launches need the same
architecture. Modelled values (traffic below L1 and the time) need the same device too, and traffic
has the tolerances of `analysis.comparison.scorecard`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from analysis.comparison.lines import line_changes
from analysis.comparison.runs import (
    CountChange,
    PredictionChange,
    changed_counts,
    launch_counts,
    missing_counts,
    other_constants,
    prediction_change,
    resource_counts,
)
from analysis.errors import InputError
from analysis.geometry import Geometry
from analysis.occupancy import Resources
from analysis.records.counters import MODELLED
from analysis.records.profile import LineCounters
from analysis.timing.predicted import Predicted

SCHEMA_VERSION = 2  # of `simulate --json`; 2: the device, and the text of each line
COMPARISON_SCHEMA_VERSION = 2  # 2: what is missing

RANDOM = "]"  # at the end of an argument without content: 'f32[64]'


@dataclass(frozen=True, kw_only=True)
class LaunchRecord:
    """Output of `simulate --json` for a launch, as far as it is compared.

    `arguments` are as they were written, `device` is the key of the one that traffic below L1 and
    the time are modelled for, None without.
    """

    source: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int
    arguments: tuple[str, ...]
    defines: dict[str, str]
    options: tuple[str, ...]
    seed: int | None
    resources: Resources
    basis: str | None
    counters: dict[str, int]
    lines: tuple[LineCounters, ...]
    predicted: Predicted | None
    device: str | None = None

    @property
    def geometry(self) -> Geometry:
        return Geometry(
            grid=self.grid, block=self.block, dynamic_shared_bytes=self.dynamic_shared_bytes
        )


@dataclass(frozen=True, kw_only=True)
class LaunchComparison:
    """Changes from one launch to another: `compared` numbers, of which `counts` differ.

    `lost` names the counters of the first launch that the second lacks, or has for another device.
    """

    schema_version: int
    before: LaunchRecord
    after: LaunchRecord
    compared: int
    counts: tuple[CountChange, ...]
    predicted: PredictionChange | None
    notes: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def changed(self) -> tuple[CountChange, ...]:
        return tuple(one for one in self.counts if one.verdict == "changed")


def compare_launches(before: LaunchRecord, after: LaunchRecord) -> LaunchComparison:
    """Every difference between two launches.

    Raises InputError where their machine code is of two architectures, or no counter is of both.
    """
    ours, theirs = (one.resources.architecture for one in (before, after))
    if ours != theirs:
        raise InputError(
            f"the launches are of two architectures, {ours} and {theirs}: "
            "simulate both with the same --arch"
        )
    compiled = [
        launch_counts(one.geometry) | resource_counts(one.resources) for one in (before, after)
    ]
    counted = [
        _comparable(one, same_device=before.device == after.device) for one in (before, after)
    ]
    common = counted[0].keys() & counted[1].keys()
    if not common:
        raise InputError("the launches have no counter in common: simulate both again")
    changes = changed_counts("simulated", *counted)
    return LaunchComparison(
        schema_version=COMPARISON_SCHEMA_VERSION,
        before=before,
        after=after,
        compared=len(compiled[0]) + len(common),
        counts=(
            *changed_counts("compiled", *compiled),
            *(replace(c, lines=line_changes(c.name, before.lines, after.lines)) for c in changes),
        ),
        predicted=_prediction(before, after),
        notes=tuple(_notes(before, after)),
        lost=tuple(_lost(before, counted[1])),
    )


def _comparable(one: LaunchRecord, *, same_device: bool) -> dict[str, int]:
    """Counters to compare, without modelled ones if the devices differ."""
    return {n: count for n, count in one.counters.items() if same_device or n not in MODELLED}


def _lost(before: LaunchRecord, comparable: dict[str, int]) -> Iterator[str]:
    missing = missing_counts("simulated", before.counters, comparable)
    if missing:
        remedy = f": give --device {before.device}" if before.device else ""
        yield missing + remedy


def _prediction(before: LaunchRecord, after: LaunchRecord) -> PredictionChange | None:
    if before.predicted is None or after.predicted is None or before.device != after.device:
        return None
    return prediction_change(before.predicted, after.predicted)


def _notes(before: LaunchRecord, after: LaunchRecord) -> Iterator[str]:
    """Other differences, which may be the cause of changed counts."""
    for what, ours, theirs in (
        ("kernels", before.kernel, after.kernel),
        ("compilers", before.resources.compiler, after.resources.compiler),
        ("arguments", ", ".join(before.arguments), ", ".join(after.arguments)),
        ("defines", _defined(before), _defined(after)),
        ("options", " ".join(before.options), " ".join(after.options)),
        ("executed blocks", before.basis, after.basis),
    ):
        if ours != theirs:
            yield f"the {what} differ: {ours or 'none'} before, {theirs or 'none'} after"
    if before.device != after.device:
        named = [one.device or "none" for one in (before, after)]
        yield (
            f"the devices differ, {named[0]} before and {named[1]} after: neither modelled traffic "
            "nor times are compared"
        )
    elif before.predicted and after.predicted:
        yield from filter(None, [other_constants(before.predicted, after.predicted)])
    elif before.predicted or after.predicted:
        yield f"a time was predicted {'before' if before.predicted else 'after'} alone"
    random = any(text.endswith(RANDOM) for one in (before, after) for text in one.arguments)
    if random and before.seed != after.seed:
        yield "the random content differs: where counts depend on it, give both the same --seed"


def _defined(one: LaunchRecord) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(one.defines.items()))
