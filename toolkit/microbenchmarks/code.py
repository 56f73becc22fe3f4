"""Rate at which an SM fetches code beyond its cache: ever longer loops, with and without jumps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from toolkit.microbenchmarks.bench import SCHEDULERS, WHERE, Bench
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


def _probe(kib: int) -> Probe:
    count = kib * KIB // INSTRUCTION_BYTES - LOOP_INSTRUCTIONS
    return interleaved(f"code_{kib}_kib", [MULTIPLY_ADD], chains=CHAINS, count=count)


def _with_jumps(plain: Probe, jumps: int) -> Probe:
    """The same with jumps over multiply-adds, evenly spread, which are all taken."""
    head, *lines, end = plain.body.split("\n")
    every = len(lines) // (jumps + 1)
    for k in range(jumps, 0, -1):
        dead = lines[:DEAD]
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
PROBES = tuple(LOOPS.values())


def _measure(bench: Bench, of: Probe, on: str) -> Median:
    how = {"schedulers": SCHEDULERS, "blocks": bench.blocks(on), "few": FEW, "many": MANY}
    found = {
        # of all warps of a scheduler
        number: cycles.scaled(number * LINE_BYTES / INSTRUCTION_BYTES)
        for number, cycles in bench.by_warps(of, WARPS_PER_SCHEDULER, **how).items()
    }
    return found[1].with_detail(cycles_by_warps_per_scheduler=values(found))


def _benchmarks() -> Iterator[Benchmark]:
    for on in WHERE:
        for (_, jumps), probe in LOOPS.items():
            how = f"FFMAs on {on.replace('_', ' ')}, 1 warp per scheduler (2, 4: detail)"
            if jumps:
                how += f", {jumps} jumps over {DEAD} more"
            unit = "cycles per 128 bytes of code"
            yield from each("{of.name}_{on}_cycles", unit, how, _measure, of=probe, on=on)


BENCHMARKS = tuple(_benchmarks())
