"""Atomic additions on global and shared memory: rates and round trips."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.microbenchmarks.bench import Bench
from toolkit.microbenchmarks.global_memory import MIB, Memory
from toolkit.microbenchmarks.probe import Probe
from toolkit.microbenchmarks.record import Benchmark, Measured

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


def _global(bench: Bench, probe: Probe, pattern: str, warps: int, all_sms: bool) -> Measured:
    lanes, pitch = PATTERNS[pattern]
    bench.place([*lanes, *[0] * 32, pitch])
    memory = bench.shared(Memory).zero(16 * MIB)
    blocks = bench.device.sm_count if all_sms else 1
    found = bench.cycles(probe, warps=warps, blocks=blocks, memory=memory, repeats=5)
    return found.scaled(1 / (warps * COUNT))


def _shared(bench: Bench, probe: Probe, ways: int, warps: int) -> Measured:
    """`ways` lanes add at one address."""
    bench.place([4 * (lane // ways) for lane in range(32)])
    return bench.cycles(probe, warps=warps, repeats=5).scaled(1 / (warps * COUNT))


def _benchmarks() -> Iterator[Benchmark]:
    per_request = "cycles per warp request and SM"
    for probe in (RED, RED_FLOAT, ATOM):
        for pattern in PATTERNS:
            for all_sms, where in ((False, "one_sm"), (True, "all_sms")):
                yield Benchmark.of(
                    f"{probe.name}_{pattern}_{where}_cycles",
                    per_request,
                    "32 warps; additions to memory in L2",
                    _global,
                    probe=probe,
                    pattern=pattern,
                    warps=32,
                    all_sms=all_sms,
                )
    yield Benchmark.of(
        "atom_add_latency_cycles",
        "cycles",
        "one warp, neighbouring words, each adds what the one before returned",
        _global,
        probe=ATOM,
        pattern="distinct",
        warps=1,
        all_sms=False,
    )
    for probe in (SHARED, SHARED_RED):
        for ways in (1, 2, 4, 8, 16, 32):
            yield Benchmark.of(
                f"{probe.name}_{ways}_ways_cycles",
                "cycles per warp access and SM",
                f"32 warps, {ways} lanes to an address",
                _shared,
                probe=probe,
                ways=ways,
                warps=32,
            )
    for ways in (1, 32):
        yield Benchmark.of(
            f"atoms_add_{ways}_ways_latency_cycles",
            "cycles",
            f"one warp, {ways} lanes to an address, each adds what the one before returned",
            _shared,
            probe=SHARED,
            ways=ways,
            warps=1,
        )


BENCHMARKS = tuple(_benchmarks())
