"""One rung at one shape on the simulator: the counters of the whole launch from a few blocks.

Two symmetries keep big problems short, and neither is assumed:

- Blocks of one place in the grid (corner, edge, interior) do the same work. Several of each are
  executed; where their counts differ in a single instruction, every block is executed instead.
- Per-instruction counts are affine in K among values of K that leave the same remainder in
  everything that matters: the unrolled step, the tile's depth, the alignment of rows. Where K is
  large, the blocks are executed at four small values of it, two for the line and two more that
  must lie on it; where one does not, they are executed at K itself.

The elements that executed blocks wrote are held against float64 like a GPU's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.access import AccessCounts
from analysis.agreement import machine_accesses
from analysis.counters import InstructionCounts, by_line, totals
from analysis.errors import LaunchError, ShapeError
from analysis.geometry import Geometry
from analysis.problem import FLOAT_BYTES, Gemm
from analysis.result import Check, LineCounters, Simulated
from kernels.registry import Parameters, Selection, Variant
from toolkit.compile import Cubin
from toolkit.executor import Argument
from toolkit.host import available_bytes
from toolkit.sass.faults import describe
from toolkit.sass.machine import Bound, FaultError, run_blocks
from toolkit.sass.representatives import Place, agree, places
from toolkit.sass.space import place
from toolkit.sass.statistics import instruction_counts
from toolkit.sass.translate import Translated, bind, translate
from toolkit.workload import Matrix, TileReference, Workload

Counts = NDArray[Any]

# Thread instructions of the executed blocks, above which K is made smaller: about a second of
# two cores. Below it the check is of the very product that was asked for.
FULL_K_BUDGET = 3 * 10**9
# Of all blocks: what is executed where blocks of one place differ. Ten minutes of two cores.
ALL_BLOCKS_BUDGET = 2 * 10**12
INSTRUCTIONS_PER_ACCESS = 2  # the access, and what computes its address or its guard

ALIGNMENT = 8  # floats of a sector: K modulo 8 decides where a row of A begins in one
STEP = 8  # the naive rungs' unrolled loops
UNROLLED_PHASES = 4  # how many phases a compiler may make of one loop iteration
POINTS = (2, 3, 4, 6)  # values of K in periods, above its remainder: a line, and two more on it


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """What executing a rung on the simulator gave."""

    simulated: Simulated
    check: Check


@dataclass(frozen=True, kw_only=True)
class _Executed:
    """The counts of each place's blocks at one K, and the verdict on what they wrote."""

    places: Sequence[tuple[Place, Sequence[Counts]]]
    check: Check

    @property
    def alike(self) -> bool:
        return all(agree(counts) for _, counts in self.places)

    @property
    def blocks(self) -> int:
        return sum(len(counts) for _, counts in self.places)


class LadderSimulator:
    """Executes rungs at one shape; inputs and references are shared between them."""

    advance: Callable[[int, int], None]  # hears how many blocks of a rung are done, of how many

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.advance = lambda done, of: None
        self._matrices: dict[Gemm, tuple[Matrix, Matrix]] = {}
        self._references: dict[tuple[int, range, range], TileReference] = {}

    def simulate(self, cubin: Cubin, selection: Selection) -> Simulation:
        """The counters and the verdict of one rung.

        Raises UnsupportedError for machine code that the simulator does not know, LaunchError
        where the kernel faults, ShapeError where there is not enough memory or time.
        """
        variant = selection.variant
        assert isinstance(variant, Variant)
        return _Rung(self, cubin, variant, selection.parameters).simulate()

    def at(self, k: int) -> Workload:
        """The workload with another K, the same but for it."""
        if k == self.workload.problem.k:
            return self.workload
        return Workload(replace(self.workload.problem, k=k), self.workload.seed)

    def matrices(self, workload: Workload, executed: Gemm) -> tuple[Matrix, Matrix]:
        """A and B, read-only, padded up to the executed shape; the last shapes are kept."""
        if executed not in self._matrices:
            _check_room(executed)
            a, b = (matrix.view() for matrix in workload.padded(executed))
            a.flags.writeable = b.flags.writeable = False
            self._matrices[executed] = a, b
        return self._matrices[executed]

    def reference(self, workload: Workload, rows: range, columns: range) -> TileReference:
        key = workload.problem.k, rows, columns
        if key not in self._references:
            self._references[key] = workload.tile_reference(rows, columns)
        return self._references[key]


