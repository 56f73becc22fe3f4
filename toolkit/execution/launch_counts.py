"""Counts of a launch, and what the models of traffic and time ask of its blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from analysis.records.counters import InstructionCounts
from analysis.records.metrics import flop
from analysis.records.profile import FirstRequest
from analysis.rounding import Check
from analysis.timing.l2_atomics import AtomicOperations
from analysis.timing.samples import Sample
from toolkit.execution.replay import Replay
from toolkit.execution.sampling import Estimates
from toolkit.execution.schedule import Schedule
from toolkit.execution.traffic import Asked, Residence
from toolkit.sass.translate import Translated


@dataclass(frozen=True, kw_only=True)
class LaunchCounts(ABC):
    """Counts of all blocks of a launch, from those of the executed ones.

    `RecordedCounts` and `DeclaredCounts` differ in which blocks are executed and in what says that
    these represent the others. Models ask both the same.
    """

    counts: NDArray[Any]  # per instruction (core.COUNT)
    blocks: int  # number of blocks that were executed
    basis: str  # which blocks these are, and why they represent the others
    requests: Mapping[int, FirstRequest] = field(default_factory=dict)  # by number of instruction
    check: Check | None = None  # verdict on the product of a rung
    estimates: Estimates | None = None  # of counters that are neither proved nor counted in all
    uncertainty: str = ""  # says that counters are estimates, where they are not narrow

    @property
    @abstractmethod
    def why_no_traffic(self) -> str:
        """Why traffic below L1 and time are not modelled, "" if they are."""

    @property
    @abstractmethod
    def traffic_basis(self) -> str:
        """How traffic below L1 follows from the executed blocks; completes "modelled for ...: "."""

    def schedule(self, residence: Residence) -> Schedule | None:
        """Schedule of the blocks if they differ and do not wait for each other."""
        del residence
        return None

    @abstractmethod
    def asked(self, schedule: Schedule | None) -> Asked | str:
        """Requests of all blocks to L2, or why they are not known."""

    @abstractmethod
    def replay(
        self,
        residence: Residence,
        schedule: Schedule | None,
        instructions: Sequence[InstructionCounts],
    ) -> Replay:
        """Blocks that are replayed in place of all. Raises UnavailableError if none represent them.

        `instructions` count all blocks.
        """

    @abstractmethod
    def sample(self, translated: Translated, residence: Residence, replay: Replay) -> Sample:
        """Streams of the replayed blocks, which are executed again.

        Raises ToolkitError or MemoryError if that is not possible.
        """

    @property
    def atomics(self) -> AtomicOperations | None:
        """Atomic operations of the launch on global memory, None if there are none."""
        return None

    def flop(self, instructions: Sequence[InstructionCounts]) -> int:
        """Useful floating-point operations of the launch."""
        return flop(instructions)

    @property
    def key(self) -> Mapping[str, object] | None:
        """Values that identify the streams of the launch; None if only the streams do."""
        return None

    def unchecked(self, blocks: int) -> Iterator[str]:
        """What was not checked if a part of the `blocks` of the launch was executed."""
        del blocks
        yield from ()
