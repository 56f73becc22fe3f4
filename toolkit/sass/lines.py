"""The line table that `-lineinfo` leaves in a cubin: DWARF 2 with extensions of NVIDIA's.

Read here rather than through pyelftools, whose reader wants `.debug_info` beside it, which
`-lineinfo` does not write.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from toolkit.sass.instruction import SourceLine

INSTRUCTION_BYTES = 16


def line_table(
    data: bytes, targets: Mapping[int, str], symbol: str, size: int
) -> dict[int, SourceLine]:
    """The source line of each instruction of `symbol`, whose code has `size` bytes.

    `data` is section .debug_line; `targets` names the symbol that each of its addresses, by
    offset, is relative to.
    """
    rows = [row for unit in _units(data) for row in _rows(unit, targets) if row.symbol == symbol]
    rows.sort(key=lambda row: row.address)
    table = {}
    ends = [row.address for row in rows[1:]] + [size]
    for row, end in zip(rows, ends, strict=False):
        if not row.ends:
            for address in range(row.address, min(end, size), INSTRUCTION_BYTES):
                table[address] = row.source
    return table


@dataclass(frozen=True, kw_only=True)
class _Unit:
    """One line program: where it stands, and what its header says."""

    data: bytes
    start: int
    end: int
    minimum_length: int
    line_base: int
    line_range: int
    lengths: tuple[int, ...]  # operands of the standard opcodes, from opcode 1 on
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    symbol: str
    address: int
    source: SourceLine
    ends: bool = False


def _units(data: bytes) -> Iterator[_Unit]:
    offset = 0
    while offset + 10 <= len(data):
        length, _, prologue = struct.unpack_from("<IHI", data, offset)
        end = offset + 4 + length
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
            lengths=tuple(data[offset + 15 : tables]),
            files=tuple(_files(data, tables)),
        )
        offset = end


def _files(data: bytes, offset: int) -> Iterator[str]:
    while data[offset]:  # directories
        offset = data.index(0, offset) + 1
    offset += 1
    while data[offset]:
        end = data.index(0, offset)
        yield data[offset:end].decode(errors="replace")
        offset = end + 1
        for _ in range(3):  # directory, time, size
            _, offset = _unsigned(data, offset)


def _rows(unit: _Unit, targets: Mapping[int, str]) -> Iterator[_Row]:
    """The rows of a line program (DWARF 2, section 6.2.5)."""
    data, offset = unit.data, unit.start
    opcode_base = len(unit.lengths) + 1
    symbol, address, line, file = "", 0, 1, 1

    def row(*, ends: bool = False) -> _Row:
        source = SourceLine(file=unit.files[file - 1], line=line)
        return _Row(symbol=symbol, address=address, source=source, ends=ends)

    while offset < unit.end:
        opcode = data[offset]
        offset += 1
        if opcode >= opcode_base:
            opcode -= opcode_base
            address += opcode // unit.line_range * unit.minimum_length
            line += unit.line_base + opcode % unit.line_range
            yield row()
        elif opcode == 0:
            length, offset = _unsigned(data, offset)
            match data[offset]:
                case 1:
                    yield row(ends=True)
                    symbol, address, line, file = "", 0, 1, 1
                case 2:
                    address = int.from_bytes(data[offset + 1 : offset + length], "little")
                    symbol = targets.get(offset + 1, "")
            offset += length
        elif opcode == 1:
            yield row()
        elif opcode == 3:
            change, offset = _signed(data, offset)
            line += change
        elif opcode == 8:
            address += (255 - opcode_base) // unit.line_range * unit.minimum_length
        elif opcode == 9:
            address += int.from_bytes(data[offset : offset + 2], "little")
            offset += 2
        else:
            values = []
            for _ in range(unit.lengths[opcode - 1]):
                value, offset = _unsigned(data, offset)
                values.append(value)
            if opcode == 2:
                address += values[0] * unit.minimum_length
            elif opcode == 4:
                file = values[0]


def _unsigned(data: bytes, offset: int) -> tuple[int, int]:
    """An unsigned LEB128 number, and the offset after it."""
    value = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, offset


def _signed(data: bytes, offset: int) -> tuple[int, int]:
    value, end = _unsigned(data, offset)
    bits = 7 * (end - offset)
    return value - (1 << bits if value >> (bits - 1) else 0), end
