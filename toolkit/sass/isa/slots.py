"""Slots: where an operation of the core finds its operands and leaves its results."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from analysis.errors import UnsupportedError
from toolkit.machine_code.instruction import (
    RZ,
    Address,
    Constant,
    Descriptor,
    Immediate,
    Instruction,
    Operand,
    Register,
)
from toolkit.sass.core.binding import POOL, PREDICATE_DISCARD, PREDICATE_NOT, PT, UPT

# MOD_* of core.h
F32_NEG, F32_ABS, NOT, INT_NEG, F64_NEG, F64_ABS, F16_NEG, F16_ABS = (1 << k for k in range(8))

WIDEST_RANGE = 16  # registers that one operand may name: a matrix of DMMA.16x8x16


@dataclass(frozen=True)
class ConstantWord:
    """Word of a constant bank, whose value the launch determines."""

    bank: int
    offset: int


PoolEntry = int | ConstantWord
SAVED = ("Rpc.LO", "Rpc.HI")


@dataclass(frozen=True)
class Source:
    """Vector that an operation reads, and its modifiers (MOD_* of core.h).

    `flags` and `aux` are added to those of the instruction.
    """

    slot: int
    mod: int = 0
    flags: int = 0
    aux: int = 0


def refuse(instruction: Instruction, reason: str) -> NoReturn:
    """Raise UnsupportedError with the form, the place, and the source line if it is known.

    `reason` ends with a remedy; `refuse_form` adds the usual one.
    """
    where = f" ({instruction.source.shown})" if instruction.source else ""
    raise UnsupportedError(f"{instruction.located}{where}: {reason}")


def remedy(capability: int) -> str:
    """Return the remedy for an unknown opcode or form; the fewest are unknown for sm_90."""
    return "run it on a GPU" if capability == 90 else "compile for sm_90, or run it on a GPU"


def words_of(number: float, code: str) -> tuple[int, ...]:
    """The 32-bit words of a number as `struct` packs it, the lowest first."""
    packed = struct.pack(f"<{code}", number)
    return struct.unpack(f"<{len(packed) // 4}I", packed)


@dataclass
class Slots:
    """The slots of the operands of an instruction, and the constants of a program so far.

    `instruction` is the one in hand, `capability` that of the architecture.
    """

    instructions: Sequence[Instruction]
    capability: int = 90
    instruction: Instruction = field(init=False)
    first_uniform: int = field(init=False)
    _discard: int = field(init=False)
    first_saved: int = field(init=False)  # of SAVED, registers in which RPCMOV keeps values
    _slots: int = field(init=False)
    _pool: list[PoolEntry] = field(default_factory=lambda: [0] * WIDEST_RANGE)
    _places: dict[tuple[PoolEntry, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        registers = 1 + max(
            max(_indices(self.instructions, "R"), default=0),
            max(map(_last_of_matrix, self.instructions), default=0),
        )
        uniforms = 1 + max(_indices(self.instructions, "UR"), default=0)
        self.first_uniform = registers + WIDEST_RANGE - 1
        self._discard = self.first_uniform + uniforms + WIDEST_RANGE - 1
        self._slots = self._discard + WIDEST_RANGE
        self.first_saved = self._slots
        if any(one.opcode == "RPCMOV" for one in self.instructions):
            self._slots += len(SAVED)
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

    def u32(self, operand: Operand, *, words: int = 1) -> Source:
        """A 32-bit integer operand; `~` complements it, `-` negates it."""
        match operand:
            case Register() | Constant() if not operand.absolute:
                mod = NOT * operand.invert | INT_NEG * operand.negate
                return Source(self.slot(operand, words=words), mod)
            case Immediate():
                value = self._integer(operand)
                return Source(self.words(*(value >> 32 * k & 0xFFFFFFFF for k in range(words))))
        self.refuse_operand(operand, "an integer")

    def u64(self, operand: Operand) -> Source:
        """A 64-bit integer operand: a register pair, two words of a bank, or an immediate."""
        return self.u32(operand, words=2)

    def f32(self, operand: Operand, *, words: int = 1) -> Source:
        """A single-precision operand, or a pair of them where it has two words."""
        return self._real(operand, "f", words, F32_NEG, F32_ABS)

    def f64(self, operand: Operand) -> Source:
        """A double-precision operand."""
        return self._real(operand, "d", 2, F64_NEG, F64_ABS)

    def f16x2(self, operand: Register | Constant) -> Source:
        """A pair of halves; which of them are read is the operation's."""
        if operand.invert:
            self.refuse_operand(operand, "a number")
        mod = F16_NEG * operand.negate | F16_ABS * operand.absolute
        return Source(self.slot(operand), mod)

    def _real(self, operand: Operand, code: str, words: int, negate: int, absolute: int) -> Source:
        match operand:
            case Register() | Constant() if not operand.suffix and not operand.invert:
                mod = negate * operand.negate | absolute * operand.absolute
                return Source(self.slot(operand, words=words), mod)
            case Immediate(bits=None):
                return Source(self.words(*words_of(self._number(operand), code)))
            case Immediate(bits=int(bits)):  # those of the upper word
                return Source(self.words(*[0] * (words - 1), bits))
        self.refuse_operand(operand, "a number")

    def slot(self, operand: Register | Constant, *, words: int = 1) -> int:
        """Slot of a register or constant; the `words - 1` words after it are in the next slots."""
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

    def words(self, *values: PoolEntry) -> int:
        """First slot of consecutive vectors; all lanes of each hold one of `values`."""
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
        refuse_form(self, f"the simulator wants {wanted} where this has a {kind} ({operand})")


def refuse_form(slots: Slots, reason: str) -> NoReturn:
    """Raise UnsupportedError for the instruction in hand, with the usual remedy."""
    refuse(slots.instruction, f"{reason}: {remedy(slots.capability)}")


_MATRIX = re.compile(r"64x(\d+)x\d+")


def matrix_columns(instruction: Instruction) -> int:
    """Columns of the product of a warpgroup (`HGMMA.64x128x16`); 0 for another instruction."""
    if not instruction.opcode.endswith("GMMA"):
        return 0
    return next((int(m[1]) for x in instruction.modifiers if (m := _MATRIX.fullmatch(x))), 0)


def _last_of_matrix(instruction: Instruction) -> int:
    """The last register that a product of a warpgroup may write, whose first one is named."""
    columns = matrix_columns(instruction)
    named = instruction.operands[0] if columns else None
    is_there = isinstance(named, Register) and named.index != RZ
    return named.index + columns // 2 - 1 if is_there and isinstance(named, Register) else 0


def _indices(instructions: Iterable[Instruction], file: str) -> Iterable[int]:
    """The registers of `file` that the instructions name, in addresses and constants too."""
    for instruction in instructions:
        for operand in instruction.operands:
            for register in _registers(operand):
                if register and register.file == file and register.index != RZ:
                    yield register.index


def _registers(operand: Operand) -> tuple[Register | None, ...]:
    match operand:
        case Register():
            return (operand,)
        case Address():
            return (*operand.registers, operand.descriptor)
        case Constant():
            return (operand.base, operand.bank_register)
        case Descriptor():
            return (operand.register,)
    return ()
