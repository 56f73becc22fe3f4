"""The native core, through ctypes: its layouts, its operations, its workers.

The core is C (`core/`), built when the package is installed, once for any processor and once for
those with AVX2 and FMA; this loads the better one that runs here.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    Structure,
    byref,
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

from analysis.errors import REBUILD, UnavailableError
from toolkit.native import core_sources

LANES = 32
POOL = 0x80000000  # set in a slot that names a constant of the launch
PT, UPT, PREDICATE_DISCARD = 7, 15, 31
PREDICATE_NOT = 0x80
SOURCES = 6
BANKS_OF_CONSTANTS = 8

# One instruction, as core.h has it.
INSTRUCTION = np.dtype(
    [
        ("op", "u2"),
        ("guard", "u1"),
        ("uniform", "u1"),
        ("flags", "u4"),
        ("d", "u4", 2),
        ("s", "u4", SOURCES),
        ("mod", "u1", SOURCES),
        ("pd", "u1", 2),
        ("ps", "u1", 4),
        ("width", "u4"),
        ("aux", "u4"),
        ("reserved", "u4"),
        ("imm", "i8"),
    ],
    align=True,
)

# What one instruction did, over all warps.
COUNT = np.dtype(
    [
        (name, "u8")
        for name in (
            "executed",
            "threads",
            "predicated",
            "requests",
            "sectors",
            "wavefronts",
            "conflict_free",
            "ideal",
            "taken",
            "divergent",
            "reissued",
            "reissued_threads",
            "refused",
        )
    ]
)

ALLOCATION = np.dtype(
    [("base", "u8"), ("bytes", "u8"), ("host", "u8"), ("writable", "u4"), ("unwritten", "u4")]
)

# Sectors of a 128-byte line that a block reads or writes for the first time.
TOUCH = np.dtype(
    [
        ("line", "u8"),
        ("block", "u8"),
        ("step", "u4"),
        ("warp", "u2"),
        ("mask", "u1"),
        ("kind", "u1"),
    ]
)


# One executed instruction of a warp, and where a run of them begins that one warp executed.
STEP = np.dtype([("pc", "u4"), ("clocks", "u2"), ("lines", "u1"), ("flags", "u1")])
SEGMENT = np.dtype(
    [("block", "u8"), ("first", "u8"), ("first_line", "u8"), ("warp", "u4"), ("reserved", "u4")]
)

# A memory request of a warp, with the address of each lane of its mask.
REQUEST = np.dtype(
    [
        ("block", "u8"),
        ("pc", "u4"),
        ("warp", "u4"),
        ("mask", "u4"),
        ("space", "u4"),
        ("address", "u8", LANES),
    ]
)


# Two accesses that nothing orders, or what else the sanitizer found (check.h).
FINDING = np.dtype(
    [
        ("kind", "u4"),
        ("space", "u4"),
        ("pc", "u4"),
        ("pc_before", "u4"),
        ("block", "u8"),
        ("block_before", "u8"),
        ("thread", "u4"),
        ("thread_before", "u4"),
        ("address", "u8"),
        ("width", "u4"),
        ("is_async", "u4"),
        ("is_store", "u4"),
        ("reserved", "u4"),
        ("times", "u8"),
    ]
)


class Bank(Structure):
    _fields_ = (("data", c_void_p), ("bytes", c_uint64))


class Launch(Structure):
    _fields_ = (
        ("program", c_void_p),
        ("length", c_uint32),
        ("slots", c_uint32),
        ("pool", c_void_p),
        ("allocations", c_void_p),
        ("allocation_count", c_uint32),
        ("architecture", c_uint32),
        ("banks", Bank * BANKS_OF_CONSTANTS),
        ("grid", c_uint32 * 3),
        ("block", c_uint32 * 3),
        ("shared_base", c_uint32),
        ("shared_bytes", c_uint32),
        ("local_bytes", c_uint32),
        ("first_ur", c_uint32),
        ("shared_window", c_uint64),
        ("local_window", c_uint64),
        ("cancel", c_uint32),
        ("check", c_uint32),
        ("most_touches", c_uint64),
        ("most_steps", c_uint64),
        ("spread_base", c_uint64),
        ("spread_bytes", c_uint64),
        ("spread_from", c_uint64),
        ("spread_to", c_uint64),
        ("cluster", c_uint32 * 3),
        ("most_resident", c_uint32),
        ("most_requests", c_uint64),
    )


class Fault(Structure):
    _fields_ = (
        ("kind", c_uint32),
        ("pc", c_uint32),
        ("space", c_uint32),
        ("width", c_uint32),
        ("address", c_uint64),
        ("block", c_uint64),
        ("warp", c_uint32),
        ("lane", c_uint32),
        ("is_store", c_uint32),
        ("waiting", c_uint32),
        ("resident", c_uint32),
        ("pending", c_uint32),
        ("bytes", c_int32),
        ("phase", c_uint32),
    )


class Kept(Structure):
    _fields_ = (("block", c_uint64), ("keeper", c_void_p))


@cache
def library() -> ctypes.CDLL:
    """The core that suits this processor. Raises UnavailableError where none was built."""
    for flavour in ("_core_v3", "_core"):
        path = Path(__file__).with_name(f"{flavour}.so")
        if not path.exists():
            continue
        loaded = ctypes.CDLL(str(path))
        if loaded.core_runs_here():
            return _declared(_checked(loaded))
    raise UnavailableError(f"the simulator's native core was not built: {REBUILD}")


def array(of: int, function: str, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """What `function` of the core gives, in the core's own memory; None where it gives nothing."""
    count = c_uint64()
    address = getattr(library(), function)(of, byref(count))
    if address is None:
        return None
    content: Any = (c_char * (count.value * dtype.itemsize)).from_address(address)
    found: NDArray[Any] = np.frombuffer(content, dtype=dtype)
    return found


