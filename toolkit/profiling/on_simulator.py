"""Records of rungs whose machine code is executed on the CPU, without a GPU.

A record has what theory says, counters, a predicted time and a verdict on the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from dataclasses import replace
from functools import cache, partial
from pathlib import PurePath
from typing import Literal

from analysis.comparison.agreement import machine_accesses
from analysis.devices import Device
from analysis.errors import ShapeError, ToolkitError, UnavailableError, UnsupportedError
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.records.counters import MODELLED, InstructionCounts, by_line
from analysis.records.profile import LineCounters, Listing, Record, Simulated
from kernels.selection import Selection
from kernels.variant import Parameters, Variant
from toolkit.execution.rung_check import check_rung, sentence
from toolkit.execution.rung_errors import errors_of_rung
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.execution.sanitizer import Checked
from toolkit.execution.traffic import Residence
from toolkit.launch.host_resources import share_freed_memory
from toolkit.launch.launch import Execution
from toolkit.launch.process_memory import set_up_memory
from toolkit.launch.progress import Progress
from toolkit.machine_code.disassemble import disassemble_together
from toolkit.machine_code.kernel import Kernel
from toolkit.profiling.in_theory import TheoryBench
from toolkit.profiling.plan import RunPlan
from toolkit.profiling.predicted_path import with_predicted_path
from toolkit.profiling.record import failed, with_check
from toolkit.profiling.rung_processes import side_by_side
from toolkit.rungs.matrices import Workload

PYCUDA_FILE = "kernel.cu"  # file name under which PyCUDA passes source to nvcc


class SimulatorBench(TheoryBench):
    """Fills the records of a plan for any device of the database, and executes the rungs.

    Where a rung cannot be simulated (no native core, an instruction that is not known, too large
    a shape), its record keeps the theory and says why in a note.
    """

    executor: Literal["simulate", "theory"] = "simulate"
    _ladder: LadderSimulator | None = None

    def __init__(
        self,
        device: Device,
        *,
        l2: L2State = DEFAULT_L2,
        measures_errors: bool = False,
        sanitizes: bool = True,
    ) -> None:
        super().__init__(device, l2=l2, measures_errors=measures_errors)
        share_freed_memory()
        set_up_memory()
        self._sanitizes = sanitizes
        self._checked: dict[bytes, Checked] = {}  # by machine code

    def disassemble(self) -> None:
        """Disassemble the compiled rungs together: that is faster than one by one."""
        compiled = [one for one in self._compiled.values() if one.exception() is None]
        disassemble_together(one.result().image for one in compiled)

    def rungs(
        self, made: Sequence[tuple[Selection, Record]], workload: Workload, progress: Progress
    ) -> Iterator[tuple[Selection, Record]]:
        """Records as in theory; meanwhile other processes take rungs from the end of the ladder."""

        def here(selection: Selection, record: Record) -> Record:
            progress.step(selection.label)
            return self.rung(record, selection, workload, progress)

        def begin() -> None:
            begun = self.ladder(workload).prepare_at_k(workload.problem) if made else []
            self.disassemble()
            wait(begun)  # the rung that needs them raises their errors

        make = partial(
            SimulatorBench,
            self.device,
            l2=self.l2,
            measures_errors=self.measures_errors,
            sanitizes=self._sanitizes,
        )
        for done in side_by_side(make, made, workload, here, begin):
            if done.listings is not None:
                self.listings |= done.listings
                progress.step(done.selection.label)
            yield done.selection, done.record

    def left_out(
        self, record: Record, selection: Selection, workload: Workload, plan: RunPlan
    ) -> Record:
        """The record of a reference, with a predicted time where its launches are known."""
        if record.status == "ok":
            record = with_predicted_path(record, selection, plan, workload, self)
        if record.predicted is not None:
            return record
        return super().left_out(record, selection, workload, plan)

    def ladder(self, workload: Workload) -> LadderSimulator:
        """The simulator of this workload."""
        if self._ladder is None or self._ladder.workload is not workload:
            self._ladder = LadderSimulator(workload)
        return self._ladder

    def _executed(
        self,
        record: Record,
        selection: Selection,
        kernel: Kernel,
        workload: Workload,
        progress: Progress,
    ) -> Record:
        ladder = self.ladder(workload)
        ladder.advance = lambda done, of: progress.detail(
            f"{selection.label}: {done} of {of} blocks"
        )
        try:
            found = ladder.simulate(kernel, selection, residence(record, self.device, self.l2))
        except (ShapeError, UnavailableError, UnsupportedError) as error:
            return record.noted(f"not simulated: {error}")
        except ToolkitError as error:
            return failed(record, str(error))
        assert found.check is not None
        record, listing = with_simulation(record, found, selection)
        self.listings[listing.label] = listing
        record = with_check(record, found.check)
        if self.measures_errors and record.status == "ok":
            record = replace(record, errors=errors_of_rung(kernel, selection, workload))
        return self._sanitized(record, selection, kernel, workload) if self._sanitizes else record

    def _sanitized(
        self, record: Record, selection: Selection, kernel: Kernel, workload: Workload
    ) -> Record:
        """The record with a line of the sanitizer, failed where it found something.

        What it says does not depend on the shape: once per machine code is enough.
        """
        variant = selection.variant
        assert isinstance(variant, Variant)
        if kernel.image not in self._checked:
            try:
                self._checked[kernel.image] = check_rung(
                    kernel, variant, selection.parameters, workload.seed
                )
            except ToolkitError as error:
                return record.noted(f"not sanitized: {error}")
        checked = self._checked[kernel.image]
        said = sentence(checked, variant)
        if checked.findings and record.status == "ok":
            return failed(record, said)
        return record.noted(said)


def residence(record: Record, device: Device, l2: L2State) -> Residence | None:
    """Residence of a record's launch on `device`, None if its occupancy is not known."""
    if record.occupancy is None:
        return None
    return Residence(device=device, blocks_per_sm=record.occupancy.blocks_per_sm, l2=l2)


