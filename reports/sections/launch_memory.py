"""Units of a launch, and the bytes that it moves: what its roofline and its memory flow show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analysis.access import WAVEFRONT_BYTES
from analysis.coalescing import SECTOR_BYTES
from analysis.devices import Device
from analysis.hardware.sm_constants import constants_of
from analysis.records.counters import InstructionCounts
from analysis.records.metrics import (
    ARITHMETIC_FLOP_PER_BYTE,
    DRAM_TRAFFIC,
    WARP_INSTRUCTIONS,
    fp32_flop,
    total,
)
from analysis.records.source_lines import WASTEFUL, distinct_accesses
from analysis.sm import SCHEDULERS
from analysis.timing.predicted import Effect, Predicted, Resource
from reports import text
from reports.sections.answer import per_request
from reports.sections.launch_report import LaunchReport
from reports.svg.busy import Bar
from reports.svg.memory_flow import Edge, MemoryFlow, MemoryUnit
from reports.svg.roofline import LaunchRoofline, RooflineLevel

UNITS = {
    Resource.ISSUE: "Instruction issue",
    Resource.FP32: "FP32 pipes",
    Resource.DOUBLE: "FP64 pipes",
    Resource.HALF: "FP16 pipes",
    Resource.PRODUCTS: "Integer multiply",
    Resource.LOGIC: "ALU pipes",
    Resource.SPECIAL: "Special functions",
    Resource.SHARED_MEMORY: "Shared memory",
}
# What an avoidable effect keeps busy
_HOT = {
    Effect.CONFLICTS: Resource.SHARED_MEMORY,
    Effect.SHARED_LATENCY: Resource.SHARED_MEMORY,
}
_CACHES = (Resource.L1, Resource.L2, Resource.DRAM)
OFF_CHIP = ("global", "generic", "local")
READS, WRITES = ("load", "copy"), ("store", "reduction", "atomic")
LEAST_BUSY = 0.5  # of the time: below it nothing is near its limit


# Busy units.


def busy_shares(report: LaunchReport) -> dict[Resource, float]:
    """Share of the time without the launch cost for which each unit is busy, the busiest first."""
    predicted, work_s = report.predicted, report.work_s
    if predicted is None or not work_s:
        return {}
    bounds = sorted(predicted.bounds, key=lambda bound: -bound.time_s)
    return {
        bound.name: bound.time_s / work_s
        for bound in bounds
        if bound.name != Resource.LATENCY and bound.time_s > 0
    }


def busy_bars(report: LaunchReport) -> list[Bar]:
    shares, hot = busy_shares(report), hot_unit(report)
    return [
        Bar(
            name=UNITS.get(unit, unit),
            share=share,
            value=_percent(share),
            class_="c0" if unit == hot else "s1" if place == 0 else "s2",
        )
        for place, (unit, share) in enumerate(shares.items())
    ]


def busy_sentence(report: LaunchReport) -> str:
    shares = busy_shares(report)
    if not shares:
        return ""
    unit, share = next(iter(shares.items()))
    name = UNITS.get(unit, str(unit))
    if name[1:2].islower():  # a word, not a name such as DRAM
        name = name[0].lower() + name[1:]
    if share < LEAST_BUSY:
        return f"Nothing is near its limit. Busiest: {name}, {_percent(share)} % of the time."
    return f"Nearest to its limit: {name}, busy {_percent(share)} % of the time."


def _percent(share: float) -> str:
    return text.three_digits(100 * share) if share >= 1e-4 else "<0.01"


# The roofline.


def launch_roofline(report: LaunchReport) -> LaunchRoofline | None:
    """The roofline of a launch, None without a prediction or without bytes that it moves."""
    predicted, device, work_s = report.predicted, report.device, report.work_s
    if predicted is None or device is None or not work_s:
        return None
    levels = list(_levels(report, predicted, device))
    flop = fp32_flop(report.counters)
    instructions = total(report.counters, WARP_INSTRUCTIONS)
    if not levels or not instructions:
        return None
    names = text.listing([level.name for level in levels])
    if flop >= ARITHMETIC_FLOP_PER_BYTE * total(report.counters, *DRAM_TRAFFIC) > 0:
        peak = device.fp32_flop_per_s * predicted.clock_hz / device.boost_clock_hz
        return LaunchRoofline(
            work=float(flop),
            rate=flop / work_s,
            peak=peak,
            rate_label=text.flop_per_s(flop / work_s),
            peak_label=f"FP32 {text.flop_per_s(peak)}",
            x_label="FLOP per byte moved",
            y_label="TFLOP/s",
            scale=1e12,
            per_bytes=1.0,
            levels=levels,
            label=f"Roofline: FP32 work against bytes at {names}",
        )
    peak = SCHEDULERS * device.sm_count * predicted.clock_hz
    rate = instructions / work_s
    return LaunchRoofline(
        work=float(instructions),
        rate=rate,
        peak=peak,
        rate_label=f"{text.three_digits(rate / 1e9)} G/s",
        peak_label=f"issue {text.three_digits(peak / 1e9)} G/s",
        x_label="warp instructions per kB moved",
        y_label="G warp instructions / s",
        scale=1e9,
        per_bytes=1000.0,
        levels=levels,
        label=f"Instruction roofline: warp instructions against bytes at {names}",
    )


def _levels(report: LaunchReport, predicted: Predicted, device: Device) -> Iterator[RooflineLevel]:
    constants, clock_hz = constants_of(device), predicted.clock_hz
    hot = hot_unit(report)
    rates = {
        Resource.SHARED_MEMORY: device.shared_bytes_per_clock_per_sm * device.sm_count * clock_hz,
        Resource.L2: constants.l2_bytes_per_clock * device.sm_count * clock_hz,
        Resource.DRAM: device.dram_bytes_per_s * constants.dram_efficiency,
    }
    moved = {
        Resource.SHARED_MEMORY: shared_wavefronts(report.instructions) * WAVEFRONT_BYTES,
        Resource.L2: sum(l2_bytes(report)),
        Resource.DRAM: sum(_at_dram(report)),
    }
    for unit, rate in rates.items():
        if moved[unit] >= SECTOR_BYTES:
            yield RooflineLevel(
                name="shared" if unit == Resource.SHARED_MEMORY else unit,
                bytes_per_s=rate,
                moved_bytes=moved[unit],
                bandwidth=text.bytes_per_s(rate, digits=3),
                is_hot=unit == hot,
            )


def hot_unit(report: LaunchReport) -> Resource | None:
    """The memory that the largest avoidable cause keeps busy, None if it is another cause."""
    cause = report.answer.cause
    if cause and cause.effect in (Effect.UNCOALESCED, Effect.LOCAL_MEMORY):
        return next((unit for unit in busy_shares(report) if unit in _CACHES), None)
    return _HOT.get(cause.effect) if cause else None


# Bytes.


def shared_wavefronts(instructions: Iterable[InstructionCounts]) -> int:
    return sum(one.wavefronts for one in instructions if one.space == "shared")


def l2_bytes(report: LaunchReport) -> tuple[int, int]:
    """Bytes that L1 fetches from L2, and bytes that it writes to it."""
    fetched = total(report.counters, "l1tex__m_xbar2l1tex_read_sectors.sum")
    bulk = total(report.counters, "bulk__sectors_read.sum")
    written = sum(
        one.sectors
        for one in report.instructions
        if one.space in OFF_CHIP and one.action in (*WRITES, "bulk store", "bulk reduction")
    )
    return SECTOR_BYTES * max(fetched, bulk), SECTOR_BYTES * written


def requested_bytes(instructions: Iterable[InstructionCounts], *, of: str, reads: bool) -> int:
    """Bytes that lanes load ("shared", or anything off chip), or that they store."""
    spaces, actions = ("shared",) if of == "shared" else OFF_CHIP, READS if reads else WRITES
    return sum(
        one.predicated * one.bytes_per_lane
        for one in instructions
        if one.space in spaces and one.action in actions
    )


def has_memory(report: LaunchReport) -> bool:
    return any(one.space in (*OFF_CHIP, "shared") and one.requests for one in report.instructions)


def memory_sentence(report: LaunchReport) -> str:
    """Conclude from the flow: repeated or unused traffic, or none."""
    if not report.instructions:
        return "The launch was not executed on the CPU, so its memory traffic is unknown."
    if not has_memory(report):
        return "The launch accesses neither shared nor global memory."
    loads, stores = (
        requested_bytes(report.instructions, of="global", reads=reads) for reads in (True, False)
    )
    told = []
    if loads or stores:
        moved = {"loads": loads, "stores": stores}
        words = [f"{verb} {_size(size)}" for verb, size in moved.items() if size]
        told.append(f"The launch {text.listing(words)} of global memory.")
    else:
        told.append("The launch accesses shared memory only.")
    wasted = [
        one
        for one in distinct_accesses(report.instructions)
        if one.space == "global" and one.ideal and one.units >= WASTEFUL * one.ideal
    ]
    if wasted:
        worst = max(wasted, key=lambda one: one.excess)
        told.append(f"The worst accesses take {per_request([worst])}.")
    elif loads or stores:
        told.append("Its accesses are coalesced.")
    return " ".join(told)


def launch_flow(report: LaunchReport) -> MemoryFlow | None:
    """The memory flow, None if the launch accesses no memory or was not executed."""
    if not has_memory(report):
        return None
    shares, hot = busy_shares(report), hot_unit(report)

    def unit(resource: Resource, name: str) -> MemoryUnit:
        share = shares.get(resource, 0.0) if report.predicted else None
        return MemoryUnit(
            name=name,
            busy=share,
            busy_label="" if share is None else f"{_percent(share)} % busy",
            is_hot=resource == hot,
        )

    def edge(action: str, moved: float, resource: Resource | None = None) -> Edge | None:
        is_hot = resource is not None and resource == hot
        size = _size(moved)
        return Edge(action=action, moved_bytes=moved, size=size, is_hot=is_hot) if moved else None

    listed = report.instructions
    spaces = {one.space for one in listed if one.requests}
    has_shared, is_off_chip = "shared" in spaces, bool(spaces & set(OFF_CHIP))
    fetched, written = l2_bytes(report)
    dram_read, dram_written, dirty = _at_dram(report)
    return MemoryFlow(
        shared=unit(Resource.SHARED_MEMORY, "Shared memory") if has_shared else None,
        l1=unit(Resource.L1, "L1") if is_off_chip else None,
        l2=unit(Resource.L2, "L2") if is_off_chip else None,
        dram=unit(Resource.DRAM, "DRAM") if is_off_chip else None,
        shared_load=edge(
            "load", requested_bytes(listed, of="shared", reads=True), Resource.SHARED_MEMORY
        ),
        shared_store=edge(
            _stores(listed, "shared"), requested_bytes(listed, of="shared", reads=False)
        ),
        l1_load=edge("load", requested_bytes(listed, of="global", reads=True)),
        l1_store=edge(_stores(listed, "global"), requested_bytes(listed, of="global", reads=False)),
        l2_read=edge("read", fetched, Resource.L2),
        l2_write=edge("write", written),
        dram_read=edge("read", dram_read, Resource.DRAM),
        dram_write=edge("write", dram_written + dirty),
        shared_note=list(_shared_note(listed)) if has_shared else (),
        dram_note=list(_dram_note(dirty)),
        label="Bytes between registers, shared memory, L1, L2 and DRAM",
    )


def _stores(instructions: Iterable[InstructionCounts], space: str) -> str:
    """'store', or 'atomic' if nothing else writes."""
    spaces = ("shared",) if space == "shared" else OFF_CHIP
    actions = {one.action for one in instructions if one.space in spaces and one.requests}
    return "store" if "store" in actions else "atomic"


def _at_dram(report: LaunchReport) -> tuple[float, float, float]:
    """Bytes that a launch reads and writes at DRAM, and those written of lines dirty before."""
    read, written = (float(total(report.counters, name)) for name in DRAM_TRAFFIC)
    return read, written, report.predicted.dirty_bytes if report.predicted else 0.0


def _dram_note(dirty: float) -> Iterator[str]:
    if dirty:
        yield f"{_size(dirty)} of the writes are lines"
        yield "that were dirty before the launch"


def _shared_note(instructions: Iterable[InstructionCounts]) -> Iterator[str]:
    of = [one for one in instructions if one.space == "shared"]
    found, ideal = sum(one.wavefronts for one in of), sum(one.conflict_free for one in of)
    if found > ideal > 0:
        yield f"{_many(found)} wavefronts, ideal {_many(ideal)}"
        yield f"{text.three_digits(100 * (1 - ideal / found))} % of them repeat a bank"


def _many(value: int) -> str:
    """'4.19 M'"""
    for scale, prefix in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if value >= scale:
            return f"{text.three_digits(value / (1e3 if prefix == ' k' else scale))}{prefix}"
    return f"{value:,}"


def _size(moved: float) -> str:
    """A size in powers of 1000, as bandwidths have them: '16.8 MB'."""
    return text.bytes_per_s(moved, digits=3).removesuffix("/s") if moved >= 1 else "0 B"
