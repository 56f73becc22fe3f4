"""Advice: the steps of the gap that cost the best variant most, each with a remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from analysis.records.metrics import FFMA_SHARE
from analysis.records.profile import Record, Simulated
from analysis.timing.predicted import Cause, Predicted, Resource
from reports import ladder, text
from reports.ladder import View

# Less than this share of the predicted time is not worth a rewrite: the model itself errs by more.
WORTH = 0.03
FEW_WARPS = 0.5  # of what an SM holds: above it, another block mostly has something to issue
MANY_MULTIPLY_ADDS = 32  # between a load and the store of it: more than indices take
MOST = 2  # pieces of advice: a reader tries one thing after the other


@dataclass(frozen=True, kw_only=True)
class _AdvisedLaunch:
    """Variant that the advice is for, with the facts that remedies depend on."""

    record: Record
    predicted: Predicted
    simulated: Simulated
    sass: Sequence[str]
    sm_count: int


def advice(view: View) -> str:
    """The largest costs of the fastest variant, each with a remedy; empty without a prediction."""
    launch = _best(view)
    if launch is None:
        return ""
    label, time_s = launch.record.label, launch.predicted.time_s
    steps = sorted(launch.predicted.gap, key=lambda one: -one.time_s)
    told = [
        f"{text.predicted_seconds(one.time_s)} {_REMEDIES[one.name](launch)}"
        for one in steps
        if one.name in _REMEDIES and one.time_s >= WORTH * time_s
    ]
    if not told:
        return (
            f"To try next: nothing. No effect in the model costs {label} more than "
            f"{text.percent(WORTH)} of its time."
        )
    whole = text.predicted_seconds(time_s)
    return f"To try next on {label}, of its {whole}: {' Then: '.join(told[:MOST])}"


def subject(view: View) -> str:
    """Label of the variant that the advice is for; empty if there is none."""
    launch = _best(view)
    return launch.record.label if launch else ""


def _best(view: View) -> _AdvisedLaunch | None:
    known = {launch.record.label: launch for launch in _known(view)}
    for run in (view, view.of_recorded):
        fastest = run.fastest if run else None
        if fastest and fastest.label in known:
            return known[fastest.label]
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


# What costs a time, and what would lower it: after "1.234 ms".


def _of_idle_sms(launch: _AdvisedLaunch) -> str:
    theory = launch.record.theory
    if theory and theory.busy_sms < launch.sm_count:
        return (
            f"because only {theory.busy_sms} of {launch.sm_count} SMs have a block: smaller tiles, "
            "or a K that is split over blocks, would use the others."
        )
    return (
        "because the last wave leaves SMs idle: tiles of another size, or blocks that share the "
        "last tiles, would keep them busy."
    )


def _of_instructions(launch: _AdvisedLaunch) -> str:
    share = FFMA_SHARE.of(launch.simulated.counters)
    others = f" ({text.percent(1 - share)} of its instructions)" if share is not None else ""
    return (
        f"for instructions other than multiply-adds{others}: use wider loads and more elements per "
        "thread."
    )


def _of_wavefronts(launch: _AdvisedLaunch) -> str:
    of_global = [one for one in launch.simulated.accesses if one.space == "global"]
    touched, ideal = (sum(getattr(o, what) for o in of_global) for what in ("sectors", "ideal"))
    if touched > ideal > 0:
        return (
            f"for L1 and shared memory; its requests touch {text.ratio(touched / ideal)} the "
            "sectors that their data needs: let neighbouring lanes access neighbouring addresses."
        )
    tiling = launch.record.theory.accesses.tiling if launch.record.theory else None
    size = f" ({tiling.thread_m} × {tiling.thread_n} now)" if tiling else ""
    return (
        f"for L1 and shared memory: twice as many elements per thread along both axes{size} would "
        "halve the reads per multiply-add, if registers allow."
    )


def _of_waiting(launch: _AdvisedLaunch) -> str:
    """Advice on waiting that other warps do not hide, by the unused resources of the launch."""
    if launch.predicted.limiter in (Resource.L2, Resource.DRAM):
        return f"to wait, mostly for {launch.predicted.limiter}: larger tiles of a block read less."
    waits = "to wait for memory and at barriers"
    occupancy = launch.record.occupancy
    if occupancy and occupancy.fraction <= FEW_WARPS:
        waits += (
            f", with few other warps to run (occupancy {text.percent(occupancy.fraction)}, limited "
            f"by {text.listing(occupancy.limiters)})"
        )
    if loads_ahead(launch.sass):
        return f"{waits}: it loads ahead; further stages or fewer barriers would hide more."
    return f"{waits}: loads of the next tile while this one is used would hide it."


_REMEDIES: Mapping[str, Callable[[_AdvisedLaunch], str]] = MappingProxyType(
    {
        Cause.IDLE_SMS: _of_idle_sms,
        Cause.INSTRUCTIONS: _of_instructions,
        Cause.PORTS: lambda _: (
            "for register-bank conflicts and write-back of loads: order the multiply-adds so "
            "that they reuse operands."
        ),
        Cause.WAVEFRONTS: _of_wavefronts,
        Cause.CONFLICTS: lambda _: "for shared-memory bank conflicts: pad or swizzle the layout.",
        Cause.LATENCY: _of_waiting,
        Cause.LAUNCH: lambda _: (
            "for the launch itself: put several products into one launch or one CUDA graph."
        ),
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
