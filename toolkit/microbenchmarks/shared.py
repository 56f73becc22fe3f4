"""Shared memory: latency, cycles per access with and without conflicts, and what it costs FFMAs."""

from __future__ import annotations

from toolkit.microbenchmarks.bench import SCHEDULERS, Bench
from toolkit.microbenchmarks.probe import Probe, vector
from toolkit.microbenchmarks.record import Median, each, values
from toolkit.microbenchmarks.words import FFMA, LDS, spread

UNROLLED = 32
CHAINS = 4
ONE_SCHEDULER = 3  # idle warps: those whose number has one of these bits
_WIDTHS = {4: "b32", 8: "v2.b32", 16: "v4.b32"}
_SASS = {4: r"LDS(\.U)? ", 8: r"LDS(\.U)?\.64", 16: r"LDS(\.U)?\.128"}
_STORED = {4: r"STS ", 8: r"STS\.64", 16: r"STS\.128"}
# Every lane's word holds its own address, so that a load gives the address of the next.
_SETUP = """
    __shared__ __align__(16) char tile[49152];
    unsigned p[4] = {};
    const unsigned base = unsigned(__cvta_generic_to_shared(tile)) + offsets[lane];
    for (int c = 0; c < %d; ++c) {
        p[c] = base + c %% 3 * 16384;
        asm volatile("st.shared.b32 [%%0], %%0;" :: "r"(p[c]) : "memory");
    }
    unsigned v1 = 0, v2 = 0, v3 = 0;
    __syncthreads();"""
_KEEP = "kept ^= p[0] ^ p[1] ^ p[2] ^ p[3] ^ v1 ^ v2 ^ v3;"


def _load(width: int, chain: int) -> str:
    return (  # volatile: a word that is not read is loaded, too
        f'asm volatile("ld.volatile.shared.{_WIDTHS[width]} {vector(width)}, [%0];" '
        f': "+r"(p[{chain}]), "+r"(v1), "+r"(v2), "+r"(v3));'
    )


def _loads(name: str, width: int, chains: int) -> Probe:
    return Probe(
        name=name,
        setup=_SETUP % chains,
        body="\n".join(_load(width, i % chains) for i in range(UNROLLED)),
        keep=_KEEP,
        opcode=_SASS[width],
        count=UNROLLED,
    )


def _stores(width: int) -> Probe:
    body = "\n".join(
        f'asm volatile("st.shared.{_WIDTHS[width]} [%0 + {i % 8 * 4096}], {vector(width, 1)};" '
        ':: "r"(base), "r"(lane), "r"(round), "r"(warp), "r"(p[0]) : "memory");'
        for i in range(UNROLLED)
    )
    return Probe(
        name=f"sts_{8 * width}",
        setup=_SETUP % 1,
        body=body,
        keep=_KEEP,
        opcode=_STORED[width],
        count=UNROLLED,
    )


def _beside_ffma(width: int, ffmas: int) -> Probe:
    """Some FFMAs to every load, in 8 chains of one register each."""
    work = "\n".join(
        f'asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x{i % 8}));' for i in range(ffmas)
    )
    loads = [f"{_load(width, i % CHAINS)}\n{work}" for i in range(8)]
    floats = ", ".join(f"x{i} = offsets[64 + {i}]" for i in range(8))
    return Probe(
        name=f"lds_{8 * width}_beside_{ffmas}_ffma",
        setup=f"{_SETUP % CHAINS} float {floats};",
        body="\n".join(loads),
        keep=_KEEP + " ".join(f"kept ^= __float_as_uint(x{i});" for i in range(8)),
        opcode=_SASS[width],
        count=8,
        patch=lambda words: spread(words, LDS, FFMA),
    )


