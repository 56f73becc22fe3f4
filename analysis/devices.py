"""Device records (under construction: see the fields; the data follows)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MeasuredCeilings:
    """Ceilings that a benchmark reached on such a device, with where they come from."""

    source: str
    fp32_flop_per_s: float | None = None
    dram_bytes_per_s: float | None = None
    l2_bytes_per_s: float | None = None
    shared_bytes_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Device:
    """One GPU model: its nominal ceilings, its limits, and a source for every field.

    Rates are per second of the whole device, sizes in bytes. `sources` maps each field name to
    where its value comes from. `measured` keeps reached ceilings apart from nominal ones.
    """

    key: str
    name: str
    chip: str
    architecture: str
    compute_capability: tuple[int, int]
    # nominal ceilings
    sm_count: int
    boost_clock_hz: float
    fp32_lanes_per_sm: int
    fp32_flop_per_s: float
    dram_bytes: int
    dram_bytes_per_s: float
    l2_bytes: int
    l2_bytes_per_s: float | None
    shared_bytes_per_clock_per_sm: int
    # limits of one SM and of one block
    max_threads_per_block: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    registers_per_sm: int
    max_registers_per_thread: int
    register_allocation_unit: int
    warp_allocation_granularity: int
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    shared_bytes_per_block_optin: int
    reserved_shared_bytes_per_block: int
    shared_allocation_unit: int
    sources: dict[str, str]
    measured: MeasuredCeilings | None = None

    @property
    def shared_bytes_per_s(self) -> float:
        return self.shared_bytes_per_clock_per_sm * self.sm_count * self.boost_clock_hz

    @property
    def max_warps_per_sm(self) -> int:
        return self.max_threads_per_sm // 32

    @property
    def sm_arch(self) -> str:
        """The compiler's name of the architecture: "sm_86"."""
        major, minor = self.compute_capability
        return f"sm_{major}{minor}"
