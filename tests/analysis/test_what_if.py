"""Tiles of other sizes: what the closed forms promise, and where no block fits."""

from __future__ import annotations

import pytest

from analysis import what_if
from analysis.devices import find_device
from analysis.problem import Gemm

SHAPE = Gemm(m=4096, n=4096, k=4096)
RTX_3090 = find_device("rtx-3090")


def test_the_source_texts_ceilings_are_among_them() -> None:
    of_tile = dict(zip(what_if.TILES, what_if.square_tiles(SHAPE, RTX_3090), strict=True))
    # 0.25 FLOP/B × 936.2 GB/s, and 8 FLOP/B × 936.2 GB/s
    assert of_tile[1].attainable_flop_per_s == pytest.approx(234.05e9)
    assert of_tile[32].attainable_flop_per_s == pytest.approx(7489.6e9)
    assert of_tile[32].flop_per_byte == 8
    assert of_tile[32].shared_bytes == 8192  # 2 · 32 · 32 · 4 B


def test_a_single_thread_per_block_leaves_an_sm_almost_empty() -> None:
    one = what_if.square_tiles(SHAPE, RTX_3090)[0]
    assert one.threads_per_block == 1
    assert one.occupancy == pytest.approx(16 / 48)  # 16 blocks of one warp each
    assert one.limiters == ("blocks",)


def test_accumulators_bound_registers_from_below() -> None:
    tiling = what_if.thread_tile(128, 8)
    assert what_if.least_registers(tiling) == 80  # 8 · 8 + 8 + 8
    found = what_if.outcome(tiling, SHAPE, RTX_3090)
    assert found.threads_per_block == 256
    assert found.flop_per_byte == 32
    # 80 · 32 = 2,560 per warp: 24 warps of 65,536 registers, in blocks of 8
    assert found.occupancy == pytest.approx(24 / 48)
    assert found.limiters == ("registers",)


def test_what_does_not_fit_says_why() -> None:
    rows = what_if.thread_tiles(SHAPE, RTX_3090)
    of = {(one.tiling.block_m, one.tiling.thread_m): one for row in rows for one in row}
    assert of[64, 1].occupancy is None
    assert "block of 4096 threads exceeds 1024" in of[64, 1].reason
    assert "288 registers per thread exceed 255" in of[256, 16].reason
    best = what_if.best(rows)
    assert best is not None
    assert best.attainable_flop_per_s == pytest.approx(29_958e9, rel=1e-4)


def test_wider_tiles_never_lower_a_ceiling() -> None:
    for row in zip(*what_if.thread_tiles(SHAPE, RTX_3090), strict=True):
        rates = [one.attainable_flop_per_s for one in row]
        assert rates == sorted(rates)
