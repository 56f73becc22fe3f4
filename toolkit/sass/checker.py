"""Sanitizer of the simulator: execution of a program with checks, and its findings.

The core has operations with checks (`core/check_ops.h`). This module puts them in place of the
plain ones, so that a plain simulation has no overhead.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.machine_code.instruction import Instruction
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.core import binding as core
from toolkit.sass.core.binding import Fault
from toolkit.sass.isa.memory import LOCAL, SHARED, SPACE_SHIFT
from toolkit.sass.isa.registry import Lowered
from toolkit.sass.machine import (
    CANCELLED,
    OK,
    UNLIMITED,
    drive,
    faults_of,
    launched,
    worker_handles,
)
from toolkit.sass.printed import PrintedRecords, printed_records
from toolkit.sass.space import PAGE_BYTES
from toolkit.sass.translate import Translated

# FOUND_* of check.h
(
    READ_AFTER_WRITE,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    UNWRITTEN,
    DIVERGENT_WARP,
    ABSENT_LANE,
    INVALID_MASK,
    MISMATCHED_MASK,
    OUT_OF_BOUNDS,
    MISALIGNED,
    WRITE_TO_CONSTANT,
    UNNAMED_SOURCE,
    ABSENT_SOURCE,
    EARLY_ACCESS,
    LEFT_BLOCK,
    NO_PROXY_FENCE,
    OTHER_SWIZZLE,
    MISALIGNED_MATRIX,
    EARLY_RESULT,
    EARLY_CHANGE,
    NO_ARRIVE,
) = range(1, 22)
NOBODY = 0xFFFFFFFF
RELAXED, HAS_MASK, MET, GIVES, CLUSTER = 1, 2, 4, 8, 16  # bits of Ins.reserved: CHECK_* of check.h
INSTEAD_SHIFT = 8  # above these bits, the operation that a checked one stands for
MASK_SOURCE = 5
IS_ASYNC, IS_BULK, READ_IS_FIRST, IS_PRODUCT = 1, 2, 3, 4  # of a finding
# As in check_ops.h.
MOST_FAULTS = 100  # distinct instructions that fault, after which a launch stops
AFTERLIFE = 1 << 25  # warp instructions that are executed after the first fault

SHADOW_BYTES = 40  # of a cell of global memory: Owner, Reader and Detail of check_blocks.h
WORD = 4  # bytes of a cell, unless an access of the program is narrower
# The store of one thread that tells an mbarrier of its bytes, made for the blocks of a cluster,
# which write each other's memory; and zeros, which a warp writes at once.
UNFOLLOWED = {"STAS", "REDAS", "UMEMSETS"}
# What ld.cg and st.cg move: in machine code they are as strong as a flag, which is never as wide.
DATA_WIDTH = "128"
# How far behind the load of an atomic loop its compare-and-store stands, in instructions.
LOOP_LENGTH = 32

# What an undefined shuffle may give, as floats of either sign and as integers, odd and even.
GIVEN_VALUES = (0x7F7FFFFE, 0xFF7FFFFF)

COLLECTIVES = {"SHFL", "VOTE", "MATCH", "REDUX"}
Access = {
    "LOAD": "CHECK_LOAD",
    "STORE": "CHECK_STORE",
    "ATOMIC": "CHECK_ATOMIC",
    "MATRIX_LOAD": "CHECK_MATRIX_LOAD",
    "MATRIX_STORE": "CHECK_MATRIX_STORE",
}


@dataclass(frozen=True, kw_only=True)
class Raw:
    """Findings of the core (`core.FINDING`), and the fault that stopped it, if one did.

    `executed`: number of executions of each instruction.
    """

    findings: NDArray[Any]
    is_complete: bool  # False: there were more kinds than it notes
    fault: Fault | None
    executed: NDArray[Any]
    printed: PrintedRecords


def with_checks(
    translated: Translated, bound: BoundLaunch, unwritten: Sequence[str] = ()
) -> BoundLaunch:
    """The launch with checks of its accesses to memory and of its synchronisation.

    `unwritten` names buffers that hold nothing a kernel may read; what malloc gives is another.
    """
    return replace(
        bound,
        lowered=_checked_program(translated),
        buffers=[replace(b, unwritten=b.is_heap or b.name in unwritten) for b in bound.buffers],
        checked_bytes=_cell_bytes(translated.lowered),
        checks_products=_checks_products(translated),
    )


def run_checked(
    bound: BoundLaunch,
    blocks: Sequence[int],
    *,
    max_instructions: int | None = None,
    advance: Callable[[int], None] = lambda done: None,
) -> Raw:
    """Execute blocks one after another on one worker, which sees the accesses of all of them.

    The other blocks of their clusters are executed too; where blocks may wait for each other, those
    from the first to the last are executed together.
    """
    budget = UNLIMITED if max_instructions is None else max_instructions
    is_whole = len(blocks) == bound.geometry.blocks
    clusters = range(bound.clusters) if is_whole else sorted(set(map(bound.cluster_of, blocks)))
    pieces: Iterable[range] = (range(cluster, cluster + 1) for cluster in clusters)
    if bound.blocks_meet:
        pieces = [range(clusters[0], clusters[-1] + 1)]
    with launched(bound) as launch, worker_handles(launch, 1, budget) as (handles, counts):
        kept = None if is_whole else [(block, handles[0]) for block in blocks]
        drive(launch, handles, iter(pieces), advance, kept)
        return _raw(handles[0], counts[0]["executed"])


def undefined_values_matter(
    launch: BoundLaunch, blocks: Sequence[int], *, max_instructions: int | None = None
) -> bool:
    """True if memory after a launch with checks depends on the undefined results of shuffles.

    The launch was executed without a fault. It is executed again, with other such values.
    """
    if any(buffer.writable and not buffer.shared for buffer in launch.buffers):
        return True  # it cannot be executed again
    before = _written_pages(launch)
    for value in GIVEN_VALUES:
        launch.restore()
        raw = run_checked(_giving(launch, value), blocks, max_instructions=max_instructions)
        if raw.fault or _written_pages(launch) != before:
            return True
    return False


def _written_pages(launch: BoundLaunch) -> list[bytes]:
    """Digest of the content of each buffer where blocks wrote to it."""
    found = []
    for buffer in launch.buffers:
        digest = sha256()
        pages = np.flatnonzero(buffer.shared[1]) if buffer.shared else ()
        for page in pages:
            digest.update(int(page).to_bytes(8))
            digest.update(buffer.data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES].tobytes())
        found.append(digest.digest())
    return found


def _giving(launch: BoundLaunch, value: int) -> BoundLaunch:
    """The launch with a value that undefined shuffles give."""
    program = launch.lowered.program.copy()
    shuffles = program["op"] == core.operations()["CHECK_COLLECTIVE"]
    shuffles &= program["reserved"] >> INSTEAD_SHIFT == core.operations()["SHFL"]
    program["reserved"][shuffles] |= GIVES
    program["imm"][shuffles] = value
    return replace(launch, lowered=replace(launch.lowered, program=program))


def _raw(handle: int, executed: NDArray[Any]) -> Raw:
    count, lost = ctypes.c_uint32(), ctypes.c_uint32()
    address = core.library().core_findings(handle, ctypes.byref(count), ctypes.byref(lost))
    data = ctypes.string_at(address, count.value * core.FINDING.itemsize) if address else b""
    fault, _, _ = faults_of(handle)
    return Raw(
        findings=np.frombuffer(data, dtype=core.FINDING),
        is_complete=not lost.value,
        fault=None if fault.kind in (OK, CANCELLED) else fault,
        executed=executed,
        printed=printed_records([handle]),
    )


def memory_bytes(bound: BoundLaunch) -> int:
    """Upper bound on bytes that the core allocates for global memory and its shadow.

    It allocates pages when they are first accessed."""
    sizes = (buffer.bytes for buffer in bound.buffers)
    return sum(n + SHADOW_BYTES * (n // bound.checked_bytes + 1) for n in sizes)


def follows_shared_memory(translated: Translated) -> bool:
    """True if the checker models everything that orders accesses of this code to shared memory.

    It does not model blocks of a cluster that write each other's shared memory, and st.bulk.
    """
    kernel = translated.kernel
    return kernel.cluster == (1, 1, 1) and not any(
        i.opcode in UNFOLLOWED for i in kernel.instructions
    )


def follows_clusters(translated: Translated) -> bool:
    """True if nothing but barriers of the cluster orders accesses of each other's shared memory.

    mbarriers and bulk copies order them too, which is not followed across blocks.
    """
    kernel = translated.kernel
    return kernel.cluster != (1, 1, 1) and not any(
        i.opcode == "SYNCS" or i.opcode.startswith(("UBLK", "UTMA")) or i.opcode in UNFOLLOWED
        for i in kernel.instructions
    )


# Opcodes that order accesses, or copy without being an operation of `Access`.
_ORDERING = {"LDGSTS", "LDGDEPBAR", "DEPBAR", "MEMBAR", "FENCE"}
_OF_PRODUCTS = {
    "GMMA": "CHECK_GMMA",
    "GMMA_ARRIVE": "CHECK_GMMA_ARRIVE",
    "GMMA_WAIT": "CHECK_GMMA_WAIT",
}


def _checks_products(translated: Translated) -> bool:
    """True if the async proxy reads shared memory: products of warpgroups, and bulk copies."""
    return follows_shared_memory(translated) and any(
        i.opcode.endswith("GMMA") or i.opcode.startswith(("UTMA", "UBLK"))
        for i in translated.kernel.instructions
    )


def _cell_bytes(lowered: Lowered) -> int:
    """The narrowest access of the program, so that neighbours in a word are told apart."""
    kinds = [core.operations()[name] for name in Access]
    widths = lowered.program["width"][np.isin(lowered.program["op"], kinds)]
    return int(min([WORD, *widths]))


def _checked_program(translated: Translated) -> Lowered:
    lowered, instructions = translated.lowered, translated.kernel.instructions
    program = lowered.program.copy()
    together = translated.kernel.warp_operations
    in_cluster = follows_clusters(translated)
    products = {
        core.operations()[plain]: core.operations()[checked]
        for plain, checked in (_OF_PRODUCTS.items() if _checks_products(translated) else ())
    }
    unchecked = {LOCAL} if in_cluster or follows_shared_memory(translated) else {LOCAL, SHARED}
    accesses = {core.operations()[access]: access for access in Access}
    for index, (instruction, operation) in enumerate(
        zip(instructions, program["op"].tolist(), strict=True)
    ):
        is_checked = operation in accesses or operation in products
        if not (is_checked or instruction.opcode in _ORDERING or instruction.address in together):
            continue
        row = program[index]
        name = accesses.get(operation)
        _check_access(row, name, index, instructions, unchecked, CLUSTER if in_cluster else 0)
        _check_synchronisation(row, instruction)
        row["op"] = products.get(int(row["op"]), row["op"])
        if products and instruction.opcode == "FENCE" and "ASYNC" in instruction.modifiers:
            row["op"] = core.operations()["CHECK_PROXY_FENCE"]
        if instruction.address in together:
            mask = together[instruction.address]
            is_known = mask is not None and mask < lowered.first_uniform
            before = instructions[index - 1] if index else None
            _check_warp(row, instruction, before, mask if is_known else None)
    return replace(lowered, program=program)


def _check_access(
    row: Any,
    name: str | None,
    index: int,
    instructions: Sequence[Instruction],
    unchecked: Set[int],
    flags: int,
) -> None:
    operations, instruction = core.operations(), instructions[index]
    if name is not None and int(row["flags"] >> SPACE_SHIFT & 7) not in unchecked:
        row["op"] = operations[Access[name]]
        row["reserved"] = flags | (RELAXED if _is_relaxed(index, instructions) else 0)
    elif instruction.opcode == "LDGSTS":
        row["op"] = operations["CHECK_COPY_ASYNC"]


def _is_relaxed(index: int, instructions: Sequence[Instruction]) -> bool:
    """True if an access is volatile or atomic, or a load in the retry loop of a shared atomic."""
    load = instructions[index]
    if "STRONG" in load.modifiers:
        return not {"GPU", DATA_WIDTH} <= set(load.modifiers)
    return (
        load.opcode == "LDS"
        and any(
            later.opcode == "ATOMS"
            and "SPIN" in later.modifiers
            and load.operands[0] == later.operands[-2]  # what it compares with
            for later in instructions[index + 1 : index + LOOP_LENGTH]
        )
    )


def _check_synchronisation(row: Any, instruction: Instruction) -> None:
    operations = core.operations()
    match instruction.opcode:
        case "LDGDEPBAR":
            row["op"] = operations["CHECK_COMMIT"]
        case "DEPBAR" if "LE" in instruction.modifiers:
            row["op"] = operations["CHECK_WAIT"]
            row["aux"] = getattr(instruction.operands[1], "integer", 0)
        case "MEMBAR" if {"GPU", "SYS"} & set(instruction.modifiers):
            row["op"] = operations["CHECK_FENCE"]


def _check_warp(
    row: Any, instruction: Instruction, before: Instruction | None, mask: int | None
) -> None:
    if instruction.opcode not in {"NOP", *COLLECTIVES}:
        return
    row["reserved"] = int(row["op"]) << INSTEAD_SHIFT
    row["op"] = core.operations()["CHECK_COLLECTIVE"]
    if mask is not None:
        row["reserved"] |= HAS_MASK
        row["s"][MASK_SOURCE] = mask
    elif before is not None and before.opcode == "WARPSYNC":
        row["reserved"] |= MET