class _Rung:
    """One rung with its parameters, its machine code and its grid."""

    def __init__(
        self, ladder: LadderSimulator, cubin: Cubin, variant: Variant, parameters: Parameters
    ) -> None:
        self.ladder, self.variant, self.parameters = ladder, variant, parameters
        self.problem = ladder.workload.problem
        self.executed = variant.executed(self.problem)
        self.geometry = variant.geometry(parameters, self.executed)
        self.translated = translate(cubin)
        self.counts = variant.access_counts(parameters, self.executed)

    def simulate(self) -> Simulation:
        chosen = places(self.geometry.grid)
        members = sum(len(place.members) for place in chosen)
        note = ""
        if members * instructions_per_block(self.counts, self.geometry) > FULL_K_BUDGET:
            points = k_points(self.executed.k, period(self.counts))
            if points:
                found = self._along_k(chosen, points)
                if found is not None:
                    return found
                note = "; counts are not affine in K, so it was not shortened"
        return self._at_full_k(chosen, note)

    def _along_k(self, chosen: Sequence[Place], points: Sequence[int]) -> Simulation | None:
        """From small values of K, None where blocks differ or counts leave the line."""
        runs = {k: self._execute(k, chosen) for k in points}
        wrong = next((run for run in runs.values() if not run.check.passed), None)
        last = runs[points[-1]]
        total = np.zeros_like(last.places[0][1][0])
        for index, (place_, _) in enumerate(last.places):
            along = {k: run.places[index][1][0] for k, run in runs.items()}
            fitted = affine(along, self.executed.k)
            if fitted is None or not all(run.alike for run in runs.values()):
                return None
            add(total, fitted, place_.population)
        *first, final = (f"{k:,}" for k in points)
        basis = (
            f"{self._of_blocks(last.blocks)} executed at K = {', '.join(first)} and {final} "
            f"instead of {self.executed.k:,}: every instruction's counts are affine in K, "
            "fitted on two of these and verified on the others"
        )
        check = (wrong or last).check
        return self._simulation(total, basis + _rest(last.blocks, self.geometry), last, check)

    def _at_full_k(self, chosen: Sequence[Place], note: str) -> Simulation:
        run = self._execute(self.executed.k, chosen)
        reason = ""
        if not run.alike:
            run = self._all_blocks(run)
            reason = ": blocks of one place in the grid (corner, edge, interior) differ"
        total = np.zeros_like(run.places[0][1][0])
        for place_, counts in run.places:
            for count in counts:
                add(total, count, 1)
            add(total, counts[0], place_.population - len(counts))
        rest = _rest(run.blocks, self.geometry) if not reason else ""
        basis = f"{self._of_blocks(run.blocks)} executed{reason}{rest}{note}"
        return self._simulation(total, basis, run, run.check)

    def _all_blocks(self, some: _Executed) -> _Executed:
        blocks = self.geometry.blocks
        needed = instructions_per_block(self.counts, self.geometry) * blocks
        if needed > ALL_BLOCKS_BUDGET:
            raise ShapeError(
                f"blocks of one place in the grid differ, and all {blocks:,} would take about "
                f"{needed:.1e} thread instructions: take a smaller shape"
            )
        everything = [Place(population=1, members=(block,)) for block in range(blocks)]
        return self._execute(self.executed.k, everything)

    def _execute(self, k: int, chosen: Sequence[Place]) -> _Executed:
        """Run the members of the places at K = k and check what they wrote."""
        padding = self.executed.k - self.problem.k
        workload = self.ladder.at(k - padding)
        shape = replace(self.executed, k=k)
        a, b = self.ladder.matrices(workload, shape)
        blocks = [block for place_ in chosen for block in place_.members]
        tiles = [self.variant.tile_of_c(self.parameters, shape, block) for block in blocks]
        c = _poisoned(shape, tiles)
        bound = bind_in_place(self.translated, self.geometry, a, b, c, shape)
        counts = iter(self._run(bound, blocks))
        return _Executed(
            places=[(place_, [next(counts) for _ in place_.members]) for place_ in chosen],
            check=self._check(workload, c, tiles, k),
        )

    def _run(self, bound: Bound, blocks: Sequence[int]) -> list[Counts]:
        done = 0

        def advance(finished: int) -> None:
            nonlocal done
            done += finished
            self.ladder.advance(done, len(blocks))

        try:
            runs = run_blocks(bound, [range(b, b + 1) for b in blocks], advance=advance)
        except FaultError as error:
            raise LaunchError(describe(error.fault, self.translated, bound)) from None
        return [run.counts for run in runs]

    def _check(
        self, workload: Workload, c: Matrix, tiles: Sequence[tuple[range, range]], k: int
    ) -> Check:
        """The verdict on the elements of C that the executed blocks own."""
        problem = workload.problem
        verdicts = []
        for rows, columns in dict.fromkeys(tiles):
            inside = range(columns.start, min(columns.stop, problem.n))
            if rows and inside:
                reference = self.ladder.reference(workload, rows, inside)
                verdicts.append(reference.check(c))
        assert verdicts, "no executed block owns an element of C"
        return merged(verdicts, self._checked(len(tiles), k))

    def _checked(self, blocks: int, k: int) -> str:
        shorter = f" at K = {k:,}" if k != self.executed.k else ""
        return f"on the elements of {self._of_blocks(blocks)}{shorter}, executed on the CPU"

    def _of_blocks(self, executed: int) -> str:
        everything = self.geometry.blocks
        if everything == 1:
            return "the one block"
        if executed == everything:
            return f"all {everything:,} blocks"
        return f"{executed:,} of {everything:,} blocks"

    def _simulation(self, counts: Counts, basis: str, run: _Executed, check: Check) -> Simulation:
        instructions = instruction_counts(self.translated, counts)
        cubin = self.translated.cubin
        return Simulation(
            simulated=Simulated(
                architecture=cubin.architecture,
                compiler=cubin.compiler,
                counters=totals(instructions),
                accesses=machine_accesses(instructions),
                lines=line_counters(instructions, self.variant),
                basis=basis,
                blocks_executed=run.blocks,
            ),
            check=check,
        )


