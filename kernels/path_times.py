"""Estimated times of the paths, in closed form, and the choice of the shortest.

An estimate has three parts. Sizes give numbers of blocks, phases and bytes; kernels/path_rates.py
has loop rates of the kernels, and constants that are fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from operator import itemgetter
from typing import Any

from analysis.devices import Device
from analysis.errors import UnavailableError
from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES, LARGEST_DIMENSION
from kernels.path_rates import (
    CONSTANTS,
    DEFAULT_BANDWIDTH,
    RATES,
    STREAMED_SHARES,
    TIMED_DEVICE,
    Constants,
    Rate,
)
from kernels.path_tiles import ANY_TILES, BULK_TILES, CHUNK, Tile
from kernels.paths import (
    COLUMNS_OF_FEW_ROWS,
    MOST_ROWS,
    MOST_SHORT_K,
    ROWS_OF_FEW_ROWS,
    SHORT_TILES,
    STREAMED_COLUMNS,
    STREAMED_ROWS,
    Plan,
    any_layout,
    depth_of_few_rows,
    few_rows,
    loads_of_few_rows,
    must_pack,
    short_k,
    sliced,
    splits_of_few_rows,
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
THREADS_OF_A_TURN = 128  # a warp of each of the four schedulers of an SM
SHORT_DEPTH = 16  # of a phase of short_k.cu
FEW_BLOCKS = 64  # of early_start.cuh: more let the next launch start when their last ones leave
SUMS_TOGETHER = 16  # splits that a thread of sums.cuh has on their way
SMALL_SPLITS = (1, 2, 3, 4)  # that are weighed where tiles fill half of the SMs or more

_FIRST = itemgetter(0)

# Estimated seconds, the function that makes the launches, and its arguments behind the product.
Candidate = tuple[float, Callable[..., Plan], tuple[Any, ...]]


# Facts on a tile that the estimates need: its function and itself, k of a phase, k of which what its
# warps compute of the last one is a multiple, blocks that fit on an SM, clocks of a k of 0, 1, 2, ... of these, clocks to add the sums of one split, and one of
# `last_turn_shares`.
_Loop = tuple[Callable[..., Plan], Tile, int, int, int, tuple[float, ...], float, float]
# Clocks of a block beside its loop, those of blocks side by side that nothing hides, and both of a
# block where an SM is full.
_Ends = tuple[float, float, float]
# Rows and columns of a tile, its ends where it stores quads and where it stores single floats,
# clocks of a k with other blocks beside it, and the rest.
_Row = tuple[int, int, _Ends, _Ends, float, _Loop]


@dataclass(frozen=True, slots=True)
class _Machine:
    """Values of a device and its constants that the estimates of any product use."""

    sms: int
    clock_hz: float
    lanes: int
    dram: float
    has_bulk: bool
    any_rows: tuple[_Row, ...]
    bulk_rows: tuple[_Row, ...]
    #: Rows of a thread of streamed.cu, those of its tile, clocks of a k of a tile on all SMs, and
    #: clocks of a tile on one.
    streams: tuple[tuple[int, int, float, float], ...]


def plan_for(device: Device, product: Product) -> Plan:
    """The launches of the path with the shortest estimate.

    Raises UnavailableError for a device before sm_80, which has no asynchronous copies.
    """
    if _capability(device) < OLDEST:
        raise UnavailableError(
            f"paths need sm_{OLDEST} or later, and {device.name} is {device.sm_arch}: "
            "choose a rung of the ladder, such as double-buffered"
        )
    _, make, arguments = min(candidates(device, product, is_pruned=True), key=_FIRST)
    return make(product, *arguments)


def basis(device: Device) -> str:
    """Return one sentence that says which measurements the choice of a path is based on."""
    rates = "loop rates that the model of an SM predicts for sm_90"
    whose = "an H100's" if device.dram_bytes_per_s is None else "the device's"
    memory = f"{whose} bandwidth of DRAM"
    timed = "" if device.name == TIMED_DEVICE else f"; no product was timed on {device.name}"
    return f"estimated by closed forms, {rates}, constants fitted on an H200, and {memory}{timed}"


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
    machine = _machine(device, constants)
    found: list[Candidate] = []
    if product.m <= MOST_ROWS or product.n <= MOST_ROWS:
        _weigh_few_rows(found, machine, product, constants)
    if product.k <= MOST_SHORT_K:
        _weigh_short_k(found, machine, product, constants)
    memory_s = product.matrix_bytes / machine.dram
    start_s = constants.launch_s + constants.first_clocks / machine.clock_hz
    more = _more_clocks(product, constants)
    bounds = _bounds(machine, product, machine.any_rows, start_s, more, memory_s)
    if machine.has_bulk:
        packing_s = _packing_s(machine, product, constants)
        _weigh_streams(found, machine, product, constants, packing_s)
        start_s += packing_s
        bounds += _bounds(machine, product, machine.bulk_rows, start_s, (0.0, 0.0), memory_s)
    _weigh_tiles(found, machine, product, constants, bounds, memory_s, is_pruned)
    return found


def _capability(device: Device) -> int:
    return int(device.sm_arch.removeprefix("sm_"))


# By the device's id, as a hash of a device takes longer than a choice.
_MACHINES: dict[int, tuple[Device, Constants, _Machine]] = {}


def _machine(device: Device, c: Constants) -> _Machine:
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
    machine = _Machine(
        sms=device.sm_count,
        clock_hz=device.boost_clock_hz,
        lanes=device.fp32_lanes_per_sm,
        dram=c.dram_share * (device.dram_bytes_per_s or DEFAULT_BANDWIDTH),
        has_bulk=_capability(device) >= OLDEST_OF_BULK,
        any_rows=_rows(ANY_TILES, any_layout, c, shared_bytes),
        bulk_rows=_rows(BULK_TILES, sliced, c, shared_bytes),
        streams=tuple(streams),
    )
    _MACHINES[id(device)] = device, c, machine
    return machine


def _rows(
    tiles: tuple[Tile, ...], make: Callable[..., Plan], c: Constants, shared_bytes: int
) -> tuple[_Row, ...]:
    is_bulk = make is sliced
    found: list[_Row] = []
    for tile, scale in zip(tiles, c.bulk_rates if is_bulk else c.any_rates, strict=True):
        if tile.shared_bytes > shared_bytes:
            continue
        rate = (RATES.get(f"{tile.name} bulk") if is_bulk else None) or RATES[tile.name]
        elements = tile.bm * tile.bn
        step = tile.bk if is_bulk else CHUNK
        beside = tuple(scale * one / tile.bk for one in _beside(rate, tile.threads, c.idle_share))
        adding = FLOAT_BYTES * elements / c.ticket_bytes_per_clock
        of_scheduler = ceil_div(rate.blocks * tile.threads, THREADS_OF_A_TURN)
        share = c.last_turn_shares[min(max(of_scheduler, 2), 4) - 2]
        loop = make, tile, tile.bk, step, rate.blocks, beside, adding, share
        by_quads = _ends(tile, rate.blocks, c, by_floats=False)
        by_floats = _ends(tile, rate.blocks, c, by_floats=True)
        found.append((tile.bm, tile.bn, by_quads, by_floats, beside[-1] / rate.blocks, loop))
    return tuple(found)


def _ends(tile: Tile, blocks: int, c: Constants, *, by_floats: bool) -> _Ends:
    """Clocks of first copies, last stores and sums of slices."""
    of_element, exposed_of_element = c.store_clocks, c.exposed_store_clocks
    if by_floats:
        exposed_of_element += c.exposed_float_clocks
    if tile.slices > 1:
        of_element += c.slice_clocks * tile.slices
    elements = tile.bm * tile.bn
    each = elements * of_element + (c.bulk_block_clocks if tile.is_bulk else c.block_clocks)
    exposed = c.fill_clocks + elements * exposed_of_element
    of_turn = exposed * THREADS_OF_A_TURN / tile.threads
    return each, of_turn, each + c.later_turn_share * of_turn / blocks


def _beside(rate: Rate, threads: int, idle_share: float) -> Iterator[float]:
    """Clocks of a phase of 0, 1, 2, ... blocks of an SM.

    They grow with the warps of the scheduler that has the most: three blocks of two warps take as
    long as four. `idle_share` of it grows with the warps of all schedulers.
    """
    most_warps = [ceil_div(n * threads, THREADS_OF_A_TURN) for n in range(rate.blocks + 1)]
    yield 0.0
    for n, warps in enumerate(most_warps[1:]):
        of_most = (warps - most_warps[1]) / max(1, most_warps[-1] - most_warps[1])
        of_all = n / max(1, rate.blocks - 1)
        further = max(of_most, of_most + idle_share * (of_all - of_most))
        yield rate.alone + further * (rate.together - rate.alone)


# The least time, tiles, clocks of a block and of blocks side by side beside their loops, more of
# a k than predicted, the time before the loop, and the row.
_Bound = tuple[float, int, float, float, float, float, _Row]


def _bounds(
    machine: _Machine,
    product: Product,
    rows: tuple[_Row, ...],
    start_s: float,
    more_of_sides: tuple[float, float],
    memory_s: float,
) -> list[_Bound]:
    """For each tile the least time that it can take: all SMs are busy, or memory is."""
    m, n, k, batch = product.m, product.n, product.k, product.batch
    clock_s = 1.0 / (machine.sms * machine.clock_hz)
    more_a, more_b = more_of_sides
    found: list[_Bound] = []
    stores_floats = not product.c.in_quads or n % 4 != 0
    for row in rows:
        bm, bn, by_quads, by_floats, together, _ = row
        each, of_turn, of_block = by_floats if stores_floats else by_quads
        more = bm * more_a + bn * more_b
        tiles = -(-m // bm) * -(-n // bn) * batch
        busy_s = tiles * (of_block + k * (together + more)) * clock_s
        least_s = start_s + (busy_s if busy_s > memory_s else memory_s)
        found.append((least_s, tiles, each, of_turn, more, start_s, row))
    return found


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
    fewer, which some SMs have more of than others: those that were ready first.
    """
    k, sms, clock_s = product.k, machine.sms, 1.0 / machine.clock_hz
    best = min(map(_FIRST, found), default=inf) if is_pruned else inf
    if is_pruned:
        bounds.sort(key=_FIRST)
    for least_s, tiles, each, of_turn, more, start_s, row in bounds:
        if least_s >= best:
            break
        of_k, loop = row[-2:]
        make, tile, bk, step, resident, beside, adding, share = loop
        of_k += more
        most_ticketed = tile.most_ticketed
        slots, phases = sms * resident, -(-k // bk)
        for splits in (
            _splits(tiles, sms, slots, phases, most_ticketed) if tiles < 4 * slots else (1,)
        ):
            blocks = tiles * splits
            second_s = c.late_start_s if blocks > FEW_BLOCKS else 0.0
            whole, clocks = -(-phases // splits) * bk, 0.0
            depth = whole
            if splits == 1:
                depth = -(-k // step) * step
            elif splits <= most_ticketed:
                waits = tile.groups * -(-splits // tile.splits_together)
                clocks = c.ticket_clocks + waits * c.ticket_wait_clocks + splits * adding
            else:
                second_s += c.sums_launch_s + -(-splits // SUMS_TOGETHER) * c.sums_wait_s
                if least_s + second_s >= best:
                    continue
            turns, rest = divmod(blocks, slots)
            clocks += turns * resident * (each + depth * of_k)
            clocks += of_turn * (1.0 + c.later_turn_share * (turns + (rest > 0) - 1))
            if rest:
                together = -(-rest // sms)
                of_last = beside[together] + together * more
                if turns:
                    of_last += share / turns * (resident * of_k - of_last)
                in_loop = max(depth * of_last, whole * (beside[1] + more))
                clocks += together * each + in_loop
            busy_s = clocks * clock_s
            seconds = start_s + second_s + (busy_s if busy_s > memory_s else memory_s)
            if seconds < best:
                found.append((seconds, make, (tile, splits)))
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


def _splits(tiles: int, sms: int, slots: int, phases: int, most_ticketed: int) -> list[int]:
    """Numbers of splits that are weighed: those that fill the SMs, and small ones."""
    most = min(phases, MOST_SPLITS)
    numbers = [one for one in SMALL_SPLITS if one <= most] if 2 * tiles >= sms else [1]
    for blocks in (sms, slots, 2 * slots):
        splits = min(blocks // tiles, most)
        if splits > numbers[-1]:
            numbers.append(splits)
    if numbers[-1] > most_ticketed and most_ticketed not in numbers:
        numbers.append(most_ticketed)
    return numbers


def _packing_s(machine: _Machine, product: Product, c: Constants) -> float:
    pack_a, pack_b = must_pack(product)
    a = product.m * product.k * (product.batch if product.stride_a else 1)
    b = product.k * product.n * (product.batch if product.stride_b else 1)
    floats = a * pack_a + b * pack_b
    if not floats:
        return 0.0
    return c.pack_launch_s + 2 * FLOAT_BYTES * floats / (c.pack_share * machine.dram)


def _weigh_streams(
    found: list[Candidate], machine: _Machine, product: Product, c: Constants, packing_s: float
) -> None:
    workers, memory_s = 2 * machine.sms, product.matrix_bytes / machine.dram
    across = -(-product.n // STREAMED_COLUMNS)
    depth = -(-product.k // BULK_DEPTH) * BULK_DEPTH
    for rows, bm, of_k, of_tile in machine.streams:
        down = -(-product.m // bm) * product.batch
        if down * bm >= LARGEST_DIMENSION:
            continue  # the kernel counts the rows of all matrices
        tiles = down * across
        clocks = tiles * depth * of_k + of_tile * (tiles / workers if tiles > workers else 1.0)
        if shared := tiles % workers:
            clocks += c.worker_clocks + c.sum_of_worker_clocks * workers / shared
        busy_s = clocks / machine.clock_hz
        seconds = c.launch_s + packing_s + (busy_s if busy_s > memory_s else memory_s)
        if tiles > FEW_BLOCKS: seconds += c.late_start_s
        found.append((seconds, streamed, (rows, workers)))


def _weigh_few_rows(
    found: list[Candidate], machine: _Machine, product: Product, c: Constants
) -> None:
    turned = product.n < product.m
    along_k = (not product.transpose_a) if turned else product.transpose_b
    is_in_quads = (product.a if turned else product.b).in_quads
    columns = COLUMNS_OF_FEW_ROWS[along_k]
    rows = next(n for n in ROWS_OF_FEW_ROWS if n >= min(product.m, product.n))
    loads, k_of_chunk = loads_of_few_rows(rows, along_k, is_in_quads), depth_of_few_rows(rows)
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
        waiting = ceil_div(min(depth, product.k), k_of_chunk) * c.few_chunk_clocks
        waiting += ceil_div(min(depth, product.k), loads) * c.few_read_clocks
        reading = max(waiting, size * together / c.few_sm_bytes_per_clock)
        adding = together * columns * depth * rows / machine.lanes / c.few_share_of_peak
        clocks = rounds * (
            c.few_clocks[along_k] + c.few_row_clocks[along_k] * rows + max(reading, adding)
        )
        if splits > 1:
            waits = ceil_div(splits, splits_of_few_rows(rows, columns))
            clocks += c.few_ticket_clocks + waits * c.ticket_wait_clocks
        busy_s, memory_s = clocks / machine.clock_hz, product.matrix_bytes / machine.dram
        seconds = (busy_s**c.few_power + memory_s**c.few_power) ** (1 / c.few_power)
        if blocks > FEW_BLOCKS: seconds += c.late_start_s
        found.append((c.launch_s + seconds, few_rows, (splits, depth)))


def _weigh_short_k(
    found: list[Candidate], machine: _Machine, product: Product, c: Constants
) -> None:
    phases = ceil_div(product.k, SHORT_DEPTH)
    floor_s = product.matrix_bytes / machine.dram
    for rows, columns in SHORT_TILES:
        bm, bn = 8 * rows, 32 * columns
        blocks = ceil_div(product.m, bm) * ceil_div(product.n, bn) * product.batch
        elements = rows * columns
        most = 3 if elements > 8 else 4 if elements > 2 else 6  # on an SM, by registers
        together = min(most, ceil_div(blocks, machine.sms))
        rounds = blocks / (machine.sms * together) if blocks > machine.sms * most else 1.0
        work = bm * bn / machine.lanes / c.short_share_of_peak + (bm + bn) * c.short_load_clocks
        clocks = phases * (c.short_phase_clocks + together * SHORT_DEPTH * work)
        clocks += together * c.short_store_clocks * bm * bn
        busy_s = max(rounds * clocks / machine.clock_hz, floor_s)
        seconds = c.launch_s + c.short_clocks / machine.clock_hz + busy_s
        if blocks > FEW_BLOCKS: seconds += c.late_start_s
        found.append((seconds, short_k, (rows, columns)))
