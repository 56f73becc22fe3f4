"""Records in theory: closed forms and the resources that NVRTC reports; nothing is executed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Literal

from analysis.devices import Device
from analysis.errors import ToolkitError, UnavailableError
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.problem import Gemm
from analysis.records.profile import Conditions, Listing, Record
from kernels.ladder import CPU
from kernels.selection import Selection
from kernels.variant import Variant
from toolkit.launch.host_resources import available_cores
from toolkit.launch.progress import Progress
from toolkit.machine_code.compiler_process import stop_idle_compilers
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.programs import stop_children
from toolkit.profiling.on_cpu import known_cpu
from toolkit.profiling.plan import RunPlan
from toolkit.profiling.record import Records, failed, planned, skipped, with_resources
from toolkit.rungs.launch import compile_for
from toolkit.rungs.matrices import Workload


class TheoryBench:
    """Fills the records of a plan for any device of the database."""

    executor: Literal["simulate", "theory"] = "theory"
    monitor = None
    counts = False  # hardware counters

    def __init__(
        self, device: Device, *, l2: L2State = DEFAULT_L2, measures_errors: bool = False
    ) -> None:
        self.device, self.l2 = device, l2
        self.measures_errors = measures_errors  # on classes of inputs
        self.listings: dict[str, Listing] = {}  # by label, of what was simulated
        self.conditions: dict[Gemm, Conditions] = {}  # of a GPU: here none is used
        self._compiled: dict[str, Future[Kernel]] = {}  # by label

    def steps(self, plan: RunPlan) -> int:
        """Number of steps that `profile_shape` reports."""
        return len(plan.selections)

    def software(self) -> dict[str, str]:
        return {}

    def profile_shape(
        self, problem: Gemm, plan: RunPlan, records: Records, progress: Progress
    ) -> None:
        """Add one record per selection; finished records stay if Ctrl-C ends the run."""
        workload = Workload(problem, plan.seed)
        selections = plan.at(problem, self.device).selections
        rungs, cpu = [], []
        for selection in selections:
            record = planned(selection, problem, self.device)
            if record.status == "ok" and isinstance(selection.variant, Variant):
                rungs.append((selection, record))
            elif selection.variant is CPU and (self.executor == "simulate" or plan.explicit):
                cpu.append(record)
            else:
                progress.step(selection.label)
                records[problem, selection.label] = self.left_out(record, selection, workload, plan)
        self.compile(selection for selection, _ in rungs)
        stop_idle_compilers()
        for selection, record in self.rungs(rungs, workload, progress):
            records[problem, selection.label] = record
        for record in cpu:  # nothing runs beside it
            progress.step(record.label)
            records[problem, record.label], interrupted = known_cpu(record, workload, plan)
            if interrupted:
                raise KeyboardInterrupt

    def left_out(
        self, record: Record, selection: Selection, workload: Workload, plan: RunPlan
    ) -> Record:
        """Record for a rung that this device, or any bench without a GPU, cannot run."""
        if record.status != "ok":
            return record
        if record.variant == CPU.name:
            return skipped(record, "theory measures nothing: ask for it by --variant cpu")
        return skipped(record, "runs on a GPU; this profile used none")

    def rungs(
        self, made: Sequence[tuple[Selection, Record]], workload: Workload, progress: Progress
    ) -> Iterator[tuple[Selection, Record]]:
        """Records of the planned rungs with all facts that are available here, as they finish."""
        for selection, record in made:
            progress.step(selection.label)
            yield selection, self.rung(record, selection, workload, progress)

    def compile(self, selections: Iterable[Selection]) -> None:
        """Compile rungs side by side, for `rung`."""
        new = {
            x.label: x
            for x in selections
            if isinstance(x.variant, Variant) and x.label not in self._compiled
        }
        with ThreadPoolExecutor(available_cores()) as pool:
            # the later ones of the ladder take longest: they begin first
            begun = {
                label: pool.submit(compile_for, self.device, x)
                for label, x in reversed(new.items())
            }
            try:
                wait(begun.values())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                stop_children()
                raise
        self._compiled |= begun

    def rung(
        self, record: Record, selection: Selection, workload: Workload, progress: Progress
    ) -> Record:
        """Record of one planned rung with all facts that are available here."""
        if selection.label not in self._compiled:
            self.compile([selection])
        try:
            kernel = self._compiled[selection.label].result()
        except UnavailableError as error:
            return record.noted(f"no registers, no occupancy: {error}")
        except ToolkitError as error:
            return failed(record, str(error))
        record = with_resources(record, kernel.resources, self.device)
        if record.status != "ok":
            return record
        return self._executed(record, selection, kernel, workload, progress)

    def _executed(
        self,
        record: Record,
        selection: Selection,
        kernel: Kernel,
        workload: Workload,
        progress: Progress,
    ) -> Record:
        """Record with the results of executing the machine code: in theory, nothing."""
        return record
