"""Global memory: latencies and rates of L1, L2 and DRAM, and stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from analysis.geometry import Geometry
from toolkit.microbenchmarks.bench import ALL_SMS, WHERE, Bench
from toolkit.microbenchmarks.probe import Probe, text, vector
from toolkit.microbenchmarks.record import Median, each, values

KIB, MIB = 1 << 10, 1 << 20
LINE_BYTES = 128
STEPS = 32  # of a chase, per round
LOADS = 16
GROUPS = 4  # of a stream, per round
STORES = 8
SOME_SMS = (16, 64)  # that store at a time, beside one and all
FLIGHT = 4  # loads of a stream in flight together
REGION, MASK = 64, 65  # places among the offsets
L2_REGION_BYTES = 8 * MIB  # every L2 holds it, twice where it has two partitions
_CACHES = {"ca": "", "cg": ".cg"}  # a plain load is cached in L1; .ca would be a stronger one
_WIDTHS = {4: "u32", 8: "v2.u32", 16: "v4.u32"}
_SIZES = {4: "", 8: r"\.64", 16: r"\.128"}


def _targets(width: int, index: int) -> str:
    names = [f"v{index}_{k}" for k in range(width // 4)]
    return ", ".join(f'"=r"({name})' for name in names)


def _declared(width: int, count: int) -> str:
    return "unsigned " + ", ".join(f"v{i}_{k} = 0" for i in range(count) for k in range(width // 4))


def _sum(width: int, loads: Iterable[int]) -> str:
    return " + ".join(f"v{i}_{k}" for i in loads for k in range(width // 4))


def _chase(cache: str) -> Probe:
    """Pointers, each where the one before points to; every block begins elsewhere."""
    return Probe(
        name=f"chase_{cache}",
        setup="""
    unsigned long long p = (unsigned long long)(
        memory + (blockIdx.x * 977u * 128 & unsigned(offsets[65])));""",
        body="\n".join(
            [f'asm volatile("ld.global{_CACHES[cache]}.u64 %0, [%0];" : "+l"(p));'] * STEPS
        ),
        keep="kept ^= unsigned(p);",
        opcode=r"LDG\.E\.64",
        count=STEPS,
    )


def _hits(width: int) -> Probe:
    """Loads of memory that is zero: the address never changes, and the compiler does not know."""
    chains = 2

    def load(i: int) -> str:
        c = i % chains
        return (
            f'asm volatile("ld.global.{_WIDTHS[width]} {vector(width)}, [%{width // 4}];" '
            f': {_targets(width, c)} : "l"(p{c})); p{c} += int({_sum(width, [c])});'
        )

    return Probe(
        name=f"l1_{8 * width}",
        setup=f"{_declared(width, chains)}; const int *p0 = (const int*)(memory + offsets[lane]), "
        "*p1 = p0;",
        body="\n".join(load(i) for i in range(LOADS)),
        keep="kept ^= unsigned((unsigned long long)p0 ^ (unsigned long long)p1);",
        opcode=rf"LDG\.E{_SIZES[width]}[. ]",
        count=LOADS,
    )


def _stream(cache: str, width: int) -> Probe:
    """Groups of loads in flight together; the next group waits for all of them."""
    loads = " ".join(
        f'asm volatile("ld.global{_CACHES[cache]}.{_WIDTHS[width]} {vector(width)}, [%{width // 4}'
        f' + {32 * width * f}];" : {_targets(width, f)} : "l"(memory + at));'
        for f in range(FLIGHT)
    )
    group = f"{loads} at = (at + step + {_sum(width, range(FLIGHT))}) & mask;"
    return Probe(
        name=f"stream_{cache}_{8 * width}",
        setup=f"""
    {_declared(width, FLIGHT)};
    const unsigned mask = offsets[{MASK}], step = blockDim.x * {width * FLIGHT};
    unsigned at = (blockIdx.x * unsigned(offsets[{REGION}]) & mask) + warp * {32 * width * FLIGHT}
        + lane * {width};""",
        body="\n".join([group] * GROUPS),
        keep="kept ^= at;",
        opcode=rf"LDG\.E{_SIZES[width]}[. ]",
        count=GROUPS * FLIGHT,
    )


def _store(width: int, pitch: int, name: str) -> Probe:
    """Stores of one line after the other; every warp has its own."""
    body = "\n".join(
        f'asm volatile("st.global.{_WIDTHS[width]} [%0 + {32 * pitch * i}], {vector(width, 1)};" '
        ':: "l"(p), "r"(s0), "r"(s1), "r"(s2), "r"(s3) : "memory");'
        for i in range(STORES)
    )
    return Probe(
        name=name,
        setup=f"char* p = memory + size_t(blockIdx.x * (blockDim.x / 32) + warp) * "
        f"{32 * pitch * STORES} + lane * {pitch}; "
        "const unsigned s0 = offsets[lane], s1 = offsets[lane + 1], s2 = offsets[lane + 2], "
        "s3 = offsets[lane + 3];",
        body=body,
        opcode=rf"STG\.E{_SIZES[width]}[. ]",
        count=STORES,
    )


CHASES = {cache: _chase(cache) for cache in ("ca", "cg")}
HITS = {width: _hits(width) for width in (4, 8, 16)}
STREAMS = {(cache, width): _stream(cache, width) for cache in ("ca", "cg") for width in (4, 16)}
STORED = {
    name: _store(width, pitch, name)
    for name, width, pitch in (
        ("stg_32", 4, 4),
        ("stg_64", 8, 8),
        ("stg_128", 16, 16),
        ("stg_32_sectors", 4, 32),
        ("stg_32_lines", 4, 128),
    )
}
PROBES = (*CHASES.values(), *HITS.values(), *STREAMS.values(), *STORED.values())
SOURCE = text("memory.cu")


class Memory:
    """One large buffer that these benchmarks share, and its present content."""

    def __init__(self, bench: Bench) -> None:
        self.bytes = min(1 << 30, 1 << (bench.gpu.free_bytes // 4).bit_length() - 1)
        self.buffer = bench.gpu.allocate(self.bytes)
        self._bench = bench

    def zero(self, size: int | None = None) -> Any:
        """The buffer, its first `size` bytes zero."""
        from pycuda import driver

        driver.memset_d32(self.buffer, 0, (size or self.bytes) // 4)
        return self.buffer

    def link(self, lines: int, step: int = -1) -> Any:
        """The buffer, its first lines a ring."""
        bench = self._bench
        kernel = bench.kernel(SOURCE, "link")
        geometry = Geometry.of(256, 256)
        kernel.prepared(geometry, [self.buffer, np.uint32(lines), np.int32(step)])()
        bench.gpu.synchronize()
        return self.buffer

    def flush_l2(self) -> None:
        """Fill L2 with data from behind the first half of the buffer."""
        from pycuda import driver

        words = min(2 * self._bench.device.l2_bytes, self.bytes // 2) // 4
        driver.memset_d32(int(self.buffer) + self.bytes // 2, 0, words)


def _memory(bench: Bench) -> Memory:
    return bench.shared(Memory)


def _place(bench: Bench, pattern: Sequence[int] = (), region: int = 0, mask: int = 0) -> None:
    offsets = np.zeros(128, np.int64)
    offsets[: len(pattern)] = pattern
    offsets[REGION], offsets[MASK] = region, mask
    bench.place(offsets)


def _l1_latency(bench: Bench) -> Median:
    _place(bench)
    return bench.per_instruction(CHASES["ca"], 1, memory=_memory(bench).link(1, 0))


def _l2_latency(bench: Bench) -> Median:
    """Median latency over all SMs; the detail has the value of each."""
    lines = 4 * MIB // LINE_BYTES
    _place(bench, mask=4 * MIB - LINE_BYTES)
    memory = _memory(bench).link(lines)
    blocks = bench.device.sm_count
    per_sm = []
    for _ in range(5):
        short, long = (
            bench.clocks(CHASES["cg"], warps=1, rounds=rounds, blocks=blocks, memory=memory).spans
            for rounds in (16, 80)
        )
        per_sm.append((long - short) / (64 * STEPS))
    middle = np.median(per_sm, axis=0)
    alone = bench.per_instruction(CHASES["cg"], 1, memory=memory)
    return Median.of(
        middle.tolist(), one_block_alone=alone.value, per_block=np.round(middle, 1).tolist()
    )


def _l2_lines(bench: Bench) -> Median:
    """Latencies of single loads of single lines: near and far lines are two clusters."""
    lines, pitch = 128, 4096 + LINE_BYTES
    memory = _memory(bench).zero(lines * pitch)
    blocks = bench.device.sm_count
    kernel = bench.kernel(SOURCE, "line_latencies")
    out = bench.gpu.allocate(8 * lines * blocks)
    once = kernel.prepared(
        Geometry.of(blocks, 1),
        [out, memory, np.int32(lines), np.int32(pitch)],
    )
    runs = [bench.noted("line_latencies", once, out, (blocks, lines)) for _ in range(6)]
    cycles = np.median(runs[1:], axis=0).astype(int)
    deciles = np.percentile(cycles, range(0, 101, 10)).tolist()
    return Median.of(cycles.ravel().tolist(), deciles=deciles)


def _dram_latency(bench: Bench, mib: int) -> Median:
    memory = _memory(bench)
    size = min(mib * MIB, memory.bytes // 2)
    _place(bench, mask=size - LINE_BYTES)
    ring = memory.link(size // LINE_BYTES)
    turns = {"few": 4, "many": 36, "repeats": 5}
    found = bench.per_instruction(CHASES["cg"], 1, memory=ring, first=memory.flush_l2, **turns)
    return found.with_detail(region_bytes=size)


def _l1_rate(bench: Bench, lanes: tuple[int, int]) -> Median:
    """`lanes` are the bits of each, and the rows that they are in."""
    width, rows = lanes[0] // 8, lanes[1]
    row, column = np.divmod(np.arange(32), 32 // rows)
    pitch = LINE_BYTES if rows == 32 else 4 * KIB + LINE_BYTES
    _place(bench, (row * pitch + column * width).tolist())
    return bench.per_instruction(HITS[width], 32, memory=_memory(bench).zero(MIB))


def _streams(
    bench: Bench, key: tuple[str, int], warps: Sequence[int], blocks: int = 1, repeats: int = 3
) -> dict[int, Median]:
    """Cycles per request and SM of a stream that finds everything in L2, by warps."""
    _place(bench, region=64 * KIB, mask=L2_REGION_BYTES - 1)
    memory = _memory(bench).buffer
    return bench.by_warps(STREAMS[key], warps, blocks=blocks, memory=memory, repeats=repeats)


def _inverse(measured: Median, request_bytes: int) -> Median:
    """Cycles per request as bytes per cycle."""
    return replace(
        measured,
        value=request_bytes / measured.value,
        low=request_bytes / measured.high,
        high=request_bytes / measured.low,
    )


def _l2_bandwidth(bench: Bench, bits: int, on: str) -> Median:
    _memory(bench).zero(2 * L2_REGION_BYTES)
    blocks, key = bench.blocks(on), ("cg", bits // 8)
    return _inverse(_streams(bench, key, [32], blocks, 5)[32], 4 * bits)


def _missing(bench: Bench, bits: int, on: str) -> Median:
    _memory(bench).zero(2 * L2_REGION_BYTES)
    found = _streams(bench, ("ca", bits // 8), (1, 2, 4, 8, 16, 32), bench.blocks(on))
    return found[32].with_detail(cycles_by_warps=values(found))


def _store_rate(bench: Bench, name: str, on: str) -> Median:
    _place(bench)
    blocks = bench.blocks(on)
    most = 8 if on == ALL_SMS and name == "stg_32_lines" else 32  # L2 holds what is written
    cycles = partial(
        bench.per_instruction, STORED[name], most, memory=_memory(bench).buffer, few=16, many=112
    )
    result = cycles(blocks=blocks).with_detail(warps=most)
    if on == ALL_SMS:
        by_sms = {sms: cycles(blocks=sms, repeats=3) for sms in SOME_SMS if sms < blocks}
        return result.with_detail(cycles_by_sms=values(by_sms))
    return result


def _dram_bandwidth(bench: Bench) -> Median:
    memory = _memory(bench)
    buffer, half = memory.zero(), memory.bytes // 2
    arguments = [int(buffer) + half, buffer, np.uint64(half // 16)]
    geometry = Geometry.of(4 * bench.device.sm_count, 512)
    seconds = bench.seconds(bench.kernel(SOURCE, "read_all").prepared(geometry, arguments))
    return _inverse(seconds, half).with_detail(bytes=half, seconds=seconds.value)


PER_REQUEST = "cycles per warp request and SM"
BITS = (32, 128)
BENCHMARKS = (
    *each("l1_hit_latency_cycles", "cycles", "one warp, a pointer to itself, 64 bits", _l1_latency),
    *each(
        "l1_{lanes[0]}_rows_{lanes[1]}_cycles",
        PER_REQUEST,
        "32 warps, neighbours in each of {lanes[1]} rows, L1 hits",
        _l1_rate,
        lanes=((32, 1), (32, 2), (32, 4), (32, 8), (32, 32), (64, 1), (128, 1), (128, 4)),
    ),
    *each(
        "l2_hit_latency_cycles",
        "cycles",
        "random ring in 4 MiB, one warp on every SM (each in detail), 64 bits",
        _l2_latency,
    ),
    *each(
        "l2_line_latency_cycles",
        "cycles",
        "single lines on every SM, with a store to shared memory; low, high: all of them",
        _l2_lines,
    ),
    *each(
        "dram_{mib}_mib_latency_cycles",
        "cycles",
        "random ring, one warp, L2 flushed, each line once",
        _dram_latency,
        mib=(128, 512),
    ),
    *each(
        "l2_read_{bits}_{on}_bytes_per_cycle",
        "bytes per cycle and SM",
        "32 warps with 4 loads in flight, past L1, 8 MiB",
        _l2_bandwidth,
        bits=BITS,
        on=WHERE,
    ),
    *each(
        "l1_miss_{bits}_{on}_cycles",
        PER_REQUEST,
        "a stream through 8 MiB, 4 loads in flight, 32 warps (others: detail)",
        _missing,
        bits=BITS,
        on=WHERE,
    ),
    *each(
        "{name}_{on}_cycles",
        PER_REQUEST,
        "stores to lines that L2 holds, each warp its own",
        _store_rate,
        name=tuple(STORED),
        on=WHERE,
    ),
    *each(
        "dram_read_bytes_per_s",
        "bytes per second",
        "512 MiB in pieces of 16 bytes, by events",
        _dram_bandwidth,
    ),
)
