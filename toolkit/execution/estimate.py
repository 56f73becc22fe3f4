"""How long the blocks of a launch take, from a few of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolkit.sass.machine import DEADLOCK, LIMIT, Bound, FaultError, Run

# How many turns of the workers are tried, and the most instructions of each worker: where these are
# more, fewer turns.
TRIALS = ((32, 2 * 10**7), (4, 2 * 10**7), (1, 10**8))
TRIED_PART = 1 / 32  # of all turns, at most
# What takes longer is compared with twice as many blocks: the first may do the work of others.
SHORT_S = 10.0
MOST_INSTRUCTIONS = 2 * 10**8  # of a worker in a trial: a launch with a lower limit ends soon


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
    bound: Bound,
    blocks: Sequence[int],
    workers: int,
    restore: Callable[[], None],
    *,
    waits: bool,
) -> Estimate:
    """How long `workers` will take for some blocks of a launch.

    A few from the middle of `blocks` are executed, and `restore` undoes their stores. `execute`
    takes them and the most instructions of each worker. Where blocks wait for others (`waits`), all
    are executed up to a limit; if that is not enough, a few from the first on. A fault is left to
    the run of all blocks, which finds the first one.
    """
    turn = 1 if waits or bound.in_order else workers
    turn *= bound.cluster_blocks
    count, fault = len(blocks), None

    def seconds_of(tried: int, most: int) -> float:
        nonlocal fault
        first = 0 if waits else (count - tried) // 2
        fault, started = None, time.perf_counter()
        try:
            execute(blocks[first : first + tried], most)
        except FaultError as error:
            fault = error.fault.kind
        elapsed_s = time.perf_counter() - started
        restore()
        return elapsed_s

    trials = [(turns * turn, most) for turns, most in TRIALS if turns * turn <= TRIED_PART * count]
    if waits or not trials:
        trials.insert(0, (count, TRIALS[0][1]))
    for tried, most in trials:
        elapsed_s = seconds_of(tried, most)
        if fault != LIMIT:
            break
    else:
        return Estimate(count, elapsed_s, is_least=True)
    if tried == count:
        return Estimate(count, elapsed_s)
    each_s = elapsed_s / tried
    if each_s * count > SHORT_S:
        each_s = (seconds_of(2 * tried, 2 * most) - elapsed_s) / tried
    return Estimate(count, elapsed_s + each_s * (count - tried), is_least=fault == DEADLOCK)


def announcing(
    execute: Callable[[Sequence[range], int | None], list[Run]],
    restore: Callable[[], None],
    announce: Callable[[Estimate], None],
    workers: int,
) -> Callable[[Sequence[range]], list[Run]]:
    """Runs ranges of blocks as `execute` does, and announces at the first call how long that takes.

    The first turn of the workers shows it, unless it exceeds a limit of instructions: then
    `restore` undoes its stores, and it runs again.
    """
    is_announced = False

    def run(blocks: Sequence[range]) -> list[Run]:
        nonlocal is_announced
        if is_announced or len(blocks) <= workers:
            return execute(blocks, None)
        is_announced, started = True, time.perf_counter()
        try:
            first = execute(blocks[:workers], TRIALS[0][1])
        except FaultError as error:
            if error.fault.kind != LIMIT:
                raise
            restore()
            announce(Estimate(len(blocks), time.perf_counter() - started, is_least=True))
            return execute(blocks, None)
        turns = len(blocks) / workers
        announce(Estimate(len(blocks), turns * (time.perf_counter() - started)))
        return first + execute(blocks[workers:], None)

    return run
