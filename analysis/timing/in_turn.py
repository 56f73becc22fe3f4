"""Predicted time of a call whose launches follow each other on a stream."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields

from analysis.timing.predicted import Cost, Effect, Predicted, Resource, TimeBound

#: Seconds from the end of a launch to the first load of the next one, which started early and waits
#: (griddepcontrol). Launches in order without this idle for about 2 us (decision 87).
BOUNDARY_S = 0.5e-6


def in_turn(parts: Sequence[tuple[str, Predicted]], flop: int) -> Predicted:
    """The prediction of a call, from those of its launches, each with its name, in their order.

    `launch_s` of the first launch counts once. Between two launches is BOUNDARY_S. `flop` are those
    of the call. Times of lines are left out: the launches have different sources.
    """
    predictions = [one for _, one in parts]
    first = predictions[0]
    seconds = sum(one.time_s - one.launch_s for one in predictions)
    launch_s = first.launch_s + BOUNDARY_S * (len(parts) - 1)
    cycles = sum(one.cycles for one in predictions)
    bounds = tuple(_bounds(parts))
    ranked = sorted(bounds, key=lambda bound: -bound.time_s)
    return Predicted(
        time_s=seconds + launch_s,
        cycles=cycles,
        clock_hz=cycles / seconds,
        launch_s=launch_s,
        flop_per_s=flop / (seconds + launch_s),
        l2=first.l2,
        limiter=ranked[0].name,
        limiter_share=ranked[0].time_s / seconds,
        next_limiter=ranked[1].name,
        next_share=ranked[1].time_s / seconds,
        bounds=bounds,
        constants=first.constants,
        basis="; ".join(f"{name}: {one.basis}" for name, one in parts),
        is_fitted=all(one.is_fitted for one in predictions),
        costs=_costs(predictions, launch_s),
        dirty_bytes=sum(one.dirty_bytes for one in predictions),
    )


def _bounds(parts: Sequence[tuple[str, Predicted]]) -> Iterator[TimeBound]:
    """Sums over the launches, by resource."""
    found = defaultdict[Resource, list[tuple[str, TimeBound]]](list)
    for name, one in parts:
        for bound in one.bounds:
            found[bound.name].append((name, bound))
    for resource, bounds in found.items():
        yield TimeBound(
            name=resource,
            time_s=sum(bound.time_s for _, bound in bounds),
            basis="; ".join(f"{name}: {bound.basis}" for name, bound in bounds),
        )


def _costs(predictions: Sequence[Predicted], launch_s: float) -> tuple[Cost, ...]:
    """Sums over the launches, by effect; none if a launch has none."""
    if not all(one.costs for one in predictions):
        return ()
    found = defaultdict[Effect, list[Cost]](list)
    for one in predictions:
        for cost in one.costs:
            found[cost.effect].append(cost)
    return tuple(
        Cost(effect=effect, time_s=launch_s, alone_s=launch_s)
        if effect is Effect.LAUNCH
        else _sum(effect, costs)
        for effect, costs in found.items()
    )


def _sum(effect: Effect, costs: Sequence[Cost]) -> Cost:
    """The cost of an effect in all launches: every time that a cost has is added."""
    seconds = [field.name for field in fields(Cost) if field.name.endswith("_s")]
    return Cost(
        effect=effect,
        detail="; ".join(dict.fromkeys(one.detail for one in costs if one.detail)),
        **{name: sum(getattr(one, name) for one in costs) for name in seconds},
    )
