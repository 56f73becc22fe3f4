"""Predicted time of a launch, from its machine code, and the resource that limits it.

A few blocks of the launch, executed by the simulator, are replayed on a model of one SM
(`analysis.sm`). The totals of an SM are extrapolated linearly, over blocks (in whole waves) and,
for matrix products, over K. Traffic below L1 comes from `analysis.traffic.l2`. docs/timing.md
describes the model, docs/validation.md its errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from analysis.access import WAVEFRONT_BYTES
from analysis.devices import Device
from analysis.errors import InputError
from analysis.hardware.sm_constants import SmConstants, constants_for
from analysis.sm import (
    LINE_BYTES,
    SCHEDULERS,
    Kind,
    Machine,
    Numbers,
    Ran,
    Streams,
    Unit,
    run,
    run_parts,
    side_by_side,
)
from analysis.timing.blocks_of_sm import OneSm, blocks_to_run, most_blocks
from analysis.timing.gap import GAP, has_conflicts, variations
from analysis.timing.predicted import Bound, Cause, GapStep, Predicted, Resource
from analysis.timing.repetitions import (
    SHORTENED,
    SHORTENED_FOR_GAP,
    UnsteadyError,
    check_steady,
    shortened,
)

FEWEST_L1_LINES = 64
# If SMs read a line at about the same time, the first read waits for DRAM, and so do others that
# arrive before it is served. A block that waits lets others catch up: the fraction of these that
# wait is this factor times the relative slowdown if all do. Fitted on the ladder on an H200.
MEET_BY_WAITS = 2.0
# Fraction of L2 that is dirty when a launch begins, because the flush before it writes other lines:
# fitted on kernels that read. And the fraction among the lines that are evicted first: fitted on
# the additional time of stream-k on an H100 over an H200, which writes faster.
DIRTY_SHARE, DIRTY_AT_FIRST = 0.6, 0.8
MOST_IN_STEP = 1 << 20  # warp instructions after which the slowdown of waiting in step is known
OF_SM = "of the SM with the most blocks"

# Pipes other than FP32, by the name of their total. The busiest of them is a bound if it is busier
# than the FP32 pipes.
PIPES = {
    "products": (Resource.PRODUCTS, "the FP32 pipes' integer halves"),
    "logic": (Resource.LOGIC, "the ALU pipes"),
    "double": (Resource.DOUBLE, "the FP64 pipes"),
    "half": (Resource.HALF, "the FP16 pipes"),
    "special": (Resource.SPECIAL, "the XU pipes (special functions, conversions, S2R)"),
}
EXPOSED = "waiting for shared memory, L1, L2, DRAM and barriers, and their bandwidths below L1"
HELD = "the clock that the device holds under load, which is not its boost clock"
LAUNCH = "what CUDA events show around an empty launch"


@dataclass(frozen=True, kw_only=True)
class Work:
    """Input of the model: one launch.

    `code` is the machine code (`analysis.sm.INSTRUCTION`); its `free_clocks` are the clocks that a
    shared access would take without bank conflicts. `samples` maps a value of K to the streams of
    some blocks at that K, and `k` is the K of the launch; both are 0 if nothing is extrapolated
    along K. Three samples have numbers of repetitions of a loop in place of K; the first of them
    shows whether each repetition takes equally long. Bytes are totals of the launch; at L2 they are
    what SMs request.

    `weight`: instructions of an average block of the launch, relative to an average sampled block.
    `sent_share`: fraction of stored sectors that L1 sends to L2 after merging adjacent stores.
    `unlike`: number of blocks of an SM that differ from all later ones; the samples begin with
    these. `relative_l2_reads`: sectors that the modelled SM reads from L2, relative to the average
    SM (1 or more); the other SMs are idle meanwhile. `read_back_bytes`: the part of the bytes read
    that are partial sums written by other blocks. `left_bytes`: partial sums that each of these
    blocks writes. `finish_at_different_times`: blocks resident on one SM do
    (`analysis.traffic.block_schedule.blocks_finish_at_different_times`). `of_sm`: the blocks of the
    modelled SM, if those of other SMs differ from them.
    """

    code: NDArray[Any]
    samples: Mapping[int, Streams]
    k: int
    blocks: int
    blocks_per_sm: int
    shared_bytes_per_block: int
    flop: int
    l2_read_bytes: float
    l2_write_bytes: float
    dram_read_bytes: float
    dram_write_bytes: float
    weight: float = 1.0
    sent_share: float = 1.0
    unlike: int = 0
    relative_l2_reads: float = 1.0
    read_back_bytes: float = 0.0
    left_bytes: float = 0.0
    finish_at_different_times: bool = False
    of_sm: OneSm | None = None

    def __post_init__(self) -> None:
        if self.blocks_per_sm < 1 or self.blocks < 1 or not self.samples:
            raise InputError("a prediction needs a launch that fits on the device, and its streams")

    def most_blocks(self, device: Device) -> int:
        """Number of blocks of the modelled SM: the SM with most blocks, unless blocks differ."""
        if self.of_sm:
            return self.of_sm.blocks
        return most_blocks(
            self.blocks,
            device.sm_count,
            self.blocks_per_sm,
            finish_at_different_times=self.finish_at_different_times,
        )

    def relative_work(self, device: Device) -> float:
        """Work of the modelled SM, relative to the average of all SMs of the device."""
        if self.of_sm:
            return self.of_sm.relative_work * device.sm_count / min(self.blocks, device.sm_count)
        return self.most_blocks(device) * device.sm_count / self.blocks

    @property
    def relative_reads(self) -> float:
        """Bytes that the modelled SM reads, relative to the average SM, which is idle meanwhile."""
        return self.of_sm.relative_reads if self.of_sm else 1.0


@dataclass(frozen=True, kw_only=True)
class _Totals:
    """Totals of one SM, which grow linearly with blocks and K."""

    clocks: float
    issued: float
    multiply_adds: float  # clocks of the units for them, over all schedulers
    load_store: float
    shared: float
    stores: float  # to L2
    products: float  # of integers: they have one of the two halves of those units
    logic: float
    double: float
    half: float
    special: float

    @classmethod
    def of(cls, ran: Ran) -> _Totals:
        return cls(
            clocks=ran.clocks,
            issued=ran.issued,
            multiply_adds=sum(
                ran.unit_busy[unit] for unit in (Unit.FMA, Unit.FMA_HEAVY, Unit.FMA_WIDE)
            ),
            load_store=ran.load_store_busy,
            shared=ran.shared_busy,
            stores=ran.write_clocks,
            products=ran.unit_busy[Unit.FMA_HEAVY] + ran.unit_busy[Unit.FMA_WIDE],
            logic=ran.unit_busy[Unit.ALU],
            double=ran.unit_busy[Unit.FP64],
            half=ran.unit_busy[Unit.HALF],
            special=ran.unit_busy[Unit.XU],
        )

    def times(self, factor: float) -> _Totals:
        return _Totals(**{name: factor * value for name, value in vars(self).items()})

    def line_to(self, other: _Totals, steps: float) -> _Totals:
        """Linear extrapolation: this point plus `steps` times the difference to `other`."""
        mine, others = vars(self), vars(other)
        return _Totals(**{name: mine[name] + steps * (others[name] - mine[name]) for name in mine})


GapClocks = Mapping[str, float]  # of each run in GAP, at the K of the launch
Jobs = dict[tuple[str, ...], Callable[[], tuple[Ran, ...]]]  # by the names of their results
T = TypeVar("T")


def predict(
    work: Work, device: Device, gap_clocks: Callable[[], GapClocks] | None = None
) -> Predicted:
    """Predicted time of a launch on a device, its limiter, its bounds and the gap to nominal peak.

    `gap_clocks` returns what `gap_clocks_of` does, if that has begun before. L2 is flushed at the
    start. Raises UnavailableError without the model's native code.
    """
    gap_clocks = gap_clocks or partial(gap_clocks_of, work, device, [])
    made = _Prediction(work, device, constants_for(device.sm_arch), gap_clocks)
    return _shortly(made, _Prediction.predicted, -1, SHORTENED)


def gap_clocks_of(work: Work, device: Device, begun: list[Any]) -> GapClocks:
    """Clocks of the runs for steps of the gap, which do not depend on the bytes below L1 in `work`.

    `begun` gets what `analysis.sm.end_runs` ends them by. Raises as `predict` does.
    """
    made = _Prediction(work, device, constants_for(device.sm_arch), begun=begun)
    return _shortly(made, _Prediction.gap_clocks, 0, SHORTENED_FOR_GAP)


def _shortly(
    made: _Prediction, result: Callable[[_Prediction], T], which: int, limits: tuple[int, int, int]
) -> T:
    """A result, from shortened replays if those of this number of blocks are long."""
    blocks = made._numbers_of_blocks[which]
    if changes := shortened(made.code, made.work.samples, blocks, *limits):
        work = replace(made.work, **changes)
        with suppress(UnsteadyError):
            return result(
                _Prediction(work, made.device, made.constants, made._known_clocks, made.begun)
            )
    return result(made)


def dram_bytes_per_s(predicted: Predicted, device: Device) -> float:
    """Average rate of DRAM during a launch, including write-backs of lines dirty before it."""
    bound = next(bound for bound in predicted.bounds if bound.name == Resource.DRAM)
    reachable = device.dram_bytes_per_s * constants_for(device.sm_arch).dram_efficiency
    return reachable * bound.time_s / predicted.time_s


class _Prediction:
    """One launch on one device: runs of the model, and the results derived from them."""

    def __init__(
        self,
        work: Work,
        device: Device,
        constants: SmConstants,
        gap_clocks: Callable[[], GapClocks] = dict,
        begun: list[Any] | None = None,
    ) -> None:
        self.work, self.device, self.constants = work, device, constants
        self.clock_hz = device.held_clock_hz
        self.busy_sms = min(work.blocks, device.sm_count)
        self.blocks_of_sm = work.most_blocks(device)
        self.resident = min(work.blocks_per_sm, self.blocks_of_sm)
        self.code = with_clocks(work.code, constants)
        self.machine = self._machine()
        self.begun = [] if begun is None else begun  # runs
        self._known_clocks = gap_clocks

    def predicted(self) -> Predicted:
        seconds = self.total.clocks / self.clock_hz
        time_s = seconds + self.constants.launch_s
        bounds = self._bounds()
        ranked = sorted(bounds, key=lambda bound: -bound.time_s)
        shares = [min(1.0, bound.time_s / seconds) for bound in ranked]
        return Predicted(
            time_s=time_s,
            cycles=self.total.clocks,
            clock_hz=self.clock_hz,
            launch_s=self.constants.launch_s,
            flop_per_s=self.work.flop / time_s,
            l2="flushed",
            limiter=ranked[0].name,
            limiter_share=shares[0],
            next_limiter=ranked[1].name,
            next_share=shares[1],
            bounds=bounds,
            gap=self._gap(time_s),
            constants=self._named(),
            basis=self._basis(),
            is_fitted=self.constants.is_fitted,
        )

    # Runs of the model.

    @property
    def _warps(self) -> int:
        """Warps resident on one SM."""
        streams = next(iter(self.work.samples.values()))
        return self.resident * int(np.diff(streams.first_warp).max())

    def _machine(self) -> Machine:
        c, work = self.constants, self.work
        shared = work.shared_bytes_per_block + self.device.reserved_shared_bytes_per_block
        share = min(1.0, work.dram_read_bytes / work.l2_read_bytes) if work.l2_read_bytes else 0.0
        out = self._written_back_per_byte
        crowd = self.device.sm_count / self.busy_sms
        crowd *= work.relative_l2_reads * work.relative_reads
        dram_rate = self._dram_rate * work.relative_reads
        written = min(c.most_write_bytes_per_clock, crowd * c.write_bytes_per_clock)
        # all constants that sm.c reads by the same names, such as `shared_latency`
        numbers = {number.name: getattr(c, number.name) for number in fields(Numbers)} | {
            "fetch_clocks": (c.fetch_clocks, c.fetch_clocks_of_several)[self._warps > SCHEDULERS],
            "l2_bytes_per_clock": min(c.most_l2_bytes_per_clock, c.l2_bytes_per_clock * crowd),
            # stores take the time of the sectors that remain after merging
            "write_bytes_per_clock": written / work.sent_share,
        }
        return Machine(
            **numbers,
            slots=self.resident,
            wavefront_clocks=WAVEFRONT_BYTES / self.device.shared_bytes_per_clock_per_sm,
            l1_lines=max(FEWEST_L1_LINES, (c.l1_bytes - work.blocks_per_sm * shared) // LINE_BYTES),
            # unknown: how more than two warps per scheduler share code that exceeds the cache
            code_lines=c.code_bytes // LINE_BYTES if self._warps <= 2 * SCHEDULERS else 0,
            flag_clocks=self._flag_clocks,
            dram_bytes_per_clock=dram_rate / self.clock_hz / self.busy_sms,
            dram_share=share * (1 + out),
            dram_write_share=out * work.sent_share,
            waiting_share=min(1.0, work.dram_read_bytes / own) if (own := self._own_bytes) else 0.0,
        )

    @property
    def _flag_clocks(self) -> int:
        """Clocks that the block finishing a tile waits for its peers' partial sums.

        The peers store at the same time. Their stores need lines of L2, and dirty lines are written
        back to DRAM first.
        """
        work, c = self.work, self.constants
        if not work.left_bytes:
            return 0
        bytes_of_sm = work.read_back_bytes / self.device.sm_count
        written_back = self._written_back_per_byte * work.read_back_bytes / self._dram_rate
        stored = (
            bytes_of_sm / c.write_bytes_per_clock,
            written_back * self.clock_hz,
            work.left_bytes / c.most_write_bytes_per_clock,
        )
        return round(max(stored) + c.flag_latency)

    @property
    def _own_bytes(self) -> float:
        """Bytes read at L2, excluding partial sums written by other blocks."""
        return self.work.l2_read_bytes - self.work.read_back_bytes

    @property
    def _written_back_per_byte(self) -> float:
        """Bytes that DRAM writes per byte that enters L2, from DRAM or from stores."""
        work = self.work
        come = work.dram_read_bytes + work.l2_write_bytes
        return self._dram_write_bytes / come if come else 0.0

    @property
    def _dram_write_bytes(self) -> float:
        """Bytes that DRAM writes during the launch, including lines dirty before the launch."""
        return self.work.dram_write_bytes + self._dirty_bytes

    @property
    def _dirty_bytes(self) -> float:
        """Bytes of the lines dirty before the launch that are evicted during it."""
        come = self.work.dram_read_bytes + self.work.l2_write_bytes
        return min(DIRTY_SHARE * self.device.l2_bytes, DIRTY_AT_FIRST * come)

    @cached_property
    def _numbers_of_blocks(self) -> tuple[int, ...]:
        if self.work.of_sm:
            return tuple(map(len, self.work.of_sm.orders))
        fewest, *more = blocks_to_run(
            self.blocks_of_sm,
            self.resident,
            unlike=self.work.unlike,
            along_k=len(self.work.samples) == 2,
        )
        waves = 2 if len(self.work.samples) > 2 else 4  # repetitions are extrapolated, as K is
        return fewest, *(min(most, fewest + waves * self.resident) for most in more)

    def _points(self, k: int) -> tuple[str, ...]:
        """Names of the runs at K = k."""
        return tuple(f"{k, blocks}" for blocks in self._numbers_of_blocks)

    def _ran(self, machine: Machine, k: int, numbers: Sequence[int]) -> tuple[Ran, ...]:
        """Runs of the first n blocks for each n in `numbers`, the largest last."""
        streams = self.work.samples[k]
        if self.work.of_sm:
            return tuple(
                run(self.code, streams, order, machine, self.begun)
                for order in self.work.of_sm.orders[: len(numbers)]
            )
        jobs = [number % streams.blocks for number in range(numbers[-1])]
        return run_parts(self.code, streams, jobs, machine, numbers, self.begun)

    @cached_property
    def _runs(self) -> dict[str, Ran]:
        """Runs of the model at each point. The longest start first, so that none is left over."""
        numbers = self._numbers_of_blocks
        ks = sorted(self.work.samples, reverse=True)
        mark = MOST_IN_STEP
        if len(ks) > 2:  # before or behind the end of a shortened run, as of a long one
            streams = self.work.samples[ks[0]]
            executed = streams.executed * numbers[0] // streams.blocks
            mark = max(mark * ks[0] // self.work.k, min(mark, executed * 7 // 8))
        usual = replace(self.machine, mark=mark)
        in_step = replace(usual, waiting_share=1.0, stops_at_mark=1)
        jobs: Jobs = {self._points(k): partial(self._ran, usual, k, numbers) for k in ks}
        jobs |= {(f"alone at {k}",): partial(self._alone, k) for k in ks}
        jobs[("in step",)] = partial(self._ran, in_step, ks[0], numbers[:1])
        return self._done(jobs)

    def gap_clocks(self) -> GapClocks:
        """Clocks of the variations of the model, which run few blocks."""
        ks, few = sorted(self.work.samples), self._numbers_of_blocks[:1]
        jobs: Jobs = {
            (f"{name} at {k}",): partial(self._ran, machine, k, few)
            for name, machine in variations(self.machine).items()
            for k in ks
            if name != "no conflicts" or has_conflicts(self.code, self.work.samples[k].steps)
        }
        runs = self._done(jobs, 1)  # beside the traffic model
        found = {f"no conflicts at {k}": runs[f"wavefronts at {k}"] for k in ks} | runs
        return {
            name: self._along_k([_Totals.of(found[f"{name} at {k}"]) for k in ks]).clocks
            for _, name, _ in GAP
        }

    def _done(self, jobs: Jobs, threads: int = 2) -> dict[str, Ran]:
        """The results of jobs, by their names."""
        done = side_by_side(jobs.values(), threads, self.begun)
        return {
            name: ran
            for names, runs in zip(jobs, done, strict=True)
            for name, ran in zip(names, runs, strict=True)
        }

    def _alone(self, k: int) -> tuple[Ran, ...]:
        """Run of one warp alone on an SM: only its own latencies count."""
        streams = self.work.samples[k]
        first = streams.first_warp[0]
        ends = np.append(streams.first_step, np.uint64(len(streams.steps)))
        one = replace(
            streams,
            steps=streams.steps[: int(ends[first + 1])],
            first_step=streams.first_step[:1],
            first_line=streams.first_line[:1],
            first_warp=np.array([0, 1]),
        )
        return (run(self.code, one, [0], replace(self.machine, slots=1)),)

    # What follows from them.

    @cached_property
    def total(self) -> _Totals:
        """Totals of the SM that runs the most blocks."""
        found = self._replayed
        # other SMs wait with this SM only for what they read too: as much as the average SM reads
        relative_reads = self.work.relative_l2_reads * self.work.relative_reads
        clocks = found.clocks * (1 + self._coupling * self._waits / relative_reads)
        # an extrapolation from a few blocks and small K may fall below the busy time of a unit
        busy = found.load_store, found.issued / SCHEDULERS
        least = (*busy, *(time_s * self.clock_hz for time_s in self._below_l1_s))
        return replace(found, clocks=max(clocks, *least))

    @cached_property
    def _replayed(self) -> _Totals:
        """Totals from the replay alone, in which an SM waits for DRAM for some of its requests."""
        found = self._along_k(
            [
                self._over_blocks([_Totals.of(self._runs[name]) for name in self._points(k)])
                for k in sorted(self.work.samples)
            ]
        )
        return found.times(self.work.weight)

    @cached_property
    def _below_l1_s(self) -> tuple[float, float]:
        """Lower bounds on the time from L2 and DRAM bandwidth."""
        work = self.work
        l2_rate = self.machine.l2_bytes_per_clock * self.busy_sms * self.clock_hz
        return (
            (work.l2_read_bytes + work.l2_write_bytes) / l2_rate,
            (work.dram_read_bytes + self._dram_write_bytes) / self._dram_rate,
        )

    @property
    def _dram_rate(self) -> float:
        return self.device.dram_bytes_per_s * self.constants.dram_efficiency

    @cached_property
    def _waits(self) -> float:
        """Relative slowdown if every request waits for DRAM."""
        fewest, *_ = self._points(max(self.work.samples))
        return self._runs["in step"].marked / self._runs[fewest].marked - 1

    @property
    def _coupling(self) -> float:
        if self.machine.dram_share == 0:
            return 0.0
        if self.work.blocks <= self.device.sm_count:
            return 1.0
        if not (self.code["kind"] == Kind.BARRIER).any():
            return 0.0
        return float(np.clip(MEET_BY_WAITS * self._waits, 0, 1))

    def _over_blocks(self, found: Sequence[_Totals]) -> _Totals:
        if len(found) == 1:
            return found[0]
        if self.work.of_sm:
            return found[0].line_to(found[1], self.work.of_sm.further)
        fewer, more = self._numbers_of_blocks
        return found[0].line_to(found[1], (self.blocks_of_sm - fewer) / (more - fewer))

    def _along_k(self, found: Sequence[_Totals]) -> _Totals:
        if len(found) == 1:
            return found[0]
        ks = sorted(self.work.samples)
        low, high = ks[-2:]
        check_steady(ks, [totals.clocks for totals in found])
        return found[-2].line_to(found[-1], (self.work.k - low) / (high - low))

    def _bounds(self) -> tuple[Bound, ...]:
        total, c, work = self.total, self.constants, self.work
        halves = SCHEDULERS * c.fma_halves
        l1 = total.load_store - total.shared
        l2_bytes = work.l2_read_bytes + work.l2_write_bytes
        l2_rate = self.machine.l2_bytes_per_clock * self.busy_sms
        dram_bytes = work.dram_read_bytes + self._dram_write_bytes
        l2_s, dram_s = self._below_l1_s
        rounds = work.of_sm.rounds if work.of_sm else self.blocks_of_sm / self.resident
        alone = [_Totals.of(self._runs[f"alone at {k}"]) for k in sorted(work.samples)]
        waiting = self._along_k(alone).clocks * work.weight
        return (
            self._bound(
                Resource.ISSUE,
                total.issued / SCHEDULERS,
                f"{total.issued:,.0f} warp instructions {OF_SM}, {SCHEDULERS} per clock",
            ),
            self._bound(
                Resource.FP32,
                total.multiply_adds / halves,
                f"{total.multiply_adds:,.0f} clocks of FP32 pipes {OF_SM}, {halves} of them",
            ),
            *self._other_pipe(total.multiply_adds / halves),
            self._bound(
                Resource.SHARED_MEMORY,
                total.shared,
                f"{total.shared:,.0f} clocks of the load/store unit {OF_SM}",
            ),
            self._bound(Resource.L1, l1, f"{l1:,.0f} clocks of L1's tags and data {OF_SM}"),
            Bound(
                name=Resource.L2,
                time_s=l2_s,
                basis=f"{l2_bytes:,.0f} bytes at {l2_rate:,.0f} per clock",
            )
            if l2_s * self.clock_hz > total.stores
            else self._bound(
                Resource.L2,
                total.stores,
                f"{total.stores:,.0f} clocks of stores {OF_SM}, a line as {c.store_line_bytes:.0f} "
                f"bytes at least, {self.machine.write_bytes_per_clock * work.sent_share:.1f} per "
                "clock",
            ),
            Bound(
                name=Resource.DRAM,
                time_s=dram_s,
                basis=f"{dram_bytes:,.0f} bytes at {self._dram_rate / 1e9:,.0f} GB/s, "
                f"{self._dirty_bytes:,.0f} of them written for lines that were dirty before",
            ),
            self._bound(
                Resource.LATENCY,
                waiting * rounds,
                f"one warp by itself takes {waiting:,.0f} clocks, and {rounds:.1f} follow one "
                f"another where {self.resident} blocks are resident",
            ),
        )

    def _other_pipe(self, least: float) -> Iterator[Bound]:
        """The bound of the busiest other pipe, where it is busy for more clocks than `least`."""
        busy, name, pipes = max((getattr(self.total, pipe), *said) for pipe, said in PIPES.items())
        if busy / SCHEDULERS > least:
            basis = f"{busy:,.0f} clocks of {pipes} {OF_SM}, {SCHEDULERS} of them"
            yield self._bound(name, busy / SCHEDULERS, basis)

    def _bound(self, name: Resource, clocks: float, basis: str) -> Bound:
        return Bound(name=name, time_s=clocks / self.clock_hz, basis=basis)

    def _gap(self, time_s: float) -> tuple[GapStep, ...]:
        """Steps from nominal peak to `time_s`; each includes one more effect of the model."""
        peak_s = self.work.flop / self.device.fp32_flop_per_s
        spread = self.work.relative_work(self.device)
        steps = [
            GapStep(name=Cause.PEAK, time_s=peak_s, detail="the FLOP of the problem alone"),
        ]
        if (slower := self.device.boost_clock_hz / self.clock_hz) != 1:
            lost_s = peak_s * (slower - 1)
            steps.append(GapStep(name=Cause.CLOCK_UNDER_LOAD, time_s=lost_s, detail=HELD))
            peak_s += lost_s
        steps.append(
            GapStep(
                name=Cause.IDLE_SMS,
                time_s=peak_s * (spread - 1),
                detail=f"{self.work.blocks:,} blocks over {self.device.sm_count} SMs: up to "
                f"{self.blocks_of_sm:,} each",
            )
        )
        run_s = time_s - self.constants.launch_s
        fewest = [self._points(k)[0] for k in sorted(self.work.samples)]
        usual = self._along_k([_Totals.of(self._runs[name]) for name in fewest]).clocks
        scale = self._replayed.clocks / usual / self.clock_hz
        before = peak_s * spread
        clocks = self._known_clocks()
        for name, key, detail in GAP:
            after = clocks[key] * scale
            steps.append(GapStep(name=name, time_s=after - before, detail=detail))
            before = after
        steps.append(GapStep(name=Cause.LATENCY, time_s=run_s - before, detail=EXPOSED))
        steps.append(GapStep(name=Cause.LAUNCH, time_s=self.constants.launch_s, detail=LAUNCH))
        return tuple(steps)

    def _named(self) -> str:
        c = self.constants
        if c.taken_from is None:
            return f"{c.architecture}, measured"
        return f"{c.architecture}, mostly taken over from {c.taken_from}"

    def _basis(self) -> str:
        ks = sorted(self.work.samples)
        blocks, lengths = (
            " and ".join(f"{n:,}" for n in numbers)
            for numbers in (self._numbers_of_blocks, ks[-2:])
        )
        of_loop = f" with {lengths} of {self.work.k:,} repetitions of a loop"
        along = ("", f" at K = {lengths}", of_loop)[len(ks) - 1]
        return (
            f"{blocks} of the {self.blocks_of_sm:,} blocks of an SM replayed{along}, "
            f"{self.resident} at a time, on a model of the SM"
            f"{'' if self.clock_hz == self.device.boost_clock_hz else self._slower()}"
        )

    def _slower(self) -> str:
        return (
            f", at the {self.clock_hz / 1e6:,.0f} MHz that it holds under load instead of "
            f"{self.device.boost_clock_hz / 1e6:,.0f}"
        )


def with_clocks(code: NDArray[Any], constants: SmConstants) -> NDArray[Any]:
    """Copy of the machine code with pipe clocks and latencies; those of loads are in `Numbers`."""
    timed = code.copy()
    for unit, clocks in constants.units.items():
        timed["pipe_clocks"][code["unit"] == unit] = clocks
    for unit, clocks in constants.latencies.items():
        timed["latency"][code["unit"] == unit] = clocks
    return timed
