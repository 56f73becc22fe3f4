"""Registry of semantics, and the tools with which its functions are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from toolkit.machine_code.instruction import (
    Immediate,
    Instruction,
    Modified,
    Operand,
    Register,
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
from toolkit.sass.isa.slots import PoolEntry, Slots, Source, refuse, refuse_form

LowerFunction = Callable[["Lowering"], None]
# A source of an operation: what reads it is given its operand and its number.
Reader = Callable[["Lowering", Operand, int], Source]
Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Semantics:
    """Semantics of one opcode in the simulator.

    `modifiers` are those it accepts. `of_words`: an operand such as R4.H1 is refused.
    """

    opcode: str
    modifiers: frozenset[str]
    lower: LowerFunction
    of_words: bool


REGISTRY: dict[str, Semantics] = {}
READERS: dict[str, Reader] = {}


def reader(function: Reader) -> Reader:
    READERS[function.__name__] = function
    return function


def is_predicate(operand: Operand) -> bool:
    return isinstance(operand, Register) and operand.file in ("P", "UP")


def opcode(
    *names: str,
    modifiers: str = "",
    uniform: bool = False,
    of_words: bool = False,
) -> Callable[[LowerFunction], LowerFunction]:
    """Register the decorated function as the meaning of the opcodes `names`.

    With `uniform` also of their uniform forms (UFADD of FADD).
    """

    def register(function: LowerFunction) -> LowerFunction:
        for name in (*names, *(f"U{name}" for name in names if uniform)):
            assert name not in REGISTRY, f"{name} has two meanings"
            REGISTRY[name] = Semantics(
                opcode=name,
                modifiers=frozenset(modifiers.split()),
                lower=function,
                of_words=of_words,
            )
        return function

    return register


on_words = partial(opcode, of_words=True)


def numbered(names: str, *, first: int = 0, shift: int = 0) -> dict[str, int]:
    """A number for each of the names in a row, at bit `shift`."""
    return {name: number << shift for number, name in enumerate(names.split(), start=first)}


def refuse_tensor_cores(instructions: Sequence[Instruction]) -> None:
    """Raise UnsupportedError where code multiplies on tensor memory."""
    for instruction in instructions:
        reason = tensor_core_refusal(instruction.opcode)
        if reason:
            refuse(instruction, reason)


def lower(instructions: Sequence[Instruction], capability: int = 90) -> Lowered:
    """The core's program for the instructions of one text section, in order of address.

    `capability` is that of the architecture (90 of sm_90), on which sums of tensor cores depend.

    Raises UnsupportedError for tensor memory, else at the first that the registry does not know.
    """
    refuse_tensor_cores(instructions)
    lowering = Lowering(instructions, capability=capability)
    for instruction in instructions:
        lowering.begin(instruction)
        meaning = REGISTRY.get(instruction.opcode)
        if meaning is None:
            refuse_form(lowering, f"the simulator does not know the opcode {instruction.opcode}")
        unknown = [name for name in instruction.modifiers if name not in meaning.modifiers]
        if unknown:
            refuse_form(
                lowering,
                f"the simulator does not know {instruction.opcode} with .{' .'.join(unknown)}",
            )
        for operand in instruction.operands if meaning.of_words else ():
            if isinstance(operand, Modified) and operand.suffix:
                lowering.refuse_operand(operand, "a whole word")
        with suppress(IndexError, ValueError):  # too few or too many operands for any form
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

    opcode: str = field(init=False)
    modifiers: tuple[str, ...] = field(init=False)
    operands: tuple[Operand, ...] = field(init=False)
    _rows: list[tuple[Any, ...]] = field(default_factory=list)
    _emitted: bool = False

    def begin(self, instruction: Instruction) -> None:
        self._emitted = False
        self.instruction = instruction
        self.opcode, self.modifiers = instruction.opcode, instruction.modifiers
        self.operands = instruction.operands

    def end(self) -> None:
        if not self._emitted:
            refuse_form(self, "the simulator does not know this form")

    # Modifiers.

    def choice(self, choices: Mapping[str, int], default: int | None = None) -> int:
        """Value of the one modifier that is among `choices`; `default` if there is none.

        Refuses two of them, and an instruction without any if there is no default.
        """
        found = [name for name in self.modifiers if name in choices]
        if len(found) > 1:
            refuse_form(self, f"the simulator does not know .{' .'.join(found)} together")
        if found:
            return choices[found[0]]
        if default is None:
            refuse_form(self, f"the simulator wants one of .{' .'.join(choices)}")
        return default

    def first(self, choices: Mapping[str, Value], default: Value) -> Value:
        """Value of the first modifier that is among `choices`."""
        return next((choices[name] for name in self.modifiers if name in choices), default)

    def flags(self, flags: Mapping[str, int]) -> int:
        """Flags of all modifiers that are among `flags`, added up."""
        return sum({flags[name] for name in self.modifiers if name in flags})

    def shape(self, shapes: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
        """Rows and K of the one shape among the modifiers. Refuses an instruction without one."""
        names = {name: index for index, name in enumerate(shapes)}
        return list(shapes.values())[self.choice(names)]

    # Operands.

    def number(self, operand: Operand, below: int) -> int:
        """An operand that is part of the opcode: a table, the shift of an address."""
        if not isinstance(operand, Immediate) or not 0 <= operand.integer < below:
            self.refuse_operand(operand, f"a number below {below}")
        return operand.integer

    def form(
        self,
        form: str,
        operation: str = "",
        *,
        operands: Sequence[Operand] | None = None,
        **more: Any,
    ) -> None:
        """The instruction is `operation` (by default its opcode), if its operands have a form.

        That is a word for each operand: `d` is the register written, `P` a predicate written and
        `p` one read, `#256` a number below 256, which joins Ins.aux. Any other word names the
        reader of a source, a function in READERS or a method of Slots. `P*` stands for all
        predicates that follow, if any. `more` is as of `emit`.
        """
        left = list(self.operands if operands is None else operands)
        found: dict[str, list[Operand]] = {"d": [], "P": [], "p": []}
        sources: list[Source] = []
        aux = more.pop("aux", 0)
        words = form.split()
        if len(words) != len(left) and "*" not in form:
            return
        for word in words:
            if word[-1] == "*":
                while left and is_predicate(left[0]):
                    found[word[0]].append(left.pop(0))
                continue
            if not left:
                return
            operand = left.pop(0)
            if word in found:
                found[word].append(operand)
            elif word in READERS:
                sources.append(READERS[word](self, operand, len(sources)))
            elif word[0] == "#":
                aux |= self.number(operand, int(word[1:]))
            else:
                sources.append(getattr(self, word)(operand))
        if not left:
            self.emit(
                operation or self.opcode.removeprefix("U"),
                d=next(iter(found["d"]), None),
                s=sources,
                pd=found["P"],
                ps=found["p"],
                aux=aux,
                **more,
            )

    def emit(
        self,
        operation: str,
        *,
        d: Operand | int | None = None,
        d2: Operand | None = None,
        s: Iterable[Source | int] = (),
        pd: Iterable[Operand] = (),
        ps: Iterable[Operand] = (),
        flags: int = 0,
        width: int = 0,
        aux: int = 0,
        imm: int = 0,
    ) -> None:
        """The instruction is `operation`: it writes `d` and `d2` and reads the vectors `s`, writes
        the predicates `pd` and reads `ps`.

        What is not given is: results discarded, sources zero, predicates read false.
        """
        assert not self._emitted, f"{self.instruction.text} is two operations"
        self._emitted = True
        guard = self.instruction.guard
        sources = [x if isinstance(x, Source) else Source(x) for x in s]
        for source in sources:
            flags |= source.flags
            aux |= source.aux
        self._rows.append(
            (
                operations()[operation],
                PT if guard is None else self.predicate(guard),
                self.opcode.startswith("U") or self.opcode in _UNIFORM,
                flags,
                [self._written(d), self._written(d2)],
                _filled([x.slot for x in sources], SOURCES, POOL),
                _filled([x.mod for x in sources], SOURCES, 0),
                _filled([self.predicate_out(x) for x in pd], 2, PREDICATE_DISCARD),
                _filled([self.predicate(x) for x in ps], 4, PT | PREDICATE_NOT),
                width,
                aux,
                0,
                imm,
            )
        )

    def _written(self, d: Operand | int | None) -> int:
        """The slot that is written; it may be given itself."""
        if d is None:
            return self._discard
        return d if isinstance(d, int) else self.out(d)

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


def _filled(given: list[int], length: int, fill: int) -> list[int]:
    assert len(given) <= length
    return given + [fill] * (length - len(given))
