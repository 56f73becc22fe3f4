"""Issue rate of a scheduler, and latency until the result of an instruction can be used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from toolkit.machine_code.patching import opcode
from toolkit.microbenchmarks.bench import SCHEDULERS, Bench
from toolkit.microbenchmarks.probe import MULTIPLY_ADD, Op, Probe, interleaved
from toolkit.microbenchmarks.record import Benchmark, Median, each, values

COUNT = 256  # per round: the loop's own three instructions are about 1%
CHAINS = 4
WARPS_PER_SCHEDULER = (1, 2, 4, 8)

# One register read where the rate may be one a cycle, so that no register bank decides.
OPS = {
    "ffma": MULTIPLY_ADD,
    "fadd": Op(ptx="add.rn.f32 {x}, {x}, 0f3F8CCCCD;", opcode="FADD", letter="f"),
    "fmul": Op(ptx="mul.rn.f32 {x}, {x}, 0f3F8CCCCD;", opcode="FMUL", letter="f"),
    "imad": Op(ptx="mad.lo.s32 {x}, {x}, {x}, {x};", opcode=r"IMAD\b"),
    "iadd3": Op(ptx="{{.reg .u32 t; add.u32 t, {x}, {a}; add.u32 {x}, t, {b};}}", opcode="IADD3"),
    "lop3": Op(ptx="lop3.b32 {x}, {x}, {a}, {b}, 0x2d;", opcode="LOP3"),
    "shf": Op(ptx="shf.l.wrap.b32 {x}, {x}, {a}, 7;", opcode="SHF"),
    "imad_wide": Op(
        ptx="{{.reg .u32 lo, hi; mov.b64 {{lo, hi}}, {x}; mul.wide.u32 {x}, lo, hi;}}",
        opcode=r"IMAD\.WIDE",
        letter="l",
    ),
    "hfma2": Op(ptx="fma.rn.f16x2 {x}, {x}, {x}, {x};", opcode="HFMA2"),
    "hset2": Op(ptx="set.gt.f16x2.f16x2 {x}, {x}, {a};", opcode="HSET2"),
    "half_to_float": Op(
        ptx="{{.reg .b16 lo, hi; .reg .f32 t; mov.b32 {{lo, hi}}, {x}; cvt.f32.f16 t, lo; "
        "mov.b32 {x}, t;}}",
        opcode=r"HADD2\.F32",
    ),
    "float_to_half": Op(
        ptx="{{.reg .b16 h; .reg .f32 t; mov.b32 t, {x}; cvt.rn.f16.f32 h, t; "
        "cvt.u32.u16 {x}, h;}}",
        opcode=r"F2F\.F16\.F32",
    ),
    "dfma": Op(ptx="fma.rn.f64 {x}, {x}, {x}, {x};", opcode="DFMA", letter="d"),
    "dadd": Op(ptx="add.rn.f64 {x}, {x}, {a};", opcode="DADD", letter="d"),
    "dmul": Op(ptx="mul.rn.f64 {x}, {x}, {a};", opcode="DMUL", letter="d"),
    "int_to_double": Op(
        ptx="{{.reg .f64 t; .reg .b32 lo; cvt.rn.f64.s32 t, {x}; mov.b64 {{lo, {x}}}, t;}}",
        opcode=r"I2F\.F64",
    ),
    "double_to_float": Op(
        ptx="{{.reg .f32 t; .reg .b32 u; cvt.rn.f32.f64 t, {x}; mov.b32 u, t; "
        "mov.b64 {x}, {{u, u}};}}",
        opcode=r"F2F\.F32\.F64",
        letter="d",
    ),
    "mufu_ex2": Op(ptx="ex2.approx.ftz.f32 {x}, {x};", opcode=r"MUFU\.EX2", letter="f"),
    "i2f": Op(ptx="{{.reg .f32 t; cvt.rn.f32.s32 t, {x}; mov.b32 {x}, t;}}", opcode="I2F"),
    "i2f_up": Op(ptx="{{.reg .f32 t; cvt.rp.f32.u32 t, {x}; mov.b32 {x}, t;}}", opcode=r"I2F\."),
    "f2i": Op(ptx="{{.reg .f32 t; mov.b32 t, {x}; cvt.rzi.s32.f32 {x}, t;}}", opcode="F2I"),
    "popc": Op(ptx="popc.b32 {x}, {x};", opcode="POPC"),
    "shfl": Op(ptx="shfl.sync.bfly.b32 {x}, {x}, 1, 0x1f, 0xffffffff;", opcode="SHFL"),
    "prmt": Op(ptx="prmt.b32 {x}, {x}, {a}, 0x2541;", opcode="PRMT"),
    "s2r": Op(ptx="{{.reg .u32 t; mov.u32 t, %smid; add.u32 {x}, {x}, t;}}", opcode="S2U?R"),
}
NO_CHAIN = {"s2r"}  # reads no register
PAIRS = (
    ("ffma", "iadd3"),
    ("ffma", "lop3"),
    ("ffma", "imad"),
    ("ffma", "fadd"),
    ("ffma", "hfma2"),
    ("ffma", "half_to_float"),
    ("imad", "half_to_float"),
    ("iadd3", "half_to_float"),
    ("ffma", "dfma"),
    ("iadd3", "dfma"),
    ("ffma", "prmt"),
    ("imad", "iadd3"),
    ("iadd3", "lop3"),
    ("imad", "imad_wide"),
)
# From sm_80 on, compilers let multiply-adds of halves take turns between two opcodes.
HALF_PIPES = {"hfma2_plain": 0x231, "hfma2_mma": 0x235}
BESIDE_HALVES = ("ffma", "imad", "iadd3", "half_to_float")
# A jump over what the compiler does not turn into predicates, taken always.
SKIPPED = 24
JUMPS = 32


_WORK = "\n".join("fma.rn.f32 %0, %0, %0, %1;" for _ in range(SKIPPED))


def _taken() -> Probe:
    """Jumps over some multiply-adds that all lanes take."""
    jumps = "\n".join(f"@p bra.uni L{i};\n{_WORK}\nL{i}:" for i in range(JUMPS))
    return Probe(
        name="branch_taken",
        setup="float x = float(offsets[lane]); const unsigned z = offsets[64];",
        body=f'asm volatile(R"({{.reg .pred p; setp.eq.u32 p, %2, 0;\n{jumps}\n}})" '
        ': "+f"(x) : "f"(1.5f), "r"(z));',
        keep="kept ^= __float_as_uint(x);",
        opcode="BRA",
        count=JUMPS,
    )


def _divergent() -> Probe:
    """Some multiply-adds of half the lanes, others each time: they part and meet again."""
    parts = (
        f'if (lane & {1 << i % 5}) asm volatile(R"({_WORK})" : "+f"(x) : "f"(1.5f));'
        for i in range(JUMPS)
    )
    return Probe(
        name="branch_divergent",
        setup="float x = float(offsets[lane]);",
        body="\n".join(parts),
        keep="kept ^= __float_as_uint(x);",
        opcode="BSYNC",
        count=JUMPS,
    )


def _of_one(title: str, name: str, chains: int, count: int) -> Probe:
    return interleaved(f"{title}_{name}", [OPS[name]], chains=chains, count=count)


def _pair(first: str, second: str) -> Probe:
    """The two in turn."""
    ops = [OPS[first], OPS[second]]
    return interleaved(f"pair_{first}_{second}", ops, chains=CHAINS, count=COUNT)


def _with(code: int, words: list[int]) -> list[int]:
    """The words with all multiply-adds of halves by one opcode, if the compiler uses it."""
    codes = set(HALF_PIPES.values())
    if code not in map(opcode, words):
        return words
    return [word ^ opcode(word) ^ code if opcode(word) in codes else word for word in words]


def _of_pipe(probe: Probe, pipe: str) -> Probe:
    name = probe.name.replace("hfma2", pipe)
    return replace(probe, name=name, patch=partial(_with, HALF_PIPES[pipe]))


RATES = {name: _of_one("rate", name, CHAINS, COUNT) for name in OPS}
CHAINED = {name: _of_one("chain", name, 1, COUNT // 4) for name in OPS if name not in NO_CHAIN}
BESIDE = {pair: _pair(*pair) for pair in PAIRS}
RATES |= {pipe: _of_pipe(RATES["hfma2"], pipe) for pipe in HALF_PIPES}
BESIDE |= {
    (other, pipe): _of_pipe(_pair(other, "hfma2"), pipe)
    for other in BESIDE_HALVES
    for pipe in HALF_PIPES
}
JUMP = _taken()
SPLIT = _divergent()
EMPTY = Probe(
    name="loop_round",
    setup="unsigned x = lane, a = offsets[lane];",
    body='asm volatile("lop3.b32 %0, %0, %1, %1, 0x2d;" : "+r"(x) : "r"(a));',
    keep="kept ^= x;",
    opcode="BRA",
    count=1,
)

PROBES = (*RATES.values(), *CHAINED.values(), *BESIDE.values(), JUMP, SPLIT, EMPTY)


def _rate(bench: Bench, probe: Probe) -> Median:
    """Cycles per warp instruction and scheduler, at most warps; the others as detail."""
    bench.place()
    found = bench.by_warps(probe, WARPS_PER_SCHEDULER, schedulers=SCHEDULERS)
    by_warps = values(found)
    return found[WARPS_PER_SCHEDULER[-1]].with_detail(cycles_by_warps_per_scheduler=by_warps)


def _chain(bench: Bench, probe: Probe) -> Median:
    bench.place()
    more = bench.by_warps(probe, (2, 4), schedulers=SCHEDULERS, repeats=3)
    found = bench.per_instruction(probe, 1)
    return found.with_detail(cycles_per_instruction_by_warps_per_scheduler=values(more))


def _rates(name: str, unit: str, how: str, probe: Probe) -> Iterator[Benchmark]:
    return each(name, unit, f"{how}, 8 warps per scheduler (others: detail)", _rate, probe=probe)


def _benchmarks() -> Iterator[Benchmark]:
    per_instruction = "cycles per warp instruction and scheduler"
    for name, probe in RATES.items():
        how = "{probe.count} a round in " + f"{CHAINS} chains"
        yield from _rates(f"{name}_issue_cycles", per_instruction, how, probe)
    for name, probe in CHAINED.items():
        yield from each(
            f"{name}_latency_cycles",
            "cycles",
            "one warp, one chain of {probe.count} a round (more warps: detail)",
            _chain,
            probe=probe,
        )
    for pair, probe in BESIDE.items():
        title = f"{'_beside_'.join(pair)}_issue_cycles"
        yield from _rates(title, per_instruction, "the two in turn", probe)
    for probe, how in (
        (JUMP, f"{JUMPS} uniform forward jumps a round"),
        (SPLIT, f"{JUMPS} jumps of half a warp over {SKIPPED} FFMAs, those included"),
        (EMPTY, "a loop around one LOP3"),
    ):
        yield from _rates("{probe.name}_cycles", "cycles per warp and scheduler", how, probe)


BENCHMARKS = tuple(_benchmarks())
