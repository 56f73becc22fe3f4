"""Instructions from the output of `nvdisasm -json`.

Quirks of the JSON, found by comparing it with the text output (`nvdisasm -c -raw`) on hundreds of
kernels for sm_75 to sm_120:
- A comma may be missing before a memory operand: `[R5][R6.64]` of LDGSTS on sm_8x up to nvdisasm
  13.5, and `R12[R3]` of every load before 13.5.
- LDGSTS has its operands in another order before 13.2: see `split_operands`.
- P2R reads all predicates, PR, and the JSON has that in the place of the guard.
- Before 13.5 each function of a section stands alone; addresses count from the section anyway.
- Branches have absolute targets as numbers, but CALL and RET those of functions by symbol, and
  BRX has a distance: toolkit/machine_code/program.py makes addresses of all of them.
- NaNs are printed as +QNAN, -QNAN, +SNAN or -SNAN, whatever their payload.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, cast

from analysis.errors import ToolkitError, UnsupportedError, shortened
from toolkit.machine_code.instruction import (
    CONSTANT_NAMES,
    INSTRUCTION_BYTES,
    Address,
    Constant,
    Descriptor,
    Immediate,
    Instruction,
    Operand,
    Register,
    RegisterFile,
    SourceLine,
    Special,
    tensor_core_refusal,
)

_CONSTANT_REGISTERS = {name: register for register, name in CONSTANT_NAMES.items()}
_SIGNS = r"(?P<signs>[-~!]*)(?P<bar>\|?)"
_SUFFIX = r"(?P=bar)(?P<suffix>(?:\.\w+)*)"
_REGISTER = re.compile(
    rf"{_SIGNS}(?:(?P<file>U?[RP]|B)(?P<index>\d+)|(?P<name>U?RZ|U?PT)){_SUFFIX}"
)
_CONSTANT = re.compile(
    rf"{_SIGNS}(?:c\[(?P<bank>0x[0-9a-f]+)\]|cx\[(?P<register>UR\w+)\])\[(?P<sum>[^\]]*)\]{_SUFFIX}"
)
_ADDRESS = re.compile(r"(?:desc\[(?P<descriptor>UR\w+)\])?\[(?P<sum>[^\]]*)\]")
_DESCRIPTOR = re.compile(r"gdesc\[(?P<register>UR\w+)\](?P<suffix>(?:\.\w+)*)")
_NUMBER = re.compile(r"[-+]?(?:0x[0-9a-f]+|\d+(?:\.\d*)?(?:e[-+]\d+)?|INF|[QS]NAN)")
_INTEGER = re.compile(r"-?0x[0-9a-f]+")
_NAME = re.compile(r"[\w.$]+|\{[\d,]+\}|32@(?:lo|hi)\(.+\)|desc\[UR\w+\]")
# a memory operand, or a register, with another memory operand right behind it
_NO_COMMA = re.compile(r"((?:^|,)(?:\[[^\]]*\]|@?!?U?[RP](?:\d+|Z|T)(?:\.\w+)*))(?=\[|desc\[)")
# Of LDGSTS: its target behind its source and predicate, or its predicate in front of both.
_TARGET_LAST = re.compile(r"^(desc\[\w+\]\[[^\]]*\])(,!?U?P[\dT]+)?(\[[^\]]*\])")
_PREDICATE_FIRST = re.compile(r"^(!?U?P[\dT]+)(\[[^\]]*\])((?:desc\[\w+\])?\[[^\]]*\])")


MOST_SHOWN = 300  # characters of a text in a message


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function of the disassembly; addresses count from the beginning of its section."""

    name: str
    instructions: tuple[Instruction, ...]


class OperandError(ValueError):
    """Error for an operand whose text is not in the grammar."""


