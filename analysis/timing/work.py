"""Input of the timing model: the streams and bytes of one launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from analysis.devices import Device
from analysis.errors import InputError
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.timing.blocks_of_sm import OneSm, most_blocks
from analysis.timing.l2_atomics import AtomicOperations
from analysis.timing.samples import Sample


class CountedInstruction(Protocol):
    """Counts of one machine instruction (`analysis.records.counters.InstructionCounts`)."""

    @property
    def charged(self) -> tuple[str, int] | None: ...
    @property
    def executed(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def predicated(self) -> int: ...
    @property
    def space(self) -> str | None: ...
    @property
    def action(self) -> str | None: ...
    @property
    def requests(self) -> int: ...
    @property
    def sectors(self) -> int: ...
    @property
    def wavefronts(self) -> int: ...
    @property
    def ideal(self) -> int: ...
    @property
    def bytes_per_lane(self) -> int: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Exchanged:
    """Data that blocks wait for until other blocks have written it, such as partial sums."""

    #: number of first blocks of an SM that differ from all later ones; the sample begins with them
    unlike: int = 0
    #: sectors that the modelled SM reads from L2, relative to the average SM (1 or more); the other
    #: SMs are idle while it reads the excess
    relative_l2_reads: float = 1.0
    read_back_bytes: float = 0.0  #: bytes of the launch that a block reads after another wrote them
    left_bytes: float = 0.0  #: bytes that one writing block leaves for others


NO_EXCHANGE = Exchanged()


@dataclass(frozen=True, kw_only=True)
class Work:
    """Input of the model: one launch.

    Bytes are totals of the launch. Bytes at L2 are those that SMs request, without transfers
    between partitions of L2.
    """

    #: machine code (`analysis.sm.INSTRUCTION`), in which `free_clocks` are the clocks of an access
    #: to shared memory without bank conflicts
    code: NDArray[Any]
    sample: Sample  #: streams of some blocks
    blocks: int
    blocks_per_sm: int
    shared_bytes_per_block: int
    flop: int
    l2_read_bytes: float
    l2_write_bytes: float
    dram_read_bytes: float
    dram_write_bytes: float
    l2: L2State = DEFAULT_L2  #: at the start; of a warm L2, the bytes above are those that it lacks
    code_stays: bool = True  #: the SMs have code of the launch before, if they can hold it
    dram_lone_pairs: float = 0.0  #: pairs of sectors that DRAM reads without the rest of a line
    dram_lone_writes: float = 0.0  #: the same of pairs that it writes
    dram_fill_bytes: float = (
        0.0  #: part of `dram_read_bytes`: for sectors that stores write in part
    )
    #: instructions of an average block of the launch, relative to an average sampled block
    weight: float = 1.0
    #: sectors that L2 sends, relative to those that SMs receive: one may go to several SMs of a GPC
    merged_share: float = 1.0
    copies_past_l1: bool = False  #: all asynchronous copies to shared memory pass L1 by
    #: shares of the repeated reads that come soon after the first one (`Traffic.soon_shares`)
    soon_shares: tuple[float, ...] = ()
    #: fraction of the stored sectors that L1 sends to L2 after merging adjacent stores
    sent_share: float = 1.0
    exchanged: Exchanged = NO_EXCHANGE
    #: blocks resident on one SM do so (`block_schedule.blocks_finish_at_different_times`)
    finish_at_different_times: bool = False
    #: counts of each instruction of the code over all blocks; empty: costs are not divided
    instructions: Sequence[CountedInstruction] = ()
    atomics: AtomicOperations | None = None  #: on global memory
    stores: AtomicOperations | None = None  #: to lines of global memory at which many meet
    #: clocks until all blocks have ended that wait for each other, if nothing else takes time
    clocks_of_waits: float = 0.0
    local_bytes_per_block: float = 0.0  #: local memory that an average block accesses
    of_sm: OneSm | None = None  #: blocks of the modelled SM, if those of other SMs differ from them
    #: bytes that its blocks read, relative to average ones, if they copy for others of a cluster
    copied_for_cluster: float = 1.0

    def __post_init__(self) -> None:
        if self.blocks_per_sm < 1 or self.blocks < 1 or not self.sample.replayed:
            raise InputError("a prediction needs a launch that fits on the device, and its streams")

    def local_bytes(self, device: Device) -> float:
        """Bytes of local memory that all blocks resident at a time access."""
        return self.local_bytes_per_block * min(self.blocks, self.blocks_per_sm * device.sm_count)

    def most_blocks(self, device: Device) -> int:
        """Number of blocks of the modelled SM: that of `of_sm`, or else the SM with most blocks."""
        if self.of_sm:
            return self.of_sm.blocks
        return most_blocks(
            self.blocks,
            device.sm_count,
            self.blocks_per_sm,
            finish_at_different_times=self.finish_at_different_times,
        )

    def relative_work(self, device: Device) -> float:
        """Work of the modelled SM, relative to the average of all SMs of the device."""
        if self.of_sm:
            return self.of_sm.relative_work * device.sm_count / min(self.blocks, device.sm_count)
        return self.most_blocks(device) * device.sm_count / self.blocks

    def is_out_of_step(self, device: Device) -> bool:
        """True if copies past L1 are those of several waves of blocks, several on an SM."""
        resident = self.blocks_per_sm * device.sm_count
        return self.copies_past_l1 and self.blocks_per_sm > 1 and self.blocks > resident

    @property
    def loaded_from_dram(self) -> float:
        """Bytes that DRAM reads for loads."""
        return self.dram_read_bytes - self.dram_fill_bytes

    @property
    def relative_reads(self) -> float:
        """Bytes that the modelled SM reads, relative to the average SM (1 or more)."""
        return self.of_sm.relative_reads if self.of_sm else self.copied_for_cluster
