"""What to try next, computed from what limits the best variant and from what it wastes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from analysis.devices import Device
from analysis.metrics import conflict_share, ffma_share
from analysis.problem import Gemm
from analysis.result import Bound, Predicted, Profile, Record, Simulated
from reports import ladder, text

# Less than this share of the predicted time is not worth a rewrite: the model itself errs by more.
WORTH_S = 0.03
LEVELS = ("L1", "L2", "DRAM")
FEW_WARPS = 0.5  # of what an SM holds: above it, another block mostly has something to issue
MOST = 2  # pieces of advice: a reader tries one thing after the other


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A change, and the most time that it could take away: `saves_s` of the predicted time."""

    sentence: str
    saves_s: float


def advice(profile: Profile, shape: Gemm) -> str:
    """What could save most time of the variant that is fastest, measured or else predicted."""
    found = [r for r in ladder.rungs_at(profile, shape) if ladder.prediction(r) and r.simulated]
    if not found:
        return ""
    measured = ladder.fastest(profile, shape)
    best = measured if measured in found else min(found, key=_time)
    changes = sorted(_changes(best, profile.device), key=lambda one: -one.saves_s)
    worthwhile = [one.sentence for one in changes if one.saves_s >= WORTH_S * _time(best)]
    if not worthwhile:
        return (
            f"To try next: nothing that these counts show would save more than "
            f"{text.percent(WORTH_S)} of the time of {best.label}."
        )
    return f"To try next on {best.label}: {' Then: '.join(worthwhile[:MOST])}"


def _time(record: Record) -> float:
    foreseen = ladder.prediction(record)
    return foreseen.time_s if foreseen else 0.0


def _changes(record: Record, device: Device) -> Iterator[Advice]:
    predicted, simulated = ladder.prediction(record), record.simulated
    if predicted is None or simulated is None:
        return
    bounds = {bound.name: bound for bound in predicted.bounds}
    yield from _of_conflicts(predicted, bounds.get("shared memory"), simulated)
    yield from _of_sectors(predicted, bounds, simulated)
    yield from _of_issue(predicted, bounds.get("issue"), simulated)
    yield from _of_shared(record, predicted, bounds.get("shared memory"))
    yield from _of_waiting(record, predicted, device)


def _saved(predicted: Predicted, bound: Bound, less: float) -> float:
    """What a bound that shrinks by a share could save: no more than down to the next one."""
    others = [one.time_s for one in predicted.bounds if one.name != bound.name]
    least = max([bound.time_s * (1 - less), *others])
    return max(0.0, bound.time_s - least)


def _of_conflicts(
    predicted: Predicted, bound: Bound | None, simulated: Simulated
) -> Iterator[Advice]:
    share = conflict_share(simulated.counters)
    if bound and share:
        yield Advice(
            sentence=(
                f"{text.percent(share)} of its shared wavefronts are bank conflicts; a layout "
                "without them (padding or a swizzle) would bring the time that shared memory alone "
                f"needs from {text.seconds(bound.time_s)} to "
                f"{text.seconds(bound.time_s * (1 - share))}."
            ),
            saves_s=_saved(predicted, bound, share),
        )


def _of_sectors(
    predicted: Predicted, bounds: dict[str, Bound], simulated: Simulated
) -> Iterator[Advice]:
    of_global = [one for one in simulated.accesses if one.space == "global"]
    touched, ideal = (sum(getattr(o, what) for o in of_global) for what in ("sectors", "ideal"))
    if not touched or touched <= ideal:
        return
    for name in LEVELS:
        if name in bounds:
            yield Advice(
                sentence=(
                    f"its requests touch {text.ratio(touched / ideal)} the sectors that their data "
                    "needs; let neighbouring lanes access neighbouring addresses, so that "
                    f"{name}, which alone needs {text.seconds(bounds[name].time_s)}, moves less."
                ),
                saves_s=_saved(predicted, bounds[name], 1 - ideal / touched),
            )


def _of_issue(predicted: Predicted, bound: Bound | None, simulated: Simulated) -> Iterator[Advice]:
    useful = ffma_share(simulated.counters)
    if bound and useful:
        other = 1 - useful
        yield Advice(
            sentence=(
                f"{text.percent(other)} of its instructions are no multiply-adds; wider loads and "
                "more elements per thread leave fewer of them, and issue alone needs "
                f"{text.seconds(bound.time_s)}."
            ),
            saves_s=_saved(predicted, bound, other),
        )


def _of_shared(record: Record, predicted: Predicted, bound: Bound | None) -> Iterator[Advice]:
    """Twice the tile of a thread along both axes halves what it reads per multiply-add."""
    tiling = record.theory.accesses.tiling if record.theory else None
    if bound and tiling:
        yield Advice(
            sentence=(
                f"a thread computes {tiling.thread_m} × {tiling.thread_n} elements; twice as many "
                "along both axes would halve its shared reads per multiply-add, and the time that "
                f"shared memory alone needs from {text.seconds(bound.time_s)}, if registers allow."
            ),
            saves_s=_saved(predicted, bound, 1 / 2),
        )


def _of_waiting(record: Record, predicted: Predicted, device: Device) -> Iterator[Advice]:
    """What no bound explains is waiting: for latency, at barriers, for SMs without a block."""
    longest = max((bound.time_s for bound in predicted.bounds), default=0.0)
    waited_s = predicted.time_s - longest
    if longest:
        yield Advice(
            sentence=(
                f"{text.seconds(waited_s)} of its {text.seconds(predicted.time_s)} are more than "
                f"its longest bound: warps wait. {_remedy(record, device)}"
            ),
            saves_s=waited_s,
        )


def _remedy(record: Record, device: Device) -> str:
    """What lets fewer warps wait, by what the launch leaves unused."""
    busy = record.theory.busy_sms if record.theory else device.sm_count
    if busy < device.sm_count:
        return (
            f"Only {busy} of {device.sm_count} SMs have a block: smaller tiles or a K that is "
            "split over blocks would use the others."
        )
    occupancy = record.occupancy
    if occupancy and occupancy.fraction <= FEW_WARPS:
        return (
            f"The occupancy of {text.percent(occupancy.fraction)}, limited by "
            f"{text.listing(occupancy.limiters)}, leaves few others to run: load the next tile "
            "while this one is used."
        )
    return "Fewer barriers, or loads of the next tile while this one is used, would shorten that."
