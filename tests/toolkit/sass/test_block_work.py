"""Number of instructions that the core counts for the warps of each block."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.sm import RUN
from tests.toolkit.sass.bound import bound_to, for_an_h200
from toolkit.sass.machine import run_blocks

SOURCE = r"""
extern "C" __global__ void unlike(float *out)
{
    float x = threadIdx.x;
    const int rounds = blockIdx.x * (threadIdx.x < 32 ? 1 : 3);
    #pragma unroll 1
    for (int k = 0; k < rounds; ++k) x = x * x + 1;
    for (int k = 0; k < 12; ++k) x = x * x + x;
    if (x == 5) out[threadIdx.x] = x;
}
"""
BLOCKS = 5


def ran(blocks, *, workers=1, notes_work=True):
    kernel = for_an_h200(SOURCE, "unlike")
    bound, _, _ = bound_to(kernel, [np.zeros(64, np.float32)], blocks=BLOCKS)
    bound = replace(bound, notes_work=notes_work, most_steps=1 << 20)
    return run_blocks(bound, blocks, workers=workers)


def executed_by_warps():
    """The same, warp by warp, from the recorded streams."""
    for run in ran([range(b, b + 1) for b in range(BLOCKS)]):
        steps = run.streams.steps
        instructions = np.where(steps["flags"] & RUN > 0, steps["clocks"], 1)
        yield np.add.reduceat(instructions, run.streams.first_step.astype(int)).tolist()


@pytest.mark.parametrize("workers", [1, 2])
def test_instructions_of_each_block_and_of_its_longest_warp(workers):
    (run,) = ran([range(BLOCKS)], workers=workers)
    warps = list(executed_by_warps())
    assert run.work["executed"].tolist() == [sum(of_block) for of_block in warps]
    assert run.work["longest"].tolist() == [max(of_block) for of_block in warps]
    assert run.work["executed"].sum() == run.counts["executed"].sum()
    assert len(np.unique(run.work)) == BLOCKS


def test_each_range_has_its_own_blocks():
    (everything,) = ran([range(BLOCKS)])
    (one,) = ran([range(1, 4, 2)])
    assert one.work.tolist() == everything.work[1:4:2].tolist()
    few = ran([range(4, 5), range(2)])
    assert [run.work.tolist() for run in few] == [
        everything.work[4:].tolist(),
        everything.work[:2].tolist(),
    ]


def test_nothing_is_noted_unless_asked():
    assert ran([range(BLOCKS)], notes_work=False)[0].work is None
