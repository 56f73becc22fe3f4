"""One rung at one shape on the simulator: the counters of the whole launch from a few blocks.

Two symmetries keep big problems short, and neither is assumed:

- Blocks of one place in the grid (corner, edge, interior) do the same work. Several of each are
  executed; where their counts differ in a single instruction, every block is executed instead.
- Per-instruction counts are affine in K among values of K that leave the same remainder in
  everything that matters: the unrolled step, the tile's depth, the alignment of rows. Where the
  blocks would take long, they are executed at four small values of K, two for a line and two more
  that must lie on it, and a few of them at K itself, which must too; where one does not, all of
  them are executed at K.

The elements that executed blocks wrote are held against float64 like a GPU's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from hashlib import sha256
from math import lcm, prod
from pathlib import PurePath
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.access import AccessCounts, Tiling
from analysis.agreement import machine_accesses
from analysis.counters import InstructionCounts, by_line, totals
from analysis.cycles import FLAG, IN_L2, Streams
from analysis.devices import Device
from analysis.errors import LaunchError, ShapeError
from analysis.gemm_touches import gemm_touches, sums_bytes
from analysis.geometry import WARP_SIZE, Geometry, ceil_div
from analysis.grid import ALONE, CLOSING, LEADING
from analysis.problem import FLOAT_BYTES, Gemm
from analysis.result import Check, LineCounters, Listing, Predicted, Record, Simulated
from analysis.schedule import drift, end_apart
from analysis.timing import Work, blocks_to_run, most_blocks
from analysis.traffic import Traffic
from kernels.registry import Copies, Parameters, Selection, Variant, Words, row_floats
from reports import text
from toolkit.cubin import Kernel
from toolkit.executor import buffers_of
from toolkit.host import available_bytes, blas_on_one_thread, sparse_zeros
from toolkit.launch_traffic import Asked, Residence, traffic_of
from toolkit.prediction import blocks_of_an_sm, predicted, streams_of, work_of
from toolkit.residents import most_resident
from toolkit.sass.faults import MOST_INSTRUCTIONS, describe
from toolkit.sass.machine import Bound, FaultError, Run, Spread, run_blocks
from toolkit.sass.representatives import Place, agree, places
from toolkit.sass.requests import Noted, line_accesses, noted
from toolkit.sass.statistics import instruction_counts
from toolkit.sass.touched import MOST_TOUCHES, Below, below
from toolkit.sass.translate import Translated, bind, translate
from toolkit.tiles import rung_arguments
from toolkit.workload import Matrix, Tile, TileReference, Workload

Counts = NDArray[Any]

# Thread instructions of the chosen blocks above which K is made smaller: a tenth of a second of
# two cores. A larger budget checks more elements of the very product that was asked for.
FULL_K_BUDGET = 2 * 10**8
# Of the few blocks that prove an extrapolation at K itself; beyond it, nothing is executed there.
ANCHOR_BUDGET = 5 * 10**8
ANCHORS = 3
ANCHOR_BYTES = 2**29  # of A and B at K itself: up to 8192³ they are made for the CPU reference too
# Of the blocks that stand for all, where they wait for each other: ten seconds of two cores.
APART_BUDGET = 2 * 10**10
# Of all blocks together at K itself, which proves that the product is what they end up with; beyond
# it those that share tiles prove it at a small K.
TOGETHER_BUDGET = 10**9
TOGETHER_K = 64
PROVEN_KINDS = 4  # of which two blocks are executed, and must count the same
MOST_GUARDS = 16  # of a block: corrections of divisions, which depend on the numbers
# Of all blocks, where those of one place differ: ten minutes of two cores.
ALL_BLOCKS_BUDGET = 2 * 10**12
INSTRUCTIONS_PER_ACCESS = 2  # the access, and what computes its address or its guard
# What stops an endless loop in a rung that somebody works on: so many times its closed forms, which
# no rung comes near with what it does besides, and warps enough for the smallest shapes.
EXCESS, FEWEST_INSTRUCTIONS = 32, 10**7
ENDLESS = f"{EXCESS} times what its closed forms count: an endless loop?"

# A row of A begins in a sector by K modulo 8. The naive rungs are unrolled by 8, and compilers
# make up to four such steps, or short phases, one iteration.
STEPS_AND_SECTORS = 32
PYCUDA_FILE = "kernel.cu"  # what PyCUDA calls the source that it gives to nvcc
LEAST_APART = 0.05  # of a life, after the last wave
NOT_OF_THE_SM = ("L2", "DRAM", "latency")  # bounds that are no unit's of an SM
TRAFFIC_BASIS = (
    "modelled: what each block asks of L2 follows from the executed blocks, what caches keep of it "
    "from the order in which blocks run and the sizes of their tiles (analysis.traffic)"
)
# Periods of K at the lower of two replayed points; twice as many for blocks of many warps.
TIMED_STEPS, MANY_WARPS = 4, 16
POINTS = (2, 3, 4, 6)  # values of K in periods, above its remainder: a line, and two more on it


def residence(record: Record, device: Device) -> Residence | None:
    """That of a record's launch on `device`, None where its occupancy is not known."""
    if record.occupancy is None:
        return None
    return Residence(device=device, blocks_per_sm=record.occupancy.blocks_per_sm)


@dataclass(frozen=True, kw_only=True)
class RungLaunch:
    """One launch of a rung: at the executed shape, or at another K."""

    variant: Variant
    parameters: Parameters
    shape: Gemm
    geometry: Geometry

    @property
    def workspace_bytes(self) -> int | None:
        return self.variant.workspace(self.parameters, self.shape)

    def served(self, *, is_last: bool) -> tuple[Words, ...]:
        """What its workspace says once all that blocks wait for is there, to the last of all."""
        if self.variant.served is None:
            return ()
        tiles = self.variant.tile_grid(self.parameters, self.shape)
        return self.variant.served(self.parameters, tiles, self.shape, is_last)


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """What executing a rung on the simulator gave."""

    simulated: Simulated
    listing: Listing
    check: Check
    predicted: Predicted | str  # a reason where there is none
    instructions: tuple[InstructionCounts, ...]


