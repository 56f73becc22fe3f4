"""The code of a kernel, and of the functions that it calls: in its own section, or linked to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from analysis.errors import UnsupportedError
from toolkit.machine_code.elf import FUNCTION, CubinFile
from toolkit.machine_code.instruction import INSTRUCTION_BYTES, SourceLine
from toolkit.machine_code.line_table import line_table

CONSTANT_BANK = re.compile(r"\.nv\.constant(\d{1,2})(?:\.(.+))?")
_CODE_ALIGNMENT = 128  # of sections, in bytes
_COMPILERS_OWN = "$__internal_"  # in the names of functions such as the slow path of a division
_NVRTC_HEADER = "__nv_nvrtc_builtin_header.h"  # of texture and surface functions, among others


def code_sections(file: CubinFile, symbol: str) -> dict[str, int]:
    """The sections with code of a kernel and of all that it calls, and where each begins."""
    found = {f".text.{symbol}": 0}
    end = 0
    for section in (waiting := [*found]):
        found[section] = end
        end += len(padded(file.content(section)))
        for _, _, target, _ in file.relocations(section):
            if target.kind == FUNCTION and target.section not in (*waiting, ""):
                waiting.append(target.section)
    return found


def padded(code: bytes) -> bytes:
    return code + bytes(-len(code) % _CODE_ALIGNMENT)


def functions_of(file: CubinFile, section: str) -> dict[str, int]:
    """Offset of each function in a section of code, in order."""
    found = [x for x in file.symbols if x.kind == FUNCTION and x.section == section]
    return {x.name: x.value for x in sorted(found, key=lambda x: (x.value, -x.size))}


def lines_of(file: CubinFile, section: str) -> dict[int, SourceLine]:
    """The source lines of a section of code, without those of the compiler's own functions.

    These have no lines: the table's last one before them, a closing brace, just goes on.
    """
    if not file.has(".debug_line"):
        return {}
    targets = {offset: target.name for offset, _, target, _ in file.relocations(".debug_line")}
    size = file.place(section)[1]
    symbol = section.removeprefix(".text.")
    table = line_table(file.content(".debug_line"), targets, symbol, size=size)
    starts = [*functions_of(file, section).items(), ("", size)]
    for (name, start), (_, end) in pairwise(starts):
        if _COMPILERS_OWN in name:
            for address in range(start, min(end, size), INSTRUCTION_BYTES):
                table.pop(address, None)
    return {address: _of_the_author(source) for address, source in table.items()}


def _of_the_author(source: SourceLine) -> SourceLine:
    """The line that calls a function of NVRTC's own header, such as `tex2D`; any other as it is."""
    while source.caller is not None and source.file == _NVRTC_HEADER:
        source = source.caller
    return source


def check_callees(file: CubinFile, sections: Sequence[str]) -> None:
    """Raise UnsupportedError for a function in a section of its own that cannot be executed."""
    copies: dict[str, set[bytes]] = {}
    for name, header in zip(file.names, file.sections, strict=True):
        copies.setdefault(name, set()).add(header.content(file.image))
    for section in sections:
        name = section.removeprefix(".text.")
        if len(copies[section]) > 1:
            raise UnsupportedError(f"the machine code has several functions {name}")
        if any(CONSTANT_BANK.fullmatch(one) and one.endswith(f".{name}") for one in file.names):
            raise UnsupportedError(
                f"{name} is a linked function with a table of jumps or constants of its own, which "
                "the simulator does not know: compile it with the kernel, without -rdc"
            )