def _rest(executed: int, geometry: Geometry) -> str:
    if executed == geometry.blocks:
        return ""
    return (
        "; the other blocks count like those of their place in the grid (corner, edge, interior), "
        "which agreed instruction by instruction"
    )


# Along K.


def instructions_per_block(counts: AccessCounts, geometry: Geometry) -> float:
    """About how many thread instructions a block executes, by its closed forms."""
    accesses = sum(access.instructions for access in counts.accesses)
    multiply_adds = counts.multiply_adds or counts.problem.flop // 2
    return (multiply_adds + INSTRUCTIONS_PER_ACCESS * accesses) / geometry.blocks


def period(counts: AccessCounts) -> int:
    """What values of K must differ by, so that whole steps and phases lie between them."""
    depth = counts.tiling.depth if counts.tiling else 0
    return lcm(ALIGNMENT, STEP, depth or 1) * UNROLLED_PHASES


def k_points(k: int, period: int) -> list[int]:
    """The values of K to execute instead of `k`, all of its remainder; none where `k` is small."""
    points = [steps * period + k % period for steps in POINTS]
    return points if points[-1] < k else []


def affine(counts: Mapping[int, Counts], k: int) -> Counts | None:
    """The counts at `k` on the line through the first two points, in exact integers.

    None unless each other point lies on that line too, for every instruction and quantity, and
    no count at `k` is negative. `counts` maps at least three values of K, the first two of them
    one step apart, to counts; `k` and the others are whole steps away.
    """
    first, second, *others = sorted(counts)
    assert others, "a line through two points proves nothing"
    step = second - first
    names = counts[first].dtype.names or ()

    def on_line(at: int) -> Counts:
        steps, remainder = divmod(at - first, step)
        assert not remainder, f"K = {at} is no whole step of {step} from {first}"
        found = np.zeros_like(counts[first])
        for name in names:
            start = counts[first][name].astype(np.int64)
            slope = counts[second][name].astype(np.int64) - start
            values = start + steps * slope
            if (values < 0).any():
                return np.zeros(0, dtype=found.dtype)
            found[name] = values.astype(np.uint64)
        return found

    if not all(np.array_equal(on_line(other), counts[other]) for other in others):
        return None
    found = on_line(k)
    return found if found.size else None


