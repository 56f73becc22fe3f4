"""Estimated times of the paths, in closed form, and the choice of the shortest.

An estimate has three parts. Loop rates, the clocks of a phase with one block on an SM and with as
many as fit, are what the model of an SM predicts for each kernel (`python -m
benchmarks.path_rates`). Sizes give numbers of blocks, phases and bytes. `Constants` are what
neither knows: starts of launches and blocks, rates of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from analysis.devices import Device
from analysis.errors import UnavailableError
from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES, LARGEST_DIMENSION
from kernels.path_tiles import ANY_TILES, BULK_TILES, CHUNK, Tile
from kernels.paths import (
    COLUMNS_OF_FEW_ROWS,
    MOST_ROWS,
    MOST_SHORT_K,
    MOST_TICKETED,
    ROWS_OF_FEW_ROWS,
    SHORT_TILES,
    STREAMED_ROWS,
    Plan,
    any_layout,
    few_rows,
    must_pack,
    short_k,
    sliced,
    streamed,
    streamed_bytes,
)
from kernels.product import Product
from kernels.tilings import BULK_DEPTH

OLDEST, OLDEST_OF_BULK = 80, 90  # architectures with asynchronous copies, and with bulk copies
MOST_SPLITS, MOST_SPLITS_OF_FEW_ROWS = 64, 128
STATIC_BYTES = 4096  # of shared memory, beside dynamic shared memory: 3072 in streamed.cu
BLOCKS_OF_FEW_ROWS = (0, 1, 2, 3, 4, 6, 9)  # of an SM, that are weighed for few_rows.cu
LEAST_DEPTH = 64  # of K of a block of few_rows.cu, of which its depth is a multiple
SHORT_DEPTH = 16  # of a phase of short_k.cu
DEFAULT_BANDWIDTHS = 3.0e12, 5.5e12  # of DRAM and L2 in bytes/s, where a device's are not known


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Fitted constants of the time of a path, besides loop rates. Clocks are of an SM.

    `python -m benchmarks.path_constants` fits them on the products of the law with even numbers,
    and evaluates them on the others (docs/decisions/0100-blocks-that-share-an-sm.md).
    """

    launch_s: float = 4.78e-08
    second_launch_s: float = 5.42e-06
    first_clocks: float = 3260.0  # of first copies and last stores, which nothing hides
    block_clocks: float = 171.0  # of each block of any_layout.cu
    bulk_block_clocks: float = 585.0
    store_clocks: float = 0.379  # per element of a tile
    slice_clocks: float = 0.0731  # per element of a tile and slice
    copy_clocks: float = 0.043  # per float that is copied by itself, not as a part of four
    along_clocks: float = 0.0279  # per float that is copied from rows along k
    ticket_clocks: float = 2670.0
    ticket_bytes_per_clock: float = 23.8  # of the block that adds the sums of others
    sums_share: float = 2.78  # of the bandwidth of L2, of the launch that adds the sums of splits
    worker_clocks: float = 25600.0
    sum_of_worker_clocks: float = 467.0
    few_clocks: float = 3670.0
    few_bytes_per_clock: float = 6.39  # of a block
    few_sm_bytes_per_clock: float = 36.4
    few_row_clocks: float = 507.0  # per row of a block: its part of A, and its sums
    few_share_of_peak: float = 0.401
    few_exposed: float = 0.03  # share of a block's work that reading does not hide
    short_clocks: float = 2620.0
    short_phase_clocks: float = 644.0
    short_share_of_peak: float = 0.276
    short_store_clocks: float = 0.086
    pack_share: float = 1.15  # of the bandwidth of DRAM
    dram_share: float = 0.784
    #: Clocks of a phase over those predicted, of each of `ANY_TILES`, `BULK_TILES`, STREAMED_ROWS.
    any_rates: tuple[float, ...] = (
        0.866,
        0.921,
        0.902,
        0.971,
        0.961,
        0.956,
        0.983,
        0.934,
        0.904,
        0.925,
        0.889,
        0.889,
    )
    bulk_rates: tuple[float, ...] = (1.09, 1.02, 1.04, 1.06)
    streamed_rates: tuple[float, ...] = (1.17, 1.22)


