"""What is issued while multiply-adds wait for their registers: nothing, it turns out.

Groups of eight FFMAs whose operands conflict or do not, and behind each group a longer stall,
moves, which read nothing, or shared stores. Were a multiply-add to leave the dispatch before its
registers are read, what follows a group would be hidden by the conflicts of its last ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from analysis.errors import ToolkitError
from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.probe import Op, Probe, interleaved
from toolkit.microbenchmarks.record import Benchmark, Measured
from toolkit.microbenchmarks.registers import PATTERNS, encoded
from toolkit.microbenchmarks.words import (
    BRA,
    DESTINATION,
    FFMA,
    LOP3,
    RZ,
    SECOND,
    STS,
    banks,
    mov,
    written,
)
from toolkit.patching import STALL, STALL_BITS, field, opcode, with_field

GROUPS, GROUP = 30, 8
CHAINS = 5  # of each place of a group: 40 registers
WARPS_PER_SCHEDULER = (1, 2)
SHARED_BYTES, ADDRESS = 16_384, 4_096  # what stores write to

OPS = {
    "mov": Op(ptx="lop3.b32 {x}, {x}, {a}, {b}, 0x2d;", opcode=r"MOV R\d+,\s?RZ"),  # written over
    "sts": Op(ptx="st.volatile.shared.b32 [{a}], {x};", opcode="STS"),
}
CODES = {"mov": LOP3, "sts": STS}
_FFMA = Op(ptx="fma.rn.f32 {x}, {x}, {x}, {x};", opcode="FFMA", letter="f")


@dataclass(frozen=True, kw_only=True)
class Behind:
    """What follows a group: so many of an instruction, or none but a longer stall.

    `data` is the bank of what is stored.
    """

    op: str | None = None
    number: int = 0
    stall: int = 1
    data: str = ""

    @property
    def name(self) -> str:
        return (
            "_".join(filter(None, (str(self.number), self.op, self.data)))
            if self.op
            else f"stall_{self.stall}"
        )


BANKS = ("even", "odd")
BEHIND = (
    *(Behind(stall=stall) for stall in (1, 2, 4, 8)),
    *(Behind(op="mov", number=number) for number in (1, 2)),
    *(Behind(op="sts", number=number, data=bank) for number in (1, 2, 3) for bank in BANKS),
)
GROUPED = ("even_odd_zero", "even_even_odd", "even_even_even")  # 1, 2, 3 clocks each


def patched(words: list[int], pattern: Sequence[str], behind: Behind) -> list[int]:
    """The loop's FFMAs in groups, as the pattern says, and the others behind each group."""
    ffmas = [i for i, word in enumerate(words) if opcode(word) == FFMA]
    jump = next(i for i in range(ffmas[-1], len(words)) if opcode(words[i]) == BRA)
    code = CODES.get(behind.op or "")
    others = [i for i, word in enumerate(words[:jump]) if opcode(word) == code]
    others = others[len(others) - GROUPS * behind.number :]
    if len(ffmas) != GROUPS * GROUP or len(others) != GROUPS * behind.number:
        raise ToolkitError(f"{len(ffmas)} FFMAs and {len(others)} {behind.op} are not as written")
    even, odd = banks(written(words, FFMA))
    result, place = list(words), iter(sorted([*ffmas, *others]))
    for group in range(GROUPS):
        for position in range(GROUP):
            word = encoded(pattern[position % len(pattern)], even, odd)
            if position == GROUP - 1 and behind.stall > 1:
                word = with_field(word, STALL, STALL_BITS, behind.stall)
            result[next(place)] = word
        for word in (words[i] for i in others[group * behind.number :][: behind.number]):
            result[next(place)] = _other(word, behind, odd if behind.data == "odd" else even)
    return result


def _other(word: int, behind: Behind, of_bank: Sequence[int]) -> int:
    if behind.op == "mov":
        return mov(field(word, DESTINATION, 8), RZ)
    return with_field(with_field(word, STALL, STALL_BITS, 1), SECOND, 8, of_bank[-1])


def _probe(pattern: str, behind: Behind) -> Probe:
    ops = [_FFMA] * GROUP + [OPS[behind.op]] * behind.number if behind.op else [_FFMA] * GROUP
    name = f"group_{pattern}_{behind.name}"
    base = interleaved(name, ops, chains=CHAINS, count=GROUPS * len(ops))
    return replace(base, patch=lambda words: patched(words, PATTERNS[pattern], behind))


GROUPS_OF = {(pattern, b.name): _probe(pattern, b) for pattern in GROUPED for b in BEHIND}
PROBES = tuple(GROUPS_OF.values())


def _measure(bench: Bench, probe: Probe) -> Measured:
    bench.place([ADDRESS] * 64)
    found = {
        per: bench.cycles(probe, warps=4 * per, dynamic_shared_bytes=SHARED_BYTES).scaled(
            1 / (per * GROUPS)
        )
        for per in WARPS_PER_SCHEDULER
    }
    return found[1].with_detail(
        cycles_by_warps_per_scheduler={str(per): m.value for per, m in found.items()}
    )


def _benchmarks() -> Iterator[Benchmark]:
    for probe in PROBES:
        yield Benchmark(
            name=f"ffma_{probe.name}_cycles",
            unit="cycles per group and scheduler",
            how=f"{GROUP} rewritten FFMAs and what follows, 1 warp per scheduler (2: detail)",
            measure=partial(_measure, probe=probe),
        )


BENCHMARKS = tuple(_benchmarks())
