"""The listed launches predicted for the GPU that they were measured on, and tables of the errors.

    python -m validation.public_launches.predict CUBINS --part first --json first.json
    python -m validation.public_launches.predict --table first.json
    python -m validation.public_launches.predict CUBINS --part third --blind --json third.json
    python -m validation.public_launches.predict --join third.json
    python -m validation.public_launches.predict CUBINS --part third --screen third.jsonl

CUBINS is the folder that `capture` filled. `--blind` writes predictions alone, and `--join` adds
what was measured and prints the tables, which opens a part that is held out: do it once, with the
model committed before. `--screen` says which launches have no prediction, and why, but no time.
Each launch is predicted for the state of L2 that the list names, or with `--l2` for another. A
launch that took less than 5 µs is not in the tables, as the list says; any other without a time is
named, and counts as off by 1.6.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

from analysis.devices import find_device
from analysis.errors import ToolkitError
from analysis.l2_state import L2State
from analysis.timing.predicted import WAITS_FOR_LOADS, Effect, Explanation, Predicted, Resource
from reports.sections.answer import LIMITS, cause_of
from toolkit.execution.simulator import Simulator
from toolkit.launch.setup import LaunchSetup
from validation.public_launches.listed import (
    PARTS,
    SEED,
    Listed,
    Part,
    listed,
    measurements,
    record_of,
)

DEVICE = "h200"  # that measured the launches
SHORTEST_S, SHORT_S = 5e-6, 30e-6
LIMIT_S = 60.0  # of processor time, as machines are shared
TOO_LONG = f"its simulation takes more than {LIMIT_S:g} s"
MISSING = 0.6  # error that a launch without a time counts as
FACTOR = 1.6
SHOWN = 10
BUSY, CLOSE = 60.0, 5.0  # percent of a unit's peak
ACTIVE = 90.0  # percent of the time for which the SMs are active on average
MEMORY = frozenset({"long_scoreboard", "lg_throttle"})
SHARED = frozenset({"short_scoreboard", "mio_throttle"})
#: Stall reasons of Nsight Compute that show what a cause is.
WAITS_OF = {
    **dict.fromkeys((*WAITS_FOR_LOADS, Effect.UNCOALESCED, Effect.LOCAL_MEMORY), MEMORY),
    **dict.fromkeys(
        (Effect.ATOMICS, Effect.STORES, Effect.OTHER_BLOCKS), MEMORY | {"membar", "drain"}
    ),
    Effect.COPIES: MEMORY,
    **dict.fromkeys((Effect.SHARED_LATENCY, Effect.CONFLICTS), SHARED),
    Effect.CONSTANTS: SHARED | {"imc_miss"},
    Effect.BARRIERS: frozenset({"barrier"}),
    Effect.DEPENDENCES: SHARED | {"wait", "math_pipe_throttle"},  # results of special functions
    Effect.REGISTER_BANKS: frozenset({"dispatch_stall"}),
    Effect.FETCH: frozenset({"no_instruction"}),
    Effect.DIVERGENCE: frozenset({"branch_resolve", "wait"}),
}
UNIT_OF = {
    "issue": Resource.ISSUE,
    "FP32": Resource.FP32,
    "integer products": Resource.PRODUCTS,
    "integers and logic": Resource.LOGIC,
    "FP64": Resource.DOUBLE,
    "half precision": Resource.HALF,
    "special functions": Resource.SPECIAL,
    "constants": Resource.CONSTANTS,
    "load/store unit": Resource.L1,
    "L1": Resource.L1,
    "L1 tags": Resource.L1,
    "shared memory": Resource.SHARED_MEMORY,
    "L2": Resource.L2,
    "L2 tags": Resource.L2,
    "L2 data": Resource.L2,
    "atomics at L2": Resource.ATOMICS,
    "reductions at L2": Resource.ATOMICS,
    "DRAM": Resource.DRAM,
}

#: Wavefronts of L1's data path, and those of them that are of shared memory.
DATA_PATH, OF_SHARED = "L1", "shared memory"

Cell = dict[str, Any]


def predicted(
    one: Listed,
    cubins: Path,
    device: str,
    l2: L2State,
    explanation: Explanation = Explanation.NONE,
) -> Cell:
    """Predicted time of a launch, or the reason why there is none."""
    started, begun = time.perf_counter(), time.process_time()

    def advance(done: int, of: int) -> None:
        if time.process_time() - begun > LIMIT_S:
            raise TimeoutError

    simulator = Simulator(
        device=find_device(device),
        l2=l2,
        blocks="representative",
        limit_s=LIMIT_S / 5,
        advance=advance,
        explanation=explanation,
        outputs=False,
        allow_out_of_bounds=True,
        setup=LaunchSetup(symbols=one.symbols()),
    )
    try:
        found = simulator.run(one.code(cubins), one.geometry, one.made())
    except ToolkitError as error:
        return {"left_out": str(error)}
    except TimeoutError:
        return {"left_out": TOO_LONG}
    took_s = time.perf_counter() - started
    if found.predicted is None:
        return {"left_out": found.prediction_basis}
    time_of = found.predicted
    return {
        "predicted_s": time_of.time_s,
        "interval_s": time_of.interval_s,
        "limiter": time_of.limiter,
        "limiter_share": time_of.limiter_share,
        "bounds_s": {bound.name: bound.time_s for bound in time_of.bounds},
        "uncertainty": found.uncertainty,
        "simulated_in_s": took_s,
    } | _named(time_of)


def _named(time_of: Predicted) -> Cell:
    """The cause that the answer names, and whether it says that the launch is at a roof."""
    if not time_of.costs:
        return {}
    cause = cause_of(time_of)
    at_roof = any(one.is_roof and one.time_s >= LIMITS * time_of.time_s for one in time_of.costs)
    return {"cause": cause.effect if cause else None, "is_at_roof": at_roof}


def cells(
    part: Part, cubins: Path, asked: L2State | None = None, workers: int = 1
) -> Iterator[Cell]:
    """Each launch of a part, predicted; with its cause if it was counted, or not yet measured."""
    names: set[str] | None = None
    counted: set[str] | None = None
    if record_of(part).exists():
        document = measurements(part)
        names = {row["name"] for row in document["times"] if "failed" not in row}
        counted = {row["name"] for row in document["counters"]}
    with ThreadPoolExecutor(workers) as pool:
        begun: list[tuple[Cell, Future[Cell] | None]] = []
        for one in listed(part):
            l2 = asked or one.l2
            is_explained = counted is None or one.name in counted
            is_asked = names is None or one.name in names
            found = pool.submit(_in_child, one.name, cubins, l2, is_explained) if is_asked else None
            about = {"label": one.name, "family": one.family, "l2": l2, "rows": list(one.rows)}
            begun.append((about, found))
        for cell, future in begun:
            yield cell | (future.result() if future else {})


def _in_child(name: str, cubins: Path, l2: L2State, is_explained: bool) -> Cell:
    """The prediction of a launch by a process of its own, which ends where its time does."""
    command = ["prlimit", f"--cpu={2 * LIMIT_S:.0f}", sys.executable, "-m", __spec__.name]
    command += [str(cubins), "--one", name, "--l2", l2]
    done = subprocess.run(
        [*command, *(["--explained"] if is_explained else [])],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode == 0:
        found: Cell = json.loads(done.stdout)
        return found
    if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
        return {"left_out": TOO_LONG}
    return {"left_out": f"exit status {done.returncode}: {done.stderr.decode()[-200:]}"}


def screened(part: Part, cubins: Path, workers: int) -> Iterator[Cell]:
    """Say of each launch if the simulator takes it, without any time."""
    for cell in cells(part, cubins, workers=workers):
        yield {"name": cell["label"], "left_out": cell.get("left_out")}


def with_measured(part: Part, found: Sequence[Cell]) -> list[Cell]:
    """Predictions beside what was measured of the same launches."""
    document = measurements(part)
    times = {row["name"]: row for row in document["times"]}
    joined = []
    for cell in found:
        row = times.get(cell["label"], {"failed": "not measured"})
        if "failed" in row:
            seen = {"left_out": f"not measured: {row['failed']}"}
        else:
            seen = {f"measured_{state}_s": row[f"{state}_s"] for state in L2State}
            seen |= {key: row[key] for key in ("again_s", "gap_s") if key in row}
        joined.append(cell | {"timed_on": document["device"]} | seen)
    return joined


def as_timed(cell: Cell) -> Cell:
    """A prediction beside what events measured, with the gap of the machine."""
    keys = [key for key in cell if key.startswith("measured_")]
    return cell | {key: cell[key] + cell.get("gap_s", 0.0) for key in keys}


def measured_s(cell: Cell) -> float | None:
    found: float | None = cell.get(f"measured_{cell['l2']}_s")
    return found


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Launches of SHORTEST_S and more, and how far off their predictions are."""

    timed: list[Cell]
    known: list[Cell]  #: of `timed`, those with a prediction
    shorter: int
    not_measured: int

    @classmethod
    def of(cls, found: Sequence[Cell]) -> Errors:
        timed = [cell for cell in found if (measured_s(cell) or 0) >= SHORTEST_S]
        shorter = sum(0 < (measured_s(cell) or 0) < SHORTEST_S for cell in found)
        return cls(
            timed=timed,
            known=[cell for cell in timed if "predicted_s" in cell],
            shorter=shorter,
            not_measured=len(found) - len(timed) - shorter,
        )

    @property
    def without_time(self) -> int:
        return len(self.timed) - len(self.known)

    @property
    def each(self) -> list[float]:
        return [error_of(cell) for cell in self.timed]

    @property
    def highest_tenth(self) -> float:
        """The 90th percentile."""
        return quantiles(self.each, n=10, method="inclusive")[-1]

    @property
    def off(self) -> int:
        return sum(factor_of(cell) > FACTOR for cell in self.timed)


