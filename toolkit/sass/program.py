"""A compiled kernel as the simulator takes it: instructions with sources, banks and sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from toolkit.compile import Cubin
from toolkit.cubin import Parameter, constant_banks, kernel_sizes, parameters, source_lines
from toolkit.sass.decode import decode
from toolkit.sass.disassemble import disassemble
from toolkit.sass.instruction import Instruction

__all__ = ["Parameter", "Program", "load_program"]


@dataclass(frozen=True, kw_only=True)
class Program:
    """A kernel's machine code and what it needs to run.

    `architecture` is 90 for sm_90. `instructions` are in order of address, without a gap.
    `constant_banks` maps a bank's number to its bytes before a launch adds anything; the
    parameters begin at `parameter_base` of bank 0.
    """

    symbol: str
    architecture: int
    instructions: tuple[Instruction, ...]
    parameters: tuple[Parameter, ...]
    parameter_base: int
    constant_banks: dict[int, bytes]
    static_shared_bytes: int
    local_bytes: int
    registers_per_thread: int


def load_program(cubin: Cubin) -> Program:
    """The program of a compiled kernel."""
    found = re.match(r"sm_(\d+)", cubin.architecture)
    assert found, cubin.architecture
    architecture = int(found[1])
    lines = source_lines(cubin.image, cubin.symbol)
    functions = {function.name: function for function in decode(disassemble(cubin.image))}
    base, ordered = parameters(cubin.image, cubin.symbol)
    sizes = kernel_sizes(cubin.image, cubin.symbol, capability=architecture)
    return Program(
        symbol=cubin.symbol,
        architecture=architecture,
        instructions=tuple(
            replace(instruction, source=lines.get(instruction.address))
            for instruction in functions[cubin.symbol].instructions
        ),
        parameters=ordered,
        parameter_base=base,
        constant_banks=constant_banks(cubin.image, cubin.symbol),
        static_shared_bytes=sizes.static_shared_bytes,
        local_bytes=sizes.local_bytes,
        registers_per_thread=sizes.registers_per_thread,
    )
