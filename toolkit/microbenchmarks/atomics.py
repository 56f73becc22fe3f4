"""Round trips of atomic additions on global and shared memory."""

from __future__ import annotations

from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.global_memory import MIB, Memory
from toolkit.microbenchmarks.probe import Probe
from toolkit.microbenchmarks.record import Median, each

COUNT = 8


def _additions(name: str, setup: str, ptx: str, address: str, opcode: str) -> Probe:
    """`ptx` adds %0 at address %1 and puts the old value into %0."""
    return Probe(
        name=name,
        setup=f"{setup} unsigned x = offsets[96];",
        body="\n".join([f'asm volatile("{ptx}" : "+r"(x) : "{address}"(p) : "memory");'] * COUNT),
        keep="kept ^= x;",
        opcode=opcode,
        count=COUNT,
    )


GLOBAL = _additions(
    "atom_add",
    "char* p = memory + offsets[lane];",
    "atom.global.add.u32 %0, [%1], %0;",
    "l",
    "ATOMG?",
)
SHARED_SETUP = """
    __shared__ unsigned words[32];
    words[lane] = 0;
    const unsigned p = unsigned(__cvta_generic_to_shared(words)) + offsets[lane];"""
SHARED = _additions(
    "atoms_add",
    SHARED_SETUP,
    "atom.shared.add.u32 %0, [%1], %0;",
    "r",
    "ATOMS",
)
SWAPS = _additions(
    "atoms_cas",
    SHARED_SETUP,
    "atom.shared.cas.b32 %0, [%1], %0, 1;",
    "r",
    "ATOMS",
)
COUNTS = _additions(
    "atoms_inc",
    SHARED_SETUP,
    "red.shared.add.u32 [%1], 1;",
    "r",
    "ATOMS",
)
PROBES = (GLOBAL, SHARED, SWAPS, COUNTS)
WARPS = 32


def _latency(bench: Bench, probe: Probe, ways: int = 1) -> Median:
    """Latency for one warp whose lanes add in groups of `ways` at one address each."""
    bench.place([4 * (lane // ways) for lane in range(32)])
    return bench.per_instruction(probe, 1, memory=bench.shared(Memory).zero(MIB), repeats=5)


def _clocks(bench: Bench, probe: Probe, ways: int) -> Median:
    """Cycles of the SM per warp access, with groups of `ways` lanes at one address each."""
    bench.place([4 * (lane // ways) for lane in range(32)])
    memory = bench.shared(Memory).zero(MIB)
    return bench.per_instruction(probe, WARPS, memory=memory, repeats=5)


BENCHMARKS = (
    *each(
        "{probe.name}_latency_cycles",
        "cycles",
        "one warp, neighbouring words, each adds what the one before returned",
        _latency,
        probe=GLOBAL,
    ),
    *each(
        "{probe.name}_{ways}_ways_latency_cycles",
        "cycles",
        "one warp, {ways} lanes to an address, each adds what the one before returned",
        _latency,
        probe=SHARED,
        ways=(1, 32),
    ),
    *each(
        "{probe.name}_{ways}_lanes_alike_cycles",
        "cycles per warp access and SM",
        f"{WARPS} warps, {{ways}} lanes to an address",
        _clocks,
        probe=(SHARED, SWAPS, COUNTS),
        ways=(1, 2, 8, 32),
    ),
)
