"""The rules of the model of time and traffic on trial: errors with each rule and without it.

    python benchmarks/rules_on_trial.py --part select --json select.json
    python benchmarks/rules_on_trial.py --part ladder --device h100-sxm

Every launch is executed once; the model then runs with all rules, and without each of them. The
parts are those of tests/timing/trial_launches.py, and the ladder's launches in the runs that ship.
Prints, of each rule, the times and the counters of L2 and DRAM that it changes by more than 1%:
how many launches and kernels, their mean error with the rule and without, and the bootstrap
interval (95%) of the difference. Exits with 1 if a rule's error is not known.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests" / "timing"))
from resimulate import as_it_was, compiled, plan_of
from timed_launches import OPTIONS, rng
from trial_launches import DEVICES, PARTS, TRIALS
from trial_launches import recorded as recorded_trial

import analysis.schedule
import analysis.timing
import analysis.traffic
import toolkit.launch_prediction
import toolkit.launch_traffic
import toolkit.prediction
import toolkit.simulated_ladder
import toolkit.simulator
from analysis.coalescing import SECTOR_BYTES
from analysis.devices import Device, find_device
from analysis.errors import ToolkitError
from analysis.schedule import LOADS, Courses
from analysis.traffic import Traffic
from kernels.registry import BEST
from toolkit.recorded import recorded_run
from toolkit.simulated_ladder import LadderSimulator, residence
from toolkit.workload import Workload

COUNTERS = (
    "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
)
LEAST_BYTES = 2**20  # of a counter that is compared
CHANGED = 0.01
RESAMPLED = 2000
LIMIT_INSTRUCTIONS = 2 * 10**9
LADDERS = ("h100-sxm", "h200")

Change = tuple[ModuleType, str, Any]
Cell = dict[str, Any]

SCHEDULE, TRAFFIC, TIMING = analysis.schedule, analysis.traffic, analysis.timing


def _even(lives: Any, *args: Any, **options: Any) -> Courses:
    return Courses.even(np.ones(len(lives)))


def _as_before(begins: Any, courses: Courses, *args: Any) -> tuple[Any, Courses]:
    return begins, courses


# What takes the place of each rule. Those of `analysis.sm_constants` begin with "sm:".
RULES: Mapping[str, Sequence[Change]] = {
    "HELD_BY_CONFLICTS": [(SCHEDULE, "HELD_BY_CONFLICTS", LOADS)],
    "ALONE_WITH_FEW_WARPS": [(SCHEDULE, "ALONE_WITH_FEW_WARPS", {})],
    "AHEAD": [(SCHEDULE, "AHEAD", {}), (SCHEDULE, "AHEAD_WITHOUT_NEIGHBOUR", LOADS)],
    "STEPS_WITHOUT_BARRIERS": [(SCHEDULE, "STEPS_WITHOUT_BARRIERS", 1e-9)],
    "STEPS_IN_STEP": [(SCHEDULE, "STEPS_IN_STEP", 1e9)],
    "PACES_OF_COPIES": [(SCHEDULE, "PACES_OF_COPIES", 0.0)],
    "FAST_BY": [(SCHEDULE, "FAST_BY", 0.0)],
    "LIFE_ALONE": [(toolkit.launch_traffic, "courses", _even)],
    "DRIFT": [(toolkit.launch_traffic, "drifted", _as_before)],
    "BUSY_ALONE_THREADS": [(SCHEDULE, "BUSY_ALONE_THREADS", 1 << 20)],
    "BUSY_AHEAD_THREADS": [(SCHEDULE, "BUSY_AHEAD_THREADS", 512)],
    "SHARED_BY_COPIES": [(TRAFFIC, "SHARED_BY_COPIES", 0.0)],
    "MOST_LINES": [(toolkit.launch_traffic, "MOST_LINES", 0)],
    "MERGED_STORES": [(TRAFFIC, "MERGED_STORES", 0.0)],
    "BOTH_SIDES": [(TRAFFIC, "_BOTH_SIDES", 1.0)],
    "DIRTY_PART": [(TRAFFIC, "_DIRTY_PART", 1.0)],
    "FAR_FROM_WRITER": [(TRAFFIC, "FAR_FROM_WRITER", 1.0)],
    "MERGING_SMS": [(TRAFFIC, "_MERGING_SMS", 1)],
    "MEET_BY_WAITS": [(TIMING, "MEET_BY_WAITS", 0.0)],
    "DIRTY_SHARE": [(TIMING, "DIRTY_SHARE", 0.0)],
    "DIRTY_AT_FIRST": [(TIMING, "DIRTY_AT_FIRST", 1.0)],
    "dram_spread": [(TIMING, "sm:dram_spread", 0)],
    "dram_scatter": [(TIMING, "sm:dram_scatter", 0.0)],
    "flag_latency": [(TIMING, "sm:flag_latency", 0)],
}
FIRST = (
    "HELD_BY_CONFLICTS",
    "FAST_BY",
    "DRIFT",
    "LIFE_ALONE",
)
GROUPS = {"first candidates": FIRST, "with MERGED_STORES": (*FIRST, "MERGED_STORES")}


@contextmanager
def without(names: Sequence[str]) -> Iterator[None]:
    """The model as it is without some rules."""
    changes = [change for name in names for change in RULES[name]]
    kept = []
    for module, name, value in changes:
        if name.startswith("sm:"):
            attribute, given = "constants_for", module.constants_for
            changed = partial(_constants, given, changes)
        else:
            attribute, given, changed = name, getattr(module, name), value
        kept.append((module, attribute, given))
        setattr(module, attribute, changed)
    try:
        yield
    finally:
        for module, name, given in reversed(kept):
            setattr(module, name, given)


def _constants(given: Any, changes: Sequence[Change], architecture: str) -> Any:
    found = {name[3:]: value for _, name, value in changes if name.startswith("sm:")}
    return replace(given(architecture), **found)


@dataclass
class Executed:
    """What the model takes of one launch: the arguments of its two functions."""

    traffic: tuple[Sequence[Any], Mapping[str, Any]] | None = None
    work: tuple[Sequence[Any], Mapping[str, Any]] | None = None

    def model(self, device: Device, usual: Cell | None = None) -> Cell:
        """The counters below L1, and the time; that of `usual` where it has the same counters."""
        assert self.traffic is not None
        args, options = self.traffic
        traffic = TRAFFIC_OF(*args, **options)
        if usual is not None and usual["traffic"] == traffic:
            return usual
        return {"traffic": traffic, "modelled": traffic.counters} | {
            "time_s": self.time(traffic, device)
        }

    def time(self, traffic: Traffic, device: Device) -> float:
        assert self.work is not None
        (kernel, geometry, counts, instructions, _), known = self.work
        work = WORK_OF(kernel, geometry, counts, instructions, traffic, **known)
        return analysis.timing.predict(work, device).time_s


TRAFFIC_OF, WORK_OF = toolkit.launch_traffic.traffic_of, toolkit.prediction.work_of


@contextmanager
def executing() -> Iterator[Executed]:
    """Keep what the model is given of the launch that is executed meanwhile, the last time."""
    found = Executed()

    def traffic_of(*args: Any, **options: Any) -> Any:
        found.traffic = args, options
        return TRAFFIC_OF(*args, **options)

    def work_of(*args: Any, **known: Any) -> Any:
        found.work = args, known
        return WORK_OF(*args, **known)

    for module in (toolkit.simulator, toolkit.simulated_ladder):
        module.traffic_of = traffic_of  # type: ignore[attr-defined]
    for module in (toolkit.launch_prediction, toolkit.simulated_ladder):
        module.work_of = work_of  # type: ignore[attr-defined]
    toolkit.prediction.cached = lambda name: None  # type: ignore[assignment]
    yield found


def tried(executed: Executed, device: Device) -> Cell:
    """The launch by the model, with all rules and without each, and without the groups."""
    usual = executed.model(device)
    off = {}
    for name, names in ({name: (name,) for name in RULES} | GROUPS).items():
        with without(names):
            if any(module is TIMING for one in names for module, *_ in RULES[one]):
                off[name] = usual | {"time_s": executed.time(usual["traffic"], device)}
            else:
                off[name] = executed.model(device, usual)
    kept = ("modelled", "time_s")
    return {
        "usual": {key: usual[key] for key in kept},
        "without": {name: {key: found[key] for key in kept} for name, found in off.items()},
    }


def of_trial(name: str, gpu: str) -> Cell:
    """One launch of those on trial."""
    times = recorded_trial(gpu)
    trial, case = next((t, c) for t in TRIALS for c in t.cases if c.name == name)
    flushed = next(c for c in times["cells"] if (c["label"], c["l2"]) == (name, "flushed"))
    cell: Cell = {
        "label": name,
        "kernel": trial.kernel,
        "device": gpu,
        "is_product": trial.is_product,
        "measured_s": flushed["median_s"],
        "counted": next(c["counters"] for c in times["counted"] if c["label"] == name),
    }
    device = find_device(times["device"])
    with executing() as executed:
        found = toolkit.simulator.simulate(
            trial.code(times["architecture"]),
            grid=case.grid,
            block=case.block,
            dynamic_shared_bytes=case.dynamic_shared_bytes,
            arguments=case.make(rng()),
            options=OPTIONS,
            device=device,
            workers=1,
            max_instructions=LIMIT_INSTRUCTIONS,
        )
    if executed.work is None:
        return cell | {"left_out": found.prediction_basis}
    return cell | tried(executed, device)


def of_ladder(label: str, place: int, key: str) -> Cell:
    """One rung at one of the shapes of a run that ships."""
    run = recorded_run(key)
    assert run is not None
    run = replace(run, environment=replace(run.environment, software={}))
    plan = plan_of(run)
    shape = plan.shapes[place]
    record = next(r for r in run.records if (r.shape, r.label) == (shape, label))
    (selection,) = (s for s in plan.at(shape, run.device).selections if s.label == label)
    kernel = as_it_was(compiled(selection, run.device.sm_arch), record)
    simulator = LadderSimulator(Workload(shape, run.seed))
    with executing() as executed:
        simulator.simulate(kernel, selection, residence(record, run.device))
    assert record.measured is not None
    return {
        "label": f"{label} {shape}",
        "kernel": label,
        "device": key,
        "measured_s": record.measured.median_s,
        "counted": record.counted.counters if record.counted else {},
        **tried(executed, run.device),
    }


def jobs(part: str, device: str) -> list[Any]:
    """The launches of a part, each to be executed and tried."""
    if part != "ladder":
        return [
            partial(of_trial, case.name, device)
            for trial in TRIALS
            if trial.part == part
            for case in trial.cases
        ]
    run = recorded_run(device)
    assert run is not None
    shapes = list(dict.fromkeys(record.shape for record in run.records))
    return [
        partial(of_ladder, record.label, shapes.index(record.shape), device)
        for record in reversed(run.records)
        if record.measured and record.rung and record.predicted and record.label != BEST.name
    ]


def errors(cells: Sequence[Cell], rule: str) -> dict[str, list[tuple[str, float, float]]]:
    """By what is predicted: (kernel, error with the rule, error without) where the rule matters."""
    found: dict[str, list[tuple[str, float, float]]] = {"time": [], "traffic": []}
    for cell in cells:
        usual, off = cell["usual"], cell["without"][rule]
        rows = [("time", cell["measured_s"], usual["time_s"], off["time_s"])]
        for name in COUNTERS:
            unit = 1 if name.startswith("dram") else SECTOR_BYTES
            counted = cell["counted"].get(name, 0)
            if counted * unit >= LEAST_BYTES:
                both = (one["modelled"][name] for one in (usual, off))
                rows.append(("traffic", counted, *both))
        for what, true, ours, other in rows:
            if abs(other / ours - 1) > CHANGED if ours else other:
                found[what].append((cell["kernel"], abs(ours / true - 1), abs(other / true - 1)))
    return found


def interval(gains: Sequence[float]) -> tuple[float, float]:
    """The bootstrap interval (95%) of a mean."""
    chosen = np.random.default_rng(0).choice(gains, (RESAMPLED, len(gains)))
    low, high = np.quantile(chosen.mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def table(cells: Sequence[Cell]) -> Iterator[str]:
    """A line for each rule and each kind of prediction that it changes."""
    yield (
        f"{'without':24}{'of':9}{'cells':>6}{'kernels':>8}{'error with':>12}{'without':>9}"
        "   gain, 95%"
    )
    for rule in (*RULES, *GROUPS):
        for what, rows in errors(cells, rule).items():
            line = f"{rule:24}{what:9}{len(rows):6}{len({kernel for kernel, *_ in rows}):8}"
            if rows:
                having, lacking = (float(np.mean([row[k] for row in rows])) for k in (1, 2))
                low, high = interval([row[2] - row[1] for row in rows])
                line += f"{having:12.1%}{lacking:9.1%}   {low:+.1%} to {high:+.1%}"
            yield line


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=(*PARTS, "ladder"), required=True)
    parser.add_argument("--device", choices=(*DEVICES, *LADDERS), default="h200")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args(argv)
    cells: list[Cell] = []
    asked = jobs(chosen.part, chosen.device)
    with ProcessPoolExecutor(chosen.processes, get_context("spawn")) as pool:
        futures = {pool.submit(job): job for job in asked}
        for done, future in enumerate(as_completed(futures), start=1):
            name = futures[future].args[0]
            try:
                cells.append(future.result())
            except (ToolkitError, AssertionError) as error:
                cells.append({"label": name, "left_out": str(error)})
            print(f"{done} of {len(asked)}: {name}", file=sys.stderr, flush=True)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(cells, indent=1), encoding="utf-8")
    print("\n".join(table([cell for cell in cells if "usual" in cell])))
    for cell in cells:
        if "left_out" in cell:
            print(f"left out: {cell['label']}: {cell['left_out']}")
    sys.exit(any("usual" not in cell and "left_out" not in cell for cell in cells))


if __name__ == "__main__":
    main()
