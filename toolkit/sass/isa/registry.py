"""The registry of semantics, and what its functions are written with."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

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
    tensor_core_refusal,
)
from toolkit.sass.core.binding import (
    INSTRUCTION,
    POOL,
    PREDICATE_DISCARD,
    PREDICATE_NOT,
    PT,
    SOURCES,
    UPT,
    operations,
)

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


LowerFunction = Callable[["Lowering"], None]


@dataclass(frozen=True, kw_only=True)
class Semantics:
    """What the simulator knows of an opcode.

    `modifiers` are those it accepts; `since` and `until` the architectures (75 for sm_75) whose
    code may hold it.
    """

    opcode: str
    modifiers: frozenset[str]
    lower: LowerFunction
    since: int
    until: int
    family: str


REGISTRY: dict[str, Semantics] = {}


def opcode(
    *names: str, modifiers: str = "", since: int = 75, until: int = 999
) -> Callable[[LowerFunction], LowerFunction]:
    """Register the decorated function as the meaning of the opcodes `names`."""

    def register(function: LowerFunction) -> LowerFunction:
        for name in names:
            assert name not in REGISTRY, f"{name} has two meanings"
            REGISTRY[name] = Semantics(
                opcode=name,
                modifiers=frozenset(modifiers.split()),
                lower=function,
                since=since,
                until=until,
                family=function.__module__.rpartition(".")[2],
            )
        return function

    return register


def numbered(names: str, *, first: int = 0, shift: int = 0) -> dict[str, int]:
    """A number for each of the names in a row, at bit `shift`."""
    return {name: number << shift for number, name in enumerate(names.split(), start=first)}


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


def refuse_tensor_cores(instructions: Sequence[Instruction]) -> None:
    """Raise UnsupportedError where code multiplies on tensor cores, or moves their operands."""
    for instruction in sorted(instructions, key=lambda i: not i.opcode.endswith("MMA")):
        reason = tensor_core_refusal(instruction.opcode)
        if reason:
            refuse(instruction, reason)


def lower(
    instructions: Sequence[Instruction],
    *,
    architecture: int,
) -> Lowered:
    """The core's program for the instructions of one text section, in order of address.

    Raises UnsupportedError for tensor cores, else at the first that the registry does not know.
    """
    refuse_tensor_cores(instructions)
    lowering = Lowering(instructions, architecture=architecture)
    for instruction in instructions:
        meaning = REGISTRY.get(instruction.opcode)
        if meaning is None:
            refuse(instruction, f"the simulator does not know the opcode {instruction.opcode}")
        unknown = [name for name in instruction.modifiers if name not in meaning.modifiers]
        if unknown:
            refuse(
                instruction,
                f"the simulator does not know {instruction.opcode} with .{' .'.join(unknown)}",
            )
        lowering.begin(instruction)
        meaning.lower(lowering)
        lowering.end()
    return lowering.result()


# On the uniform datapath too, which writes for all lanes whichever are active. What R2UR, REDUX and
# VOTEU write depends on those that are.
_UNIFORM = ("LDCU", "S2UR", "CS2UR")


@dataclass(frozen=True, kw_only=True)
class Lowered:
    """A program of the core: its instructions, and the launch constants that it reads.

    `pool` names a value per vector of 32 equal words. A warp has `slots` vectors; uniform
    registers begin at `first_uniform`.
    """

    program: NDArray[Any]
    pool: tuple[PoolEntry, ...]
    slots: int
    first_uniform: int


@dataclass
class Lowering:
    """The instruction in hand, whose operands become slots, and the operations so far."""

    instructions: Sequence[Instruction]
    architecture: int
    first_uniform: int = field(init=False)
    _discard: int = field(init=False)
    _slots: int = field(init=False)
    _pool: list[PoolEntry] = field(default_factory=lambda: [0] * WIDEST_RANGE)
    _places: dict[tuple[PoolEntry, ...], int] = field(default_factory=dict)
    _rows: list[tuple[Any, ...]] = field(default_factory=list)
    _emitted: bool = False

    def __post_init__(self) -> None:
        registers = 1 + max(_indices(self.instructions, "R"), default=0)
        uniforms = 1 + max(_indices(self.instructions, "UR"), default=0)
        self.first_uniform = registers + WIDEST_RANGE - 1
        self._discard = self.first_uniform + uniforms + WIDEST_RANGE - 1
        self._slots = self._discard + WIDEST_RANGE
        self._places[(0,)] = 0

    # One instruction.

    def begin(self, instruction: Instruction) -> None:
        self._emitted = False
        self.instruction = instruction

    @property
    def opcode(self) -> str:
        return self.instruction.opcode

    @property
    def modifiers(self) -> tuple[str, ...]:
        return self.instruction.modifiers

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.instruction.operands

    def end(self) -> None:
        if not self._emitted:
            refuse(self.instruction, "the simulator does not know this form")

    def emit(
        self,
        operation: str,
        *,
        d: Operand | None = None,
        s: Iterable[Source | int] = (),
        pd: Iterable[Operand] = (),
        ps: Iterable[Operand] = (),
        flags: int = 0,
        width: int = 0,
        aux: int = 0,
        imm: int = 0,
    ) -> None:
        """The instruction is `operation`: it writes `d` and reads the vectors `s`, writes the
        predicates `pd` and reads `ps`.

        What is not given is: results discarded, sources zero, predicates read false.
        """
        assert not self._emitted, f"{self.instruction.text} is two operations"
        self._emitted = True
        sources = [x if isinstance(x, Source) else Source(x) for x in s]
        self._rows.append(
            (
                operations()[operation],
                self._guard(),
                self.opcode.startswith("U") or self.opcode in _UNIFORM,
                flags,
                _filled((), 2, self._discard) if d is None else [self.out(d), self._discard],
                _filled((x.slot for x in sources), SOURCES, POOL),
                _filled((x.mod for x in sources), SOURCES, 0),
                _filled(map(self.predicate_out, pd), 2, PREDICATE_DISCARD),
                _filled(map(self.predicate, ps), 4, PT | PREDICATE_NOT),
                width,
                aux,
                0,
                imm,
            )
        )

    def _guard(self) -> int:
        guard = self.instruction.guard
        return PT if guard is None else self.predicate(guard)

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

    def target(self, operand: Operand) -> int:
        """The index of the instruction that a branch names."""
        if not isinstance(operand, Immediate):
            self.refuse_operand(operand, "an address in the program")
        return self._integer(operand) // 16

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

    def result(self) -> Lowered:
        return Lowered(
            program=np.array(self._rows, dtype=INSTRUCTION),
            pool=tuple(self._pool),
            slots=self._slots,
            first_uniform=self.first_uniform,
        )


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


def _filled(values: Iterable[int], length: int, fill: int) -> list[int]:
    given = list(values)
    assert len(given) <= length
    return given + [fill] * (length - len(given))
