"""Facts about a launch: its occupancy, how far to trust each number, and what it does not use."""

from __future__ import annotations

import re
from collections.abc import Iterator

from analysis.comparison.accuracy import Accuracy, accuracies, held_out_like
from analysis.comparison.held_out import HeldOut
from analysis.comparison.interval import COVERED, COVERS
from analysis.comparison.statistics import median_interval
from analysis.devices import DEVICES, Device
from analysis.errors import InputError
from analysis.occupancy import Occupancy, block_limits, occupancy, waves
from analysis.records.profile import Interval
from reports import text
from reports.sections.launch_report import LaunchReport
from reports.svg.busy import Bar

Row = tuple[str, str]


def occupancy_of(report: LaunchReport) -> Occupancy | None:
    """Theoretical occupancy, None without a geometry or a device, or where no block fits."""
    if report.device is None or report.geometry is None:
        return None
    try:
        return occupancy(report.device, **_needs(report))
    except InputError:
        return None


def _needs(report: LaunchReport) -> dict[str, int]:
    assert report.geometry is not None
    return {
        "threads_per_block": report.geometry.threads_per_block,
        "registers_per_thread": report.resources.registers_per_thread,
        "shared_bytes_per_block": report.resources.static_shared_bytes
        + report.geometry.dynamic_shared_bytes,
    }


def occupancy_sentence(report: LaunchReport) -> str:
    found, device, geometry = occupancy_of(report), report.device, report.geometry
    if found is None or device is None or geometry is None:
        return "How many warps fit on an SM is unknown without grid, block and device."
    share = text.three_digits(100 * found.fraction)
    number = waves(geometry.blocks, device, found)
    blocks = text.many(geometry.blocks, "block")
    ending = "s" if geometry.blocks == 1 else ""
    filled = (
        f"{blocks} make{ending} {text.three_digits(number)} waves on {device.sm_count} SMs."
        if number >= 1
        else f"{blocks} fill{ending} {text.three_digits(100 * number)} % of one wave on "
        f"{device.sm_count} SMs."
    )
    return (
        f"{found.warps_per_sm} of {found.max_warps_per_sm} warps fit on an SM: {share} % "
        f"theoretical occupancy, limited by {text.listing(found.limiters)}. {filled}"
    )


def occupancy_bars(report: LaunchReport) -> list[Bar]:
    """Blocks per SM that each resource allows."""
    found, device = occupancy_of(report), report.device
    if found is None or device is None:
        return []
    limits = sorted(block_limits(device, **_needs(report)).items(), key=lambda one: one[1])
    longest = max(limit for _, limit in limits)
    return [
        Bar(
            name=name,
            share=limit / longest,
            value=f"{limit:,}",
            class_="s1" if name in found.limiters else "s2",
        )
        for name, limit in limits
    ]


def launch_rows(report: LaunchReport) -> Iterator[Row]:
    resources, geometry = report.resources, report.geometry
    if geometry:
        yield "grid", times(geometry.grid)
        yield "block", times(geometry.block)
    yield "registers per thread", f"{resources.registers_per_thread}"
    yield "static shared memory per block", text.size(resources.static_shared_bytes)
    if geometry and geometry.dynamic_shared_bytes:
        yield "dynamic shared memory per block", text.size(geometry.dynamic_shared_bytes)
    yield "local memory per thread (spills)", text.size(resources.local_bytes)
    if report.predicted:
        yield "clock", f"{report.predicted.clock_hz / 1e6:,.0f} MHz"
        yield "L2 before the launch", report.predicted.l2
    yield "architecture", resources.architecture


def times(extent: tuple[int, int, int]) -> str:
    """'64 × 64', without trailing ones."""
    sizes = list(extent)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return " × ".join(f"{size:,}" for size in sizes)


# Trust.


def known_errors(report: LaunchReport) -> list[Accuracy]:
    """Errors of predictions for such a kernel on the device, or on devices alike."""
    if report.device is None or report.predicted is None:
        return []
    kind = "ladder" if report.is_rung else "other kernels"
    found = accuracies(report.device)
    return [one for one in found if one.kernels == kind] or list(found)


NONE_ALIKE = "no similar launch was measured"


def errors_alike(report: LaunchReport) -> HeldOut | None:
    """Error of held-out launches of the device with the same limiter, None of fewer than five."""
    if report.device is None or report.predicted is None:
        return None
    return held_out_like(report.device, report.predicted.limiter, is_rung=report.is_rung)


def error_short(report: LaunchReport) -> str:
    """'25.2 to 33.1 µs in 80 % of launches like it'; empty without a predicted time.

    Without an interval 'mean error 14.6 %, 22 launches'.
    """
    if report.predicted is None:
        return ""
    if ends := report.predicted.interval_s:
        shown = text.interval(Interval(low=ends[0], high=ends[1]), text.predicted_seconds)
        return f"{shown} in {round(100 * COVERS)} % of launches like it"
    alike = errors_alike(report)
    if alike is None:
        return NONE_ALIKE
    return f"mean error {text.percent(alike.mean_error)}, {alike.launches} launches"


