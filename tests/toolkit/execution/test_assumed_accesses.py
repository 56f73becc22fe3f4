"""Accesses of blocks that were not executed, against one block after the other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from toolkit.execution import assumed_accesses as assumed
from toolkit.execution.executed import NoPlanError
from toolkit.sass.accesses import Below, is_recorded

STARTS = [100, 1000, 5000]  # lines at which a table, a result and a gathered array begin
ROWS = np.dtype([("step", "u4"), ("warp", "u2"), ("kind", "u1")])


def sample(block: int) -> Any:
    """A block that reads a table, stores to its part of a result, and reads anywhere."""
    g = np.random.default_rng(block)
    lines = np.concatenate(
        [np.arange(100, 104), 1000 + 2 * block + np.arange(2), g.integers(5000, 95000, 3)]
    )
    rows = np.zeros(len(lines), ROWS)
    rows["step"] = np.arange(len(lines))
    rows["kind"][4:6] = 1
    below = Below(read=9, written_by_warps=2)
    return SimpleNamespace(sectors=4 * lines, rows=rows, below=below, spread=0, dropped=0)


def one_by_one(samples: dict[int, Any], blocks: int, spread: int) -> NDArray[Any]:
    """The same, for a launch whose table stays, and whose result moves by two lines per block."""
    known, found = sorted(samples), []
    reads = np.concatenate([samples[block].sectors[6:] // 4 for block in known])
    first, size = int(reads.min()), int(reads.max() - reads.min()) + 1
    random = np.random.default_rng(0).random(blocks)
    for block in range(blocks):
        near = min(known, key=lambda k: (abs(k - block), k))
        rows = assumed._by_line(samples[near], 0)
        rows["block"] = block
        lines = rows["line"].astype(np.int64)
        if block != near:
            own = lines[4:6]
            lines[4:6] = (own - 1000 + 2 * (block - near)) % (2 * known[-1] + 2) + 1000
            around = round(random[block] * size)
            lines[6:] = (lines[6:] - first + around) % size + first
        rows["line"] = lines
        found.append(rows[assumed.hashed(rows["line"]) < np.uint64(2 ** (64 - spread) - 1)])
    return np.concatenate(found)


@pytest.mark.parametrize(("most", "spread"), [(assumed.MOST_ACCESSES, 0), (450, 2)])
def test_accesses_are_those_of_each_block_moved(
    monkeypatch: pytest.MonkeyPatch, most: int, spread: int
) -> None:
    monkeypatch.setattr(assumed, "MOST_ACCESSES", most)
    samples = {block: sample(block) for block in (0, 1, 30, 31, 60, 99, 150, 199)}
    found = assumed.assumed_accesses(samples, 200, STARTS)
    assert found.spread == spread  # 200 * 9 accesses, of which 450 are a quarter
    np.testing.assert_array_equal(found.rows, one_by_one(samples, 200, spread))
    assert (found.below.read, found.below.written_by_warps) == (1800, 400)


def test_blocks_with_accesses_to_some_lines_are_thinned_alike() -> None:
    samples = {block: sample(block) for block in (0, 99, 199)}
    known = is_recorded((samples[99].sectors // 4).astype(np.uint64), 2)
    samples[99].spread = 2  # one of four lines is known of this block
    samples[99].sectors, samples[99].rows = samples[99].sectors[known], samples[99].rows[known]
    found = assumed.assumed_accesses(samples, 200, STARTS)
    assert found.spread == 2
    of_executed = found.rows[np.isin(found.rows["block"], list(samples))]
    assert is_recorded(of_executed["line"], 2).all()
    assert found.below.read == 1800  # of all lines


def test_lines_that_were_dropped_are_not_moved() -> None:
    samples = {block: sample(block) for block in (0, 99, 199)}
    samples[99].spread = samples[99].dropped = 1
    with pytest.raises(NoPlanError, match="too many accesses"):
        assumed.assumed_accesses(samples, 200, STARTS)
