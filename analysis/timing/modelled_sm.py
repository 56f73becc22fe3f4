"""The SM that the model replays: its blocks, its machine code and its share of L2 and DRAM."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.access import WAVEFRONT_BYTES
from analysis.coalescing import SECTOR_BYTES
from analysis.device_table import MIB
from analysis.devices import Device
from analysis.hardware.sm_constants import SmConstants
from analysis.l2_state import L2State
from analysis.sm import LINE_BYTES, SCHEDULERS, Kind, Machine, Numbers, Unit
from analysis.timing.blocks_of_sm import blocks_to_run
from analysis.timing.work import Work
from analysis.traffic.l2 import PAIR_BYTES, caches_of

FEWEST_L1_LINES = 64
# Fraction of L2 that is dirty when a launch begins, if the launch before it wrote other lines.
# Fitted on kernels that read; streams of 96 MiB and more write back 36 MiB (benchmarks.l2_states).
DIRTY_SHARE = 0.6
# Dirty fraction of the lines that are evicted first: on an H200, each byte that a stream reads
# costs the time of half a byte of DRAM more with a dirty L2 than with a clean one
# (benchmarks.l2_states).
DIRTY_AT_FIRST = 0.5
# Fraction of DRAM's bandwidth that is lost if it reads and writes as many bytes; the loss is in
# proportion to the fewer ones. On an H200 streams read 4.6 TB/s, write 4.5 and copy 4.4
# (benchmarks.l2_states); from two regions in turn they copy 3.9 (`mix_1_loads_1_stores_512`).
TURNAROUND = 0.07
# Share of the bytes of local memory that L2 reads from DRAM or writes to it, by the local memory of
# all resident threads relative to L2: measured on an H200 at ratios of 0.3 to 2.8 (docs/timing.md).
LOCAL_READ_FROM, LOCAL_READ_ALL = 0.75, 1.1
LOCAL_WRITTEN_FROM, LOCAL_WRITTEN_ALL = 0.4, 1.9
# Bytes that DRAM could transfer while it writes a lone pair of sectors: on an H200, 4 bytes of each
# 32 at random places of 512 MiB take 60.6 ps, of which reading the pair takes the time of
# `dram_pair_bytes` (stg_4_of_32_bytes_at_random_512_mib).
WRITTEN_PAIR_BYTES = 157
# The L2 whose rate `l2_bytes_per_clock` is: that of an H100. A slice of an H200 is as fast, and it
# has more of them: all SMs copy 35.6 bytes per clock each (cluster_1_alone_48_all_sms).
MEASURED_CAPABILITY, MEASURED_L2_BYTES = (9, 0), 50 * MIB
# Of the copies past L1 that take less than this of each line: the fraction of the fetches that meet
# those of other SMs on their way, relative to other copies. 0.2 to 0.6 in six launches on an H200
# (docs/decisions/0195).
PART_OF_LINE_BYTES = 64
PARTS_IN_STEP = 0.35
ALL_SECTORS = np.uint64(15)  # of a line in a stream, a bit each
SECTORS_OF_MASK = np.array([mask.bit_count() for mask in range(16)])
# Clocks from the last store of one SM to the end of its launch. On an H200, launches of one block
# that store once take 0.08 µs more than with an end at that store, of 132 and 1,056 blocks 0.2 µs,
# as a fence does (first_use.py).
END_OF_ONE_SM = 150
ENDS_ALONE = 2.0  # work of an SM that ends last, relative to the average SM
# Products of 8x8x4 doubles that take as long as one of them: measured on an H100.
DOUBLES_AT_ONCE = 2


@dataclass(frozen=True, kw_only=True)
class ModelledSm:
    """The SM that the model replays: that of `Work.of_sm`, or else the SM with the most blocks."""

    work: Work
    device: Device
    constants: SmConstants
    tensor_share: float = 0.0  #: of the time, for which its tensor cores are busy

    @property
    def clock_hz(self) -> float:
        """Clock that the device holds under load."""
        return self.device.clock_under_load_hz(self.tensor_share)

    @property
    def busy_sms(self) -> int:
        """Number of SMs that run blocks."""
        return min(self.work.blocks, self.device.sm_count)

    @cached_property
    def blocks(self) -> int:
        """Number of blocks that the SM runs."""
        return self.work.most_blocks(self.device)

    @property
    def resident(self) -> int:
        """Number of resident blocks."""
        return min(self.work.blocks_per_sm, self.blocks)

    @cached_property
    def numbers_of_blocks(self) -> tuple[int, ...]:
        """Numbers of blocks to replay: all of them, or two for a linear extrapolation."""
        work, sample = self.work, self.work.sample
        if work.of_sm:
            return tuple(map(len, work.of_sm.orders))
        fewest, *more = blocks_to_run(
            self.blocks, self.resident, unlike=work.exchanged.unlike, waves=sample.most_waves
        )
        return fewest, *(min(most, fewest + sample.waves_apart * self.resident) for most in more)

    @cached_property
    def code(self) -> NDArray[Any]:
        """Machine code with the pipe clocks and latencies of this SM's architecture."""
        return with_clocks(self.work.code, self.constants)

    @property
    def warps(self) -> int:
        """Number of resident warps."""
        streams = self.work.sample.replayed[0]
        return self.resident * int(np.diff(streams.first_warp).max())

    @cached_property
    def machine(self) -> Machine:
        """Input of the SM model: the architecture's numbers, and this SM's share of L2 and DRAM."""
        c, work = self.constants, self.work
        shared = work.shared_bytes_per_block + self.device.reserved_shared_bytes_per_block
        slow = _dram_work(self) / max(1.0, work.dram_read_bytes + self.dram_write_bytes)
        share = slow * work.loaded_from_dram / max(1.0, work.l2_read_bytes)
        share = min(c.dram_pair_bytes / SECTOR_BYTES, share)
        filled = work.dram_fill_bytes / max(1.0, work.l2_write_bytes)
        # bytes read, excluding partial sums of other blocks, which are in L2
        own = work.l2_read_bytes - work.exchanged.read_back_bytes
        out = self._written_back_per_byte
        l2_bytes = self.device.l2_bytes / self.busy_sms
        crowd = self.device.sm_count / self.busy_sms
        crowd *= work.exchanged.relative_l2_reads * work.relative_reads
        dram_rate = self.dram_rate * work.relative_reads
        written = min(c.most_write_bytes_per_clock, crowd * c.write_bytes_per_clock)
        # the device starts a block at a time, on all SMs in turn
        launch_clocks = round(self.busy_sms * c.next_block_s * self.clock_hz)
        # all constants that `Numbers` has under the same names, such as `shared_latency`
        numbers = {number.name: getattr(c, number.name) for number in fields(Numbers)} | {
            "block_interval": max(c.block_interval, launch_clocks),
            "fetch_clocks": _fetch_clocks(self),
            # the caches behind those of the SMs are shared
            "constant_line_clocks": c.constant_line_clocks_alone
            + (c.constant_line_clocks - c.constant_line_clocks_alone)
            * self.busy_sms
            / self.device.sm_count,
            "l2_bytes_per_clock": min(c.most_l2_bytes_per_clock, l2_bytes_per_clock(self) * crowd),
            "write_bytes_per_clock": written,
            "lookup_clocks": c.lookup_clocks / crowd,
        }
        if work.is_out_of_step(self.device):
            numbers["l2_line_bytes"] *= _l2_size(self.device)
        return Machine(
            **numbers,
            slots=self.resident,
            first_start=launch_clocks,  # of the SM that gets its first block last
            wavefront_clocks=WAVEFRONT_BYTES / self.device.shared_bytes_per_clock_per_sm,
            l1_lines=max(FEWEST_L1_LINES, (c.l1_bytes - work.blocks_per_sm * shared) // LINE_BYTES),
            # unknown: how more than two warps per scheduler share code that exceeds the cache
            code_lines=c.code_bytes // LINE_BYTES if self.warps <= 2 * SCHEDULERS else 0,
            end_clocks=_end_clocks(self),
            code_is_cached=int(work.code_stays and _code_bytes(self) <= c.code_bytes),
            first_fetch_clocks=_first_fetch_clocks(self),
            flag_clocks=self._flag_clocks,
            merged_share=_merged_share(work),
            l2_reach_bytes=caches_of(self.device).read_reach / self.busy_sms,
            dram_start=c.dirty_start_s * self.clock_hz if work.l2 is L2State.DIRTY else 0.0,
            dram_bytes_per_clock=dram_rate / self.clock_hz / self.busy_sms,
            dram_share=share * (1 + out),
            filled_share=c.fill_share
            * min(1.0, work.loaded_from_dram / max(1.0, work.l2_read_bytes)),
            stores_filled_share=c.fill_share * filled,
            dram_write_share=slow * (out * work.sent_share + filled),
            local_bytes=work.local_bytes(self.device) / self.busy_sms,
            local_read_from=LOCAL_READ_FROM * l2_bytes,
            local_read_all=LOCAL_READ_ALL * l2_bytes,
            local_written_from=LOCAL_WRITTEN_FROM * l2_bytes,
            local_written_all=LOCAL_WRITTEN_ALL * l2_bytes,
            waiting_share=min(1.0, work.loaded_from_dram / own) if own else 0.0,
        )

    @property
    def _flag_clocks(self) -> int:
        """Clocks that the block finishing a tile waits for its peers' partial sums.

        The peers store at the same time. Their stores need lines of L2, and dirty lines are written
        back to DRAM first.
        """
        exchanged, c = self.work.exchanged, self.constants
        if not exchanged.left_bytes:
            return 0
        bytes_of_sm = exchanged.read_back_bytes / self.device.sm_count
        written_back = self._written_back_per_byte * exchanged.read_back_bytes / self.dram_rate
        stored = (
            bytes_of_sm / c.write_bytes_per_clock,
            written_back * self.clock_hz,
            exchanged.left_bytes / c.most_write_bytes_per_clock,
        )
        return round(max(stored) + c.flag_latency)

    @property
    def _written_back_per_byte(self) -> float:
        """Bytes that DRAM writes per byte that enters L2, from DRAM or from stores."""
        work = self.work
        come = work.loaded_from_dram + work.l2_write_bytes
        return self.dram_write_bytes / come if come else 0.0

    @property
    def dram_write_bytes(self) -> float:
        """Bytes that DRAM writes during the launch, including lines dirty before the launch."""
        return self.work.dram_write_bytes + self.dirty_bytes

    @property
    def dirty_bytes(self) -> float:
        """Bytes of other data that were dirty before the launch and are evicted during it.

        If L2 is clean there are none; if it is warm, what the same launch left dirty is in the
        bytes that DRAM writes.
        """
        if self.work.l2 is not L2State.DIRTY:
            return 0.0
        come = self.work.loaded_from_dram + self.work.l2_write_bytes
        return min(DIRTY_SHARE * self.device.l2_bytes, DIRTY_AT_FIRST * come)

    @property
    def dram_rate(self) -> float:
        """DRAM bandwidth that kernels reach with these reads and writes, in bytes per second."""
        read, written = self.work.dram_read_bytes, self.dram_write_bytes
        fewer = 2 * min(read, written) / (read + written) if read + written else 0.0
        reached = self.constants.dram_efficiency * (1 - TURNAROUND * fewer)
        return self.device.dram_bytes_per_s * reached

    @property
    def l2_rate(self) -> float:
        """L2 bandwidth of all busy SMs together, in bytes per second."""
        return self.machine.l2_bytes_per_clock * self.busy_sms * self.clock_hz

    @property
    def below_l1_s(self) -> tuple[float, float]:
        """Lower bounds on the time from L2 and from DRAM bandwidth, in seconds."""
        work = self.work
        return (
            (work.l2_read_bytes + work.l2_write_bytes) / self.l2_rate,
            _dram_work(self) / self.dram_rate,
        )


def l2_bytes_per_clock(sm: ModelledSm) -> float:
    """Bytes that each SM reads from L2 per clock if all SMs read.

    A fetch that serves several SMs takes the time of one at L2, but crosses to each of them.
    """
    c = sm.constants
    alone = c.l2_bytes_per_clock
    if sm.work.is_out_of_step(sm.device):  # L2 keeps its clock where that of the SMs falls
        alone *= _l2_size(sm.device) * sm.device.boost_clock_hz / sm.clock_hz
    merged = min(c.merged_l2_bytes_per_clock, alone / _merged_share(sm.work))
    return max(alone, merged)


def _l2_size(device: Device) -> float:
    """The number of slices of L2, relative to the L2 whose rate is a constant."""
    is_measured = device.compute_capability == MEASURED_CAPABILITY
    return device.l2_bytes / MEASURED_L2_BYTES if is_measured else 1.0


def _code_bytes(sm: ModelledSm) -> int:
    """Size of the lines of code that the longest sample executes."""
    return sm.work.sample.replayed[-1].code_lines * LINE_BYTES


def _fetch_clocks(sm: ModelledSm) -> int:
    """Clocks per line of code that the instruction cache does not have."""
    c = sm.constants
    if _code_bytes(sm) > c.cached_code_bytes:  # it comes from L2
        return c.far_fetch_clocks
    has_several = sm.warps > SCHEDULERS  # warps per scheduler
    return c.fetch_clocks_of_several if has_several else c.fetch_clocks


def _first_fetch_clocks(sm: ModelledSm) -> int:
    """Clocks that a line of code takes more at first, because L2 does not have it.

    As many lines are on their way as from L2.
    """
    c = sm.constants
    if _code_bytes(sm) <= c.cached_code_bytes or sm.work.l2 is L2State.WARM:
        return 0
    return round(c.far_fetch_clocks * c.dram_latency / c.l2_latency)


def _end_clocks(sm: ModelledSm) -> int:
    """Clocks from the last store until the launch has ended: L2 confirms the stores of an SM.

    For all SMs together that takes as long as a fence, for one SM less. An SM with much more work
    than the others ends alone.
    """
    of_sm = sm.work.of_sm
    is_alone = of_sm and max(of_sm.relative_work, of_sm.relative_reads) >= ENDS_ALONE
    share = 0.0 if is_alone else sm.busy_sms / sm.device.sm_count
    return round(END_OF_ONE_SM + share * (sm.constants.fence_clocks - END_OF_ONE_SM))


def _merged_share(work: Work) -> float:
    """Sectors that L2 sends, relative to those that SMs receive.

    Copies of small parts of lines seldom meet those of other SMs on their way.
    """
    if work.copies_past_l1 and _bytes_of_copied_lines(work) < PART_OF_LINE_BYTES:
        return 1 - PARTS_IN_STEP * (1 - work.merged_share)
    return work.merged_share


def _bytes_of_copied_lines(work: Work) -> float:
    """Bytes that a copy past L1 takes of each of its lines, on average."""
    copies = [one for one in work.instructions if one.action == "copy" and one.sectors]
    streams = work.sample.replayed[-1]
    is_copy = work.code["kind"][streams.steps["pc"]] == Kind.COPY
    sectors = streams.lines[np.repeat(is_copy, streams.steps["lines"])] & ALL_SECTORS
    if not copies or not sectors.size:
        return LINE_BYTES
    used = sum(one.ideal for one in copies) / sum(one.sectors for one in copies)
    return SECTOR_BYTES * used * float(SECTORS_OF_MASK[sectors].mean())


def _dram_work(sm: ModelledSm) -> float:
    """Bytes that DRAM could transfer in the time of what it transfers."""
    work = sm.work
    transferred = work.dram_read_bytes + sm.dram_write_bytes
    read_alone = sm.constants.dram_pair_bytes - PAIR_BYTES  # more than their bytes
    written_alone = WRITTEN_PAIR_BYTES - SECTOR_BYTES
    return transferred + work.dram_lone_pairs * read_alone + work.dram_lone_writes * written_alone


def with_clocks(code: NDArray[Any], constants: SmConstants) -> NDArray[Any]:
    """Copy of the machine code with pipe clocks and latencies by unit.

    Latencies of loads are in `Numbers` instead.
    """
    timed = code.copy()
    units = constants.units
    # chips with few lanes for FP64 convert to and from 64 bits as slowly, all others on the XU
    pipe = Unit.XU if units[Unit.CONVERT_64] <= units[Unit.XU] else Unit.FP64
    timed["unit"][code["unit"] == Unit.CONVERT_64] = pipe
    for unit, clocks in constants.units.items():
        timed["pipe_clocks"][code["unit"] == unit] = clocks
    for unit, clocks in constants.latencies.items():
        timed["latency"][timed["unit"] == unit] = clocks
    is_product = code["kind"] == Kind.PRODUCT  # it waits in a queue of its own
    timed["pipe_clocks"][is_product] = 0
    is_double = code["unit"] == Unit.TENSOR_DOUBLE
    least = constants.units[Unit.TENSOR_DOUBLE]
    work = code["argument"][is_double] * least // DOUBLES_AT_ONCE
    timed["pipe_clocks"][is_double] = np.maximum(work, least)
    timed["latency"][is_double] += work
    return timed
