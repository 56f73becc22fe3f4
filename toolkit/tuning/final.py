"""The final: the leaders of a sweep, checked in full and raced against cuBLAS in the same rounds.

A sweep times one configuration after the other, with few samples; a GPU that warms up meanwhile
favours those that came first. Here everything is sampled in rounds, so that what drifts hits all
alike, until every median is known well enough to say who is tied with the fastest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.problem import Gemm
from analysis.records.profile import Record
from analysis.records.tuning import Candidate, tied
from kernels.ladder import CUBLAS
from kernels.selection import Selection
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress
from toolkit.profiling.on_gpu import GpuBench
from toolkit.profiling.plan import Plan
from toolkit.profiling.record import Records


@dataclass(frozen=True, kw_only=True)
class Final:
    """The finalists with their outcomes, and cuBLAS's record from the same rounds."""

    candidates: tuple[Candidate, ...]
    cublas: Record
    also_checked: tuple[Gemm, ...]


def race(
    bench: GpuBench,
    finalists: Sequence[tuple[Candidate, Selection]],
    problem: Gemm,
    *,
    sampling: Sampling,
    seed: int,
    progress: Progress,
) -> Final:
    """Check and time the finalists; those that are wrong, here or beside, have failed.

    Raises KeyboardInterrupt where Ctrl-C ends the rounds.
    """
    selections = tuple(selection for _, selection in finalists)
    shapes = neighbours(problem)
    progress.stage(f"{problem}: final", (1 + len(shapes)) * (1 + len(finalists)) + 2)
    beside = _beside(bench, selections, shapes, seed, progress)
    right = tuple(one for one in selections if one.label not in beside)
    records: Records = {}
    plan = plan_of((problem,), (*right, Selection(variant=CUBLAS)), sampling, seed)
    bench.profile_shape(problem, plan, records, progress)
    found = {record.label: record for record in records.values()} | beside
    outcomes = [_outcome(candidate, found[candidate.label]) for candidate, _ in finalists]
    return Final(
        candidates=tuple(_with_ties(outcomes)),
        cublas=found[CUBLAS.name],
        also_checked=shapes,
    )


def neighbours(problem: Gemm) -> tuple[Gemm, ...]:
    """Shapes beside one that leave ragged tiles at every edge, whatever the tile."""
    more = Gemm(m=problem.m + 1, n=problem.n + 1, k=problem.k + 1)
    if min(problem.m, problem.n, problem.k) == 1:
        return (more,)
    return Gemm(m=problem.m - 1, n=problem.n - 1, k=problem.k - 1), more


def _beside(
    bench: GpuBench,
    selections: tuple[Selection, ...],
    shapes: Sequence[Gemm],
    seed: int,
    progress: Progress,
) -> dict[str, Record]:
    """The records that are not right at one of the shapes, by their labels."""
    records: Records = {}
    for shape in shapes:
        bench.check_shape(shape, plan_of((shape,), selections, Sampling(), seed), records, progress)
    return {
        record.label: replace(record, reason=f"at {record.shape}: {record.reason}")
        for record in records.values()
        if record.status != "ok"
    }


def plan_of(
    shapes: tuple[Gemm, ...], selections: tuple[Selection, ...], sampling: Sampling, seed: int
) -> Plan:
    """The plan of rungs that are named, with L2 flushed as in every sweep."""
    return Plan(
        shapes=shapes,
        selections=selections,
        explicit=True,
        sampling=sampling,
        warm_l2=False,
        seed=seed,
    )


def _outcome(candidate: Candidate, record: Record) -> Candidate:
    """The candidate with its times, or why it has none."""
    if record.status != "ok":
        return without_time(candidate, record)
    return replace(
        candidate,
        check=record.check,
        measured=record.measured,
        resources=record.resources,
        occupancy=record.occupancy,
    )


def without_time(candidate: Candidate, record: Record) -> Candidate:
    """The candidate with why it has no time: its own fault, or another's."""
    return replace(
        candidate,
        status="failed" if record.status == "failed" else "left out",
        reason=record.reason,
        check=record.check,
    )


def _with_ties(candidates: Sequence[Candidate]) -> list[Candidate]:
    winners = tied({one.label: one.measured for one in candidates if one.measured})
    return [replace(one, is_tied=one.label in winners) for one in candidates]
