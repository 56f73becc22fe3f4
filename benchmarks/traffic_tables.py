"""How far modelled traffic is from the hardware's, rung by rung: the tables of docs/validation.md.

    python -m benchmarks.traffic_tables                  # of what ships: all squares, both devices
    python -m benchmarks.traffic_tables --device h200    # simulated anew, at every shape

Prints modelled over counted. Where either is less than a mebibyte, there is nothing to compare.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import cache

from analysis.coalescing import SECTOR_BYTES
from analysis.problem import Gemm
from analysis.records.profile import Profile, Record
from kernels.ladder import BEST
from reports import text
from toolkit import profile
from toolkit.store.recorded_runs import recorded_run

COUNTERS = {
    "L2 reads": "lts__t_sectors_op_read.sum",
    "L2 writes": "lts__t_sectors_op_write.sum",
    "DRAM reads": "dram__bytes_read.sum",
    "DRAM writes": "dram__bytes_write.sum",
}
TOO_FEW_BYTES = 2**20
SHIPPED = ("h100-sxm", "h200")
PROMISED = {"L2 reads": 0.10, "L2 writes": 0.10, "DRAM reads": 0.15, "DRAM writes": 0.15}

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
    unit = 1 if name.startswith("dram__bytes") else SECTOR_BYTES
    ours, theirs = modelled[name], counted[name]
    if unit * max(ours, theirs) < TOO_FEW_BYTES:
        return None
    return ours / theirs if theirs else None


def table(modelled: Mapping[Key, Record], counted: Mapping[Key, Record], name: str) -> str:
    """One counter as Markdown, a row per rung and a column per shape."""
    shapes = list(dict.fromkeys(shape for _, shape in counted))
    rows = [f"| rung | {' | '.join(map(text.shape, shapes))} |", "|---" * (len(shapes) + 1) + "|"]
    for label in dict.fromkeys(label for label, _ in counted):
        cells = [label]
        for shape in shapes:
            key = label, shape
            found = ratio(modelled[key], counted[key], name) if key in counted else None
            cells.append("–" if found is None else f"{found:.2f}")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


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


def shipped_table(what: str) -> str:
    """One counter of all shipped runs as Markdown, with how many cells are as promised."""
    runs = [run for run in map(shipped_run, SHIPPED) if run is not None]
    ratios = [shipped_ratios(run, what) for run in runs]
    keys = [key for key in counted_launches(runs[0]) if key[0] != BEST.name]
    shapes = list(dict.fromkeys(shape for _, shape in keys if shape.m == shape.n == shape.k))
    shapes.sort(key=lambda shape: shape.m)
    rows = [f"| rung | {' | '.join(map(text.shape, shapes))} |", "|---" * (len(shapes) + 1) + "|"]
    for label in dict.fromkeys(label for label, _ in keys):
        cells = [
            " / ".join(_cell(found.get((label, shape))) for found in ratios) for shape in shapes
        ]
        rows.append(f"| {label} | {' | '.join(cells)} |")
    counts = " and ".join(
        f"{sum(abs(value - 1) <= PROMISED[what] for value in found.values())} of {len(found)}"
        for found in ratios
    )
    title = f"{what} (`{COUNTERS[what]}`), {' / '.join(SHIPPED)}"
    within = f"within {PROMISED[what]:.0%}: {counts}."
    return "\n".join([f"{title}, {within}", "", *rows])


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device")
    device = parser.parse_args().device
    if device is None:
        print("\n\n".join(map(shipped_table, COUNTERS)))
        return
    run = recorded_run(device)
    assert run is not None, "no recorded run of that device ships with the package"
    counted, modelled = counted_launches(run), modelled_launches(run)
    for title, name in COUNTERS.items():
        print(f"{title} (`{name}`)\n\n{table(modelled, counted, name)}\n")


if __name__ == "__main__":
    main()
