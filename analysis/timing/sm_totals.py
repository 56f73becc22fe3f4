"""Totals of one SM, which grow linearly with its blocks and with their length."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.sm import Ran, Unit


@dataclass(frozen=True, kw_only=True)
class SmTotals:
    """Totals of one SM over a launch, in clocks but for `issued`; of units, over all schedulers."""

    clocks: float
    issued: float  # warp instructions
    multiply_adds: float  # of the units for them
    load_store: float
    shared: float
    stores: float  # to L2
    constants: float  # of the unit that reads them by addresses in registers
    products: float  # of integers: they have one of the two halves of those units
    logic: float
    double: float
    half: float
    special: float

    @classmethod
    def of(cls, ran: Ran) -> SmTotals:
        busy = ran.unit_busy
        return cls(
            clocks=ran.clocks,
            issued=ran.issued,
            multiply_adds=busy[Unit.FMA] + busy[Unit.FMA_HEAVY] + busy[Unit.FMA_WIDE],
            load_store=ran.load_store_busy,
            shared=ran.shared_busy,
            stores=ran.write_clocks,
            constants=ran.constant_busy,
            products=busy[Unit.FMA_HEAVY] + busy[Unit.FMA_WIDE],
            logic=busy[Unit.ALU],
            double=busy[Unit.FP64],
            half=busy[Unit.HALF],
            special=busy[Unit.XU],
        )

    def times(self, factor: float) -> SmTotals:
        return SmTotals(**{name: factor * value for name, value in vars(self).items()})

    def line_to(self, other: SmTotals, steps: float) -> SmTotals:
        """Linear extrapolation: this point plus `steps` times the difference to `other`."""
        mine, others = vars(self), vars(other)
        return SmTotals(**{name: mine[name] + steps * (others[name] - mine[name]) for name in mine})
