"""The native core, through ctypes: its layouts, its operations, its workers.

The core is C (`core/`), built when the package is installed, once for any processor and once for
those with AVX2 and FMA; this loads the better one that runs here.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    Structure,
    c_char,
    c_char_p,
    c_int32,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.layout import dtype_of, fields_of
from analysis.library import loaded

LANES = 32
POOL = 0x80000000  # set in a slot that names a constant of the launch
PT, UPT, PREDICATE_DISCARD = 7, 15, 31
PREDICATE_NOT = 0x80
SOURCES = 6
BANKS_OF_CONSTANTS = 8


def _of_c(declared: str) -> tuple[tuple[str, Any], ...]:
    """The fields of a structure (analysis.layout) for ctypes."""
    kinds = {"u4": c_uint32, "u8": c_uint64, "i4": c_int32, "p": c_void_p, "bank": Bank}
    return tuple(
        (name, kinds[kind] * n if n > 1 else kinds[kind]) for name, kind, n in fields_of(declared)
    )


# One instruction, as core.h has it.
INSTRUCTION = dtype_of(
    f"u2 op; u1 guard uniform; u4 flags d[2] s[{SOURCES}]; u1 mod[{SOURCES}] pd[2] ps[4]; "
    "u4 width aux reserved; i8 imm",
    align=True,
)

# What one instruction did, over all warps.
COUNT = dtype_of(
    "u8 executed threads predicated requests sectors wavefronts conflict_free ideal taken "
    "divergent reissued reissued_threads refused"
)

ALLOCATION = dtype_of("u8 base bytes host source pages; u4 writable unwritten is_heap touched")
WAS_READ, WAS_WRITTEN = 1, 2  # of an allocation

# Sectors of a 128-byte line that a block reads or writes for the first time.
ACCESS = dtype_of("u8 line block; u4 step; u2 warp; u1 mask kind")

# Atomic operations on a line, or stores: requests, operations on parts of sectors and on whole
# ones, additions of floats to each sector, places of the first and the last among those of a warp,
# and the number of the last instruction (tally.h).
ATOMIC_LINE = dtype_of("u8 line requests parts wholes additions[4]; u4 first last pc unused")

# Warp instructions that a block executed: of all its warps, and of the one that executed most.
WORK = dtype_of("u8 executed longest")

# How long a warp takes for an instruction, in ticks (pace.h).
PACE = dtype_of(
    "u4 stall latency of_unit; u1 wait scoreboard is_of_sm is_load is_private", align=True
)
SCOREBOARDS = 6

# Where a run of executed instructions (STEP) begins that one warp executed.
SEGMENT = dtype_of("u8 block first first_line; u4 warp is_late")

# A number in global memory that blocks find as the blocks before them leave it: `first` plus `by`
# for each of these.
TICKET = dtype_of("u8 address; i8 first by; u8 bytes")

# A memory request of a warp, with the address of each lane of its mask.
REQUEST = dtype_of(f"u8 block; u4 pc warp mask space; u8 address[{LANES}]")

# Two accesses that nothing orders, or what else the sanitizer found (check.h).
FINDING = dtype_of(
    "u4 kind space pc pc_before; u8 block block_before; u4 thread thread_before; u8 address; "
    "u4 width is_async is_store owner; u8 times"
)

# An affine function of the block's index with its borders, and what an instruction depends on
# (origins.h).
AFFINE = dtype_of("i8 c[3] low high parts")
DEPENDENCE = dtype_of("u1 branch guard address parted")
REACH = dtype_of("u8 bytes; u4 by_data is_read")  # of the accesses to an allocation


class Bank(Structure):
    _fields_ = (("data", c_void_p), ("bytes", c_uint64), ("read", c_void_p))


class CoreLaunch(Structure):
    _fields_ = _of_c(
        "p program; u4 length slots; p pool allocations; u4 allocation_count; "
        f"bank banks[{BANKS_OF_CONSTANTS}]; u4 grid[3] block[3] shared_base shared_bytes "
        "local_bytes; u8 shared_window local_window; u4 cancel check; u8 most_accesses "
        "most_steps spread_base spread_bytes spread_from spread_to; u4 cluster[3] most_resident; "
        "u4 notes_requests follows at_once gives_up; p under region_ends region_writes work; "
        "u8 heap_base heap_bytes; p textures; "
        "u4 texture_count registers checks_products start_ticks; p paces; u8 quantum; "
        "u4 leaves_bounds notes_atomics ticket_count unused; p tickets; u8 window period"
    )


class Fault(Structure):
    """Reason why the core stopped, in its own numbers; `instruction` is an index into the program.

    At a deadlock, `waiting` threads of the block are at that instruction, and all `resident` blocks
    wait. If they wait for an mbarrier, it is at `address`, and its phase of parity `phase` still
    lacks `pending` arrivals and `bytes` of copies. `words` are the arguments of an assert that
    failed, or in the heap the address and the bytes of the live block before what was accessed.
    """

    _fields_ = _of_c(
        "u4 kind instruction space width_bytes; u8 address block; u4 warp lane is_store waiting "
        "resident pending; "
        "i4 bytes; u4 phase; u8 words[4]"
    )


class Stream(Structure):
    """Stream of executed instructions, as in stream.h."""

    _fields_ = _of_c(
        "p steps; u8 count room executed most; p lines; u8 line_count line_room; p segments; "
        "u8 segment_count segment_room; u4 lost"
    )


class Kept(Structure):
    _fields_ = _of_c("u8 block; p keeper")


@cache
def library() -> ctypes.CDLL:
    """The core that suits this processor. Raises UnavailableError where none was built."""
    folder = Path(__file__).parent
    path = folder.with_name("_core_v3.so")
    if not path.exists() or not ctypes.CDLL(str(path)).core_runs_here():
        path = folder.with_name("_core.so")
    return _declared(loaded(path, folder, "the simulator's native core"))


def array(address: int | None, count: int, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """View of the core's own memory at an address; None for a null address."""
    if address is None:
        return None
    content: Any = (c_char * (count * dtype.itemsize)).from_address(address)
    found: NDArray[Any] = np.frombuffer(content, dtype=dtype)
    return found


