"""The verdict on a launch: its time, its limiter, and its most expensive source line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analysis.comparison.accuracy import DEFAULT_DEVICE
from analysis.devices import Device
from analysis.records.counters import InstructionCounts
from analysis.records.metrics import is_arithmetic
from analysis.records.source_lines import LimitedWork, Line, summed_by_line
from analysis.timing.predict import dram_bytes_per_s
from analysis.timing.predicted import Predicted, Resource
from reports import text
from reports.sections.access import cost
from reports.sections.prediction import limits

# Of each limiter. Others are pipes, which the instructions of a line keep busy.
_WORK_OF = {
    Resource.SHARED_MEMORY: LimitedWork.WAVEFRONTS,
    Resource.L1: LimitedWork.SECTORS,
    Resource.L2: LimitedWork.SECTORS,
    Resource.ATOMICS: LimitedWork.ATOMICS,
    Resource.DRAM: LimitedWork.SECTORS,
    Resource.LATENCY: LimitedWork.ANY,
}


def verdict(
    kernel: str,
    instructions: Sequence[InstructionCounts],
    counters: Mapping[str, int],
    *,
    predicted: Predicted | None,
    device: Device | None,
    basis: str | None,
    file: str | None,
    uncertainty: str = "",
) -> Iterator[str]:
    """The time, the limiter, and the most expensive source line with the reason.

    `predicted` is the time on `device`, None where `basis` says why there is none, or where no
    device was named. Lines are of `file`, unless they say of which. `uncertainty` says that
    counters are estimates.
    """
    estimated = f" {uncertainty}." if uncertainty else ""
    if predicted is None or device is None:
        why = basis or f"no predicted time without a device, such as device='{DEFAULT_DEVICE.key}'"
        yield f"{kernel}: {why}.{estimated}"
        yield "Limiter: unknown without a predicted time."
    else:
        rate = text.flop_per_s(predicted.flop_per_s)
        also = f", {rate}" if is_arithmetic(instructions, counters) else ""
        yield (
            f"{kernel}: {text.predicted_seconds(predicted.time_s)} predicted on "
            f"{device.name}{also}.{estimated}"
        )
        yield f"L{limits(predicted)[1:]}{_of_dram(predicted, device)}."
    yield _most_expensive(summed_by_line(instructions), predicted, file)


def _of_dram(predicted: Predicted, device: Device) -> str:
    """The rate of DRAM and its share of the bandwidth, if DRAM limits."""
    if predicted.limiter != Resource.DRAM:
        return ""
    rate = dram_bytes_per_s(predicted, device)
    share = text.percent(rate / device.dram_bytes_per_s)
    return f": {text.bytes_per_s(rate, digits=3)} of DRAM, {share} of its bandwidth"


def _most_expensive(lines: Sequence[Line], predicted: Predicted | None, file: str | None) -> str:
    """The line with most of the work that limits the launch, and its dearest access."""
    if not lines:
        return "Most expensive line: unknown, the machine code was compiled without -lineinfo."
    limiting = (
        _WORK_OF.get(predicted.limiter, LimitedWork.INSTRUCTIONS) if predicted else LimitedWork.ANY
    )
    work = limiting if any(line.work(limiting) for line in lines) else LimitedWork.ANY
    line = max(lines, key=lambda line: line.work(work))
    share = text.percent(line.work(work) / sum(line.work(work) for line in lines))
    where = "" if line.file == file else f" of {line.file}"
    return f"Most expensive: line {line.number}{where}, {share} of {work}{_reason(line, work)}."


def _reason(line: Line, work: LimitedWork) -> str:
    """Cost of the line's most expensive access; empty if its instructions cost more."""
    of = [one for one in line.accesses if one.is_part_of(work)]
    one = max(of, key=lambda access: access.units, default=None)
    if one is None or (work is LimitedWork.ANY and one.units < line.executed / 2):
        return ""
    return f": {cost(one)}"
