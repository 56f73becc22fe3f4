"""Instructions as 128-bit words, to replace what the compiler emitted in a timed loop.

Only the kernels of this package are rewritten, and only arithmetic of their timed loops, among
the registers that this arithmetic wrote before. The encodings are the same from sm_75 to sm_90;
a test holds them to what nvdisasm reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from toolkit.machine_code.patching import ALWAYS, BARRIERS, NO_BARRIERS, REUSE, STALL, field, opcode

FFMA, LDS = 0x223, 0x984
RZ = 255
DESTINATION, FIRST, SECOND, THIRD = 16, 24, 32, 64  # where the registers' numbers begin
ONE_CYCLE = 0b1_0001  # with the bit above that compilers set beside a single one


def ffma(d: int, a: int, b: int, c: int, reuse: int = 0) -> int:
    """FFMA Rd, Ra, Rb, Rc that lets the next instruction issue after one cycle."""
    registers = d << DESTINATION | a << FIRST | b << SECOND | c << THIRD
    schedule = ONE_CYCLE << STALL | NO_BARRIERS << BARRIERS | reuse << REUSE
    return FFMA | ALWAYS | registers | schedule


def replaced(words: Sequence[int], code: int, new: Callable[[int, int], int]) -> list[int]:
    """The words, with each word of an opcode replaced by `new(number, word)`."""
    number = count()
    return [new(next(number), word) if opcode(word) == code else word for word in words]


def spread(words: Sequence[int], scarce: int, plenty: int) -> list[int]:
    """The words, those of one opcode evenly among those of another, which are independent of them.

    Each kind keeps its own order, and all others their places: a compiler moves what takes long
    to the front.
    """
    places = [i for i, word in enumerate(words) if opcode(word) in (scarce, plenty)]
    few = [words[i] for i in places if opcode(words[i]) == scarce]
    many = [words[i] for i in places if opcode(words[i]) == plenty]
    result, taken = list(words), 0
    for position, place in enumerate(places):
        wanted = -(-(position + 1) * len(few) // len(places))
        source = few if taken < wanted else many
        result[place] = source[taken if source is few else position - taken]
        taken += source is few
    return result


def banks(registers: Sequence[int]) -> tuple[list[int], list[int]]:
    """The registers of the even bank, and those of the odd bank."""
    return [r for r in registers if r % 2 == 0], [r for r in registers if r % 2]


def written(words: Sequence[int], code: int) -> list[int]:
    """The registers that instructions of an opcode write, in ascending order."""
    return sorted({field(w, DESTINATION, 8) for w in words if opcode(w) == code} - {RZ})
