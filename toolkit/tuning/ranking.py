"""Configurations in the order of the times that they should take, so that few need a run.

Closed forms take no time, a prediction takes a second or two: closed forms decide which
configurations are predicted, and predictions decide which are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from analysis.devices import Device
from analysis.errors import InputError
from analysis.geometry import ceil_div
from analysis.problem import Gemm
from analysis.records.profile import Record
from analysis.records.tuning import Candidate
from kernels.selection import Selection
from toolkit.launch.progress import Progress
from toolkit.profiling.on_simulator import SimulatorBench
from toolkit.profiling.record import planned
from toolkit.rungs.matrices import Workload


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
        (
            (_estimated(selection, record, device), selection, record)
            for selection in selections
            for record in [planned(selection, problem, device)]
        ),
        key=lambda known: known[0].estimate_s,
    )
    fit = [known for known in estimated if known[0].status == "ok"]
    found = [one for one, *_ in estimated if one.status != "ok"]
    bench, workload = SimulatorBench(device, sanitizes=False), Workload(problem, seed)
    progress.stage(str(problem), min(most, len(fit)))
    bench.compile(selection for _, selection, _ in fit[:most])
    bench.disassemble()
    for rank, (candidate, selection, record) in enumerate(fit):
        if rank >= most:
            why = f"not predicted: by closed forms it is number {rank + 1} of {len(fit)}"
            found.append(replace(candidate, status="left out", reason=why))
            continue
        progress.step(f"predict {candidate.label}")
        simulated = bench.rung(record, selection, workload, progress)
        found.append(_predicted(candidate, record, simulated))
    _check_any(found, device)
    return sorted(found, key=lambda one: (one.status != "ok", one.expected_s))


def _estimated(selection: Selection, record: Record, device: Device) -> Candidate:
    """Candidate with the estimate of closed forms, or the reason why the device cannot run it."""
    reason = record.reason if record.status != "ok" else _too_large(record, device)
    return Candidate(
        label=selection.label,
        parameters=dict(selection.parameters),
        estimate_s=estimate(record, device),
        status="ok" if reason is None else "left out",
        reason=reason,
    )


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
    """Reason why a block has too many threads: compilation does not notice, a launch fails."""
    assert record.geometry is not None
    threads, most = record.geometry.threads_per_block, device.max_threads_per_block
    return f"{threads} threads per block, {device.name} takes {most}" if threads > most else None


def _predicted(candidate: Candidate, before: Record, after: Record) -> Candidate:
    """The candidate with its resources, its occupancy and its predicted time."""
    reason = after.reason
    if after.status != "ok" and after.occupancy is not None:
        reason = f"simulated: {reason}"
    is_ok = after.status == "ok"
    status: Literal["ok", "left out", "failed"] = "ok" if is_ok else "failed"
    if after.resources is not None and after.occupancy is None:  # too large for the device
        status = "left out"
    return replace(
        candidate,
        status=status,
        reason=reason,
        notes=after.notes[len(before.notes) :],
        resources=after.resources,
        occupancy=after.occupancy,
        predicted=after.predicted if is_ok else None,
    )


def _check_any(found: Sequence[Candidate], device: Device) -> None:
    """Raise InputError if no configuration can run; the message has the reason of the best one."""
    if any(one.status == "ok" for one in found):
        return
    last = found[-1]
    raise InputError(
        f"none of {len(found)} configurations runs on {device.name}: {last.label}: {last.reason}"
    )
