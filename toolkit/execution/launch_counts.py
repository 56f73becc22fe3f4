"""Counts of a launch, and the properties of its blocks that the models of traffic and time use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from analysis.errors import LaunchError
from analysis.hardware.sm_constants import constants_of
from analysis.records.counters import InstructionCounts
from analysis.records.metrics import flop
from analysis.records.profile import FirstRequest
from analysis.rounding import Check
from analysis.timing.l2_atomics import AtomicOperations
from analysis.timing.samples import Sample
from toolkit.execution.in_time import (
    MOST_INSTRUCTIONS,
    Waits,
    clocks_of_waits,
    waits_for_other_blocks,
)
from toolkit.execution.replay import Replay, blocks_of_last_sm
from toolkit.execution.sampling import Estimates
from toolkit.execution.schedule import Floats, Schedule, unequal_schedule
from toolkit.execution.traffic import L2Requests, Residence
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.machine import FaultError
from toolkit.sass.translate import Translated


@dataclass(frozen=True, kw_only=True)
class LaunchCounts(ABC):
    """Counts of all blocks of a launch, from the counts of the executed blocks.

    `RecordedCounts` and `DeclaredCounts` differ in the selection of these blocks, and in the proof
    that they represent the others. Both have the same interface for the models.
    """

    counts: NDArray[Any]  # per instruction (core.COUNT)
    blocks: int  # number of blocks that were executed
    again: Callable[[], BoundLaunch]  # binds the launch to its arguments as they were before
    basis: str  # text that names these blocks, and the proof that they represent the others
    # first request to memory of each instruction, by the number of the instruction
    requests: Mapping[int, FirstRequest] = field(default_factory=dict)
    check: Check | None = None  # verdict on the product of a rung
    # estimated counters: neither proved nor counted in all blocks
    estimates: Estimates | None = None
    # least and greatest value of each counter that is known only within bounds
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    uncertainty: str = ""  # text that warns of estimates whose intervals are not narrow
    # instructions of each block of the launch (`core.WORK`); None if unknown
    work: NDArray[Any] | None = None

    @property
    @abstractmethod
    def why_no_traffic(self) -> str:
        """Reason for a launch without modelled traffic below L1 and time, "" if there is none."""

    @property
    @abstractmethod
    def traffic_basis(self) -> str:
        """Text on the origin of the traffic below L1; completes "modelled for <device>: "."""

    def schedule(self, residence: Residence) -> Schedule | None:
        """Schedule of the blocks; None if they are equal or wait for each other."""
        if self.work is None:
            return None
        return unequal_schedule(self.work, residence.device.sm_count, residence.blocks_per_sm)

    @abstractmethod
    def asked(self, schedule: Schedule | None) -> L2Requests | str:
        """Requests of all blocks to L2, or the reason why they are unknown."""

    def replay(
        self,
        residence: Residence,
        schedule: Schedule | None,
        instructions: Sequence[InstructionCounts],
    ) -> Replay:
        """Blocks to replay in place of all. Raises UnavailableError if no blocks represent all.

        `instructions`: counts of all blocks.
        """
        if schedule is None:
            return self.unscheduled_replay(residence, instructions)
        assert self.work is not None
        return blocks_of_last_sm(
            schedule,
            self.work,
            residence.device.sm_count,
            residence.blocks_per_sm,
            self.read_by_block(),
        )

    @abstractmethod
    def unscheduled_replay(
        self, residence: Residence, instructions: Sequence[InstructionCounts]
    ) -> Replay:
        """Blocks to replay in place of all if these are equal or wait for each other."""

    @abstractmethod
    def read_by_block(self) -> Floats:
        """Number of sectors that each block of the launch reads."""

    @abstractmethod
    def sample(self, translated: Translated, residence: Residence, replay: Replay) -> Sample:
        """Streams of the blocks of `replay`, which are executed again for this.

        Raises ToolkitError or MemoryError if that is not possible.
        """

    @property
    def atomics(self) -> AtomicOperations | None:
        """Atomic operations of the launch on global memory, None if there are none."""
        return None

    @property
    def stores(self) -> AtomicOperations | None:
        """Stores of the launch to lines of global memory, None if they are not known."""
        return None

    def waits(self, kernel: Kernel, residence: Residence) -> Waits:
        """Clocks until all blocks have ended, if they wait for each other and nothing else counted.

        0 if they do not wait, or if this is not known.
        """
        if not waits_for_other_blocks(kernel):
            return Waits()
        if int(self.counts["executed"].sum()) > MOST_INSTRUCTIONS:
            return Waits(is_whole=False)
        constants, hertz = constants_of(residence.device), residence.device.clock_under_load_hz(0.0)
        try:
            return clocks_of_waits(self.again(), kernel, constants, hertz)
        except (FaultError, LaunchError):
            return Waits()

    def longer(self, residence: Residence) -> float:
        """By how much the longest block may exceed the longest executed one, relative to it.

        0 if the launch does not take as long as its longest block, or if all blocks are known.
        """
        del residence
        return 0.0

    def flop(self, instructions: Sequence[InstructionCounts]) -> int:
        """Useful floating-point operations of the launch."""
        return flop(instructions)

    @property
    def key(self) -> Mapping[str, object] | None:
        """Values that identify the streams of the launch; None if nothing shorter does."""
        return None

    def unchecked(self, blocks: int) -> Iterator[str]:
        """Yield notes on missing checks. `blocks`: number of blocks of the launch."""
        del blocks
        yield from ()
