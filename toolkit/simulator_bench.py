"""Records of machine code that is executed on the CPU: counters, and a verdict on the results."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from analysis.errors import ShapeError, ToolkitError, UnavailableError, UnsupportedError
from analysis.result import Record
from kernels.registry import Selection
from toolkit.compile import Cubin
from toolkit.progress import Progress
from toolkit.records import failed, with_prediction, with_simulation
from toolkit.simulated_ladder import LadderSimulator, residence
from toolkit.theory_bench import TheoryBench
from toolkit.workload import Workload


class SimulatorBench(TheoryBench):
    """Fills the records of a plan for any device of the database, and executes the rungs.

    Where a rung cannot be simulated (no native core, an instruction that is not known, too large
    a shape), its record keeps the theory and says why in a note.
    """

    executor: Literal["simulate", "theory"] = "simulate"
    _ladder: LadderSimulator | None = None

    def _executed(
        self,
        record: Record,
        selection: Selection,
        cubin: Cubin,
        workload: Workload,
        progress: Progress,
    ) -> Record:
        if self._ladder is None or self._ladder.workload is not workload:
            self._ladder = LadderSimulator(workload)
        self._ladder.advance = lambda done, of: progress.detail(
            f"{selection.label}: {done} of {of} blocks"
        )
        try:
            found = self._ladder.simulate(cubin, selection, residence(record, self.device))
        except (ShapeError, UnavailableError, UnsupportedError) as error:
            return replace(record, notes=(*record.notes, f"not simulated: {error}"))
        except ToolkitError as error:
            return failed(record, str(error))
        self.listings[selection.label] = found.listing
        record = with_simulation(record, found.simulated, found.check)
        return with_prediction(record, found.predicted)
