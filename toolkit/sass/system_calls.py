"""Functions of the system that kernels call: words on printf, assert, malloc and free."""

from __future__ import annotations

from collections.abc import Iterator

from reports import text
from toolkit.machine_code.instruction import Special
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.core.binding import Fault
from toolkit.sass.printed import PrintedRecords
from toolkit.sass.space import HEAP_WINDOW
from toolkit.sass.translate import Translated, uses_heap, variables_of

_CLOCKS = {"SR_CLOCKLO", "SR_CLOCKHI", "SR_GLOBALTIMERLO", "SR_GLOBALTIMERHI"}


def describe_system_calls(
    printed: PrintedRecords, translated: Translated, executed: int, blocks: int
) -> Iterator[str]:
    """Notes on printf, malloc and clocks: what is not shown, and what is not modelled."""
    if printed.calls and executed < blocks:
        yield printed_by_few(executed, blocks)
    if left := printed.calls - len(printed.records):
        yield (
            f"printf was called {printed.calls:,} times, and {left:,} of the calls were not kept, "
            "as on a GPU, whose buffer holds 1 MB"
        )
    if printed.calls:
        yield "the time that printf takes is not modelled"
    if uses_heap(translated.kernel):
        yield "the time that malloc and free take is not modelled"
    if reads_clock(translated.kernel):
        yield (
            "the clock that the kernel reads counts executed instructions: what it computes "
            "from it, and the time of a loop that waits for it, are those of no GPU"
        )


def reads_clock(kernel: Kernel) -> bool:
    """True if an instruction reads a clock of the SM, or the timer of the GPU."""
    return any(
        isinstance(one, Special) and one.name in _CLOCKS
        for instruction in kernel.instructions
        for one in instruction.operands
    )


def printed_by_few(executed: int, blocks: int) -> str:
    """Note that not all blocks were executed, and so did not print."""
    return (
        f"only the {text.many(executed, 'executed block')} of {blocks:,} printed: --blocks all "
        "executes every block"
    )


def failed_assert(fault: Fault, translated: Translated) -> str:
    """The message of an assert: its expression, function, file and line."""
    expression, file, line, function = fault.words
    said = f"failed the assert `{_string(expression, translated)}`"
    place = f"{_string(file, translated)}, line {line & 0xFFFFFFFF}"
    return f"{said} in `{_string(function, translated)}` ({place})"


def _string(address: int, translated: Translated) -> str:
    """The text at an address of the module, in which the compiler puts what an assert says."""
    for buffer, content in variables_of(translated):
        if buffer.address <= address < buffer.address + len(content):
            return content[address - buffer.address :].partition(b"\0")[0].decode(errors="replace")
    return f"{address:#x}"


def bad_free(fault: Fault, bound: BoundLaunch) -> str:
    """Return the reason why a pointer cannot be freed."""
    if not bound.heap_bytes or not 0 <= fault.address - HEAP_WINDOW < bound.heap_bytes:
        return f"free of {fault.address:#x}, which malloc did not return"
    return f"free of {fault.address:#x}, where no live block of malloc begins: was it freed before?"


def beside_blocks(fault: Fault) -> str:
    """Say where an address of the heap is, as seen from the block of malloc before it."""
    block, size = (int(x) for x in fault.words[:2])
    if not size:
        return "malloc gave no block there that still lives"
    after = fault.address - (block + size)
    if after < 0:
        return f"across the end of a block of malloc ({text.many(size, 'byte')} at {block:#x})"
    where = "right" if after == 0 else text.many(after, "byte")
    return f"{where} after the end of a block of malloc ({text.many(size, 'byte')} at {block:#x})"
