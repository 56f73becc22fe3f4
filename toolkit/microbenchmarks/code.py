"""How fast an SM fetches code that is longer than what it keeps of it: ever longer loops."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.probe import Op, Probe, interleaved
from toolkit.microbenchmarks.record import Benchmark, Measured

KIB = 1024
INSTRUCTION_BYTES, LINE_BYTES = 16, 128
LOOP_INSTRUCTIONS = 8  # about, of the loop itself
CHAINS = 8
SIZES_KIB = (8, 16, 24, 30, 32, 34, 36, 40, 48, 64, 96, 112, 144)
FEW, MANY = 4, 20  # rounds
WARPS_PER_SCHEDULER = (1, 2, 4)


def _probe(kib: int) -> Probe:
    op = Op(ptx="fma.rn.f32 {x}, {x}, {x}, {x};", opcode="FFMA", letter="f")
    count = kib * KIB // INSTRUCTION_BYTES - LOOP_INSTRUCTIONS
    return interleaved(f"code_{kib}_kib", [op], chains=CHAINS, count=count)


LOOPS = {kib: _probe(kib) for kib in SIZES_KIB}
PROBES = tuple(LOOPS.values())


def _measure(bench: Bench, kib: int, *, everywhere: bool) -> Measured:
    blocks = bench.device.sm_count if everywhere else 1
    probe = LOOPS[kib]
    found = {
        per: bench.cycles(probe, warps=4 * per, blocks=blocks, few=FEW, many=MANY).scaled(
            LINE_BYTES / INSTRUCTION_BYTES / probe.count
        )
        for per in WARPS_PER_SCHEDULER
    }
    return found[1].with_detail(
        cycles_by_warps_per_scheduler={str(per): m.value for per, m in found.items()}
    )


def _benchmarks() -> Iterator[Benchmark]:
    for everywhere, where in ((False, "one_sm"), (True, "all_sms")):
        for kib in SIZES_KIB:
            yield Benchmark(
                name=f"code_{kib}_kib_{where}_cycles",
                unit="cycles per 128 bytes of code",
                how=f"FFMAs on {where.replace('_', ' ')}, 1 warp per scheduler (2, 4: detail)",
                measure=partial(_measure, kib=kib, everywhere=everywhere),
            )


BENCHMARKS = tuple(_benchmarks())
