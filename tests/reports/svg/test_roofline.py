"""Labels of the roofline of one launch."""

import re

import pytest

from reports.svg.roofline import LaunchRoofline, RooflineLevel, roofline


def drawn(*, rate, l2_bytes_per_s=7.8e12, peak=1e12):
    levels = (
        RooflineLevel(name="L2", bytes_per_s=l2_bytes_per_s, moved_bytes=1e6, bandwidth="7.8 TB/s"),
        RooflineLevel(name="DRAM", bytes_per_s=4.3e12, moved_bytes=2e6, bandwidth="4.3 TB/s"),
    )
    return str(
        roofline(
            LaunchRoofline(
                work=2e5,
                rate=rate,
                peak=peak,
                rate_label="RATE",
                peak_label="PEAK",
                x_label="x",
                y_label="y",
                scale=1e9,
                per_bytes=1000,
                levels=levels,
            )
        )
    )


def shift_of(name, svg):
    """Distance of a roof's name from its line in px, below it if positive."""
    found = re.search(rf'translate\(0 (-?\d+)\)"[^>]*>{name}  ', svg)
    return int(found[1])


@pytest.mark.parametrize(
    ("rate", "shift"),
    [
        (5e11, -6),  # two decades: the roofs are far apart
        (1e6, 15),  # seven decades on the same height: the lower name stands below its roof
    ],
)
def test_names_of_roofs_that_are_close_stand_on_both_sides(rate, shift):
    svg = drawn(rate=rate)
    assert shift_of("L2", svg) == -6
    assert shift_of("DRAM", svg) == shift


def baseline_of(label, svg):
    return float(re.search(rf'<text[^>]* y="([\d.]+)"[^>]*>{label}</text>', svg)[1])


def test_the_rate_stands_below_its_line_near_the_peak():
    svg = drawn(rate=9e11)
    assert baseline_of("RATE", svg) > baseline_of("PEAK", svg) + 20
    low = drawn(rate=1e10)
    line = float(re.search(r'<circle[^>]* cy="([\d.]+)"', low)[1])
    assert baseline_of("RATE", low) < line  # above it, where there is room


@pytest.mark.parametrize("rate", [5e10, 2e11, 6e11])
def test_names_of_roofs_stand_beside_the_points_and_their_names(rate):
    svg = drawn(rate=rate)
    points = float(re.search(r'<circle[^>]* cy="([\d.]+)"', svg)[1])
    names = [float(one[1]) for one in re.finditer(r"translate\([\d.]+ ([\d.]+)\) rotate", svg)]
    assert len(names) == 4
    assert all(abs(name - points) > 20 for name in names[:2])


def test_the_name_of_a_short_roof_stays_on_it():
    svg = drawn(rate=3e11, peak=7e11, l2_bytes_per_s=2e14)  # its ridge is near the left end
    start, end = re.search(r'class="rf" d="M[\d.]+ ([\d.]+)L[\d.]+ ([\d.]+)"', svg).groups()
    name = float(re.search(r"translate\([\d.]+ ([\d.]+)\) rotate", svg)[1])
    assert name == pytest.approx(float(start) + 0.6 * (float(end) - float(start)), abs=0.2)
