"""Units and rounding, one line a rule."""

from fractions import Fraction

import pytest

from analysis.problem import parse_shape
from analysis.records.profile import Interval
from reports import text

WRITTEN = {
    text.seconds: [
        (0.001234, "1.234 ms"),
        (7.5122e-3, "7.512 ms"),
        (1.2288e-05, "12.29 µs"),
        (28.449e-6, "28.45 µs"),
        (3.2e-9, "3.200 ns"),
        (5e-10, "0.5000 ns"),
        (12.3456, "12.35 s"),
        (0.9999996, "1.000 s"),  # rounds up into the next prefix
        (0.0, "0 s"),
        (None, "–"),
        (float("nan"), "NaN s"),
        (float("inf"), "∞ s"),
    ],
    text.predicted_seconds: [  # three digits at most
        (28.449e-6, "28.4 µs"),
        (1.2e-3, "1.20 ms"),
        (0.99951, "1.00 s"),
        (0, "0 s"),
        (None, "–"),
    ],
    text.flop_per_s: [
        (8.4321e12, "8.43 TFLOP/s"),
        (234.05e9, "234 GFLOP/s"),
        (999.96e9, "1.00 TFLOP/s"),
        (35.58e12, "35.6 TFLOP/s"),
        (1.2e15, "1,200 TFLOP/s"),
        (None, "–"),
    ],
    text.bytes_per_s: [(936.2e9, "936.2 GB/s"), (3.352e12, "3.352 TB/s")],  # four digits
    text.hertz: [(1.695e9, "1.695 GHz")],
    text.watts: [(349.4, "349 W")],
    text.celsius: [(62.7, "63 °C"), (None, "–")],
    text.percent: [
        (0.006578, "0.66 %"),  # 234.05 / 35,580
        (0.2105, "21.1 %"),
        (1.0432, "104.3 %"),
        (0.0, "0.0 %"),
        (1e-5, "0.0010 %"),
        (None, "–"),
    ],
    text.change: [(0.083, "+8.3 %"), (-0.0066, "−0.66 %"), (0.0, "0.0 %"), (None, "–")],
    text.ratio: [(1.2704, "1.27×"), (61.15, "61.1×"), (None, "–")],
    text.flop_per_byte: [(16.0, "16 FLOP/B"), (0.25, "0.25 FLOP/B"), (31.90149, "31.9 FLOP/B")],
    text.count: [
        (49152, "49,152"),
        (999_999_999, "999,999,999"),
        (2 * 4096**3, "1.374 × 10¹¹"),  # 137,438,953,472
        (Fraction(1, 4), "0.25"),
        (Fraction(8192), "8,192"),
        (64.5, "64.5"),
        (0, "0"),
        (None, "–"),
        (float("nan"), "NaN"),
    ],
    text.size: [
        (512, "512 B"),
        (49152, "48 KiB"),
        (6 * 2**20, "6 MiB"),
        (24 * 2**30, "24 GiB"),
        (0, "0 B"),
    ],
    text.shape: [(parse_shape("1000x333x64"), "1000 × 333 × 64")],
    text.listing: [(["a"], "a"), (["a", "b", "c"], "a, b and c"), ([], "–")],
    text.words: [("max_threads_per_sm", "max threads per SM"), ("boost_clock_hz", "boost clock")],
    text.moment: [  # in UTC
        ("2026-11-21T08:00:59+00:00", "2026-11-21 08:00 UTC"),
        ("2026-11-21T00:30:00+02:00", "2026-11-20 22:30 UTC"),
        ("2026-11-21T08:00:59", "2026-11-21 08:00 UTC"),
        ("long ago", "long ago"),
    ],
    text.date: [("2026-11-21T00:30:00+02:00", "2026-11-20")],
    text.differ: [(1, "differs"), (2, "differ")],
}


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        pytest.param(function, *case, id=f"{function.__name__}-{case[1]}")
        for function, cases in WRITTEN.items()
        for case in cases
    ],
)
def test_values_are_written_with_few_digits_and_their_unit(function, value, expected):
    assert function(value) == expected


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0347, "0"), (0.0348, "0.0348"), (12.34, "12.3"), (0, "0")]
)
def test_a_number_below_a_thousandth_of_another_one_is_0(value, shown):
    assert text.beside(value, 34.8) == shown


def test_an_interval_says_a_shared_unit_once():
    assert text.interval(Interval(low=1.23e-3, high=1.241e-3), text.seconds) == "1.230 to 1.241 ms"
    assert text.interval(Interval(low=9.9e-4, high=1e-3), text.seconds) == "990.0 µs to 1.000 ms"
    assert text.interval(Interval(low=0.984, high=0.99), text.percent) == "98.4 to 99.0 %"
    assert text.interval(None, text.seconds) == "–"


def test_absence_carries_its_reason():
    assert text.absent() == "–"
    assert text.absent("not measured") == "– (not measured)"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("dram_bytes_per_s", 936.2e9, "936.2 GB/s"),
        ("fp32_flop_per_s", 35.58e12, "35.6 TFLOP/s"),
        ("boost_clock_hz", 1.695e9, "1.695 GHz"),
        ("shared_bytes_per_clock_per_sm", 128, "128 B/clock"),
        ("shared_bytes_per_block", 49152, "48 KiB (49,152 B)"),
        ("registers_per_sm", 65536, "65,536"),
        ("compute_capability", (8, 6), "8.6"),
        ("driver_names", ("one", "two"), "one, two"),
        ("chip", "GA102", "GA102"),
        ("l2_bytes_per_s", None, "– (not known)"),
    ],
)
def test_a_field_is_written_by_the_unit_in_its_name(name, value, expected):
    assert text.named(name, value) == expected


def test_values_of_one_unit_name_it_once():
    assert text.each([45.3e12, 44.5e12], text.flop_per_s) == "45.3 and 44.5 TFLOP/s"
    assert text.each([1e12, 500e9], text.flop_per_s) == "1.00 TFLOP/s and 500 GFLOP/s"
    assert text.each([1e12, 1e12], text.flop_per_s) == "1.00 TFLOP/s"


def test_a_ratio_that_would_round_to_1_is_a_difference():
    assert text.ratio_or_difference(1.5, of=3, to=2) == "1.50×"
    assert text.ratio_or_difference(1.0, of=7, to=7) == "1.00×"
    assert text.ratio_or_difference(1000001 / 1000000, of=1000001, to=1000000) == "+1"
    assert text.ratio_or_difference(999999 / 1000000, of=999999, to=1000000) == "−1"
    assert text.ratio_or_difference(None, of=5, to=0) == "5"


def test_latency_is_not_busy():
    assert text.busy("issue", 0.71) == "busy 71.0 %"
    assert text.busy("latency", 0.5) == "50.0 %"