CONSTANTS = Constants()


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Predicted clocks of a phase of an SM's blocks: with one block, and with `blocks` of them."""

    alone: float
    together: float
    blocks: int


# Predicted for an H200 at 1,980 MHz; clocks hardly depend on the device of an architecture.
RATES = {
    "64x128x16/8x8x1": Rate(alone=1959, together=6637, blocks=4),
    "128x64x16/8x8x1": Rate(alone=2135, together=6682, blocks=4),
    "64x64x16/4x8x1": Rate(alone=1463, together=5879, blocks=6),
    "64x128x16/8x16x1": Rate(alone=3371, together=6308, blocks=4),
    "128x64x16/8x16x1": Rate(alone=3508, together=6650, blocks=4),
    "128x64x32/8x16x2": Rate(alone=3552, together=6523, blocks=2),
    "32x128x32/4x8x2": Rate(alone=2110, together=5761, blocks=3),
    "64x64x32/8x8x4": Rate(alone=2065, together=3628, blocks=2),
    "128x32x32/8x8x4": Rate(alone=2372, together=4108, blocks=2),
    "64x32x32/8x8x4": Rate(alone=1369, together=4004, blocks=4),
    "32x32x32/4x8x4": Rate(alone=962, together=3692, blocks=6),
    "32x32x64/4x8x8": Rate(alone=1426, together=3873, blocks=3),
    "128x64x64/8x16x4": Rate(alone=5117, together=5117, blocks=1),
    "64x64x64/8x16x8": Rate(alone=2880, together=2880, blocks=1),
    "64x32x64/8x8x8 bulk": Rate(alone=1670, together=1670, blocks=1),
    "96x48x64/12x12x8": Rate(alone=3097, together=3097, blocks=1),
}
STREAMED_SHARES = {8: 0.88, 10: 0.91}  # of the peak, rungs 16 and 18
SMALL_SPLITS = (1, 2, 3, 4)  # that are weighed where tiles fill half of the SMs or more

