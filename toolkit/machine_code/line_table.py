"""The line table that `-lineinfo` leaves in a cubin: a line program of DWARF 2, section 6.2.

Readers of DWARF want `.debug_info` beside it, which `-lineinfo` does not write. The line is that of
the innermost function, as `nvdisasm -g` has it. NVIDIA's extended opcode 0x90 says where that was
inlined: by the number of an earlier row, or 0.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from toolkit.machine_code.instruction import INSTRUCTION_BYTES, SourceLine

_ESCAPED = re.compile(r"\\3[0-7]{2}(?:\\2[0-7]{2})+")  # bytes of a character in UTF-8


def line_table(
    data: bytes, targets: Mapping[int, str], symbol: str, *, size: int
) -> dict[int, SourceLine]:
    """The source line of each instruction of `symbol`, whose code has `size` bytes.

    `data` is section .debug_line; `targets` names what each address in it, by offset, is
    relative to.
    """
    rows = _rows_by_symbol(data, tuple(targets.items())).get(symbol, [])
    ends = [*(row.address for row in rows[1:]), size]
    return {
        address: row.source
        for row, end in (zip(rows, ends, strict=True) if rows else ())
        if row.source
        for address in range(row.address, min(end, size), INSTRUCTION_BYTES)
    }


@dataclass(frozen=True, kw_only=True)
class TableFile:
    """A source file as a line table names it; `time_s` and `size` are 0 where it does not say."""

    path: str  #: with its folder, as the compiler was told
    time_s: int = 0  #: last change of the file when it was compiled, in seconds since 1970
    size: int = 0  #: bytes that the file had then

    @property
    def name(self) -> str:
        """The name without folders, as in `SourceLine`."""
        return re.split(r"[/\\]", self.path)[-1]


def files_of_table(data: bytes) -> tuple[TableFile, ...]:
    """The source files that section .debug_line names, each once."""
    return tuple(dict.fromkeys(file for unit in _units(data) for file in unit.files))


@lru_cache(maxsize=4)  # asked for each kernel of an image
def _rows_by_symbol(
    data: bytes, targets: tuple[tuple[int, str], ...]
) -> dict[str, list[_TableRow]]:
    """Rows by address; of two rows at one address the latter counts."""
    found: dict[str, list[_TableRow]] = defaultdict(list)
    named = dict(targets)
    for unit in _units(data):
        for row in _rows(unit, named):
            found[row.symbol].append(row)
    return {name: sorted(rows, key=lambda row: row.address) for name, rows in found.items()}


@dataclass(frozen=True, kw_only=True)
class _Unit:
    """Line program: its data and range of bytes, and the fields of its header."""

    data: bytes
    start: int
    end: int
    minimum_length: int
    line_base: int
    line_range: int
    lengths: bytes  # operands of the standard opcodes, from opcode 1 on
    files: tuple[TableFile, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _TableRow:
    """Row of the line table: code from this address on is of `source`, None after a sequence."""

    symbol: str
    address: int
    source: SourceLine | None


def _units(data: bytes) -> Iterator[_Unit]:
    offset = 0
    while offset + 10 <= len(data):
        length, version, prologue = struct.unpack_from("<IHI", data, offset)
        end = offset + 4 + length
        if version in (2, 3):
            minimum, _, line_base, line_range, opcode_base = struct.unpack_from(
                "<BBbBB", data, offset + 10
            )
            tables = offset + 15 + opcode_base - 1
            yield _Unit(
                data=data,
                start=offset + 10 + prologue,
                end=end,
                minimum_length=minimum,
                line_base=line_base,
                line_range=line_range,
                lengths=data[offset + 15 : tables],
                files=tuple(_files(data[:end], tables)),
            )
        offset = end


def _files(data: bytes, offset: int) -> Iterator[TableFile]:
    """The files of a unit, in order.

    The folder of a name that the compiler was told is the one in which the process ran then.
    """
    folders = [""]
    while data[offset]:
        end = data.index(0, offset)
        folders.append(data[offset:end].decode(errors="replace"))
        offset = end + 1
    offset += 1
    while data[offset]:
        end = data.index(0, offset)
        name = data[offset:end].decode(errors="replace")
        offset, numbers = end + 1, []
        for _ in range(3):  # folder, time, size
            number, offset = _unsigned(data, offset)
            numbers.append(number)
        folder, time_s, size = numbers
        is_inside = 0 < folder < len(folders) and not name.startswith("/")
        path = _path(folders[folder], name) if is_inside else _unescaped(name)
        yield TableFile(path=path, time_s=time_s, size=size)


def _path(folder: str, name: str) -> str:
    """Path of a file in a folder.

    The compiler writes `ö` as `\\303\\266`, and divides the path at the last slash or backslash.
    """
    joined = _unescaped(f"{folder}\\{name}")
    is_cut = not joined.endswith(f"\\{name}")
    return joined if is_cut else f"{_unescaped(folder)}/{name}"


def _unescaped(path: str) -> str:
    """A path with its characters beyond ASCII, which are escaped byte by byte."""

    def character(escaped: re.Match[str]) -> str:
        code = bytes(int(one, 8) for one in escaped[0].split("\\")[1:])
        try:
            return code.decode()
        except UnicodeDecodeError:  # it is a name of digits after a backslash
            return escaped[0]

    return _ESCAPED.sub(character, path)


def _rows(unit: _Unit, targets: Mapping[int, str]) -> Iterator[_TableRow]:
    symbol, address, line, file = "", 0, 1, 1
    caller: SourceLine | None = None
    names = [file.name for file in unit.files]
    rows: list[SourceLine | None] = [None]  # of a sequence they count from 1; 0 is no row
    for operation, value in _operations(unit):
        match operation:
            case "advance":
                address += value * unit.minimum_length
            case "line":
                line += value
            case "file":
                file = value
            case "address":
                address = int.from_bytes(unit.data[value : value + 8], "little")
                symbol = targets.get(value, "")
            case "inlined":
                caller = rows[value] if value < len(rows) else None
            case "row":
                source = SourceLine(file=names[file - 1], line=line, caller=caller)
                rows.append(source)
                yield _TableRow(symbol=symbol, address=address, source=source)
            case "end":
                yield _TableRow(symbol=symbol, address=address, source=None)
                rows = [None]
                symbol, address, line, file, caller = "", 0, 1, 1, None


_Operation = Literal["advance", "line", "file", "address", "inlined", "row", "end"]
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE = 1, 2, 3, 4
_CONST_ADD_PC, _FIXED_ADVANCE_PC = 8, 9
_END_SEQUENCE, _SET_ADDRESS, _INLINED_CALL = 1, 2, 0x90  # extended


def _operations(unit: _Unit) -> Iterator[tuple[_Operation, int]]:
    """The operations of a line program; that of "address" is where its 8 bytes stand."""
    data, offset, special = unit.data, unit.start, len(unit.lengths) + 1
    while offset < unit.end:
        opcode, offset = data[offset], offset + 1
        if opcode >= special:
            advance, line = divmod(opcode - special, unit.line_range)
            yield "advance", advance
            yield "line", line + unit.line_base
            yield "row", 0
        elif opcode == 0:
            length, offset = _unsigned(data, offset)
            if data[offset] == _END_SEQUENCE:
                yield "end", 0
            elif data[offset] == _SET_ADDRESS:
                yield "address", offset + 1
            elif data[offset] == _INLINED_CALL:
                yield "inlined", _unsigned(data, offset + 1)[0]
            offset += length
        else:
            operation, offset = _standard(unit, opcode, offset)
            if operation:
                yield operation


def _standard(unit: _Unit, opcode: int, offset: int) -> tuple[tuple[_Operation, int] | None, int]:
    """Effect of a standard opcode, None if it does not matter here, and the offset after it."""
    data = unit.data
    if opcode == _ADVANCE_LINE:
        change, offset = _signed(data, offset)
        return ("line", change), offset
    if opcode == _FIXED_ADVANCE_PC:
        (advance,) = struct.unpack_from("<H", data, offset)
        return ("advance", advance // unit.minimum_length), offset + 2
    operand = 0
    for _ in range(unit.lengths[opcode - 1]):
        operand, offset = _unsigned(data, offset)
    operations: dict[int, tuple[_Operation, int]] = {
        _COPY: ("row", 0),
        _ADVANCE_PC: ("advance", operand),
        _SET_FILE: ("file", operand),
        _CONST_ADD_PC: ("advance", (254 - len(unit.lengths)) // unit.line_range),
    }
    return operations.get(opcode), offset


def _unsigned(data: bytes, offset: int) -> tuple[int, int]:
    """An unsigned LEB128 number, and the offset after it."""
    value = 0
    for shift in range(0, 70, 7):  # 64 bits
        byte, offset = data[offset], offset + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
    raise ValueError("a number has more than 64 bits")


def _signed(data: bytes, offset: int) -> tuple[int, int]:
    value, end = _unsigned(data, offset)
    bits = 7 * (end - offset)
    return value - (1 << bits if value >> (bits - 1) else 0), end
