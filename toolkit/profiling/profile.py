"""The one workflow: plan, compile, execute, check, time, analyse -> Profile.

On a GPU every selected rung is compiled by PyCUDA, checked against float64 at every shape and
timed together with cuBLAS. Without one the same rungs are compiled by NVRTC for the chosen device
and their machine code is executed on the CPU, checked too and counted, and the CPU reference is
measured. If so wished, records carry theory alone, and nothing is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Literal, get_args

from analysis.argument_types import checked
from analysis.comparison.accuracy import DEFAULT_DEVICE
from analysis.comparison.scorecard import scored
from analysis.devices import Device, find_device
from analysis.errors import InputError, ToolkitError, UnavailableError
from analysis.l2_state import DEFAULT_L2, l2_state
from analysis.problem import Gemm
from analysis.records.profile import (
    SCHEMA_VERSION,
    Conditions,
    Environment,
    Listing,
    Profile,
    Record,
)
from toolkit.gpu.context import Gpu, gpu_here
from toolkit.gpu.environment import environment
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress
from toolkit.profiling.plan import RunPlan, make_plan
from toolkit.profiling.record import skipped
from toolkit.profiling.resume import (
    SOURCES,
    Records,
    check_unchanged,
    digest,
    finished,
    is_result,
    stands,
)
from toolkit.store.journal import Journal
from toolkit.store.presented import ShownProfile

if TYPE_CHECKING:
    from toolkit.profiling.in_theory import TheoryBench
    from toolkit.profiling.on_gpu import GpuBench

    Bench = GpuBench | TheoryBench

Choice = Literal["auto", "gpu", "simulate", "theory"]
Status = Literal["complete", "interrupted"]


@checked
def profile(
    shapes: Sequence[str | int | Gemm] = ("4096",),
    variants: Sequence[str] | None = None,
    *,
    device: str | None = None,
    constants: str | Path | None = None,
    clock: float | None = None,
    executor: Choice = "auto",
    sampling: Sampling | None = None,
    l2: str = DEFAULT_L2,
    seed: int | None = None,
    counters: bool = False,
    accuracy: bool = False,
    progress: Progress | None = None,
    resume: Profile | None = None,
    journal: str | Path | None = None,
) -> ShownProfile:
    """Profile rungs of the ladder at every shape: measured on a GPU, else simulated and predicted.

    Parameters
    ----------
    shapes
        "4096", "MxNxK" or `Gemm`.
    variants
        Names such as "tiled" or "tiled:tile=16"; by default the whole ladder and its references.
    device
        Key of a device. Where no GPU is used it is `analysis.comparison.accuracy.DEFAULT_DEVICE` by
        default.
    constants
        A file that `python -m toolkit.microbenchmarks` wrote on a GPU of that architecture: what it
        measured takes the place of constants of predicted times.
    clock
        SM clock in MHz of predicted times, in place of the one that the device holds under load.
    executor
        "auto" uses the GPU where there is one and `device` does not name another, else the
        simulator; "theory" executes nothing.
    sampling
        How samples are taken on a GPU.
    l2
        What each launch finds in L2, measured or predicted: "clean", "dirty" or "warm", as for
        `simulate`.
    seed
        Makes the random inputs repeatable; the profile holds it.
    counters
        If true, hardware counters are collected on the GPU through Nsight Compute.
    accuracy
        If true, the error of each variant is taken on all classes of inputs
        (`analysis.product_errors.DATA_CLASSES`): on a GPU at the shape itself, on the simulator at
        one of at most 128 rows, 128 columns and a K of 512.
    resume
        An interrupted profile to go on from.
    journal
        A file that each record is appended to as soon as it is done, so that nothing is lost where
        the process is killed (`toolkit.store.journal`); the caller removes it once the profile is
        saved.

    Returns
    -------
    ShownProfile
        A variant that fails to compile, launch or compute is a failed record. On Ctrl-C what was
        done is returned with status "interrupted"; with nothing done, KeyboardInterrupt is raised.

    Raises
    ------
    InputError
        Before anything runs; also where device, versions, sources or parameters differ from those
        of `resume`.
    UnavailableError
        For a GPU or a tool that is not there.

    Examples
    --------
    >>> from toolkit import profile
    >>> found = profile(["512"], ["tiled", "coarsened-2d"], device="t4", executor="theory")
    >>> [record.label for record in found.records]
    ['tiled', 'coarsened-2d']
    """
    if resume is not None and seed is None:
        seed = resume.seed
    plan = make_plan(
        shapes,
        variants,
        sampling=sampling or Sampling(),
        seed=seed,
        l2=l2_state(l2),
        constants=constants,
        clock_mhz=clock,
    )
    asked = find_device(device) if device is not None else None
    progress = progress or Progress()
    for given, what, it in ((constants, "constants are", "them"), (clock, "a clock is", "it")):
        if given is not None and executor == "theory":
            raise InputError(
                f"{what} for predicted times, and executor theory predicts none: leave {it} out"
            )
    gpu, why_none = _gpu_to_use(asked, executor)
    if gpu is None:
        if counters:
            run = f"this run is {why_none}" if why_none else f"executor {executor} takes none"
            raise UnavailableError(
                f"--counters needs a GPU, and {run}: leave it out, simulated counters are there "
                "without it"
            )
        kind = _bench_without_gpu(executor, why_none, progress)
        chosen = plan.predicting(asked or DEFAULT_DEVICE)
        bench = kind(chosen, l2=plan.l2, measures_errors=accuracy)
        return _Run(plan, bench, resume, journal).profiled(progress)
    from toolkit.gpu.nsight_compute.collect import Counting
    from toolkit.profiling.on_gpu import GpuBench

    counting_if_asked = Counting(progress) if counters else nullcontext()
    with (
        gpu,
        counting_if_asked as counting,
        GpuBench(
            gpu,
            counting,
            device=plan.predicting(gpu.device),
            l2=plan.l2,
            measures_errors=accuracy,
        ) as on_gpu,
    ):
        return _Run(plan, on_gpu, resume, journal).profiled(progress)


def _gpu_to_use(asked: Device | None, executor: Choice) -> tuple[Gpu | None, str]:
    """The GPU to measure on, or None and why; raises where one is demanded in vain."""
    if executor not in get_args(Choice):
        raise InputError(f"unknown executor {executor!r}: choose auto, gpu, simulate or theory")
    if executor in ("simulate", "theory"):
        return None, ""
    try:
        return gpu_here(asked), ""
    except ToolkitError as error:
        if executor == "gpu":
            raise
        return None, f"simulated, no GPU is used: {error}"


def _bench_without_gpu(executor: Choice, why_none: str, progress: Progress) -> type[TheoryBench]:
    """The simulator; only theory where that is asked for, or where auto cannot simulate here."""
    from toolkit.profiling.in_theory import TheoryBench

    if executor == "theory":
        return TheoryBench

    from toolkit.execution.simulate import check_simulator
    from toolkit.profiling.on_simulator import SimulatorBench

    try:
        check_simulator()
    except UnavailableError as error:
        if executor == "simulate":
            raise
        progress.notice(f"theory only, nothing is simulated: {error}")
        return TheoryBench
    if why_none:
        progress.notice(why_none)
    return SimulatorBench


class _Run:
    """A run of a plan on a bench: the records that are done so far, and their journal."""

    def __init__(
        self, plan: RunPlan, bench: Bench, resume: Profile | None, journal: str | Path | None
    ) -> None:
        plan.check_fits(bench.device)
        self._plan, self._bench = plan, bench
        self._empty = ShownProfile(
            schema_version=SCHEMA_VERSION,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            command=_command(plan, bench),
            status="interrupted",
            executor=bench.executor,
            seed=plan.seed,
            device=bench.device,
            environment=_environment(plan, bench),
            records=(),
        )
        self._journal = Journal(journal, self._empty) if journal is not None else None
        self._waiting: list[Record] = []  # for the journal, which begins with the first result
        self._records = Records(self._keep)
        self._earlier_listings: dict[str, Listing] = {}
        self._earlier_conditions: dict[Gemm, Conditions] = {}
        if resume is not None:
            check_unchanged(resume, self._empty, "the profile")
            self._earlier_listings = {one.label: one for one in resume.listings}
            self._earlier_conditions = {one.shape: one for one in resume.conditions}
            self._records.update(finished(resume, plan))
            self._waiting.extend(self._records.values())

    def profiled(self, progress: Progress) -> ShownProfile:
        """Profile each shape. On Ctrl-C the profile has what was done before."""
        plan = self._plan
        try:
            for problem in plan.shapes:
                selections = (x for x in plan.selections if (problem, x.label) not in self._records)
                left = replace(plan, selections=tuple(selections))
                progress.stage(str(problem), self._bench.steps(left))
                if left.selections:
                    self._bench.profile_shape(problem, left, self._records, progress)
        except KeyboardInterrupt:
            if not self._records:
                raise
            return self._profile("interrupted")
        return self._profile("complete")

    def _profile(self, status: Status) -> ShownProfile:
        """The profile with the records that are done."""
        places = [
            (problem, x.label) for problem in self._plan.shapes for x in self._plan.selections
        ]
        records = [
            scored(_finished(self._records[place], self._bench, status))
            for place in places
            if place in self._records
        ]
        return replace(
            self._empty,
            status=status,
            environment=_environment(
                self._plan, self._bench
            ),  # what is told while it runs included
            records=tuple(records),
            listings=_in_order(self._listings.values(), records),
            conditions=tuple(self._conditions.values()),
        )

    def _keep(self, record: Record) -> None:
        """Add a record to the journal, with those that wait for the first result."""
        if self._journal is None or not stands(record, self._bench.executor):
            return
        self._waiting.append(record)
        if any(map(is_result, self._records.values())):
            self._journal.add(self._waiting, self._listings, self._conditions)
            self._waiting.clear()

    @property
    def _listings(self) -> dict[str, Listing]:
        return self._earlier_listings | self._bench.listings

    @property
    def _conditions(self) -> dict[Gemm, Conditions]:
        return self._earlier_conditions | self._bench.conditions


def _in_order(listings: Iterable[Listing], records: Iterable[Record]) -> tuple[Listing, ...]:
    """The listings as the records name them, whichever was made first."""
    named = [record.simulated.listing for record in records if record.simulated]
    places = {label: n for n, label in reversed(list(enumerate(named)))}
    return tuple(sorted(listings, key=lambda one: places.get(one.label, len(named))))


def _finished(record: Record, bench: Bench, status: Status) -> Record:
    """Final record of a run; it says so if it was to be measured and was not."""
    is_untimed = bench.executor == "gpu" and record.status == "ok" and record.measured is None
    if status == "interrupted" and is_untimed:
        return skipped(record, "interrupted before it was timed")
    return record


def _environment(plan: RunPlan, bench: Bench) -> Environment:
    found = environment(bench.monitor)
    chosen = [x for shape in plan.shapes for x in plan.at(shape, bench.device).selections]
    sources = {SOURCES: digest(chosen)}
    return replace(found, software=found.software | bench.software() | sources)


def _command(plan: RunPlan, bench: Bench) -> str:
    """The command line that repeats this run."""
    words = ["python -m toolkit profile"]
    words += [f"--shape {problem}" for problem in plan.shapes]
    if plan.explicit:
        words += [f"--variant {selection.label}" for selection in plan.selections]
    words.append(f"--executor {bench.executor}")
    if bench.executor != "gpu":
        words.append(f"--device {bench.device.key}")
    if plan.constants is not None:
        words.append(f"--constants {quote(str(plan.constants))}")
    if plan.clock_mhz is not None:
        words.append(f"--clock {plan.clock_mhz:.12g}")
    asked, usual = plan.sampling, Sampling()
    for option, value, default in (
        ("seconds", asked.time_limit_s, usual.time_limit_s),
        ("samples", asked.max_samples, usual.max_samples),
        ("precision", asked.precision, usual.precision),
    ):
        words += [f"--{option} {value}"] if value != default else []
    if plan.l2 != DEFAULT_L2:
        words.append(f"--l2 {plan.l2}")
    if bench.counts:
        words.append("--counters")
    if bench.measures_errors:
        words.append("--accuracy")
    words.append(f"--seed {plan.seed}")
    return " ".join(words)
