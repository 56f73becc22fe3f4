"""Machine code rewritten in place: words of a cubin in, a cubin of the same size out.

An instruction is a word of 128 bits: its opcode and the form of its operands in the lowest 12
bits, the guard above them, and from bit 105 on the control bits of the compiler's schedule. A
replacement keeps the control bits, so that the code around it is issued as before. The fields are
the same from sm_75 to sm_120; tests compare them with the output of nvdisasm.

Nothing moves unless a patch moves it: targets of branches, line tables and relocations contain
addresses, and an address that code computes is only right as long as all of its arithmetic is
there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

from analysis.errors import InputError, UnsupportedError
from toolkit.machine_code.elf import CubinFile, cubin_file

Word = int
Patch = Callable[[list[Word]], list[Word]]

WORD_BYTES = 16
OPCODE_BITS = 12  # with the form of the operands, without the guard
ALWAYS = 7 << OPCODE_BITS  # the guard @PT

# The first bits of the schedule: cycles to the next instruction (4 bits) with the yield bit above
# them; the scoreboard that is released when the result is written and that of when the sources
# were read (3 bits each), below the mask of those to wait for (6); the sources whose values the
# next instruction finds without a read of the register file (4).
STALL, BARRIERS, REUSE = 105, 110, 122
NO_BARRIERS = 0b111_111


def field(word: Word, at: int, bits: int) -> int:
    return word >> at & (1 << bits) - 1


def opcode(word: Word) -> int:
    return field(word, 0, OPCODE_BITS)


def rewritten(image: bytes, patches: Mapping[str, Patch]) -> bytes:
    """A cubin with the instructions of some kernels patched.

    Raises InputError for a kernel that is not there, or a patch that adds or drops instructions;
    UnsupportedError for one that changes an instruction in which an address is still to be filled
    in.
    """
    result, file = bytearray(image), cubin_file(image)
    for symbol, patch in patches.items():
        start, size = _place(file, symbol)
        old = _unpacked(image[start : start + size])
        new = patch(list(old))
        if len(new) != len(old):
            raise InputError(
                f"{symbol} has {len(old):,} instructions, its patch makes {len(new):,} of them: "
                "fill up with NOPs"
            )
        _check_relocations(file, symbol, changed(old, new))
        result[start : start + size] = _packed(new)
    return bytes(result)


def changed(old: Sequence[Word], new: Sequence[Word]) -> list[int]:
    """The places in which two codes of the same length differ."""
    return [place for place, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]


def _unpacked(code: bytes) -> list[Word]:
    return [low | high << 64 for low, high in struct.iter_unpack("<QQ", code)]


def _packed(code: Sequence[Word]) -> bytes:
    return b"".join(word.to_bytes(WORD_BYTES, "little") for word in code)


def _place(file: CubinFile, symbol: str) -> tuple[int, int]:
    """Offset of a kernel's code in the image, and its size in bytes."""
    text = f".text.{symbol}"
    if not file.has(text):
        raise InputError(f"the cubin has no kernel {symbol!r}: give the symbol of one that it has")
    return file.place(text)


def _check_relocations(file: CubinFile, symbol: str, places: Sequence[int]) -> None:
    """Raise UnsupportedError where a loader would write into one of the places."""
    for offset, *_ in file.relocations(f".text.{symbol}"):
        if offset // WORD_BYTES in places:
            raise UnsupportedError(
                f"the instruction at {offset:#06x} of {symbol} holds an address that is filled "
                "in when it is loaded: leave it as it is"
            )
