"""Estimated wall time of a simulation, from a few blocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.machine import DEADLOCK, LIMIT, FaultError, Run
from toolkit.sass.regions import Regions

# Trials: turns of the workers, and the limit of instructions of each worker. If one reaches its
# limit, the next trial has fewer turns.
SOON = 2 * 10**7
TRIALS = ((32, SOON), (4, SOON), (1, 10**8))
TRIED_PART = 1 / 32  # largest fraction of all turns that a trial executes
# A shorter trial measures the start of threads rather than blocks. It is repeated with MORE times
# as many: of 13 million blocks, 64 took so little that all seemed to take 10 s, and took 150 s.
LEAST_S, MORE = 0.05, 8
# No time is announced for a launch whose workers have a lower limit of instructions: it ends soon.
MOST_INSTRUCTIONS = 2 * 10**8
# A launch that seems to take longer is tried again with twice as many blocks, because a block may
# take work that other blocks would do.
SHORT_S = 10.0
# Blocks share work if twice as many take less than this factor longer.
SHARED = 1.25


@dataclass(frozen=True)
class WallTime:
    """Estimated wall time of a simulation of a number of blocks."""

    blocks: int
    seconds: float
    is_least: bool = False  # `seconds` is a lower bound: the blocks take an unknown time longer
    is_of_some: bool = False  # the blocks stand for a launch, of which others are not executed


def estimated_wall_time(
    execute: Callable[[Sequence[int], int], object],
    bound: BoundLaunch,
    blocks: Sequence[int],
    workers: int,
    *,
    waits: bool,
) -> WallTime:
    """Estimated wall time of `blocks` with a number of `workers`.

    Executes a few blocks from the middle of `blocks`, and undoes their stores. `execute` takes
    these blocks and the limit of instructions of each worker. If blocks wait for others (`waits`)
    or are few, all are executed up to the limit. Beyond it, blocks that wait are tried from the
    first one on, and of few blocks one for each worker is tried. A fault does not raise: the run of
    all blocks finds the first one.
    """
    turn = 1 if waits or bound.in_order else workers
    turn *= bound.cluster_blocks
    count, fault = len(blocks), None

    def clusters_of(some: Sequence[int]) -> int:
        return len(some if bound.cluster_blocks == 1 else set(map(bound.cluster_of, some)))

    def tried(number: int, most: int) -> tuple[float, int]:
        """Wall time of `number` blocks in seconds, and the number of their clusters."""
        nonlocal fault
        first = 0 if waits else (count - number) // 2
        some, fault = blocks[first : first + number], None
        started = time.perf_counter()
        try:
            execute(some, most)
        except FaultError as error:
            fault = error.fault.kind
        elapsed_s = time.perf_counter() - started
        bound.restore()
        return elapsed_s, clusters_of(some)

    trials = [(turns * turn, most) for turns, most in TRIALS if turns * turn <= TRIED_PART * count]
    if waits:
        trials.insert(0, (count, TRIALS[0][1]))
    elif not trials:
        trials = [(count, TRIALS[0][1]), (min(turn, count), TRIALS[-1][1])]
    for number, most in trials:
        elapsed_s, clusters = tried(number, most)
        if fault != LIMIT:
            break
    else:
        return WallTime(count, elapsed_s, is_least=True)
    if number == count:
        return WallTime(count, elapsed_s)
    if fault is None and (number, most) == trials[0]:
        while elapsed_s < LEAST_S and MORE * number <= TRIED_PART * count:
            number *= MORE
            elapsed_s, clusters = tried(number, TRIALS[-1][1])
    rest = clusters_of(blocks) - clusters
    each_s = elapsed_s / clusters
    if elapsed_s + each_s * rest > SHORT_S and 2 * number <= count:
        twice_s, of_twice = tried(2 * number, 2 * most)
        if of_twice > clusters:
            may_share = waits or bound.in_order  # without atomic operations there is no queue
            is_shared = may_share and twice_s < SHARED * elapsed_s
            each_s = 0.0 if is_shared else (twice_s - elapsed_s) / (of_twice - clusters)
    return WallTime(count, elapsed_s + each_s * rest, is_least=fault in (DEADLOCK, LIMIT))


# Function that runs ranges of blocks, each worker at most so many warp instructions (None: as many
# as the caller of `simulate` allows). It follows the values of blocks if regions are given.
Execute = Callable[[Sequence[range], Regions | None, int | None], list[Run]]


def announcing(
    execute: Execute,
    bound: BoundLaunch,
    announce: Callable[[WallTime], None],
    workers: int,
    *,
    at_once: bool,
) -> Execute:
    """Function that runs ranges of blocks as `execute` does, and announces a long first call.

    The first turn of the workers is the trial. If it exceeds a limit of instructions, the time is
    announced, its stores are undone, and it runs again. `at_once`: the function is called only
    once, and the time of this call is announced in any case. No block may wait for another one.
    """
    is_first = True

    def run(blocks: Sequence[range], regions: Regions | None, most: int | None = None) -> list[Run]:
        nonlocal is_first
        is_short = most is not None and most <= TRIALS[0][1]  # it is a trial itself
        if not is_first or is_short:
            return execute(blocks, regions, most)
        is_first, started = False, time.perf_counter()
        try:
            ran = execute(blocks[:workers], regions, TRIALS[0][1])
        except FaultError as error:
            if error.fault.kind != LIMIT:
                raise
            bound.restore()
            least_s = time.perf_counter() - started
            announce(WallTime(len(blocks), least_s, is_least=True, is_of_some=not at_once))
            return execute(blocks, regions, most)
        if at_once:
            turns = len(blocks) / len(ran)
            announce(WallTime(len(blocks), turns * (time.perf_counter() - started)))
        return ran + execute(blocks[workers:], regions, most) if blocks[workers:] else ran

    return run
