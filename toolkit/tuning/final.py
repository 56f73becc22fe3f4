"""The final: the leaders of a sweep, checked in full and raced against cuBLAS in the same rounds.

A sweep times one configuration after the other, with few samples; a GPU that warms up meanwhile
favours the first ones. The final samples all of them in rounds, so that drift affects all equally,
until every median is known well enough to decide which configurations tie with the fastest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from analysis.problem import Gemm
from analysis.records.profile import Record
from analysis.records.tuning import Candidate, TunedShape, tied
from kernels.ladder import CUBLAS
from kernels.selection import Selection
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress
from toolkit.profiling.on_gpu import GpuBench
from toolkit.profiling.plan import RunPlan
from toolkit.profiling.record import Records


def race(
    bench: GpuBench,
    shape: TunedShape,
    finalists: Mapping[str, Selection],
    *,
    sampling: Sampling,
    seed: int,
    progress: Progress,
) -> TunedShape:
    """Shape with its finalists checked and timed; a finalist with a wrong result has failed.

    Results are checked at this shape and at neighbouring ones. Raises KeyboardInterrupt if Ctrl-C
    ends the rounds.
    """
    selections, problem = tuple(finalists.values()), shape.shape
    shapes = neighbours(problem)
    progress.stage(f"{problem}: final", (1 + len(shapes)) * (1 + len(finalists)) + 2)
    beside = _beside(bench, selections, shapes, seed, progress)
    right = tuple(one for one in selections if one.label not in beside)
    records: Records = {}
    plan = plan_of(problem, (*right, Selection(variant=CUBLAS)), sampling, seed)
    bench.profile_shape(problem, plan, records, progress)
    found = {record.label: record for record in records.values()} | beside
    cublas = found.pop(CUBLAS.name)
    candidates = [
        _outcome(one, found[one.label]) if one.label in found else one for one in shape.candidates
    ]
    winners = tied({x.label: x.measured for x in candidates if x.label in found and x.measured})
    return replace(
        shape,
        candidates=tuple(replace(one, is_tied=one.label in winners) for one in candidates),
        cublas=cublas.measured,
        also_checked=shapes,
        notes=(f"no cuBLAS beside it: {cublas.reason}",) if cublas.reason else (),
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
        bench.check_shape(shape, plan_of(shape, selections, Sampling(), seed), records, progress)
    return {
        record.label: replace(record, reason=f"at {record.shape}: {record.reason}")
        for record in records.values()
        if record.status != "ok"
    }


def plan_of(
    shape: Gemm, selections: tuple[Selection, ...], sampling: Sampling, seed: int
) -> RunPlan:
    """The plan of rungs that are named, with L2 flushed as in every sweep."""
    return RunPlan(
        shapes=(shape,),
        selections=selections,
        explicit=True,
        sampling=sampling,
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
