"""Predicted time of a launch, from its machine code, and the resource that limits it.

A few blocks of the launch, executed by the simulator, are replayed on a model of one SM
(`analysis.sm`). The totals of an SM are extrapolated linearly, over blocks (in whole waves) and
along their length (`samples`). Traffic below L1 comes from `analysis.traffic.l2`. docs/timing.md
describes the model, docs/validation.md its errors.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from analysis.devices import Device
from analysis.hardware.sm_constants import constants_of
from analysis.sm import SCHEDULERS
from analysis.timing.costs import Pricing, costs_of, line_costs, pricing_of
from analysis.timing.explained import basis_of, bounds_of, named
from analysis.timing.model_runs import ModelRuns, model_runs
from analysis.timing.modelled_sm import ModelledSm
from analysis.timing.predicted import (
    Cost,
    Explanation,
    LineCost,
    Predicted,
)
from analysis.timing.repetitions import (
    SHORTENED,
    SHORTENED_FOR_COSTS,
    shortened,
)
from analysis.timing.samples import UnsteadyError
from analysis.timing.work import Work

MORE = 2  # times as many repetitions, where few of them are not like all


def predict(
    work: Work,
    device: Device,
    explanation: Explanation = Explanation.COSTS,
) -> Predicted:
    """Predicted time of a launch on a device, its limiter, its bounds, and what it is spent on.

    Raises UnavailableError if the native code of the model was not built.
    """
    sm = modelled_sm(work, device)
    if shorter := _shorter(sm, -1, SHORTENED):
        with suppress(UnsteadyError):
            return _predicted(shorter, sm, explanation)
    return _predicted(sm, sm, explanation)


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


def _pricing(runs: ModelRuns, complete: ModelledSm, begun: list[Any]) -> Pricing:
    """Pricing by the shortest sample that takes as long, per repetition, as the complete blocks."""
    limits = SHORTENED_FOR_COSTS
    while shorter := _shorter(complete, 0, limits):
        pricing = pricing_of(runs, shorter, begun)
        if pricing.is_of_steady_sample:
            return pricing
        most, wanted, least = limits
        limits = MORE * most, MORE * wanted, MORE * least
    return pricing_of(runs, complete, begun)


def _reading(sm: ModelledSm, l2_read_bytes: float) -> ModelledSm:
    """The SM of a launch that reads these bytes from L2."""
    return replace(sm, work=replace(sm.work, l2_read_bytes=l2_read_bytes))


def _predicted(
    sm: ModelledSm,
    complete: ModelledSm,
    explanation: Explanation,
) -> Predicted:
    """Prediction from a replay of `sm`, whose sample may be shorter than that of `complete`."""
    begun = list[Any]()
    runs = model_runs(sm, begun)
    if share := tensor_share(runs):  # which decides the clock, and so the bytes per clock
        sm, complete = (replace(one, tensor_share=share) for one in (sm, complete))
        runs = model_runs(sm, begun)
    if (read := runs.read_beyond_l1) is not None:
        sm, complete = (_reading(one, read) for one in (sm, complete))
        runs = model_runs(sm, begun) if sm.work.loaded_from_dram else replace(runs, sm=sm)
    seconds = runs.total.clocks / sm.clock_hz
    time_s = seconds + sm.constants.launch_s
    bounds = bounds_of(runs)
    ranked = sorted(bounds, key=lambda bound: -bound.time_s)
    shares = [bound.time_s / seconds for bound in ranked]
    costs: tuple[Cost, ...] = ()
    lines: tuple[LineCost, ...] = ()
    if explanation is not Explanation.NONE:
        pricing = _pricing(runs, complete, begun)
        costs = costs_of(pricing, ranks_briefly=explanation is Explanation.EFFECTS)
        lines = line_costs(pricing) if explanation is Explanation.COSTS else ()
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
        costs=costs,
        lines=lines,
        constants=named(sm.constants),
        basis=basis_of(sm),
        is_fitted=sm.constants.is_fitted,
        dirty_bytes=sm.dirty_bytes,
    )
