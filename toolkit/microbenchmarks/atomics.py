"""Atomic additions on global and shared memory: rates and round trips."""

from __future__ import annotations

from toolkit.microbenchmarks.bench import ONE_SM, WHERE, Bench
from toolkit.microbenchmarks.global_memory import MIB, Memory
from toolkit.microbenchmarks.probe import Probe
from toolkit.microbenchmarks.record import Measured, each

COUNT = 8
_GLOBAL = "char* p = memory + offsets[lane] + (blockIdx.x * 32 + warp) * offsets[64];"
_SHARED = """
    __shared__ unsigned words[2048];
    for (int i = threadIdx.x; i < 2048; i += blockDim.x) words[i] = 0;
    const unsigned p = unsigned(__cvta_generic_to_shared(words)) + offsets[lane];"""


def _additions(name: str, ptx: str, where: str, opcode: str, kind: str = "r") -> Probe:
    """`ptx` adds %0 at %1, with (x in, x out) or without the old value."""
    value = "unsigned x = offsets[96];" if kind == "r" else "float x = offsets[96];"
    address = "r" if where == _SHARED else "l"
    bound = (
        f': "+{kind}"(x) : "{address}"(p)' if "%0, [" in ptx else f':: "{kind}"(x), "{address}"(p)'
    )
    return Probe(
        name=name,
        setup=f"{where} {value}",
        body="\n".join([f'asm volatile("{ptx}" {bound} : "memory");'] * COUNT),
        keep="kept ^= unsigned(x);",
        opcode=opcode,
        count=COUNT,
    )


RED = _additions("red_add", "red.global.add.u32 [%1], %0;", _GLOBAL, "RED")
RED_FLOAT = _additions("red_add_f32", "red.global.add.f32 [%1], %0;", _GLOBAL, "RED", "f")
ATOM = _additions("atom_add", "atom.global.add.u32 %0, [%1], %0;", _GLOBAL, "ATOMG?")
SHARED = _additions("atoms_add", "atom.shared.add.u32 %0, [%1], %0;", _SHARED, "ATOMS")
SHARED_RED = _additions("reds_add", "red.shared.add.u32 [%1], %0;", _SHARED, "ATOMS")
PROBES = (RED, RED_FLOAT, ATOM, SHARED, SHARED_RED)

# (lanes' addresses in bytes, bytes from warp to warp)
PATTERNS = {
    "distinct": ([4 * lane for lane in range(32)], 128),
    "one_address_per_warp": ([0] * 32, 128),
    "one_address": ([0] * 32, 0),
    "sectors": ([32 * lane for lane in range(32)], 1024),
}


def _global(
    bench: Bench, probe: Probe, pattern: str = "distinct", on: str = ONE_SM, warps: int = 32
) -> Measured:
    lanes, pitch = PATTERNS[pattern]
    bench.place([*lanes, *[0] * 32, pitch])
    memory = bench.shared(Memory).zero(16 * MIB)
    how = {"blocks": bench.blocks(on), "memory": memory, "repeats": 5}
    return bench.by_warps(probe, [warps], **how)[warps]


def _shared(bench: Bench, probe: Probe, ways: int, warps: int) -> Measured:
    """`ways` lanes add at one address."""
    bench.place([4 * (lane // ways) for lane in range(32)])
    return bench.by_warps(probe, [warps], repeats=5)[warps]


BENCHMARKS = (
    *each(
        "{probe.name}_{pattern}_{on}_cycles",
        "cycles per warp request and SM",
        "32 warps; additions to memory in L2",
        _global,
        probe=(RED, RED_FLOAT, ATOM),
        pattern=tuple(PATTERNS),
        on=WHERE,
    ),
    *each(
        "{probe.name}_latency_cycles",
        "cycles",
        "one warp, neighbouring words, each adds what the one before returned",
        _global,
        probe=ATOM,
        warps=1,
    ),
    *each(
        "{probe.name}_{ways}_ways_cycles",
        "cycles per warp access and SM",
        "32 warps, {ways} lanes to an address",
        _shared,
        probe=(SHARED, SHARED_RED),
        ways=(1, 2, 4, 8, 16, 32),
        warps=32,
    ),
    *each(
        "{probe.name}_{ways}_ways_latency_cycles",
        "cycles",
        "one warp, {ways} lanes to an address, each adds what the one before returned",
        _shared,
        probe=SHARED,
        ways=(1, 32),
        warps=1,
    ),
)