@cache
def operations() -> dict[str, int]:
    """The number of each operation of the core."""
    count = c_uint32()
    names = library().core_operation_names(ctypes.byref(count))
    return {names[k].decode(): k for k in range(count.value) if names[k]}


# Of each function of the core what it takes and what it gives.
_FUNCTIONS: dict[str, tuple[list[Any], Any]] = {
    "core_operation_names": ([POINTER(c_uint32)], POINTER(c_char_p)),
    "core_new_worker": ([POINTER(CoreLaunch), c_void_p, c_int64, c_uint32], c_void_p),
    "core_free_worker": ([c_void_p], None),
    "core_run": ([c_void_p, *[c_uint64] * 3, POINTER(Kept), c_uint64], c_uint32),
    "core_faults": ([c_void_p, POINTER(Fault), POINTER(Fault), POINTER(c_uint64)], None),
    "core_finished": ([c_void_p], c_uint64),
    "core_now": ([c_void_p], c_uint64),
    "core_accesses": ([c_void_p, POINTER(c_uint64 * 4)], c_void_p),
    "core_tally": ([c_void_p, c_uint32, POINTER(c_uint64), c_void_p], c_void_p),
    "core_take_stream": ([c_void_p], c_void_p),
    "core_free_stream": ([c_void_p], None),
    "core_printed": ([c_void_p, POINTER(c_uint64 * 2)], c_void_p),
    "core_requests": ([c_void_p], c_void_p),
    "core_affine": ([c_void_p, POINTER(c_uint32), POINTER(c_uint32 * 3)], c_void_p),
    "core_dependences": ([c_void_p], c_void_p),
    "core_reaches": ([c_void_p], c_void_p),
    "core_words_read": ([c_void_p, c_uint32], c_uint32),
    "core_words_written": ([c_void_p], c_uint32),
    "core_words_written_beside": ([c_void_p], c_uint32),
    "core_findings": ([c_void_p, POINTER(c_uint32), POINTER(c_uint32)], c_void_p),
    "core_probe": ([c_void_p, c_uint64, c_uint32, *[c_void_p] * 3], c_uint32),
}


def _declared(core: ctypes.CDLL) -> ctypes.CDLL:
    for name, (takes, gives) in _FUNCTIONS.items():
        getattr(core, name).argtypes, getattr(core, name).restype = takes, gives
    return core
