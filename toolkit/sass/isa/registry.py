"""The registry of semantics, and what its functions are written with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.machine_code.instruction import (
    Immediate,
    Instruction,
    Operand,
    tensor_core_refusal,
)
from toolkit.sass.core.binding import (
    INSTRUCTION,
    POOL,
    PREDICATE_DISCARD,
    PREDICATE_NOT,
    PT,
    SOURCES,
    operations,
)
from toolkit.sass.isa.slots import PoolEntry, Slots, Source, refuse

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
class Lowering(Slots):
    """The instruction in hand, and the operations so far."""

    architecture: int = field(kw_only=True)
    _rows: list[tuple[Any, ...]] = field(default_factory=list)
    _emitted: bool = False

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

    def target(self, operand: Operand) -> int:
        """The index of the instruction that a branch names."""
        if not isinstance(operand, Immediate):
            self.refuse_operand(operand, "an address in the program")
        return self._integer(operand) // 16

    def result(self) -> Lowered:
        return Lowered(
            program=np.array(self._rows, dtype=INSTRUCTION),
            pool=tuple(self._pool),
            slots=self._slots,
            first_uniform=self.first_uniform,
        )


def _filled(values: Iterable[int], length: int, fill: int) -> list[int]:
    given = list(values)
    assert len(given) <= length
    return given + [fill] * (length - len(given))
