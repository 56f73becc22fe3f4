"""Estimated times of the paths, in closed form, and the choice of the shortest.

An estimate has three parts. Sizes give numbers of blocks, phases and bytes; kernels/path_rates.py
has loop rates of the kernels, and constants that are fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

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
MOST_TURNS_TO_SPLIT = 1.5  # of tiles: with more, splits only add work
SMALL_SPLITS = (2, 3, 4)  # that are weighed where tiles fill half of the SMs or more

_FIRST = itemgetter(0)

# Estimated seconds, the function that makes the launches, and its arguments behind the product.
Candidate = tuple[float, Callable[..., Plan], tuple[Any, ...]]


class _Loop(NamedTuple):
    """What estimates know of a tile, for one way in which A, B and C are stored."""

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
class _Machine:
    """Values of a device and its constants that the estimates of any product use."""

    sms: int
    clock_hz: float
    lanes: int
    dram: float
    has_bulk: bool
    shared_bytes: int
    #: Of any_layout.cu by how A, B and C are stored, and of sliced.cu by how C is.
    loops: dict[tuple[bool, ...], tuple[_Loop, ...]]
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
    packing_s = 0.0
    if machine.has_bulk:
        packing_s = _packing_s(machine, product, constants)
        _weigh_streams(found, machine, product, constants, packing_s)
    _weigh_tiles(found, machine, product, constants, packing_s, is_pruned)
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
        shared_bytes=shared_bytes,
        loops={},
        streams=tuple(streams),
    )
    _MACHINES[id(device)] = device, c, machine
    return machine


def _any_loops(machine: _Machine, product: Product, c: Constants) -> tuple[_Loop, ...]:
    """The loops of any_layout.cu, for the way in which the matrices of a product are stored."""
    a_along, b_along = not product.transpose_a, product.transpose_b
    a_in_quads, b_in_quads, _ = product.in_quads
    a_in_quads, b_in_quads = a_in_quads and not a_along, b_in_quads and not b_along
    by_floats = _stores_floats(product)
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


def _bulk_loops(machine: _Machine, product: Product, c: Constants) -> tuple[_Loop, ...]:
    by_floats = _stores_floats(product)
    found = machine.loops.get((by_floats,))
    if found is None:
        found = machine.loops[(by_floats,)] = tuple(
            _loop(tile, sliced, scale, 0.0, by_floats, c, machine.clock_hz)
            for tile, scale in zip(BULK_TILES, c.bulk_rates, strict=True)
            if tile.shared_bytes <= machine.shared_bytes
        )
    return found


def _stores_floats(product: Product) -> bool:
    return not product.in_quads[2] or product.n % 4 != 0


def _loop(
    tile: Tile,
    make: Callable[..., Plan],
    scale: float,
    more: float,
    by_floats: bool,
    c: Constants,
    clock_hz: float,
) -> _Loop:
    """Facts of a tile, of which a k of a block takes `more` clocks beyond those of its rate."""
    clocks = (RATES.get(f"{tile.name} bulk") if tile.is_bulk else None) or RATES[tile.name]
    resident = len(clocks)
    beside = tuple(scale * one / tile.bk + n * more for n, one in enumerate((0, *clocks)))
    each, of_turn = _ends(tile, by_floats, c)
    warps = ceil_div(resident * tile.threads, THREADS_OF_A_TURN)  # of a scheduler
    of_split = c.split_clocks * tile.bm * tile.bn
    of_ticket = c.ticket_clocks + tile.groups * c.ticket_wait_clocks + of_turn
    later = c.later_loop if warps > 2 else 1.0  # blocks that do not begin together
    return _Loop(
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


# The least clocks that a tile can take without splits, where the SM with the most blocks or memory
# is busy; those before its blocks; of one of these; their number; and the tile's loop.
_Bound = tuple[float, float, float, int, _Loop]


def _bounds(
    machine: _Machine, product: Product, c: Constants, packing_s: float, memory: float
) -> list[_Bound]:
    m, n, k, batch, sms = product.m, product.n, product.k, product.batch, machine.sms
    start = c.launch_s * machine.clock_hz + c.first_clocks
    of_paths = [(start, _any_loops(machine, product, c))]
    if machine.has_bulk:
        of_paths.append((start + packing_s * machine.clock_hz, _bulk_loops(machine, product, c)))
    found: list[_Bound] = []
    for start, loops in of_paths:
        for loop in loops:
            tiles = -(-m // loop[0]) * -(-n // loop[1]) * batch
            of_block = loop[2] + k * loop[3]
            fullest = loop.of_turn + -(-tiles // sms) * of_block
            least = start + (fullest if fullest > memory else memory)
            found.append((least, start, of_block, tiles, loop))
    return found


def _weigh_tiles(
    found: list[Candidate],
    machine: _Machine,
    product: Product,
    c: Constants,
    packing_s: float,
    is_pruned: bool,
) -> None:
    """Add an estimate for each tile, of the quickest loops first, and then with splits."""
    k, sms, clock_hz = product.k, machine.sms, machine.clock_hz
    memory = product.matrix_bytes / machine.dram * clock_hz
    bounds = _bounds(machine, product, c, packing_s, memory)
    late_start = c.late_start_s * clock_hz
    best = inf
    if is_pruned:
        bounds.sort(key=_FIRST)
        best = min(map(_FIRST, found), default=inf) * clock_hz
    for least, start, _, tiles, loop in bounds:
        if least >= best:
            break
        step, bk = loop.step, loop.bk
        depth, whole = -(-k // step) * step, -(-k // bk) * bk
        clocks = _clocks_of_turns(loop, loop.each, sms, tiles, depth, whole, c)
        clocks = start + (clocks if clocks > memory else memory)
        if tiles > FEW_BLOCKS:
            clocks += late_start
        if clocks < best:
            found.append((clocks / clock_hz, loop.make, (loop.tile, 1)))
            best = clocks if is_pruned else best
    for bound in bounds:
        _, start, of_block, tiles, loop = bound
        least = start + tiles * (of_block + loop.least_of_split) / sms + loop.least_of_sums
        if least < best and tiles <= MOST_TURNS_TO_SPLIT * sms * loop.resident:
            best = _weigh_splits(found, machine, c, k, bound, memory, best, is_pruned)


def _weigh_splits(
    found: list[Candidate],
    machine: _Machine,
    c: Constants,
    k: int,
    bound: _Bound,
    memory: float,
    best: float,
    is_pruned: bool,
) -> float:
    """Add an estimate for each number of splits of a tile; return the shortest so far."""
    sms, clock_hz = machine.sms, machine.clock_hz
    _, start, _, tiles, loop = bound
    tile, bk, of_k = loop.tile, loop.bk, loop.least_of_k
    phases, each = -(-k // bk), loop.each + loop.of_split
    least = start + loop.least_of_sums
    for splits in _splits(tiles, sms, sms * loop.resident, phases, tile.most_ticketed):
        blocks, depth = tiles * splits, -(-phases // splits) * bk
        if least + -(-blocks // sms) * (each + depth * of_k) >= best:
            continue  # the SM with the most blocks takes too long, even at its highest rate
        clocks = _clocks_of_turns(loop, each, sms, blocks, depth, depth, c)
        second = c.late_start_s * clock_hz if blocks > FEW_BLOCKS else 0.0
        if splits <= tile.most_ticketed:
            waits = tile.groups * -(-splits // tile.splits_together)
            clocks += c.ticket_clocks + waits * c.ticket_wait_clocks + loop.of_turn
        else:
            waits = -(-splits // SUMS_TOGETHER)
            second += (c.sums_launch_s + waits * c.sums_wait_s) * clock_hz
        clocks = start + second + (clocks if clocks > memory else memory)
        if clocks < best:
            found.append((clocks / clock_hz, loop.make, (tile, splits)))
            best = clocks if is_pruned else best
    return best


def _clocks_of_turns(
    loop: _Loop, each: float, sms: int, blocks: int, depth: int, whole: int, c: Constants
) -> float:
    """Clocks of `blocks` blocks, whose warps compute `depth` of k in phases of `whole` of k.

    Blocks of an SM share its time. The SMs run turns of as many blocks as fit, and a last one of
    fewer, which some SMs have more of than others: those that were ready first.
    """
    slots = sms * loop.resident
    turns, rest = blocks // slots, blocks % slots
    together = -(-rest // sms)
    of_last = loop.beside[together]
    if turns == 0:
        alone, shared = whole * loop.beside[1], depth * of_last
        return loop.of_turn + together * each + (shared if shared > alone else alone)
    of_full = depth * loop.resident * loop.of_k
    of_turns = loop.resident * turns * each + of_full * (1.0 + loop.later * (turns - 1))
    if rest == 0:
        return of_turns + turns * loop.of_turn
    share = loop.last_turn_share / (turns * (1.0 + depth / loop.drift_k))
    of_last = depth * of_last + share * (of_full - depth * of_last)
    of_turns += (turns + 1) * loop.of_turn
    return of_turns + together * each + loop.later * of_last


def _splits(tiles: int, sms: int, slots: int, phases: int, most_ticketed: int) -> list[int]:
    """Numbers of splits that are weighed: small ones, and those that fill the SMs."""
    most = min(phases, MOST_SPLITS)
    numbers = [*SMALL_SPLITS[: most - 1]] if 2 * tiles >= sms else []
    last = numbers[-1] if numbers else 1
    for blocks in (sms, slots, 2 * slots):
        splits = min(blocks // tiles, most)
        if splits > last:
            numbers.append(splits)
            last = splits
    if last > most_ticketed and most_ticketed not in numbers:
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
        if tiles > FEW_BLOCKS:
            seconds += c.late_start_s
        found.append((seconds, streamed, (rows, workers)))


def _weigh_few_rows(
    found: list[Candidate], machine: _Machine, product: Product, c: Constants
) -> None:
    k, sms, turned = product.k, machine.sms, product.n < product.m
    few, many = (product.n, product.m) if turned else (product.m, product.n)
    along_k = (not product.transpose_a) if turned else product.transpose_b
    is_in_quads = product.in_quads[0 if turned else 1]
    columns = COLUMNS_OF_FEW_ROWS[along_k]
    rows = next(n for n in ROWS_OF_FEW_ROWS if n >= few)
    loads, k_of_chunk = loads_of_few_rows(rows, along_k, is_in_quads), depth_of_few_rows(rows)
    added_together, resident = splits_of_few_rows(rows, columns), 2 if rows > 4 else 3
    groups = -(-many // columns) * product.batch
    memory = product.matrix_bytes / machine.dram * machine.clock_hz
    start, of_rows = c.few_clocks[along_k], c.few_row_clocks[along_k] * rows
    reading_of_k = FLOAT_BYTES * min(columns, many) / c.few_sm_bytes_per_clock
    adding_of_k = columns * rows / machine.lanes / c.few_share_of_peak
    for splits, depth in _depths_of_few_rows(k, groups, sms):
        blocks, k_of_block = groups * splits, min(depth, k)
        together = min(resident, -(-blocks // sms))
        waiting = -(-k_of_block // k_of_chunk) * c.few_chunk_clocks
        waiting += -(-k_of_block // loads) * c.few_read_clocks
        reading, adding = together * k_of_block * reading_of_k, together * depth * adding_of_k
        rounds = -(-blocks // (sms * together))
        clocks = (start + of_rows * (1.0 + c.few_beside * (together - 1))) * rounds
        if splits > 1:
            clocks += c.few_ticket_clocks + -(-splits // added_together) * c.ticket_wait_clocks
        parts = rounds * waiting, rounds * reading, rounds * adding, memory
        clocks += sum(part**c.few_power for part in parts) ** (1.0 / c.few_power)
        seconds = c.launch_s + clocks / machine.clock_hz
        if blocks > FEW_BLOCKS:
            seconds += c.late_start_s
        found.append((seconds, few_rows, (splits, depth)))


def _depths_of_few_rows(k: int, groups: int, sms: int) -> set[tuple[int, int]]:
    """Numbers of splits of few_rows.cu that are weighed, each with its K."""
    most = min(-(-k // (2 * LEAST_DEPTH)), MOST_SPLITS_OF_FEW_ROWS)
    found = set()
    for blocks_of_sm in BLOCKS_OF_FEW_ROWS:
        splits = max(1, min(blocks_of_sm * sms // groups, most))
        depth = -(-k // (splits * LEAST_DEPTH)) * LEAST_DEPTH
        found.add((-(-k // depth), depth))
    return found


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
        work = bm * bn / machine.lanes + (bm + bn) * c.short_load_clocks
        clocks = phases * (c.short_phase_clocks + together * SHORT_DEPTH * work)
        clocks += together * c.short_store_clocks * bm * bn
        busy_s = max(rounds * clocks / machine.clock_hz, floor_s)
        seconds = c.launch_s + c.short_clocks / machine.clock_hz + busy_s
        if blocks > FEW_BLOCKS:
            seconds += c.late_start_s
        found.append((seconds, short_k, (rows, columns)))
