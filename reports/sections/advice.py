"""Advice: a remedy for the part of the time that costs the fastest rung most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from analysis.records.metrics import FFMA_SHARE
from analysis.records.profile import Record, Simulated
from analysis.timing.predicted import Effect, Predicted, Resource
from reports import ladder, text
from reports.ladder import View
from reports.sections.ladder_rows import Rows

# Less than this share of the predicted time is not worth a rewrite: the model itself errs by more.
WORTH = 0.03
FEW_WARPS = 0.5  # of what an SM holds: above it, another block mostly has something to issue
MANY_MULTIPLY_ADDS = 32  # between a load and the store of it: more than indices take


@dataclass(frozen=True, kw_only=True)
class _AdvisedLaunch:
    """Variant that the advice is for, with the facts that remedies depend on."""

    record: Record
    predicted: Predicted
    simulated: Simulated
    sass: Sequence[str]
    sm_count: int


def advice(rows: Rows) -> str:
    """Say what to try next on the fastest rung: its largest costs; empty without a prediction."""
    launch = _best(rows)
    if launch is None:
        return ""
    predicted = launch.predicted
    told = [
        _REMEDIES[name](launch).format(text.predicted_seconds(part_s))
        for name, part_s in sorted(predicted.parts.items(), key=lambda part: -part[1])
        if name in _REMEDIES and part_s >= WORTH * predicted.time_s
    ]
    if not predicted.parts:
        return ""
    if not told:
        return (
            f"Try next: nothing. No effect in the model costs {launch.record.label} more than "
            f"{text.percent(WORTH)} of its time."
        )
    return f"Try next: {told[0]}."


def _best(rows: Rows) -> _AdvisedLaunch | None:
    known = {launch.record.label: launch for launch in _known(rows.view)}
    if rows.fastest and rows.fastest.label in known:
        return known[rows.fastest.label]
    return min(known.values(), key=lambda one: one.predicted.time_s, default=None)


def _known(view: View) -> Iterator[_AdvisedLaunch]:
    """The rungs of which the machine code was executed, and a time predicted."""
    for record in view.rungs:
        predicted = record.trusted_prediction
        if predicted and record.simulated:
            listing = ladder.listing_of(view.profile, record)
            yield _AdvisedLaunch(
                record=record,
                predicted=predicted,
                simulated=record.simulated,
                sass=listing.sass if listing else (),
                sm_count=view.profile.device.sm_count,
            )


# What to do about a time, which stands for "{}".


def _of_idle_sms(launch: _AdvisedLaunch) -> str:
    theory = launch.record.theory
    if theory and theory.busy_sms < launch.sm_count:
        idle = launch.sm_count - theory.busy_sms
        return (
            f"smaller tiles, or a K split over blocks ({idle} of {launch.sm_count} SMs have no "
            "block, {})"
        )
    return "tiles of another size, or blocks that share the last ones (the last wave costs {})"


def _of_instructions(launch: _AdvisedLaunch) -> str:
    share = FFMA_SHARE.of(launch.simulated.counters)
    others = f", {text.percent(1 - share)} of all" if share is not None else ""
    return f"wider loads and more elements per thread (non-FP32 instructions{others}, cost {{}})"


def _of_wavefronts(launch: _AdvisedLaunch) -> str:
    of_global = [one for one in launch.simulated.accesses if one.space == "global"]
    touched, ideal = (sum(getattr(o, what) for o in of_global) for what in ("sectors", "ideal"))
    if touched > ideal > 0:
        return (
            "let neighbouring lanes access neighbouring addresses (requests take "
            f"{text.ratio(touched / ideal)} the ideal sectors; L1 and shared memory cost {{}})"
        )
    return _of_tiles(launch)


def _of_tiles(launch: _AdvisedLaunch) -> str:
    tiling = launch.record.theory.accesses.tiling if launch.record.theory else None
    size = f" ({tiling.thread_m} × {tiling.thread_n} now)" if tiling else ""
    return f"a larger tile per thread{size}: L1 and shared memory cost {{}}"


def _of_waiting(launch: _AdvisedLaunch) -> str:
    """Advice on waiting that other warps do not hide, by the unused resources of the launch."""
    if launch.predicted.limiter in (Resource.L2, Resource.DRAM):
        return f"larger tiles, which read less (waiting for {launch.predicted.limiter} costs {{}})"
    occupancy = launch.record.occupancy
    few = (
        f" (occupancy {text.percent(occupancy.fraction)})"
        if occupancy and occupancy.fraction <= FEW_WARPS
        else ""
    )
    if loads_ahead(launch.sass):
        return f"hide {{}} of stalls on memory and barriers{few}"
    return f"hide {{}} of stalls on memory and barriers{few}: load the next tile early"


def _said(words: str) -> Callable[[_AdvisedLaunch], str]:
    return lambda _: words


_OF_BANKS = _said("pad or swizzle the shared arrays (bank conflicts cost {})")
_OF_REGISTER_BANKS = _said(
    "order multiply-adds so that they reuse an operand (register-bank conflicts cost {})"
)
_OF_LAUNCHES = _said("several products in one launch, or in a CUDA graph (the launch costs {})")
_OF_BANDWIDTH = _said("larger tiles, which read less (bandwidth costs {})")
_REMEDIES: Mapping[str, Callable[[_AdvisedLaunch], str]] = MappingProxyType(
    {
        Effect.IDLE_SMS: _of_idle_sms,
        Effect.OTHER_INSTRUCTIONS: _of_instructions,
        Effect.REGISTER_BANKS: _OF_REGISTER_BANKS,
        Effect.SHARED_WAVEFRONTS: _of_tiles,
        Effect.L1_WAVEFRONTS: _of_wavefronts,
        Effect.UNCOALESCED: _of_wavefronts,
        Effect.CONFLICTS: _OF_BANKS,
        Effect.L2_BANDWIDTH: _OF_BANDWIDTH,
        Effect.DRAM_BANDWIDTH: _OF_BANDWIDTH,
        Effect.BARRIERS: _of_waiting,
        Effect.DRAM_LATENCY: _of_waiting,
        Effect.L2_LATENCY: _of_waiting,
        Effect.SHARED_LATENCY: _of_waiting,
        Effect.DEPENDENCES: _said(
            "give each thread more independent multiply-adds (waiting for earlier ones costs {})"
        ),
        Effect.LAUNCH: _OF_LAUNCHES,
    }
)


def loads_ahead(sass: Sequence[str]) -> bool:
    """True if machine code fetches the next tile while it computes with the current one.

    It then copies asynchronously (LDGSTS, or bulk copies of TMA), or has multiply-adds between
    a load from global memory and the store of the loaded data to shared memory.
    """
    multiply_adds = None
    for line in sass:
        if any(name in line for name in ("LDGSTS", "UTMALDG", "UBLKCP")):
            return True
        if "LDG" in line:
            multiply_adds = 0
        elif multiply_adds is not None and "FFMA" in line:
            multiply_adds += 1
        elif multiply_adds is not None and "STS" in line:
            if multiply_adds > MANY_MULTIPLY_ADDS:
                return True
            multiply_adds = None
    return False
