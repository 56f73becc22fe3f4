"""Totals of one SM, which grow linearly with its blocks and with their length."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.sm import Ran, Unit


@dataclass(frozen=True, kw_only=True)
class SmTotals:
    """Totals of one SM over a launch, in clocks except for the first three after `clocks`.

    Busy clocks of pipes are sums over the four schedulers.
    """

    clocks: float  #: duration
    issued: float  #: warp instructions
    written_slots: float  #: issue slots that registers written by loads take
    l2_read_bytes: float  #: bytes that miss L1
    multiply_adds: float  #: busy clocks of the FMA pipes
    load_store: float  #: busy clocks of the load/store unit, including shared memory
    l1: float  #: the same without shared memory
    shared: float  #: busy clocks of shared memory, which products of warpgroups read too
    stores: float  #: clocks that stores to L2 take
    lookups: float  #: clocks in which L2 looks up lines of loads and stores
    constants: float  #: busy clocks of the unit that loads constants at addresses in registers
    products: float  #: busy clocks of the half of the FMA pipes that multiplies integers
    logic: float  #: busy clocks of the ALU pipes
    double: float  #: busy clocks of the FP64 pipes
    half: float  #: busy clocks of the FP16 pipes
    special: float  #: busy clocks of the XU pipes
    tensor: float  #: busy clocks of the tensor cores
    tensor_doubles: float  #: the part of them with products of doubles

    @classmethod
    def of(cls, ran: Ran) -> SmTotals:
        busy = ran.unit_busy
        return cls(
            clocks=ran.clocks,
            issued=ran.issued,
            written_slots=ran.written_slots,
            l2_read_bytes=ran.l2_read_bytes,
            multiply_adds=busy[Unit.FMA] + busy[Unit.FMA_HEAVY] + busy[Unit.FMA_WIDE],
            load_store=ran.load_store_busy,
            l1=max(ran.load_store_busy - ran.shared_busy, ran.bypass_busy),
            shared=ran.shared_busy + ran.product_reads,
            stores=ran.write_clocks,
            lookups=ran.lookup_clocks,
            constants=ran.constant_busy,
            products=busy[Unit.FMA_HEAVY] + busy[Unit.FMA_WIDE],
            logic=busy[Unit.ALU],
            double=busy[Unit.FP64],
            half=busy[Unit.HALF],
            special=busy[Unit.XU],
            tensor_doubles=busy[Unit.TENSOR_DOUBLE],
            tensor=busy[Unit.TENSOR] + busy[Unit.TENSOR_SHORT] + busy[Unit.TENSOR_DOUBLE],
        )

    @property
    def data_path(self) -> float:
        """Busy clocks of L1's data path, which takes wavefronts of shared memory and of L1."""
        return max(self.load_store, self.shared)

    @property
    def bound_by_shared(self) -> float:
        """Clocks of shared memory, or of all of the data path if most of its clocks are these."""
        return self.data_path if self.shared >= self.l1 else self.shared

    @property
    def bound_by_l1(self) -> float:
        """Clocks of L1 without shared memory, or of all of the data path if most are these."""
        return max(self.l1, self.data_path) if self.l1 > self.shared else self.l1

    def times(self, factor: float) -> SmTotals:
        return SmTotals(**{name: factor * value for name, value in vars(self).items()})

    def since(self, earlier: SmTotals) -> SmTotals:
        """These totals without those of an earlier moment of the same run."""
        return SmTotals(**{name: value - vars(earlier)[name] for name, value in vars(self).items()})

    def line_to(self, other: SmTotals, steps: float) -> SmTotals:
        """Linear extrapolation: this point plus `steps` times the difference to `other`."""
        mine, others = vars(self), vars(other)
        return SmTotals(**{name: mine[name] + steps * (others[name] - mine[name]) for name in mine})

    def relative_to(self, part: SmTotals, whole: SmTotals) -> SmTotals:
        """These totals, scaled as `whole` is to `part`; those that `part` lacks, by the clocks."""
        clocks = whole.clocks / part.clocks if part.clocks else 1.0
        mine, parts, wholes = vars(self), vars(part), vars(whole)
        return SmTotals(
            **{
                name: mine[name] * (wholes[name] / parts[name] if parts[name] else clocks)
                for name in mine
            }
        )
