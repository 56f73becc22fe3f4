"""Profiles to render: the RTX 3090 of the source texts, with its published times."""

import random
from dataclasses import replace

from analysis.access import Pattern, Tiling, access_counts
from analysis.comparison.agreement import closed_forms
from analysis.devices import MeasuredCeilings, find_device
from analysis.geometry import Geometry
from analysis.occupancy import Occupancy, Resources
from analysis.problem import Gemm, parse_shape
from analysis.records.counters import COUNTERS
from analysis.records.metrics import (
    BANK_CONFLICTS,
    FFMA,
    FMUL,
    SHARED_WAVEFRONTS,
    THREAD_INSTRUCTIONS,
    WARP_INSTRUCTIONS,
    total,
)
from analysis.records.profile import (
    SCHEMA_VERSION,
    Conditions,
    Counted,
    Environment,
    FirstRequest,
    GpuState,
    Interval,
    LineAccess,
    LineCounters,
    Listing,
    MachineAccess,
    Measured,
    Moment,
    Profile,
    Ratio,
    Record,
    Simulated,
)
from analysis.theory import theory
from analysis.timing.predicted import Predicted, TimeBound
from reports.ladder import View
from tests import records_by_hand

N = 4096
SHAPE = Gemm(m=N, n=N, k=N)
SMALL = parse_shape("2048")

# (name, idea, tiling, seconds at 4096 on an RTX 3090, sectors of load A, registers, shared bytes)
RUNGS = (
    ("one-block", "One thread per element, a single block", Tiling(block_m=32, block_n=32), 0, 1),
    (
        "naive-uncoalesced",
        "A grid of blocks; neighbouring threads own neighbouring rows",
        Tiling(block_m=32, block_n=32),
        0.459418,
        32,
    ),
    (
        "naive-coalesced",
        "Neighbouring threads own neighbouring columns",
        Tiling(block_m=32, block_n=32),
        0.0685564,
        1,
    ),
    (
        "tiled",
        "Tiles of A and B are shared by a block",
        Tiling(block_m=32, block_n=32, block_k=32),
        0.0516459,
        4,
    ),
    (
        "coarsened-1d",
        "A thread computes a column of C and keeps B in a register",
        Tiling(block_m=64, block_n=64, block_k=8, thread_m=8),
        0.0156905,
        4,
    ),
    (
        "coarsened-2d",
        "A thread computes a square of C as outer products",
        Tiling(block_m=128, block_n=128, block_k=16, thread_m=8, thread_n=8),
        0.00969676,
        4,
    ),
    (
        "vectorized",
        "float4 loads and stores",
        Tiling(
            block_m=128,
            block_n=128,
            block_k=16,
            thread_m=8,
            thread_n=8,
            global_width=4,
            shared_store_b_width=4,
            shared_load_a_width=4,
            shared_load_b_width=4,
        ),
        0.0075122,
        16,
    ),
)
CUBLAS_S = 0.00518697


