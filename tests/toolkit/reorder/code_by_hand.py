"""Codes of a few instructions for the pass, with the schedule that a test gives them."""

import re

from analysis.sm import Unit
from tests.probe import instructions
from toolkit.machine_code.patching import ALWAYS, BARRIERS, NO_BARRIERS, STALL, WAIT
from toolkit.reorder.flow import Code
from toolkit.reorder.operands import read, written
from toolkit.reorder.words import MULTIPLY_ADD, is_movable, operands_of

UNITS = {"FFMA": Unit.FMA, "FMUL": Unit.FMA, "LDS": Unit.LSU, "STS": Unit.LSU, "STG": Unit.LSU}
RZ = 255

# `FFMA R0, R1, R2, R3; 2 w0 r1 W1`: clocks to the next one, the scoreboards that are released when
# the result is written and when the sources were read, and one that is waited for
_LINE = re.compile(r"(?P<text>[^;]+?)(?:; *(?P<stall>\d+)?(?P<rest>( *[wrW]\d)*))?")


def code(text):
    """The code of the lines of a text; what a line leaves out is 1 clock, and no scoreboard."""
    lines = [line.strip() for line in text.strip().splitlines()]
    matches = [_LINE.fullmatch(line) for line in lines]
    assert all(matches), lines
    parsed = instructions("\n".join(m["text"] for m in matches if m))
    words = [
        _word(i, int(m["stall"] or 1), m["rest"] or "")
        for i, m in zip(parsed, matches, strict=True)
        if m
    ]
    return Code(
        instructions=parsed,
        words=words,
        units=[
            UNITS.get(i.opcode, Unit.CONTROL if i.opcode == "BRA" else Unit.ALU) for i in parsed
        ],
        read=[frozenset(read(i)) for i in parsed],
        written=[frozenset(written(i)) for i in parsed],
        reads=[(0, 0)] * len(parsed),
        operands={k: operands_of(word) for k, word in enumerate(words) if is_movable(word)},
    )


def _word(instruction, stall, scoreboards):
    found = dict(re.findall(r"([wrW])(\d)", scoreboards))
    write, read_ = int(found.get("w", 7)), int(found.get("r", 7))
    word = stall << STALL | (write | read_ << 3) << BARRIERS
    if "W" in found:
        word |= 1 << WAIT + int(found["W"])
    if instruction.opcode != "FFMA" or instruction.guard is not None:
        return word | 0x918
    word |= MULTIPLY_ADD | ALWAYS
    for at, operand in zip((16, 24, 32, 64), instruction.operands, strict=True):
        word |= operand.index << at
    assert (write | read_ << 3 != NO_BARRIERS) or is_movable(word)
    return word
