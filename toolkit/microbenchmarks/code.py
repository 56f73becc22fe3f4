"""Rate at which an SM fetches code: ever longer loops beyond its cache, with and without jumps.

Also code that a launch executes once, after another launch of it and after one of other code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from toolkit.microbenchmarks.bench import ALL_SMS, REPEATS, SCHEDULERS, WHERE, Bench
from toolkit.microbenchmarks.probe import MULTIPLY_ADD, Probe, interleaved
from toolkit.microbenchmarks.record import Benchmark, Median, each, values

KIB = 1024
INSTRUCTION_BYTES, LINE_BYTES = 16, 128
LOOP_INSTRUCTIONS = 8  # about, of the loop itself
CHAINS = 8
SIZES_KIB = (8, 16, 24, 30, 32, 34, 36, 40, 48, 64, 96, 112, 144)
FEW, MANY = 4, 20  # rounds
WARPS_PER_SCHEDULER = (1, 2, 4)


# Size in KiB of what is executed, and how many jumps it has over DEAD instructions that never are.
JUMPING = ((28, 4), (30, 2), (30, 4), (32, 1), (32, 2), (32, 4), (34, 4), (36, 4))
DEAD = 88  # 11 lines

LINE = LINE_BYTES // INSTRUCTION_BYTES
OTHER_KIB = 144  # of code that leaves nothing of the code before it in the cache of an SM
ONCE_KIB = (8, 16, 30, 64)
AFTER = ("itself", "other_code")
SKIPPED_LINES = (1, 2, 3, 4, 5, 6, 8, 12)
HOPS = 31
LOOP_LINES = (1, 2, 3, 4, 6, 8, 16, 32, 64)
HOPS_OF_LOOP = ((1, 3), (2, 3), (4, 3), (8, 3), (12, 3), (16, 3), (24, 3), (4, 1), (16, 1), (4, 8))


def _probe(kib: int) -> Probe:
    count = kib * KIB // INSTRUCTION_BYTES - LOOP_INSTRUCTIONS
    return interleaved(f"code_{kib}_kib", [MULTIPLY_ADD], chains=CHAINS, count=count)


def _with_jumps(plain: Probe, jumps: int, skipped: int = DEAD) -> Probe:
    """The same with jumps over multiply-adds, evenly spread, which are all taken."""
    head, *lines, end = plain.body.split("\n")
    every = len(lines) // (jumps + 1)
    for k in range(jumps, 0, -1):
        dead = [lines[n % len(lines)] for n in range(skipped)]
        label = f"OVER_{k}"
        lines[k * every : k * every] = [f"@go bra {label};", *dead, f"{label}:"]
    register = plain.body.count('"+f"') + plain.body.count('"f"')  # the last operand's number
    go = [".reg .pred go;", f"setp.ne.s32 go, %{register}, 0;"]
    assert ' : "memory");' in end
    end = end.replace(' : "memory");', ', "r"(rounds) : "memory");')
    return replace(
        plain, name=f"{plain.name}_{jumps}_jumps", body="\n".join([head, *go, *lines, end])
    )


LOOPS = {(kib, 0): _probe(kib) for kib in SIZES_KIB}
LOOPS |= {(kib, jumps): _with_jumps(_probe(kib), jumps) for kib, jumps in JUMPING}


def _hops(hops: int, skipped: int) -> Probe:
    """Lines of multiply-adds with a jump over some lines after each of them but the last one."""
    name, count = f"{hops}_times_{skipped}_lines", LINE * (hops + 1)
    plain = interleaved(f"hop_{name}", [MULTIPLY_ADD], chains=CHAINS, count=count)
    return _with_jumps(plain, hops, LINE * skipped)


HOPPING = {(HOPS, skipped): _hops(HOPS, skipped) for skipped in SKIPPED_LINES}
HOPPING |= {(hops, skipped): _hops(hops, skipped) for hops, skipped in HOPS_OF_LOOP}
SHORT_LOOPS = {
    lines: interleaved(f"loop_of_{lines}_lines", [MULTIPLY_ADD], chains=CHAINS, count=LINE * lines)
    for lines in LOOP_LINES
}
PROBES = (*LOOPS.values(), *HOPPING.values(), *SHORT_LOOPS.values())


def _measure(bench: Bench, of: Probe, on: str) -> Median:
    how = {"schedulers": SCHEDULERS, "blocks": bench.blocks(on), "few": FEW, "many": MANY}
    found = {
        # of all warps of a scheduler
        number: cycles.scaled(number * LINE_BYTES / INSTRUCTION_BYTES)
        for number, cycles in bench.by_warps(of, WARPS_PER_SCHEDULER, **how).items()
    }
    return found[1].with_detail(cycles_by_warps_per_scheduler=values(found))


def _once(bench: Bench, of: Probe, after: str) -> Median:
    """Clocks of a launch that executes the probe once, with one warp per scheduler on all SMs."""
    how = {"warps": SCHEDULERS, "blocks": bench.blocks(ALL_SMS), "rounds": 1}
    before = LOOPS[(OTHER_KIB, 0)] if after == "other_code" else of
    samples = []
    for _ in range(REPEATS):
        bench.clocks(before, **how)
        samples.append(float(np.median(bench.clocks(of, **how).spans)))
    return Median.of(samples)


def _once_per_line(bench: Bench, kib: int, after: str) -> Median:
    return _once(bench, LOOPS[(kib, 0)], after).scaled(LINE_BYTES / KIB / kib)


def _hop(bench: Bench, skipped: int, after: str) -> Median:
    """Clocks of a jump and of the line that it leads to."""
    return _once(bench, HOPPING[HOPS, skipped], after).scaled(1 / HOPS)


def _short_loop(bench: Bench, lines: int) -> Median:
    """Clocks of a turn of a loop, with one warp per scheduler."""
    return bench.cycles(SHORT_LOOPS[lines], warps=SCHEDULERS, blocks=bench.blocks(ALL_SMS))


def _hops_of_loop(bench: Bench, shape: tuple[int, int]) -> Median:
    """Clocks of a turn of a loop with jumps, with one warp per scheduler."""
    return bench.cycles(HOPPING[shape], warps=SCHEDULERS, blocks=bench.blocks(ALL_SMS))


def _benchmarks() -> Iterator[Benchmark]:
    for on in WHERE:
        for (_, jumps), probe in LOOPS.items():
            how = f"FFMAs on {on.replace('_', ' ')}, 1 warp per scheduler (2, 4: detail)"
            if jumps:
                how += f", {jumps} jumps over {DEAD} more"
            unit = "cycles per 128 bytes of code"
            yield from each("{of.name}_{on}_cycles", unit, how, _measure, of=probe, on=on)

    yield from each(
        "once_{kib}_kib_after_{after}_cycles",
        "cycles per 128 bytes of code",
        "FFMAs without a loop on all SMs, 1 warp per scheduler, after a launch of {after}",
        _once_per_line,
        kib=ONCE_KIB,
        after=AFTER,
    )
    yield from each(
        "hop_over_{skipped}_lines_after_{after}_cycles",
        "cycles per jump",
        "8 FFMAs, then a jump over {skipped} lines of code, after a launch of {after}",
        _hop,
        skipped=SKIPPED_LINES,
        after=AFTER,
    )
    yield from each(
        "loop_of_{lines}_lines_cycles",
        "cycles per turn",
        "loop of 8 FFMAs per line on all SMs, 1 warp per scheduler",
        _short_loop,
        lines=LOOP_LINES,
    )
    yield from each(
        "loop_with_{shape[0]}_hops_over_{shape[1]}_lines_cycles",
        "cycles per turn",
        "loop of 8 FFMAs per line, {shape[0]} jumps over {shape[1]} lines between them",
        _hops_of_loop,
        shape=HOPS_OF_LOOP,
    )


BENCHMARKS = tuple(_benchmarks())
