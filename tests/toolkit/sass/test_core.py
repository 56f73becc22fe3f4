"""The native core, as it is found and loaded, and what it counts for whom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.errors import UnavailableError
from analysis.geometry import Geometry
from toolkit.compile import compile_cubin
from toolkit.sass import core
from toolkit.sass.machine import FaultError, run_blocks
from toolkit.sass.translate import bind, translate

# Each block waits for the one behind it, but for the last.
BACKWARDS = """
extern "C" __global__ void backwards(volatile int *done)
{
    const int block = blockIdx.x;
    if (block + 1 < gridDim.x) while (!done[block + 1]) {}
    done[block] = 1;
}
"""
BLOCKS = 6


def test_a_core_of_other_sources_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "_sources", lambda: "0" * 64)
    with pytest.raises(UnavailableError, match=r"built from other sources: .* pip install"):
        core.library.__wrapped__()


def test_a_core_without_its_sources_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "_sources", lambda: None)
    assert core.library.__wrapped__()


def test_blocks_that_wait_for_later_ones_are_counted_apart_and_run_together() -> None:
    translated = translate(compile_cubin(BACKWARDS, name="b.cu", kernel="backwards", arch="sm_90"))
    geometry = Geometry(grid=(BLOCKS, 1, 1), block=(1, 1, 1))
    bound, (done,) = bind(translated, geometry, [np.zeros(BLOCKS, np.int32)])
    bound = replace(bound, most_resident=BLOCKS)
    runs = run_blocks(bound, [range(b, b + 1) for b in range(BLOCKS)], workers=2)
    assert done.tolist() == [1] * BLOCKS
    executed = [int(run.counts["executed"].sum()) for run in runs]
    assert len(executed) == BLOCKS
    assert min(executed) == executed[-1] > 0  # which waits for nobody


def test_blocks_that_cannot_run_together_are_a_deadlock() -> None:
    translated = translate(compile_cubin(BACKWARDS, name="b.cu", kernel="backwards", arch="sm_90"))
    geometry = Geometry(grid=(BLOCKS, 1, 1), block=(1, 1, 1))
    bound, _ = bind(translated, geometry, [np.zeros(BLOCKS, np.int32)])
    with pytest.raises(FaultError):
        run_blocks(bound, [range(b, b + 1) for b in range(BLOCKS)], workers=2)