def _in_turn(width: int) -> Probe:
    """A load and a store in turn, in different parts of the array."""
    lines = []
    for i in range(UNROLLED // 2):
        lines += [
            _load(width, i % CHAINS),
            f'asm volatile("st.shared.{_WIDTHS[width]} [%0 + {i % 4 * 2048 + 20480}], '
            f'{vector(width, 1)};" :: "r"(base), "r"(lane), "r"(round), "r"(warp), "r"(lane) '
            ': "memory");',
        ]
    return Probe(
        name=f"lds_sts_{8 * width}",
        setup=_SETUP % CHAINS,
        body="\n".join(lines),
        keep=_KEEP,
        opcode=_SASS[width],
        count=UNROLLED // 2,
    )


WIDTHS = (4, 8, 16)
FFMAS = (8, 16, 32)
LATENCY = {w: _loads(f"lds_chain_{8 * w}", w, 1) for w in WIDTHS}
LOADS = {w: _loads(f"lds_rate_{8 * w}", w, CHAINS) for w in WIDTHS}
STORES = {w: _stores(w) for w in WIDTHS}
IN_TURN = {w: _in_turn(w) for w in WIDTHS}
RATES = {"lds": LOADS, "sts": STORES, "lds_and_sts": IN_TURN}
BESIDE = {(w, n): _beside_ffma(w, n) for w in WIDTHS for n in FFMAS}
PROBES = (*LATENCY.values(), *LOADS.values(), *STORES.values(), *IN_TURN.values(), *BESIDE.values())


def _offsets(width: int, ways: int = 1) -> list[int]:
    """The first byte of every lane, of which `ways` want different words of one bank."""
    lanes = 32 // ways
    return [width * (lane % lanes) + 128 * (lane // lanes) for lane in range(32)]


def _latency(bench: Bench, bits: int, ways: int = 1) -> Median:
    bench.place(_offsets(bits // 8, ways))
    return bench.per_instruction(LATENCY[bits // 8], 1)


def _rate(
    bench: Bench, kind: str, bits: int, ways: int = 1, schedulers: int = SCHEDULERS
) -> Median:
    """Cycles of the SM per warp access."""
    bench.place(_offsets(bits // 8, ways))
    idle = 0 if schedulers == SCHEDULERS else ONE_SCHEDULER
    found = bench.per_instruction(RATES[kind][bits // 8], 32, idle=idle)
    return found.scaled(SCHEDULERS / schedulers)


def _beside(bench: Bench, bits: int, ffmas: int) -> Median:
    """Issue slots of a scheduler that a load takes beside its FFMAs; all lanes read one word."""
    bench.place([0] * 32)
    probe, numbers = BESIDE[bits // 8, ffmas], (1, 2, 4, 8)
    by_warps = bench.by_warps(probe, numbers, schedulers=SCHEDULERS)
    found = {number: cycles.less(ffmas) for number, cycles in by_warps.items()}
    alone = bench.per_instruction(probe, 8, schedulers=SCHEDULERS, idle=ONE_SCHEDULER)
    return found[8].with_detail(
        extra_cycles_by_warps_per_scheduler=values(found),
        extra_cycles_with_one_scheduler=alone.value - ffmas,
    )


BITS = tuple(8 * width for width in WIDTHS)
PER_ACCESS = "cycles per warp access and SM"
BENCHMARKS = (
    *each(
        "lds_{bits}_latency_cycles",
        "cycles",
        "one warp, each load's address is what the one before gave",
        _latency,
        bits=BITS,
    ),
    *each(
        "lds_{bits}_latency_of_{ways}_ways_cycles",
        "cycles",
        "the same, {ways} lanes to a bank",
        _latency,
        bits=(32,),
        ways=(2, 4, 8, 16, 32),
    ),
    *each(
        "{kind}_{bits}_cycles",
        PER_ACCESS,
        "32 warps, neighbouring words",
        _rate,
        kind=tuple(RATES),
        bits=BITS,
    ),
    *each(
        "{kind}_{bits}_one_scheduler_cycles",
        PER_ACCESS,
        "8 warps of one scheduler, neighbouring words",
        _rate,
        kind=tuple(RATES),
        bits=BITS,
        schedulers=1,
    ),
    *each(
        "lds_{bits}_beside_{ffmas}_ffma_cycles",
        "cycles per load and scheduler above one per FFMA",
        "a load of one address to {ffmas} FFMAs, 8 warps per scheduler",
        _beside,
        bits=BITS,
        ffmas=FFMAS,
    ),
    *each(
        "{kind}_{bits}_conflict_{ways}_cycles",
        PER_ACCESS,
        "32 warps, {ways} lanes to a bank",
        _rate,
        kind=tuple(RATES),
        bits=(32, 64),
        ways=(2, 4, 8, 16, 32),
    ),
)