def tables(found: Sequence[Cell]) -> Iterator[str]:
    """Errors of all launches, by family and by limiter, the worst, and ten at random."""
    errors = Errors.of(found)
    timed, known = errors.timed, errors.known
    yield (
        f"{len(timed)} launches of 5 µs and more ({errors.shorter} shorter, "
        f"{errors.not_measured} not measured, {errors.without_time} without a time): mean error "
        f"{fmean(errors.each):.1%}, median {median(errors.each):.1%}, 90th percentile "
        f"{errors.highest_tenth:.1%}, {errors.off} off by more than {FACTOR}"
    )
    if any(cell.get("interval_s") for cell in known):
        yield (
            f"in the 80% interval: {share_held(known):.0%}; half width {half_width(known):.1%} "
            "(median)"
        )
    between = sum((measured_s(cell) or 0) <= SHORT_S for cell in timed)
    of_dram = sum(cell["limiter"] == "DRAM" for cell in known)
    yield f"5 to 30 µs: {between}; limited by DRAM in the model: {of_dram}"
    for title, key in (("limiter", "limiter"), ("L2", "l2"), ("row", "rows"), ("family", "family")):
        yield from _grouped(known, title, key)
    yield f"{'the worst':52}{'predicted':>10}{'measured':>10}  ratio  limiter"
    for cell in sorted(timed, key=factor_of, reverse=True)[: 3 * SHOWN]:
        yield _line(cell)
    yield "ten at random"
    for cell in random.Random(SEED).sample(known, min(SHOWN, len(known))):
        yield _line(cell)
    for cell in found:
        if "left_out" in cell:
            yield f"left out: {cell['label']}: {cell['left_out'][:150]}"


