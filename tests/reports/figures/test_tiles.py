"""What if: tiles of other sizes, on every device."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from analysis.devices import DEVICES
from analysis.result import Profile
from reports.figures import tiles


def test_every_device_has_a_line_and_the_profiles_own_is_thick(
    build: SimpleNamespace, in_theory: Profile
) -> None:
    figure = tiles.widths(in_theory, build.SHAPE)
    assert len(figure.data) == len(DEVICES)
    assert figure.data[0].name == "NVIDIA GeForce RTX 3090"
    assert figure.data[0].line.width > max(one.line.width for one in figure.data[1:])
    # the source texts' ceilings: one thread per element, and tiles of 32
    assert figure.data[0].y[0] == pytest.approx(234.05e9)
    assert figure.data[0].y[-1] == pytest.approx(7489.6e9)


def test_lines_of_one_colour_differ_in_dash_or_symbol(
    build: SimpleNamespace, in_theory: Profile
) -> None:
    looks = [
        (one.line.color, one.line.dash, one.marker.symbol)
        for one in tiles.widths(in_theory, build.SHAPE).data
    ]
    assert len(set(looks)) == len(looks)


def test_the_menu_has_intensity_occupancy_and_shared_memory(
    build: SimpleNamespace, in_theory: Profile
) -> None:
    (menu,) = tiles.widths(in_theory, build.SHAPE).layout.updatemenus
    by_name = {button.label: button.args[0]["y"][0] for button in menu.buttons}
    assert by_name["intensity, FLOP per byte"] == pytest.approx((0.25, 0.5, 1, 2, 4, 8))
    assert by_name["shared memory per block, bytes"][-1] == 8192
    assert by_name["occupancy at most"][0] == pytest.approx(1 / 3)


def test_the_grid_says_what_each_pair_of_tiles_would_do(
    build: SimpleNamespace, in_theory: Profile
) -> None:
    figure = tiles.threads(in_theory, build.SHAPE)
    (grid,) = figure.data
    row, column = 2, 3  # 128 × 128 per block, 8 × 8 per thread
    assert grid.text[row][column] == "30.0 T<br>32 F/B<br>8 KiB<br>≤ 50%"
    assert "at least 80 registers per thread" in grid.hovertext[row][column]
    assert grid.text[3][0] == "–"
    assert "exceeds 1024" in grid.hovertext[3][0]
    assert grid.z[3][0] is None


def test_the_grid_is_there_for_every_device(build: SimpleNamespace, in_theory: Profile) -> None:
    (menu,) = tiles.threads(in_theory, build.SHAPE).layout.updatemenus
    assert {button.label for button in menu.buttons} == {one.name for one in DEVICES.values()}
    texts = [button.args[0]["text"][0] for button in menu.buttons]
    assert texts[0] != texts[1]