def decode(
    disassembly: str,
    *,
    wanted: Callable[[str], bool] = lambda name: True,
    sources: Mapping[int, SourceLine] | None = None,
) -> list[Function]:
    """The functions whose name is `wanted`, in order.

    `sources` has the source lines of their instructions, by address. Raises UnsupportedError for
    an operand whose form is not known, and ToolkitError for text that is not nvdisasm's.
    """
    try:
        _, records = _parsed(disassembly)
        return [
            Function(
                name=record["function-name"],
                instructions=tuple(_instructions(record, sources or {})),
            )
            for record in records
            if wanted(record["function-name"])
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise ToolkitError(
            f"nvdisasm printed something unexpected ({type(error).__name__}: {error}): "
            "use the version that this toolkit asks for"
        ) from error


@lru_cache(maxsize=2)  # asked for each kernel of an image
def _parsed(disassembly: str) -> Any:
    return json.loads(disassembly)


def _instructions(
    function: Mapping[str, Any], sources: Mapping[int, SourceLine]
) -> Iterable[Instruction]:
    address = function["start"]
    for record in function["sass-instructions"]:
        source = sources.get(address)
        try:
            yield _instruction(record, address, source)
        except OperandError as error:
            where = f" ({source.shown})" if source else ""
            reason = tensor_core_refusal(record["opcode"].partition(".")[0])
            raise UnsupportedError(
                f"{_shown(_text(record['opcode'], *_parts(record)))} at {address:#06x} of "
                f"{_shown(function['function-name'])}{where}: "
                + (reason or f"the simulator does not know the operand {_shown(str(error))}")
            ) from error
        address += INSTRUCTION_BYTES


def _shown(text: str) -> str:
    """A text as it fits into a message of one line; names of C++ templates are long."""
    return shortened(" ".join(text.split()), MOST_SHOWN)


def _instruction(record: Mapping[str, str], address: int, source: SourceLine | None) -> Instruction:
    guard, operands = _parts(record)
    opcode, *modifiers = record["opcode"].split(".")
    return Instruction(
        address=address,
        opcode=opcode,
        modifiers=tuple(modifiers),
        operands=tuple(map(parse_operand, operands)),
        guard=parse_guard(guard) if guard else None,
        text=_text(record["opcode"], guard, operands),
        source=source,
    )


def _text(words: str, guard: str, operands: Sequence[str]) -> str:
    return " ".join(filter(None, (guard, words, ", ".join(operands))))


def _parts(record: Mapping[str, str]) -> tuple[str, Sequence[str]]:
    """Guard and operands.

    `P2R R3,PR,RZ,0x1` has the "predicate" PR and the operands R3,RZ,0x1; with the guard @P0 it
    has the "predicate" PR still, and the operands R3,@P0,RZ,0x1.
    """
    guard, operands = record.get("predicate", ""), split_operands(record.get("operands", ""))
    if guard != "PR":
        return guard, operands
    register, *others = operands
    guard = others.pop(0) if others and others[0].startswith("@") else ""
    return guard, (register, "PR", *others)


@cache
def parse_guard(text: str) -> Register:
    """The predicate of `@P0` or `@!UP1`."""
    return _register(text.removeprefix("@"))


def split_operands(text: str) -> tuple[str, ...]:
    """The text of each operand.

    >>> split_operands("R21,desc[UR6][R22.64]"), split_operands("[R5][R6.64],P0")
    (('R21', 'desc[UR6][R22.64]'), ('[R5]', '[R6.64]', 'P0'))

    For sm_8x a comma may stand one word too late:

    >>> split_operands("PT,R11desc,[UR4][R8.64],R15")
    ('PT', 'R11', 'desc[UR4][R8.64]', 'R15')

    and before nvdisasm 13.2, the operands of LDGSTS stand in another order:

    >>> split_operands("desc[UR8][R10.64],P4[R9]"), split_operands("P4[R9][R10.64]")
    (('[R9]', 'desc[UR8][R10.64]', 'P4'), ('[R9]', '[R10.64]', 'P4'))
    >>> split_operands("P4[R9]desc[UR8][R10.64]")
    ('[R9]', 'desc[UR8][R10.64]', 'P4')
    """
    if not text:
        return ()
    if "[" not in text and "{" not in text:  # of most instructions: quicker
        return tuple(map(str.strip, text.split(",")))
    text = _TARGET_LAST.sub(r"\3,\1\2", text)
    text = _PREDICATE_FIRST.sub(r"\2,\3,\1", text)
    separated = _NO_COMMA.sub(r"\1,", text.replace("desc,[", ",desc["))
    parts = re.split(r",(?![\d,]*\})", separated)  # not those of {2,1}
    return tuple(map(str.strip, parts))


@lru_cache(maxsize=1 << 16)
def parse_operand(text: str) -> Operand:
    """Operand of this text. Raises OperandError for an unknown form."""
    if match := _REGISTER.fullmatch(text):
        file, index = (
            _CONSTANT_REGISTERS[match["name"]]
            if match["name"]
            else (cast(RegisterFile, match["file"]), int(match["index"]))
        )
        return Register(file=file, index=index, **_modifiers(match))
    if _NUMBER.fullmatch(text):
        return Immediate(text=text)
    if match := _CONSTANT.fullmatch(text):
        registers, offset = _sum(match["sum"])
        if len(registers) > 1:
            raise OperandError(repr(text))
        return Constant(
            bank=int(match["bank"] or "0", 16),
            offset=offset,
            base=registers[0] if registers else None,
            bank_register=_register(match["register"]) if match["register"] else None,
            **_modifiers(match),
        )
    if match := _ADDRESS.fullmatch(text):
        registers, offset = _sum(match["sum"])
        return Address(
            registers=registers,
            offset=offset,
            descriptor=_register(match["descriptor"]) if match["descriptor"] else None,
        )
    if match := _DESCRIPTOR.fullmatch(text):
        return Descriptor(
            register=_register(match["register"]),
            suffix=tuple(filter(None, match["suffix"].split("."))),
        )
    if _NAME.fullmatch(text):
        return Special(name=text)
    raise OperandError(repr(text))


def _modifiers(match: re.Match[str]) -> dict[str, Any]:
    signs = match["signs"]
    return {
        "negate": "-" in signs,
        "absolute": bool(match["bar"]),
        "invert": "~" in signs or "!" in signs,
        "suffix": tuple(x for x in match["suffix"].split(".") if x not in ("", "reuse")),
    }


def _register(text: str) -> Register:
    operand = parse_operand(text)
    if not isinstance(operand, Register):
        raise OperandError(repr(text))
    return operand


def _sum(text: str) -> tuple[tuple[Register, ...], int]:
    """Registers and offset of an address in brackets, such as `R2.64+UR4+0x10`."""
    *terms, last = text.split("+")
    if not _INTEGER.fullmatch(last):
        terms, last = [*terms, last], "0x0"
    return tuple(map(_register, terms)), int(last, 16)