def limiters(part: Part, found: Sequence[Cell]) -> Iterator[str]:
    """Count the launches of which Nsight Compute says what the prediction says.

    Where a unit is busy for BUSY of its peak, the busiest unit of the prediction is to be that one,
    or another one within CLOSE. L1 and shared memory are one unit where shared memory has most of
    the wavefronts of L1's data path. Where none is busy, the launch must not be said to be at a
    roof, and the counters of what warps wait for, or of active SMs, must show the cause that is
    named.
    """
    counted = {row["name"]: row for row in measurements(part)["counters"]}
    right: dict[bool, list[bool]] = {True: [], False: []}
    wrong = []
    for cell in found:
        row = counted.get(cell["label"])
        if "predicted_s" not in cell or row is None:
            continue
        busy: dict[Resource, float] = defaultdict(float)
        for unit, of in UNIT_OF.items():
            busy[of] = max(busy[of], row.get(unit, 0.0))
        if row.get(OF_SHARED, 0.0) > row.get(DATA_PATH, 0.0) / 2:
            busy[Resource.SHARED_MEMORY] = row[DATA_PATH]
        most = max(busy.values())
        is_busy = most >= BUSY
        if is_busy:
            bounds = {Resource(name): one for name, one in cell["bounds_s"].items()}
            said = max(bounds.keys() - {Resource.LATENCY}, key=bounds.__getitem__)
            is_right = busy.get(said, 0.0) >= most - CLOSE
            counts = " ".join(f"{of} {x:.0f}%" for of, x in busy.items() if x >= most - CLOSE)
        elif "cause" in cell:
            said = cell["cause"]
            is_right = not cell["is_at_roof"] and said is not None and _shows(row, Effect(said))
            counts = f"{', '.join(_waits(row))}, active SMs {row.get('active SMs', 0.0):.0f}%"
        else:
            continue
        right[is_busy].append(is_right)
        if not is_right:
            wrong.append(f"  {cell['label']}: {said}, counted {counts}")
    for is_busy, words in ((True, "a unit is busy"), (False, "no unit is busy")):
        if right[is_busy]:
            told = f"{sum(right[is_busy])} of {len(right[is_busy])}"
            yield f"where {words} for {BUSY:.0f}% by Nsight Compute, the prediction agrees: {told}"
    yield from wrong


