"""A kernel's instructions, and the addresses that its code and data are linked with."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis.errors import InputError, ToolkitError, UnsupportedError
from toolkit.machine_code.decode import Function, decode
from toolkit.machine_code.disassemble import disassemble
from toolkit.machine_code.instruction import (
    INSTRUCTION_BYTES,
    Immediate,
    Instruction,
    Operand,
    Special,
)

if TYPE_CHECKING:
    from toolkit.machine_code.kernel import Kernel

# Opcodes whose operands may name functions, those with targets that count from the beginning of a
# section, and those whose target is a distance.
_CALLS = {"CALL", "RET", "BRA", "JMP"}
_ABSOLUTE = {"BRA", "BSSY", "JMP", "LEPC"}
_RELATIVE = {"BRX", "BRXU"}
_HALF = "32@"  # 32@lo(name), 32@hi(name): half the address of what has that name


@dataclass(frozen=True, kw_only=True)
class Linked:
    """Parts of a program that hold addresses, after linking."""

    instructions: tuple[Instruction, ...]
    constant_banks: Mapping[int, bytes]
    variables: Mapping[str, bytes]


def decoded(kernel: Kernel) -> tuple[Instruction, ...]:
    """The instructions of all functions of the kernel's section; as `Kernel.instructions`."""
    if kernel.unsupported is not None:
        raise UnsupportedError(kernel.unsupported)
    if not kernel.code:
        raise InputError(f"the machine code of {kernel.name} is damaged: it has no instruction")
    functions = decode(
        disassemble(kernel.image), wanted=kernel.functions.__contains__, sources=kernel.lines
    )
    found = {i.address: i for function in functions for i in _moved(function, kernel)}
    instructions = []  # nvdisasm may have them in pieces
    for address in range(0, len(kernel.code), INSTRUCTION_BYTES):
        if address not in found:
            raise ToolkitError(
                f"nvdisasm left out the instruction at {address:#06x} of {kernel.name}"
            )
        instructions.append(_resolved(found[address], kernel))
    return tuple(instructions)


def _moved(function: Function, kernel: Kernel) -> Iterator[Instruction]:
    """Instructions of a function at their place in `kernel.code`.

    It is another one than in the file for a function of another section.
    """
    distance = 0
    if function.instructions:
        distance = kernel.functions[function.name] - function.instructions[0].address
    for instruction in function.instructions:
        if not distance:
            yield instruction
            continue
        address = instruction.address + distance
        operands = instruction.operands
        if instruction.opcode in _ABSOLUTE:
            operands = tuple(
                Immediate(text=f"{one.integer + distance:#x}")
                if isinstance(one, Immediate)
                else one
                for one in operands
            )
        yield replace(
            instruction, address=address, operands=operands, source=kernel.lines.get(address)
        )


def link(kernel: Kernel, addresses: Mapping[str, int]) -> Linked:
    """Fill in the addresses that variables, constants and functions of the system got.

    `addresses` has those of all targets of the kernel's relocations; KeyError for one missing.
    """
    places: dict[int | str, bytearray] = {
        **{number: bytearray(content) for number, content in kernel.constant_banks.items()},
        **{v.name: bytearray(v.content.ljust(v.size, b"\0")) for v in kernel.variables},
    }
    for relocation in kernel.relocations:
        address = (addresses[relocation.target] + relocation.addend) % (1 << 8 * relocation.size)
        end = relocation.offset + relocation.size
        places[relocation.place][relocation.offset : end] = address.to_bytes(
            relocation.size, "little"
        )
    halves = {
        x.address: (addresses[x.target] + x.addend) >> x.shift & 0xFFFFFFFF
        for x in kernel.code_relocations
        if x.target not in kernel.functions
    }
    instructions = kernel.instructions
    if halves:
        instructions = tuple(
            _with_half(i, halves[i.address]) if i.address in halves else i for i in instructions
        )
    return Linked(
        instructions=instructions,
        constant_banks={number: bytes(places[number]) for number in kernel.constant_banks},
        variables={variable.name: bytes(places[variable.name]) for variable in kernel.variables},
    )


def _resolved(instruction: Instruction, kernel: Kernel) -> Instruction:
    """The instruction with addresses for the functions it names, and the bits of its NaNs."""
    opcode, text = instruction.opcode, instruction.text
    if opcode not in _CALLS and opcode not in _RELATIVE and "NAN" not in text and _HALF not in text:
        return instruction
    for half in kernel.code_relocations:
        if half.address == instruction.address and half.target in kernel.functions:
            value = kernel.functions[half.target] + half.addend >> half.shift
            if opcode == "CALL":
                return replace(instruction, operands=(Immediate(text=f"{value:#x}"),))
            return _with_half(instruction, value)
    operands = tuple(_operand(operand, instruction, kernel) for operand in instruction.operands)
    return replace(instruction, operands=operands)


def _operand(operand: Operand, instruction: Instruction, kernel: Kernel) -> Operand:
    match operand:
        case Special() if instruction.opcode in _CALLS and operand.name in kernel.functions:
            return Immediate(text=f"{kernel.functions[operand.name]:#x}")
        case Immediate() if instruction.opcode in _RELATIVE:
            target = instruction.address + INSTRUCTION_BYTES + operand.integer
            return Immediate(text=f"{target:#x}")
        case Immediate() if operand.text.endswith("NAN"):
            # every opcode has its 32-bit immediate in the second word
            (bits,) = struct.unpack_from("<I", kernel.code, instruction.address + 4)
            return replace(operand, bits=bits)
    return operand


def _with_half(instruction: Instruction, value: int) -> Instruction:
    """The instruction with a number for its operand `32@lo(name)` or `32@hi(name)`."""
    operands = (
        Immediate(text=f"{value:#x}")
        if isinstance(operand, Special) and operand.name.startswith(_HALF)
        else operand
        for operand in instruction.operands
    )
    return replace(instruction, operands=tuple(operands))
