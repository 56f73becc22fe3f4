"""Do plans keep their word? Random launches executed by plan, and with all blocks.

    python -m validation.plans.compare --seeds 0 2000 [--limit 0] [--device h200] [--json FILE]

A counter that the plan calls exact must be equal to that of all blocks; an estimate has an interval
that should contain it in 95% of the cases where every kind of block is frequent; a time is compared
where nothing is estimated. `--limit 0` keeps estimates for which all blocks would be executed.
Exits with 1 if a counter that is no estimate differs, or if a launch cannot be executed. Ctrl-C
ends early with the table of what is done. `python -m validation.plans.launches SEED` prints the
source of a launch.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from analysis.devices import Device, find_device
from analysis.errors import ToolkitError
from analysis.records.counters import COUNTERS
from toolkit.execution.simulate import simulate
from toolkit.launch.launch import Execution
from toolkit.machine_code.architectures import architecture_of
from toolkit.machine_code.kernel import Kernel
from validation.plans.launches import AT_A_TIME, Launch, kernel_of, launch_of

RARE = 0.05  # share of the rarest kind of block, below which random blocks often miss it
NEAR, FAR = 0.02, 0.10  # relative differences of times
MOST_INSTRUCTIONS = 10**9


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The interval of a counter, and what all blocks count."""

    low: float
    high: float
    counted: int

    @property
    def is_right(self) -> bool:
        return self.low <= self.counted <= self.high


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One launch both ways. `differing`: counters that are no estimates, as planned and counted.

    `instructions_differ`: whether those of single instructions differ, where nothing is estimated.
    `time` is relative to that of all blocks. `error`: why the launch could not be executed.
    """

    seed: int
    blocks: int = 0
    executed: int = 0
    is_affine: bool = False
    has_frequent_kinds: bool = False
    rarest_share: float | None = None
    proved: int = 0
    differing: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    instructions_differ: bool = False
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    unseen_share: float | None = None
    time: float | None = None
    plan_s: float = 0.0
    all_s: float = 0.0
    error: str = ""

    @property
    def has_plan(self) -> bool:
        return self.executed < self.blocks


def executed(
    launch: Launch, code: Kernel, device: Device | None, limit_s: float | None
) -> Execution:
    """A launch executed by plan, or all of its blocks if there is no limit."""
    return simulate(
        code,
        grid=launch.grid,
        block=launch.block,
        arguments=launch.arguments,
        blocks="all" if limit_s is None else "representative",
        limit_s=limit_s or 0.0,
        max_instructions=MOST_INSTRUCTIONS,
        workers=1,
        device=device,
        outputs=False,
    )


def compared(seed: int, *, device: Device | None, limit_s: float) -> Comparison:
    """The launch of this seed both ways. Errors are part of the result."""
    try:
        launch = launch_of(seed)
        code = kernel_of(launch, architecture_of(None, device) if device else None)
        start = time.perf_counter()
        few = executed(launch, code, device, limit_s)
        middle = time.perf_counter()
        every = executed(launch, code, device, None)
        seconds = middle - start, time.perf_counter() - middle
        return _of_executions(launch, few, every, seconds)
    except ToolkitError as error:
        return Comparison(seed=seed, error=str(error))
    except Exception:
        return Comparison(seed=seed, error=traceback.format_exc())


def _of_executions(
    launch: Launch, few: Execution, every: Execution, seconds: tuple[float, float]
) -> Comparison:
    proved = [name for name in COUNTERS if name not in few.estimates]
    pairs = {name: (few.counters[name], every.counters[name]) for name in proved}
    return Comparison(
        seed=launch.seed,
        blocks=launch.blocks,
        executed=few.executed_blocks or 0,
        is_affine=launch.is_affine,
        has_frequent_kinds=launch.has_frequent_kinds,
        rarest_share=launch.rarest_share,
        proved=len(proved),
        differing={name: pair for name, pair in pairs.items() if pair[0] != pair[1]},
        instructions_differ=not few.estimates and few.instructions != every.instructions,
        estimates={
            name: Estimate(low=low, high=high, counted=every.counters[name])
            for name, (low, high) in few.estimates.items()
        },
        unseen_share=few.unseen_share,
        time=_relative_time(few, every),
        plan_s=round(seconds[0], 3),
        all_s=round(seconds[1], 3),
    )


def _relative_time(few: Execution, every: Execution) -> float | None:
    if few.estimates or few.predicted is None or every.predicted is None:
        return None
    return few.predicted.time_s / every.predicted.time_s - 1


def summary(found: Sequence[Comparison]) -> Iterator[str]:
    """The table, and each launch that is not as it should be."""
    done = [one for one in found if not one.error]
    yield _row("launches that ended with an error", len(found) - len(done))
    yield from _plans(done)
    yield from _estimates([one for one in done if one.estimates])
    yield from _times([one for one in done if one.has_plan and one.time is not None])
    for one in found:
        if one.error:
            yield f"seed {one.seed}: {one.error}"
        for name, (few, every) in one.differing.items():
            yield f"seed {one.seed}: {name}: {few:,} by plan, {every:,} of all blocks"
        if one.instructions_differ and not one.differing:
            yield f"seed {one.seed}: counters of single instructions differ"


def _plans(done: Sequence[Comparison]) -> Iterator[str]:
    planned = [one for one in done if one.has_plan]
    yield _row("launches executed both ways", len(done))
    yield _row("  affine arithmetic and comparisons alone", sum(one.is_affine for one in done))
    yield _row("planned: fewer blocks executed than there are", len(planned))
    yield _row("  affine arithmetic and comparisons alone", sum(one.is_affine for one in planned))
    yield _row("  without an estimate", sum(not one.estimates for one in planned))
    yield _row("all blocks executed", len(done) - len(planned))
    yield _row("proved counters of planned launches", sum(one.proved for one in planned))
    yield _row("  that differ from those of all blocks", sum(len(one.differing) for one in done))
    yield _row(
        "launches whose single instructions differ", sum(o.instructions_differ for o in done)
    )


def _estimates(estimated: Sequence[Comparison]) -> Iterator[str]:
    frequent = [one for one in estimated if one.has_frequent_kinds]
    intervals = [each for one in frequent for each in one.estimates.values()]
    right = [all(each.is_right for each in one.estimates.values()) for one in frequent]
    widths = [
        (each.high - each.low) / 2 / each.counted
        for one in estimated
        for each in one.estimates.values()
        if each.counted
    ]
    rare = [one for one in estimated if one.rarest_share is not None and one.rarest_share < RARE]
    yield _row("launches with estimates", len(estimated))
    yield _row("  every kind of block frequent", len(frequent))
    yield _part("    all intervals contain the count", sum(right), len(right))
    yield _part("    intervals that contain it", sum(x.is_right for x in intervals), len(intervals))
    if widths:
        yield f"{'  median relative half width of an interval':48}{median(widths):9.2%}"
    yield _part("  a rare kind: unseen blocks may differ", sum(map(_may_miss, rare)), len(rare))


def _may_miss(one: Comparison) -> bool:
    return one.unseen_share is not None and one.unseen_share > 0


def _times(timed: Sequence[Comparison]) -> Iterator[str]:
    away = [abs(one.time) for one in timed if one.time is not None]
    for limit in (NEAR, FAR):
        within = sum(each <= limit for each in away)
        yield _part(f"times of proved plans within {limit:.0%}", within, len(away))
    if away:
        yield f"{'  largest difference':48}{max(away):9.2%}"
    worst = sorted(timed, key=lambda one: -abs(one.time or 0))[:10]
    for one in worst:
        if one.time is not None and abs(one.time) > FAR:
            yield f"    seed {one.seed}: {one.time:+.1%}"


def _row(label: str, count: int) -> str:
    return f"{label:48}{count:9,}"


def _part(label: str, count: int, of: int) -> str:
    return f"{_row(label, count)} of {of:,}" + (f" ({count / of:.1%})" if of else "")


def comparisons(
    seeds: range, *, device: Device | None, limit_s: float, processes: int
) -> Iterator[Comparison]:
    """The comparison of each seed, as they finish."""
    compare = partial(compared, device=device, limit_s=limit_s)
    if processes == 1:
        yield from map(compare, seeds)
        return
    context = get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, initializer=_leave_interrupts)
    pending = [pool.submit(_all_of, compare, part) for part in _compiled_together(seeds)]
    try:
        for one in as_completed(pending):
            yield from one.result()
    finally:  # after Ctrl-C the table is printed before the last launches end
        pool.shutdown(wait=False, cancel_futures=True)


def _all_of(compare: Callable[[int], Comparison], seeds: range) -> list[Comparison]:
    return [compare(seed) for seed in seeds]


def _compiled_together(seeds: range) -> Iterator[range]:
    """Parts of the seeds: the kernels of each are in one file of machine code."""
    begin = seeds.start
    while begin < seeds.stop:
        end = min(seeds.stop, (begin // AT_A_TIME + 1) * AT_A_TIME)
        yield range(begin, end)
        begin = end


def _leave_interrupts() -> None:
    """Ctrl-C ends the first process, and that one the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 200), metavar=("FIRST", "END"))
    parser.add_argument("--limit", type=float, default=10.0, metavar="SECONDS", help="of simulate")
    parser.add_argument("--device", help="predict times on this device, whose code is compiled")
    parser.add_argument("--processes", type=int, choices=(1, 2), default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="a line for each launch")
    chosen = parser.parse_args(argv)
    device = find_device(chosen.device) if chosen.device else None
    seeds, found = range(*chosen.seeds), list[Comparison]()
    with suppress(KeyboardInterrupt):
        for one in comparisons(
            seeds, device=device, limit_s=chosen.limit, processes=chosen.processes
        ):
            found.append(one)
            print(f"\r{len(found):,} of {len(seeds):,}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if chosen.json:
        lines = (json.dumps(asdict(one)) + "\n" for one in found)
        chosen.json.write_text("".join(lines), encoding="utf-8")
    print("\n".join(summary(found)))
    return int(any(one.error or one.differing or one.instructions_differ for one in found))


if __name__ == "__main__":
    sys.exit(main())