def limited_by_dram(part: Part) -> str:
    """Number of counted launches with DRAM as their busiest unit, at BUSY or more."""
    rows = measurements(part)["counters"]
    busy = [max(UNIT_OF, key=lambda unit: row.get(unit, 0.0)) for row in rows]
    found = sum(unit == "DRAM" and row[unit] >= BUSY for unit, row in zip(busy, rows, strict=True))
    return f"{part}: DRAM is the busiest unit, at {BUSY:.0f}% or more, of {found} of {len(rows)}"


def _waits(row: Mapping[str, float]) -> list[str]:
    """The two reasons for which warps wait longest."""
    reasons = {
        name.removeprefix("stall "): one
        for name, one in row.items()
        if name.startswith("stall ") and name != "stall not_selected"
    }
    return sorted(reasons, key=lambda name: -reasons[name])[:2]


def _shows(row: Mapping[str, float], cause: Effect) -> bool:
    """True if counters of a launch show that a cause is among those that cost most."""
    if cause in (Effect.IDLE_SMS, Effect.BLOCK_START):
        return row.get("active SMs", 100.0) < ACTIVE
    return bool(WAITS_OF.get(cause, frozenset()) & set(_waits(row)))


def share_held(known: Sequence[Cell]) -> float:
    """Share of the launches with an interval whose measured time is in it."""
    return fmean(
        cell["interval_s"][0] <= (measured_s(cell) or 0.0) <= cell["interval_s"][1]
        for cell in known
        if cell.get("interval_s")
    )


def half_width(known: Sequence[Cell]) -> float:
    """Median half width of the intervals, relative to the predicted times."""
    widths: list[float] = [
        (cell["interval_s"][1] - cell["interval_s"][0]) / 2 / cell["predicted_s"]
        for cell in known
        if cell.get("interval_s")
    ]
    return median(widths)


def _grouped(known: Sequence[Cell], title: str, key: str) -> Iterator[str]:
    groups = grouped(known, key)
    if groups:
        yield f"{title:26}launches  mean error  median predicted / measured"
    for name, of in groups.items():
        yield f"{name:26}{len(of):8}{fmean(map(error_of, of)):12.1%}{median_ratio(of):10.2f}"


