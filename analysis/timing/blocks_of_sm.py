"""Blocks that one SM runs, and the number of them to replay."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb


@dataclass(frozen=True, kw_only=True)
class OneSm:
    """Blocks of one SM in starting order, for a launch whose blocks differ.

    `orders` lists the blocks to replay by their number in the sample: all blocks of the SM, or two
    selections, of which the second one has more blocks. The totals of all blocks then follow from
    the two selections by linear extrapolation.
    """

    blocks: int  #: number of blocks of the SM
    orders: tuple[tuple[int, ...], ...]
    further: float  #: steps of the extrapolation; one step leads from the first order to the second
    rounds: float  #: time of the SM, in lifetimes of the first sampled block
    relative_work: float  #: instructions of its blocks, relative to the average SM (1 or more)
    relative_reads: float  #: sectors that its blocks read, relative to the average SM (1 or more)


def most_blocks(
    blocks: int, sms: int, per_sm: int, *, finish_at_different_times: bool = False
) -> int:
    """Number of blocks of the SM that runs the most blocks, if `per_sm` blocks fit on each SM.

    Blocks of full waves are distributed evenly. The remaining blocks go to the slots that become
    free first. If resident blocks `finish_at_different_times`, one slot of each SM becomes free
    before any SM has a second free slot. If they finish together, all slots are equally likely: the
    result then includes the largest number of remaining blocks that at least one SM is expected to
    get.
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
    """Numbers of blocks of an SM to replay: (all,), or (fewer, more) for an extrapolation.

    Fewer and more differ by `waves` waves, because resident blocks delay each other and single
    waves take different times. If the first `unlike` blocks differ from the others, both numbers
    include them and differ by one wave.
    """
    rounds = 1 if unlike else waves
    resident = min(per_sm, of_sm)
    first = max(resident, unlike)
    fewest = first + (of_sm - first) % resident
    more = resident * rounds
    return (of_sm,) if of_sm <= fewest + more else (fewest, fewest + more)
