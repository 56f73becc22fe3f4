"""Units and rounding: SI values in, text for people out. No HTML.

Both the page and the terminal use these functions, so that a number reads the same everywhere.
Each takes None for a value that was not obtained, and answers with a dash.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING

from analysis.geometry import WARP_SIZE
from analysis.problem import Gemm
from analysis.records.description import Format, Metric
from analysis.timing.resources import Resource

if TYPE_CHECKING:
    from analysis.records.profile import Interval

ABSENT = "–"

_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"))
_SMALLEST = (1e-9, "n")
_BINARY = ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_ACRONYMS = frozenset({"sm", "dram", "l2", "fp32", "flop"})
_LONGEST_COUNT = 10**9  # longer ones are no longer read digit by digit


def absent(reason: str | None = None) -> str:
    """A dash for a number that was not obtained, with why where that is known."""
    return f"{ABSENT} ({reason})" if reason else ABSENT


def seconds(time_s: float | None) -> str:
    """A time to four digits: '1.234 ms'."""
    return _with_prefix(time_s, "s", digits=4)


def predicted_seconds(time_s: float | None) -> str:
    """A predicted time to three digits: '1.23 ms'. No prediction is accurate to a fourth."""
    return _with_prefix(time_s, "s", digits=3)


def time_unit(time_s: float) -> tuple[float, str]:
    """Seconds in the unit of a predicted time, and its symbol: (1e-6, 'µs')."""
    rounded = float(f"{time_s:.2e}") if math.isfinite(time_s) else 1.0
    scale, prefix = next((row for row in _DECIMAL if rounded >= row[0]), _SMALLEST)
    return (1.0, "s") if scale >= 1 else (scale, f"{prefix}s")


def part_of_time(part_s: float, time_s: float) -> str:
    """A part of a predicted time: '16.1 of 28.4 µs'."""
    scale, unit = time_unit(time_s)
    return f"{three_digits(part_s / scale)} of {three_digits(time_s / scale)} {unit}"


def three_digits(value: float) -> str:
    """A predicted number without its unit: '28.4'."""
    return _significant(value, 3)


def beside(value: float, largest: float) -> str:
    """A number to three digits beside a larger one, 0 if it is less than a thousandth of that."""
    return three_digits(value) if abs(value) >= 0.001 * largest else "0"


def decimals(value: float) -> int:
    """Decimals of `three_digits`, for numbers that stand below each other and are summed."""
    return len(three_digits(value).partition(".")[2])


def per_each(value: float) -> str:
    """A count per something to three digits, without trailing zeros: '32', '3.15'."""
    shown = _significant(value, 3)
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def relative_error(value: float | None) -> str:
    """An error without a unit: '1.75e-8'."""
    if value is None:
        return ABSENT
    digits, _, power = f"{value:.2e}".partition("e")
    return f"{digits}e{int(power)}" if value else "0"


def flop_per_s(rate: float | None) -> str:
    """A rate of work to three digits: '8.43 TFLOP/s'."""
    return _with_prefix(rate, "FLOP/s", digits=3)


def bytes_per_s(bandwidth: float | None, *, digits: int = 4) -> str:
    """A bandwidth, in powers of 1000: '936.2 GB/s'. A predicted one has three digits."""
    return _with_prefix(bandwidth, "B/s", digits=digits)


def hertz(clock_hz: float | None) -> str:
    """A clock to four digits: '1.695 GHz'."""
    return _with_prefix(clock_hz, "Hz", digits=4)


def watts(power_w: float | None) -> str:
    """A power to three digits: '350 W'."""
    return _with_prefix(power_w, "W", digits=3)


def celsius(temperature_c: float | None) -> str:
    """A temperature in whole degrees: '61 °C'."""
    return ABSENT if temperature_c is None else f"{temperature_c:.0f} °C"


def percent(share: float | None) -> str:
    """A share to one decimal, or to two digits where it is below 1 %: '21.1 %', '0.66 %'."""
    if share is None:
        return ABSENT
    value = 100 * share
    if not math.isfinite(value):
        return f"{_not_finite(value)} %"
    return f"{_significant(value, 2) if 0 < abs(value) < 1 else f'{value:,.1f}'} %"


def busy(limiter: str, share: float) -> str:
    """Fraction of the time that a limiter is busy: 'busy 71.0 %', without 'busy' for latency."""
    return percent(share) if limiter == Resource.LATENCY else f"busy {percent(share)}"


def ratio(value: float | None) -> str:
    """Factor with three digits: '1.27×'."""
    return ABSENT if value is None else f"{_significant(value, 3)}×"


def ratio_or_difference(value: float | None, *, of: int, to: int) -> str:
    """Ratio of the count `of` to the count `to`; their difference if the ratio would round to 1.

    `value` is their quotient, None if `to` is 0: the text is then the count itself.
    """
    if value is None:
        return count(of)
    written = ratio(value)
    if of == to or written != ratio(1.0):
        return written
    return f"{'+' if of > to else '−'}{count(abs(of - to))}"


def change(share: float | None) -> str:
    """Signed change in percent: '+8.3 %', '−0.66 %'."""
    if share is None:
        return ABSENT
    sign = ""
    if share > 0:
        sign = "+"
    elif share < 0:
        sign = "−"
    return f"{sign}{percent(abs(share))}"


def flop_per_byte(intensity: float | None) -> str:
    """An arithmetic intensity to four digits, no trailing zeros: '16 FLOP/B'."""
    return ABSENT if intensity is None else f"{_plain(intensity)} FLOP/B"


def count(value: float | Fraction | None) -> str:
    """A count with thousands separators, from a billion on as a power: '49,152', '1.374 × 10¹¹'.

    Averages (counts per something) keep four digits: '0.25', '64.5'.
    """
    if value is None:
        return ABSENT
    if not math.isfinite(value):
        return _not_finite(float(value))
    if abs(float(value)) >= _LONGEST_COUNT:
        mantissa, exponent = f"{float(value):.3e}".split("e")
        return f"{mantissa} × 10{str(int(exponent)).translate(_SUPERSCRIPT)}"
    if value == int(value):
        return f"{int(value):,}"
    return _plain(float(value))


def digits(value: float | None) -> str:
    """A counter to its last digit, however long: '137,438,953,472'."""
    return ABSENT if value is None else f"{value:,}"


def of_a_warp(lanes: float | None) -> str:
    """A number of lanes: '31.5 of 32'."""
    return ABSENT if lanes is None else f"{count(lanes)} of {WARP_SIZE}"


def written(metric: Metric, value: float | None, *, is_brief: bool = False) -> str:
    """The value of a metric, in the format that its description has; a long one in few digits."""
    is_long = is_brief and metric.format == Format.DIGITS
    return _FORMATS[Format.COUNT if is_long else metric.format](value)


def size(size_bytes: int | None) -> str:
    """A size in powers of 1024, to four digits: '48 KiB', '512 B'."""
    if size_bytes is None:
        return ABSENT
    for scale, unit in _BINARY:
        if size_bytes >= scale:
            return f"{_plain(size_bytes / scale)} {unit}"
    return f"{size_bytes:,} B"


def interval(bounds: Interval | None, one: Callable[[float], str]) -> str:
    """A 95% interval, both ends written by `one`, a shared unit once: '1.230 to 1.241 ms'."""
    if bounds is None:
        return ABSENT
    low, high = one(bounds.low), one(bounds.high)
    return f"{_before(high, low)} to {high}"


def with_interval(value: float, bounds: Interval | None, one: Callable[[float], str]) -> str:
    """A value with its 95% interval, a shared unit once: '28.41 µs (28.39 to 28.43)'."""
    if bounds is None:
        return one(value)
    shown = one(value)
    ends = [_before(shown, one(end)) for end in (bounds.low, bounds.high)]
    return f"{shown} ({' to '.join(ends)})"


def predicted_within(time_s: float, ends: tuple[float, float] | None) -> str:
    """A predicted time with its 80% interval: '28.1 µs (25.2 to 33.0)'."""
    shown = predicted_seconds(time_s)
    if ends is None:
        return shown
    return f"{shown} ({' to '.join(_before(shown, predicted_seconds(end)) for end in ends)})"


def each(values: list[float], one: Callable[[float], str]) -> str:
    """Values written by `one`, equal ones once, a shared unit once: '45.3 and 44.5 TFLOP/s'."""
    *first, last = dict.fromkeys(map(one, values))
    return listing([*(_before(last, value) for value in first), last])


def _before(last: str, value: str) -> str:
    """`value` without its unit where `last` has the same one."""
    number, _, unit = value.partition(" ")
    return number if last.endswith(f" {unit}") else value


def shape(problem: Gemm) -> str:
    """M × N × K: '4096 × 4096 × 4096'."""
    return f"{problem.m} × {problem.n} × {problem.k}"


def listing(names: tuple[str, ...] | list[str]) -> str:
    """Names as in a sentence: 'a', 'a and b', 'a, b and c'."""
    if not names:
        return ABSENT
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def capital(words: str) -> str:
    """Words with a capital letter, as a sentence begins."""
    return f"{words[:1].upper()}{words[1:]}"


def average(value: float | None) -> str:
    """A count per something, to three decimals; nothing without one."""
    return "" if value is None else count(round(value, 3))


def count_interval(low: float, high: float) -> str:
    """The ends of an interval of counts, rounded outwards to three digits: '512 to 14,000'.

    One number where both ends are equal.
    """
    if low == high:
        return count(low)
    ends = []
    for value, outwards in ((low, math.floor), (high, math.ceil)):
        unit = 10 ** max(0, len(str(int(abs(value)))) - 3)
        ends.append(f"{outwards(value / unit) * unit:,}")
    return " to ".join(ends)


def many(things: int, what: str) -> str:
    """'1 block', '1,024 blocks'"""
    return f"{things:,} {what}{'' if things == 1 else 's'}"


def differ(things: int) -> str:
    """The verb for so many things that are not equal."""
    return "differs" if things == 1 else "differ"


def date(created: str) -> str:
    """The day in UTC of an ISO 8601 moment: '2025-03-01'."""
    return moment(created).partition(" ")[0]


def moment(created: str) -> str:
    """An ISO 8601 moment in UTC: '2025-03-01 13:05 UTC'; any other text as it is."""
    try:
        at = datetime.fromisoformat(created)
    except (ValueError, OverflowError):
        return created
    in_utc = at.astimezone(UTC) if at.tzinfo else at  # profiles are stamped in UTC
    return f"{in_utc:%Y-%m-%d %H:%M} UTC"


def named(name: str, value: object) -> str:
    """A record's field as text, by the unit that stands in its name.

    >>> named("dram_bytes_per_s", 936.2e9)
    '936.2 GB/s'
    """
    if value is None:
        return absent("not known")
    if isinstance(value, tuple):
        return _tuple(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return _unit_of(name)(value)


def words(name: str) -> str:
    """A field's name as words: 'max threads per SM'; a unit of Hz stands with the value."""
    found = name.removesuffix("_hz").split("_")
    return " ".join(word.upper() if word in _ACRONYMS else word for word in found)


