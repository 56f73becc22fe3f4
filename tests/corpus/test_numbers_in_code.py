"""Numbers in instructions: what lowering makes of their text is what the code holds.

nvdisasm prints a number as the opcode means it: an integer, a single, a double of which the code
holds the upper word, two halves. Where an instruction holds 32 bits of a number, they are its
second word.
"""

import json
import re
import struct

import pytest

from tests.sampling import exhaustive
from toolkit.machine_code.disassemble import disassemble
from toolkit.machine_code.elf import cubin_file
from toolkit.machine_code.instruction import Immediate
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.isa.registry import REGISTRY, Lowering
from toolkit.sass.isa.slots import PoolEntry
from validation.corpus.compiled import sample
from validation.corpus.inventory import ARCHITECTURES, sources
from validation.corpus.sample import USUAL

# Shifts, targets, segments and barriers stand in fields of their own.
ELSEWHERE = {"BAR", "BRA", "LEA", "SHFL", "ULEA"}
NUMBER = re.compile(r"(^|,)[-+]?(\d|INF|QNAN)")


class Recording(Lowering):
    """Lowering that notes the constants that it was asked for."""

    noted: list[PoolEntry]

    def words(self, *values):
        self.noted.extend(values)
        return super().words(*values)


def numbers(program):
    """The instructions with numbers, and what lowering took them for."""
    lowering = Recording(program.instructions)
    named = {relocation.address for relocation in program.code_relocations}
    for instruction in program.instructions:
        if instruction.opcode in ELSEWHERE or "64" in instruction.modifiers:
            continue
        if instruction.address in named:
            continue
        if any(isinstance(operand, Immediate) for operand in instruction.operands):
            lowering.noted = []
            lowering.begin(instruction)
            REGISTRY[instruction.opcode].lower(lowering)
            yield instruction, [value for value in lowering.noted if isinstance(value, int)]


def of_sample(arch):
    """Kernels of the corpus, and of the rungs for one architecture: one for each new opcode."""
    rungs = (x.image(arch) for x in sources() if arch == USUAL and not x.is_corpus)
    seen = set()
    for image in (sample(arch), *rungs):
        functions = json.loads(disassemble(image))[1]
        for function in sorted(functions, key=lambda x: len(x["sass-instructions"])):
            found = {
                instruction["opcode"]
                for instruction in function["sass-instructions"]
                if NUMBER.search(instruction.get("operands", ""))
            }
            if found - seen:
                yield Kernel.from_image(image, function["function-name"])
            seen |= found


def everything(arch):
    for source in sources():
        if arch in source.architectures():
            image = source.image(arch)
            yield from (Kernel.from_image(image, symbol) for symbol in cubin_file(image).kernels)


@pytest.mark.parametrize("kernels", [of_sample, exhaustive(everything)])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_number_is_the_word_that_the_code_holds(arch, kernels):
    count = 0
    for cubin in kernels(arch):
        program = cubin
        for instruction, taken in numbers(program):
            (word,) = struct.unpack_from("<I", program.code, instruction.address + 4)
            assert not taken or word in taken, f"{cubin.symbol}: {instruction.text}: {word:#x}"
            count += len(taken)
    assert count > 100
