"""Predicted time of a launch, from its machine code, and the resource that limits it.

A few blocks of the launch, executed by the simulator, are replayed on a model of one SM
(`analysis.sm`). The totals of an SM are extrapolated linearly, over blocks (in whole waves) and
along their length (`samples`). Traffic below L1 comes from `analysis.traffic.l2`. docs/timing.md
describes the model, docs/validation.md its errors.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from analysis.devices import Device
from analysis.hardware.sm_constants import constants_of
from analysis.sm import SCHEDULERS
from analysis.timing.costs import costs_of, line_costs
from analysis.timing.explained import basis_of, bounds_of, gap_of, named
from analysis.timing.gap import GapClocks, gap_runs
from analysis.timing.model_runs import ModelRuns, model_runs
from analysis.timing.modelled_sm import ModelledSm
from analysis.timing.predicted import (
    Cost,
    Explanation,
    GapStep,
    LineCost,
    Predicted,
)
from analysis.timing.repetitions import (
    SHORTENED,
    SHORTENED_FOR_COSTS,
    SHORTENED_FOR_GAP,
    shortened,
)
from analysis.timing.samples import UnsteadyError
from analysis.timing.work import Work


def predict(
    work: Work,
    device: Device,
    explanation: Explanation = Explanation.COSTS,
    gap_clocks: Callable[[], GapClocks] | None = None,
) -> Predicted:
    """Predicted time of a launch on a device, its limiter, its bounds, and what it is spent on.

    `gap_clocks` returns the result of `gap_clocks_of`, for a caller
    that explains the time by its gap and computes this in another thread; by default it is computed
    here. Raises UnavailableError if the native code of the model was not built.
    """
    sm = modelled_sm(work, device)
    if shorter := _shorter(sm, -1, SHORTENED):
        with suppress(UnsteadyError):
            return _predicted(shorter, sm, explanation, gap_clocks)
    return _predicted(sm, sm, explanation, gap_clocks)


def gap_clocks_of(work: Work, device: Device, begun: list[Any]) -> GapClocks:
    """Clocks of the model runs from which the steps of the gap follow.

    They do not depend on the traffic below L1 in `work`. Each run is appended to `begun`, so that
    `analysis.sm.end_runs` can end it. Raises as `predict` does.
    """
    sm = modelled_sm(work, device)
    if shorter := _shorter(sm, 0, SHORTENED_FOR_GAP):
        with suppress(UnsteadyError):
            return gap_runs(shorter, begun)
    return gap_runs(sm, begun)


def modelled_sm(work: Work, device: Device) -> ModelledSm:
    """The SM to replay for a launch on a device."""
    return ModelledSm(work=work, device=device, constants=constants_of(device))


def tensor_share(runs: ModelRuns) -> float:
    """Share of the time for which the tensor cores are busy, if the clock depends on it."""
    total = runs.total
    if runs.sm.device.tensor_clock_hz is None or not total.clocks:
        return 0.0
    return (total.tensor - total.tensor_doubles) / SCHEDULERS / total.clocks


def _shorter(sm: ModelledSm, which: int, limits: tuple[int, int, int]) -> ModelledSm | None:
    """The SM with a shorter sample, or None.

    None if the replay of `numbers_of_blocks[which]` blocks is short already, or if the sample
    cannot be shortened. `limits` are arguments of `shortened`.
    """
    sample = shortened(sm.code, sm.work.sample, sm.numbers_of_blocks[which], *limits)
    return replace(sm, work=replace(sm.work, sample=sample)) if sample else None


def _predicted(
    sm: ModelledSm,
    complete: ModelledSm,
    explanation: Explanation,
    gap_clocks: Callable[[], GapClocks] | None,
) -> Predicted:
    """Prediction from a replay of `sm`, whose sample may be shorter than that of `complete`."""
    begun = list[Any]()
    runs = model_runs(sm, begun)
    if share := tensor_share(runs):  # which decides the clock, and so the bytes per clock
        sm, complete = (replace(one, tensor_share=share) for one in (sm, complete))
        runs = model_runs(sm, begun)
    seconds = runs.total.clocks / sm.clock_hz
    time_s = seconds + sm.constants.launch_s
    bounds = bounds_of(runs)
    ranked = sorted(bounds, key=lambda bound: -bound.time_s)
    shares = [bound.time_s / seconds for bound in ranked]
    gap: tuple[GapStep, ...] = ()
    costs: tuple[Cost, ...] = ()
    lines: tuple[LineCost, ...] = ()
    if explanation is Explanation.GAP:
        gap_clocks = gap_clocks or partial(gap_clocks_of, complete.work, complete.device, begun)
        gap = gap_of(runs, gap_clocks(), time_s)
    elif explanation is Explanation.COSTS:
        cheaper = _shorter(complete, 0, SHORTENED_FOR_COSTS) or complete
        costs, lines = costs_of(runs, cheaper, begun), line_costs(runs, cheaper, begun)
    return Predicted(
        time_s=time_s,
        cycles=runs.total.clocks,
        clock_hz=sm.clock_hz,
        launch_s=sm.constants.launch_s,
        flop_per_s=sm.work.flop / time_s,
        l2=sm.work.l2,
        limiter=ranked[0].name,
        limiter_share=shares[0],
        next_limiter=ranked[1].name,
        next_share=shares[1],
        bounds=bounds,
        gap=gap,
        costs=costs,
        lines=lines,
        constants=named(sm.constants),
        basis=basis_of(sm),
        is_fitted=sm.constants.is_fitted,
    )
