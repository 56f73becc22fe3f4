"""Instructions as 128-bit words: what no compiler emits on demand is written into its code.

Only the kernels of this package are rewritten, and only arithmetic of their timed loops, among
the registers that this arithmetic wrote before. The encodings are the same from sm_75 to sm_90;
a test holds them to what nvdisasm reads.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from io import BytesIO
from itertools import count

from elftools.elf.elffile import ELFFile

WORD_BYTES = 16
OPCODE_BITS = 12  # with the form of the operands, without the predicate
FFMA, MUFU, LDS = 0x223, 0x308, 0x984
ALWAYS = 7 << 12  # @PT
RZ = 255
DESTINATION, FIRST, SECOND, THIRD = 16, 24, 32, 64  # where the registers' numbers begin
FUNCTION = 74  # of MUFU: 2 is EX2, 4 is RCP
# Cycles to the next instruction, with the bit above that compilers set beside a single one;
# one bit of reuse per source.
STALL, REUSE = 105, 122
ONE_CYCLE = 0b1_0001
BARRIERS = 110  # write barrier, read barrier, wait mask
NO_BARRIER = 0b000000_111_111


def opcode(word: int) -> int:
    return word & (1 << OPCODE_BITS) - 1


def field(word: int, at: int, bits: int) -> int:
    return word >> at & (1 << bits) - 1


def with_field(word: int, at: int, bits: int, value: int) -> int:
    """The word with `value` in some of its bits."""
    mask = (1 << bits) - 1 << at
    return word & ~mask | value << at


def ffma(d: int, a: int, b: int, c: int, reuse: int = 0) -> int:
    """FFMA Rd, Ra, Rb, Rc that lets the next instruction issue after one cycle."""
    word = FFMA | ALWAYS
    for at, register in ((DESTINATION, d), (FIRST, a), (SECOND, b), (THIRD, c)):
        word |= register << at
    return word | ONE_CYCLE << STALL | NO_BARRIER << BARRIERS | reuse << REUSE


def mov(d: int, a: int) -> int:
    """MOV Rd, Ra that lets the next instruction issue after one cycle."""
    word = 0x202 | ALWAYS | d << DESTINATION | a << SECOND | 0xF << 72
    return word | ONE_CYCLE << STALL | NO_BARRIER << BARRIERS


def replaced(words: Sequence[int], code: int, new: Callable[[int, int], int]) -> list[int]:
    """The words, those of an opcode replaced by `new(their number, the word)`."""
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


def written(words: Sequence[int], code: int) -> list[int]:
    """The registers that instructions of an opcode write, in ascending order."""
    return sorted({field(w, DESTINATION, 8) for w in words if opcode(w) == code} - {RZ})


def rewritten(image: bytes, patches: dict[str, Callable[[list[int]], list[int]]]) -> bytes:
    """A cubin with the instructions of some kernels rewritten."""
    result = bytearray(image)
    elf = ELFFile(BytesIO(image))
    for kernel, patch in patches.items():
        section = elf.get_section_by_name(f".text.{kernel}")
        assert section is not None, kernel
        start, size = section["sh_offset"], section["sh_size"]
        halves = struct.unpack(f"<{size // 8}Q", image[start : start + size])
        words = [low | high << 64 for low, high in zip(halves[::2], halves[1::2], strict=True)]
        new = patch(words)
        assert len(new) == len(words)
        flat = [half for word in new for half in (word & 2**64 - 1, word >> 64)]
        result[start : start + size] = struct.pack(f"<{len(flat)}Q", *flat)
    return bytes(result)
