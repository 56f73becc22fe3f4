"""The rules of the model of time and traffic on trial: errors with each rule and without it.

    python -m benchmarks.rules_on_trial --part select --executions FOLDER --errors
    python -m benchmarks.rules_on_trial --part ladder --device h100-sxm
    python -m benchmarks.rules_on_trial --part tuned --only MEET_BY_WAITS
    python -m benchmarks.rules_on_trial --part choice

Every launch is executed once, and kept in a folder if one is named; the model then runs with all
rules, and without each of them (RULES of benchmarks/constants.py). The parts are those of
validation/timing/trial_launches.py, the ladder's launches in the runs that ship, launches that
`tune` measured (no number was fitted on them), and the rungs that `toolkit.rungs.best` takes.
Prints, of each rule, the times and the counters of L2 and DRAM that it changes by more than 1%: how
many launches and kernels, their mean error with the rule and without, and the bootstrap interval
(95%) of the difference. Exits with 1 if a rule's error is not known.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest.mock import patch

import numpy as np

import analysis.timing.predict
import toolkit.execution.launch_time
import toolkit.execution.prediction_cache
import toolkit.execution.simulate
import toolkit.execution.traffic
import toolkit.rungs.best
from analysis import sm as cycles
from analysis.devices import Device, find_device
from analysis.errors import ToolkitError
from analysis.l2_state import DEFAULT_L2
from analysis.problem import Gemm, parse_shape
from analysis.records.counters import MODELLED, of_traffic
from analysis.timing.model_runs import model_runs
from analysis.traffic.l2 import Traffic
from benchmarks.constants import BEST as CHOICE
from benchmarks.constants import (
    ERRORS,
    MODELLED_SM,
    RULES,
    SM,
    SM_CODE,
    TIMING,
    recorded_errors,
    rows,
    values_of,
)
from benchmarks.resimulate import as_it_was, compiled, plan_of
from benchmarks.traffic_tables import COUNTERS
from kernels.ladder import BEST
from kernels.selection import Selection, parse_selection
from kernels.variant import Variant
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.launch.progress import Progress
from toolkit.native import compile_library, compiler, file_of, libraries
from toolkit.profiling.on_simulator import SimulatorBench, residence
from toolkit.profiling.record import planned
from toolkit.rungs.matrices import Workload
from toolkit.store.recorded_runs import recorded_run
from toolkit.store.tuned import FOLDER, Tuned, selection_of
from toolkit.store.tuned import read as read_tuned
from validation import ROOT, recordings
from validation.timing.declared import launch_of
from validation.timing.trial_launches import DEVICES, PARTS, TRIALS
from validation.timing.trial_launches import recorded as recorded_trial

LEAST_BYTES = 2**20  # of a counter that is compared
CHANGED = 0.01
RESAMPLED = 2000
LIMIT_INSTRUCTIONS = 2 * 10**9
LADDERS = ("h100-sxm", "h200")
TUNED = recordings.read(ROOT / "validation/timing/recorded/tuned_h100.json")

Cell = dict[str, Any]

# Their names are put in place of others, or were.
PREDICTION: Any = analysis.timing.predict
RUNGS: Any = toolkit.rungs.best
# What changes the time of a launch, but none of its counters.
TIME_ALONE = (TIMING, MODELLED_SM, SM, SM_CODE)
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
    in_code = {name: value for module, name, value in changes if module == SM_CODE}
    of_sm = {name: value for module, name, value in changes if module == SM}
    with ExitStack() as stack:
        for module, name, value in changes:
            if module not in (SM, SM_CODE):
                stack.enter_context(patch(f"{module}.{name}", value))
        if of_sm:
            given = PREDICTION.constants_of
            changed = partial(_constants, given, of_sm)
            stack.enter_context(patch.object(PREDICTION, "constants_of", changed))
        if in_code:
            library = _other_library(tuple(in_code.items()))
            stack.enter_context(patch.object(cycles, "_library", lambda: library))
        yield


def _constants(given: Any, values: Mapping[str, Any], device: Device) -> Any:
    return replace(given(device), **values)


@cache
def _other_library(values: tuple[tuple[str, int], ...]) -> Any:
    """The native model of the SM, compiled with other numbers."""
    sources, flags = libraries()["analysis._cycles"]
    texts = {
        path.name: path.read_text(encoding="utf-8") for path in (ROOT / SM_CODE).glob("*.[ch]")
    }
    for name, value in values:
        number = re.compile(rf"\b{name} = [^,}}]+")
        places = [file for file, text in texts.items() for _ in number.findall(text)]
        assert len(places) == 1, f"{SM_CODE} has no single {name}"
        texts[places[0]] = number.sub(f"{name} = {value} ", texts[places[0]])
    folder = Path(mkdtemp(prefix="rules_on_trial-"))
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")
    command = compiler()
    assert command is not None, "no C compiler works here"
    changed = [folder / Path(source).name for source in sources]
    compile_library(command, changed, folder / file_of("analysis._cycles"), flags)
    with patch.object(cycles, "__file__", str(folder / "analysis" / "sm" / "__init__.py")):
        return cycles._library.__wrapped__()


def seconds(work: Any, device: Device) -> float:
    """The time of a launch: that of `analysis.timing.predict`."""
    # without the runs that explain the time, but do not decide it
    sm = PREDICTION.modelled_sm(work, device)
    return float(model_runs(sm, []).total.clocks / sm.clock_hz + sm.constants.launch_s)


@dataclass
class Executed:
    """Inputs of the model for one launch: the arguments of its two functions."""

    traffic: tuple[Sequence[Any], Mapping[str, Any]] | None = None
    work: Mapping[str, Any] | None = None

    def model(self, device: Device, usual: Cell | None = None) -> Cell:
        """The counters below L1, and the time; that of `usual` where it has the same counters."""
        assert self.traffic is not None
        args, options = self.traffic
        traffic = TRAFFIC_OF(*args, **options)
        if usual is not None and usual["traffic"] == traffic:
            return usual
        return {"traffic": traffic, "modelled": of_traffic(traffic)} | {
            "time_s": self.time(traffic, device)
        }

    def time(self, traffic: Traffic, device: Device) -> float:
        assert self.work is not None
        return seconds(WORK_OF(**{**self.work, "traffic": traffic}), device)


TRAFFIC_OF, WORK_OF = toolkit.execution.traffic.traffic_of, toolkit.execution.launch_time.work_of


@contextmanager
def executing() -> Iterator[Executed]:
    """Keep what the model is given of the launch that is executed meanwhile, the last time."""
    found = Executed()

    def traffic_of(*args: Any, **options: Any) -> Any:
        found.traffic = args, options
        return TRAFFIC_OF(*args, **options)

    def work_of(**known: Any) -> Any:
        found.work = known
        return WORK_OF(**known)

    toolkit.execution.launch_time.traffic_of = traffic_of  # type: ignore[attr-defined]
    toolkit.execution.launch_time.work_of = work_of
    toolkit.execution.prediction_cache.cached = lambda name: None  # type: ignore[attr-defined]
    yield found


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One launch: what was measured of it, and what the model takes; `left_out` says why not."""

    cell: Cell
    device: Device
    executed: Executed

    @property
    def is_complete(self) -> bool:
        return self.executed.work is not None

    def tried(self, rules: Mapping[str, Sequence[str]]) -> Cell:
        """The launch by the model, with all rules and without each."""
        if not self.is_complete:
            return self.cell
        usual = self.executed.model(self.device)
        off = {}
        for name, names in rules.items():
            with without(names):
                if all(module in TIME_ALONE for one in names for module, *_ in RULES[one]):
                    time_s = self.executed.time(usual["traffic"], self.device)
                    off[name] = usual | {"time_s": time_s}
                else:
                    off[name] = self.executed.model(self.device, usual)
        kept = ("modelled", "time_s")
        return self.cell | {
            "usual": {key: usual[key] for key in kept},
            "without": {name: {key: found[key] for key in kept} for name, found in off.items()},
        }


