"""Do a few blocks represent all blocks? Launches executed both ways, on an H200.

    python -m benchmarks.plan_agreement --json FILE [--only TEXT] [--limit SECONDS] [--processes N]

Executes each launch with `blocks="representative"` and with `blocks="all"`: those of
validation/timing with at least 256 blocks, and rungs as ordinary kernels. Compares the counters and
the predicted times. Each finished launch is a line of FILE; a later call executes the others.
Exits with 1 if times differ by more than MEAN_TIME or WORST_TIME, or if launches are left.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from math import prod
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from analysis.errors import ToolkitError
from analysis.records.counters import MODELLED
from kernels.ladder import BEST, LADDER
from toolkit.execution.observation import LEAST_BLOCKS
from toolkit.execution.simulate import simulate
from toolkit.launch.launch import Execution
from validation.timing.declared import launch_of
from validation.timing.timed_launches import TIMED
from validation.timing.trial_launches import TRIALS

DEVICE, ARCHITECTURE = "h200", "sm_90"
SHAPES = ("512", "2048", "2000x2016x520")  # of rungs
LIMIT_INSTRUCTIONS = 10**10
WAYS = ("representative", "all")
MEAN_TIME, WORST_TIME = 0.01, 0.04  # relative differences

DECLARED = (*TIMED, *TRIALS)

Row = dict[str, Any]


def asked(text: str = "") -> Iterator[str]:
    """Names of the launches that contain `text`."""
    cases = [case for one in DECLARED for case in one.cases]
    names = [case.name for case in cases if prod(case.grid) >= LEAST_BLOCKS]
    rungs = [one.name for one in LADDER if one not in (BEST, LADDER[0])]
    names += [f"{rung} {shape}" for shape in SHAPES for rung in rungs]
    yield from (name for name in names if text in name)


def executed(name: str, blocks: str) -> Execution:
    """The launch of this name, executed one way."""
    options: Row = {
        "blocks": blocks,
        "workers": 1,
        "max_instructions": LIMIT_INSTRUCTIONS,
        "device": DEVICE,
    }
    rung, shape = name.split(" ", 1)
    if rung in [one.name for one in LADDER] and shape in SHAPES:
        return simulate(rung, shape=shape, seed=1, **options)
    one, case = next((one, c) for one in DECLARED for c in one.cases if c.name == name)
    return simulate(one.code(ARCHITECTURE), **launch_of(case), **options)


def compared(name: str) -> Row:
    """One launch both ways: blocks, seconds, and the largest relative differences."""
    found: list[Execution] = []
    row: Row = {"name": name}
    try:
        for blocks in WAYS:
            start = time.process_time()
            found.append(executed(name, blocks))
            row[f"{blocks}_s"] = round(time.process_time() - start, 3)
            row |= {"blocks": found[0].executed_blocks, "basis": found[0].basis}
            if blocks == WAYS[0] and str(found[0].basis).startswith("all "):
                return row | {"of": row["blocks"]}
    except ToolkitError as error:
        return row | {"left_out": str(error)}
    few, every = found
    row["of"] = every.executed_blocks
    differences = {
        counter: abs(few.counters.get(counter, 0) - value) / max(abs(value), 1)
        for counter, value in every.counters.items()
    }
    for kind, is_modelled in (("exact", False), ("modelled", True)):
        of_kind = {n: d for n, d in differences.items() if (n in MODELLED) == is_modelled}
        worst = max(of_kind, key=lambda counter: of_kind[counter], default="")
        row[kind], row[f"{kind}_counter"] = of_kind.get(worst, 0.0), worst
    if few.predicted is not None and every.predicted is not None:
        row["time"] = few.predicted.time_s / every.predicted.time_s - 1
        row["time_s"] = every.predicted.time_s
    elif (few.predicted is None) != (every.predicted is None):
        row["time_of_one"] = few.prediction_basis if few.predicted is None else "all"
    return row


def has_plan(row: Row) -> bool:
    return "blocks" in row and bool(row["blocks"] < row["of"])


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """The table of launches with a plan, those without, and how they agree."""
    planned = [row for row in rows if has_plan(row)]
    yield (
        f"{'launch':44}{'blocks':>7}{'of':>10}{'s':>8}{'all, s':>9}{'exact':>9}{'model':>9}"
        f"{'time':>9}"
    )
    for row in sorted(planned, key=lambda row: -abs(row.get("time", 0))):
        drift = f"{row['time']:+.2%}" if "time" in row else "-"
        yield (
            f"{row['name'][:43]:44}{row['blocks']:7,}{row['of']:10,}{row['representative_s']:8.1f}"
            f"{row['all_s']:9.1f}{row['exact']:9.2%}{row['modelled']:9.2%}{drift:>9}"
        )
    for row in rows:
        if not has_plan(row):
            yield f"{row['name']}: {row.get('left_out') or row['basis']}"
    times = [abs(row["time"]) for row in planned if "time" in row]
    exact = sum(row["exact"] == 0 for row in planned)
    yield (
        f"{len(planned)} of {len(rows)} launches have a plan. Exact counters are equal in {exact}. "
        f"Times differ by {sum(times) / max(1, len(times)):.2%} on average and by "
        f"{max(times, default=0):.2%} at most."
    )


def read(path: Path) -> dict[str, Row]:
    """The finished launches of a file, by name."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {row["name"]: row for row in map(json.loads, lines)}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, required=True, metavar="FILE")
    parser.add_argument("--only", default="", metavar="TEXT", help="in the names of launches")
    parser.add_argument("--limit", type=float, default=3600, metavar="SECONDS")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args(argv)
    rows: Mapping[str, Row] = read(chosen.json)
    end = time.monotonic() + chosen.limit
    names = [name for name in asked(chosen.only) if name not in rows]
    pool = ProcessPoolExecutor(chosen.processes, get_context("spawn"))
    pending = {pool.submit(compared, name) for name in names}
    with chosen.json.open("a", encoding="utf-8") as file:
        while pending and time.monotonic() < end:
            done, pending = wait(pending, timeout=1)
            for future in done:
                print(json.dumps(future.result()), file=file, flush=True)
                print(f"{len(pending)} left: {future.result()['name']}", file=sys.stderr)
    rows = read(chosen.json)
    print("\n".join(summary(list(rows.values()))), flush=True)
    if pending:
        print(f"{len(pending)} launches were not finished in {chosen.limit:.0f} s")
        os._exit(1)  # without waiting for what executes
    pool.shutdown()
    times = [abs(row["time"]) for row in rows.values() if has_plan(row) and "time" in row]
    return int(max(times, default=0) > WORST_TIME or sum(times) > MEAN_TIME * len(times))


if __name__ == "__main__":
    sys.exit(main())