def add(total: Counts, counts: Counts, times: int) -> None:
    """Add `counts`, `times` over, to `total`."""
    for name in total.dtype.names or ():
        total[name] += counts[name] * np.uint64(times)


# A launch.


def bind_in_place(
    translated: Translated, geometry: Geometry, a: Matrix, b: Matrix, c: Matrix, shape: Gemm
) -> Bound:
    """A launch of alpha = 1, beta = 0 on the matrices themselves, where `bind` would copy them.

    A and B may be read-only: a store to one of them is then a fault.
    """
    scalars: list[Argument] = [np.int32(shape.m), np.int32(shape.n), np.int32(shape.k)]
    scalars += [np.float32(1), np.float32(0)]
    stand_ins: list[Argument] = [np.zeros(1, np.float32)] * 3
    bound, _ = bind(translated, geometry, [*stand_ins, *scalars])
    buffers = place(
        [
            (name, matrix.reshape(-1).view(np.uint8), matrix.flags.writeable)
            for name, matrix in (("A", a), ("B", b), ("C", c))
        ]
    )
    program, bank = translated.program, bound.banks[0].copy()
    for parameter, buffer in zip(program.parameters, buffers, strict=False):
        at = program.parameter_base + parameter.offset
        bank[at : at + 8] = np.array([buffer.address], dtype="<u8").view(np.uint8)
    return replace(bound, banks={**bound.banks, 0: bank}, buffers=buffers)


def _poisoned(shape: Gemm, tiles: Sequence[tuple[range, range]]) -> Matrix:
    """C with NaN where it will be looked at; the rest is never touched, and takes no memory."""
    c = np.zeros((shape.m, shape.n), dtype=np.float32)
    for rows, columns in tiles:
        c[rows.start : rows.stop, columns.start : columns.stop] = np.nan
    return c


def _check_room(shape: Gemm) -> None:
    needed, available = FLOAT_BYTES * (shape.a_elements + shape.b_elements), available_bytes()
    if available is not None and needed > available:
        raise ShapeError(
            f"A and B take {needed / 1e9:.1f} GB at {shape}, {available / 1e9:.1f} GB are free: "
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


def line_counters(
    instructions: Sequence[InstructionCounts], variant: Variant
) -> tuple[LineCounters, ...]:
    """The counters of each source line, with the line itself; those that did nothing left out."""
    lines = variant.source.splitlines()
    found = []
    for (file, line), counters in by_line(instructions).items():
        name = PurePath(file).name
        is_own = name == variant.file and 0 < line <= len(lines)
        counted = {name: count for name, count in counters.items() if count}
        if counted:
            text = lines[line - 1].strip() if is_own else ""
            found.append(LineCounters(file=name, line=line, text=text, counters=counted))
    return tuple(found)
