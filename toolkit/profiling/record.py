"""Stages of a record: planned, compiled, checked, predicted, measured. Values in, values out."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Literal

from analysis.access import access_counts
from analysis.comparison.statistics import median_interval, ratio_interval
from analysis.devices import Device
from analysis.errors import InputError, ShapeError, UnavailableError
from analysis.l2_state import L2State
from analysis.occupancy import Resources, occupancy, waves
from analysis.problem import Gemm
from analysis.records.profile import Counted, GpuState, Measured, Ratio, Record
from analysis.rounding import Check
from analysis.theory import theory
from kernels import split_paths
from kernels.closed_forms import first_warp_patterns
from kernels.ladder import CUBLAS
from kernels.product import Product
from kernels.selection import Selection
from kernels.variant import Reference
from toolkit.gpu.cublas import sentence_on
from toolkit.gpu.sampling import Series
from toolkit.rungs.launch import padding
from toolkit.rungs.matrices import wrong_result

Records = MutableMapping[tuple[Gemm, str], Record]  # by shape and label, in the order of work


def planned(selection: Selection, problem: Gemm, device: Device) -> Record:
    """Record before compilation: geometry and theory, or the reason why there is none."""
    variant = selection.variant
    if isinstance(variant, Reference):
        record = Record(
            variant=variant.name,
            label=selection.label,
            title=variant.title,
            idea=variant.idea,
            rung=variant.rung,
            parameters={},
            shape=problem,
            executed_shape=problem,
        )
        return record if variant.precision is None else _with_launches(record, device)
    executed = variant.executed(problem)
    stands_for = selection.stands_for
    record = Record(
        variant=variant.name,
        label=selection.label,
        title=stands_for.title if stands_for else variant.title,
        idea=stands_for.idea if stands_for else variant.idea,
        rung=stands_for.rung if stands_for else variant.rung,
        parameters=dict(selection.parameters),
        shape=problem,
        executed_shape=executed,
    )
    try:
        variant.check_shape(problem)
        variant.check_device(selection.parameters, device)
    except (ShapeError, UnavailableError) as error:
        return skipped(record, str(error))
    label = variant.label(selection.parameters)
    named = f"{stands_for.name} is {label} at this shape" if stands_for else None
    geometry = variant.geometry(selection.parameters, executed)
    return replace(
        record,
        geometry=geometry,
        notes=tuple(filter(None, [named, padding(variant, problem)])),
        theory=theory(
            access_counts(variant.tiling(selection.parameters), executed),
            first_warp_patterns(variant, selection.parameters, executed),
            device,
            blocks=geometry.blocks,
        ),
    )


def _with_launches(record: Record, device: Device) -> Record:
    """The record of `toolkit.matmul` with a note on its launches, or skipped on this device."""
    shape = record.shape
    try:
        found = split_paths.plan_for(device, Product(m=shape.m, n=shape.n, k=shape.k))
    except UnavailableError as error:
        return skipped(record, str(error))
    if isinstance(found, str):
        return record.noted(f"float32's own kernels compute it: {found}")
    entries = ", ".join(launch.entry for launch in found.launches)
    return record.noted(f"{found.label}: launches {entries}")


def with_resources(record: Record, resources: Resources, device: Device) -> Record:
    """The record with the compiler's resources, and the occupancy that follows from them."""
    geometry = record.geometry
    assert geometry is not None
    record = replace(record, resources=resources)
    try:
        resident = occupancy(
            device,
            threads_per_block=geometry.threads_per_block,
            registers_per_thread=resources.registers_per_thread,
            shared_bytes_per_block=resources.static_shared_bytes + geometry.dynamic_shared_bytes,
        )
    except InputError as error:
        return failed(record, str(error))
    return replace(
        record,
        occupancy=resident,
        waves=waves(geometry.blocks, device, resident),
        notes=(*record.notes, *filter(None, [resources.note])),
    )


def with_check(record: Record, check: Check) -> Record:
    """The record with its verdict; a wrong result makes it a failed one."""
    record = replace(record, check=check)
    wrong = wrong_result(check)
    return record if wrong is None else failed(record, wrong)


def with_counted(record: Record, counted: Counted | str) -> Record:
    """The record with the hardware's counters, or with a note on why it has none, or not all.

    That of cuBLAS says which kernel was launched.
    """
    if isinstance(counted, str):
        return record.noted(f"not counted: {counted}")
    record = replace(record, counted=counted)
    if counted.missing:
        record = record.noted(f"not counted: {', '.join(counted.missing)}")
    if record.variant != CUBLAS.name:
        return record
    return record.noted(sentence_on(counted.kernels))


def with_measurement(
    record: Record,
    series: Series,
    *,
    clock: Literal["CUDA events", "host clock"],
    l2: L2State | Literal["host"],
    before: GpuState | None = None,
    after: GpuState | None = None,
) -> Record:
    """The record with its samples and their statistics."""
    if series.error is not None:
        return failed(record, series.error)
    if not series.samples_s:
        return skipped(record, "interrupted before it was timed")
    middle = median(series.samples_s)
    return replace(
        record,
        measured=Measured(
            clock=clock,
            l2=l2,
            samples_s=tuple(series.samples_s),
            median_s=middle,
            interval_s=median_interval(series.samples_s),
            # of the product that was asked for: what padding adds is no useful work
            flop_per_s=record.shape.flop / middle,
            stopped_by=series.stopped_by or "interrupt",
            relative_to_cublas=_relative(series.peer_s, series.samples_s),
            before=before,
            after=after,
        ),
    )


def skipped(record: Record, reason: str) -> Record:
    return replace(record, status="skipped", reason=reason)


def failed(record: Record, reason: str) -> Record:
    return replace(record, status="failed", reason=reason)


def _relative(peer_s: Sequence[float], samples_s: Sequence[float]) -> Ratio | None:
    """The speed against the peer, over the samples that have one of the peer beside them."""
    if not peer_s:
        return None
    middle, interval = ratio_interval(peer_s, samples_s[: len(peer_s)])
    return Ratio(peer=CUBLAS.name, median=middle, interval=interval)