def of_trial(name: str, gpu: str) -> Launch:
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
        found = toolkit.execution.simulate.simulate(
            trial.code(times["architecture"]),
            **launch_of(case),
            device=device,
            workers=1,
            max_instructions=LIMIT_INSTRUCTIONS,
        )
    if executed.work is None:
        cell["left_out"] = found.prediction_basis
    return Launch(cell=cell, device=device, executed=executed)


def of_ladder(label: str, place: int, key: str) -> Launch:
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
        simulator.simulate(kernel, selection, residence(record, run.device, DEFAULT_L2))
    assert record.measured is not None
    cell: Cell = {
        "label": f"{label} {shape}",
        "kernel": label,
        "device": key,
        "measured_s": record.measured.median_s,
        "counted": record.counted.counters if record.counted else {},
    }
    return Launch(cell=cell, device=run.device, executed=executed)


def of_tuned(label: str, shape: str) -> Launch:
    """One launch that `tune` measured: a rung with its usual parameters or with others."""
    device, selection = find_device(TUNED["device"]), parse_selection(label)
    problem = parse_shape(shape)
    with executing() as executed:
        bench = SimulatorBench(device, sanitizes=False)
        bench.rung(planned(selection, problem, device), selection, Workload(problem, 0), Progress())
    cell: Cell = {
        "label": f"{label} {shape}",
        "kernel": selection.variant.name,
        "device": device.key,
        "measured_s": TUNED["median_us"][shape][label] / 1e6,
        "counted": {},
    }
    return Launch(cell=cell, device=device, executed=executed)


