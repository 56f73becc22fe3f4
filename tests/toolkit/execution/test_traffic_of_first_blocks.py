"""Traffic of launches of which only the first blocks' visits to lines have room."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit import simulate
from toolkit.execution import observation

SOURCE = """
extern "C" __global__ void sums(float4 *out, const float4 *rows, const float *all, int n) {
    float4 sum = rows[blockIdx.x * blockDim.x + threadIdx.x];
    for (int k = threadIdx.x; k < n; k += blockDim.x) sum.x += all[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}"""
TAGS = ("dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_sectors_op_read.sum")


@pytest.mark.exhaustive  # 4 s
def test_the_second_half_of_the_first_blocks_stands_for_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of 131,072 blocks reads and writes 2 KB of its own, and reads a table of 4 KB."""
    blocks, n = 1 << 17, 1 << 10
    rows = np.zeros(4 * 128 * blocks, np.float32)
    arguments = [rows, rows.copy(), np.zeros(n, np.float32), np.int32(n)]

    def found():
        return simulate(
            SOURCE, grid=blocks, block=128, arguments=arguments, device="h200",
            blocks="representative", outputs=False,
        )  # fmt: skip

    whole, grouped = found(), observation.grouped

    def grouped_first(classes, class_of, grid, *, most):
        return grouped(classes, class_of, grid, most=most) if len(class_of) <= 1 << 16 else None

    monkeypatch.setattr(observation, "grouped", grouped_first)
    first = found()
    assert "for the first 65,536 blocks" in first.traffic_basis
    assert "for the first" not in whole.traffic_basis
    for tag in TAGS:
        assert first.counters[tag] == pytest.approx(whole.counters[tag], rel=0.05)
    assert first.predicted.time_s == pytest.approx(whole.predicted.time_s, rel=0.05)
    monkeypatch.setattr(observation, "FEWEST_FIRST", 1 << 17)
    none = found()
    assert none.predicted is None
    assert "too many lines are accessed" in none.prediction_basis
