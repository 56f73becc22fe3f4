"""Slots: where an operation of the core finds its operands and leaves its results."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from analysis.errors import UnsupportedError
from toolkit.machine_code.instruction import (
    RZ,
    Address,
    Constant,
    Immediate,
    Instruction,
    Operand,
    Register,
    Special,
)
from toolkit.sass.core.binding import POOL, PREDICATE_DISCARD, PREDICATE_NOT, PT, UPT

# MOD_* of core.h
F32_NEG, F32_ABS, NOT, INT_NEG, F64_NEG, F64_ABS, F16_NEG, F16_ABS = (1 << k for k in range(8))

WIDEST_RANGE = 4  # registers that one operand may name: 128 bits


@dataclass(frozen=True)
class ConstantWord:
    """A word of a constant bank, whose value the launch decides."""

    bank: int
    offset: int


PoolEntry = int | ConstantWord


@dataclass(frozen=True)
class Source:
    """A vector that an operation reads, and what is done to it first (MOD_* of core.h)."""

    slot: int
    mod: int = 0


def refuse(instruction: Instruction, reason: str) -> NoReturn:
    """Raise UnsupportedError: what, where, and the source line where it is known."""
    where = (
        f" ({instruction.source.file}, line {instruction.source.line})"
        if instruction.source
        else ""
    )
    raise UnsupportedError(
        f"{instruction.text.strip()} at {instruction.address:#06x}{where}: {reason}"
    )


@dataclass
class Slots:
    """The slots of the operands of an instruction, and the constants of a program so far.

    `instruction` is the one in hand.
    """

    instructions: Sequence[Instruction]
    instruction: Instruction = field(init=False)
    first_uniform: int = field(init=False)
    _discard: int = field(init=False)
    _slots: int = field(init=False)
    _pool: list[PoolEntry] = field(default_factory=lambda: [0] * WIDEST_RANGE)
    _places: dict[tuple[PoolEntry, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        registers = 1 + max(_indices(self.instructions, "R"), default=0)
        uniforms = 1 + max(_indices(self.instructions, "UR"), default=0)
        self.first_uniform = registers + WIDEST_RANGE - 1
        self._discard = self.first_uniform + uniforms + WIDEST_RANGE - 1
        self._slots = self._discard + WIDEST_RANGE
        self._places[(0,)] = 0

    # Predicates.

    def predicate(self, operand: Operand) -> int:
        """The slot of a predicate that is read."""
        if not (isinstance(operand, Register) and operand.file in ("P", "UP")):
            self.refuse_operand(operand, "a predicate")
        slot = operand.index if operand.file == "P" else operand.index + UPT - PT
        return slot | (PREDICATE_NOT if operand.invert else 0)

    def predicate_out(self, operand: Operand) -> int:
        """The slot of a predicate that is written; PT swallows it."""
        slot = self.predicate(operand)
        return PREDICATE_DISCARD if slot in (PT, UPT) else slot

    # Vectors.

    def out(self, operand: Operand) -> int:
        """The slot of a register that is written; RZ swallows it."""
        if not (isinstance(operand, Register) and operand.file in ("R", "UR")):
            self.refuse_operand(operand, "a register")
        if operand.index == RZ:
            return self._discard
        return operand.index + (self.first_uniform if operand.file == "UR" else 0)

    def u32(self, operand: Operand) -> Source:
        """A 32-bit integer operand; `~` complements it, `-` negates it."""
        match operand:
            case Register() | Constant():
                if operand.absolute:
                    self.refuse_operand(operand, "an integer")
                mod = (NOT if operand.invert else 0) | (INT_NEG if operand.negate else 0)
                return Source(self.slot(operand), mod)
            case Immediate():
                return Source(self.word(self._integer(operand) & 0xFFFFFFFF))
        self.refuse_operand(operand, "an integer")

    def u64(self, operand: Operand) -> Source:
        """A 64-bit integer operand: a register pair, two words of a bank, or an immediate."""
        match operand:
            case Register() | Constant():
                if operand.absolute:
                    self.refuse_operand(operand, "an integer")
                mod = (NOT if operand.invert else 0) | (INT_NEG if operand.negate else 0)
                return Source(self.slot(operand, words=2), mod)
            case Immediate():
                value = self._integer(operand)
                return Source(self.words(value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF))
        self.refuse_operand(operand, "an integer")

    def f32(self, operand: Operand, *, words: int = 1) -> Source:
        """A single-precision operand, or a pair of them where it has two words."""
        match operand:
            case Register() | Constant() if not operand.suffix and not operand.invert:
                mod = (F32_ABS if operand.absolute else 0) | (F32_NEG if operand.negate else 0)
                return Source(self.slot(operand, words=words), mod)
            case Immediate(bits=None):
                (bits,) = struct.unpack("<I", struct.pack("<f", self._number(operand)))
                return Source(self.word(bits))
            case Immediate(bits=int(bits)):
                return Source(self.word(bits))
        self.refuse_operand(operand, "a number")

    def f16x2(self, operand: Register | Constant) -> Source:
        """A pair of halves; which of them are read is the operation's."""
        if operand.invert:
            self.refuse_operand(operand, "a number")
        mod = (F16_ABS if operand.absolute else 0) | (F16_NEG if operand.negate else 0)
        return Source(self.slot(operand), mod)

    def f64(self, operand: Operand) -> Source:
        """A double-precision operand."""
        match operand:
            case Register() | Constant() if not operand.suffix and not operand.invert:
                mod = (F64_ABS if operand.absolute else 0) | (F64_NEG if operand.negate else 0)
                return Source(self.slot(operand, words=2), mod)
            case Immediate(bits=None):
                low, high = struct.unpack("<II", struct.pack("<d", self._number(operand)))
                return Source(self.words(low, high))
            case Immediate(bits=int(high)):  # those of the upper word
                return Source(self.words(0, high))
        self.refuse_operand(operand, "a number")

    def slot(self, operand: Register | Constant, *, words: int = 1) -> int:
        """Where a register or constant, and the `words - 1` after it, are read."""
        if isinstance(operand, Constant):
            if operand.base is not None or operand.bank_register is not None:
                self.refuse_operand(operand, "a constant at a fixed address")
            return self.words(
                *(ConstantWord(operand.bank, operand.offset + 4 * k) for k in range(words))
            )
        if operand.index == RZ:
            return POOL
        if operand.file not in ("R", "UR"):
            self.refuse_operand(operand, "a register")
        return self.out(operand)

    def word(self, value: PoolEntry) -> int:
        """The slot of a vector whose lanes all hold `value`."""
        return self.words(value)

    def words(self, *values: PoolEntry) -> int:
        """The first slot of consecutive vectors that hold `values`."""
        place = self._places.get(values)
        if place is None:
            place = self._places[values] = len(self._pool)
            self._pool.extend(values)
        return POOL | place

    def _integer(self, operand: Immediate) -> int:
        try:
            return operand.integer
        except ValueError:
            self.refuse_operand(operand, "an integer")

    def _number(self, operand: Immediate) -> float:
        try:
            return operand.number
        except ValueError:
            self.refuse_operand(operand, "a number")

    def refuse_operand(self, operand: Operand, wanted: str) -> NoReturn:
        kind = type(operand).__name__.lower()
        refuse(self.instruction, f"the simulator wants {wanted} where this has a {kind}: {operand}")


def _indices(instructions: Iterable[Instruction], file: str) -> set[int]:
    """The registers of `file` that the instructions name, in addresses and constants too."""
    found = set()
    for instruction in instructions:
        for operand in instruction.operands:
            for register in _registers(operand):
                if register.file == file and register.index != RZ:
                    found.add(register.index)
    return found


def _registers(operand: Operand) -> Iterable[Register]:
    match operand:
        case Register():
            yield operand
        case Address():
            yield from operand.registers
            if operand.descriptor:
                yield operand.descriptor
        case Constant():
            yield from filter(None, (operand.base, operand.bank_register))
        case Special() | Immediate():
            return