def patterns(tiling, shape, sectors_of_a):
    """One pattern per access; load A of the uncoalesced rung is a column of 32 sectors."""
    width = 4 * tiling.global_width

    def one(space, operation, operand, cost, ideal, **more):
        names = (
            ("sectors", "ideal_sectors")
            if space == "global"
            else ("wavefronts", "ideal_wavefronts")
        )
        costs = dict(zip(names, (cost, ideal), strict=True))
        lines = max(1, cost // 4) if cost < 32 else cost
        return Pattern(
            space=space,
            operation=operation,
            operand=operand,
            instruction_bytes=width if space == "global" else 4,
            requests=shape.m * shape.k // 32,
            cycles=lines if space == "global" else cost,
            **costs,
            **more,
        )

    found = [
        one("global", "load", "A", sectors_of_a, min(sectors_of_a, 4)),
        one("global", "load", "B", 4 * tiling.global_width, 4 * tiling.global_width),
        one("global", "store", "C", sectors_of_a if sectors_of_a == 32 else 4, 4),
    ]
    if tiling.block_k:
        found += [
            one("shared", "store", "A", 4 if tiling.thread_n > 1 else 1, 1),
            one("shared", "store", "B", 1, 1),
            one("shared", "load", "A", 1, 1),
            one("shared", "load", "B", 2 if tiling.thread_n > 1 else 1, 1),
        ]
    return tuple(found)


def theory_of(rung, shape, device):
    _, _, tiling, _, sectors_of_a = RUNGS[rung - 1]
    return theory(access_counts(tiling, shape), patterns(tiling, shape, sectors_of_a), device)


def measured(median_s, shape, *, cublas_s=None, **more):
    """A hundred samples within one percent above and below `median_s`."""
    noise = random.Random(f"{median_s}")
    samples = tuple(median_s * (1 + noise.uniform(-0.01, 0.01)) for _ in range(100))
    values = {
        "clock": "CUDA events",
        "l2": "dirty",
        "samples_s": samples,
        "median_s": median_s,
        "interval_s": Interval(low=median_s * 0.998, high=median_s * 1.002),
        "flop_per_s": shape.flop / median_s,
        "stopped_by": "precision",
        "before": GpuState(sm_clock_hz=1.695e9, power_w=120.0, temperature_c=41.0),
        "after": GpuState(
            sm_clock_hz=1.62e9, power_w=349.0, temperature_c=63.0, throttle_reasons=("power cap",)
        ),
    }
    if cublas_s:
        share = cublas_s / median_s
        values["relative_to_cublas"] = Ratio(
            peer="cublas", median=share, interval=Interval(low=share * 0.99, high=share * 1.01)
        )
    return Measured(**(values | more))


def watched(profile):
    """The same run with the GPU's state after every 25 of its rounds: it warms and slows down."""
    moments = tuple(
        Moment(
            time_s=0.5 * n,
            rounds=25 * n,
            state=GpuState(sm_clock_hz=1.7e9 - 2e7 * n, temperature_c=42.0 + 5 * n, power_w=300.0),
        )
        for n in range(5)
    )
    shapes = dict.fromkeys(record.shape for record in profile.records)
    conditions = tuple(Conditions(shape=shape, moments=moments) for shape in shapes)
    return replace(profile, conditions=conditions)


def passed():
    return records_by_hand.check(worst_ratio=0.0312, worst_row=17, worst_column=4)


def rung(number, shape, device, *, is_measured, **more):
    name, idea, tiling, seconds, _ = RUNGS[number - 1]
    common = {
        "variant": name,
        "label": name,
        "title": name.replace("-", " ").capitalize(),
        "idea": idea,
        "rung": number,
        "parameters": {},
        "shape": shape,
        "executed_shape": shape,
    }
    if not seconds:
        reason = "a single block computes at most 32 × 32"
        return Record(**(common | {"status": "skipped", "reason": reason} | more))
    seconds *= (shape.m / N) ** 3
    values = common | {
        "geometry": Geometry(
            grid=(shape.n // tiling.block_n, shape.m // tiling.block_m, 1),
            block=(tiling.threads_per_block, 1, 1),
        ),
        "resources": Resources(
            architecture=device.sm_arch,
            compiler="NVRTC 13.0.88",
            registers_per_thread=24 + 16 * number,
            static_shared_bytes=tiling.shared_bytes,
            local_bytes=0,
        ),
        "occupancy": Occupancy(
            blocks_per_sm=1,
            warps_per_sm=32,
            max_warps_per_sm=48,
            limiters=("threads",) if number < 5 else ("registers", "shared memory"),
        ),
        "waves": 12.49,
        "theory": theory_of(number, shape, device),
    }
    if is_measured:
        cublas_s = CUBLAS_S * (shape.m / N) ** 3
        values |= {"measured": measured(seconds, shape, cublas_s=cublas_s), "check": passed()}
    return Record(**(values | more))


def cublas(shape, *, is_measured=True):
    return Record(
        variant="cublas",
        label="cublas",
        title="cuBLAS",
        idea="NVIDIA's own",
        rung=None,
        parameters={},
        shape=shape,
        executed_shape=shape,
        status="ok" if is_measured else "skipped",
        reason=None if is_measured else "needs a GPU",
        measured=measured(CUBLAS_S * (shape.m / N) ** 3, shape) if is_measured else None,
        check=passed() if is_measured else None,
    )


def cpu(shape):
    return Record(
        variant="cpu",
        label="cpu",
        title="NumPy on the CPU",
        idea="The reference of every check",
        rung=None,
        parameters={},
        shape=shape,
        executed_shape=shape,
        measured=measured(0.35, shape, clock="host clock", l2="host", before=None, after=None),
    )


def profile(*shapes, is_measured=False, **more):
    """The seven rungs at each shape, and the references where something was measured."""
    device = find_device("rtx-3090")
    records = [
        record
        for shape in shapes or (SHAPE,)
        for record in (
            *(rung(n, shape, device, is_measured=is_measured) for n in range(1, len(RUNGS) + 1)),
            *((cpu(shape), cublas(shape)) if is_measured else ()),
        )
    ]
    values = {
        "schema_version": SCHEMA_VERSION,
        "created": "2026-02-03T04:05:06Z",
        "command": "gemm-ladder profile --device rtx-3090 --shape 4096",
        "status": "complete",
        "executor": "gpu" if is_measured else "theory",
        "seed": 20260203,
        "device": device,
        "environment": Environment(
            toolkit_version="0.1.0",
            commit="0123456789abcdef",
            software={"Python": "3.11.7", "NVRTC": "13.0.88"},
            hardware={"GPU": "NVIDIA GeForce RTX 3090", "driver": "580.65.06"}
            if is_measured
            else {},
        ),
        "records": tuple(records),
    }
    return Profile(**(values | more))


def simulated(record):
    """The record of a rung with machine code that agrees with its closed forms, but for alpha."""
    theory = record.theory
    if theory is None:
        return record
    theory = replace(theory, patterns=_of_whole_launch(theory))
    counts = theory.accesses
    accesses = tuple(
        MachineAccess(
            space=p.space,
            action=p.operation,
            instruction_bytes=4
            * counts.elements(p.space, p.operation, p.operand)
            // counts.instructions(p.space, p.operation, p.operand),
            executed=p.requests,
            requests=p.requests,
            lanes=32 * p.requests,
            sectors=p.requests * (p.sectors or 0),
            wavefronts=p.requests * (p.wavefronts or 0),
            conflict_free=p.requests,
            ideal=p.requests,
        )
        for p in theory.patterns
    )
    ffma = counts.multiply_adds or 0
    counters = (
        dict.fromkeys(COUNTERS, 0)
        | closed_forms(theory)
        | {
            WARP_INSTRUCTIONS: 2 * ffma // 32,
            THREAD_INSTRUCTIONS: 2 * ffma,
            FFMA: ffma,
            FMUL: record.shape.c_elements,
        }
    )
    counters[BANK_CONFLICTS[0]] = total(counters, *SHARED_WAVEFRONTS) // 4
    return replace(
        record,
        theory=theory,
        simulated=Simulated(
            architecture="sm_86",
            compiler="NVRTC 13.0.88",
            counters=counters,
            accesses=accesses,
            lines=(
                LineCounters(
                    file=f"{record.variant}.cu",
                    line=42,
                    text="sum += a[k] * b[k] && k < K;",
                    counters={WARP_INSTRUCTIONS: 3, FFMA: ffma},
                ),
                LineCounters(
                    file=f"{record.variant}.cu", line=43, text="", counters={WARP_INSTRUCTIONS: 1}
                ),
            ),
            basis="25 of 1,024 blocks executed; a basis",
            blocks_executed=25,
        ),
        check=replace(passed(), bound="a bound; on 25 of 1,024 blocks"),
    )


def _of_whole_launch(theory):
    """The patterns with as many requests as the closed forms have full warps."""
    counts = theory.accesses
    return tuple(
        replace(p, requests=counts.instructions(p.space, p.operation, p.operand) // 32)
        for p in theory.patterns
    )


MODEL_ERRORS = {
    "l1tex__m_xbar2l1tex_read_sectors.sum": 0.97,
    "lts__t_sectors_srcunit_tex_op_read.sum": 1.0,
    "lts__t_sectors_op_read.sum": 1.05,
    "lts__t_sectors_op_write.sum": 1.08,
    "dram__bytes_read.sum": 0.9,
    "dram__bytes_write.sum": 1.2,
}


def counted(record, **off):
    """The record of a rung whose hardware counted what was simulated, with its noise.

    Stores take 12% more wavefronts, the model errs by up to 20%; `off` is added to counters by the
    part of their name.
    """
    made = simulated(record)
    if made.simulated is None:
        return made
    of_model = {name: int(error * 10**9) for name, error in MODEL_ERRORS.items()}
    ours = made.simulated.counters
    theirs = {
        name: round(1.12 * count) if "wavefronts_mem_shared_op_st" in name else count
        for name, count in ours.items()
    }
    theirs[BANK_CONFLICTS[1]] += theirs[SHARED_WAVEFRONTS[1]] - ours[SHARED_WAVEFRONTS[1]]
    for part, more in off.items():
        name = next(name for name in theirs if part in name)
        theirs[name] += more
    return replace(
        made,
        simulated=replace(
            made.simulated, counters=ours | of_model, traffic_basis="a model of the caches"
        ),
        counted=Counted(
            counters=theirs | dict.fromkeys(MODEL_ERRORS, 10**9),
            kernels=(),
            caches="flushed",
            source="Nsight Compute 2025.3.1",
        ),
    )


def predicted(record, time_s, **more):
    """The record with a predicted time: shared memory takes 3/5 of it, issue 1/2, L1 1/10."""
    shares = {"issue": 1 / 2, "shared memory": 3 / 5, "L1": 1 / 10}
    values = {
        "time_s": time_s,
        "cycles": (time_s - 2e-6) * 1.695e9,
        "clock_hz": 1.695e9,
        "launch_s": 2e-6,
        "flop_per_s": record.shape.flop / time_s,
        "l2": "dirty",
        "limiter": "shared memory",
        "limiter_share": 3 / 5,
        "next_limiter": "issue",
        "next_share": 1 / 2,
        "bounds": tuple(
            TimeBound(name=name, time_s=share * time_s, basis=f"so much of {name}")
            for name, share in shares.items()
        ),
        "constants": "an RTX 3090",
        "basis": "all blocks of one SM",
        "is_fitted": False,
    }
    return replace(record, predicted=Predicted(**(values | more)))


SOURCE = """// a kernel <b>of four lines</b>
__shared__ float tile[32];
tile[i] = a[i * K];
sum += tile[2 * k] && b < c;
"""


def listing(label):
    return Listing(
        label=label,
        file="kernel.cu",
        source=SOURCE,
        sass=("S2R R0, SR_TID.X", "LDG.E R1, [R2]", "STS [R3], R1", "LDS R4, [R5]", "EXIT"),
        lines=(2, 3, 3, 4, 0),
    )


def traced(made):
    """The profile with the machine code of `listing` for every simulated rung.

    Its load takes a column of a matrix with rows of 64 floats, its shared load every other word.
    """

    def one(place, space, action, buffer, **counts):
        step = {"global": 256, "shared": 4 if action == "store" else 8}[space]
        first = FirstRequest(
            block=0,
            warp=0,
            k=64,
            buffer=buffer,
            row_floats=64 if space == "global" else None,
            lanes=tuple(step * lane for lane in range(32)),
        )
        values = {"sectors": 0, "wavefronts": 0, "conflict_free": 0}
        return LineAccess(
            place=place, space=space, action=action, bytes_per_lane=4, requests=10, first=first,
            **(values | counts),
        )  # fmt: skip

    memory = (
        one(1, "global", "load", "A", sectors=320, ideal=40),
        one(2, "shared", "store", "shared", wavefronts=10, conflict_free=10, ideal=10),
        one(3, "shared", "load", "shared", wavefronts=20, conflict_free=10, ideal=10),
    )
    records = tuple(
        replace(r, simulated=replace(r.simulated, executed=(10, 10, 10, 70, 0), memory=memory))
        if r.simulated
        else r
        for r in made.records
    )
    labels = dict.fromkeys(r.label for r in records if r.simulated)
    return replace(
        made,
        records=records,
        listings=tuple(map(listing, labels)),
    )


def foreseen(made, error=0.1):
    """Every rung that has a published time is predicted to take so much more than it."""
    seconds = {name: time_s * (1 + error) for name, _, _, time_s, _ in RUNGS if time_s}
    return replace(
        made,
        records=tuple(
            predicted(r, seconds[r.label] * (r.shape.m / N) ** 3) if r.label in seconds else r
            for r in made.records
        ),
    )


def with_ceilings(made):
    """The profile on a device whose reached ceilings and L2 bandwidth are known."""
    reached = MeasuredCeilings(
        source="a benchmark of 2026-01-01",
        fp32_flop_per_s=29.1e12,
        dram_bytes_per_s=868e9,
        l2_bytes_per_s=2.2e12,
    )
    return replace(made, device=replace(made.device, l2_bytes_per_s=2.9e12, measured=reached))


def change(made, of, /, **changes):
    """The profile with one variant's records changed."""
    return replace(
        made,
        records=tuple(replace(r, **changes) if r.label == of else r for r in made.records),
    )


def only(made, *labels):
    """The profile with these variants alone: its page takes less time to draw."""
    return replace(made, records=tuple(r for r in made.records if r.label in labels))


def record_of(made, label):
    return next(record for record in made.records if record.label == label)


def view(made, recorded=None):
    """The records at `SHAPE`, and an earlier run beside them."""
    return View(made, SHAPE, recorded)
