import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.errors import InputError
from analysis.geometry import Geometry, ceil_div, exact_div


@given(st.integers(0, 10**18), st.integers(1, 10**9))
def test_ceil_div_tiles_cover_and_one_fewer_do_not(dividend, divisor):
    tiles = ceil_div(dividend, divisor)
    assert tiles * divisor >= dividend > (tiles - 1) * divisor


def test_exact_div_refuses_a_remainder():
    assert exact_div(12, 4) == 3
    with pytest.raises(InputError, match="13 is not a multiple of 4"):
        exact_div(13, 4)


def test_a_geometry_counts_its_blocks_threads_and_warps():
    geometry = Geometry(grid=(4, 3, 2), block=(16, 3, 1))
    assert geometry.blocks == 24  # 4·3·2
    assert geometry.threads_per_block == 48  # 16·3
    assert geometry.threads == 1152  # 24·48
    assert geometry.warps_per_block == 2  # 48 / 32, rounded up
