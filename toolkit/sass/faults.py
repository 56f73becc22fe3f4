"""What a kernel did wrong, in words: where in the source, which thread, which address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolkit.sass import machine
from toolkit.sass.core import LANES
from toolkit.sass.machine import SPACES, Bound, Fault, Run
from toolkit.sass.space import Buffer
from toolkit.sass.translate import Translated


def describe(fault: Fault, translated: Translated, bound: Bound) -> str:
    """One line on the fault that stopped a launch."""
    kernel = translated.cubin.kernel
    where = _where(fault, translated)
    who = f"block {_index(fault.block, bound.geometry.grid)}"
    if fault.kind in (machine.OUT_OF_BOUNDS, machine.MISALIGNED, machine.WRITE_TO_CONSTANT):
        thread = _index(fault.warp * LANES + fault.lane, bound.geometry.block)
        return f"{kernel}: {_access(fault, bound)}; {who}, thread {thread}, {where}"
    reason = {
        machine.DEADLOCK: "waits forever: a barrier is reached by a part of its threads only",
        machine.LIMIT: (
            "ran over the limit of instructions: an endless loop? (--max-instructions raises it)"
        ),
        machine.BAD_TARGET: "jumped out of its code",
        machine.TRAP: "trapped (__trap or assert)",
        machine.UNIMPLEMENTED: "did what the simulator does not know",
        machine.NO_MEMORY: "needs more memory than there is",
    }[fault.kind]
    return f"{kernel} {reason}; {who}, {where}"


def describe_unwritten(
    runs: Sequence[Run], translated: Translated, bound: Bound
) -> Iterator[str]:
    """A note on reads of shared memory that nobody wrote, if there were any."""
    reads = sum(run.unwritten_reads for run in runs)
    first = next((run.first_unwritten for run in runs if run.first_unwritten), None)
    if first is None:
        return
    thread = _index(first.warp * LANES + first.lane, bound.geometry.block)
    yield (
        f"{reads:,} thread{'s' * (reads != 1)} read shared memory that nobody wrote, first "
        f"{first.width_bytes} bytes at {_shared_address(first.address, bound)}: block "
        f"{_index(first.block, bound.geometry.grid)}, thread {thread}, {_where(first, translated)}"
    )


def _access(fault: Fault, bound: Bound) -> str:
    what = f"{'write' if fault.is_store else 'read'} of {fault.width_bytes} bytes"
    space = SPACES[fault.space]
    address = f"{fault.address:#x}"
    if space == "shared":
        address = _shared_address(fault.address, bound)
    if fault.kind == machine.MISALIGNED:
        return f"misaligned {space} {what} at {address}: not a multiple of {fault.width_bytes}"
    if fault.kind == machine.WRITE_TO_CONSTANT:
        return f"{space} {what} at {address}, which is read-only"
    bounds = {
        "global": lambda: _nearest(fault, bound.buffers),
        "shared": lambda: f"the block has {bound.shared_bytes - bound.shared_base:,} bytes",
        "local": lambda: f"the thread has {bound.local_bytes:,} bytes",
        "constant": lambda: "beyond the bank",
    }[space]()
    return f"{space} {what} out of bounds at {address}: {bounds}"


def _nearest(fault: Fault, buffers: Sequence[Buffer]) -> str:
    def distance(buffer: Buffer) -> int:
        end = buffer.address + buffer.bytes
        return max(buffer.address - fault.address, fault.address + fault.width_bytes - end)

    if not buffers:
        return "the kernel has no buffers"
    nearest = min(buffers, key=distance)
    end = nearest.address + nearest.bytes
    size = f"{nearest.name} ({nearest.bytes:,} bytes at {nearest.address:#x})"
    if fault.address >= end:
        return f"{fault.address - end:,} bytes after the end of {size}"
    if fault.address >= nearest.address:
        return f"across the end of {size}"
    return f"{nearest.address - fault.address:,} bytes before {size}"


def _shared_address(address: int, bound: Bound) -> str:
    """Counted from the first byte that the kernel may use, as its author counts."""
    offset = address - bound.shared_base
    return f"byte {offset:,}" if offset >= 0 else f"{-offset:,} bytes before its start"


def _where(fault: Fault, translated: Translated) -> str:
    instruction = translated.program.instructions[fault.instruction]
    code = f"{instruction.text.strip()} at {instruction.address:#06x}"
    if instruction.source is None:
        return f"{code} (compile with -lineinfo for the source line)"
    return f"{instruction.source.file} line {instruction.source.line}: {code}"


def _index(linear: int, extents: tuple[int, int, int]) -> str:
    x, rest = linear % extents[0], linear // extents[0]
    return f"({x}, {rest % extents[1]}, {rest // extents[1]})"