# Estimated seconds, the function that makes the launches, and its arguments behind the product.
Candidate = tuple[float, Callable[..., Plan], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class _Machine:
    sms: int
    clock_hz: float
    lanes: int
    dram: float
    l2: float
    shared_bytes: int  #: dynamic, that a block may have
    has_bulk: bool


def plan_for(device: Device, product: Product) -> Plan:
    """The launches of the path with the shortest estimate.

    Raises UnavailableError for a device before sm_80, which has no asynchronous copies.
    """
    if _capability(device) < OLDEST:
        raise UnavailableError(
            f"paths need sm_{OLDEST} or later, and {device.name} is {device.sm_arch}: "
            "choose a rung of the ladder, such as double-buffered"
        )
    _, make, arguments = min(candidates(device, product, is_pruned=True), key=_seconds)
    return make(product, *arguments)


def basis(device: Device) -> str:
    """Return one sentence that says which measurements the choice of a path is based on."""
    rates = "loop rates that the model of an SM predicts for sm_90"
    known = device.dram_bytes_per_s is not None and device.l2_bytes_per_s is not None
    memory = (
        "the device's bandwidths" if known else "bandwidths of an H100, as the device's are unknown"
    )
    return f"estimated by closed forms, {rates}, constants fitted on an H200, and {memory}"


def candidates(
    device: Device,
    product: Product,
    constants: Constants = CONSTANTS,
    *,
    is_pruned: bool = False,
) -> list[Candidate]:
    """All that the dispatcher weighs; if `is_pruned`, without some that cannot be shortest.

    Those with bulk copies need sm_90.
    """
    machine = _Machine(
        device.sm_count,
        device.boost_clock_hz,
        device.fp32_lanes_per_sm,
        constants.dram_share * (device.dram_bytes_per_s or DEFAULT_BANDWIDTHS[0]),
        device.l2_bytes_per_s or DEFAULT_BANDWIDTHS[1],
        device.shared_bytes_per_block_optin - STATIC_BYTES,
        _capability(device) >= OLDEST_OF_BULK,
    )
    found: list[Candidate] = []
    if product.m <= MOST_ROWS or product.n <= MOST_ROWS:
        _weigh_few_rows(found, machine, product, constants)
    if product.k <= MOST_SHORT_K:
        _weigh_short_k(found, machine, product, constants)
    any_rows, bulk_rows = _TABLES if constants is CONSTANTS else _tables(constants)
    memory_s = product.matrix_bytes / machine.dram
    start_s = constants.launch_s + constants.first_clocks / machine.clock_hz
    more = _more_clocks(product, constants)
    bounds = _bounds(machine, product, any_rows, start_s, more, memory_s)
    if machine.has_bulk:
        packing_s = _packing_s(machine, product, constants)
        _weigh_streams(found, machine, product, constants, packing_s)
        start_s += packing_s
        bounds += _bounds(machine, product, bulk_rows, start_s, (0.0, 0.0), memory_s)
    _weigh_tiles(found, machine, product, constants, bounds, memory_s, is_pruned)
    return found


def _capability(device: Device) -> int:
    return int(device.sm_arch.removeprefix("sm_"))


def _seconds(candidate: Candidate) -> float:
    return candidate[0]


@dataclass(frozen=True, slots=True)
class _Loop:
    """Facts on a tile that the estimates need. Clocks are those of a block, and of one k of it."""

    make: Callable[..., Plan]
    tile: Tile
    bk: int
    step: int  #: of which the K of a block without splits is a multiple
    alone: float  #: clocks of a k of a block that has its SM for itself
    resident: int  #: blocks that fit on an SM
    adding: float  #: clocks to add the sums of one split


# Rows and columns of a tile, clocks of a block, of a k of it with others beside it, and the rest.
_Row = tuple[int, int, float, float, _Loop]


def _rows(tiles: tuple[Tile, ...], make: Callable[..., Plan], c: Constants) -> list[_Row]:
    is_bulk = make is sliced
    found: list[_Row] = []
    for tile, scale in zip(tiles, c.bulk_rates if is_bulk else c.any_rates, strict=True):
        rate = (RATES.get(f"{tile.name} bulk") if is_bulk else None) or RATES[tile.name]
        elements = tile.bm * tile.bn
        slices = tile.slices if tile.slices > 1 else 0
        each = c.bulk_block_clocks if is_bulk else c.block_clocks
        each += elements * (c.store_clocks + c.slice_clocks * slices)
        loop = _Loop(
            make=make,
            tile=tile,
            bk=tile.bk,
            step=tile.bk if is_bulk else CHUNK * tile.slices,
            alone=scale * rate.alone / tile.bk,
            resident=rate.blocks,
            adding=FLOAT_BYTES * elements / c.ticket_bytes_per_clock,
        )
        together = scale * rate.together / tile.bk / rate.blocks
        found.append((tile.bm, tile.bn, each, together, loop))
    return found


def _tables(c: Constants) -> tuple[list[_Row], list[_Row]]:
    return _rows(ANY_TILES, any_layout, c), _rows(BULK_TILES, sliced, c)


_TABLES = _tables(CONSTANTS)

# The least time, tiles, clocks of a block, more clocks of a k than predicted, clocks of a k with
# others beside it, the time before the loop, and the rest.
_Bound = tuple[float, int, float, float, float, float, _Loop]


def _bounds(
    machine: _Machine,
    product: Product,
    rows: list[_Row],
    start_s: float,
    more_of_sides: tuple[float, float],
    memory_s: float,
) -> list[_Bound]:
    """For each tile the least time that it can take: all SMs are busy, or memory is."""
    m, n, k, batch = product.m, product.n, product.k, product.batch
    clocks_per_s = machine.sms * machine.clock_hz
    more_a, more_b = more_of_sides
    found: list[_Bound] = []
    for bm, bn, each, together, loop in rows:
        more = bm * more_a + bn * more_b
        tiles, of_k = -(-m // bm) * -(-n // bn) * batch, together + more
        busy_s = tiles * (each + k * of_k) / clocks_per_s
        least_s = start_s + (busy_s if busy_s > memory_s else memory_s)
        found.append((least_s, tiles, each, more, of_k, start_s, loop))
    return found


def _least(bound: _Bound) -> float:
    return bound[0]


def _weigh_tiles(
    found: list[Candidate],
    machine: _Machine,
    product: Product,
    c: Constants,
    bounds: list[_Bound],
    memory_s: float,
    is_pruned: bool,
) -> None:
    """Add an estimate for each tile and number of splits, of the quickest loops first.

    Blocks of an SM share its time. The SMs run turns of as many blocks as fit, and a last one of
    fewer, in which a block cannot be faster than alone.
    """
    k, sms, clock_hz = product.k, machine.sms, machine.clock_hz
    best = min(map(_seconds, found), default=inf) if is_pruned else inf
    if is_pruned:
        bounds.sort(key=_least)
    for least_s, tiles, each, more, of_k, start_s, loop in bounds:
        if least_s >= best:
            break
        tile, bk, resident = loop.tile, loop.bk, loop.resident
        if tile.shared_bytes > machine.shared_bytes:
            continue
        alone = loop.alone + more
        slots, phases = sms * resident, -(-k // bk)
        for splits in _splits(tiles, sms, slots, phases) if tiles < 4 * slots else (1,):
            blocks = tiles * splits
            if splits == 1:
                depth, ticket_clocks, second_s = -(-k // loop.step) * loop.step, 0.0, 0.0
            elif splits <= MOST_TICKETED:
                depth, second_s = -(-phases // splits) * bk, 0.0
                ticket_clocks = c.ticket_clocks + splits * loop.adding
            else:
                depth, ticket_clocks = -(-phases // splits) * bk, 0.0
                bytes_of_sums = 2 * FLOAT_BYTES * blocks * tile.bm * tile.bn
                second_s = c.second_launch_s + bytes_of_sums / (c.sums_share * machine.l2)
            if least_s + second_s >= best:
                continue
            turns, rest = divmod(blocks, slots)
            clocks = ticket_clocks + turns * resident * (each + depth * of_k)
            if rest:
                together = -(-rest // sms)
                rate = together * of_k
                clocks += together * each + depth * (rate if rate > alone else alone)
            busy_s = clocks / clock_hz
            seconds = start_s + second_s + (busy_s if busy_s > memory_s else memory_s)
            if seconds < best:
                found.append((seconds, loop.make, (tile, splits)))
                best = seconds if is_pruned else best


def _more_clocks(product: Product, c: Constants) -> tuple[float, float]:
    """Clocks per k and row of A, and column of B, beyond those of the rates.

    They are predicted for an A along k, by single floats, and a B by four.
    """
    a_along, b_along = not product.transpose_a, product.transpose_b
    a_copies = 0.25 if not a_along and product.a.in_quads else 1.0
    b_copies = 0.25 if not b_along and product.b.in_quads else 1.0
    return (
        c.copy_clocks * (a_copies - 1.0) + c.along_clocks * (a_along - 1),
        c.copy_clocks * (b_copies - 0.25) + c.along_clocks * b_along,
    )


def _splits(tiles: int, sms: int, slots: int, phases: int) -> list[int]:
    """Numbers of splits that are weighed: those that fill the SMs, and small ones."""
    most = min(phases, MOST_SPLITS)
    numbers = [one for one in SMALL_SPLITS if one <= most] if 2 * tiles >= sms else [1]
    for blocks in (sms, slots, 2 * slots):
        splits = min(blocks // tiles, most)
        if splits > numbers[-1]:
            numbers.append(splits)
    if numbers[-1] > MOST_TICKETED and MOST_TICKETED not in numbers:
        numbers.append(MOST_TICKETED)
    return numbers


def _packing_s(machine: _Machine, product: Product, c: Constants) -> float:
    pack_a, pack_b = must_pack(product)
    a = product.m * product.k * (product.batch if product.stride_a else 1)
    b = product.k * product.n * (product.batch if product.stride_b else 1)
    floats = a * pack_a + b * pack_b
    if not floats:
        return 0.0
    return c.second_launch_s + 2 * FLOAT_BYTES * floats / (c.pack_share * machine.dram)


def _weigh_streams(
    found: list[Candidate], machine: _Machine, product: Product, c: Constants, packing_s: float
) -> None:
    workers = 2 * machine.sms
    for rows, rate in zip(STREAMED_ROWS, c.streamed_rates, strict=True):
        bm, bn = 16 * rows, 128
        if streamed_bytes(rows) > machine.shared_bytes:
            continue
        if product.batch * ceil_div(product.m, bm) * bm >= LARGEST_DIMENSION:
            continue  # the kernel counts the rows of all matrices
        tiles = ceil_div(product.m, bm) * ceil_div(product.n, bn) * product.batch
        depth = ceil_div(product.k, BULK_DEPTH) * BULK_DEPTH
        share = STREAMED_SHARES[rows] / rate
        clocks = tiles * bm * bn * depth / (machine.lanes * share * machine.sms)
        clocks += (c.bulk_block_clocks + c.store_clocks * bm * bn) * max(1.0, tiles / workers)
        if shared := tiles % workers:
            clocks += c.worker_clocks + c.sum_of_worker_clocks * workers / shared
        seconds = max(clocks / machine.clock_hz, product.matrix_bytes / machine.dram)
        found.append((c.launch_s + packing_s + seconds, streamed, (rows, workers)))


def _weigh_few_rows(
    found: list[Candidate], machine: _Machine, product: Product, c: Constants
) -> None:
    turned = product.n < product.m
    along_k = (not product.transpose_a) if turned else product.transpose_b
    columns = COLUMNS_OF_FEW_ROWS[along_k]
    rows = next(n for n in ROWS_OF_FEW_ROWS if n >= min(product.m, product.n))
    groups = ceil_div(max(product.m, product.n), columns) * product.batch
    numbers = set()
    for blocks_of_sm in BLOCKS_OF_FEW_ROWS:
        most = min(ceil_div(product.k, 2 * LEAST_DEPTH), MOST_SPLITS_OF_FEW_ROWS)
        splits = max(1, min(blocks_of_sm * machine.sms // groups, most))
        depth = ceil_div(ceil_div(product.k, splits), LEAST_DEPTH) * LEAST_DEPTH
        numbers.add((ceil_div(product.k, depth), depth))
    for splits, depth in numbers:
        blocks = groups * splits
        together = min(2 if rows > 4 else 3, ceil_div(blocks, machine.sms))
        rounds = ceil_div(blocks, machine.sms * together)
        width = min(columns, max(product.m, product.n))
        size = width * min(depth, product.k) * FLOAT_BYTES
        reading = size / min(c.few_bytes_per_clock, c.few_sm_bytes_per_clock / together)
        adding = together * columns * depth * rows / machine.lanes / c.few_share_of_peak
        clocks = rounds * (c.few_clocks + c.few_row_clocks * rows + max(reading, adding))
        if splits > 1:
            sums = splits * FLOAT_BYTES * columns * rows
            clocks += c.ticket_clocks + sums / c.ticket_bytes_per_clock
        busy_s = clocks / machine.clock_hz
        seconds = max(busy_s, product.matrix_bytes / machine.dram) + c.few_exposed * busy_s
        found.append((c.launch_s + seconds, few_rows, (splits, depth)))


def _weigh_short_k(
    found: list[Candidate], machine: _Machine, product: Product, c: Constants
) -> None:
    phases = ceil_div(product.k, SHORT_DEPTH)
    floor_s = product.matrix_bytes / machine.dram
    for rows, columns in SHORT_TILES:
        bm, bn = 8 * rows, 32 * columns
        blocks = ceil_div(product.m, bm) * ceil_div(product.n, bn) * product.batch
        most = 3 if rows * columns > 8 else 8  # on an SM, by registers
        together = min(most, ceil_div(blocks, machine.sms))
        rounds = blocks / (machine.sms * together) if blocks > machine.sms * most else 1.0
        work = together * bm * bn * SHORT_DEPTH / machine.lanes / c.short_share_of_peak
        clocks = c.short_clocks + phases * (c.short_phase_clocks + work)
        clocks += together * c.short_store_clocks * bm * bn
        seconds = c.launch_s + max(rounds * clocks / machine.clock_hz, floor_s)
        found.append((seconds, short_k, (rows, columns)))
