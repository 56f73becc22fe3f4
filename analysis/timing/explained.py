"""Explanation of a predicted time: bounds by resource, and the basis."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.devices import OwnConstants
from analysis.hardware.sm_constants import SmConstants
from analysis.sm import SCHEDULERS
from analysis.timing.model_runs import ModelRuns
from analysis.timing.modelled_sm import ModelledSm
from analysis.timing.predicted import Resource, TimeBound
from analysis.timing.sm_totals import SmTotals

OF_SM = "of the SM with the most blocks"

# Pipes other than FP32, by the name of their total. The busiest of them is a bound if it is busier
# than the FP32 pipes.
PIPES = {
    "products": (Resource.PRODUCTS, "integer halves of the FP32 pipes"),
    "logic": (Resource.LOGIC, "ALU pipes"),
    "double": (Resource.DOUBLE, "FP64 pipes"),
    "half": (Resource.HALF, "FP16 pipes"),
    "special": (Resource.SPECIAL, "XU pipes (special functions, conversions, S2R)"),
}


def bounds_of(runs: ModelRuns) -> tuple[TimeBound, ...]:
    """Lower bounds on the time of a launch, by resource."""
    sm, total, c = runs.sm, runs.total, runs.sm.constants
    halves = SCHEDULERS * c.fma_halves
    fp32 = total.multiply_adds / halves
    dram_bytes = sm.below_l1_s[1] * sm.dram_rate

    def bound(name: Resource, clocks: float, basis: str) -> TimeBound:
        return TimeBound(name=name, time_s=clocks / sm.clock_hz, basis=basis)

    return (
        bound(
            Resource.ISSUE,
            total.issued / SCHEDULERS,
            f"{total.issued:,.0f} warp instructions {OF_SM}, {SCHEDULERS} per clock",
        ),
        bound(
            Resource.FP32,
            fp32,
            f"{total.multiply_adds:,.0f} clocks on {halves} FP32 pipes {OF_SM}",
        ),
        *(bound(*other) for other in _other_pipe(total, fp32)),
        *(bound(*of) for of in _of_data_path(total)),
        *(bound(*of) for of in _of_tensor_cores(total)),
        *(bound(*of) for of in _of_constants(total)),
        bound(Resource.L2, *_of_l2(sm, total)),
        *_of_queues(runs),
        TimeBound(
            name=Resource.DRAM,
            time_s=sm.below_l1_s[1],
            basis=f"{dram_bytes:,.0f} bytes at {sm.dram_rate / 1e9:,.0f} GB/s, "
            f"{sm.dirty_bytes:,.0f} of them to write back lines that were dirty before the launch",
        ),
        bound(Resource.LATENCY, *_of_latency(runs)),
    )


def _of_latency(runs: ModelRuns) -> tuple[float, str]:
    """Clocks and basis of the longest path: through the waves of an SM, or from block to block."""
    sm, work = runs.sm, runs.sm.work
    rounds = work.of_sm.rounds if work.of_sm else sm.blocks / sm.resident
    first, later = (clocks * work.weight for clocks in runs.latency_of_a_block)
    clocks = first + (rounds - 1) * later if rounds > 1 else rounds * first
    if work.clocks_of_waits > clocks:
        return work.clocks_of_waits, "blocks wait for each other, as they meet in time"
    return clocks, (
        f"a block takes at least {first:,.0f} clocks, in later waves {later:,.0f}; "
        f"{_many(rounds, 'wave')} of {_many(sm.resident, 'block')} per SM"
    )


def _many(number: float, what: str) -> str:
    """'1 wave', '2.5 waves', '4,096 blocks'"""
    shown = f"{number:,.1f}".removesuffix(".0")
    return f"{shown} {what}{'' if shown == '1' else 's'}"


def _other_pipe(total: SmTotals, least: float) -> Iterator[tuple[Resource, float, str]]:
    """Yield name, clocks and basis of the busiest pipe other than FP32.

    Nothing if it is busy for `least` clocks or fewer.
    """
    busy, name, pipes = max((getattr(total, pipe), *said) for pipe, said in PIPES.items())
    if busy / SCHEDULERS > least:
        yield (
            name,
            busy / SCHEDULERS,
            f"{busy:,.0f} clocks on {SCHEDULERS} {pipes} {OF_SM}",
        )


def _of_data_path(total: SmTotals) -> Iterator[tuple[Resource, float, str]]:
    """Names, clocks and bases of shared memory and of L1, which share a data path.

    The one with most of its clocks has all of them as its bound.
    """
    shared = f"{total.shared:,.0f} clocks of shared memory"
    l1 = f"{total.l1:,.0f} clocks of L1's tags and data"
    also = "on the same data path"
    if total.bound_by_shared > total.shared:
        yield Resource.SHARED_MEMORY, total.bound_by_shared, f"{shared} and {l1} {also} {OF_SM}"
    else:
        yield Resource.SHARED_MEMORY, total.shared, f"{shared} {OF_SM}"
    if total.bound_by_l1 > total.l1:
        yield Resource.L1, total.bound_by_l1, f"{l1} and {shared} {also} {OF_SM}"
    else:
        yield Resource.L1, total.l1, f"{l1} {OF_SM}"


def _of_tensor_cores(total: SmTotals) -> Iterator[tuple[Resource, float, str]]:
    """Name, clocks and basis of the tensor cores, if the launch uses them."""
    if total.tensor:
        yield (
            Resource.TENSOR,
            total.tensor / SCHEDULERS,
            f"{total.tensor:,.0f} clocks on {SCHEDULERS} tensor cores {OF_SM}",
        )


def _of_constants(total: SmTotals) -> Iterator[tuple[Resource, float, str]]:
    """Name, clocks and basis of the unit that reads constants, if the launch uses it."""
    if total.constants:
        yield (
            Resource.CONSTANTS,
            total.constants,
            f"{total.constants:,.0f} clocks {OF_SM} for constants at addresses in registers, one "
            "word after the other",
        )


def _of_queues(runs: ModelRuns) -> Iterator[TimeBound]:
    """The bounds of atomic operations at L2, and of stores that meet there, if there are any."""
    for name, found in ((Resource.ATOMICS, runs.atomics), (Resource.STORES, runs.stores)):
        if found is not None:
            yield TimeBound(name=name, time_s=found.time_s, basis=found.basis)


def _of_l2(sm: ModelledSm, total: SmTotals) -> tuple[float, str]:
    """Clocks and basis of the L2 bound: the largest of bandwidth, stores and lookups."""
    work, machine = sm.work, sm.machine
    clocks = sm.below_l1_s[0] * sm.clock_hz
    if total.lookups > max(clocks, total.stores):
        return total.lookups, (
            f"{total.lookups:,.0f} clocks in which L2 looks up lines {OF_SM}, "
            f"{machine.lookup_clocks:.2f} for each line of a load, and more for stores"
        )
    if clocks > total.stores:
        l2_bytes = work.l2_read_bytes + work.l2_write_bytes
        rate = machine.l2_bytes_per_clock * sm.busy_sms
        return clocks, f"{l2_bytes:,.0f} bytes at {rate:,.0f} per clock"
    return total.stores, (
        f"{total.stores:,.0f} clocks of stores and of data from DRAM {OF_SM}, stores at least "
        f"{sm.constants.store_line_bytes:.0f} bytes per line, "
        f"{machine.write_bytes_per_clock:.1f} bytes per clock"
    )


def named(constants: SmConstants) -> str:
    """Text that names the architecture of the constants and their origin."""
    if constants.own is not None:
        return _own(constants, constants.own)
    if constants.taken_from is None:
        return f"{constants.architecture}, measured"
    return f"{constants.architecture}, mostly taken over from {constants.taken_from}"


def _own(constants: SmConstants, own: OwnConstants) -> str:
    """Text with the number of constants measured on the user's GPU, and the names of the others."""
    others = {name: one for name, one in constants.entries.items() if name not in own.values}
    taken = [name for name, one in others.items() if one.kind == "taken over"]
    unknown = [name for name, one in others.items() if one.kind == "not measured"]
    left = [name for name, one in others.items() if one.kind == "left out"]
    parts = [f"{len(own.values)} of {len(constants.entries)} measured on {own.gpu}, {own.file}"]
    if taken:
        parts.append(f"taken over from {constants.taken_from}: {', '.join(taken)}")
    if unknown:
        parts.append(f"not measured on any GPU: {', '.join(unknown)}")
    if left:
        parts.append(f"mechanisms left out: {', '.join(left)}")
    if own.lacks:
        parts.append(f"absent from {own.file}: {', '.join(own.lacks)}")
    return f"{constants.architecture} ({'; '.join(parts)})"


def basis_of(sm: ModelledSm) -> str:
    """Text that states the replayed blocks, and the clock if it is not the boost clock."""
    numbers = " and ".join(f"{n:,}" for n in sm.numbers_of_blocks)
    of = f"{numbers} of its {sm.blocks:,} blocks" if sm.blocks > 1 else "its only block"
    at_once = f", {sm.resident} resident at once" if sm.blocks > 1 else ""
    found = f"replayed on a model of one SM: {of}{sm.work.sample.how}{at_once}"
    if sm.clock_hz == sm.device.boost_clock_hz:
        return found
    return (
        f"{found}, at the {sm.clock_hz / 1e6:,.0f} MHz that it holds under load instead of "
        f"{sm.device.boost_clock_hz / 1e6:,.0f}"
    )
