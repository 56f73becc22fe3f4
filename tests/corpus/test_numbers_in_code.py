"""Numbers in instructions: what lowering makes of their text is what the code holds.

nvdisasm prints a number as the opcode means it: an integer, a single, a double of which the code
holds the upper word, two halves. Where an instruction holds 32 bits of a number, they are its
second word.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolkit.compile import Cubin
from toolkit.cubin import kernel_symbols, read_kernel
from toolkit.sass.instruction import Immediate, Instruction
from toolkit.sass.isa.registry import REGISTRY, Lowering, PoolEntry
from toolkit.sass.program import Program, load_program

sys.path.append(str(Path(__file__).parent))
from compiled import sample
from inventory import ARCHITECTURES, sources
from sample import in_sample

# Shifts, targets, segments and barriers stand in fields of their own.
ELSEWHERE = {"BAR", "BRA", "LEA", "SHFL", "ULEA"}


class Recording(Lowering):
    """Lowering that notes the constants that it was asked for."""

    noted: list[PoolEntry]

    def words(self, *values: PoolEntry) -> int:
        self.noted.extend(values)
        return super().words(*values)


def numbers(program: Program) -> Iterator[tuple[Instruction, list[int]]]:
    """The instructions with numbers, and what lowering took them for."""
    lowering = Recording(program.instructions, architecture=program.architecture)
    named = {relocation.address for relocation in program.code_relocations}
    for instruction in program.instructions:
        if instruction.opcode in ELSEWHERE or "64" in instruction.modifiers:
            continue
        if instruction.address in named:
            continue
        if any(isinstance(operand, Immediate) for operand in instruction.operands):
            lowering.noted = []
            lowering.begin(instruction)
            REGISTRY[instruction.opcode].lower(instruction, lowering)
            yield instruction, [value for value in lowering.noted if isinstance(value, int)]


def of_sample(arch: str) -> Iterator[bytes]:
    """The corpus as one image, and the rungs."""
    yield sample(arch)
    for source in sources():
        if not source.is_corpus and in_sample(source.name, arch):
            yield source.image(arch)


def everything(arch: str) -> Iterator[bytes]:
    return (source.image(arch) for source in sources() if arch in source.architectures())


@pytest.mark.parametrize(
    "images", [of_sample, pytest.param(everything, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_number_is_the_word_that_the_code_holds(
    arch: str, images: Callable[[str], Iterator[bytes]]
) -> None:
    count = 0
    for image in images(arch):
        for symbol in kernel_symbols(image):
            program = load_program(Cubin.from_image(image, symbol))
            code = read_kernel(image, symbol, capability=program.architecture).code
            for instruction, taken in numbers(program):
                (word,) = struct.unpack_from("<I", code, instruction.address + 4)
                assert not taken or word in taken, f"{symbol}: {instruction.text}: {word:#x}"
                count += len(taken)
    assert count > 100
