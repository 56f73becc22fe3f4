"""Random launches by plan and with all blocks: what is said to be exact is exact.

`python -m validation.plans.compare --seeds 0 2000` compares more of them and prints how good the
estimates are.
"""

import numpy as np
import pytest

from tests.sampling import exhaustive
from toolkit.execution.simulate import simulate
from toolkit.execution.simulator import prepared
from toolkit.launch.launch import launch_geometry
from toolkit.sass.machine import run_blocks
from validation.plans.compare import Comparison, Estimate, compared, summary
from validation.plans.index import Index
from validation.plans.launches import AT_A_TIME, STATEMENTS, kernel_of, launch_of

SEEDS = range(4)
MANY = range(10_000, 10_400)
GROUPS = [
    SEEDS,
    exhaustive(range(SEEDS.stop, 24)),
    *(exhaustive(range(n, n + AT_A_TIME)) for n in range(MANY.start, MANY.stop, AT_A_TIME)),
]


@pytest.mark.parametrize("seeds", GROUPS, ids=str)
def test_a_counter_that_is_no_estimate_is_that_of_all_blocks(seeds):
    for seed in seeds:
        one = compared(seed, device=None, limit_s=0.0)
        assert not one.error, f"seed {seed}: {one.error}"
        assert not one.differing, f"seed {seed}"
        assert not one.instructions_differ, f"seed {seed}"


def test_a_seed_makes_the_same_launch_each_time():
    one, other = launch_of(3), launch_of(3)
    assert (one.source, one.grid, one.block) == (other.source, other.grid, other.block)
    assert all(map(np.array_equal, one.arguments, other.arguments))


@pytest.mark.exhaustive  # of the generator, not of the product
def test_launches_are_of_many_ingredients():
    launches = [launch_of(seed) for seed in range(150)]
    assert set(STATEMENTS) <= {name for one in launches for name in one.ingredients}
    assert sum(one.is_affine for one in launches) > 60
    assert sum(one.has_frequent_kinds for one in launches) > 15
    assert all(one.blocks >= 256 for one in launches)


def index_and_text():
    """An expression of each operation."""
    one = Index("bx", np.arange(1000))
    yield ((one * 3 + 7) % 11 // 2) ^ (one >> 2) & 5
    yield one.hashed() % 13
    yield (one.unsigned() - 5).unsigned().compared("<", 100, "100u")
    yield one.compared(">=", 8) | (one - 900).compared(">", 0)


def test_an_index_has_the_values_that_its_text_has_on_the_simulator():
    expressions = list(index_and_text())
    body = "".join(f"out[{n} * 1000 + bx] = {one.text};" for n, one in enumerate(expressions))
    found = simulate(
        f'extern "C" __global__ void of(int *out) {{ const int bx = blockIdx.x; {body} }}',
        grid=1000,
        block=1,
        arguments=[np.zeros(1000 * len(expressions), np.int32)],
        predict=False,
    )
    expected = np.concatenate([one.values for one in expressions])
    assert np.array_equal(found.outputs[0], expected)


def counts_by_kind(launch, most=100):
    """Counts of single blocks, up to four of a kind."""
    geometry = launch_geometry(launch.grid, launch.block, 0)
    bound = prepared(kernel_of(launch), geometry, launch.arguments)[1]
    blocks = [
        block
        for kind in np.unique(launch.kinds)
        for block in np.flatnonzero(launch.kinds == kind)[:4]
    ][:most]
    runs = run_blocks(bound, [range(n, n + 1) for n in blocks], max_instructions=10**8, workers=1)
    found = {}
    for block, run in zip(blocks, runs, strict=True):
        found.setdefault(launch.kinds[block], set()).add(run.counts.tobytes())
    return found


@pytest.mark.parametrize("seeds", [range(16), exhaustive(range(16, 208))], ids=str)
def test_blocks_of_one_kind_count_alike_where_all_is_affine(seeds):
    for launch in map(launch_of, seeds):
        if launch.is_affine:
            differing = [kind for kind, found in counts_by_kind(launch).items() if len(found) > 1]
            assert differing == [], f"seed {launch.seed}"


def test_the_summary_counts_what_differs():
    right = Estimate(low=9, high=11, counted=10)
    wrong = Estimate(low=9, high=9.5, counted=10)
    found = [
        Comparison(seed=1, blocks=300, executed=40, proved=20, time=0.01),
        Comparison(
            seed=2,
            blocks=300,
            executed=40,
            proved=19,
            has_frequent_kinds=True,
            rarest_share=0.4,
            estimates={"a": right, "b": wrong},
        ),
        Comparison(seed=3, blocks=300, executed=300),
        Comparison(seed=4, blocks=300, executed=40, differing={"c": (1, 2)}),
        Comparison(seed=5, error="refused"),
    ]
    lines = {" ".join(line.split()) for line in summary(found)}
    assert {
        "launches executed both ways 4",
        "planned: fewer blocks executed than there are 3",
        "all blocks executed 1",
        "that differ from those of all blocks 1",
        "intervals that contain it 1 of 2 (50.0%)",
        "times of proved plans within 2% 1 of 1 (100.0%)",
        "seed 4: c: 1 by plan, 2 of all blocks",
        "seed 5: refused",
    } <= lines
