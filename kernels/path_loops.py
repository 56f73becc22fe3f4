"""Facts on a device and on the loop of each tile, for the estimates of kernels/path_times.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from analysis.devices import Device
from analysis.geometry import ceil_div
from kernels.path_rates import DEFAULT_BANDWIDTH, RATES, STREAMED_SHARES, Constants
from kernels.path_tiles import ANY_TILES, BULK_TILES, CHUNK, Tile
from kernels.paths import (
    STREAMED_COLUMNS,
    STREAMED_ROWS,
    Plan,
    any_layout,
    sliced,
    streamed_bytes,
)
from kernels.product import Product

OLDEST, OLDEST_OF_BULK = 80, 90  # architectures with asynchronous copies, and with bulk copies
STATIC_BYTES = 4096  # of shared memory, beside dynamic shared memory: 3072 in streamed.cu
THREADS_OF_A_TURN = 128  # a warp of each of the four schedulers of an SM


class TileLoop(NamedTuple):
    """Facts on a tile for estimates, for one way in which A, B and C are stored."""

    bm: int
    bn: int
    each: float  #: clocks of first copies and last stores that all warps of an SM share
    least_of_k: float  #: least clocks of a k of a block, on an SM that has been full before
    of_k: float  #: clocks of a k of a block on a full SM
    make: Callable[..., Plan]
    tile: Tile
    bk: int  #: k of a phase
    step: int  #: of k: what warps compute of the last phase is a multiple of it
    resident: int  #: blocks that fit on an SM
    beside: tuple[float, ...]  #: clocks of a k of 0, 1, 2, ... blocks of an SM
    of_turn: float  #: those of stores for which blocks side by side wait together
    of_split: float  #: clocks of a block to leave its sums, and to add those of a block
    least_of_split: float  #: least clocks that a second split of a tile adds beside the loop
    least_of_sums: float  #: least clocks of stores, and until the sums of splits are added
    later: float  #: clocks of a k after the first turn, relative to those in it
    last_turn_share: float  #: one of `last_turn_shares`
    drift_k: float  #: K of a block after which half of it counts


@dataclass(frozen=True, slots=True)
class PathMachine:
    """Values of a device and its constants that the estimates of any product use."""

    sms: int
    clock_hz: float
    lanes: int
    dram: float
    has_bulk: bool
    shared_bytes: int
    #: Of any_layout.cu by how A, B and C are stored, and of sliced.cu by how C is.
    loops: dict[tuple[bool, ...], tuple[TileLoop, ...]]
    #: Rows of a thread of streamed.cu, those of its tile, clocks of a k of a tile on all SMs, and
    #: clocks of a tile on one.
    streams: tuple[tuple[int, int, float, float], ...]


def capability(device: Device) -> int:
    return int(device.sm_arch.removeprefix("sm_"))


# By the device's id, as a hash of a device takes longer than a choice.
_MACHINES: dict[int, tuple[Device, Constants, PathMachine]] = {}


def path_machine(device: Device, c: Constants) -> PathMachine:
    known = _MACHINES.get(id(device))
    if known is not None and known[0] is device and known[1] is c:
        return known[2]
    shared_bytes = device.shared_bytes_per_block_optin - STATIC_BYTES
    streams = []
    for rows, rate in zip(STREAMED_ROWS, c.streamed_rates, strict=True):
        elements = 16 * rows * STREAMED_COLUMNS
        per_clock = device.fp32_lanes_per_sm * device.sm_count * STREAMED_SHARES[rows] / rate
        clocks = c.bulk_block_clocks + c.stream_store_clocks * elements
        if streamed_bytes(rows) <= shared_bytes:
            streams.append((rows, 16 * rows, elements / per_clock, clocks))
    machine = PathMachine(
        sms=device.sm_count,
        clock_hz=device.boost_clock_hz,
        lanes=device.fp32_lanes_per_sm,
        dram=c.dram_share * (device.dram_bytes_per_s or DEFAULT_BANDWIDTH),
        has_bulk=capability(device) >= OLDEST_OF_BULK,
        shared_bytes=shared_bytes,
        loops={},
        streams=tuple(streams),
    )
    _MACHINES[id(device)] = device, c, machine
    return machine


def any_loops(machine: PathMachine, product: Product, c: Constants) -> tuple[TileLoop, ...]:
    """The loops of any_layout.cu, for the way in which the matrices of a product are stored."""
    a_along, b_along = not product.transpose_a, product.transpose_b
    a_in_quads, b_in_quads, _ = product.in_quads
    a_in_quads, b_in_quads = a_in_quads and not a_along, b_in_quads and not b_along
    by_floats = stores_floats(product)
    key = a_along, a_in_quads, b_along, b_in_quads, by_floats
    found = machine.loops.get(key)
    if found is None:
        # Rates are predicted for an A along k, by single floats, and a B by four.
        of_row = c.copy_clocks * ((0.25 if a_in_quads else 1.0) - 1.0) + c.along_clocks * (
            a_along - 1
        )
        of_column = (
            c.copy_clocks * ((0.25 if b_in_quads else 1.0) - 0.25) + c.along_clocks * b_along
        )
        found = machine.loops[key] = tuple(
            _loop(
                tile,
                any_layout,
                scale,
                max(0.0, tile.bm * of_row + tile.bn * of_column),
                by_floats,
                c,
                machine.clock_hz,
            )
            for tile, scale in zip(ANY_TILES, c.any_rates, strict=True)
            if tile.shared_bytes <= machine.shared_bytes
        )
    return found


def bulk_loops(machine: PathMachine, product: Product, c: Constants) -> tuple[TileLoop, ...]:
    by_floats = stores_floats(product)
    found = machine.loops.get((by_floats,))
    if found is None:
        found = machine.loops[(by_floats,)] = tuple(
            _loop(tile, sliced, scale, 0.0, by_floats, c, machine.clock_hz)
            for tile, scale in zip(BULK_TILES, c.bulk_rates, strict=True)
            if tile.shared_bytes <= machine.shared_bytes
        )
    return found


def stores_floats(product: Product) -> bool:
    return not product.in_quads[2] or product.n % 4 != 0


def _loop(
    tile: Tile,
    make: Callable[..., Plan],
    scale: float,
    more: float,
    by_floats: bool,
    c: Constants,
    clock_hz: float,
) -> TileLoop:
    """Facts of a tile, of which a k of a block takes `more` clocks beyond those of its rate."""
    clocks = (RATES.get(f"{tile.name} bulk") if tile.is_bulk else None) or RATES[tile.name]
    resident = len(clocks)
    beside = tuple(scale * one / tile.bk + n * more for n, one in enumerate((0, *clocks)))
    each, of_turn = _ends(tile, by_floats, c)
    warps = ceil_div(resident * tile.threads, THREADS_OF_A_TURN)  # of a scheduler
    of_split = c.split_clocks * tile.bm * tile.bn
    of_ticket = c.ticket_clocks + tile.groups * c.ticket_wait_clocks + of_turn
    later = c.later_loop if warps > 2 else 1.0  # blocks that do not begin together
    return TileLoop(
        bm=tile.bm,
        bn=tile.bn,
        each=each,
        least_of_k=later * min(one / n for n, one in enumerate(beside[1:], 1)),
        of_k=beside[-1] / resident,
        make=make,
        tile=tile,
        bk=tile.bk,
        step=tile.bk if tile.is_bulk else CHUNK,
        resident=resident,
        beside=beside,
        of_turn=of_turn,
        of_split=of_split,
        least_of_split=each + 2 * of_split,
        least_of_sums=of_turn + min(of_ticket, (c.sums_launch_s + c.sums_wait_s) * clock_hz),
        later=later,
        drift_k=c.drift_k if warps > 2 else inf,
        last_turn_share=c.last_turn_shares[min(max(warps, 2), 4) - 2],
    )


def _ends(tile: Tile, by_floats: bool, c: Constants) -> tuple[float, float]:
    """Clocks of a block beside its loop, and those for which blocks wait together for stores."""
    elements = tile.bm * tile.bn
    each = elements * c.store_clocks + (c.bulk_block_clocks if tile.is_bulk else c.block_clocks)
    if tile.slices > 1:
        each += elements * c.slice_clocks * tile.slices
    exposed = elements * c.exposed_store_clocks
    if by_floats:
        exposed += elements * c.exposed_float_clocks
    return each, exposed * THREADS_OF_A_TURN / tile.threads
