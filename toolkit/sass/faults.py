"""Text that describes a fault of a kernel: line of the source, thread, address."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from reports import text
from toolkit.sass import machine
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.core.binding import LANES, Fault
from toolkit.sass.isa.control import SYSTEM_FUNCTIONS
from toolkit.sass.machine import SPACES, Run
from toolkit.sass.space import Buffer
from toolkit.sass.system_calls import bad_free, beside_blocks, failed_assert
from toolkit.sass.texture_faults import describe_texture_fault
from toolkit.sass.translate import Translated
from toolkit.sass.waits import waits

SHARED_WINDOW_BYTES = 1 << 24  # of each block of a cluster

NULL_PAGE_BYTES = 1 << 16  # an address below that was computed from a null pointer

_OF_MEMORY = (machine.OUT_OF_BOUNDS, machine.MISALIGNED, machine.WRITE_TO_CONSTANT)
_OF_TEXTURES = (machine.NO_TEXTURE, machine.SURFACE_BOUNDS, machine.SURFACE_MISALIGNED)
_WAITS = {
    "BAR": "at the barrier",
    "UCGABAR_WAIT": "at the barrier of the cluster",
    "BSYNC": "for lanes of their warp to come together",
    "WARPGROUP": "for the other warps of their warpgroup, which do not execute this wgmma,",
    "WARPSYNC": "for lanes of their warp (a __syncwarp or warp intrinsic whose mask names others)",
}


MOST_INSTRUCTIONS = (
    "its instruction limit: an endless loop? If it only takes long, raise --max-instructions"
)


def describe(
    fault: Fault, translated: Translated, bound: BoundLaunch, limit: str = MOST_INSTRUCTIONS
) -> str:
    """Line on the fault that stopped a launch; `limit` is the limit within which it had to end."""
    kernel, where = translated.kernel.name, _where(fault, translated)
    if fault.kind in _OF_TEXTURES:
        what = describe_texture_fault(fault, translated, bound)
        return f"{kernel}: {what}; {_thread_of(fault, bound)}, {where}"
    if fault.kind == machine.DEADLOCK:
        return f"{kernel}: {_deadlock(fault, translated, bound)}: {where}"
    if fault.kind in _OF_THREADS:
        what = _OF_THREADS[fault.kind](fault, bound)
        return f"{kernel}: {what}; {_thread_of(fault, bound)}, {where}"
    if fault.kind == machine.LIMIT:
        return f"{kernel} did not end within {limit}; {_block(fault, bound)}, {where}"
    return f"{kernel} {_end(fault, translated)}; {_thread_of(fault, bound)}, {where}"


def describe_unwritten(
    runs: Sequence[Run], translated: Translated, bound: BoundLaunch
) -> Iterator[str]:
    """Note on reads of unwritten shared memory, if there were any."""
    reads = sum(run.unwritten_reads for run in runs)
    first = next((run.first_unwritten for run in runs if run.first_unwritten), None)
    if first is None:
        return
    times = "once" if reads == 1 else f"{reads:,} times"
    yield (
        f"shared memory was read {times} where no thread had written, first "
        f"{_bytes(first.width_bytes)} at {_shared_address(first.address, bound)}; "
        f"{_thread_of(first, bound)}, {_where(first, translated)}; "
        "`check` says which lines use such a value"
    )


def describe_passed(
    passed: Mapping[str, Fault], translated: Translated, bound: BoundLaunch
) -> Iterator[str]:
    """Doubts about the time of a launch that went on after faults.

    They are by the field of the bound launch that let it go on.
    """
    if "leaves_bounds" in passed:
        what = describe(passed["leaves_bounds"], translated, bound)
        yield (
            f"Do not trust the time: {what}. Beyond all arrays, reads gave zeros and writes were "
            "lost; a GPU may end the launch there"
        )
    if "gives_up" in passed and not any(waits(translated.kernel.instructions)):
        yield (
            "Do not trust the time: a loop of atomic operations waits for a value that no block of "
            "this launch writes; here it ended"
        )


def describe_unaccessed(bound: BoundLaunch) -> Iterator[str]:
    """Notes on the array arguments that no thread of a launch accessed, in any of its blocks."""
    for buffer in bound.buffers:
        if buffer.name.startswith("argument") and buffer.bytes and not buffer.accessed[0]:
            yield f"{buffer.name} is never read, nor written: does the kernel use another array?"


def _end(fault: Fault, translated: Translated) -> str:
    """Predicate of the sentence on a kernel that stopped by itself."""
    if fault.kind == machine.BAD_TARGET:
        return "jumped out of its code: a wrong function pointer?"
    if fault.kind == machine.TRAP:
        is_assert = _is_call(fault, translated)
        return failed_assert(fault, translated) if is_assert else "trapped (__trap or __brkpt)"
    if fault.kind == machine.NO_MEMORY:
        return "needs more memory than there is"
    assert fault.kind == machine.UNIMPLEMENTED
    return _unknown(fault, translated)


def _access(fault: Fault, bound: BoundLaunch) -> str:
    space, width = SPACES[fault.space], fault.width_bytes
    what = f"{space} {'write' if fault.is_store else 'read'} of {_bytes(width)}"
    at = _shared_address(fault.address, bound) if space == "shared" else f"{fault.address:#x}"
    if fault.kind == machine.MISALIGNED:
        where = _element(fault, bound.buffers) if space == "global" else ""
        return f"misaligned {what} at {at}{where}: it is not a multiple of {width}"
    if fault.kind == machine.WRITE_TO_CONSTANT:
        return f"{what} at {at}, which is read-only"
    if space == "global":
        return f"{what} out of bounds at {at}: {_nearest(fault, bound.buffers)}"
    return f"{what} out of bounds at {at}: {_limit(space, bound)}"


def _limit(space: str, bound: BoundLaunch) -> str:
    """Size that an access outside a memory other than global exceeds."""
    if space == "shared":
        return f"the block has {_bytes(bound.shared_bytes - bound.shared_base)}"
    if space == "local":
        return f"the thread has {_bytes(bound.local_bytes)}"
    assert space == "constant"
    return "that is beyond the bank"


def _element(fault: Fault, buffers: Sequence[Buffer]) -> str:
    """Buffer and element of an address, in parentheses; empty for an address in no buffer."""
    for buffer in buffers:
        offset = int(fault.address) - buffer.address
        if 0 <= offset < buffer.bytes:
            element, rest = divmod(offset, buffer.element_bytes)
            within = f"byte {rest} of " if rest else ""
            return f" ({within}element {element:,} of {buffer.name})"
    return ""


def _nearest(fault: Fault, buffers: Sequence[Buffer]) -> str:
    address: int = fault.address
    if any(b.is_heap and b.address <= address < b.address + b.bytes for b in buffers):
        return beside_blocks(fault)
    if address < NULL_PAGE_BYTES:
        return "a null pointer"
    if not buffers:
        return "the kernel was given no buffer"

    def distance(buffer: Buffer) -> int:
        end = buffer.address + buffer.bytes
        return max(buffer.address - address, address + int(fault.width_bytes) - end)

    nearest = min(buffers, key=distance)
    end = nearest.address + nearest.bytes
    of = f"{nearest.name} ({_bytes(nearest.bytes)} at {nearest.address:#x})"
    if address >= end:
        after = "right" if address == end else _bytes(address - end)
        return f"{after} after the end of {of}"
    if address >= nearest.address:
        return f"across the end of {of}"
    return f"{_bytes(nearest.address - address)} before {of}"


def _shared_address(address: int, bound: BoundLaunch) -> str:
    """Counted from the first byte that the kernel may use, as its author counts."""
    offset = address - bound.shared_base
    return f"byte {offset:,}" if offset >= 0 else f"{_bytes(-offset)} before its start"


def _deadlock(fault: Fault, translated: Translated, bound: BoundLaunch) -> str:
    opcode = translated.kernel.instructions[fault.instruction].opcode
    threads = bound.geometry.threads_per_block
    waits = "waits" if fault.waiting == 1 else "wait"
    subject = (
        f"deadlock: {fault.waiting:,} of the {threads:,} threads of {_block(fault, bound)} {waits}"
    )
    if opcode == "SYNCS":
        waited_for = _mbarrier(fault, bound)
        return f"{subject} for {waited_for}, whose phase never completes: {_lacking(fault)}"
    if opcode in _WAITS:
        return f"{subject} {_WAITS[opcode]} and the others never arrive"
    if opcode == "USETMAXREG":
        return (
            f"{subject} for registers that no warp gives back: let setmaxnreg.dec of the other "
            "warps run, and keep the sum within what the launch had"
        )
    polling = "it polls in a loop"
    if fault.resident > 1:
        polling = f"all {fault.resident:,} running blocks poll in loops"
    return f"{subject} for memory that no running block will write: {polling}"


def _lacking(fault: Fault) -> str:
    """Arrivals and bytes that the current phase of an mbarrier still waits for."""
    return (
        f"its phase of parity {fault.phase} lacks {text.many(fault.pending, 'arrival')} and "
        f"{_bytes(fault.bytes)} of copies"
    )


def _mbarrier(fault: Fault, bound: BoundLaunch) -> str:
    rank, offset = divmod(fault.address, SHARED_WINDOW_BYTES)
    of = f" of block {rank} of the cluster" if bound.cluster_blocks > 1 else ""
    return f"the mbarrier at {_shared_address(offset, bound)} of shared memory{of}"


def _arrivals(fault: Fault, bound: BoundLaunch) -> str:
    return (
        f"{_mbarrier(fault, bound)} received more arrivals than expected: {_lacking(fault)} "
        "(was it initialized with the number of arrivals of a phase?)"
    )


def _no_map(fault: Fault, bound: BoundLaunch) -> str:
    axes = "1 axis" if fault.width_bytes == 1 else f"{fault.width_bytes} axes"
    return (
        f"no tensor map of {axes} at {fault.address:#x}: pass a TensorMap for a parameter that is "
        "declared `const __grid_constant__`, 128 bytes aligned to 64, or a pointer to it"
    )


def _partial_warp(fault: Fault, bound: BoundLaunch) -> str:
    threads = bound.geometry.threads_per_block - fault.warp * LANES
    why = "the block has no more" if threads < LANES else "a branch parted them"
    return (
        f"{text.many(fault.waiting, 'thread')} of a warp execute an instruction on matrices, which "
        f"needs all {LANES} together: {why}"
    )


SWIZZLED = {0: "no swizzle", 32: "32-byte swizzle", 64: "64-byte swizzle", 128: "128-byte swizzle"}


def _descriptor(fault: Fault, bound: BoundLaunch) -> str:
    """A descriptor of a matrix names bytes outside of shared memory."""
    start, leading, stride, swizzle = (int(word) for word in fault.words)
    operand = "B" if fault.waiting else "A"
    remedy = "the descriptor holds (address & 0x3ffff) >> 4 and offsets >> 4"
    if bound.cluster_blocks > 1:
        remedy += "; in a cluster an address has the block's rank in its upper bits: mask it"
    return (
        f"the descriptor of {operand} leads outside of shared memory, to "
        f"{_shared_address(fault.address, bound)} of {bound.shared_bytes - bound.shared_base:,}: "
        f"start {_shared_address(start, bound)}, leading offset {leading:,}, stride offset "
        f"{stride:,}, {SWIZZLED[swizzle]}: {remedy}"
    )


def _partial_group(fault: Fault, bound: BoundLaunch) -> str:
    if fault.waiting:
        return (
            f"warp {fault.warp} multiplied {fault.waiting:,} times with its warpgroup and warp "
            f"{fault.phase} {text.many(fault.pending, 'time')}: a GPU waits for ever; let all four "
            "warps of a warpgroup (128 threads from a multiple of 128 on) execute each wgmma"
        )
    threads = bound.geometry.threads_per_block
    return (
        f"wgmma needs a warpgroup of four warps, and a block of {threads:,} threads ends within "
        "this one: start a multiple of 128 threads"
    )


_OF_THREADS: dict[int, Callable[[Fault, BoundLaunch], str]] = {
    machine.ARRIVALS: _arrivals,
    machine.NO_TENSOR_MAP: _no_map,
    machine.PARTIAL_WARP: _partial_warp,
    machine.DESCRIPTOR: _descriptor,
    machine.PARTIAL_GROUP: _partial_group,
    machine.BAD_FREE: bad_free,
    **dict.fromkeys(_OF_MEMORY, _access),
}


def _is_call(fault: Fault, translated: Translated) -> bool:
    return translated.kernel.instructions[int(fault.instruction)].opcode == "CALL"


def _unknown(fault: Fault, translated: Translated) -> str:
    if not _is_call(fault, translated):
        return "did something that the simulator does not know"
    kernel = translated.kernel
    known = {x.name for x in kernel.variables} | {x.name for x in kernel.constants}
    names = sorted({x.target for x in kernel.relocations} - known - SYSTEM_FUNCTIONS.keys())
    return f"called a system function that is not simulated ({', '.join(names)})"


def _where(fault: Fault, translated: Translated) -> str:
    instruction = translated.kernel.instructions[fault.instruction]
    code = instruction.located
    if instruction.source is None:
        return f"{code} (compile with -lineinfo for the source line)"
    return f"{instruction.source.file}, line {instruction.source.line}: {code}"


def _thread_of(fault: Fault, bound: BoundLaunch) -> str:
    thread = coordinates(fault.warp * LANES + fault.lane, bound.geometry.block)
    return f"{_block(fault, bound)}, thread {thread}"


def _block(fault: Fault, bound: BoundLaunch) -> str:
    return f"block {coordinates(fault.block, bound.geometry.grid)}"


def coordinates(linear: int, extents: tuple[int, int, int]) -> tuple[int, int, int]:
    """(x, y, z) of a linear index."""
    x, rest = linear % extents[0], linear // extents[0]
    return x, rest % extents[1], rest // extents[1]


def _bytes(count: int) -> str:
    return text.many(count, "byte")
