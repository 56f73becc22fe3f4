"""Records from silicon: compiled by PyCUDA, checked on every shape, timed beside cuBLAS, counted.

Each rung, and cuBLAS, lives in a process of its own with a CUDA context of its own. They are timed
in turns all the same: this process says whose turn it is.

Time is never taken where counters are: those are of one more launch, under Nsight Compute. The
simulator gets the very machine code that was launched, so that counters stand beside times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

from analysis.devices import Device
from analysis.errors import OutOfMemoryError, ToolkitError, UnavailableError
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.problem import Gemm
from analysis.records.profile import Conditions, Listing, Record
from kernels.ladder import CPU, CUBLAS
from kernels.selection import Selection, find
from kernels.variant import Variant
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.gpu.conditions import Observer
from toolkit.gpu.context import Gpu
from toolkit.gpu.cublas import Cublas
from toolkit.gpu.environment import GpuMonitor
from toolkit.gpu.launch import InAChild, Task
from toolkit.gpu.nsight_compute.attribution import CountableLaunch
from toolkit.gpu.nsight_compute.collect import Counting
from toolkit.gpu.nsight_compute.replay_process import marker_source
from toolkit.gpu.nvcc import nvcc_version
from toolkit.gpu.product_launch import LAUNCHES
from toolkit.gpu.sampling import FOR_AN_INTERVAL, Series, interleave, warm_up
from toolkit.launch.host_resources import shortage
from toolkit.launch.progress import Progress
from toolkit.machine_code.kernel import Kernel
from toolkit.product.competitor import task_of_competitor
from toolkit.profiling.competitors import Competitors
from toolkit.profiling.errors_on_gpu import with_errors
from toolkit.profiling.on_cpu import measure_cpu
from toolkit.profiling.on_simulator import residence, with_simulation
from toolkit.profiling.plan import RunPlan
from toolkit.profiling.predicted_path import with_predicted_path
from toolkit.profiling.record import (
    Records,
    failed,
    planned,
    skipped,
    with_check,
    with_counted,
    with_measurement,
    with_resources,
)
from toolkit.rungs.arguments import position_of_c
from toolkit.rungs.matrices import ReferenceProduct, Workload

CHECKING_COPIES = 9  # of A, B and C on the host: float32, float64, and what the comparison adds

# So many prepare themselves at a time, which is mostly the start of Python and of a CUDA context.
AHEAD = 4
COPIES_AHEAD = 1.5  # of A, B and C on the host, for each of them: A and B, and what padding adds


class GpuBench:
    """Fills the records of a plan on one GPU; a context manager.

    `device` is the record of the GPU that times are predicted for, by default its own. Rungs are
    simulated too, unless `simulates` is False.
    """

    executor: Literal["gpu"] = "gpu"

    def __init__(
        self,
        gpu: Gpu,
        counting: Counting | None = None,
        *,
        device: Device | None = None,
        l2: L2State = DEFAULT_L2,
        measures_errors: bool = False,
        simulates: bool = True,
    ) -> None:
        self.gpu = gpu
        self._counting, self._simulates = counting, simulates
        self._inputs: _Inputs | None = None  # of the last shape
        self.device = device or gpu.device
        self.l2 = l2
        self.measures_errors = measures_errors  # on classes of inputs
        self.monitor = GpuMonitor(gpu.pci_bus_id)
        self._cublas_version: str | None = None
        self._why_no_cublas = ""
        self.listings: dict[str, Listing] = {}  # by label, of what was simulated
        self.conditions: dict[Gemm, Conditions] = {}

    def __enter__(self) -> GpuBench:
        try:
            with Cublas() as cublas:
                self._cublas_version = cublas.version
        except UnavailableError as error:
            self._why_no_cublas = str(error)
        return self

    def __exit__(self, *exception: object) -> None:
        self.monitor.close()

    @property
    def counts(self) -> bool:
        """True if hardware counters are collected."""
        return self._counting is not None

    def steps(self, plan: RunPlan) -> int:
        """Number of steps that `profile_shape` reports: checks, reference, timing, counting."""
        return len(plan.selections) + (2 if self._counting is None else 3)

    def software(self) -> dict[str, str]:
        """Versions that only an open GPU can tell."""
        versions = {"nvcc": nvcc_version().removeprefix("nvcc ")}
        if self._cublas_version is not None:
            versions["cuBLAS"] = self._cublas_version
        return versions | (self._counting.software() if self._counting is not None else {})

    def profile_shape(
        self, problem: Gemm, plan: RunPlan, records: Records, progress: Progress
    ) -> None:
        """Add one record per selection: each is checked alone, then all are timed round-robin.

        Counters follow if they are requested. Completed records stay if Ctrl-C ends the run.
        """
        plan = plan.at(problem, self.device)
        kernels = self._check_and_time(problem, plan, records, progress)
        if self._counting is not None:
            self._inputs = None  # its matrices make room
            progress.step("hardware counters")
            self._count(self._counting, problem, plan, records, kernels)

    def check_shape(
        self, problem: Gemm, plan: RunPlan, records: Records, progress: Progress
    ) -> None:
        """Add one record per rung or cuBLAS, with its verdict; nothing is timed."""
        inputs = self._inputs_at(problem, plan, records, progress)
        for selection in plan.selections:
            record = records[problem, selection.label]
            if inputs is not None and record.status == "ok":
                progress.step(f"check {selection.label}")
                try:
                    with InAChild(_task(record, selection, plan.seed)) as competitor:
                        record, _ = self._checked(record, inputs, competitor, plan, selection)
                except ToolkitError as error:
                    record = failed(record, str(error))
                records[problem, selection.label] = record

    def _inputs_at(
        self, problem: Gemm, plan: RunPlan, records: Records, progress: Progress
    ) -> _Inputs | None:
        """Inputs of a shape with the expected product; plans a record per selection.

        None if it does not fit into the host's memory.
        """
        for selection in plan.selections:
            records[problem, selection.label] = self._planned(selection, problem)
        progress.step("float64 reference")
        workload = Workload(problem, plan.seed)
        if self._inputs is not None and self._inputs.workload == workload:
            return self._inputs
        self._inputs = None  # room for the new one
        if lack := shortage(CHECKING_COPIES * problem.matrix_bytes):
            why = f"shape {problem}: its float64 check takes about {lack}: take a smaller shape"
            for selection in plan.selections:
                record = records[problem, selection.label]
                if record.status == "ok":
                    records[problem, selection.label] = failed(record, why)
            return None
        self._inputs = _Inputs(workload)
        return self._inputs

    def _planned(self, selection: Selection, problem: Gemm) -> Record:
        record = planned(selection, problem, self.device)
        if selection.variant is not CUBLAS:
            return record
        if self._cublas_version is None:
            return skipped(record, self._why_no_cublas)
        return replace(record, notes=(f"cuBLAS {self._cublas_version}",))

    def _check_and_time(
        self, problem: Gemm, plan: RunPlan, records: Records, progress: Progress
    ) -> dict[str, Kernel]:
        """Fill the records with all but hardware counters; returns the rungs' machine code."""
        inputs = self._inputs_at(problem, plan, records, progress)
        if inputs is None:
            return {}
        _measure_cpu(problem, plan, records, progress, inputs)
        selections = _to_time(problem, plan, records, progress)
        tasks = {
            label: _task(records[problem, label], selection, plan.seed)
            for label, selection in selections.items()
        }
        copies = CHECKING_COPIES + AHEAD * COPIES_AHEAD
        most_preparing = 1 if shortage(copies * problem.matrix_bytes) else AHEAD
        kernels: dict[str, Kernel] = {}
        observer = Observer(self.monitor.state)
        with Competitors(self.gpu, tasks, most_preparing) as competitors:
            while competitors.are_left:
                if competitors.lack_room:
                    self._time(problem, competitors, plan, records, progress, observer)
                    competitors.make_room()
                for label, error in competitors.start_waiting():
                    records[problem, label] = failed(records[problem, label], str(error))
                if not competitors.preparing:
                    continue
                label = competitors.preparing[0]
                progress.step(f"check {label}")
                record, selection = records[problem, label], selections[label]
                try:
                    child = competitors.children[label]
                    record, kernel = self._checked(record, inputs, child, plan, selection)
                except OutOfMemoryError as error:
                    if competitors.is_tried_again(label):
                        continue
                    record, kernel = failed(record, str(error)), None
                competitors.checked(label, stays=record.status == "ok")
                if kernel is not None:
                    kernels[label] = kernel
                records[problem, label] = self._simulated(record, selection, kernel, inputs, plan)
            progress.step("timing")
            self._time(problem, competitors, plan, records, progress, observer)
        return kernels

    def _count(
        self,
        counting: Counting,
        problem: Gemm,
        plan: RunPlan,
        records: Records,
        kernels: Mapping[str, Kernel],
    ) -> None:
        """Add hardware counters to the records that passed, or a note on why there are none."""
        counted = [
            x for x in plan.selections if isinstance(x.variant, Variant) or x.variant.is_counted
        ]
        of_shape = (records[problem, selection.label] for selection in counted)
        passed = [one for one in of_shape if one.status == "ok"]
        entries = {label: kernel.symbol for label, kernel in kernels.items()}
        launches = [CountableLaunch(one, entries.get(one.label)) for one in passed]
        if not launches:
            return
        try:
            source, first = marker_source(launches), launches[0].marker
            markers = self.gpu.load(source, first, name="markers.cu").cubin.image
        except ToolkitError as error:
            counting.give_up(str(error))
            return
        results = counting.count(
            launches,
            seed=plan.seed,
            images={label: kernel.image for label, kernel in kernels.items()},
            markers=markers,
            expected_s={
                record.label: record.measured.median_s
                for record in passed
                if record.measured is not None
            },
        )
        for label, result in results.items():
            records[problem, label] = with_counted(records[problem, label], result)

    def _checked(
        self,
        record: Record,
        inputs: _Inputs,
        competitor: InAChild,
        plan: RunPlan,
        selection: Selection,
    ) -> tuple[Record, Kernel | None]:
        """The record with resources and verdict; and a rung's machine code if it may be timed.

        Raises OutOfMemoryError: other competitors may hold the GPU's memory.
        """
        try:
            kernel = competitor.cubin()
            if kernel is not None:
                record = with_resources(record, kernel.resources, self.device)
            if record.status == "ok":
                c = competitor.result(position_of_c(find(record.variant)), LAUNCHES)
                product = c[: record.shape.m, : record.shape.n]
                tiling = record.theory.accesses.tiling if record.theory else None
                error = tiling.product_error if tiling else 0.0
                record = with_check(record, inputs.reference.check(product, error))
            if self.measures_errors and record.status == "ok":
                task = _task(record, selection, plan.seed)
                record = with_errors(record, competitor, task, plan.seed)
        except OutOfMemoryError:
            raise
        except ToolkitError as error:
            record = failed(record, str(error))
        return record, kernel if record.status == "ok" else None

    def _simulated(
        self,
        record: Record,
        selection: Selection,
        kernel: Kernel | None,
        inputs: _Inputs,
        plan: RunPlan,
    ) -> Record:
        """The record with the simulator's counters and time; a note says where there are none."""
        if not self._simulates or record.status != "ok":
            return record
        if kernel is None:
            return with_predicted_path(record, selection, plan, inputs.workload, self)
        try:
            found = inputs.simulator.simulate(
                kernel, selection, residence(record, self.device, self.l2)
            )
        except ToolkitError as error:
            return record.noted(f"not simulated: {error}")
        if found.check is None or not found.check.passed:
            wrong = "not simulated: the simulator computes another result than the GPU, a wrong one"
            return record.noted(wrong)
        record, listing = with_simulation(record, found, selection)
        self.listings[listing.label] = listing
        return record

    def _time(
        self,
        problem: Gemm,
        competitors: Competitors,
        plan: RunPlan,
        records: Records,
        progress: Progress,
        observer: Observer,
    ) -> None:
        """Time the competitors that are prepared, in turns."""
        timers = {
            label: partial(competitor.sample, plan.l2)
            for label, competitor in competitors.children.items()
        }
        for timer in timers.values():
            warm_up(timer)

        def on_sample(label: str, series: Series) -> None:
            progress.detail(f"{label}: {len(series.samples_s)} samples")

        earlier = observer.rounds
        before = self.monitor.state()
        all_series, interrupted = interleave(
            timers,
            plan.sampling,
            peer=CUBLAS.name if CUBLAS.name in timers else None,
            fewest=FOR_AN_INTERVAL,
            on_sample=on_sample,
            on_round=lambda done: observer.after_round(earlier + done),
        )
        after = self.monitor.state()
        if observer.moments:
            self.conditions[problem] = Conditions(shape=problem, moments=observer.moments)
        if not interrupted:
            interrupted = _find_damage(competitors.children, all_series, progress)
        for label, series in all_series.items():
            if records[problem, label].measured is not None:
                continue  # cuBLAS, which was timed beside others before
            records[problem, label] = with_measurement(
                records[problem, label],
                series,
                clock="CUDA events",
                l2=plan.l2,
                before=before,
                after=after,
            )
        if interrupted:
            raise KeyboardInterrupt


