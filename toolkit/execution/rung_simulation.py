"""Simulation of rungs at one shape, which share inputs and references."""

from __future__ import annotations

import time

from analysis.timing.predicted import Explanation
from kernels.selection import Selection
from kernels.variant import Variant
from toolkit.execution.launch_time import counted_execution, modelled_execution
from toolkit.execution.plan_executor import PlanExecutor
from toolkit.execution.traffic import Residence
from toolkit.launch.launch import Execution
from toolkit.machine_code.kernel import Kernel
from toolkit.rungs.inputs import LadderInputs
from toolkit.rungs.launch import RungLaunch, padding
from toolkit.rungs.matrices import wrong_result
from toolkit.sass.translate import translate


class LadderSimulator(LadderInputs):
    """Simulator of rungs at one shape, which share inputs and references."""

    def simulate(
        self,
        kernel: Kernel,
        selection: Selection,
        residence: Residence | None = None,
        *,
        explanation: Explanation = Explanation.EFFECTS,
    ) -> Execution:
        """Counters and verdict of one rung, with traffic below L1 and time if `residence` is given.

        The time is explained by effects unless asked otherwise: source lines take longer. Raises
        UnsupportedError for machine code that the simulator does not support, LaunchError if the
        kernel faults, ShapeError if there is not enough memory or time.
        """
        variant = selection.variant
        assert isinstance(variant, Variant)
        launch = RungLaunch(
            variant=variant, parameters=selection.parameters, problem=self.workload.problem
        )
        self.begin_rung()
        self.prepare_at_k(launch.executed)
        translated = translate(kernel)
        executor = PlanExecutor(self, translated, launch, notes=residence is not None)
        started = time.perf_counter()
        counts = executor.counted()
        assert counts.check is not None
        notes = padding(variant, launch.problem), wrong_result(counts.check)
        execution = counted_execution(
            translated,
            counts,
            launch.geometry,
            simulation_s=time.perf_counter() - started,
            notes=[note for note in notes if note],
        )
        if residence is None:
            return execution
        return modelled_execution(
            execution, translated, launch.geometry, counts, residence, explanation=explanation
        )
