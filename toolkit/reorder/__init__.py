"""Multiply-adds of compiled kernels in an order, and with results in registers, that the banks of
the register file deliver with fewer conflicts: the same bits (docs/reorder.md).
"""

from toolkit.reorder.kernel import LoopChange, Reordered, reorder

__all__ = ["LoopChange", "Reordered", "reorder"]
