"""Plans account for every block of a launch once, and end with one that needs no proof."""

from itertools import pairwise

import numpy as np
import pytest

from analysis.errors import ShapeError
from kernels import LADDER
from tests.refusals import refusal
from toolkit.execution import rung_plan
from toolkit.execution.representatives import Region
from toolkit.execution.rung_plan import (
    BlockPlan,
    all_blocks,
    k_points,
    period,
    rung_plans,
)
from toolkit.rungs.launch import rung_launch

SHAPES = ("512", "1000x1016x520", "300x1024x4096")
RUNGS = [variant.name for variant in LADDER if not variant.max_extent]


def launched(rung, shape):
    return rung_launch(rung, shape, None)


def of_rung(launch):
    return list(rung_plans(launch, lambda: True))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rung", RUNGS)
def test_each_block_of_a_rung_is_accounted_for_once(rung, shape):
    launch = launched(rung, shape)
    for plan in of_rung(launch):
        assert plan.blocks == launch.geometry.blocks
        assert sum(region.population for region in plan.regions) == plan.blocks
        members = [member for region in plan.regions for member in region.members]
        assert len(set(members)) == len(members) == plan.executed
        assert set(members) <= set(range(plan.blocks))
        assert all(1 <= len(region.members) <= region.population for region in plan.regions)
        assert np.bincount(plan.region_of).tolist() == [one.population for one in plan.regions]
        for number, region in enumerate(plan.regions):
            assert set(plan.region_of[list(region.members)]) == {number}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rung", RUNGS)
def test_the_last_plan_of_a_rung_executes_all_blocks_at_k_itself(rung, shape):
    launch = launched(rung, shape)
    *_, last = of_rung(launch)
    assert last.executed == last.blocks == launch.geometry.blocks
    assert (last.points, last.kinds, last.proof) == ((), (), "")


def test_values_of_k_leave_its_remainder_and_stay_below_it():
    launch = launched("tiled", "4096x4096x4099")
    plan = of_rung(launch)[0]
    step = period(launch.tiling)
    assert len(plan.points) == 4  # a line, and two more that must lie on it
    assert {point % step for point in plan.points} == {4099 % step}
    assert all(low < high < 4099 for low, high in pairwise(plan.points))
    assert plan.points == k_points(4099, step)


def test_anchors_are_places_of_which_a_block_is_executed_at_k_itself():
    launch = launched("tiled", "4096x4096x4099")
    (plan, *_) = of_rung(launch)
    assert plan.anchors
    assert max(plan.regions, key=lambda region: region.population) in [
        plan.regions[number] for number in plan.anchors
    ]
    (unanchored, *_) = rung_plans(launch, lambda: False)  # no room for whole rows of A and B
    assert not unanchored.anchors


@pytest.mark.parametrize("shape", ["1024", "1000x1016x520", "4096"])
def test_blocks_that_share_tiles_are_told_apart_by_how_they_do(shape):
    plan = of_rung(launched("stream-k", shape))[0]
    assert plan.kinds == plan.regions
    assert [kind.is_last for kind in plan.kinds] == sorted(kind.is_last for kind in plan.kinds)
    assert 0 < plan.together <= plan.blocks


def test_a_basis_says_how_many_blocks_are_executed():
    assert all_blocks(1).basis == "the one block executed"
    assert all_blocks(1500).basis == "all 1,500 blocks executed"
    few = BlockPlan(
        blocks=1500,
        regions=[Region(population=1500, members=(0, 7))],
        region_of=np.zeros(1500),
        proof=", proved",
    )
    assert few.basis == "2 of 1,500 blocks executed, proved"


def test_a_plan_of_all_blocks_may_cost_the_budget_and_no_more(monkeypatch):
    launch = launched("tiled", "512")
    monkeypatch.setattr(rung_plan, "ALL_BLOCKS_BUDGET", launch.cost * launch.geometry.blocks)
    assert of_rung(launch)[-1].executed == launch.geometry.blocks
    monkeypatch.setattr(rung_plan, "ALL_BLOCKS_BUDGET", launch.cost * launch.geometry.blocks - 1)
    assert "take a smaller shape" in refusal(ShapeError, of_rung, launch)
