"""Tensor cores by mma.sync: clocks between instructions, and of a chain through their sums."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.microbenchmarks.bench import SCHEDULERS, Bench
from toolkit.microbenchmarks.probe import LETTERS, Probe
from toolkit.microbenchmarks.record import Median, each, values

COUNT = 64
CHAINS = {"f": 8, "r": 8, "d": 4}  # by the type of the sums: all fit into registers
THREADS = 512
WARPS_PER_SCHEDULER = (1, 2, 4)
_TO_BITS = {"f": "__float_as_uint({})", "r": "{}", "d": "unsigned(__double_as_longlong({}))"}


@dataclass(frozen=True, kw_only=True)
class Mma:
    """An instruction: its PTX, its SASS, and the registers of D, of A and of B.

    `letter` is the constraint of the sums, `inputs` that of A and B.
    """

    ptx: str
    opcode: str
    registers: tuple[int, int, int]
    letter: str = "f"
    inputs: str = "r"

    def line(self, chain: int, chains: int) -> str:
        """Write the instruction in inline assembly, on the sums of a chain."""
        sums, a, b = self.registers
        first = chains * sums
        d = _group(sums * chain, sums)
        return f"mma.sync.aligned.{self.ptx} {d}, {_group(first, a)}, {_group(first + a, b)}, {d};"


def _group(first: int, count: int) -> str:
    """'{%4, %5}'"""
    return "{" + ", ".join(f"%{k}" for k in range(first, first + count)) + "}"


FORMS = {
    "hmma_16816_f32": Mma(
        ptx="m16n8k16.row.col.f32.f16.f16.f32",
        opcode=r"HMMA\.16816\.F32 ",
        registers=(4, 4, 2),
    ),
    "hmma_16816_bf16": Mma(
        ptx="m16n8k16.row.col.f32.bf16.bf16.f32",
        opcode=r"HMMA\.16816\.F32\.BF16",
        registers=(4, 4, 2),
    ),
    "hmma_16816_f16": Mma(
        ptx="m16n8k16.row.col.f16.f16.f16.f16",
        opcode=r"HMMA\.16816\.F16",
        registers=(2, 4, 2),
        letter="r",
    ),
    "hmma_1688_f32": Mma(
        ptx="m16n8k8.row.col.f32.f16.f16.f32", opcode=r"HMMA\.1688\.F32 ", registers=(4, 2, 1)
    ),
    "hmma_1688_tf32": Mma(
        ptx="m16n8k8.row.col.f32.tf32.tf32.f32",
        opcode=r"HMMA\.1688\.F32\.TF32",
        registers=(4, 4, 2),
    ),
    "hmma_1684_tf32": Mma(
        ptx="m16n8k4.row.col.f32.tf32.tf32.f32",
        opcode=r"HMMA\.1684\.F32\.TF32",
        registers=(4, 2, 1),
    ),
    "imma_16832": Mma(
        ptx="m16n8k32.row.col.s32.s8.s8.s32",
        opcode=r"IMMA\.16832",
        registers=(4, 4, 2),
        letter="r",
    ),
    "imma_16816": Mma(
        ptx="m16n8k16.row.col.s32.s8.s8.s32",
        opcode=r"IMMA\.16816",
        registers=(4, 2, 1),
        letter="r",
    ),
    "imma_8816": Mma(
        ptx="m8n8k16.row.col.s32.s8.s8.s32", opcode=r"IMMA\.8816", registers=(2, 1, 1), letter="r"
    ),
    "bmma_168256": Mma(
        ptx="m16n8k256.row.col.s32.b1.b1.s32.and.popc",
        opcode=r"BMMA\.168256",
        registers=(4, 4, 2),
        letter="r",
    ),
    "dmma_884": Mma(
        ptx="m8n8k4.row.col.f64.f64.f64.f64",
        opcode=r"DMMA\.8x8x4",
        registers=(2, 1, 1),
        letter="d",
        inputs="d",
    ),
    "dmma_1684": Mma(
        ptx="m16n8k4.row.col.f64.f64.f64.f64",
        opcode=r"DMMA\.16x8x4",
        registers=(4, 2, 1),
        letter="d",
        inputs="d",
    ),
    "dmma_1688": Mma(
        ptx="m16n8k8.row.col.f64.f64.f64.f64",
        opcode=r"DMMA\.16x8x8",
        registers=(4, 4, 2),
        letter="d",
        inputs="d",
    ),
    "dmma_16816": Mma(
        ptx="m16n8k16.row.col.f64.f64.f64.f64",
        opcode=r"DMMA\.16x8x16",
        registers=(4, 8, 4),
        letter="d",
        inputs="d",
    ),
}


def _probe(name: str, form: Mma, chains: int, count: int) -> Probe:
    sums, a, b = form.registers
    written = [f"x{k}" for k in range(chains * sums)]
    read = [f"y{k}" for k in range(a + b)]
    lines = "\n".join(form.line(k % chains, chains) for k in range(count))
    outputs = ", ".join(f'"+{form.letter}"({x})' for x in written)
    inputs = ", ".join(f'"{form.inputs}"({y})' for y in read)
    declared = (
        f"{LETTERS[letter]} {x} = ({LETTERS[letter]})offsets[lane + {k}];"
        for letter, names in ((form.letter, written), (form.inputs, read))
        for k, x in enumerate(names)
    )
    return Probe(
        name=name,
        setup=" ".join(declared),
        body=f'asm volatile("{{"\n"{_in_quotes(lines)}"\n"}}" : {outputs} : {inputs});',
        keep=" ".join(f"kept ^= {_TO_BITS[form.letter].format(x)};" for x in written),
        opcode=form.opcode,
        count=count,
        threads=THREADS,
    )


def _in_quotes(lines: str) -> str:
    return lines.replace("\n", '"\n"')


def _beside(ptx: str, count: int) -> Probe:
    """Products of 16x8x16, each with `count` instructions behind it on registers of their own."""
    chains, others = 4, 8
    sums, a, b = FORMS["hmma_16816_f32"].registers
    written = [f"x{k}" for k in range(chains * sums)]
    read = [f"y{k}" for k in range(a + b)]
    more = [f"z{k}" for k in range(others)]
    used = ["p", "q"]
    names = [*written, *more, *read, *used]
    number = {name: f"%{k}" for k, name in enumerate(names)}
    lines = []
    for k in range(COUNT // 2):
        d = ", ".join(number[x] for x in written[sums * (k % chains) : sums * (k % chains) + sums])
        first, second = (", ".join(number[y] for y in part) for part in (read[:a], read[a:]))
        form = FORMS["hmma_16816_f32"].ptx
        lines.append(f"mma.sync.aligned.{form} {{{d}}}, {{{first}}}, {{{second}}}, {{{d}}};")
        for j in range(count):
            z = number[more[(k * count + j) % others]]
            lines.append(ptx.format(z=z, p=number["p"], q=number["q"]))
    letter = "f" if ".f32" in ptx else "r"
    kind = LETTERS[letter]
    text = "\n".join(lines)
    outputs = ", ".join([f'"+f"({x})' for x in written] + [f'"+{letter}"({z})' for z in more])
    inputs = ", ".join([f'"r"({y})' for y in read] + [f'"{letter}"({u})' for u in used])
    return Probe(
        name=f"mma_beside_{'ffma' if letter == 'f' else 'iadd'}_{count}",
        setup=" ".join(
            [f"float {x} = offsets[lane + {k}];" for k, x in enumerate(written)]
            + [f"{kind} {z} = offsets[lane + {k}];" for k, z in enumerate([*more, *used])]
            + [f"unsigned {y} = offsets[lane + {k}];" for k, y in enumerate(read)]
        ),
        body=f'asm volatile("{{"\n"{_in_quotes(text)}"\n"}}" : {outputs} : {inputs});',
        keep=" ".join(
            [f"kept ^= __float_as_uint({x});" for x in written]
            + [f"kept ^= {_TO_BITS[letter].format(z)};" for z in more]
        ),
        opcode=FORMS["hmma_16816_f32"].opcode,
        count=COUNT // 2,
        threads=THREADS,
    )


BESIDE = {
    (name, count): _beside(ptx, count)
    for name, ptx in {
        "ffma": "fma.rn.f32 {z}, {p}, {q}, {z};",
        "iadd": "add.s32 {z}, {z}, {p};",
    }.items()
    for count in (1, 2, 3, 4, 5)
}
RATES = {
    name: _probe(f"mma_rate_{name}", one, CHAINS[one.letter], COUNT) for name, one in FORMS.items()
}
CHAINED = {name: _probe(f"mma_chain_{name}", one, 1, COUNT // 4) for name, one in FORMS.items()}
PROBES = (*RATES.values(), *CHAINED.values(), *BESIDE.values())


def _interval(bench: Bench, form: str) -> Median:
    """Clocks of a scheduler per instruction, with two warps; others as detail."""
    bench.place()
    found = bench.by_warps(RATES[form], WARPS_PER_SCHEDULER, schedulers=SCHEDULERS, repeats=3)
    return found[2].with_detail(cycles_by_warps_per_scheduler=values(found))


def _chain(bench: Bench, form: str) -> Median:
    bench.place()
    return bench.per_instruction(CHAINED[form], 1, repeats=3)


def _interval_beside(bench: Bench, op: str, count: int) -> Median:
    bench.place()
    return bench.per_instruction(BESIDE[op, count], 2, schedulers=SCHEDULERS, repeats=3)


BENCHMARKS = (
    *each(
        "hmma_16816_f32_beside_{count}_{op}_cycles",
        "cycles per product and scheduler",
        "each product is followed by {count} {op} on registers of their own, 2 warps per scheduler",
        _interval_beside,
        op=("ffma", "iadd"),
        count=(1, 2, 3, 4, 5),
    ),
    *each(
        "{form}_interval_cycles",
        "cycles per warp instruction and scheduler",
        f"{COUNT} in a round in 8 chains (FP64: 4), 2 warps per scheduler",
        _interval,
        form=tuple(FORMS),
    ),
    *each(
        "{form}_latency_cycles",
        "cycles",
        "one warp, one chain through the sums",
        _chain,
        form=tuple(FORMS),
    ),
)