def error_sentence(report: LaunchReport) -> str:
    """The same for the terminal, with what the launches have in common."""
    alike = errors_alike(report)
    if alike is None:
        return _within_interval(report)
    return (
        f"mean error {text.percent(alike.mean_error)} on {alike.launches} held-out launches of "
        f"this GPU that {alike.limiter} limits"
    )


def _within_interval(report: LaunchReport) -> str:
    """Say how often the interval of the first line is meant to hold, and how often it held.

    Without an interval, the same as `error_short`.
    """
    if report.predicted is None or not report.predicted.interval_s:
        return error_short(report)
    return (
        f"{round(100 * COVERS)} % interval: {round(100 * COVERED)} % of the held-out launches were "
        "inside theirs"
    )


def measured_sentence(report: LaunchReport) -> str:
    """'median of 100 launches and its 95 % interval; the predicted time is 6.0 % shorter'.

    Empty without a measurement.
    """
    if report.measured_s is None:
        return ""
    within = " and its 95 % interval" if median_interval(report.samples_s) else ""
    told = f"{_launches(report)}{within}"
    if report.predicted is None:
        return told
    error = report.predicted.time_s / report.measured_s - 1
    how = "longer" if error > 0 else "shorter"
    return f"{told}; the predicted time is {text.percent(abs(error))} {how}"


def _launches(report: LaunchReport) -> str:
    number = len(report.samples_s)
    return f"median of {number:,} launches" if number > 1 else "one launch"


def trust_sentence(report: LaunchReport) -> str:
    predicted, device = report.predicted, report.device
    if predicted is None or device is None:
        return "No time was predicted."
    known = known_errors(report)
    if not known:
        return f"Predictions for {device.name} were never compared with measured times."
    measured_on = list(dict.fromkeys(DEVICES[one.device].name for one in known))
    here = "this GPU" if measured_on == [device.name] else text.listing(measured_on)
    own = "" if predicted.is_fitted else " The constants were not fitted on such a device."
    is_alike = predicted.interval_s or errors_alike(report)
    none = "" if is_alike else f" {text.capital(NONE_ALIKE)}."
    return f"Predictions were compared with measured times of {here}.{own}{none}"


def error_rows(report: LaunchReport) -> Iterator[tuple[str, str, str, str]]:
    """Device, launches, their number, mean error in percent."""
    if alike := errors_alike(report):
        yield (
            DEVICES[alike.device].name,
            f"the same limiter, {alike.limiter}, held out",
            f"{alike.launches}",
            text.three_digits(100 * alike.mean_error),
        )
    for one in known_errors(report):
        how = "held out" if one.is_held_out else "fitted"
        yield (
            DEVICES[one.device].name,
            f"{one.what}, {how}",
            f"{one.launches}",
            text.three_digits(100 * one.mean_error),
        )


def grade_rows(report: LaunchReport) -> Iterator[tuple[str, str, str]]:
    """Rows of results: what was obtained, its grade, and its source."""
    if report.measured_s is not None:
        interval = median_interval(report.samples_s)
        within = f", 95 % interval {text.interval(interval, text.seconds)}" if interval else ""
        shown = text.predicted_seconds(report.measured_s)
        yield shown, "measured", f"{_launches(report)}{within}"
    if report.predicted:
        basis = report.prediction_basis or report.predicted.basis
        told = text.predicted_seconds(report.predicted.time_s)
        yield f"{told}, its parts and lines", "predicted", basis
    if report.basis:
        yield "instructions, requests, bank conflicts", "simulated", report.basis
    if report.traffic_basis:
        yield "bytes at L2 and DRAM", "modelled", report.traffic_basis.removeprefix("modelled ")
    yield "registers, shared memory, occupancy", "compiled", report.resources.compiler


_FEATURES = {
    "FP64": ("DFMA", "DADD", "DMUL", "DMMA"),
    "tensor cores": ("HMMA", "IMMA", "DMMA", "HGMMA", "IGMMA", "QGMMA", "BGMMA", "BMMA"),
}


def unused(report: LaunchReport) -> list[str]:
    """Name the sections that the page leaves out, since the launch does not use them."""
    if not report.instructions:
        return []
    done = [one for one in report.instructions if one.executed]
    opcodes, spaces = {one.opcode for one in done}, {one.space for one in done}
    found = [name for name, of in _FEATURES.items() if not opcodes.intersection(of)]
    for name in ("shared", "local"):
        if name not in spaces:
            found.append(f"{name} memory")
    if not any(one.action in ("atomic", "reduction") for one in done):
        found.append("atomics")
    return found


def short_device(device: Device | None) -> str:
    """'H100 SXM5', without the maker and the memory."""
    if device is None:
        return ""
    return re.sub(r" \d+ GB$", "", device.name.removeprefix("NVIDIA "))
