"""Programs of a few instructions for the model of an SM, and what warps execute of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.sm import INSTRUCTION, NO_SCOREBOARD, STEP, Kind, Machine, Streams, Unit, run

TAKEN, OFF = 1, 2
FULL = 0b1111  # all sectors of a line

# A step: the instruction, its clocks in the data stage, its flags, its lines as (number, sectors).
Step = int | tuple[Any, ...]
Warp = Sequence[Step]

FFMA = {"unit": Unit.FMA, "pipe_clocks": 2}
EXIT = {"kind": Kind.EXIT}
WAITING_EXIT = {"kind": Kind.EXIT, "wait": 1}  # for scoreboard 0
LDS = {"unit": Unit.LSU, "kind": Kind.SHARED_LOAD, "write_barrier": 0, "operands": 1}
LDS |= {"registers": 1}
LDG = {"unit": Unit.LSU, "kind": Kind.LOAD, "write_barrier": 0, "operands": 1, "registers": 1}
STG = {"unit": Unit.LSU, "kind": Kind.STORE, "operands": 2, "argument": 4}  # bytes of a lane
BAR = {"kind": Kind.BARRIER}

# Nothing but what a test asks for: no code is fetched, no slots are taken by what loads write.
# A machine with round numbers: of no architecture, for clocks that are worked out by hand.
BY_HAND = {
    "slots": 1,
    "l1_lines": 1024,
    "code_lines": 256,
    "bank_count": 2,
    "global_queue": 24,
    "operand_clocks": 2,
    "register_latency": 3,
    "shared_latency": 23,
    "l1_latency": 34,
    "l2_latency": 250,
    "dram_latency": 400,
    "atomic_latency": 450,
    "shared_atomic_latency": 26,
    "constant_latency": 30,
    "constant_word_latency": 10,
    "constant_miss_latency": 60,
    "fence_clocks": 400,
    "barrier_latency": 12,
    "barrier_per_warp": 2,
    "branch_clocks": 24,
    "block_start": 300,
    "block_interval": 90,
    "first_start": 0,
    "fetch_latency": 300,
    "fetch_clocks": 20,
    "integers_share": 0,
    "fma_halves": 2,
    "products_in_flight": 7,
    "product_latency": 43,
    "product_latency_of_registers": 33,
    "product_register_clocks": 4,
    "product_release": 15,
    "group_fence_clocks": 9,
    "proxy_fence_clocks": 20,
    "wavefront_clocks": 1.0,
    "request_clocks": 1.0,
    "load_clocks": 4 / 3,
    "sector_clocks": 1.2,
    "bypass_clocks": 1.0,
    "store_line_bytes": 64.0,
    "whole_line_bytes": 45.0,
    "part_bytes": 40.0,
    "l2_line_bytes": 32.0,
    "lookup_clocks": 0.0,
    "write_slots": 0.6,
    "barrier_unit_clocks": 1.5,
    "constant_clocks": 2.0,
    "constant_clocks_of_one": 3.0,
    "least_constant_clocks": 4.0,
    "constant_line_clocks": 30.0,
    "product_column_clocks": 0.5,
    "least_product_clocks": 13.0,
    "least_beside_products": 0.1,
    "idle_beside_products": 0.3,
    "miss_clocks": 0.0,
    "l2_bytes_per_clock": 64.0,
    "write_bytes_per_clock": 32.0,
    "dram_bytes_per_clock": 16.0,
    "dram_scatter": 0.0,
    "dram_spread": 0.0,
}
QUIET = BY_HAND | {
    "fetch_latency": 0,
    "fetch_clocks": 0,
    "write_slots": 0.0,
    "block_interval": 0,
    "first_start": 0,
    "barrier_unit_clocks": 0.0,
    "load_clocks": 1.0,
    "sector_clocks": 1.0,
    "operand_clocks": 1,
}


def code(*rows):
    """A table of instructions; what a row leaves out is as in a NOP that stalls for one clock."""
    table = np.zeros(len(rows), dtype=INSTRUCTION)
    table["stall"] = table["pipe_clocks"] = 1
    table["write_barrier"] = table["read_barrier"] = NO_SCOREBOARD
    table["source"] = -1
    for entry, row in zip(table, rows, strict=True):
        for name, value in row.items():
            entry[name] = value
    return table


def streams(blocks):
    """Streams of the warps of some blocks, from the steps of each warp."""
    warps = [warp for block in blocks for warp in block]
    distinct = {id(warp): warp for warp in warps}  # one list often stands for several warps
    made = {key: _of_warp(warp) for key, warp in distinct.items()}
    steps, lines = zip(*(made[id(warp)] for warp in warps), strict=True)
    return Streams(
        steps=np.concatenate(steps),
        lines=np.concatenate(lines),
        first_step=_firsts(steps)[:-1].astype(np.uint64),
        first_line=_firsts(lines)[:-1].astype(np.uint64),
        first_warp=_firsts(blocks),
    )


def _firsts(parts):
    """Where each of some parts begins that follow each other, and where the last one ends."""
    return np.cumsum([0, *map(len, parts)])


def _of_warp(warp):
    """Steps and lines of one warp."""
    steps, lines = [], []
    for step in warp:
        if isinstance(step, int):
            steps.append((step, 0, 0, 0))
            continue
        pc, clocks, flags, touched = _complete(step)
        more, count = divmod(len(touched), 256)  # bulk copies may have more words
        steps.append((pc, clocks or more, count, flags))
        lines += [number << 4 | sectors for number, sectors in touched]
    return np.array(steps, dtype=STEP), np.array(lines, dtype=np.uint64)


def _complete(step):
    return (*step, *(0, 0, ())[len(step) - 1 :])


def ran(table, *warps, blocks=None, jobs=None, **machine):
    """Run the warps of one block, or some blocks, on a quiet machine with changes.

    Each block runs once unless `jobs` says otherwise.
    """
    blocks = [warps] if blocks is None else blocks
    chosen = range(len(blocks)) if jobs is None else jobs
    return run(table, streams(blocks), list(chosen), Machine(**(QUIET | machine)))


def clocks(*args, **machine):
    return ran(*args, **machine).clocks
