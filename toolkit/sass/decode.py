"""nvdisasm's JSON to instructions.

Operands are parsed from their text; the grammar is that of toolkit/sass/instruction.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from analysis.errors import ToolkitError, UnsupportedError
from toolkit.sass.instruction import (
    PT,
    RZ,
    Address,
    Constant,
    Immediate,
    Instruction,
    Operand,
    Register,
    RegisterFile,
    Special,
)

INSTRUCTION_BYTES = 16

_FILES: dict[str, RegisterFile] = {"R": "R", "UR": "UR", "P": "P", "UP": "UP", "B": "B"}
_NAMED: dict[str, tuple[RegisterFile, int]] = {
    "RZ": ("R", RZ),
    "URZ": ("UR", RZ),
    "PT": ("P", PT),
    "UPT": ("UP", PT),
}
_REGISTER = re.compile(r"(?:(U?[RP]|B)(\d+)|(RZ|URZ|PT|UPT))((?:\.\w+)*)")
_SIGNS = re.compile(r"[-+~!]*")
_INTEGER = re.compile(r"[-+]?(?:0x[0-9a-f]+|\d+)")
_NUMBER = re.compile(
    r"[-+]?(?:0x[0-9a-f]+|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|INF|[QS]?NAN)", re.IGNORECASE
)
_CONSTANT = re.compile(r"(?:c\[(0x[0-9a-f]+)\]|cx\[(UR\w+)\])\[([^\]]*)\]((?:\.\w+)*)")
_ADDRESS = re.compile(r"(?:desc\[(UR\w+)\])?\[([^\]]*)\]((?:\.\w+)*)")
_NAME = re.compile(r"[\w.`$()@*{}, ]+")


@dataclass(frozen=True, kw_only=True)
class Function:
    """The instructions of one function of the disassembly; addresses count from its section."""

    name: str
    instructions: tuple[Instruction, ...]


class OperandError(ValueError):
    """An operand whose text is not in the grammar."""


def decode(disassembly: str) -> list[Function]:
    """The functions in what `nvdisasm -json` prints.

    Raises UnsupportedError where an operand has a form that is not known.
    """
    try:
        _, functions = json.loads(disassembly)
    except ValueError as error:
        raise ToolkitError(f"nvdisasm printed something else than JSON: {error}") from error
    return [
        Function(name=function["function-name"], instructions=_instructions(function))
        for function in functions
    ]


def _instructions(function: Mapping[str, Any]) -> tuple[Instruction, ...]:
    start = function["start"]
    return tuple(
        _instruction(record, start + INSTRUCTION_BYTES * index, function["function-name"])
        for index, record in enumerate(function["sass-instructions"])
    )


def _instruction(record: Mapping[str, Any], address: int, function: str) -> Instruction:
    words, guard, operand_text = (
        record["opcode"],
        record.get("predicate", ""),
        record.get("operands", ""),
    )
    if guard == "PR":
        guard, operand_text = _with_predicates(words, operand_text)
    text = " ".join(filter(None, (guard, words, operand_text.replace(",", ", "))))
    try:
        operands = parse_operands(operand_text)
        predicate = parse_guard(guard) if guard else None
    except OperandError as error:
        raise UnsupportedError(
            f"{text} at {address:#06x} of {function}: the simulator does not know the operand "
            f"{error}"
        ) from error
    opcode, *modifiers = words.split(".")
    return Instruction(
        address=address,
        opcode=opcode,
        modifiers=tuple(modifiers),
        operands=operands,
        guard=predicate,
        text=text,
    )


def _with_predicates(words: str, operands: str) -> tuple[str, str]:
    """Guard and operands of P2R and R2P, in whose JSON all the predicates, PR, have a wrong place.

    `P2R R3,PR,RZ,0x1` has the "predicate" PR and the operands R3,RZ,0x1; with the guard @P0 it
    has R3,@P0,RZ,0x1.
    """
    parts = split_operands(operands)
    place = 1 if words.startswith("P2R") else 0
    guard = parts.pop(place) if len(parts) > place and parts[place].startswith("@") else ""
    parts.insert(place, "PR")
    return guard, ",".join(parts)


@cache
def parse_guard(text: str) -> Register:
    register = parse_operand(text.removeprefix("@"))
    if not isinstance(register, Register):
        raise OperandError(repr(text))
    return register


@lru_cache(maxsize=1 << 16)
def parse_operands(text: str) -> tuple[Operand, ...]:
    return tuple(parse_operand(part) for part in split_operands(text))


def split_operands(text: str) -> list[str]:
    """The operands: separated by commas, and between two memory operands by nothing.

    >>> split_operands("R21,desc[UR6][R22.64]"), split_operands("[R5][R6.64],P0")
    (['R21', 'desc[UR6][R22.64]'], ['[R5]', '[R6.64]', 'P0'])
    """
    parts, part, depth = [], "", 0
    for character in text:
        depth += (character in "[{(") - (character in "]})")
        if depth == 0 and character == ",":
            parts.append(part)
            part = ""
        elif depth == 1 and character == "[" and part.endswith("]") and part.startswith("["):
            parts.append(part)
            part = character
        else:
            part += character
    return [stripped for stripped in (p.strip() for p in [*parts, part]) if stripped]


@lru_cache(maxsize=1 << 16)
def parse_operand(text: str) -> Operand:
    """One operand; raises OperandError for a form that is not known."""
    if _NUMBER.fullmatch(text):
        return Immediate(text=text)
    found = _SIGNS.match(text)
    signs = found[0] if found else ""
    bare = text[len(signs) :]
    absolute = bare.startswith("|")
    if absolute:
        bare = bare.replace("|", "", 2)
    negate, invert = "-" in signs, "~" in signs or "!" in signs
    if match := _REGISTER.fullmatch(bare):
        file, index = _NAMED[match[3]] if match[3] else (_FILES[match[1]], int(match[2]))
        return Register(
            file=file,
            index=index,
            negate=negate,
            absolute=absolute,
            invert=invert,
            suffix=_suffix(match[4]),
        )
    if match := _CONSTANT.fullmatch(bare):
        registers, offset = _sum(match[3])
        if len(registers) > 1:
            raise OperandError(repr(text))
        return Constant(
            bank=int(match[1], 16) if match[1] else 0,
            offset=offset,
            base=registers[0] if registers else None,
            bank_register=_register(match[2]) if match[2] else None,
            negate=negate,
            absolute=absolute,
            invert=invert,
            suffix=_suffix(match[4]),
        )
    if match := _ADDRESS.fullmatch(text):
        registers, offset = _sum(match[2])
        if match[3]:
            raise OperandError(repr(text))
        return Address(
            registers=registers,
            offset=offset,
            descriptor=_register(match[1]) if match[1] else None,
        )
    if _NAME.fullmatch(text):
        return Special(name=text)
    raise OperandError(repr(text))


def _suffix(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(".") if part and part != "reuse")


def _register(text: str) -> Register:
    operand = parse_operand(text)
    if not isinstance(operand, Register):
        raise OperandError(repr(text))
    return operand


def _sum(text: str) -> tuple[tuple[Register, ...], int]:
    registers, offset = [], 0
    for term in filter(None, text.split("+")):
        if _INTEGER.fullmatch(term):
            offset += int(term, 0)
        else:
            registers.append(_register(term))
    return tuple(registers), offset
