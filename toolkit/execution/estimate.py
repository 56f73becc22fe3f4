"""How long the blocks of a launch take, from a few of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolkit.sass.machine import DEADLOCK, LIMIT, BoundLaunch, FaultError, Run
from toolkit.sass.regions import Regions

# Trials: how many turns of the workers, and how many instructions each worker may execute. The next
# trial has fewer turns.
TRIALS = ((32, 2 * 10**7), (4, 2 * 10**7), (1, 10**8))
TRIED_PART = 1 / 32  # of all turns, at most
MOST_INSTRUCTIONS = 2 * 10**8  # of a worker in a trial: a launch with a lower limit ends soon
# A launch that seems to take longer is tried with twice as many blocks: blocks may do the work of
# others. They do if twice as many take less than this factor longer.
SHORT_S, SHARED = 10.0, 1.25


@dataclass(frozen=True)
class Estimate:
    """Wall time in seconds of so many blocks.

    `is_least`: they take longer, and it is not known how much.
    """

    blocks: int
    seconds: float
    is_least: bool = False


def estimated(
    execute: Callable[[Sequence[int], int], object],
    bound: BoundLaunch,
    blocks: Sequence[int],
    workers: int,
    *,
    waits: bool,
) -> Estimate:
    """How long `workers` will take for some blocks of a launch.

    A few from the middle of `blocks` are executed, and their stores undone. `execute` takes them
    and the most instructions of each worker. Where blocks wait for others (`waits`) or
    are not many, all are executed up to a limit; blocks that wait are then tried from the first on.
    A fault is left to the run of all blocks, which finds the first one.
    """
    turn = 1 if waits or bound.in_order else workers
    turn *= bound.cluster_blocks
    count, fault = len(blocks), None

    def clusters_of(some: Sequence[int]) -> int:
        return len(some if bound.cluster_blocks == 1 else set(map(bound.cluster_of, some)))

    def tried(number: int, most: int) -> tuple[float, int]:
        """Seconds of that many blocks, and how many clusters were executed for them."""
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
    if waits or not trials:
        trials.insert(0, (count, TRIALS[0][1]))
    for number, most in trials:
        elapsed_s, clusters = tried(number, most)
        if fault != LIMIT:
            break
    else:
        return Estimate(count, elapsed_s, is_least=True)
    if number == count:
        return Estimate(count, elapsed_s)
    rest = clusters_of(blocks) - clusters
    each_s = elapsed_s / clusters
    if elapsed_s + each_s * rest > SHORT_S:
        twice_s, of_twice = tried(2 * number, 2 * most)
        if of_twice > clusters:
            is_shared = twice_s < SHARED * elapsed_s
            each_s = 0.0 if is_shared else (twice_s - elapsed_s) / (of_twice - clusters)
    return Estimate(count, elapsed_s + each_s * rest, is_least=fault in (DEADLOCK, LIMIT))


Runs = Callable[[Sequence[range], Regions | None], list[Run]]


def announcing(
    execute: Callable[[Sequence[range], Regions | None, int | None], list[Run]],
    bound: BoundLaunch,
    announce: Callable[[Estimate], None],
    workers: int,
    *,
    at_once: bool,
) -> Runs:
    """Runs ranges of blocks as `execute` does, and announces at the first call that it takes long.

    The first turn of the workers shows it. Where that exceeds a limit of instructions, its stores
    are undone, and it runs again. `at_once`: there is only one call, whose time is announced
    in any case. No block may need another one that runs beside it.
    """
    is_first = True

    def run(blocks: Sequence[range], regions: Regions | None) -> list[Run]:
        nonlocal is_first
        if not is_first:
            return execute(blocks, regions, None)
        is_first, started = False, time.perf_counter()
        try:
            ran = execute(blocks[:workers], regions, TRIALS[0][1])
        except FaultError as error:
            if error.fault.kind != LIMIT:
                raise
            bound.restore()
            announce(Estimate(len(blocks), time.perf_counter() - started, is_least=True))
            return execute(blocks, regions, None)
        if at_once:
            turns = len(blocks) / len(ran)
            announce(Estimate(len(blocks), turns * (time.perf_counter() - started)))
        return ran + execute(blocks[workers:], regions, None) if blocks[workers:] else ran

    return run