def _tuple(values: tuple[object, ...]) -> str:
    """A version ('8.6') or a list of names."""
    versions = all(isinstance(value, int) for value in values)  # (8, 6)
    return (("." if versions else ", ").join(map(str, values))) or ABSENT


def _unit_of(name: str) -> Callable[[float], str]:
    for ending, unit in (
        ("flop_per_s", flop_per_s),
        ("bytes_per_s", bytes_per_s),
        ("_hz", hertz),
        ("_s", seconds),
    ):
        if name.endswith(ending):
            return unit
    if "bytes_per_clock" in name:
        return lambda value: f"{count(value)} B/clock"
    return size_and_count if "bytes" in name else count


def size_and_count(size_bytes: float) -> str:
    """A size that limits are compared with, to the byte too: '48 KiB (49,152 B)'."""
    short, exact = size(int(size_bytes)), f"{int(size_bytes):,} B"
    return short if short == exact else f"{short} ({exact})"


_FORMATS: Mapping[Format, Callable[[float | None], str]] = MappingProxyType(
    {
        Format.DIGITS: digits,
        Format.COUNT: count,
        Format.OF_A_WARP: of_a_warp,
        Format.PERCENT: percent,
    }
)


def _with_prefix(value: float | None, unit: str, *, digits: int) -> str:
    if value is None:
        return ABSENT
    if value == 0:
        return f"0 {unit}"
    if not math.isfinite(value):
        return f"{_not_finite(value)} {unit}"
    rounded = float(f"{value:.{digits - 1}e}")  # first, so that 999.96 G becomes 1.00 T
    scale, prefix = next((row for row in _DECIMAL if abs(rounded) >= row[0]), _SMALLEST)
    return f"{_significant(rounded / scale, digits)} {prefix}{unit}"


def _significant(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return _not_finite(value)
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    return f"{rounded:,.{max(0, digits - 1 - math.floor(math.log10(abs(rounded))))}f}"


def _plain(value: float) -> str:
    """Four digits, without trailing zeros behind the point."""
    text = _significant(value, 4)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "∞" if value > 0 else "-∞"