def with_simulation(
    record: Record, execution: Execution, selection: Selection
) -> tuple[Record, Listing]:
    """The record with counters and time of a simulation, or a note on why there is no time.

    The listing is of the machine code that was executed.
    """
    variant = selection.variant
    assert isinstance(variant, Variant)
    assert execution.cubin is not None
    assert execution.executed_blocks is not None
    made = listing(execution.instructions, variant, selection.parameters)
    has_traffic = bool(MODELLED.keys() & execution.counters.keys())
    record = replace(
        record,
        simulated=Simulated(
            architecture=execution.cubin.architecture,
            compiler=execution.cubin.compiler,
            counters=dict(execution.counters),
            accesses=machine_accesses(execution.instructions),
            lines=line_counters(execution.instructions, variant),
            basis=execution.basis or "",
            blocks_executed=execution.executed_blocks,
            traffic_basis=execution.traffic_basis if has_traffic else None,
            executed=tuple(one.executed for one in execution.instructions),
            memory=execution.memory,
            listing=made.label,
        ),
        predicted=execution.predicted,
    )
    if execution.predicted is not None:
        return record, made
    unknown = "not predicted: how many of its blocks an SM can hold is not known"
    return record.noted(execution.prediction_basis or unknown), made


def listing(
    instructions: Sequence[InstructionCounts], variant: Variant, parameters: Parameters
) -> Listing:
    """Source of the rung and its machine code."""
    return Listing(
        label=variant.label(parameters),
        file=variant.file,
        source=variant.source,
        sass=tuple(one.text for one in instructions),
        lines=tuple(_own_lines(instructions, variant)),
    )


def _own_lines(instructions: Sequence[InstructionCounts], variant: Variant) -> Iterator[int]:
    """Line of each instruction in the rung's own file, 0 if it belongs to none."""
    own = cache(lambda file: PurePath(file).name in (variant.file, PYCUDA_FILE))
    for one in instructions:
        file, line = one.charged or ("", 0)
        yield line if own(file) else 0


def line_counters(
    instructions: Sequence[InstructionCounts], variant: Variant
) -> tuple[LineCounters, ...]:
    """Counters and text of each source line, without lines whose counters are all 0."""
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
