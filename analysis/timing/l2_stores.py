"""Time that L2 needs for stores to few lines: the queue of its busiest slice.

A slice of L2 makes the stores to its lines one after the other, as it does atomic operations
(`analysis.timing.l2_atomics`), in `store_s` per request of a warp for one sector, up to
`store_line_s` for a line. Stores of an SM to a line that nothing comes between are merged, which
is not modelled. docs/timing.md ("Stores to one address") has the measurements.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import LINE_BYTES, SECTOR_BYTES
from analysis.hardware.sm_constants import SmConstants
from analysis.timing.l2_atomics import (
    AtomicOperations,
    AtomicTime,
    crowded_s,
    slice_of,
    slices_of,
    words_of_crowd,
)

SECTORS_OF_LINE = LINE_BYTES // SECTOR_BYTES
# Stores to a line, below which a line is one of many: L2's write bandwidth has their time.
MEETING = 1024


def stores_that_meet(stores: AtomicOperations) -> AtomicOperations | None:
    """Those stores of which many meet at one line; None if there are none."""
    chosen = stores.requests >= MEETING
    if not chosen.any():
        return None
    names = ("line", "requests", "parts", "wholes", "additions", "first", "last", "instruction")
    return replace(
        stores,
        **{name: getattr(stores, name)[chosen] for name in names},
        other_parts=0.0,
        other_wholes=0.0,
    )


def store_time(stores: AtomicOperations, l2_bytes: int, constants: SmConstants) -> AtomicTime:
    """Time that L2 of `l2_bytes` needs for these stores."""
    slices = slices_of(l2_bytes, constants)
    place = slice_of(stores.line, slices)
    of_sector_s = (constants.store_line_s - constants.store_s) / (SECTORS_OF_LINE - 1)
    of_line_s = constants.store_s * stores.requests
    of_line_s = of_line_s + of_sector_s * (stores.parts - stores.requests)
    seconds, count = (np.bincount(place, x, slices) for x in (of_line_s, stores.requests))
    busiest = int(seconds.argmax())
    least_s = float(seconds[busiest])
    queue_s = crowded_s(stores, of_line_s, place, slices, least_s, constants.atomic_window)
    return AtomicTime(
        time_s=queue_s,
        basis=f"{count[busiest]:,.0f} stores of warps in the busiest of {slices} L2 slices, "
        f"{1e9 * least_s / count[busiest]:.2f} ns each{words_of_crowd(queue_s, least_s)}",
    )


def shares_of_instructions(stores: AtomicOperations, instructions: int) -> NDArray[np.float64]:
    """Part of the stores that each of so many instructions makes."""
    made = np.zeros(instructions)
    np.add.at(made, stores.instruction, stores.requests / stores.requests.sum())
    return made
