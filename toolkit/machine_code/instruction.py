"""SASS instruction and its operands, as values. The text of an operand is that of nvdisasm."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

RegisterFile = Literal["R", "UR", "P", "UP", "B"]

INSTRUCTION_BYTES = 16
RZ, URZ, PT = 255, 255, 7  # the indices of the registers that always read 0, or true

# Products on tensor memory (tcgen05 of sm_100a and sm_103a).
_TENSOR_MEMORY_OPCODE = re.compile(r"LDTM|STTM|UTC\w+")

CONSTANT_NAMES: dict[tuple[RegisterFile, int], str] = {
    ("R", RZ): "RZ",
    ("UR", URZ): "URZ",
    ("P", PT): "PT",
    ("UP", PT): "UPT",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Modified:
    """Modifiers of an operand, applied to its value before use."""

    negate: bool = False  # -R4
    absolute: bool = False  # |R4|
    invert: bool = False  # ~R4, and !P0
    suffix: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Register(Modified):
    """A register operand: `-R4`, `|R4|`, `~R4`, `!P0`, `R4.H0_H0`, `R4.64`, `UR6`, `B0`.

    RZ is R255, URZ UR255, PT P7 and UPT UP7. `suffix` holds what follows the name ("H0_H0", "64",
    "X4", "U32"), without `.reuse`, which does not change what is computed.
    """

    file: RegisterFile
    index: int

    def __str__(self) -> str:
        name = CONSTANT_NAMES.get((self.file, self.index), f"{self.file}{self.index}")
        return _modified(name, self, "!" if self.file in ("P", "UP") else "~")


@dataclass(frozen=True, kw_only=True, slots=True)
class Immediate:
    """A number in the instruction: `0x1f`, `-0x4`, `1.5`, `+INF`, `-QNAN`, as it was printed.

    What its bits are depends on the opcode: `integer` and `number` read the text as the one or
    the other. Raises ValueError where it is neither. A NaN's text is the same for millions of
    them: `bits` are the 32 of the instruction, where it is one whose code is known.
    """

    text: str
    bits: int | None = None

    @property
    def integer(self) -> int:
        return int(self.text, 0)

    @property
    def number(self) -> float:
        return float(self.text.upper().replace("QNAN", "NAN").replace("SNAN", "NAN"))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant(Modified):
    """A word of a constant bank: `c[0x0][0x160]`, `-c[0x0][R4+0x10]`, `c[0x3][UR4]`."""

    bank: int
    offset: int
    base: Register | None = None
    bank_register: Register | None = None  # cx[UR4][0x10]: the bank's descriptor is in UR4

    @property
    def is_indexed(self) -> bool:
        """True if its address is in a register, of each lane or uniform."""
        return self.base is not None and self.base.index != RZ

    def __str__(self) -> str:
        bank = f"cx[{self.bank_register}]" if self.bank_register else f"c[{self.bank:#x}]"
        registers = (self.base,) if self.base else ()
        return _modified(f"{bank}{_sum(registers, self.offset)}", self, "~")


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """A memory operand: `[R2.64+UR4+0x10]`, `[R8.X4+-0x80]`, `desc[UR6][R22.64]`, `[0x40]`.

    The address is the sum of `registers` (each scaled or widened as its suffix says) and `offset`.
    """

    registers: tuple[Register, ...]
    offset: int
    descriptor: Register | None = None

    def __str__(self) -> str:
        descriptor = f"desc[{self.descriptor}]" if self.descriptor else ""
        return f"{descriptor}{_sum(self.registers, self.offset)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Descriptor:
    """Descriptors of matrices in shared memory: `gdesc[UR8].tnspA`.

    They are in four uniform registers from `register` on. `suffix` holds "tnspA", "tnspB", "negA"
    and "negB", as far as they are there.
    """

    register: Register
    suffix: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "".join((f"gdesc[{self.register}]", *(f".{part}" for part in self.suffix)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Special:
    """A name that is no general register: `SR_TID.X`, `SB0`, `EXIT_THREADS`, `3D`."""

    name: str

    def __str__(self) -> str:
        return self.name


Operand = Register | Immediate | Constant | Address | Descriptor | Special


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceLine:
    """A line of CUDA source; `caller` is the line that calls it where it was inlined."""

    file: str
    line: int
    caller: SourceLine | None = None

    @property
    def callers(self) -> tuple[tuple[str, int], ...]:
        """(file, line) of the calls of the inlined functions around it, the innermost first."""
        if self.caller is None:
            return ()
        return ((self.caller.file, self.caller.line), *self.caller.callers)

    @property
    def shown(self) -> str:
        """The line of the kernel for messages, then the line of the function inlined there."""
        own = f"{self.file}, line {self.line}"
        if self.caller is None:
            return own
        file, line = self.callers[-1]
        return f"{file}, line {line}, which calls {own}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Instruction:
    """One instruction of 16 bytes at `address`, counted from the start of its function.

    `opcode` is the first word ("LDG"), `modifiers` the rest ("E", "128", "CONSTANT") in order.
    `guard` is its predicate register (None: always executed); `text` is how nvdisasm prints it.
    """

    address: int
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None
    text: str
    source: SourceLine | None = None

    @property
    def located(self) -> str:
        return f"{self.text.strip()} at {self.address:#06x}"


def tensor_core_refusal(opcode: str) -> str | None:
    """Reason why an opcode of tensor cores is refused; None for any other opcode."""
    if not _TENSOR_MEMORY_OPCODE.fullmatch(opcode):
        return None
    return (
        f"tcgen05 ({opcode}), the tensor cores of sm_100a, is not simulated: compile a kernel "
        "of wgmma for sm_90a, or of mma.sync"
    )


def _modified(name: str, operand: Modified, inverted: str) -> str:
    bars = "|" if operand.absolute else ""
    signs = ("-" if operand.negate else "") + (inverted if operand.invert else "")
    return "".join((signs, bars, name, bars, *(f".{part}" for part in operand.suffix)))


def _sum(registers: tuple[Register, ...], offset: int) -> str:
    terms = [str(register) for register in registers]
    if offset or not terms:
        terms.append(f"{offset:#x}")
    return f"[{'+'.join(terms)}]"
