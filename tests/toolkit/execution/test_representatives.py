"""Blocks that are executed as representatives of others."""

from toolkit.execution.representatives import Region, regions


def test_blocks_of_a_place_are_far_apart_and_of_every_index_modulo_the_period():
    first, inner, last = regions((102, 1, 1), period=4)
    assert (first, last) == (
        Region(population=1, members=(0,)),
        Region(population=1, members=(101,)),
    )
    # 1, then after each quarter of 100 the next that is 1 + k modulo 4, and the last
    assert inner == Region(population=100, members=(1, 26, 51, 76, 100))
