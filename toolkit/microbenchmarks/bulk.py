"""Bulk copies and barriers in shared memory, from sm_90 on: how long they take, and their rate."""

from __future__ import annotations

from toolkit.microbenchmarks.bench import WHERE, Bench
from toolkit.microbenchmarks.probe import Probe
from toolkit.microbenchmarks.record import Median, each

COUNT = 8  # of copies, or of phases, per round
SIZES = (128, 1024, 4096, 16_384)  # bytes of a copy
FLIGHTS = (1, 4)  # copies under way together
REGION_BYTES = 8 << 20  # every L2 holds it

_BARRIER = """
    __shared__ unsigned long long barrier;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
    unsigned phase = 0;
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(ARRIVALS));
    __syncthreads();"""
_WAIT = """asm volatile("{.reg .pred over; again: "
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;"
        "@!over bra again;}" :: "r"(at), "r"(phase) : "memory"); phase ^= 1;"""
_ARRIVE = 'asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory");'


def _copies(size: int, flight: int) -> Probe:
    """Probe in which one thread issues `flight` copies from L2, and the block waits for all."""
    copy = f"""
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                " [%0], [%1], {size}, [%2];" :: "r"(room + FLIGHT * {size}),
                "l"(memory + from), "r"(at) : "memory");
            from = (from + {size}) & {REGION_BYTES - 1};"""
    copies = "".join(copy.replace("FLIGHT", str(k)) for k in range(flight))
    turn = f"""
        if (threadIdx.x == 0) {{
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], {flight * size};"
                :: "r"(at) : "memory");{copies}
        }}
        {_WAIT}"""
    return Probe(
        name=f"bulk_copies_{size}_{flight}",
        setup=f"""
    extern __shared__ __align__(128) char shared_room[];
    const unsigned room = (unsigned)__cvta_generic_to_shared(shared_room);
    unsigned from = blockIdx.x * 65536u & {REGION_BYTES - 1}u;"""
        + _BARRIER.replace("ARRIVALS", "1"),
        body="\n".join([turn] * COUNT),
        keep="kept ^= from;",
        opcode=r"UBLKCP",
        count=COUNT * flight,
    )


PHASES = Probe(
    name="mbarrier_phases",
    setup=_BARRIER.replace("ARRIVALS", "blockDim.x"),
    body="\n".join([_ARRIVE + _WAIT] * COUNT),
    keep="kept ^= phase;",
    opcode=r"SYNCS\.ARRIVE",
    count=COUNT,
)
COPIES = {(size, flight): _copies(size, flight) for size in SIZES for flight in FLIGHTS}
PROBES = (PHASES, *COPIES.values())


def _phase(bench: Bench, warps: int) -> Median:
    return bench.cycles(PHASES, warps=warps).scaled(1 / COUNT)


def _copy(bench: Bench, size: int, flight: int, on: str) -> Median:
    return bench.cycles(
        COPIES[size, flight],
        warps=1,
        blocks=bench.blocks(on),
        memory=bench.shared(_region),
        dynamic_shared_bytes=flight * size,
    ).scaled(1 / COUNT)


def _region(bench: Bench) -> object:
    return bench.gpu.allocate(REGION_BYTES)


BENCHMARKS = (
    *each(
        "mbarrier_{warps}_warps_cycles",
        "cycles",
        "one block: every thread arrives, and waits for the phase",
        _phase,
        warps=(1, 4, 8),
    ),
    *each(
        "bulk_{size}_{flight}_{on}_cycles",
        "cycles",
        "{flight} copies of {size} bytes at a time, from L2, until all are there",
        _copy,
        size=SIZES,
        flight=FLIGHTS,
        on=WHERE,
    ),
)
