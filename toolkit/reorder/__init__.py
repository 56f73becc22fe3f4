"""Reorder the multiply-adds of a compiled kernel so that register banks conflict less.

Comes in: a cubin. Goes out: a cubin that computes the same bits with fewer bank conflicts. Start
with `kernel`; docs/reorder.md has the measurements.
"""

from toolkit.reorder.kernel import LoopChange, Reordered, reorder

__all__ = ["LoopChange", "Reordered", "reorder"]
