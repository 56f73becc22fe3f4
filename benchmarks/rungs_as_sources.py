"""Does a rung take the same time by its name and as a source? Predicted for an H200.

    python -m benchmarks.rungs_as_sources --json FILE [--only TEXT] [--limit SECONDS]

Predicts each launch in three ways: by its name, by its source with all blocks executed, and by its
source with a few blocks executed. The launches are all rungs at SHAPES, and those of FURTHER and
KERNELS. A kernel that is not a rung has two ways. Each finished launch is a line of FILE; a later
call predicts the others. Prints a table, and exits with 1 if a launch is missing, if times differ
by more than MOST, or if limiters or exact counters differ.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from analysis.errors import ToolkitError
from analysis.records.counters import MODELLED
from benchmarks.plan_agreement import DEVICE, read
from kernels.ladder import LADDER
from toolkit import simulate
from toolkit.launch.launch import Execution
from validation.timing.declared import OPTIONS, rng
from validation.timing.timed_launches import SMALL

MOST = 0.005  # relative difference of times
SHAPES = ("512", "1024", "2048", "1000x1016x520")
SHAPES_OF_ONE_BLOCK = ("32", "16x24x20", "1x1x1")
FURTHER = ("split-k:splits=4 1024",)
KERNELS = ("transpose_padded", "softmax", "stencil", "row_sums")
NAME, ALL, FEW = "by name", "all blocks", "few blocks"
LIMIT_S = 600.0  # as long as all blocks may take where a few do not represent all

Row = dict[str, Any]


def asked(text: str = "") -> Iterator[str]:
    """Names of the launches that contain `text`."""
    names = [
        f"{variant.name} {shape}"
        for shape in SHAPES
        for variant in LADDER
        if not variant.max_extent
    ]
    names += [
        f"{one.name} {shape}" for one in LADDER if one.max_extent for shape in SHAPES_OF_ONE_BLOCK
    ]
    names += [*FURTHER, *KERNELS]
    yield from (name for name in names if text in name)


def predicted(name: str) -> Iterator[tuple[str, Execution]]:
    """Yield the ways in which a launch can be predicted, with its prediction."""
    ways: Mapping[str, Row] = {
        NAME: {},
        ALL: {"blocks": "all"},
        FEW: {"blocks": "representative", "limit_s": LIMIT_S},
    }
    options: Row = {"device": DEVICE, "max_instructions": 10**11, "workers": 1}
    if name in KERNELS:
        case = next(case for case in SMALL if case.kernel == name)
        launch: Row = {
            "source": case.source,
            "kernel": case.kernel,
            "grid": case.grid,
            "block": case.block,
            "dynamic_shared_bytes": case.dynamic_shared_bytes,
            "options": OPTIONS,
        }
        for way in (ALL, FEW):
            arguments = case.make(rng())
            yield way, simulate(arguments=arguments, **launch, **options, **ways[way])
        return
    rung, shape = name.split(" ")
    for way, chosen in ways.items():
        yield way, simulate(rung, shape=shape, seed=11, **options, **chosen)


def compared(name: str) -> Row:
    """One launch in all ways: time, limiter, and the exact counters that differ."""
    row: Row = {"name": name, "ways": {}}
    counters: dict[str, Mapping[str, int]] = {}
    start = time.perf_counter()
    try:
        for way, found in predicted(name):
            if found.predicted is None:
                return row | {"left_out": f"{way}: {found.prediction_basis}"}
            estimated = found.estimates.keys()
            counters[way] = {
                one: count
                for one, count in found.counters.items()
                if one not in MODELLED and one not in estimated
            }
            row["ways"][way] = {
                "time_s": found.predicted.time_s,
                "limiter": str(found.predicted.limiter),
                "basis": found.basis,
                "seconds": round(time.perf_counter() - start, 2),
            }
            start = time.perf_counter()
    except ToolkitError as error:
        return row | {"left_out": str(error)}
    (_, first), *others = counters.items()
    row["counters"] = sorted(
        {
            one
            for other in others
            for one in first.keys() & other[1].keys()
            if first[one] != other[1][one]
        }
    )
    times = [way["time_s"] for way in row["ways"].values()]
    row["apart"] = max(times) / min(times) - 1
    return row


def is_equal(row: Row) -> bool:
    """True if all ways give one time, one limiter and the same exact counters."""
    if "left_out" in row:
        return False
    limiters = {way["limiter"] for way in row["ways"].values()}
    return len(limiters) == 1 and not row["counters"] and bool(row["apart"] <= MOST)


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """The table of launches, and how many are equal."""
    yield f"{'launch':32}{NAME + ', µs':>14}{ALL:>13}{FEW:>13}{'apart':>8}  limiter, counters"
    for row in rows:
        if "left_out" in row:
            yield f"{row['name']:32}{row['left_out']}"
            continue
        ways = row["ways"]
        times = [
            f"{1e6 * ways[way]['time_s']:.2f}" if way in ways else "-" for way in (NAME, ALL, FEW)
        ]
        limiters = list(dict.fromkeys(way["limiter"] for way in ways.values()))
        said = "; ".join([", ".join(limiters), *row["counters"]])
        yield (
            f"{row['name']:32}{times[0]:>14}{times[1]:>13}{times[2]:>13}{row['apart']:8.2%}  {said}"
        )
    yield f"{sum(map(is_equal, rows))} of {len(rows)} launches are equal to {MOST:.1%}."


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, required=True, metavar="FILE")
    parser.add_argument("--only", default="", metavar="TEXT", help="in the names of launches")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=3600, metavar="SECONDS")
    chosen = parser.parse_args(argv)
    end = time.monotonic() + chosen.limit
    names = list(asked(chosen.only))
    known = read(chosen.json)
    pool = ProcessPoolExecutor(chosen.processes, get_context("spawn"))
    pending = {pool.submit(compared, name) for name in names if name not in known}
    with chosen.json.open("a", encoding="utf-8") as file:
        while pending and time.monotonic() < end:
            done, pending = wait(pending, timeout=1)
            for future in done:
                print(json.dumps(future.result(), ensure_ascii=False), file=file, flush=True)
                print(f"{len(pending)} left: {future.result()['name']}", file=sys.stderr)
    known = read(chosen.json)
    rows = [known[name] for name in names if name in known]
    print("\n".join(summary(rows)), flush=True)
    if pending:
        print(f"{len(pending)} launches were not finished in {chosen.limit:.0f} s", flush=True)
        for process in active_children():  # without waiting for what executes
            process.terminate()
        os._exit(1)
    pool.shutdown()
    return int(not all(map(is_equal, rows)))


if __name__ == "__main__":
    sys.exit(main())
