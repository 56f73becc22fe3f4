"""Errors of modelled traffic against the hardware's per rung: the table of docs/validation.md.

    python -m benchmarks.traffic_tables

Prints modelled over counted traffic of the runs that ship: all squares, both devices. It does not
compare traffic below one mebibyte on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from analysis.comparison.scorecard import NEGLIGIBLE_BYTES, TOLERANCES
from analysis.problem import Gemm
from analysis.records.counters import MODELLED
from analysis.records.profile import Profile, Record
from kernels.ladder import BEST
from toolkit import profile
from toolkit.store.recorded_runs import recorded_run

COUNTERS = {
    "L2 reads": "lts__t_sectors_op_read.sum",
    "L2 writes": "lts__t_sectors_op_write.sum",
    "DRAM reads": "dram__bytes_read.sum",
    "DRAM writes": "dram__bytes_write.sum",
}
SHIPPED = ("h100-sxm", "h200")
PROMISED = {what: TOLERANCES[name] for what, name in COUNTERS.items()}

Key = tuple[str, Gemm]


def counted_launches(run: Profile) -> dict[Key, Record]:
    """The rungs that hardware counted, by label and shape."""
    return {(r.label, r.shape): r for r in run.records if r.counted and r.rung is not None}


def modelled_launches(run: Profile) -> dict[Key, Record]:
    """The same launches, simulated here."""
    counted = counted_launches(run)
    found = profile(
        list(dict.fromkeys(shape for _, shape in counted)),
        list(dict.fromkeys(label for label, _ in counted)),
        device=run.device.key,
        executor="simulate",
        seed=1,
    )
    return {(r.label, r.shape): r for r in found.records if (r.label, r.shape) in counted}


def ratio(modelled: Record, counted: Record, name: str) -> float | None:
    """Modelled over counted, None where there is too little of either."""
    assert modelled.simulated is not None
    assert counted.counted is not None
    return ratio_of(modelled.simulated.counters, counted.counted.counters, name)


def ratio_of(modelled: Mapping[str, int], counted: Mapping[str, int], name: str) -> float | None:
    """The same of the counters of a launch."""
    ours, theirs = modelled[name], counted[name]
    if MODELLED[name].unit.size_bytes * max(ours, theirs) < NEGLIGIBLE_BYTES:
        return None
    return ours / theirs if theirs else None


def shipped_ratios(run: Profile, what: str) -> dict[Key, float]:
    """Modelled over counted of the rungs in a shipped run, at its squares."""
    found = {}
    for (label, shape), record in counted_launches(run).items():
        is_square = shape.m == shape.n == shape.k
        if record.simulated and is_square and record.label != BEST.name:
            value = ratio(record, record, COUNTERS[what])
            if value is not None:
                found[label, shape] = value
    return found


shipped_run = cache(recorded_run)  # a second to read


def shipped_table() -> str:
    """All shipped runs as Markdown, the least and the most of each rung; how many are promised."""
    runs = [run for run in map(shipped_run, SHIPPED) if run is not None]
    rows = [f"| rung | {' | '.join(COUNTERS)} |", "|---" * (len(COUNTERS) + 1) + "|"]
    ratios = {what: [shipped_ratios(run, what) for run in runs] for what in COUNTERS}
    labels = dict.fromkeys(label for label, _ in ratios["L2 reads"][0])
    for label in labels:
        cells = [
            _range([v for one in of for key, v in one.items() if key[0] == label])
            for of in ratios.values()
        ]
        rows.append(f"| {label} | {' | '.join(cells)} |")
    promised = [
        f"{what} (`{COUNTERS[what]}`) within {PROMISED[what]:.0%}: "
        + " and ".join(_within(one, PROMISED[what]) for one in of)
        for what, of in ratios.items()
    ]
    return "\n".join([*rows, "", f"Of {' and '.join(SHIPPED)}: {'; '.join(promised)}."])


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _within(found: Mapping[Key, float], most: float) -> str:
    return f"{sum(abs(value - 1) <= most for value in found.values())} of {len(found)}"


if __name__ == "__main__":
    print(shipped_table())
