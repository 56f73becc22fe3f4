"""Schedule of the blocks of a launch, for the model of traffic below L1.

Blocks start in the order of their index, as many at once as fit (`starts`). One of two blocks on an
SM may run ahead of the other (`block_progress`), SMs differ in speed (`relative_times`), and blocks
that fetch the same data together fall out of step after a while (`in_step`). These rules were
fitted on the ladder on an H100 and an H200, or measured there (docs/experiments.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.access import Copies
from analysis.devices import Device
from analysis.hardware.sm_constants import constants_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# A block that can keep the schedulers of an SM busy alone gets ahead of its co-resident block,
# which then fills the idle issue slots: the two finish half a lifetime apart, and so do all later
# ones. Observed at 1,024 threads (8 warps per scheduler), not at 256, in recorded start times of
# the ladder's blocks on an H200.
BUSY_ALONE_THREADS = 512
# Also observed at 256 threads if the kernel loads the next tile while it multiplies this one, so
# that two warps per scheduler never wait: in start and end times on an H100 (docs/experiments.md).
BUSY_AHEAD_THREADS = 256
LARGEST_BLOCK = 1024


def blocks_finish_at_different_times(
    threads_per_block: int, *, fetches_ahead: bool = False
) -> bool:
    """True if blocks resident on one SM finish at different times.

    `fetches_ahead`: the kernel loads the next tile while it computes one. Source: times of launches
    of 1 to 8 blocks per SM on an H200. Those of rungs 2 to 4 and 11 rise in steps of one block per
    SM, those of rungs 5 and 8 as if all slots of an SM became free at the same time.
    """
    return threads_per_block >= (BUSY_AHEAD_THREADS if fetches_ahead else LARGEST_BLOCK)


def starts(
    lifetimes: Floats,
    device: Device,
    blocks_per_sm: int,
    threads_per_block: int,
    *,
    fetches_ahead: bool = False,
) -> Floats:
    """Start time of each block, in units of one block lifetime. `lifetimes` uses the same unit.

    Blocks start in waves that fill all SMs. If one block keeps an SM busy alone and more blocks
    follow, each wave is divided into `blocks_per_sm` smaller ones at even intervals. A block with a
    lifetime of 0 gives its slot to the next block. `fetches_ahead`: the kernel loads the next tile
    while it computes one.
    """
    busy = lifetimes > 0
    alone = BUSY_AHEAD_THREADS if fetches_ahead else BUSY_ALONE_THREADS
    at_once = device.sm_count * blocks_per_sm
    is_staggered = threads_per_block >= alone and int(busy.sum()) > at_once
    waves_per_lifetime = blocks_per_sm if is_staggered else 1
    wave = np.maximum(np.cumsum(busy) - 1, 0) * waves_per_lifetime // at_once
    longest = np.zeros(int(wave.max(initial=0)) + 1)
    np.maximum.at(longest, wave, lifetimes / waves_per_lifetime)
    begins: Floats = (np.cumsum(longest) - longest)[wave]
    return begins


@dataclass(frozen=True, kw_only=True)
class BlockProgress:
    """Progress of blocks: elapsed time as a function of completed work.

    Arrays with one element per block. A unit of work takes `at_first` until `knee` of the work is
    complete, and `then` after that. Work and time are in units of one block lifetime.
    """

    at_first: Floats
    knee: Floats
    then: Floats

    @classmethod
    def even(cls, takes: Floats) -> BlockProgress:
        """Progress of blocks whose speed does not change."""
        return cls(at_first=takes, knee=np.full(len(takes), np.inf), then=takes)

    def time(self, block: Integers, work: Floats) -> Floats:
        """Time from the start of each `block` until `work` is complete."""
        at_first = np.minimum(work, self.knee[block])
        found: Floats = self.at_first[block] * at_first + self.then[block] * (work - at_first)
        return found


# If two blocks that fetch ahead start on an SM together, the older one runs at full speed. The
# other one has BESIDE_THE_FIRST of that speed until the first finishes. From then on it is alone on
# the SM, and a lifetime of work takes LIFE_ALONE of the first block's lifetime. LIFE_ALONE was
# measured in launches of 2048 on an H100 (docs/experiments.md). The stores that record these
# times reduce the lead, to speeds of 0.69 and 0.72; BESIDE_THE_FIRST is therefore fitted on DRAM
# reads at K = 4096, counted without such stores (docs/experiments.md). Blocks of five other rungs
# finish within 0.01 of each other.
BESIDE_THE_FIRST: dict[Copies, float] = {"loads": 0.50, "asynchronous": 0.75}
LIFE_ALONE: dict[Copies, float] = {"loads": 0.79, "asynchronous": 0.64}


def block_progress(
    lifetimes: Floats,
    device: Device,
    blocks_per_sm: int,
    threads_per_block: int,
    copies: Copies,
    *,
    fetches_ahead: bool = False,
) -> BlockProgress:
    """Progress of each block: even, unless one of two blocks of an SM runs ahead in a single wave.

    If more waves follow, `starts` staggers the blocks instead.
    """
    busy = np.flatnonzero(lifetimes > 0)
    fits = len(busy) <= device.sm_count * blocks_per_sm
    is_first = fetches_ahead and threads_per_block >= BUSY_AHEAD_THREADS and blocks_per_sm == 2
    even = BlockProgress.even(np.ones(len(lifetimes)))
    if not is_first or not fits or copies not in BESIDE_THE_FIRST:
        return even
    share, alone = BESIDE_THE_FIRST[copies], LIFE_ALONE[copies]
    slot, sm = np.divmod(np.arange(len(busy)), device.sm_count)
    of_the_first = lifetimes[busy[sm]]
    has_other = sm + device.sm_count < len(busy)
    at_first, knee, then = even.at_first.copy(), even.knee.copy(), even.then.copy()
    at_first[busy] = np.where(has_other, np.where(slot == 0, 1.0, 1 / share), alone)
    knee[busy] = np.where(has_other & (slot == 1), share * of_the_first, np.inf)
    then[busy] = alone
    return BlockProgress(at_first=at_first, knee=knee, then=then)


# If two co-resident blocks use bulk copies, one of them gets ahead a little in each wave; the more
# idle the SM, the more. Recorded: 0.009 of a lifetime where the busiest unit of the SM is idle for
# 0.22 of the time (`bulk-copy`), 0.001 to 0.002 where it is idle for 0.12 to 0.14 (the four rungs
# after it; blocks of 8192 on an H100 and an H200, docs/experiments.md).
DRIFT_OF_SLACK = 0.093  # fraction of a lifetime per fraction of idle time beyond the next number
SLACK_WITHOUT_DRIFT = 0.12


def drift(copies: Copies, blocks_per_sm: int, slack: float) -> float:
    """Fraction of a block's lifetime by which co-resident blocks drift apart per wave.

    `slack` is the fraction of time for which the busiest unit of an SM is idle.
    """
    if copies != "bulk" or blocks_per_sm != 2:
        return 0.0
    return DRIFT_OF_SLACK * max(0.0, slack - SLACK_WITHOUT_DRIFT)


def drifted(
    begins: Floats, progress: BlockProgress, lifetimes: Floats, device: Device, drift: float
) -> tuple[Floats, BlockProgress]:
    """Start times and progress of blocks, two per SM, that drift apart by `drift` per wave.

    Blocks without work do not drift, nor do blocks of the last wave that are alone on their SM.
    """
    busy = np.flatnonzero(lifetimes > 0)
    wave, position = np.divmod(np.arange(len(busy)), 2 * device.sm_count)
    slot, sm = np.divmod(position, device.sm_count)
    has_other = wave * 2 * device.sm_count + sm + device.sm_count < len(busy)
    behind = (slot - 0.5) * drift
    begins, longer = begins.copy(), np.zeros(len(lifetimes))
    begins[busy] += wave * behind
    longer[busy] = has_other * behind
    return begins, replace(
        progress, at_first=progress.at_first + longer, then=progress.then + longer
    )


# Blocks stay in step for STEPS_IN_STEP steps. Then the fraction of fetches that coincide decays.
# Pairs are (fraction at the start, steps in which it falls to 1/e of that). Fitted on the sectors
# that SMs of an H200 and an H100 read from L2 in the ladder at 512 to 8192, where K is the number
# of steps.
STEPS_IN_STEP = 512
LOADS = 1.0, 2200.0
STEPS_WITHOUT_BARRIERS = 450.0  # decays from the first step: the warps of a block drift apart too
# Blocks with bank conflicts in their shared stores stay in step longer. Fitted on `vectorized` (91
# to 113 million sectors in eight launches at 4096). One trial kernel of the part `fit` agrees; no
# kernel of the part `select` has such stores.
HELD_BY_CONFLICTS = 0.8, 60_000.0
# Blocks that copy ahead do not wait for other blocks' fetches: fewer fetches coincide from the
# start, and fewer still if one thread copies whole tiles some phases ahead and the SM has two such
# blocks.
AHEAD: dict[Copies, tuple[float, float]] = {"asynchronous": (0.8, 1100.0), "bulk": (0.6, 1850.0)}
AHEAD_WITHOUT_NEIGHBOUR = 0.8, 4500.0  # the occupancy is one block per SM
# Copies past L1 of launches whose SMs run several blocks at a time, and others after them: 0.02 to
# 0.53 in 13 launches on an H200, and more than 1 in three (docs/decisions/0195).
PAST_L1_IN_SEVERAL_WAVES = 0.35


def in_step(
    steps: float,
    *,
    has_barriers: bool,
    is_alone: bool,
    blocks_per_sm: int,
    copies: Copies = "loads",
    conflicts: bool = False,
    past_l1: bool = False,
    waves: float = 1.0,
) -> float:
    """Fraction of the fetches issued together that still coincide, for blocks of `steps` steps.

    `is_alone`: no SM gets a second block, although `blocks_per_sm` fit. `conflicts`: stores to
    shared memory have bank conflicts. `past_l1`: all copies pass L1 by. `waves`: blocks of the
    launch, relative to those that are resident at a time.
    """
    share, within = AHEAD.get(copies, LOADS)
    if copies != "loads" and blocks_per_sm == 1:
        share, within = AHEAD_WITHOUT_NEIGHBOUR
    elif past_l1 and waves > 1:
        share = PAST_L1_IN_SEVERAL_WAVES
    elif copies == "loads" and conflicts and not is_alone:
        share, within = HELD_BY_CONFLICTS
    if is_alone:
        return share
    if not has_barriers:
        return float(np.exp(-steps / STEPS_WITHOUT_BARRIERS))
    return share * float(np.exp(-max(0.0, steps - STEPS_IN_STEP) / within))


GOLDEN = 0.618034  # the fractional parts of its multiples are evenly spread, neighbours far apart

# Blocks that copy ahead never wait for data that other SMs have fetched already. Nothing keeps such
# SMs in step, and each has a speed of its own. Fitted on the DRAM reads of `split-k` and
# `async-copy` at 8192 on an H100 and an H200, where blocks 0.07 of a lifetime apart share nothing.
# The median lifetime of a block differed by 0.004 to 0.008 between the SMs of an H100 in rungs that
# copy ahead.
PACES_OF_COPIES = 0.0055
# If the blocks of an SM share a loop that is larger than the instruction cache, SMs that fetch code
# faster run ahead: a quarter of the SMs of an H100 and an H200 need no more than the 16 clocks per
# 128 bytes that two warps of a scheduler take to execute them (docs/experiments.md).
FAST_SMS = 0.25
# Lifetimes were 0.02 to 0.06 shorter there in `wide-thread-tile`, the only such rung. Fitted on its
# DRAM reads at 8192 (docs/experiments.md).
FAST_BY = 0.03


def relative_times(
    device: Device, blocks_per_sm: int, copies: Copies, *, loop_bytes: int
) -> Floats:
    """Time that each SM takes for the same work, relative to a typical SM.

    `loop_bytes` is the size of the main loop's code.
    """
    rank = np.arange(device.sm_count) * GOLDEN % 1.0
    usual: Floats = 1 + (PACES_OF_COPIES if copies != "loads" else 0.0) * rank.astype(np.float64)
    if loop_bytes <= constants_of(device).code_bytes or blocks_per_sm == 1:
        return usual
    return np.where(rank < FAST_SMS, 1 - FAST_BY, usual)
