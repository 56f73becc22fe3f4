"""Blocks that are executed as representatives of others."""

from math import prod

import numpy as np
import pytest

from toolkit.execution.representatives import Region, limited, region_of_blocks, regions


def test_blocks_of_a_place_are_far_apart_and_of_every_index_modulo_the_period():
    first, inner, last = regions((102, 1, 1), period=4)
    assert (first, last) == (
        Region(population=1, members=(0,)),
        Region(population=1, members=(101,)),
    )
    # 1, then after each quarter of 100 the next that is 1 + k modulo 4, and the last
    assert inner == Region(population=100, members=(1, 26, 51, 76, 100))


@pytest.mark.parametrize("grid", [(1, 1, 1), (2, 1, 3), (5, 4, 1), (3, 3, 3), (1, 6, 2)])
def test_each_block_belongs_to_one_region(grid):
    numbers, found = region_of_blocks(grid), regions(grid)
    assert len(numbers) == prod(grid)
    assert np.bincount(numbers).tolist() == [region.population for region in found]
    for number, region in enumerate(found):
        assert set(numbers[list(region.members)]) == {number}


def test_a_region_is_a_corner_an_edge_or_the_interior():
    # x is fastest; per axis the first index, the rest, and the last one
    assert region_of_blocks((4, 3, 1)).reshape(3, 4).tolist() == [
        [0, 3, 3, 6],
        [1, 4, 4, 7],
        [2, 5, 5, 8],
    ]


GRID = (40, 30, 2)


@pytest.mark.parametrize("most", [1, 27, 99])
def test_so_many_blocks_are_executed_with_one_of_each_place(most):
    chosen = regions(GRID, 8)
    found = limited(chosen, most)
    assert sum(len(region.members) for region in found) == max(most, len(chosen))
    assert all(region.members for region in found)
    assert [region.population for region in found] == [region.population for region in chosen]


def test_more_blocks_than_there_are_members_are_all_members():
    chosen = [Region(population=4, members=(0, 3)), Region(population=1, members=(4,))]
    assert limited(chosen, 1000) == chosen
