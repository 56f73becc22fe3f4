"""Assembly of the `Execution` of a launch whose blocks are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import Geometry
from analysis.records.counters import of_traffic, totals
from analysis.timing.predicted import Explanation, Predicted
from toolkit.execution.doubts import doubts
from toolkit.execution.launch_counts import LaunchCounts
from toolkit.execution.launch_time import CountedLaunch
from toolkit.execution.traffic import Residence
from toolkit.launch.launch import Execution
from toolkit.machine_code.left_out import summary
from toolkit.sass.statistics import instruction_counts
from toolkit.sass.translate import Translated


def counted_execution(
    translated: Translated,
    counts: LaunchCounts,
    geometry: Geometry,
    *,
    simulation_s: float,
    outputs: tuple[NDArray[np.generic], ...] = (),
    notes: Sequence[str] = (),
) -> Execution:
    """Execution with counters, without traffic below L1 and time."""
    kernel, found = translated.kernel, counts.estimates
    instructions = instruction_counts(translated, counts.counts)
    return Execution(
        outputs=outputs,
        geometry=geometry,
        resources=kernel.resources,
        counters=totals(instructions),
        instructions=instructions,
        basis=counts.basis,
        notes=(*summary(kernel.left_out), *notes),
        cubin=kernel,
        executed_blocks=counts.blocks,
        simulation_s=simulation_s,
        estimates=found.intervals if found else {},
        unseen_share=found.unseen_share if found else None,
        uncertainty=counts.uncertainty,
        requests=counts.requests,
        check=counts.check,
    )


def modelled_execution(
    execution: Execution,
    translated: Translated,
    geometry: Geometry,
    counts: LaunchCounts,
    residence: Residence,
    *,
    explanation: Explanation = Explanation.COSTS,
) -> Execution:
    """Copy of an execution with traffic below L1 and time on a device, or why it has none."""
    device = residence.device
    traffic, time, replayed = CountedLaunch(
        translated=translated,
        geometry=geometry,
        residence=residence,
        counts=counts,
        instructions=execution.instructions,
        explanation=explanation,
    ).modelled()
    found: dict[str, Any] = {}
    if isinstance(traffic, str):
        found["traffic_basis"] = f"not modelled: {traffic}"
    else:
        found["counters"] = {**execution.counters, **of_traffic(traffic)}
        found["traffic_basis"] = f"modelled for {device.name}: {counts.traffic_basis}"
    if isinstance(time, Predicted):
        found |= {"predicted": time, "prediction_basis": f"{time.basis}{replayed}"}
        reasons = [
            *doubts(translated.kernel, execution.instructions, execution.requests),
            execution.uncertainty,
        ]
        found["uncertainty"] = ". ".join(filter(None, reasons))
    else:
        found["prediction_basis"] = f"not predicted: {time}"
    return replace(execution, device=device, **found)


def unmodelled_execution(execution: Execution, reason: str) -> Execution:
    """Copy of an execution, with the reason why it has neither traffic below L1 nor a time."""
    why = f"not modelled: {reason}"
    return replace(
        execution,
        traffic_basis=why,
        prediction_basis=f"not predicted: its traffic below L1 is {why}",
    )
