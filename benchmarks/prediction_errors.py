"""Errors of predicted times against times measured on an H200. Needs no GPU.

    python -m benchmarks.prediction_errors                       # a table per part
    python -m benchmarks.prediction_errors --json errors.json    # also as a file
    python -m benchmarks.prediction_errors --part select --device h100

The part "ladder": every rung at every recorded shape. Rungs with other than default parameters are
held out: nothing was fitted on them. "published": times that others measured on an RTX 3090 and a
T4, for the kernels that they timed (`validation/timing/published_kernels.cu`).

The part "recorded": every rung of the runs that ship with the package, as predicted there;
`benchmarks/resimulate.py` predicts them anew.

The part "kernels": launches of validation/timing/timed_launches.py, simulated for the device of
validation/timing/recorded/ and compared with the times there. The model assumes a dirty L2; with
`--l2 warm` these and the launches on trial are predicted for a warm one. Launches that are not
predicted, or take longer to simulate than `--limit-s`, are listed with the reason.

The parts "fit", "select" and "final": launches of validation/timing/trial_launches.py, for which no
rule was made, on one of two GPUs. Rules may be fitted on the first and chosen on the second. Use
"final" once, when no rule changes any more. Each of these parts is predicted only if it is named.
The tables also have the modelled and the counted traffic of these launches.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

from analysis.devices import Device, find_device
from analysis.errors import ToolkitError
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.occupancy import occupancy
from analysis.problem import Gemm, parse_shape
from analysis.records.counters import MODELLED
from analysis.timing.predicted import Explanation, Predicted
from benchmarks.recorded_tables import SHORT_S
from benchmarks.traffic_tables import COUNTERS, PROMISED, SHIPPED, ratio_of
from kernels.ladder import BEST
from kernels.selection import Selection, parse_selection
from kernels.variant import Variant
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.execution.simulator import Simulator
from toolkit.execution.traffic import Residence
from toolkit.launch.launch import launch_geometry
from toolkit.machine_code.kernel import Kernel
from toolkit.rungs.launch import compile_for
from toolkit.rungs.matrices import Workload
from toolkit.store.recorded_runs import recorded_run
from validation import ROOT, recordings
from validation.corpus.case import Case
from validation.timing.declared import Declared, rng
from validation.timing.published_kernels import timed
from validation.timing.published_times import publications
from validation.timing.timed_launches import TIMED
from validation.timing.trial_launches import DEVICES, TRIALS
from validation.timing.trial_launches import PARTS as TRIAL_PARTS
from validation.timing.trial_launches import recorded as recorded_trial

RECORDED = ROOT / "validation" / "timing" / "recorded" / "times_h200.json"
LIMIT_S = 60.0  # of processor time, as machines are shared
LEAST_PUBLISHED = 1024
# of a warp: what the slowest of these machines executes in a second of processor time, at the least
INSTRUCTIONS_PER_S = 10**7 / 3

Cell = dict[str, Any]


class TakesTooLongError(Exception):
    """A launch that is not worth waiting for."""


def recorded() -> Mapping[str, Any]:
    """The times that a GPU took."""
    document: Mapping[str, Any] = recordings.read(RECORDED)
    return document


def measured(times: Mapping[str, Any], kind: str) -> dict[str, dict[str, float]]:
    """The medians of one kind of launch, by label and state of L2."""
    found: dict[str, dict[str, float]] = {}
    for cell in times["cells"]:
        if cell["kind"] == kind and "median_s" in cell:
            found.setdefault(cell["label"], {})[L2State(cell["l2"])] = cell["median_s"]
    return found


def kernels(limit_s: float = LIMIT_S, l2: L2State = DEFAULT_L2) -> Iterator[Cell]:
    """Each launch of the table of which a time was recorded, predicted."""
    times = recorded()
    yield from _of_declared(TIMED, times, measured(times, "kernel"), limit_s, l2)


def on_trial(
    part: str, gpu: str, limit_s: float = LIMIT_S, l2: L2State = DEFAULT_L2
) -> Iterator[Cell]:
    """Each launch of a part of those on trial, predicted for the GPU that it was timed on."""
    times = recorded_trial(gpu)
    counted = {one["label"]: one["counters"] for one in times["counted"]}
    trials = [trial for trial in TRIALS if trial.part == part]
    for cell in _of_declared(trials, times, measured(times, "trial"), limit_s, l2):
        counters = counted[cell["label"]]
        yield cell | {
            "timed_on": times["device"],
            "counted": {name: counters[name] for name in MODELLED},
        }


def _of_declared(
    declared: Sequence[Declared],
    times: Mapping[str, Any],
    found: Mapping[str, Mapping[str, float]],
    limit_s: float,
    l2: L2State,
) -> Iterator[Cell]:
    for one in declared:
        for case in one.cases:
            if case.name in found:
                code = one.code(times["architecture"])
                yield {
                    "label": case.name,
                    **_predicted(code, case, times["device"], limit_s, l2),
                } | {f"measured_{state}_s": one for state, one in found[case.name].items()}


def _predicted(code: Kernel, case: Case, device: str, limit_s: float, l2: L2State) -> Cell:
    begun = time.process_time()

    def advance(done: int, of: int) -> None:
        if time.process_time() - begun > limit_s:
            raise TakesTooLongError

    simulator = Simulator(
        device=find_device(device),
        l2=l2,
        advance=advance,
        max_instructions=int(limit_s * INSTRUCTIONS_PER_S),
        explanation=Explanation.NONE,
        outputs=False,
    )
    geometry = launch_geometry(case.grid, case.block, case.dynamic_shared_bytes)
    try:
        execution = simulator.run(code, geometry, case.make(rng()))
    except TakesTooLongError:
        return {"left_out": f"its simulation takes more than {limit_s:g} s of processor time"}
    except ToolkitError as error:
        return {"left_out": str(error)}
    counters = execution.counters
    traffic = {"modelled": {name: counters[name] for name in MODELLED if name in counters}}
    if execution.predicted is None:
        return {"left_out": execution.prediction_basis, **traffic}
    return _cell(execution.predicted) | {"basis": execution.prediction_basis, **traffic}


def _cell(found: Predicted) -> Cell:
    return {
        "predicted_s": found.time_s,
        "l2": found.l2,
        "limiter": found.limiter,
        "limiter_share": found.limiter_share,
        "next_limiter": found.next_limiter,
        "next_share": found.next_share,
        "bounds_s": {bound.name: bound.time_s for bound in found.bounds},
    }


def ladder(limit_s: float = LIMIT_S, *, only_held_out: bool = False) -> Iterator[Cell]:
    """Each rung at each shape of which a time was recorded with L2 dirty, predicted.

    Constants were fitted on rungs with their default parameters; the others are held out.
    """
    del limit_s  # the ladder takes seconds at any shape
    times = recorded()
    device = find_device(times["device"])
    found: dict[tuple[str, str], dict[str, float]] = {}
    for cell in times["cells"]:
        if cell["kind"] != "kernel" and "median_s" in cell:
            times_of = found.setdefault((cell["shape"], cell["label"]), {})
            times_of[L2State(cell["l2"])] = cell["median_s"]
    for shape, of_shape in groupby(found.items(), key=lambda item: item[0][0]):
        simulator = LadderSimulator(Workload(parse_shape(shape), seed=0))
        for (_, label), medians in of_shape:
            if only_held_out and ":" not in label:
                continue
            if isinstance(parse_selection(label).variant, Variant) and L2State.DIRTY in medians:
                yield {
                    "label": f"{label} {shape}",
                    "timed_on": device.key,
                    "held_out": ":" in label,
                    **of_rung(simulator, parse_selection(label), device),
                } | {f"measured_{l2}_s": median_s for l2, median_s in medians.items()}


def of_recorded_runs(limit_s: float = LIMIT_S) -> Iterator[Cell]:
    """Each rung at each shape of the runs that ship, as predicted there, L2 dirty."""
    del limit_s
    for key in SHIPPED:
        run = recorded_run(key)
        assert run is not None
        for record in run.records:
            if record.predicted and record.measured and record.label != BEST.name:
                yield {
                    "label": f"{record.label} {record.shape}",
                    "device": key,
                    "held_out": False,
                    "measured_dirty_s": record.measured.median_s,
                    **_cell(record.predicted),
                }


def published(limit_s: float = LIMIT_S) -> Iterator[Cell]:
    """Published times of an RTX 3090 and a T4 at 1024 and above; nothing was fitted on them."""
    del limit_s
    for publication in publications():
        device = find_device(publication.device)
        if device.key not in ("rtx-3090", "t4"):
            continue
        for place, size in enumerate(publication.sizes):
            simulator = LadderSimulator(Workload(Gemm(m=size, n=size, k=size), seed=0))
            for timing in publication.timings if size >= LEAST_PUBLISHED else ():
                if isinstance(parse_selection(timing.rung).variant, Variant):
                    yield {
                        "label": f"{device.key} {timing.rung} {size}",
                        "device": device.key,
                        "timed_on": device.key,
                        "measured_dirty_s": timing.seconds[place],
                        **of_rung(simulator, timed(device.key, timing.rung), device),
                    }


def of_rung(simulator: LadderSimulator, selection: Selection, device: Device) -> Cell:
    variant = selection.variant
    assert isinstance(variant, Variant)
    cubin = compile_for(device, selection)
    executed = variant.executed(simulator.workload.problem)
    geometry = variant.geometry(selection.parameters, executed)
    resident = occupancy(
        device,
        threads_per_block=geometry.threads_per_block,
        registers_per_thread=cubin.resources.registers_per_thread,
        shared_bytes_per_block=cubin.resources.static_shared_bytes + geometry.dynamic_shared_bytes,
    )
    residence = Residence(device=device, blocks_per_sm=resident.blocks_per_sm)
    try:
        found = simulator.simulate(cubin, selection, residence)
    except ToolkitError as error:
        return {"left_out": str(error)}
    return _cell(found.predicted) if found.predicted else {"left_out": found.prediction_basis}


def ratio(cell: Cell, l2: str | None = None) -> float | None:
    """Predicted over measured in the state of L2 that is predicted, None where one is missing."""
    l2 = l2 or cell.get("l2", DEFAULT_L2)
    seen = cell.get(f"measured_{l2}_s")
    return cell["predicted_s"] / seen if seen and "predicted_s" in cell else None


def mean_error(cells: Sequence[Cell], l2: str | None = None) -> float:
    """The mean of |ratio - 1|."""
    return fmean(_errors(cells, l2))


def _errors(cells: Sequence[Cell], l2: str | None = None) -> list[float]:
    return [abs(found - 1) for cell in cells if (found := ratio(cell, l2)) is not None]


def table(cells: Sequence[Cell]) -> Iterator[str]:
    """One line per launch, the mean errors, and what was left out."""
    yield f"{'':40}predicted      dirty  ratio       warm  ratio  limiter, share (µs)"
    shown = [cell for cell in cells if "predicted_s" in cell]
    for cell in shown:
        columns = [f"{cell['label']:38}{cell['predicted_s'] * 1e6:11.1f}"]
        for l2 in (L2State.DIRTY, L2State.WARM):
            found = ratio(cell, l2)
            columns.append(
                f"{cell[f'measured_{l2}_s'] * 1e6:11.1f}{found:7.2f}" if found else " " * 18
            )
        yield f"{''.join(columns)}  {cell['limiter']}, {cell['limiter_share']:.0%}"
    for name, group in _groups(shown).items():
        if group:
            worst = max(group, key=lambda cell: abs((ratio(cell) or 1) - 1))
            errors = _errors(group)
            beyond = quantiles(errors, n=10, method="inclusive")[-1] if errors[1:] else errors[0]
            yield (
                f"{name}: {len(group)} launches, absolute error: median {median(errors):.1%}, "
                f"mean {fmean(errors):.1%}, 90th percentile {beyond:.1%}, "
                f"worst {ratio(worst):.2f} ({worst['label']})"
            )
    yield from _out_of_order(shown)
    if len(shown) < len(cells):
        yield f"{len(cells) - len(shown)} launches without a time"
    for cell in cells:
        if "left_out" in cell:
            yield f"left out: {cell['label']}: {cell['left_out']}"


def traffic_table(cells: Sequence[Cell]) -> Iterator[str]:
    """Modelled over counted traffic, a line per launch, and how many are near."""
    compared = [cell for cell in cells if cell.get("modelled")]
    ratios = {
        name: [ratio_of(cell["modelled"], cell["counted"], counter) for cell in compared]
        for name, counter in COUNTERS.items()
    }
    yield f"{'modelled over counted':38}{''.join(f'{name:>13}' for name in ratios)}"
    for cell, *found in zip(compared, *ratios.values(), strict=True):
        columns = (f"{'–' if one is None else f'{one:.2f}':>13}" for one in found)
        yield f"{cell['label']:38}{''.join(columns)}"
    for name, found in ratios.items():
        known = [one for one in found if one is not None]
        near = sum(abs(one - 1) <= PROMISED[name] for one in known)
        yield f"{name}: {near} of {len(known)} within {PROMISED[name]:.0%}"


def _groups(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    timed = [cell for cell in cells if ratio(cell) is not None]
    devices = {cell["device"] for cell in timed if "device" in cell}
    if devices:
        return {
            f"{key}, {SHORT_S * 1e6:.0f} µs and more": [
                cell
                for cell in timed
                if cell["device"] == key and cell["measured_dirty_s"] >= SHORT_S
            ]
            for key in sorted(devices)
        }
    fitted = [cell for cell in timed if not cell.get("held_out")]
    return {
        "all": timed,
        f"{SHORT_S * 1e6:.0f} µs and more": [
            cell for cell in fitted if cell["measured_dirty_s"] >= SHORT_S
        ],
        "shorter": [cell for cell in fitted if cell["measured_dirty_s"] < SHORT_S],
        "held out (other parameters than the defaults)": [
            cell for cell in timed if cell.get("held_out")
        ],
    }


def _out_of_order(cells: Sequence[Cell]) -> Iterator[str]:
    """Pairs of rungs at one shape that are predicted the other way round, beyond 5%."""
    for one in cells:
        for other in cells:
            if "held_out" not in one or one["label"].split()[1] != other["label"].split()[1]:
                continue
            if one.get("device") != other.get("device"):
                continue
            measured_faster = one["measured_dirty_s"] * 1.05 < other["measured_dirty_s"]
            if measured_faster and one["predicted_s"] > other["predicted_s"]:
                yield f"the wrong way round: {one['label']} and {other['label']}"


PARTS: dict[str, Callable[[float], Iterator[Cell]]] = {
    "ladder": ladder,
    "recorded": of_recorded_runs,
    "kernels": kernels,
    "published": published,
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--part", choices=(*PARTS, *TRIAL_PARTS), help="default: all that are not on trial"
    )
    parser.add_argument("--device", choices=DEVICES, default="h200", help="of a trial")
    parser.add_argument("--l2", choices=list(L2State), default=DEFAULT_L2, help="of other kernels")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="processor time of each")
    parser.add_argument("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args(argv)
    parts = [chosen.part] if chosen.part else list(PARTS)
    document: dict[str, list[Cell]] = {}
    for part in parts:
        document[part] = list(
            on_trial(part, chosen.device, chosen.limit_s, L2State(chosen.l2))
            if part in TRIAL_PARTS
            else kernels(chosen.limit_s, L2State(chosen.l2))
            if part == "kernels"
            else PARTS[part](chosen.limit_s)
        )
        print("\n".join(table(document[part])), flush=True)
        if part in TRIAL_PARTS:
            print("\n".join(traffic_table(document[part])), flush=True)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