def kept(folder: Path | None, execute: Callable[[], Launch]) -> Launch:
    """An executed launch, from `folder` where it is there already."""
    if folder is None:
        return execute()
    assert isinstance(execute, partial)
    name = f"{execute.func.__name__} {execute.args}"
    path = folder / f"{sha256(name.encode()).hexdigest()[:16]}.pickle"
    if path.exists():
        cell, device, traffic, work = pickle.loads(path.read_bytes())
        return Launch(cell=cell, device=device, executed=Executed(traffic=traffic, work=work))
    launch: Launch = execute()
    executed = launch.executed
    parts = launch.cell, launch.device, executed.traffic, executed.work
    path.write_bytes(pickle.dumps(parts, protocol=5))
    return launch


def on_trial(
    execute: Callable[[], Launch], folder: Path | None, rules: Mapping[str, Sequence[str]]
) -> Cell:
    """A launch without each of some rules."""
    return kept(folder, execute).tried(rules)


def jobs(part: str, device: str) -> list[Any]:
    """Functions that execute the launches of a part."""
    if part == "tuned":
        times = TUNED["median_us"]
        return [partial(of_tuned, label, shape) for shape in times for label in times[shape]]
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


def chosen_rungs(device: Device, rules: Mapping[str, Sequence[str]]) -> Iterator[Cell]:
    """Speed of the rung that `rungs.best` chooses if nothing was tuned, and its estimates.

    For the run that ships: the time of the chosen rung against that of the fastest one. For tuned
    products: the estimate against the measured time.
    """
    run = recorded_run(device.key)
    assert run is not None
    times: dict[Gemm, dict[str, float]] = {}
    for record in run.records:
        if record.measured and record.rung and record.label != BEST.name:
            times.setdefault(record.shape, {})[record.label] = record.measured.median_s

    def of(shape: Gemm) -> float:
        return times[shape][toolkit.rungs.best.by_rule(device, shape).variant.name]

    def estimate(entry: Tuned) -> float:
        share = _share_of_peak(selection_of(entry))
        assert share is not None
        clocks = toolkit.rungs.best._clocks(selection_of(entry), share, device, entry.problem)
        return clocks / device.boost_clock_hz

    cells: list[tuple[str, str, float, Callable[[], float]]] = [
        ("choice", str(shape), min(those.values()), partial(of, shape))
        for shape, those in times.items()
    ]
    cells += [
        ("estimate", entry.shape, entry.time_s, partial(estimate, entry))
        for entry in read_tuned(FOLDER / f"{device.key}.json")
        if _share_of_peak(selection_of(entry)) is not None
    ]
    for kernel, label, measured_s, answer in cells:
        off = {}
        usual = answer()
        for name, names in rules.items():
            with without(names):
                off[name] = {"time_s": answer(), "modelled": {}}
        yield {
            "label": f"{kernel} {label}",
            "kernel": kernel,
            "measured_s": measured_s,
            "counted": {},
            "usual": {"time_s": usual, "modelled": {}},
            "without": off,
        }


def _share_of_peak(selection: Selection) -> float | None:
    """Share of peak that the estimate uses for a selection with any split or sharing, else None."""
    ladder: Sequence[Variant] = RUNGS.LADDER
    for variant in ladder:
        for one in variant.preferences if variant.name == selection.variant.name else ():
            asked = variant.resolve(one.parameters)
            sharing = variant.sharing
            ignored = ("band", *((sharing.splits, sharing.workers) if sharing else ()))
            if all(
                selection.parameters[name] == value
                for name, value in asked.items()
                if name not in ignored
            ):
                return one.share_of_peak
    return None


