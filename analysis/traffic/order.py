"""Orders and groups of integer keys, several times as fast as `np.argsort` and `np.unique`.

A key and its position share one integer, which NumPy sorts with vector instructions. The order
is stable, so that it is the same on every processor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.traffic.block_schedule import Integers

KEY_BITS = 63


def stable_order(keys: Integers) -> Integers:
    """The positions of sorted keys, as `np.argsort(keys, kind="stable")`; keys are at least 0."""
    bits = max(0, len(keys) - 1).bit_length()
    room = KEY_BITS - bits
    order = _packed(keys & (1 << room) - 1, bits)
    if int(keys.max(initial=0)) >> room:
        order = order[_packed(keys[order] >> room, bits)]
    return order


def _packed(keys: Integers, bits: int) -> Integers:
    packed = keys << bits
    packed |= np.arange(len(keys))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Positions with equal keys, in ascending order of the keys.

    `first`: first position of each group. `counts`: its positions. `order`: positions, group by
    group.
    """

    first: Integers
    counts: Integers
    order: Integers

    @property
    def begins(self) -> Integers:
        """Where each group begins in `order`."""
        found: Integers = np.cumsum(self.counts) - self.counts
        return found

    @property
    def group(self) -> Integers:
        """Number of the group of each position."""
        found = np.empty(len(self.order), dtype=np.int64)
        found[self.order] = np.repeat(np.arange(len(self.counts)), self.counts)
        return found


def groups(keys: Integers) -> Groups:
    """The positions grouped by key, as `np.unique` groups them; keys are at least 0."""
    order = stable_order(keys)
    begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
    return Groups(first=order[begins], counts=np.diff(begins, append=len(order)), order=order)
