"""Output of printf: records of the core (`core/printed.h`), and their text as C formats it."""

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
MOST_PRINTED = 1 << 16  # that are made of records


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
        if own and len(own) < numbers[1]:
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
    """Return the text that the calls with a record printed."""
    made = (
        formatted(text, arguments, strings)
        for _, _, text, arguments, strings in printed.records[:MOST_PRINTED]
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
            flags, width = f"{flags}-" if given < 0 else flags, str(abs(given))
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
    if letter not in "di":
        form = form.replace("+", "").replace(" ", "")
    if "#" in form and (letter == "o" or not number):  # Python writes 0o17 and 0x0
        prefix = "0" if letter == "o" and number else ""
        return (form.replace("#", "") + "s") % f"{prefix}{number:o}"
    if "." in form:  # zeros of a width do not go with a precision
        form = re.sub(r"^%([-+ #0]*)", lambda match: "%" + match[1].replace("0", ""), form)
    return (form + letter) % number


def _float(form: str, letter: str, number: float) -> str:
    if isfinite(number) and letter not in "aA":
        return (form + letter) % number
    flags = form[1 : len(form) - len(form[1:].lstrip("-+ #0"))]
    width, _, precision = form[1 + len(flags) :].partition(".")
    sign = "-" if copysign(1, number) < 0 else "+" if "+" in flags else " " if " " in flags else ""
    text = f"{sign}{abs(number)}"  # of infinities and NaN, which take no zeros in front
    if isfinite(number):
        mantissa, _, exponent = abs(number).hex().removeprefix("0x").partition("p")
        mantissa = _hexadecimal(mantissa, int(precision) if precision else None, "#" in flags)
        zeros = int(width or 0) - len(f"{sign}0x{mantissa}p{exponent}")
        zeros *= "0" in flags and "-" not in flags
        text = f"{sign}0x{'0' * zeros}{mantissa}p{exponent}"
    text = text.upper() if letter.isupper() else text
    return f"%{'-' * ('-' in flags)}{width}s" % text


def _hexadecimal(mantissa: str, precision: int | None, keeps_point: bool) -> str:
    """Digits of `%a`: those that count, or as many as asked for, rounded to even."""
    whole, _, rest = mantissa.partition(".")
    digits = rest.rstrip("0")
    if precision is not None:
        dropped = max(len(rest) - precision, 0)
        scaled = int(whole + rest, 16)
        kept, left = divmod(scaled, 1 << 4 * dropped)
        kept += 2 * left + kept % 2 > 1 << 4 * dropped
        text = f"{kept:0{len(whole + rest) - dropped}x}".ljust(precision + 1, "0")
        whole, digits = text[: len(text) - precision], text[len(text) - precision :]
    return f"{whole}.{digits}" if digits or keeps_point else whole


def _signed(value: int, size: int) -> int:
    value %= 1 << 8 * size
    return value - (1 << 8 * size) if value >> (8 * size - 1) else value