@cache
def operations() -> dict[str, int]:
    """The number of each operation of the core."""
    count = c_uint32()
    names = library().core_operation_names(ctypes.byref(count))
    return {names[k].decode(): k for k in range(count.value) if names[k]}


def _checked(core: ctypes.CDLL) -> ctypes.CDLL:
    """The core, if it was built from the sources that these layouts are of."""
    sizes = (c_uint32 * 10)()
    core.core_sizes(sizes)
    here = [INSTRUCTION.itemsize, COUNT.itemsize, ctypes.sizeof(Launch), ctypes.sizeof(Fault)]
    noted = (ALLOCATION, TOUCH, STEP, SEGMENT, REQUEST, FINDING)
    layouts = [*here, *(dtype.itemsize for dtype in noted)]
    if list(sizes) != layouts or core_sources() not in (None, _built_from(core)):
        raise UnavailableError(
            f"the simulator's native core was built from other sources: {REBUILD}"
        )
    return core


def _built_from(core: ctypes.CDLL) -> str:
    if not hasattr(core, "core_sources"):
        return ""
    core.core_sources.restype = c_char_p
    digest: bytes = core.core_sources()
    return digest.decode()


def _declared(core: ctypes.CDLL) -> ctypes.CDLL:
    core.core_operation_names.argtypes = [POINTER(c_uint32)]
    core.core_operation_names.restype = POINTER(c_char_p)
    core.core_new_worker.argtypes = [POINTER(Launch), c_void_p, c_int64, c_uint32]
    core.core_new_worker.restype = c_void_p
    core.core_run.argtypes = [c_void_p, *[c_uint64] * 3, POINTER(Kept), c_uint64]
    core.core_run.restype = c_uint32
    core.core_faults.argtypes = [c_void_p, POINTER(Fault), POINTER(Fault), POINTER(c_uint64)]
    core.core_free_worker.argtypes = [c_void_p]
    core.core_touches.argtypes = [c_void_p, POINTER(c_uint64), POINTER(c_uint64)]
    core.core_touches.restype = c_void_p
    core.core_take_stream.argtypes = [c_void_p]
    core.core_take_stream.restype = c_void_p
    core.core_free_stream.argtypes = [c_void_p]
    for name in ("core_steps", "core_segments", "core_lines", "core_requests"):
        getattr(core, name).argtypes = [c_void_p, POINTER(c_uint64)]
        getattr(core, name).restype = c_void_p
    core.core_findings.argtypes = [c_void_p, POINTER(c_uint32), POINTER(c_uint32)]
    core.core_findings.restype = c_void_p
    core.core_probe.argtypes = [c_void_p, c_uint64, c_uint32, c_void_p, c_void_p, c_void_p]
    core.core_probe.restype = c_uint32
    return core
