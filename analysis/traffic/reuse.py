"""Reuse of pieces of memory: what else is accessed between two visits to a piece.

Xiang, Ding, Luo, Bao: HOTL, a Higher Order Theory of Locality, ASPLOS 2013.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analysis.traffic.block_schedule import Floats, Integers
from analysis.traffic.order import stable_order


@dataclass(frozen=True, kw_only=True)
class Reuse:
    """Previous visit of each visit (-1: none), last visit of each piece, and gaps between visits.

    `lengths` of the gaps are sorted; `absent` is the piece that is not accessed during each gap.
    """

    previous: Integers
    last: Integers
    lengths: Floats
    absent: Integers

    def footprint(self, window: Integers) -> Callable[[Floats], Floats]:
        """Function from weights of pieces to the average footprint of a window of `window` visits.

        The mean over all windows of that length: the total weight, less the weight of the absent
        pieces. A gap of g visits without a piece contains g - w + 1 windows of w visits.
        """
        at = np.searchsorted(self.lengths, window.astype(np.float64))
        windows = np.maximum(len(self.previous) - window + 1, 1)

        def footprint(weights: Floats) -> Floats:
            absent = weights[self.absent]
            # sums over all gaps of at least this length
            weight_from = np.append(np.cumsum(absent[::-1])[::-1], 0.0)
            length_from = np.append(np.cumsum((absent * self.lengths)[::-1])[::-1], 0.0)
            missing = length_from[at] - weight_from[at] * (window - 1)
            found: Floats = float(weights.sum()) - missing / windows
            return found

        return footprint


def reuse_of(piece: Integers) -> Reuse:
    """The reuse of visits to these pieces, in order of time."""
    n = len(piece)
    order = stable_order(piece)
    is_first = np.diff(piece[order], prepend=-1) != 0
    previous = np.full(n, -1)
    previous[order[1:]] = np.where(is_first[1:], -1, order[:-1])
    last = order[np.append(is_first[1:], True)] if n else order
    first = order[is_first]
    again = np.flatnonzero(previous >= 0)
    gaps = np.concatenate([first, n - 1 - last, again - previous[again] - 1])
    by_length = stable_order(gaps)
    return Reuse(
        previous=previous,
        last=last,
        lengths=gaps[by_length].astype(np.float64),
        absent=piece[np.concatenate([first, last, again])][by_length],
    )
