"""Records of rungs whose machine code is executed on the CPU, without a GPU.

A record has what theory says, counters, a predicted time and a verdict on the results.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from dataclasses import replace
from functools import partial
from typing import Literal

from analysis.devices import Device
from analysis.errors import ShapeError, ToolkitError, UnavailableError, UnsupportedError
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.records.profile import Record
from kernels.selection import Selection
from kernels.variant import Variant
from toolkit.execution.rung_check import check_rung, sentence
from toolkit.execution.rung_errors import errors_of_rung
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.execution.sanitizer import Checked
from toolkit.launch.host_resources import share_freed_memory
from toolkit.launch.progress import Progress
from toolkit.machine_code.disassemble import disassemble_together
from toolkit.machine_code.kernel import Kernel
from toolkit.profiling.in_theory import TheoryBench
from toolkit.profiling.plan import Plan
from toolkit.profiling.predicted_path import with_predicted_path
from toolkit.profiling.record import failed, with_check
from toolkit.profiling.rung_processes import side_by_side
from toolkit.profiling.simulated import residence, with_simulation
from toolkit.rungs.matrices import Workload


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
        sanitizes: bool = True,
        l2: L2State = DEFAULT_L2,
        measures_errors: bool = False,
    ) -> None:
        super().__init__(device)
        self.measures_errors = measures_errors
        self.l2 = l2
        share_freed_memory()
        # Python looks for unreachable cycles once in so many new objects, not in 700. Records and
        # decoded instructions live long: to look through them took 4% of a report's time.
        gc.set_threshold(50_000)
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
            sanitizes=self._sanitizes,
            l2=self.l2,
            measures_errors=self.measures_errors,
        )
        for done in side_by_side(make, made, workload, here, begin):
            if done.listings is not None:
                self.listings |= done.listings
                progress.step(done.selection.label)
            yield done.selection, done.record

    def left_out(
        self, record: Record, selection: Selection, workload: Workload, plan: Plan
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