class _Inputs:
    """Inputs of one shape, and the expected product."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.reference: ReferenceProduct = workload.reference()
        self.simulator = LadderSimulator(workload)


def _to_time(
    problem: Gemm, plan: RunPlan, records: Records, progress: Progress
) -> dict[str, Selection]:
    """The planned selections that can be timed on the GPU, by label.

    cuBLAS comes first: each kernel is timed round-robin with it.
    """
    of_gpu = [x for x in plan.selections if x.variant is not CPU]
    found = {
        x.label: x
        for x in sorted(of_gpu, key=lambda x: x.variant is not CUBLAS)
        if records[problem, x.label].status == "ok"
    }
    for selection in of_gpu:
        if selection.label not in found:
            progress.step(f"{selection.label}: {records[problem, selection.label].status}")
    return found


def _task(record: Record, selection: Selection, seed: int) -> Task:
    return task_of_competitor(selection, record.shape, record.executed_shape, seed)


def _measure_cpu(
    problem: Gemm, plan: RunPlan, records: Records, progress: Progress, inputs: _Inputs
) -> None:
    """Before anybody else needs the host."""
    key = problem, CPU.name
    if key in records:
        progress.step(f"check {CPU.name}")
        records[key], interrupted = measure_cpu(
            records[key], inputs.workload, plan, inputs.reference
        )
        if interrupted:
            raise KeyboardInterrupt


def _find_damage(
    competitors: Mapping[str, InAChild], all_series: Mapping[str, Series], progress: Progress
) -> bool:
    """Note in each series the damage around its buffers. True if Ctrl-C ended this.

    The damage happened while the samples of the series were taken.
    """
    try:
        for label, series in all_series.items():
            if series.error is None:
                progress.detail(f"{label}: what is around its buffers")
                try:
                    competitors[label].raise_damage()
                except ToolkitError as error:
                    series.error = str(error)
    except KeyboardInterrupt:
        return True
    return False
