"""Multiply-adds of compiled kernels in an order, and with operands in an order, that the register
banks can deliver.

>>> from toolkit.reorder import reorder  # doctest: +SKIP
>>> reorder(cubin).image  # doctest: +SKIP
"""

from toolkit.reorder.kernel import LoopChange, Reordered, reorder

__all__ = ["LoopChange", "Reordered", "reorder"]