def grouped(known: Sequence[Cell], key: str) -> dict[str, list[Cell]]:
    """Launches by a feature, of which one may have several; the largest groups first."""
    groups: dict[str, list[Cell]] = defaultdict(list)
    for cell in known:
        of = cell.get(key, ())
        for name in [of] if isinstance(of, str) else of:
            groups[name].append(cell)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


def median_ratio(known: Sequence[Cell]) -> float:
    """Median of predicted over measured times."""
    ratios: list[float] = [cell["predicted_s"] / (measured_s(cell) or 1) for cell in known]
    return median(ratios)


def error_of(cell: Cell) -> float:
    seen = measured_s(cell)
    return abs(cell["predicted_s"] / seen - 1) if seen and "predicted_s" in cell else MISSING


def factor_of(cell: Cell) -> float:
    seen = measured_s(cell)
    if not seen or "predicted_s" not in cell:
        return FACTOR
    ratio: float = cell["predicted_s"] / seen
    return max(ratio, 1 / ratio)


def _line(cell: Cell) -> str:
    seen = measured_s(cell) or 0.0
    if "predicted_s" not in cell:
        return f"{cell['label']:52}{'none':>10}{seen * 1e6:10.1f}"
    ends = cell.get("interval_s")
    within = f"  {ends[0] * 1e6:.1f} to {ends[1] * 1e6:.1f}" if ends else ""
    return (
        f"{cell['label'][:51]:52}{cell['predicted_s'] * 1e6:10.1f}{seen * 1e6:10.1f}"
        f"{cell['predicted_s'] / seen:7.2f}  {cell['limiter']}, L2 {cell['l2']}{within}"
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cubins", type=Path, nargs="?")
    parser.add_argument("--part", choices=PARTS, default="first")
    parser.add_argument("--l2", choices=list(L2State))
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--blind", action="store_true", help="predictions alone, nothing is printed"
    )
    parser.add_argument("--screen", type=Path, metavar="FILE", help="only what has no prediction")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--explained", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--join", type=Path, metavar="FILE", help="predictions of --blind")
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE")
    chosen = parser.parse_args(argv)
    if chosen.join:
        blind = json.loads(chosen.join.read_text(encoding="utf-8"))
        joined = {part: with_measured(part, of) for part, of in blind.items()}
        chosen.join.write_text(json.dumps(joined, indent=1), encoding="utf-8")
    if chosen.table or chosen.join:
        read = [
            json.loads(path.read_text(encoding="utf-8")) for path in chosen.table or [chosen.join]
        ]
        cells_of = [cell for one in read for of in one.values() for cell in of]
        print("\n".join(tables(cells_of)))
        for one in read:
            for part, of in one.items():
                print("\n".join([*limiters(part, of), limited_by_dram(part)]))
        return
    if chosen.cubins is None:
        parser.error("CUBINS is missing: give the folder of machine code")
    l2 = L2State(chosen.l2) if chosen.l2 else None
    if chosen.one:
        one = next(one for one in listed() if one.name == chosen.one)
        how = Explanation.EFFECTS if chosen.explained else Explanation.NONE
        print(json.dumps(predicted(one, chosen.cubins, DEVICE, l2 or one.l2, how)))
        return
    if chosen.screen:
        with chosen.screen.open("w", encoding="utf-8") as out:
            for row in screened(chosen.part, chosen.cubins, chosen.workers):
                print(json.dumps(row), file=out, flush=True)
        return
    found = []
    for cell in cells(chosen.part, chosen.cubins, l2, chosen.workers):
        found.append(cell)
        if chosen.json:
            chosen.json.write_text(json.dumps({chosen.part: found}, indent=1), encoding="utf-8")
    if not chosen.blind:
        found = with_measured(chosen.part, found)
        if chosen.json:
            chosen.json.write_text(json.dumps({chosen.part: found}, indent=1), encoding="utf-8")
        print("\n".join([*tables(found), *limiters(chosen.part, found)]))


if __name__ == "__main__":
    main()
