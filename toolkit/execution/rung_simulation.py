"""Simulation of rungs at one shape: counters, verdict and time of each, from a few blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from analysis.comparison.agreement import machine_accesses
from analysis.devices import Device
from analysis.records.counters import InstructionCounts, by_line, of_traffic, totals
from analysis.records.profile import LineCounters, Listing, Record, Simulated
from analysis.rounding import Check
from analysis.timing.predicted import Predicted
from analysis.traffic.l2 import Traffic
from kernels.selection import Selection
from kernels.variant import Parameters, Variant
from toolkit.execution.rung_execution import PlanExecutor, Proven
from toolkit.execution.rung_prediction import RungModel
from toolkit.execution.traffic import Residence
from toolkit.machine_code.kernel import Kernel
from toolkit.rungs.inputs import LadderInputs
from toolkit.rungs.launch import RungLaunch
from toolkit.sass.requests import line_accesses
from toolkit.sass.statistics import instruction_counts
from toolkit.sass.translate import translate

PYCUDA_FILE = "kernel.cu"  # file name under which PyCUDA passes source to nvcc
TRAFFIC_BASIS = (
    "modelled: what each block asks of L2 follows from the executed blocks, what caches keep of it "
    "from the order in which blocks run and the sizes of their tiles (analysis.traffic.l2)"
)


def residence(record: Record, device: Device) -> Residence | None:
    """Residence of a record's launch on `device`, None if its occupancy is not known."""
    if record.occupancy is None:
        return None
    return Residence(device=device, blocks_per_sm=record.occupancy.blocks_per_sm)


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Results of a rung on the simulator."""

    simulated: Simulated
    listing: Listing
    check: Check
    predicted: Predicted | str  # the reason if there is none
    instructions: tuple[InstructionCounts, ...]


class LadderSimulator(LadderInputs):
    """Executes rungs at one shape, which share inputs and references."""

    def simulate(
        self, kernel: Kernel, selection: Selection, residence: Residence | None = None
    ) -> Simulation:
        """Counters and verdict of one rung; its traffic below L1 and time if `residence` is known.

        Raises UnsupportedError for machine code that the simulator does not support, LaunchError if
        the kernel faults, ShapeError if there is not enough memory or time.
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
        proven = executor.proven()
        instructions = instruction_counts(translated, proven.counts)
        traffic: Traffic | None = None
        time: Predicted | str = "how many of its blocks an SM can hold is not known"
        if residence is not None:
            traffic, time = RungModel(
                executor=executor, proven=proven, residence=residence, instructions=instructions
            ).modelled()
        return Simulation(
            listing=listing(instructions, variant, selection.parameters),
            simulated=_simulated(launch, kernel, proven, instructions, traffic),
            check=proven.check,
            predicted=time,
            instructions=instructions,
        )


def _simulated(
    launch: RungLaunch,
    kernel: Kernel,
    proven: Proven,
    instructions: Sequence[InstructionCounts],
    traffic: Traffic | None,
) -> Simulated:
    return Simulated(
        architecture=kernel.architecture,
        compiler=kernel.compiler,
        counters=totals(instructions) | (of_traffic(traffic) if traffic else {}),
        accesses=machine_accesses(instructions),
        lines=line_counters(instructions, launch.variant),
        basis=proven.basis,
        blocks_executed=proven.executed,
        traffic_basis=TRAFFIC_BASIS if traffic else None,
        executed=tuple(one.executed for one in instructions),
        memory=line_accesses(instructions, proven.runs.requests),
        listing=launch.label,
    )


def listing(
    instructions: Sequence[InstructionCounts], variant: Variant, parameters: Parameters
) -> Listing:
    """Source of the rung and its machine code."""
    return Listing(
        label=variant.label(parameters),
        file=variant.file,
        source=variant.source,
        sass=tuple(one.text for one in instructions),
        lines=tuple(_own_line(one, variant) for one in instructions),
    )


def _own_line(instruction: InstructionCounts, variant: Variant) -> int:
    """Line of an instruction in the rung's own file, 0 if it belongs to none."""
    is_own = PurePath(instruction.file or "").name in (variant.file, PYCUDA_FILE)
    return instruction.line or 0 if is_own else 0


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
