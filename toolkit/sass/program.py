"""A compiled kernel as the simulator takes it: instructions with sources, banks and sizes."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from analysis.errors import InputError, ToolkitError
from toolkit.compile import Cubin
from toolkit.cubin import (
    CodeRelocation,
    ConstantVariable,
    Kernel,
    Parameter,
    Relocation,
    Variable,
    read_kernel,
    reading,
)
from toolkit.sass.decode import decode
from toolkit.sass.disassemble import disassemble
from toolkit.sass.instruction import INSTRUCTION_BYTES, Immediate, Instruction, Operand, Special

__all__ = ["Linked", "Parameter", "Program", "link", "load_program"]

# Opcodes whose operands may name functions, and those whose target is a distance.
_CALLS = {"CALL", "RET", "BRA", "JMP"}
_RELATIVE = {"BRX", "BRXU"}
_HALF = "32@"  # 32@lo(name), 32@hi(name): half the address of what has that name


@dataclass(frozen=True, kw_only=True)
class Program:
    """A kernel's machine code and what it needs to run.

    `architecture` is 90 for sm_90. `instructions` are in order of address, without a gap, those
    of the functions that it calls included: `functions` says where each begins; `code` are their
    bytes. Targets of jumps
    and calls are addresses; those of BRX, CALL and RET with a register are to be added to it.
    `constant_banks` maps a bank's number to its bytes before a launch adds anything; the
    parameters begin at `parameter_base` of bank 0. `relocations` and `code_relocations` say where
    addresses of `variables`, `constants` and functions of the system are wanted: see `link`.
    """

    symbol: str
    architecture: int
    instructions: tuple[Instruction, ...]
    code: bytes
    functions: Mapping[str, int]
    parameters: tuple[Parameter, ...]
    parameter_base: int
    constant_banks: Mapping[int, bytes]
    constants: tuple[ConstantVariable, ...]
    variables: tuple[Variable, ...]
    relocations: tuple[Relocation, ...]
    code_relocations: tuple[CodeRelocation, ...]
    static_shared_bytes: int
    local_bytes: int
    registers_per_thread: int
    max_threads: int | None  # of __launch_bounds__
    required_block: tuple[int, ...] | None  # of __block_size__
    cluster: tuple[int, int, int]  # of __cluster_dims__
    barriers: int


@dataclass(frozen=True, kw_only=True)
class Linked:
    """What a program has addresses in: banks by number, initial values of variables by name."""

    instructions: tuple[Instruction, ...]
    constant_banks: Mapping[int, bytes]
    variables: Mapping[str, bytes]


def load_program(cubin: Cubin) -> Program:
    """The program of a compiled kernel.

    Raises UnsupportedError for code that the simulator cannot take, UnavailableError without
    nvdisasm, and ToolkitError or InputError for a damaged image.
    """
    found = re.match(r"sm_(\d+)", cubin.architecture)
    assert found, cubin.architecture
    architecture = int(found[1])
    with reading(f"the machine code of {cubin.kernel}"):
        kernel = read_kernel(cubin.image, cubin.symbol, capability=architecture)
    if not kernel.code:
        raise InputError(f"the machine code of {cubin.kernel} is damaged: it has no instruction")
    return Program(
        symbol=cubin.symbol,
        architecture=architecture,
        instructions=tuple(_instructions(cubin, kernel)),
        code=kernel.code,
        functions=kernel.functions,
        parameters=kernel.parameters,
        parameter_base=kernel.parameter_base,
        constant_banks=kernel.constant_banks,
        constants=kernel.constants,
        variables=kernel.variables,
        relocations=kernel.relocations,
        code_relocations=tuple(
            x for x in kernel.code_relocations if x.target not in kernel.functions
        ),
        static_shared_bytes=kernel.sizes.static_shared_bytes,
        local_bytes=kernel.sizes.local_bytes,
        registers_per_thread=kernel.sizes.registers_per_thread,
        max_threads=kernel.max_threads,
        required_block=kernel.required_block,
        cluster=kernel.cluster,
        barriers=kernel.barriers,
    )


def link(program: Program, addresses: Mapping[str, int]) -> Linked:
    """Fill in the addresses that variables, constants and functions of the system got.

    `addresses` has those of all targets of the program's relocations; KeyError for one missing.
    """
    places: dict[int | str, bytearray] = {
        **{number: bytearray(content) for number, content in program.constant_banks.items()},
        **{v.name: bytearray(v.content.ljust(v.size, b"\0")) for v in program.variables},
    }
    for relocation in program.relocations:
        address = (addresses[relocation.target] + relocation.addend) % (1 << 8 * relocation.size)
        end = relocation.offset + relocation.size
        places[relocation.place][relocation.offset : end] = address.to_bytes(
            relocation.size, "little"
        )
    halves = {
        x.address: (addresses[x.target] + x.addend) >> x.shift & 0xFFFFFFFF
        for x in program.code_relocations
    }
    return Linked(
        instructions=tuple(
            _with_half(i, halves[i.address]) if i.address in halves else i
            for i in program.instructions
        )
        if halves
        else program.instructions,
        constant_banks={number: bytes(places[number]) for number in program.constant_banks},
        variables={variable.name: bytes(places[variable.name]) for variable in program.variables},
    )


def _instructions(cubin: Cubin, kernel: Kernel) -> Iterable[Instruction]:
    """Those of all functions of the kernel's section: nvdisasm may have them in pieces."""
    functions = decode(
        disassemble(cubin.image), wanted=kernel.functions.__contains__, sources=kernel.sources
    )
    found = {i.address: i for function in functions for i in function.instructions}
    for address in range(0, len(kernel.code), INSTRUCTION_BYTES):
        if address not in found:
            raise ToolkitError(
                f"nvdisasm left out the instruction at {address:#06x} of {cubin.kernel}"
            )
        yield _resolved(found[address], kernel)


def _resolved(instruction: Instruction, kernel: Kernel) -> Instruction:
    """The instruction with addresses for the functions it names, and the bits of its NaNs."""
    opcode, text = instruction.opcode, instruction.text
    if opcode not in _CALLS and opcode not in _RELATIVE and "NAN" not in text and _HALF not in text:
        return instruction
    for half in kernel.code_relocations:
        if half.address == instruction.address and half.target in kernel.functions:
            return _with_half(
                instruction, kernel.functions[half.target] + half.addend >> half.shift
            )
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
