"""Everything that the report of one launch is made of, predicted, measured or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from analysis.comparison.statistics import median_interval
from analysis.devices import DEVICES, Device
from analysis.geometry import Geometry
from analysis.hardware.sm_constants import constants_of
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.occupancy import Resources
from analysis.records.counters import InstructionCounts, of_lines
from analysis.records.launch import LaunchDocument
from analysis.records.profile import LineAccess
from analysis.records.remedy import Remedy
from analysis.timing.predicted import Predicted
from reports.sections.answer import Answer, answer


@dataclass(frozen=True, kw_only=True)
class LaunchReport:
    """One launch of a kernel.

    `file` is the name of its source and `source` the text, None where they are not known.
    `predicted` is the time on `device`, None where `prediction_basis` says why there is none.
    `samples_s` are measured times, empty without a measurement. `instructions` and `counters` are
    empty if the launch was not executed on the CPU; `basis` and `traffic_basis` say how they were
    obtained. `memory` has accesses with their first requests. `command` repeats the launch.
    """

    name: str
    resources: Resources
    file: str | None = None
    source: str | None = None
    geometry: Geometry | None = None
    device: Device | None = None
    predicted: Predicted | None = None
    prediction_basis: str | None = None
    samples_s: tuple[float, ...] = ()
    instructions: Sequence[InstructionCounts] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    memory: Sequence[LineAccess] = ()
    basis: str | None = None
    traffic_basis: str | None = None
    notes: Sequence[str] = ()
    uncertainty: str = ""
    estimates: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    remedies: Sequence[Remedy] = ()
    command: str | None = None
    is_rung: bool = False
    l2: L2State = DEFAULT_L2  #: what measured launches found

    @property
    def measured_s(self) -> float | None:
        return median(self.samples_s) if self.samples_s else None

    @property
    def time_s(self) -> float | None:
        """The measured time, else the predicted one."""
        if self.measured_s is not None:
            return self.measured_s
        return self.predicted.time_s if self.predicted else None

    @cached_property
    def answer(self) -> Answer:
        return answer(
            self.name,
            self.predicted,
            self.instructions,
            self.device,
            self.file,
            measured_s=self.measured_s,
            interval=median_interval(self.samples_s),
            basis=self.prediction_basis,
            blocks=self.geometry.blocks if self.geometry else None,
            l2=self.l2 if self.samples_s else None,
        )

    @property
    def verdict(self) -> str:
        """First three lines of `simulate`, `run` and `report`: the time, its cause, the line.

        The first one also says that counters are estimates, or constants of another architecture.
        """
        found = self.answer
        doubts = [f"{self.uncertainty}."] if self.uncertainty else []
        if self.predicted and self.device and (source := constants_of(self.device).taken_from):
            arch = self.device.sm_arch
            doubts.append(f"Most constants are those of {source}, not of {arch}.")
        first = " ".join((found.time_sentence, *doubts))
        return "\n".join((first, found.cause_sentence, found.line_sentence))

    @cached_property
    def lines(self) -> dict[tuple[str, int], list[InstructionCounts]]:
        """Executed instructions of each (file, line)."""
        return of_lines(one for one in self.instructions if one.executed)

    @property
    def work_s(self) -> float | None:
        """Predicted time without the cost of any launch, of which units are busy for a share."""
        predicted = self.predicted
        return predicted.time_s - predicted.launch_s if predicted else None

    def line_s(self, file: str, line: int) -> float | None:
        """Predicted cost of a source line, None if it is not known."""
        costs = self.predicted.lines if self.predicted else ()
        found = [one.time_s for one in costs if (one.file, one.line) == (file, line)]
        return found[0] if found else None


def report_of(document: LaunchDocument) -> LaunchReport:
    """The report of a launch that was saved; of its source it has the executed lines alone."""
    return LaunchReport(
        name=document.kernel,
        resources=document.resources,
        file=document.source,
        source=document.source_text,
        geometry=document.launched.geometry,
        device=DEVICES.get(document.device or ""),
        predicted=document.predicted,
        prediction_basis=document.prediction_basis,
        samples_s=document.samples_s,
        instructions=document.instructions,
        counters=document.counters,
        basis=document.basis,
        traffic_basis=document.traffic_basis,
        notes=document.notes,
        uncertainty=document.uncertainty,
        l2=document.l2,
        estimates=document.estimates or {},
        remedies=document.remedies,
        command=document.command,
        is_rung=document.rung is not None,
    )
