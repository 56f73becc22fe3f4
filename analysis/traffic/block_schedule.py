"""When the blocks of a launch run, for the model of traffic below L1.

Blocks start in the order of their index, as many at once as fit (`starts`); one of two on an SM may
go first (`courses`), SMs keep paces of their own (`paces`), and what blocks fetch together they do
for a while (`in_step`). These rules were fitted on the ladder on an H100 and an H200, or measured
there (docs/experiments.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.access import Copies
from analysis.devices import Device
from analysis.hardware.sm_constants import constants_for

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# A block that can keep an SM's schedulers busy alone gets ahead of the one beside it, which then
# fills its gaps: they end half a life apart, and so do all that follow. Seen at 1,024 threads (8
# warps per scheduler), not at 256, in recorded start times of the ladder's blocks on an H200; and
# at 256 where the next tile comes while this one is multiplied, so that two warps per scheduler
# never wait, in start and end times on an H100 (benchmarks/block_times.py).
BUSY_ALONE_THREADS, BUSY_AHEAD_THREADS = 512, 256
LARGEST_BLOCK = 1024


def end_apart(threads_per_block: int, *, fetches_ahead: bool = False) -> bool:
    """Whether blocks end apart that an SM runs at a time.

    `fetches_ahead` says that the next tile comes while one is computed. Times of launches of 1 to 8
    blocks per SM, on an H200: those of rungs 2 to 4 and 11 rise by steps of one block per SM, those
    of rungs 5 and 8 as if each slot became free at the same time.
    """
    return threads_per_block >= (BUSY_AHEAD_THREADS if fetches_ahead else LARGEST_BLOCK)


def starts(
    lives: Floats,
    device: Device,
    blocks_per_sm: int,
    threads_per_block: int,
    *,
    fetches_ahead: bool = False,
) -> Floats:
    """When each block begins, in lifetimes of a block; `lives` says how long each takes, likewise.

    In waves of all SMs' blocks, or, where a block keeps an SM busy alone and others follow, in as
    many smaller waves, evenly apart. Those that take no time leave their place to the next.
    `fetches_ahead` says that the next tile comes while one is computed.
    """
    busy = lives > 0
    alone = BUSY_AHEAD_THREADS if fetches_ahead else BUSY_ALONE_THREADS
    at_once = device.sm_count * blocks_per_sm
    is_apart = threads_per_block >= alone and int(busy.sum()) > at_once
    waves_of_a_life = blocks_per_sm if is_apart else 1
    wave = np.maximum(np.cumsum(busy) - 1, 0) * waves_of_a_life // at_once
    longest = np.zeros(int(wave.max(initial=0)) + 1)
    np.maximum.at(longest, wave, lives / waves_of_a_life)
    begins: Floats = (np.cumsum(longest) - longest)[wave]
    return begins


@dataclass(frozen=True, kw_only=True)
class Courses:
    """How blocks get on: the time that work takes, in lifetimes for what takes others one.

    Arrays of one length: a block takes `at_first` until `knee` of its work is done, then `then`.
    """

    at_first: Floats
    knee: Floats
    then: Floats

    @classmethod
    def even(cls, takes: Floats) -> Courses:
        """Of blocks that keep their pace."""
        return cls(at_first=takes, knee=np.full(len(takes), np.inf), then=takes)

    def time(self, block: Integers, work: Floats) -> Floats:
        """When blocks have done so much of their work, since they began."""
        at_first = np.minimum(work, self.knee[block])
        found: Floats = self.at_first[block] * at_first + self.then[block] * (work - at_first)
        return found


# Of two blocks that begin on an SM together, where they fetch ahead, the older one goes first: the
# other has this share of its pace, and when the first one is done the pace of a block that has an
# SM to itself, which takes so much of the first one's time. The lives are recorded ones of 2048 on
# an H100 (benchmarks/block_times.py). Stores that record times bring blocks together, to shares of
# 0.69 and 0.72: these here are fitted on DRAM reads at K = 4096, counted without such stores
# (docs/experiments.md). Blocks of five other rungs end within 0.01 of each other.
BESIDE_THE_FIRST: dict[Copies, float] = {"loads": 0.50, "asynchronous": 0.75}
LIFE_ALONE: dict[Copies, float] = {"loads": 0.79, "asynchronous": 0.64}


def courses(
    lives: Floats,
    device: Device,
    blocks_per_sm: int,
    threads_per_block: int,
    copies: Copies,
    *,
    fetches_ahead: bool = False,
) -> Courses:
    """How blocks get on: evenly, but where one of two goes first and none follows them.

    Those that are followed, `starts` has apart from the first on.
    """
    busy = np.flatnonzero(lives > 0)
    fits = len(busy) <= device.sm_count * blocks_per_sm
    is_first = fetches_ahead and threads_per_block >= BUSY_AHEAD_THREADS and blocks_per_sm == 2
    even = Courses.even(np.ones(len(lives)))
    if not is_first or not fits or copies not in BESIDE_THE_FIRST:
        return even
    share, alone = BESIDE_THE_FIRST[copies], LIFE_ALONE[copies]
    slot, sm = np.divmod(np.arange(len(busy)), device.sm_count)
    of_the_first = lives[busy[sm]]
    has_other = sm + device.sm_count < len(busy)
    at_first, knee, then = even.at_first.copy(), even.knee.copy(), even.then.copy()
    at_first[busy] = np.where(has_other, np.where(slot == 0, 1.0, 1 / share), alone)
    knee[busy] = np.where(has_other & (slot == 1), share * of_the_first, np.inf)
    then[busy] = alone
    return Courses(at_first=at_first, knee=knee, then=then)


# Of two blocks of an SM that copy in bulk one gets ahead a little in each wave, the more the SM
# idles: by 0.009 of a life where its busiest unit has 0.22 of the time left (`bulk-copy`), by
# 0.001 to 0.002 at 0.12 to 0.14 (four rungs after it; recorded times of blocks of 8192 on an H100
# and an H200, benchmarks/block_times.py).
DRIFT_OF_SLACK, SLACK_WITHOUT_DRIFT = 0.093, 0.12


def drift(copies: Copies, blocks_per_sm: int, slack: float) -> float:
    """By how much of a life the blocks of an SM move apart in each wave.

    `slack` is the share of time for which the busiest unit of an SM has nothing to do.
    """
    if copies != "bulk" or blocks_per_sm != 2:
        return 0.0
    return DRIFT_OF_SLACK * max(0.0, slack - SLACK_WITHOUT_DRIFT)


def drifted(
    begins: Floats, courses: Courses, lives: Floats, device: Device, drift: float
) -> tuple[Floats, Courses]:
    """When blocks begin, two to an SM, and how they get on, where they move apart so fast.

    Those with nothing to do do not move, nor do those of a last wave that have an SM to themselves.
    """
    busy = np.flatnonzero(lives > 0)
    wave, place = np.divmod(np.arange(len(busy)), 2 * device.sm_count)
    slot, sm = np.divmod(place, device.sm_count)
    has_other = wave * 2 * device.sm_count + sm + device.sm_count < len(busy)
    behind = (slot - 0.5) * drift
    begins, longer = begins.copy(), np.zeros(len(lives))
    begins[busy] += wave * behind
    longer[busy] = has_other * behind
    return begins, replace(courses, at_first=courses.at_first + longer, then=courses.then + longer)


# Blocks stay in step for a while, then fall out of it, the share of meetings to 1/e in so many
# more steps: fitted on the sectors that SMs of an H200 and an H100 read from L2 in the ladder at
# 512 to 8192, K being the steps.
STEPS_IN_STEP = 512
LOADS = 1.0, 2200.0
STEPS_WITHOUT_BARRIERS = 450.0  # from the first on: warps of a block drift apart themselves
STEPS_ALONE = 9000.0  # one block per SM: nobody takes its turns
# Blocks whose stores to shared memory conflict stay in step longer. Fitted on `vectorized` (91 to
# 113 million sectors in eight launches at 4096). One kernel on trial agrees, of the
# part `fit`; none of the part `select` has such stores.
HELD_BY_CONFLICTS = 0.8, 60_000.0
# Blocks that copy ahead wait for nobody: fewer meet from the start on, and fewer still where one
# thread asks for whole tiles, some phases ahead, beside another block that does the same.
AHEAD: dict[Copies, tuple[float, float]] = {"asynchronous": (0.8, 1100.0), "bulk": (0.6, 1850.0)}
AHEAD_WITHOUT_NEIGHBOUR = 0.8, 4500.0  # where an SM has room for one
ALONE_WITH_FEW_WARPS: dict[Copies, float] = {"asynchronous": 0.3, "bulk": 0.5}  # one per scheduler


def in_step(
    steps: float,
    *,
    has_barriers: bool,
    is_alone: bool,
    threads_per_block: int,
    blocks_per_sm: int,
    copies: Copies = "loads",
    conflicts: bool = False,
) -> float:
    """The share of simultaneous fetches that still meet, over blocks of so many steps.

    `is_alone` says that no SM gets a second block, though it may have room for `blocks_per_sm`;
    `conflicts` that what comes to shared memory does so with bank conflicts.
    """
    has_few_warps = threads_per_block < BUSY_AHEAD_THREADS
    share, within = AHEAD.get(copies, LOADS)
    if copies != "loads" and blocks_per_sm == 1:
        share, within = AHEAD_WITHOUT_NEIGHBOUR
    elif copies == "loads" and conflicts and not is_alone:
        share, within = HELD_BY_CONFLICTS
    elif is_alone and has_few_warps:
        share = ALONE_WITH_FEW_WARPS.get(copies, share)
    if is_alone:
        return share * float(np.exp(-steps / STEPS_ALONE))
    if not has_barriers:
        return float(np.exp(-steps / STEPS_WITHOUT_BARRIERS))
    return share * float(np.exp(-max(0.0, steps - STEPS_IN_STEP) / within))


GOLDEN = 0.618034  # its multiples, less whole numbers, are even, and far apart for neighbours

# SMs whose blocks copy ahead never wait for what others have fetched already, so that nothing keeps
# them together: each goes at its own pace. Fitted on what DRAM gave an H100 and an H200 in
# `split-k` and `async-copy` at 8192, where blocks 0.07 of a life apart share nothing. The
# median life of a block was seen to differ by 0.004 to 0.008 between the SMs of an H100 that run
# rungs which copy ahead.
PACES_OF_COPIES = 0.0055
# Where the blocks of an SM share a loop of more code than it keeps, SMs that fetch it faster are
# ahead: a quarter of those of an H100 and an H200 need no more than the 16 clocks per 128 bytes
# that two warps of a scheduler take to execute them (benchmarks/code_fetch.py). Lives were 0.02
# to 0.06 shorter there in `wide-thread-tile`, the only such rung: fitted on what DRAM gave it at
# 8192 (docs/experiments.md).
FAST_SMS, FAST_BY = 0.25, 0.03


def paces(device: Device, blocks_per_sm: int, copies: Copies, *, loop_bytes: int) -> Floats:
    """How long each SM takes for what takes a usual one 1, of a loop of so many bytes of code."""
    place = np.arange(device.sm_count) * GOLDEN % 1.0
    usual: Floats = 1 + (PACES_OF_COPIES if copies != "loads" else 0.0) * place.astype(np.float64)
    if loop_bytes <= constants_for(device.sm_arch).code_bytes or blocks_per_sm == 1:
        return usual
    return np.where(place < FAST_SMS, 1 - FAST_BY, usual)
