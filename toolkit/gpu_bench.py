"""Records from silicon: compiled by PyCUDA, checked on every shape, timed beside cuBLAS, counted.

Time is never taken where counters are: those are of one more launch, under Nsight Compute. The
simulator gets the very machine code that was launched, so that counters stand beside times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Literal, NoReturn

import numpy as np

from analysis.errors import ShapeError, ToolkitError, UnavailableError
from analysis.problem import Gemm
from analysis.result import Conditions, Listing, Record
from kernels.registry import CPU, CUBLAS, Selection, Variant
from toolkit.compile import Cubin
from toolkit.conditions import Observer
from toolkit.counted import CountableLaunch, countable
from toolkit.counting import Counting
from toolkit.cublas import Cublas
from toolkit.environment import GpuMonitor
from toolkit.gpu import Gpu, nvcc_version
from toolkit.gpu_operands import GpuOperands, Operands
from toolkit.host import available_bytes, measure_cpu
from toolkit.launches import marker_source
from toolkit.plan import Plan
from toolkit.progress import Progress
from toolkit.records import (
    Records,
    failed,
    planned,
    skipped,
    with_check,
    with_counted,
    with_measurement,
    with_prediction,
    with_resources,
)
from toolkit.resume import LOST
from toolkit.sampling import FOR_AN_INTERVAL, Series, Timer, interleave
from toolkit.simulated_ladder import LadderSimulator, residence
from toolkit.tiles import maps_of
from toolkit.trial import Trial, launch_limit_s, survives
from toolkit.watchdog import Watchdog, end_process, hung
from toolkit.workload import Matrix, Reference, Workload

WARM_UP_S = 0.1  # long enough for the clocks to rise from idle, short enough to wait for
WARM_UP_LAUNCHES = 3
CHECKING_COPIES = 9  # of A, B and C on the host: float32, float64, and what the comparison adds

Launch = Callable[[], None]


class GpuBench:
    """Fills the records of a plan on one GPU; a context manager that holds cuBLAS."""

    executor: Literal["gpu"] = "gpu"

    def __init__(
        self,
        gpu: Gpu,
        counting: Counting | None = None,
        survives: Callable[[Trial], str | None] = survives,
        begin_anew: Callable[[str], NoReturn] | None = None,
    ) -> None:
        self.gpu = gpu
        self._survives = survives
        self._begin_anew = begin_anew
        self._watchdog = Watchdog(self._give_up)
        self._in_hand: tuple[Gemm, Records] | None = None  # what the watchdog tells
        self._counting = counting
        self.device = gpu.device
        self.monitor = GpuMonitor(gpu.pci_bus_id)
        self._cublas: Cublas | None = None
        self._why_no_cublas = ""
        self.listings: dict[str, Listing] = {}  # by label, of what was simulated
        self.conditions: dict[Gemm, Conditions] = {}
        self._culprit: str | None = None  # whose launch broke the context, for all that follow

    def __enter__(self) -> GpuBench:
        self._watchdog.__enter__()
        try:
            self._cublas = Cublas().__enter__()
        except UnavailableError as error:
            self._why_no_cublas = str(error)
        return self

    def __exit__(self, *exception: object) -> None:
        self._watchdog.__exit__(*exception)
        self.monitor.close()
        if self._cublas is not None:
            self._cublas.__exit__(*exception)

    @property
    def counts(self) -> bool:
        """Whether hardware counters are collected."""
        return self._counting is not None

    def steps(self, plan: Plan) -> int:
        """How many steps `profile_shape` reports: every check, the reference, timing, counting."""
        return len(plan.selections) + (2 if self._counting is None else 3)

    def software(self) -> dict[str, str]:
        """Versions that only an open GPU can tell."""
        versions = {"nvcc": nvcc_version().removeprefix("nvcc ")}
        if self._cublas is not None:
            versions["cuBLAS"] = self._cublas.version
        return versions | (self._counting.software() if self._counting is not None else {})

    def profile_shape(
        self, problem: Gemm, plan: Plan, records: Records, progress: Progress
    ) -> None:
        """Add one record per selection: each is tried alone, then checked; all are timed together.

        Then, if so wished, they are counted. What is done stays when Ctrl-C ends it.
        """
        plan = plan.at(problem, self.device)
        cubins = self._check_and_time(problem, plan, records, progress)  # and frees its matrices
        culprit = None if self._culprit is None else records.get((problem, self._culprit))
        if culprit is not None:  # of this shape: after an earlier one nobody could begin anew
            self._go_on(f"{culprit.label} at {problem}: {culprit.reason}")
        if self._counting is not None:
            progress.step("hardware counters")
            self._count(self._counting, problem, plan, records, cubins)

    def check_shape(self, problem: Gemm, plan: Plan, records: Records, progress: Progress) -> None:
        """Add one record per rung or cuBLAS, with its verdict; nothing is timed."""
        stage = self._staged(problem, plan, records, progress)
        for selection in plan.selections:
            key = problem, selection.label
            if stage is not None and records[key].status == "ok":
                progress.step(f"check {selection.label}")
                records[key], _, _ = self._checked(records[key], selection, stage)
                self._skip_what_cannot_run(problem, plan, records)

    def _give_up(self, label: str, limit_s: float) -> None:
        """A launch of `label` does not end, although it did when tried: keep that, and leave.

        The watchdog's thread calls it, while this one waits in the driver.
        """
        assert self._in_hand is not None
        problem, records = self._in_hand
        reason = hung(limit_s)
        try:
            records[problem, label] = failed(records[problem, label], reason)
            self._go_on(f"{label} at {problem}: {reason}")
        finally:  # also where its record cannot be kept: who begins anew would launch it again
            end_process(f"{label} at {problem}: {reason}")

    def _go_on(self, message: str) -> None:
        """Begin anew, if somebody said how; what is left of this process may be in a bad way."""
        if self._begin_anew is None:
            return
        with suppress(Exception):
            if self._counting is not None:
                self._counting.__exit__(None, None, None)
            self._begin_anew(message)

    def _staged(
        self, problem: Gemm, plan: Plan, records: Records, progress: Progress
    ) -> _Stage | None:
        """The matrices, with a record planned per selection; None where they cannot be had."""
        self._in_hand = problem, records
        for selection in plan.selections:
            records[problem, selection.label] = planned(selection, problem, self.device)
        self._skip_what_cannot_run(problem, plan, records)
        self._try_alone(problem, plan, records, progress)
        progress.step("float64 reference")
        try:
            self._check_room(problem)
            return _Stage(self.gpu, Workload(problem, plan.seed))
        except ToolkitError as error:
            for selection in plan.selections:
                key = problem, selection.label
                if records[key].status == "ok":
                    records[key] = failed(records[key], str(error))
        return None

    def _check_and_time(
        self, problem: Gemm, plan: Plan, records: Records, progress: Progress
    ) -> dict[str, Cubin]:
        """Fill the records with all but hardware counters; returns the rungs' machine code."""
        stage = self._staged(problem, plan, records, progress)
        if stage is None:
            return {}
        launches: dict[str, Launch] = {}
        cubins: dict[str, Cubin] = {}
        for selection in plan.selections:
            progress.step(f"check {selection.label}")
            key = problem, selection.label
            if records[key].status != "ok":
                continue
            if selection.variant is CPU:
                records[key], interrupted = measure_cpu(
                    records[key], stage.workload, plan, stage.reference
                )
                if interrupted:
                    raise KeyboardInterrupt
                continue
            records[key], launch, cubin = self._checked(records[key], selection, stage)
            if cubin is not None:
                records[key] = self._with_counters(records[key], selection, cubin, stage)
            if launch is not None:
                launches[selection.label] = launch
            if cubin is not None:
                cubins[selection.label] = cubin
            self._skip_what_cannot_run(problem, plan, records)
        progress.step("timing")
        if self._culprit is None:
            self._time(problem, launches, plan, records, progress)
            self._skip_what_cannot_run(problem, plan, records)
        return cubins

    def _try_alone(self, problem: Gemm, plan: Plan, records: Records, progress: Progress) -> None:
        """Launch every rung in a process of its own; what does not come back whole has failed."""
        for selection in plan.selections:
            record = records[problem, selection.label]
            variant = selection.variant
            if record.status != "ok" or not isinstance(variant, Variant):
                continue
            progress.detail(f"{selection.label}: alone")
            assert record.geometry is not None
            reason = self._survives(
                Trial(
                    source=variant.source,
                    entry=variant.entry,
                    name=variant.file,
                    defines=variant.macros(selection.parameters),
                    geometry=record.geometry,
                    problem=problem,
                    executed=record.executed_shape,
                    seed=plan.seed,
                    maps=maps_of(variant, selection.parameters, record.executed_shape),
                    workspace_bytes=variant.workspace(selection.parameters, record.executed_shape),
                )
            )
            if reason is not None:
                records[problem, selection.label] = failed(record, reason)

    def _count(
        self,
        counting: Counting,
        problem: Gemm,
        plan: Plan,
        records: Records,
        cubins: Mapping[str, Cubin],
    ) -> None:
        """Add hardware counters to the records that passed, or a note on why there are none."""
        keys = [(problem, selection.label) for selection in plan.selections]
        passed = {
            key: records[key]
            for key in keys
            if records[key].status == "ok" and records[key].variant != CPU.name
        }
        entries = {label: cubin.symbol for label, cubin in cubins.items()}
        launches = [countable(record, entries.get(record.label)) for record in passed.values()]
        if not launches:
            return
        if self._culprit is not None:
            counting.give_up(f"the CUDA context was lost when {self._culprit} faulted")
            return
        try:
            markers = self._markers(launches)
        except ToolkitError as error:
            counting.give_up(str(error))
            return
        results = counting.count(
            launches,
            seed=plan.seed,
            images={label: cubin.image for label, cubin in cubins.items()},
            markers=markers,
            expected_s={
                record.label: record.measured.median_s
                for record in passed.values()
                if record.measured is not None
            },
        )
        for label, result in results.items():
            records[problem, label] = with_counted(records[problem, label], result)

    def _markers(self, launches: Sequence[CountableLaunch]) -> bytes:
        """Machine code of the kernels that announce the launches."""
        source = marker_source(launches)
        return self.gpu.load(source, launches[0].marker, name="markers.cu").cubin.image

    def _find_culprit(self, label: str) -> None:
        """Remember `label`, whose launch has just failed, if it took the context with it."""
        if self._culprit is None and not self.gpu.alive:
            self._culprit = label

    def _skip_what_cannot_run(self, problem: Gemm, plan: Plan, records: Records) -> None:
        """Where the context is lost, skip all that wanted it and has no measurement."""
        if self._culprit is None:
            return
        reason = f"{LOST} when {self._culprit} faulted; run it without that variant"
        for selection in plan.selections:
            record = records[problem, selection.label]
            if selection.variant is not CPU and record.status == "ok" and record.measured is None:
                records[problem, selection.label] = skipped(record, reason)

    def _check_room(self, problem: Gemm) -> None:
        """Raise ShapeError where the host cannot hold the matrices and their float64 check."""
        needed = CHECKING_COPIES * problem.matrix_bytes
        available = available_bytes()
        if available is not None and needed > available:
            raise ShapeError(
                f"shape {problem}: its float64 check takes about {needed / 1e9:.1f} GB on the "
                f"host, {available / 1e9:.1f} GB are free: take a smaller shape"
            )

    def _checked(
        self, record: Record, selection: Selection, stage: _Stage
    ) -> tuple[Record, Launch | None, Cubin | None]:
        """The record with resources and verdict; launch and machine code if it may be timed."""
        cubin = None
        try:
            operands = stage.operands.at(record.executed_shape)
            if selection.variant is CUBLAS:
                if self._cublas is None:
                    return skipped(record, self._why_no_cublas), None, None
                record = replace(record, notes=(f"cuBLAS {self._cublas.version}",))
                launch = self._cublas.sgemm(
                    record.executed_shape, operands.a, operands.b, operands.c
                )
            else:
                record, launch, cubin = self._compiled(record, selection, stage)
            with self._watchdog.limit(record.label, launch_limit_s(record.executed_shape)):
                result = stage.run(launch, operands)
        except ToolkitError as error:
            self._find_culprit(record.label)
            return failed(record, str(error)), None, None
        record = with_check(record, stage.reference.check(result))
        if record.status != "ok":
            return record, None, None
        return record, launch, cubin

    def _with_counters(
        self, record: Record, selection: Selection, cubin: Cubin, stage: _Stage
    ) -> Record:
        """The record with the simulator's counters; a note where there are none, or wrong ones."""
        try:
            found = stage.simulator.simulate(cubin, selection, residence(record, stage.device))
        except ToolkitError as error:
            return replace(record, notes=(*record.notes, f"not simulated: {error}"))
        if not found.check.passed:
            wrong = "not simulated: the simulator computes another result than the GPU, a wrong one"
            return replace(record, notes=(*record.notes, wrong))
        self.listings[found.listing.label] = found.listing
        return with_prediction(replace(record, simulated=found.simulated), found.predicted)

    def _compiled(
        self, record: Record, selection: Selection, stage: _Stage
    ) -> tuple[Record, Launch, Cubin]:
        variant = selection.variant
        geometry = record.geometry
        assert isinstance(variant, Variant)
        assert geometry is not None
        kernel = self.gpu.load(
            variant.source,
            variant.entry,
            name=variant.file,
            defines=variant.macros(selection.parameters),
        )
        record = with_resources(record, kernel.resources, self.device)
        arguments = stage.operands.arguments(variant, selection.parameters, record.executed_shape)
        return record, kernel.prepared(geometry, arguments), kernel.cubin

    def _time(
        self,
        problem: Gemm,
        launches: dict[str, Launch],
        plan: Plan,
        records: Records,
        progress: Progress,
    ) -> None:
        timers = {
            label: self._watched(
                label, problem, partial(self.gpu.time, launch, flush_l2=not plan.warm_l2)
            )
            for label, launch in launches.items()
        }
        for label, timer in timers.items():
            error = _warm_up(timer)
            if error is not None:
                self._find_culprit(label)
                if self._culprit is not None:
                    records[problem, label] = failed(records[problem, label], str(error))
                    return

        def on_sample(label: str, series: Series) -> None:
            progress.detail(f"{label}: {len(series.samples_s)} samples")
            if series.error is not None:
                self._find_culprit(label)

        before = self.monitor.state()
        observer = Observer(self.monitor.state)
        peer = CUBLAS.name if CUBLAS.name in timers else None
        all_series, interrupted = interleave(
            timers,
            plan.sampling,
            peer=peer,
            fewest=FOR_AN_INTERVAL,
            on_sample=on_sample,
            on_round=observer.after_round,
            usable=lambda: self._culprit is None,
        )
        after = self.monitor.state()
        if observer.moments:
            self.conditions[problem] = Conditions(shape=problem, moments=observer.moments)
        for label, series in all_series.items():
            if self._culprit is not None and not (series.samples_s or series.error):
                continue
            records[problem, label] = with_measurement(
                records[problem, label],
                series,
                clock="CUDA events",
                l2="warm" if plan.warm_l2 else "flushed",
                before=before,
                after=after,
            )
        if interrupted:
            raise KeyboardInterrupt

    def _watched(self, label: str, problem: Gemm, timer: Timer) -> Timer:
        def timed() -> float:
            with self._watchdog.limit(label, launch_limit_s(problem)):
                return timer()

        return timed


class _Stage:
    """The matrices of one shape: on the host, on the GPU, and what their product must be."""

    def __init__(self, gpu: Gpu, workload: Workload) -> None:
        self._gpu = gpu
        self.device = gpu.device
        self.workload = workload
        self.reference: Reference = workload.reference()
        self.simulator = LadderSimulator(workload)
        self.operands = GpuOperands(gpu, workload)

    def run(self, launch: Launch, operands: Operands) -> Matrix:
        """The product that one launch leaves in a poisoned C, without its padding."""
        shape, problem = operands.shape, self.workload.problem
        with self._gpu.launch_errors("launch"):
            self._gpu.poison(operands.c, shape.c_elements)
            launch()
            self._gpu.synchronize()
        result: Matrix = np.empty((shape.m, shape.n), np.float32)
        self._gpu.download(operands.c, into=result)
        return result[: problem.m, : problem.n]


def _warm_up(timer: Callable[[], float]) -> ToolkitError | None:
    """Launch until the clocks are up, or what failed, which is found again when it is timed."""
    started = perf_counter()
    try:
        for _ in range(WARM_UP_LAUNCHES):
            timer()
        while perf_counter() - started < WARM_UP_S:
            timer()
    except ToolkitError as error:
        return error
    return None
