"""Which blocks one SM runs, and how many of them are replayed."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb


@dataclass(frozen=True, kw_only=True)
class OneSm:
    """Blocks that one SM runs where blocks of a launch differ, in the order in which they start.

    `blocks`: their number. `orders`: the sampled blocks to replay, in order: all, or two orders of
    which the second one has more. `further`: by how many times this difference the first order is
    extended to all blocks. `rounds`: time of the SM in lifetimes of the first sampled block.
    `relative_work`, `relative_reads`: what its blocks execute and read, relative to the average SM
    (1 or more).
    """

    blocks: int
    orders: tuple[tuple[int, ...], ...]
    further: float
    rounds: float
    relative_work: float
    relative_reads: float


def most_blocks(
    blocks: int, sms: int, per_sm: int, *, finish_at_different_times: bool = False
) -> int:
    """Number of blocks of the SM that runs the most blocks, `per_sm` of them resident.

    Blocks of full waves are distributed evenly. The remaining blocks go to the slots that become
    free first. If resident blocks `finish_at_different_times`, that is one slot of each SM, then a
    second one. If they finish together, all slots are equally likely, and the result is the largest
    number of remaining blocks that at least one SM is expected to get.
    """
    rounds, left = divmod(blocks, sms * per_sm)
    if finish_at_different_times or not rounds:
        return ceil(blocks / sms)
    share = left / (sms * per_sm)
    of_slots = [comb(per_sm, k) * share**k * (1 - share) ** (per_sm - k) for k in range(per_sm + 1)]
    expected = [sms * sum(of_slots[k:]) for k in range(1, per_sm + 1)]
    return rounds * per_sm + max(
        (k + 1 for k, n in enumerate(expected) if n >= 1), default=bool(left)
    )


def blocks_to_run(of_sm: int, per_sm: int, *, waves: int, unlike: int = 0) -> tuple[int, ...]:
    """Numbers of blocks of an SM to replay: all of them, or two numbers that differ by some waves.

    Resident blocks delay each other, so that waves differ. The two numbers differ by `waves`, or by
    one wave after `unlike` blocks.
    """
    rounds = 1 if unlike else waves
    resident = min(per_sm, of_sm)
    first = max(resident, unlike)
    fewest = first + (of_sm - first) % resident
    more = resident * rounds
    return (of_sm,) if of_sm <= fewest + more else (fewest, fewest + more)