class LadderSimulator:
    """Executes rungs at one shape; inputs and references are shared between them."""

    advance: Callable[[int, int], None]  # hears how many blocks of a rung are done, of how many
    workers: int | None = None  # all cores

    def __init__(self, workload: Workload, max_instructions: int | None = None) -> None:
        self.workload, self.max_instructions = workload, max_instructions
        self.advance = lambda done, of: None
        self._workloads = {workload.problem.k: workload}
        self._matrices: dict[Gemm, Future[tuple[Matrix, Matrix]]] = {}
        self._bytes_to_come = 0  # of those that are being made
        self._pool, self._lock = ThreadPoolExecutor(2), Lock()
        self._references: dict[int, dict[Tile, TileReference]] = {}  # by K

    def simulate(
        self, kernel: Kernel, selection: Selection, residence: Residence | None = None
    ) -> Simulation:
        """The counters and the verdict of one rung.

        Where its `residence` is known, the traffic below L1 is modelled too. Raises
        UnsupportedError for machine code that the simulator does not know, LaunchError where the
        kernel faults, ShapeError where there is not enough memory or time.
        """
        variant = selection.variant
        assert isinstance(variant, Variant)
        return _Rung(self, kernel, variant, selection.parameters, residence).simulate()

    def at(self, k: int) -> Workload:
        """The workload with another K, the same but for it; kept for the next rung."""
        if k not in self._workloads:
            problem = replace(self.workload.problem, k=k)
            self._workloads[k] = Workload(problem, self.workload.seed)
        return self._workloads[k]

    def prepare(self, workload: Workload, executed: Gemm) -> Future[tuple[Matrix, Matrix]]:
        """Begin to make A and B, beside what else there is to do; again where there was no room."""
        with self._lock:
            begun = self._matrices.get(executed)
            if begun is None or (begun.done() and begun.exception()):
                begun = self._pool.submit(self._read_only, workload, executed)
                self._matrices[executed] = begun
            return begun

    def matrices(self, workload: Workload, executed: Gemm) -> tuple[Matrix, Matrix]:
        """A and B, read-only, padded up to the executed shape; kept for the next rung.

        Raises ShapeError where they do not fit into memory.
        """
        return self.prepare(workload, executed).result()

    def _read_only(self, workload: Workload, executed: Gemm) -> tuple[Matrix, Matrix]:
        with self._lock:
            _check_room(executed, self._bytes_to_come)
            self._bytes_to_come += _input_bytes(executed)
        try:
            a, b = (matrix.view() for matrix in workload.padded(executed))
        finally:
            with self._lock:
                self._bytes_to_come -= _input_bytes(executed)
        a.flags.writeable = b.flags.writeable = False
        return a, b

    def has_room(self, executed: Gemm) -> bool:
        """Whether A and B are there, or fit into memory."""
        begun = self._matrices.get(executed)
        return _has_room(executed) if begun is None or begun.exception() else True

    def references(self, workload: Workload, tiles: Iterable[Tile]) -> dict[Tile, TileReference]:
        """The float64 products on some tiles of C; kept for the next rung."""
        known = self._references.setdefault(workload.problem.k, {})
        missing = [tile for tile in tiles if tile not in known]
        if missing:
            known |= workload.tile_references(missing)
        return known


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What blocks did at one K: the counts of each group's members, and verdicts on their tiles.

    `below` is what the first member of each group asked of L2; `requests` are the first ones of
    each instruction, in the first member of the first group.
    """

    k: int
    groups: Sequence[Sequence[Counts]]
    verdicts: Sequence[Check]
    below: Sequence[Below] = ()
    requests: Sequence[Noted] = ()
    checked: int = 0  # blocks whose tiles of C the verdicts are on

    @property
    def blocks(self) -> int:
        return sum(map(len, self.groups))

    @property
    def alike(self) -> bool:
        """Whether the members of each group counted the same, instruction by instruction."""
        return all(map(agree, self.groups))


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """Blocks that do the same, and which of them to execute; do they have tiles to themselves?"""

    blocks: NDArray[Any]
    members: tuple[int, ...]
    is_alone: bool
    is_last: bool
    is_leading: bool

    @property
    def population(self) -> int:
        return len(self.blocks)


@dataclass(frozen=True, kw_only=True)
class _Served:
    """Blocks that do not wait for others: those that have a tile to themselves; the last of all?"""

    owners: Sequence[int] = ()
    is_last: bool = False


class _Rung:
    """One rung with its parameters, its machine code and its grid."""

    def __init__(
        self,
        ladder: LadderSimulator,
        kernel: Kernel,
        variant: Variant,
        parameters: Parameters,
        residence: Residence | None,
    ) -> None:
        self.ladder, self.variant, self.parameters = ladder, variant, parameters
        self.residence = residence
        self.problem = ladder.workload.problem
        self.executed = variant.executed(self.problem)
        self.geometry = variant.geometry(parameters, self.executed)
        self.counts = variant.access_counts(parameters, self.executed)
        self.cost = instructions_per_block(self.counts, self.geometry)
        self.places = places_of(variant, parameters, self.executed)
        if _input_bytes(self.executed) <= ANCHOR_BYTES:  # all K but those that few blocks look at
            ladder.prepare(ladder.workload, self.executed)
        self.translated = translate(kernel)
        # by turns of workers, even where none is left over for these: blocks divide their numbers
        self.shares_tiles = variant.order_of(parameters).kinds is not None
        self.executed_by_block = np.zeros(self.geometry.blocks)  # where they share tiles
        self.read_by_block = np.zeros(self.geometry.blocks)  # sectors of L2

    def _launch(self, shape: Gemm) -> RungLaunch:
        return RungLaunch(
            variant=self.variant, parameters=self.parameters, shape=shape, geometry=self.geometry
        )

    def simulate(self) -> Simulation:
        if self.shares_tiles:
            return self._apart()
        members = sum(len(place_.members) for place_ in self.places)
        points = k_points(self.executed.k, period(self.variant.tiling(self.parameters)))
        if not points or members * self.cost <= FULL_K_BUDGET:
            return self._at_full_k()
        return self._from_small_k(points) or self._at_full_k(
            "; counts are not affine in K, so that nothing was extrapolated"
        )

    def _from_small_k(self, points: Sequence[int]) -> Simulation | None:
        """From small values of K and a few blocks at K, None where counts leave their line."""
        runs = [self._execute(k, [place_.members for place_ in self.places]) for k in points]
        if not all(run.alike for run in runs):
            return self._at_full_k()  # which will find that they differ there too, and say so
        at_k: list[Any] = [
            affine({run.k: run.groups[n][0] for run in runs}, self.executed.k)
            for n in range(len(self.places))
        ]
        anchors = self._anchors()
        anchored = self._execute(self.executed.k, [self.places[n].members[-1:] for n in anchors])
        total = np.zeros_like(runs[0].groups[0][0])
        for place_, fitted in zip(self.places, at_k, strict=True):
            if fitted is None:
                return None
            add(total, fitted, place_.population)
        proofs = zip(anchors, anchored.groups, strict=True)
        if not all(agree([at_k[n], counts]) for n, (counts,) in proofs):
            return None
        return self._simulation(
            total,
            runs[0],
            self._basis_of(runs, anchored),
            self._verdict([anchored, *runs]),
            self._below_along_k(runs),
        )

    def _apart(self) -> Simulation:
        """Each kind of block by itself, with all that it waits for already there."""
        kinds = self._kinds()
        of_tiles = [kind for kind in kinds if not kind.is_leading]
        if (cost := self.cost * sum(len(kind.members) for kind in of_tiles)) > APART_BUDGET:
            raise ShapeError(
                f"its blocks share tiles in {len(of_tiles):,} ways, and a block of each would take "
                f"about {cost:.1e} thread instructions: take a smaller shape"
            )
        sharing = sum(kind.population for kind in kinds if not kind.is_alone)
        blocks, k = self._proof(sharing, is_proven_alone=any(kind.is_alone for kind in kinds))
        stop = Event()
        with ThreadPoolExecutor(1) as pool:  # those take turns, and leave a core to these
            together = pool.submit(self._together, blocks, k, stop)
            try:
                run = self._served(kinds)
                proof = together.result()
            except BaseException:
                stop.set()
                raise
        if not all(map(_agree_but_for_guards, run.groups)):
            raise ShapeError(
                "blocks that share tiles alike count differently, and to execute all of them takes "
                "too long: take a smaller shape"
            )
        for kind, counts in zip(kinds, run.groups, strict=True):
            self.executed_by_block[kind.blocks] = counts[0]["executed"].sum()
        for kind, asked in zip(kinds, run.below, strict=len(run.below) > 0):
            self.read_by_block[kind.blocks] = asked.read
        total = np.zeros_like(run.groups[0][0])
        populations = [kind.population for kind in kinds]
        for population, counts in zip(populations, run.groups, strict=True):
            add(total, counts[0], population)
        basis = (
            f"{self._of_blocks(run.blocks)} executed, with all that they wait for already there; "
            "those that begin and end at the same places in tiles of one place in C (corner, edge, "
            "interior) count alike, but for guarded steps of divisions"
        )
        looked_at = [proof] if proof.checked == self.geometry.blocks else [run, proof]
        return self._simulation(
            total, run, basis, self._verdict(looked_at), summed(run.below, populations)
        )

    def _served(self, kinds: Sequence[_Kind]) -> _Run:
        """A group of blocks of each kind; the last of all blocks finds that it is."""
        parts = [
            self._execute(
                self.executed.k,
                [kind.members for kind in chosen],
                served=_Served(
                    owners=[b for kind in chosen if kind.is_alone for b in kind.members],
                    is_last=chosen[0].is_last,
                ),
            )
            for is_last in (False, True)
            if (chosen := [kind for kind in kinds if kind.is_last == is_last])
        ]
        return _Run(
            k=self.executed.k,
            groups=[group for part in parts for group in part.groups],
            verdicts=[verdict for part in parts for verdict in part.verdicts],
            below=[one for part in parts for one in part.below],
            requests=parts[0].requests,
            checked=sum(part.checked for part in parts),
        )

    def _kinds(self) -> list[_Kind]:
        """Of blocks that share tiles, the largest first, the last block last of all."""
        order = self.variant.order_of(self.parameters)
        assert order.kinds is not None
        tiles = self.variant.tile_grid(self.parameters, self.executed)
        rows = order.kinds(np.arange(self.geometry.blocks), tiles)
        found, which = np.unique(rows, axis=0, return_inverse=True)
        populations = np.bincount(which.ravel())
        kinds: list[_Kind] = []
        for n in np.argsort(-populations, kind="stable"):
            own = np.flatnonzero(which.ravel() == n)
            members = own[[0, -1]] if len(kinds) < PROVEN_KINDS and len(own) > 1 else own[:1]
            how, *_, besides = map(int, found[n])
            kinds.append(
                _Kind(
                    blocks=own,
                    members=tuple(members.tolist()),
                    is_alone=ALONE in (how, besides if how == CLOSING else how),
                    is_last=how == CLOSING,
                    is_leading=how == LEADING,
                )
            )
        return sorted(kinds, key=lambda kind: kind.is_last)

    def _proof(self, sharing: int, *, is_proven_alone: bool) -> tuple[int, int]:
        """How many blocks show what comes of waiting: all, or at a small K the first ones, who do.

        That K is larger where no other block shows at K itself what a full ring does.
        """
        blocks, k = self.geometry.blocks, self.executed.k
        if self.cost * blocks > TOGETHER_BUDGET:
            enough = TOGETHER_K if is_proven_alone else self._turns_of_k(sharing)
            blocks, k = sharing, min(k, enough + k % STEPS_AND_SECTORS)
        if (cost := self.cost * blocks * k / self.executed.k) > APART_BUDGET:
            raise ShapeError(
                f"{blocks:,} of its blocks share tiles, and to run them together would take about "
                f"{cost:.1e} thread instructions: take a smaller shape"
            )
        return blocks, k

    def _together(self, blocks: int, k: int, stop: Event) -> _Run:
        """The verdict on the first blocks at K = k, run together."""
        if not blocks:
            return _Run(k=k, groups=(), verdicts=(), below=())
        workload = self.ladder.at(k - (self.executed.k - self.problem.k))
        tiles = [
            self.variant.tile_of_c(self.parameters, replace(self.executed, k=k), block)
            for block in range(blocks)
        ]
        c = _poisoned(replace(self.executed, k=k), tiles)
        bound = self._bound(workload, k, c)
        self._run(bound, [range(blocks)], blocks, stop)
        with blas_on_one_thread():
            verdicts = workload.check_tiles(c, _owned(workload, tiles))
        return _Run(k=k, groups=(), verdicts=verdicts, checked=blocks)

    def _turns_of_k(self, sharing: int) -> int:
        """The K at which each of these blocks fills its ring of phases more than twice."""
        tiles = self.variant.tile_grid(self.parameters, self.executed).tiles
        tiling = self.variant.tiling(self.parameters)
        return tiling.depth * (2 * tiling.stages + 1) * ceil_div(sharing, tiles)

    def _anchors(self) -> list[int]:
        """The places of which a block is executed at K itself: the largest, and corners."""
        affordable = min(ANCHORS, int(ANCHOR_BUDGET / self.cost))
        if _input_bytes(self.executed) > ANCHOR_BYTES or not self.ladder.has_room(self.executed):
            return []
        largest = max(range(len(self.places)), key=lambda n: self.places[n].population)
        return list(dict.fromkeys([largest, len(self.places) - 1, 0]))[:affordable]

    def _at_full_k(self, note: str = "") -> Simulation:
        run = self._execute(self.executed.k, [place_.members for place_ in self.places])
        populations, reason = [place_.population for place_ in self.places], ""
        if not run.alike:
            run = self._all_blocks()
            populations = [1] * run.blocks
            reason = ": blocks of one place in the grid (corner, edge, interior) differ"
        total = np.zeros_like(run.groups[0][0])
        for population, counts in zip(populations, run.groups, strict=True):
            add(total, counts[0], population)
        basis = f"{self._of_blocks(run.blocks)} executed{reason}{self._others(run.blocks)}{note}"
        below = summed(run.below, populations)
        return self._simulation(total, run, basis, self._verdict([run]), below)

    def _all_blocks(self) -> _Run:
        blocks = self.geometry.blocks
        if self.cost * blocks > ALL_BLOCKS_BUDGET:
            raise ShapeError(
                f"blocks of one place in the grid differ, and all {blocks:,} would take about "
                f"{self.cost * blocks:.1e} thread instructions: take a smaller shape"
            )
        return self._execute(self.executed.k, [(block,) for block in range(blocks)])

    def _execute(
        self, k: int, groups: Sequence[Sequence[int]], served: _Served | None = None
    ) -> _Run:
        """Run groups of blocks at K = k and look at what they wrote.

        Where they are `served`, only what the owners of tiles wrote is looked at.
        """
        blocks = [block for group in groups for block in group]
        if not blocks:
            return _Run(k=k, groups=(), verdicts=(), below=())
        workload = self.ladder.at(k - (self.executed.k - self.problem.k))
        shape = replace(self.executed, k=k)
        tiles = [
            self.variant.tile_of_c(self.parameters, shape, block)
            for block in (blocks if served is None else served.owners)
        ]
        c = _poisoned(shape, tiles)
        bound = self._bound(workload, k, c, served)
        if self.residence is not None:
            bound = replace(bound, most_touches=MOST_TOUCHES)
        bound = replace(bound, most_requests=1)
        ran = iter(self._run(bound, [range(b, b + 1) for b in blocks], len(blocks)))
        of_groups = [[next(ran) for _ in group] for group in groups]
        touched = [of_group[0].touched for of_group in of_groups]
        return _Run(
            k=k,
            groups=[[run.counts for run in of_group] for of_group in of_groups],
            verdicts=self._verdicts(workload, c, tiles),
            checked=len(tiles),
            below=[below(one) for one in touched if one is not None],
            requests=noted(of_groups[0][0].requests, bound),
        )

    def _bound(self, workload: Workload, k: int, c: Matrix, served: _Served | None = None) -> Bound:
        """The launch at K = k on the workload's matrices."""
        a, b = self.ladder.matrices(workload, replace(self.executed, k=k))
        launch = self._launch(replace(self.executed, k=k))
        words = None if served is None else launch.served(is_last=served.is_last)
        return bind_in_place(self.translated, launch, a, b, c, served=words)

    def _run(
        self, bound: Bound, chosen: Sequence[range], blocks: int, stop: Event | None = None
    ) -> list[Run]:
        """Run some blocks, and tell how many are done but of what may be stopped."""
        done = 0

        def advance(finished: int) -> None:
            nonlocal done
            done += finished
            if stop is None:
                self.ladder.advance(done, blocks)

        most, limit = self._most_instructions(blocks), ENDLESS
        if (asked := self.ladder.max_instructions) is not None and asked < most:
            most, limit = asked, MOST_INSTRUCTIONS
        try:
            return run_blocks(
                bound,
                chosen,
                max_instructions=most,
                workers=self.ladder.workers,
                advance=advance,
                stop=stop,
            )
        except FaultError as error:
            raise LaunchError(describe(error.fault, self.translated, bound, limit)) from None

    def _most_instructions(self, blocks: int) -> int:
        """Of the warps of some blocks, whatever K."""
        return FEWEST_INSTRUCTIONS + int(EXCESS * self.cost * blocks / WARP_SIZE)

    def _verdicts(self, workload: Workload, c: Matrix, tiles: Sequence[Tile]) -> list[Check]:
        """On the elements of C that executed blocks own, tile by tile; padding is not looked at."""
        owned = _owned(workload, tiles)
        references = self.ladder.references(workload, owned)
        return [references[tile].check(c) for tile in owned]

    # Below L1.

    def _below_along_k(self, runs: Sequence[_Run]) -> Below | None:
        """What all blocks ask of L2 at K, on the line through the first two values of K."""
        populations = [place_.population for place_ in self.places]
        low, high = (summed(run.below, populations) for run in runs[:2])
        if low is None or high is None:
            return None
        steps = (self.executed.k - runs[0].k) // (runs[1].k - runs[0].k)
        return low + (high + low.times(-1)).times(steps)

    def _traffic(
        self,
        instructions: Sequence[InstructionCounts],
        asked: Below | None,
        apart: float = 0.0,
    ) -> Traffic | None:
        """None where the device or what blocks ask of L2 is not known.

        The blocks of an SM move apart by so much of a life in each wave.
        """
        if asked is None or self.residence is None:
            return None
        tiling = self.variant.tiling(self.parameters)
        pieces = self.variant.pieces(self.parameters, self.executed)
        of_all = Asked(
            below=asked,
            lives=pieces.lives(self.geometry.blocks),
            in_time=partial(gemm_touches, tiling, self.executed, pieces),
            steps=self.executed.k,
        )
        facts = self.translated.kernel.schedule
        return traffic_of(of_all, self.geometry, facts, instructions, self.residence, apart=apart)

    # What is said of it.

    def _verdict(self, runs: Sequence[_Run]) -> Check:
        """One verdict on all runs, which says on what: blocks at K itself, and at small K."""
        at_k = [
            self._of_blocks(run.checked) for run in runs if run.k == self.executed.k and run.checked
        ]
        small = [run for run in runs if run.k != self.executed.k]
        looked_at = at_k
        if small:
            blocks = f"{small[0].checked:,}" if at_k else self._of_blocks(small[0].checked)
            looked_at = [*at_k, f"{blocks} at K = {_values(small)}"]
        where = f"on {', and on '.join(looked_at)}"
        return merged([verdict for run in runs for verdict in run.verdicts], where)

    def _basis_of(self, runs: Sequence[_Run], anchored: _Run) -> str:
        plural = "s" if anchored.blocks > 1 else ""
        anchors = f" and by {anchored.blocks} block{plural} at K itself" if anchored.blocks else ""
        return (
            f"{self._of_blocks(runs[0].blocks)} executed at K = {_values(runs)} instead of "
            f"{self.executed.k:,}: every instruction's counts are affine in K, fitted on two of "
            f"these and verified by the others{anchors}{self._others(runs[0].blocks)}"
        )

    def _others(self, executed: int) -> str:
        if executed == self.geometry.blocks:
            return ""
        return (
            "; the other blocks count like those of their place in the grid (corner, edge, "
            "interior), which agreed instruction by instruction"
        )

    def _of_blocks(self, executed: int) -> str:
        everything = self.geometry.blocks
        if everything == 1:
            return "the one block"
        return f"{'all' if executed == everything else f'{executed:,} of'} {everything:,} blocks"

    def _simulation(
        self, counts: Counts, run: _Run, basis: str, check: Check, asked: Below | None
    ) -> Simulation:
        instructions = instruction_counts(self.translated, counts)
        kernel = self.translated.kernel
        counters = totals(instructions)
        traffic = self._traffic(instructions, asked)
        time = self._predicted(traffic, counts)
        if apart := self._moves_apart(time):
            traffic = self._traffic(instructions, asked, apart)
            time = self._predicted(traffic, counts)
        pitches = {"A": run.k, "B": self.executed.n, "C": self.executed.n}
        return Simulation(
            listing=listing(instructions, self.variant, self.parameters),
            simulated=Simulated(
                architecture=kernel.architecture,
                compiler=kernel.compiler,
                counters=counters | (traffic.counters if traffic else {}),
                accesses=machine_accesses(instructions),
                lines=line_counters(instructions, self.variant),
                basis=basis,
                blocks_executed=run.blocks,
                traffic_basis=TRAFFIC_BASIS if traffic else None,
                executed=tuple(one.executed for one in instructions),
                memory=line_accesses(instructions, run.requests, k=run.k, row_floats=pitches),
                listing=self.variant.label(self.parameters),
            ),
            check=check,
            predicted=time,
            instructions=instructions,
        )

    def _moves_apart(self, time: Predicted | str) -> float:
        """By how much of a life the blocks of an SM move apart in each wave, 0 where so little
        that L2 keeps what they share.
        """
        if isinstance(time, str) or self.residence is None:
            return 0.0
        per_sm, sms = self.residence.blocks_per_sm, self.residence.device.sm_count
        copies = self.translated.kernel.schedule.copies
        busiest_s = max(bound.time_s for bound in time.bounds if bound.name not in NOT_OF_THE_SM)
        found = drift(copies, per_sm, 1 - busiest_s * time.clock_hz / time.cycles)
        return found if found * self.geometry.blocks > LEAST_APART * sms * per_sm else 0.0

    # How long it takes.

    def _predicted(self, traffic: Traffic | None, counts: Counts) -> Predicted | str:
        """The time on the device of its residence, or why there is none."""
        if self.residence is None:
            return "how many of its blocks an SM can hold is not known"
        if traffic is None:
            return "its traffic below L1 is not known"
        launch = {
            "code": sha256(self.translated.kernel.image).hexdigest(),
            "symbol": self.translated.kernel.symbol,
            "shape": self.executed,
            "flop": self.problem.flop,
            "parameters": sorted(self.parameters.items()),
            "blocks per SM": self.residence.blocks_per_sm,
            "traffic": traffic.rounded,
            "replayed": self._replayed,
        }
        return predicted(launch, self.residence.device, lambda: self._work(traffic, counts))

    @cached_property
    def _replayed(self) -> tuple[list[int], list[int], int]:
        """Blocks whose streams stand for all, values of K at which they do, how many are unlike."""
        assert self.residence is not None
        sms, blocks = self.residence.device.sm_count, self.geometry.blocks
        step = period(self.variant.tiling(self.parameters))
        if not self.shares_tiles:
            points = timed_k(self.executed.k, step, self.geometry)
            return blocks_of_an_sm(blocks, sms, self._is_partial), points, 0
        idle = blocks - self._busy_blocks()  # in front of the others
        sharing = sum(kind.population for kind in self._kinds() if not kind.is_alone) - idle
        unlike = ceil_div(sharing, sms) if idle + sharing < blocks else 0
        # of the SM with the most to do: that of a worker that adds the sums of many
        of_sm = self.executed_by_block[idle:]
        busiest = np.argmax([of_sm[sm::sms].sum() for sm in range(min(sms, len(of_sm)))])
        places = range(idle + int(busiest), blocks, sms)
        points, tiles = [self.executed.k], self.variant.tile_grid(self.parameters, self.executed)
        if phases := self.variant.order_of(self.parameters).repeats_after(tiles):
            depth = self.variant.tiling(self.parameters).depth
            points = timed_k(self.executed.k, step, self.geometry, shares=depth * phases)
        return list(places[: unlike + 2 * self.residence.blocks_per_sm]), points, unlike

    def _is_partial(self, block: int) -> bool:
        """Whether a block's tile reaches beyond C, or may do so."""
        tiling = self.variant.tiling(self.parameters)
        if not (self.executed.m % tiling.block_m or self.executed.n % tiling.block_n):
            return False
        x, y, _ = self.geometry.grid
        return self.variant.order is None and (block % x == x - 1 or block // x % y == y - 1)

    def _busy_blocks(self) -> int:
        tiles = self.variant.tile_grid(self.parameters, self.executed)
        copies = self.variant.copies and self.variant.copies(self.parameters, self.executed)
        if copies and (copies.a, copies.b) != (None, None):
            return self.geometry.blocks
        return self.variant.order_of(self.parameters).busy_blocks(tiles)

    def _work(self, traffic: Traffic, counts: Counts) -> Work:
        assert self.residence is not None
        kernel = self.translated.kernel
        blocks, points, unlike = self._replayed
        busy, per_sm = self._busy_blocks(), self.residence.blocks_per_sm
        tiling = self.variant.tiling(self.parameters)
        are_apart = not self.shares_tiles and end_apart(
            self.geometry.threads_per_block, fetches_ahead=kernel.schedule.fetches_ahead
        )
        sms, read_back = self.residence.device.sm_count, self._read_back_bytes()
        of_sm = most_blocks(busy, sms, per_sm, are_apart=are_apart)
        replayed = max(blocks_to_run(of_sm, per_sm, unlike=unlike, along_k=len(points) > 1))
        return work_of(
            kernel,
            self.geometry,
            counts,
            instruction_counts(self.translated, counts),
            traffic,
            samples={k: self._streams(k, blocks[:replayed]) for k in points},
            k=self.executed.k,
            blocks=busy,
            blocks_per_sm=per_sm,
            flop=self.problem.flop,
            unlike=unlike,
            share_of_l2=self._share_of_l2(blocks[0]) if self.shares_tiles else 1.0,
            read_back_bytes=read_back,
            left_bytes=sums_bytes(tiling) if read_back else 0.0,
            are_apart=are_apart,
        )

    def _read_back_bytes(self) -> float:
        """Sums that blocks leave for those that end their tiles."""
        if not self.shares_tiles:
            return 0.0
        left = (self.variant.pieces(self.parameters, self.executed).ends < 1).sum()
        return float(left * sums_bytes(self.variant.tiling(self.parameters)))

    def _share_of_l2(self, first: int) -> float:
        """How much more of L2 the SM that starts with this block asks for than the average one."""
        assert self.residence is not None
        sms = self.residence.device.sm_count
        idle = self.geometry.blocks - self._busy_blocks()
        busy = min(sms, self.geometry.blocks - idle)
        own, average = self.read_by_block[first::sms].sum(), self.read_by_block[idle:].sum() / busy
        return float(max(1.0, own / average)) if average else 1.0

    def _streams(self, k: int, blocks: Sequence[int]) -> Streams:
        """What blocks execute at K = k, with the rows of A as far apart as they are at K itself."""
        shape = replace(self.executed, k=k)
        workload = self.ladder.at(k - (self.executed.k - self.problem.k))
        c = sparse_zeros((shape.m, shape.n), np.float32)
        bound = self._bound(workload, k, c, _Served() if self.shares_tiles else None)
        of_a = next(buffer for buffer in bound.buffers if buffer.name == "A")
        spread = Spread(
            address=of_a.address,
            size_bytes=FLOAT_BYTES * shape.a_elements,
            pitch=FLOAT_BYTES * k,
            kept_pitch=FLOAT_BYTES * self.executed.k,
        )
        streams = streams_of(replace(bound, spread=spread), blocks)
        if not self.shares_tiles:
            return streams
        workspace = next(buffer for buffer in bound.buffers if buffer.name == "workspace")
        flags, *_ = self._launch(shape).served(is_last=False)
        flags_bytes = FLOAT_BYTES * flags.count
        copies = self.variant.copies and self.variant.copies(self.parameters, shape)
        begins = (copies.a, copies.b) if copies else ()
        end = min((begin for begin in begins if begin is not None), default=workspace.bytes)
        streams = streams.with_mark(IN_L2, workspace.address + flags_bytes, end - flags_bytes)
        return streams.with_mark(FLAG, workspace.address + flags.offset, flags_bytes)


def _owned(workload: Workload, tiles: Sequence[Tile]) -> list[Tile]:
    """Of tiles what lies within C, those left out that do not."""
    n = workload.problem.n
    inside = [(rows, range(columns.start, min(columns.stop, n))) for rows, columns in tiles]
    return [tile for tile in inside if all(tile)]


def _agree_but_for_guards(counts: Sequence[Counts]) -> bool:
    """Whether blocks counted the same, whatever the guards of a few steps of divisions were."""
    if len(counts) == 1:
        return True
    without = [one.copy() for one in counts]
    for one in without:
        one["predicated"] = 0
    guards = [one["predicated"] for one in counts]
    differ = np.any([other != guards[0] for other in guards], axis=0)
    return (
        agree(without) and differ.sum() <= MOST_GUARDS and not counts[0]["requests"][differ].any()
    )


def places_of(variant: Variant, parameters: Parameters, executed: Gemm) -> list[Place]:
    """The places of a launch's grid, each with its blocks to execute.

    Where blocks take tiles in an order of their own, it is the place of the tile in C that makes
    them alike; those that are left over are one more place.
    """
    grid = variant.geometry(parameters, executed).grid
    if variant.order is None:
        return places(grid)
    tiles = variant.tile_grid(parameters, executed)
    blocks = variant.order(parameters).block_of_tile(tiles)
    of_tiles = [
        replace(found, members=tuple(int(blocks[tile]) for tile in found.members))
        for found in places((tiles.across, tiles.down, 1))
    ]
    left_over = np.setdiff1d(np.arange(prod(grid)), blocks).tolist()
    if not left_over:
        return of_tiles
    members = tuple(sorted({left_over[0], left_over[-1]}))
    return [*of_tiles, Place(population=len(left_over), members=members)]


def _values(runs: Sequence[_Run]) -> str:
    return text.listing([f"{run.k:,}" for run in runs])


# Along K.


def instructions_per_block(counts: AccessCounts, geometry: Geometry) -> float:
    """About how many thread instructions a block executes, by its closed forms."""
    accesses = sum(access.instructions for access in counts.accesses)
    multiply_adds = counts.multiply_adds or counts.problem.flop // 2
    return (multiply_adds + INSTRUCTIONS_PER_ACCESS * accesses) / geometry.blocks


def period(tiling: Tiling) -> int:
    """What values of K must differ by, so that whole steps, phases and turns of a ring are between.

    Waits for bulk copies depend on where in its ring a phase stands.
    """
    turn = tiling.stages if tiling.bulk else 1
    return lcm(STEPS_AND_SECTORS, tiling.depth * turn or 1)


def k_points(k: int, period: int) -> list[int]:
    """The values of K to execute instead of `k`, all of its remainder; none where `k` is small."""
    points = [steps * period + k % period for steps in POINTS]
    return points if points[-1] < k else []


def timed_k(k: int, step: int, geometry: Geometry, *, shares: int = 1) -> list[int]:
    """The values of K whose streams are replayed: `k` itself, or two that it lies on a line with.

    They are whole steps apart, and whole `shares` of tiles. Waiting settles within a few phases;
    blocks of many warps need more to average over.
    """
    apart = lcm(step, shares)
    settled = step * (TIMED_STEPS if geometry.warps_per_block < MANY_WARPS else 2 * TIMED_STEPS)
    first = apart * ceil_div(settled, apart)
    points = [first + k % apart, 2 * first + k % apart]
    return points if points[-1] * 1.5 < k else [k]


def affine(counts: Mapping[int, Counts], k: int) -> Counts | None:
    """The counts at `k` on the line through the first two points, in exact integers.

    None unless each other point lies on that line too, for every instruction and quantity, and
    no count at `k` is negative. `counts` maps at least three values of K to counts; all of them
    and `k` are whole steps apart, the first two one step.
    """
    first, second, *others = sorted(counts)
    assert others, "a line through two points proves nothing"
    names = counts[first].dtype.names or ()
    found = np.zeros_like(counts[first])
    for name in names:
        start = counts[first][name].astype(np.int64)
        slope = counts[second][name].astype(np.int64) - start

        def on_line(at: int, start: Any = start, slope: Any = slope) -> Any:
            steps, remainder = divmod(at - first, second - first)
            assert not remainder, f"K = {at} is not on the grid of {first} and {second}"
            return start + steps * slope

        if any((on_line(other) != counts[other][name]).any() for other in others):
            return None
        if (on_line(k) < 0).any():
            return None
        found[name] = on_line(k)
    return found


def summed(found: Sequence[Below], populations: Sequence[int]) -> Below | None:
    """What all blocks ask of L2, those of each place like its first; None where one is missing."""
    if len(found) != len(populations) or not found:
        return None
    of_places = [one.times(blocks) for one, blocks in zip(found, populations, strict=True)]
    return reduce(Below.__add__, of_places)


def add(total: Counts, counts: Counts, times: int) -> None:
    """Add `counts`, `times` over, to `total`."""
    for name in total.dtype.names or ():
        total[name] += counts[name] * np.uint64(times)


# A launch.


def bind_in_place(
    translated: Translated,
    launch: RungLaunch,
    a: Matrix,
    b: Matrix,
    c: Matrix,
    *,
    served: Sequence[Words] | None = None,
) -> Bound:
    """A launch of alpha = 1, beta = 0 on the matrices themselves, where `bind` would copy them.

    A and B may be read-only: a store to one of them is then a fault. Where blocks are `served`,
    none waits for another: these words in the workspace say that all others are done, and copies
    of A and B are there.
    """
    shape, size_bytes = launch.shape, launch.workspace_bytes
    arrays = {"A": a, "B": b, "C": c}
    if size_bytes is not None:
        arrays["workspace"] = sparse_zeros((max(size_bytes // FLOAT_BYTES, 1),), np.float32)
        if served is not None:
            _copy_rows(
                arrays, launch.variant.copies and launch.variant.copies(launch.parameters, shape)
            )
        for words in served or ():
            begin = words.offset // FLOAT_BYTES
            arrays["workspace"].view(np.uint32)[begin : begin + words.count] = words.value
    arguments = rung_arguments(
        launch.variant, launch.parameters, shape, (a, b, c), workspace=arrays.get("workspace")
    )
    bound, _ = bind(translated, launch.geometry, arguments, in_place=True)
    names = {
        f"argument {k}": next(name for name, known in arrays.items() if known is array)
        for k, array in buffers_of(arguments).items()
    }
    bound = replace(
        bound,
        buffers=[replace(one, name=names.get(one.name, one.name)) for one in bound.buffers],
        most_resident=most_resident(None, translated.kernel, bound),
    )
    return bound if served is None else replace(bound, blocks_meet=False, in_order=False)


def _copy_rows(arrays: Mapping[str, NDArray[Any]], copies: Copies | None) -> None:
    """Do what leading blocks do: rows of A and B to rows of whole quads in the workspace."""
    for name, begin in (("A", copies.a), ("B", copies.b)) if copies else ():
        if begin is None:
            continue
        rows, columns = arrays[name].shape
        pitch = row_floats(columns)
        first = begin // FLOAT_BYTES
        copy = arrays["workspace"][first : first + rows * pitch]
        copy.reshape(rows, pitch)[:, :columns] = arrays[name]


def _poisoned(shape: Gemm, tiles: Sequence[Tile]) -> Matrix:
    """C with NaN where it will be looked at; the rest is never touched, and takes no memory."""
    c = sparse_zeros((shape.m, shape.n), np.float32)
    for rows, columns in tiles:
        c[rows.start : rows.stop, columns.start : columns.stop] = np.nan
    return c


def _has_room(shape: Gemm, others_bytes: int = 0) -> bool:
    """Whether memory is free for A and B, and for what others are about to take."""
    available = available_bytes()
    return available is None or _input_bytes(shape) + others_bytes <= available


def _input_bytes(shape: Gemm) -> int:
    return FLOAT_BYTES * (shape.a_elements + shape.b_elements)


def _check_room(shape: Gemm, others_bytes: int) -> None:
    if not _has_room(shape, others_bytes):
        raise ShapeError(
            f"A and B take {_input_bytes(shape) / 1e9:.1f} GB at {shape}, which are not free: "
            "take a smaller shape"
        )


def merged(verdicts: Sequence[Check], where: str) -> Check:
    """One verdict of several: the worst of them, on all that they looked at."""

    def badness(check: Check) -> float:
        return np.inf if check.worst_ratio is None else check.worst_ratio

    worst = max(verdicts, key=badness)
    errors = [check.max_absolute_error for check in verdicts]
    return replace(
        worst,
        passed=all(check.passed for check in verdicts),
        max_absolute_error=None if None in errors else max(e for e in errors if e is not None),
        bound=f"{worst.bound}; {where}",
    )


def listing(
    instructions: Sequence[InstructionCounts], variant: Variant, parameters: Parameters
) -> Listing:
    """The rung's source beside its machine code."""
    return Listing(
        label=variant.label(parameters),
        file=variant.file,
        source=variant.source,
        sass=tuple(one.text for one in instructions),
        lines=tuple(_own_line(one, variant) for one in instructions),
    )


def _own_line(instruction: InstructionCounts, variant: Variant) -> int:
    """The line of the rung's own file that an instruction is of, 0 where it is of none."""
    is_own = PurePath(instruction.file or "").name in (variant.file, PYCUDA_FILE)
    return instruction.line or 0 if is_own else 0


def line_counters(
    instructions: Sequence[InstructionCounts], variant: Variant
) -> tuple[LineCounters, ...]:
    """The counters of each source line, with the line itself; those that did nothing left out."""
    source = variant.source.splitlines()
    found = []
    for (path, line), counters in by_line(instructions).items():
        counted = {name: count for name, count in counters.items() if count}
        file, shown = PurePath(path).name, ""
        if file in (variant.file, PYCUDA_FILE) and 0 < line <= len(source):
            file, shown = variant.file, source[line - 1].strip()
        if counted:
            found.append(LineCounters(file=file, line=line, text=shown, counters=counted))
    return tuple(found)