def errors(cells: Sequence[Cell], rule: str) -> dict[str, list[tuple[str, float, float]]]:
    """By what is predicted: (kernel, error with the rule, error without) where the rule matters."""
    found: dict[str, list[tuple[str, float, float]]] = {"time": [], "traffic": []}
    for cell in cells:
        usual, off = cell["usual"], cell["without"][rule]
        rows = [("time", cell["measured_s"], usual["time_s"], off["time_s"])]
        for name in COUNTERS.values():
            unit = MODELLED[name].unit.size_bytes
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


def summary(cells: Sequence[Cell], rule: str) -> dict[str, Any]:
    """By what is predicted: cells that a rule changes, of how many kernels, and their errors."""
    found: dict[str, Any] = {}
    for what, changed in errors(cells, rule).items():
        one: dict[str, Any] = {"cells": len(changed), "kernels": len({row[0] for row in changed})}
        if changed:
            low, high = interval([row[2] - row[1] for row in changed])
            one |= {
                "with": float(np.mean([row[1] for row in changed])),
                "without": float(np.mean([row[2] for row in changed])),
                "gain": [low, high],
            }
        found[what] = one
    return found


def table(cells: Sequence[Cell], rules: Sequence[str]) -> Iterator[str]:
    """A line for each rule and each kind of prediction that it changes."""
    yield (
        f"{'without':26}{'of':9}{'cells':>6}{'kernels':>8}{'error with':>12}{'without':>9}"
        "   gain, 95%"
    )
    for rule in rules:
        for what, one in summary(cells, rule).items():
            line = f"{rule:26}{what:9}{one['cells']:6}{one['kernels']:8}"
            if one["cells"]:
                low, high = one["gain"]
                line += f"{one['with']:12.1%}{one['without']:9.1%}   {low:+.1%} to {high:+.1%}"
            yield line


def record(path: Path, part: str, cells: Sequence[Cell], rules: Sequence[str]) -> None:
    """Put the errors of rules into the file that benchmarks/constants.py reads."""
    every = rows()
    found = recorded_errors()
    of_part = found.setdefault(part, {})
    for rule in rules:
        if rule in RULES:
            of_part[rule] = {"values": values_of(rule, every), **summary(cells, rule)}
    recordings.write(path, found)


def tried_cells(asked: Sequence[Any], chosen: argparse.Namespace, rules: Any) -> Iterator[Cell]:
    """The launches of a part, each without each rule, as they come."""
    if chosen.executions is not None:
        chosen.executions.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(chosen.processes, get_context("spawn")) as pool:
        futures = {
            pool.submit(on_trial, execute, chosen.executions, rules): execute for execute in asked
        }
        for done, future in enumerate(as_completed(futures), start=1):
            name = futures[future].args[0]
            try:
                yield future.result()
            except (ToolkitError, AssertionError) as error:
                yield {"label": name, "left_out": str(error)}
            print(f"{done} of {len(asked)}: {name}", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=(*PARTS, "ladder", "tuned", "choice"), required=True)
    parser.add_argument("--device", choices=(*DEVICES, *LADDERS), default="h200")
    parser.add_argument("--only", nargs="+", metavar="RULE", help="default: every rule")
    parser.add_argument("--executions", type=Path, metavar="FOLDER", help="kept for the next time")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--errors", action="store_true", help=f"record them in {ERRORS.name}")
    chosen = parser.parse_args(argv)
    of_choice = {rule for rule, changes in RULES.items() if changes[0][0] == CHOICE}
    mine = of_choice if chosen.part == "choice" else RULES.keys() - of_choice
    rules: dict[str, Sequence[str]] = {
        rule: (rule,) for rule in RULES if rule in (chosen.only or mine)
    }
    if chosen.part == "choice":
        cells = list(chosen_rungs(find_device(chosen.device), rules))
    else:
        rules |= {} if chosen.only else GROUPS
        cells = list(tried_cells(jobs(chosen.part, chosen.device), chosen, rules))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(cells, indent=1), encoding="utf-8")
    complete = [cell for cell in cells if "usual" in cell]
    print("\n".join(table(complete, list(rules))))
    if chosen.errors:
        record(ERRORS, f"{chosen.part} {chosen.device}", complete, list(rules))
    for cell in cells:
        if "left_out" in cell:
            print(f"left out: {cell['label']}: {cell['left_out']}")
    sys.exit(any("usual" not in cell and "left_out" not in cell for cell in cells))


if __name__ == "__main__":
    main()
