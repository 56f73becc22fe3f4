"""Facts on a launch from which edits are proposed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import prod

from analysis.devices import Device
from analysis.occupancy import Occupancy, occupancy
from analysis.records.counters import InstructionCounts
from analysis.timing.predicted import Effect, Predicted
from toolkit.launch.launch import Execution
from toolkit.machine_code.source_tree import KernelSource
from toolkit.remedies.edit import Extent

LEAST_SAVED = 0.02  # of the time: smaller savings are not offered
LEAST_CONFLICTS = 1.05  # wavefronts per wavefront without bank conflicts


def conflicts(one: InstructionCounts) -> bool:
    return one.space == "shared" and one.wavefronts > LEAST_CONFLICTS * one.conflict_free


def is_uncoalesced(one: InstructionCounts) -> bool:
    return one.space in ("global", "generic") and one.sectors >= 2 * one.ideal > 0


def is_double(one: InstructionCounts) -> bool:
    return one.opcode in ("DADD", "DMUL", "DFMA", "DSETP")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A launch on a device, its source and its simulation, which has a predicted time."""

    source: KernelSource
    execution: Execution
    predicted: Predicted
    device: Device
    grid: Extent
    block: Extent
    dynamic_shared_bytes: int
    file: str

    def cost_s(self, effects: Iterable[Effect]) -> float:
        """The most that one of these effects costs, as remedies are ranked by it."""
        wanted = frozenset(effects)
        found = [one for one in self.predicted.costs if one.effect in wanted]
        return max((one.worth_s for one in found), default=0.0)

    def worst(self, effects: Iterable[Effect]) -> Effect:
        """The one of these effects that costs most; of those that cost the same alone, by part."""
        parts = {one.effect: one.time_s for one in self.predicted.costs}
        return max(effects, key=lambda one: (self.cost_s([one]), parts.get(one, 0.0)))

    def matters(self, effects: Iterable[Effect]) -> bool:
        return self.cost_s(effects) >= LEAST_SAVED * self.predicted.time_s

    def lines(self, wanted: Callable[[InstructionCounts], bool]) -> frozenset[int]:
        """Lines of the source with such an instruction, or with a call of a header's function."""
        found = set[int]()
        for one in self.execution.instructions:
            if one.executed and wanted(one):
                own = (line for file, line in one.places if file == self.file)
                found.update(islice(own, 1))
        return frozenset(found)

    def charged_lines(self, wanted: Callable[[InstructionCounts], bool]) -> tuple[int, ...]:
        """Lines of the source that such instructions count for, as in the answer on the launch."""
        places = {
            one.charged for one in self.execution.instructions if one.executed and wanted(one)
        }
        return tuple(sorted(place[1] for place in places if place and place[0] == self.file))

    @cached_property
    def conflicting_lines(self) -> frozenset[int]:
        return self.lines(conflicts)

    @cached_property
    def uncoalesced_lines(self) -> frozenset[int]:
        return self.lines(is_uncoalesced)

    @cached_property
    def double_lines(self) -> frozenset[int]:
        return self.lines(is_double)

    @cached_property
    def occupancy(self) -> Occupancy:
        resources, (x, y, z) = self.execution.resources, self.block
        return occupancy(
            self.device,
            threads_per_block=x * y * z,
            registers_per_thread=resources.registers_per_thread,
            shared_bytes_per_block=resources.static_shared_bytes + self.dynamic_shared_bytes,
        )

    @property
    def warps_per_sm(self) -> int:
        """Warps that an SM has at the same time, if the grid has a block for each that fits."""
        blocks_per_sm = -(-prod(self.grid) // self.device.sm_count)
        resident = min(self.occupancy.blocks_per_sm, blocks_per_sm)
        return resident * self.occupancy.warps_per_sm // self.occupancy.blocks_per_sm
