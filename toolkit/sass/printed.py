"""What kernels print: records of the core (`core/printed.h`), and their text as C formats it."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import copysign, isfinite

from toolkit.sass.core import binding as core

_CALL = struct.Struct("<QIIII")  # block, thread, bytes of the format, arguments, bytes of strings
_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?"
    r"(?P<length>[hlLjzt]*)(?P<letter>.?)",
    re.DOTALL,
)
_INTEGERS, _FLOATS = "diouxX", "fFeEgGaA"
MOST_LINES = 1 << 16  # that are made of records


@dataclass(frozen=True, kw_only=True)
class PrintedRecords:
    """Calls of printf by some blocks: their records, and the number of all calls.

    A record is (block, thread, format, arguments, strings); blocks are in order.
    """

    records: tuple[tuple[int, int, bytes, tuple[int, ...], bytes], ...] = ()
    calls: int = 0


NOTHING_PRINTED = PrintedRecords()


def printed_records(workers: Sequence[int]) -> PrintedRecords:
    """The records of some workers of the core, block after block.

    If one of them could not keep all, those of later blocks are left out too.
    """
    found, calls, complete_below = [], 0, None
    for worker in workers:
        numbers = (ctypes.c_uint64 * 2)()
        address = core.library().core_printed(worker, ctypes.byref(numbers))
        if not numbers[1]:
            continue
        own = list(_records(ctypes.string_at(address, numbers[0]) if numbers[0] else b""))
        calls += numbers[1]
        if len(own) < numbers[1]:
            last = own[-1][0]
            complete_below = last if complete_below is None else min(last, complete_below)
        found += own
    if complete_below is not None:
        found = [one for one in found if one[0] <= complete_below]
    found.sort(key=lambda one: one[0])  # stable: a block's are in order
    return PrintedRecords(records=tuple(found), calls=calls)


def joined_records(parts: Sequence[PrintedRecords]) -> PrintedRecords:
    """The records of several groups of blocks, block after block."""
    records = sorted((one for part in parts for one in part.records), key=lambda one: one[0])
    return PrintedRecords(records=tuple(records), calls=sum(part.calls for part in parts))


def _records(data: bytes) -> Iterator[tuple[int, int, bytes, tuple[int, ...], bytes]]:
    at = 0
    while at < len(data):
        block, thread, format_bytes, count, string_bytes = _CALL.unpack_from(data, at)
        at += _CALL.size
        text = data[at : at + format_bytes - 1]
        at += format_bytes
        arguments = struct.unpack_from(f"<{count}Q", data, at)
        at += 8 * count
        yield block, thread, text, arguments, data[at : at + string_bytes]
        at += string_bytes


def text_of(printed: PrintedRecords) -> str:
    """What was printed, as the calls that have a record wrote it."""
    made = (
        formatted(text, arguments, strings)
        for _, _, text, arguments, strings in printed.records[:MOST_LINES]
    )
    return "".join(made)


def formatted(text: bytes, arguments: Sequence[int], strings: bytes) -> str:
    """The text of one call: `arguments` are their bits, `strings` end with a zero each."""
    left, texts = iter(arguments), iter(strings.split(b"\0"))

    def converted(match: re.Match[str]) -> str:
        if match["letter"] == "%":
            return "%"
        width, precision = match["width"], match["precision"]
        flags = match["flags"]
        if width == "*":
            given = _signed(next(left), 4)
            flags, width = flags + "-" * (given < 0), str(abs(given))
        if precision == "*":
            given = _signed(next(left), 4)
            precision = None if given < 0 else str(given)
        form = f"%{''.join(dict.fromkeys(flags))}{width}"
        form += f".{precision or 0}" if precision is not None else ""
        letter = match["letter"]
        if not letter or letter not in f"{_INTEGERS}{_FLOATS}cspn":
            return match[0]
        return _converted(form, letter, match["length"], next(left), texts)

    return _CONVERSION.sub(converted, text.decode(errors="replace"))


def _converted(form: str, letter: str, length: str, value: int, texts: Iterator[bytes]) -> str:
    """One argument as C's printf writes it; `form` is the conversion up to its length."""
    if letter in _FLOATS:
        (number,) = struct.unpack("<d", value.to_bytes(8, "little"))
        return _float(form, letter, number)
    if letter in _INTEGERS:
        return _integer(form, letter, length, value)
    if letter == "s":
        return (form + "s") % (next(texts).decode(errors="replace") if value else "(null)")
    if letter == "n":  # which a device ignores
        return ""
    shown = chr(value & 0xFF) if letter == "c" else f"{value:#x}" if value else "(nil)"
    return (form.partition(".")[0] + "s") % shown


def _integer(form: str, letter: str, length: str, value: int) -> str:
    size = 8 if set(length) & set("ljzt") else {"h": 2, "hh": 1}.get(length, 4)
    number = _signed(value, size) if letter in "di" else value % (1 << 8 * size)
    if letter == "o" and "#" in form:  # 0o17 in Python
        return (form.replace("#", "") + "s") % f"0{number:o}"
    if "." in form:  # zeros of a width do not go with a precision
        form = re.sub(r"^%([-+ #0]*)", lambda match: "%" + match[1].replace("0", ""), form)
    return (form + letter) % number


def _float(form: str, letter: str, number: float) -> str:
    if not isfinite(number):  # without zeros in front, and with the sign of a NaN
        text = f"{'-' if copysign(1, number) < 0 else ''}{abs(number)}"
        sign = "+" if "+" in form and text[0] != "-" else ""
        form = "%" + form.partition(".")[0].lstrip("%+ #0")
        return (form + "s") % (sign + (text.upper() if letter.isupper() else text))
    if letter not in "aA":
        return (form + letter) % number
    mantissa, _, exponent = number.hex().partition("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    text = f"{mantissa}p{exponent}"
    return (form.partition(".")[0] + "s") % (text.upper() if letter == "A" else text)


def _signed(value: int, size: int) -> int:
    value %= 1 << 8 * size
    return value - (1 << 8 * size) if value >> (8 * size - 1) else value
