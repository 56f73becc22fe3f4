"""What others cost multiply-adds, by the registers that they read.

Groups of eight FFMAs whose operands conflict or do not, and behind each group a longer stall,
moves, which read nothing, sums of three registers of a bank, or shared loads and stores. Were a
multiply-add to leave the dispatch before its registers are read, what follows a group would be
hidden by the conflicts of its last ones: it is not. What a request hands to the load/store unit is
read in some later clock, from the same banks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

from analysis.errors import ToolkitError
from toolkit.machine_code.patching import (
    BARRIERS,
    BARRIERS_BITS,
    NO_BARRIERS,
    STALL,
    STALL_BITS,
    WAIT,
    WAIT_BITS,
    field,
    opcode,
    with_field,
)
from toolkit.microbenchmarks.bench import SCHEDULERS, Bench
from toolkit.microbenchmarks.probe import Op, Probe, interleaved
from toolkit.microbenchmarks.record import Measured, each, values
from toolkit.microbenchmarks.registers import PATTERNS, encoded
from toolkit.microbenchmarks.words import (
    BRA,
    DESTINATION,
    FFMA,
    FIRST,
    LDS,
    LOP3,
    ONE_CYCLE,
    RZ,
    SECOND,
    STS,
    WIDTH,
    WIDTH_BITS,
    WIDTHS,
    banks,
    iadd3,
    mov,
    written,
)

GROUPS, GROUP = 30, 8
CHAINS = 5  # of each place of a group: 40 registers
WARPS_PER_SCHEDULER = (1, 2)
SHARED_BYTES, ADDRESS = 16_384, 4_096  # what stores write to

_LOGIC = "lop3.b32 {x}, {x}, {a}, {b}, 0x2d;"  # written over
OPS = {
    "mov": Op(ptx=_LOGIC, opcode=r"MOV R\d+,\s?RZ"),
    "iadd": Op(ptx=_LOGIC, opcode="IADD3"),
    # requests have an address in every register of their chains
    "sts": Op(ptx="st.volatile.shared.b32 [{x}], {a};", opcode=r"STS "),
    "sts64": Op(ptx="st.volatile.shared.b32 [{x}], {a};", opcode=r"STS\.64"),
    "lds": Op(ptx="{{.reg .b32 t; ld.volatile.shared.b32 t, [{x}];}}", opcode="LDS"),
}
CODES = {"mov": LOP3, "iadd": LOP3, "sts": STS, "sts64": STS, "lds": LDS}
LOADED = 5  # the scoreboard of loads: waited for behind the loop
_FFMA = Op(ptx="fma.rn.f32 {x}, {x}, {x}, {x};", opcode="FFMA", letter="f")


@dataclass(frozen=True, kw_only=True)
class Behind:
    """What follows a group: so many of an instruction, or none but a longer stall.

    `banks` are those of a request's address and of what it stores, or of a sum's registers.
    """

    op: str | None = None
    number: int = 0
    stall: int = 1
    banks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        if self.op is None:
            return f"stall_{self.stall}"
        return "_".join([str(self.number), self.op, *self.banks])


BANKS = ("even", "odd")
BEHIND = (
    *(Behind(stall=stall) for stall in (1, 2, 4, 8)),
    *(Behind(op="mov", number=number) for number in (1, 2)),
    *(Behind(op="iadd", number=1, banks=(bank,)) for bank in BANKS),
    *(Behind(op="sts", number=1, banks=pair) for pair in product(BANKS, repeat=2)),
    *(Behind(op="sts64", number=1, banks=(bank,)) for bank in BANKS),
    *(Behind(op="lds", number=1, banks=(bank,)) for bank in BANKS),
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
    written_behind = iter(_rewritten([words[i] for i in others], behind, even, odd))
    for _ in range(GROUPS):
        for position in range(GROUP):
            word = encoded(pattern[position % len(pattern)], even, odd)
            if position == GROUP - 1 and behind.stall > 1:
                word = with_field(word, STALL, STALL_BITS, behind.stall)
            result[next(place)] = word
        for word in islice(written_behind, behind.number):
            result[next(place)] = word
    waits = field(words[jump + 1], WAIT, WAIT_BITS) | 1 << LOADED
    result[jump + 1] = with_field(words[jump + 1], WAIT, WAIT_BITS, waits)
    return result


def _rewritten(
    words: Sequence[int], behind: Behind, even: Sequence[int], odd: Sequence[int]
) -> Iterator[int]:
    """What follows the groups: moves, sums, or requests with registers of the banks wanted."""
    of_bank = dict(zip(BANKS, (even, odd), strict=True))
    addresses = {field(word, FIRST, 8) for word in words}
    for word in words:
        target = field(word, DESTINATION, 8)
        if behind.op == "mov":
            yield mov(target, RZ)
        elif behind.op == "iadd":
            yield iadd3(target, *of_bank[behind.banks[0]][-3:])
        else:
            bank, *data = behind.banks
            address = next(r for r in sorted(addresses) if r % 2 == BANKS.index(bank))
            yield _request(word, address, behind, [of_bank[name][-1] for name in data], even, odd)


def _request(
    word: int,
    address: int,
    behind: Behind,
    data: Sequence[int],
    even: Sequence[int],
    odd: Sequence[int],
) -> int:
    word = with_field(word, STALL, STALL_BITS, ONE_CYCLE)
    word = with_field(word, FIRST, 8, address)
    if behind.op == "lds":
        waits = field(word, WAIT, WAIT_BITS) & ~(1 << LOADED)
        word = with_field(word, WAIT, WAIT_BITS, waits)
        word = with_field(word, BARRIERS, BARRIERS_BITS, NO_BARRIERS & ~0b111 | LOADED)
        return with_field(word, DESTINATION, 8, odd[-1])
    if behind.op == "sts64":
        word = with_field(word, WIDTH, WIDTH_BITS, WIDTHS[64])
        data = [max(register for register in even if register + 1 in odd)]
    return with_field(word, SECOND, 8, data[0])


def _probe(pattern: str, behind: Behind) -> Probe:
    ops = [_FFMA] * GROUP + [OPS[behind.op]] * behind.number if behind.op else [_FFMA] * GROUP
    name = f"group_{pattern}_{behind.name}"
    base = interleaved(name, ops, chains=CHAINS, count=GROUPS * len(ops))
    return replace(base, patch=lambda words: patched(words, PATTERNS[pattern], behind))


GROUPS_OF = {(pattern, b.name): _probe(pattern, b) for pattern in GROUPED for b in BEHIND}
PROBES = tuple(GROUPS_OF.values())


def _measure(bench: Bench, probe: Probe) -> Measured:
    bench.place([ADDRESS] * 64)
    one = replace(probe, count=GROUPS)  # a group is what is counted
    how = {"schedulers": SCHEDULERS, "dynamic_shared_bytes": SHARED_BYTES}
    found = bench.by_warps(one, WARPS_PER_SCHEDULER, **how)
    return found[1].with_detail(cycles_by_warps_per_scheduler=values(found))


BENCHMARKS = tuple(
    each(
        "ffma_{probe.name}_cycles",
        "cycles per group and scheduler",
        f"{GROUP} rewritten FFMAs and what follows, 1 warp per scheduler (2: detail)",
        _measure,
        probe=PROBES,
    )
)
