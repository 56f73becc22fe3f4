"""Configurations in the order of the times that they should take, so that few need a run.

Closed forms are known of all of them at once, a prediction costs a second or two each: closed forms
decide who is predicted, predictions decide who is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.devices import Device
from analysis.errors import InputError, LaunchError, ToolkitError, UnavailableError
from analysis.geometry import ceil_div
from analysis.problem import Gemm
from analysis.records.profile import Record
from analysis.records.tuning import Candidate
from kernels.selection import Selection
from toolkit.execution.rung_simulation import LadderSimulator, Simulation, residence
from toolkit.launch.progress import Progress
from toolkit.profiling.record import planned, with_resources
from toolkit.rungs.launch import compile_for
from toolkit.rungs.matrices import Workload, wrong_result


def ranked(
    selections: Sequence[Selection],
    problem: Gemm,
    device: Device,
    *,
    seed: int,
    most: int,
    progress: Progress,
) -> list[Candidate]:
    """All configurations, those that can run first, by their expected times.

    `most` of them are compiled and predicted. Raises InputError where none runs on `device`.
    """
    estimated = sorted(
        (_estimated(selection, problem, device) for selection in selections),
        key=lambda pair: pair[0].estimate_s,
    )
    fit = [pair for pair in estimated if pair[0].status == "ok"]
    found = [one for one, _ in estimated if one.status != "ok"]
    simulator = LadderSimulator(Workload(problem, seed))
    progress.stage(str(problem), min(most, len(fit)))
    for rank, (candidate, selection) in enumerate(fit):
        if rank >= most:
            why = f"not predicted: by closed forms it is number {rank + 1} of {len(fit)}"
            found.append(replace(candidate, status="left out", reason=why))
            continue
        progress.step(f"predict {candidate.label}")
        found.append(_predicted(candidate, selection, problem, device, simulator))
    _check_any(found, device)
    return sorted(found, key=lambda one: (one.status != "ok", one.expected_s))


def _estimated(selection: Selection, problem: Gemm, device: Device) -> tuple[Candidate, Selection]:
    """What closed forms say, or why the device does not take it, and the selection itself."""
    record = planned(selection, problem, device)
    candidate = Candidate(
        label=selection.label,
        parameters=dict(selection.parameters),
        estimate_s=estimate(record, device),
    )
    reason = record.reason if record.status != "ok" else _too_large(record, device)
    if reason is None:
        return candidate, selection
    return replace(candidate, status="left out", reason=reason), selection


def estimate(record: Record, device: Device) -> float:
    """A time by closed forms: all ceilings after one another, for whole rounds of all SMs.

    Ceilings overlap on hardware, so the time is no bound; their sum orders configurations that
    share the highest one, which their maximum would not. 0 where there is no theory.
    """
    if record.theory is None or record.geometry is None:
        return 0.0
    blocks = record.geometry.blocks
    rounds = ceil_div(blocks, device.sm_count) * device.sm_count / blocks
    tail = rounds if blocks > device.sm_count else 1.0  # theory knows of SMs without any block
    return tail * sum(ceiling.time_s for ceiling in record.theory.ceilings)


def _too_large(record: Record, device: Device) -> str | None:
    """Why a block has too many threads: compiling it says nothing, launching it fails."""
    assert record.geometry is not None
    threads, most = record.geometry.threads_per_block, device.max_threads_per_block
    return f"{threads} threads per block, {device.name} takes {most}" if threads > most else None


def _predicted(
    candidate: Candidate,
    selection: Selection,
    problem: Gemm,
    device: Device,
    simulator: LadderSimulator,
) -> Candidate:
    """The candidate with its resources, its occupancy and its predicted time."""
    try:
        kernel = compile_for(device, selection)
    except UnavailableError as error:
        return _noted(candidate, f"not predicted: {error}")
    except ToolkitError as error:
        return replace(candidate, status="failed", reason=str(error))
    record = with_resources(planned(selection, problem, device), kernel.resources, device)
    candidate = replace(candidate, resources=record.resources, occupancy=record.occupancy)
    if record.status != "ok":
        return replace(candidate, status="left out", reason=record.reason)
    try:
        found = simulator.simulate(kernel, selection, residence(record, device))
    except LaunchError as error:
        return replace(candidate, status="failed", reason=f"simulated: {error}")
    except ToolkitError as error:  # machine code that is not known, too large a shape, no core
        return _noted(candidate, f"not predicted: {error}")
    return _with_time(candidate, found)


def _with_time(candidate: Candidate, found: Simulation) -> Candidate:
    wrong = wrong_result(found.check)
    if wrong is not None:
        return replace(candidate, status="failed", reason=f"simulated: {wrong}")
    if isinstance(found.predicted, str):
        return _noted(candidate, f"not predicted: {found.predicted}")
    return replace(candidate, predicted=found.predicted)


def _noted(candidate: Candidate, note: str) -> Candidate:
    return replace(candidate, notes=(*candidate.notes, note))


def _check_any(found: Sequence[Candidate], device: Device) -> None:
    """Raise InputError where no configuration can run, with what happened to the best of them."""
    if any(one.status == "ok" for one in found):
        return
    last = found[-1]
    raise InputError(
        f"none of {len(found)} configurations runs on {device.name}: {last.label}: {last.reason}"
    )
