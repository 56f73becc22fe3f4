"""Intensity, roofline and the ceilings of a launch; the source texts' figures as facts."""

from dataclasses import replace

import pytest

from analysis.access import TensorProducts, Tiling, access_counts
from analysis.coalescing import pattern
from analysis.devices import DEVICES
from analysis.errors import InputError
from analysis.intensity import (
    compulsory_bytes,
    intensity_of_accesses,
    intensity_of_compulsory_bytes,
    intensity_of_loads,
)
from analysis.problem import parse_shape
from analysis.roofline import (
    attainable,
    bandwidth_ceiling,
    ridge_point,
    roofline,
    share_of_peak,
    tensor_roofs,
)
from analysis.theory import theory
from tests.analysis.tilings import COARSENED_1D, COARSENED_2D, NAIVE, TILED

RTX_3090 = DEVICES["rtx-3090"]  # 936.2 GB/s, 35,580 GFLOP/s, 82 SMs at 1,695 MHz
SQUARE = parse_shape("4096")
VECTORIZED = replace(COARSENED_2D, global_width=4)


def requests(space, cycles, count):
    """A pattern of `count` requests that each take `cycles`."""
    return pattern(
        space=space,
        operation="load",
        operand="A",
        addresses=[lane % cycles * 128 for lane in range(32)],  # other lines, and one bank
        instruction_bytes=4,
        requests=count,
    )


@pytest.mark.parametrize(
    ("tiling", "flop_per_byte", "gflop_per_s", "share"),
    [
        (NAIVE, 0.25, 234.05, 0.0066),  # 2 FLOP / (2 floats · 4 B); · 936.2 GB/s; / 35,580
        (TILED, 8, 7_489.6, 0.21),  # 2K / (K/16 · 4 B)
        (COARSENED_1D, 16, 14_979, 0.42),  # 2K / (K/32 · 4 B)
        (COARSENED_2D, 32, 29_958, 0.84),  # 2K / (K/64 · 4 B)
        (VECTORIZED, 32, 29_958, 0.84),
    ],
)
def test_intensity_and_uncached_ceiling_are_those_of_the_source_texts(
    tiling, flop_per_byte, gflop_per_s, share
):
    counts = access_counts(tiling, SQUARE)
    found = theory(counts, (), RTX_3090)
    assert found.intensity_loads == intensity_of_loads(counts) == flop_per_byte
    assert found.uncached.flop_per_s == pytest.approx(gflop_per_s * 1e9, rel=1e-4)
    assert share_of_peak(found.uncached.flop_per_s, RTX_3090) == pytest.approx(share, rel=1e-2)
    assert found.uncached not in found.ceilings


def test_stores_have_an_intensity_of_their_own():
    counts = access_counts(TILED, parse_shape("32"))
    assert intensity_of_accesses(counts) == pytest.approx(5.3333, abs=1e-4)  # 2·32³/(3·1024·4 B)


def test_compulsory_traffic_moves_every_matrix_once():
    problem = parse_shape("2x3x5")
    counts = access_counts(NAIVE, problem)
    assert compulsory_bytes(counts) == 124  # (10 + 15 + 6) · 4 B
    assert intensity_of_compulsory_bytes(counts) == 60 / 124


def test_the_ridge_point_is_where_both_roofs_agree():
    ridge = ridge_point(35.58e12, 936.2e9)
    assert ridge == pytest.approx(38.0, abs=0.01)  # 35,580 / 936.2 FLOP/B
    assert bandwidth_ceiling(ridge, 936.2e9) == pytest.approx(35.58e12)
    assert attainable(35.58e12, 936.2e9, 2 * ridge) == 35.58e12
    assert attainable(35.58e12, 936.2e9, ridge / 2) == pytest.approx(35.58e12 / 2)


def test_the_roofline_has_the_levels_that_are_known_the_fastest_first():
    h100 = DEVICES["h100-sxm"]
    found = roofline(replace(h100, l2_bytes_per_s=None, measured=None))
    assert [level.name for level in found.levels] == ["shared", "L1", "DRAM"]
    assert found.levels[0].bytes_per_s == pytest.approx(33.45e12, rel=1e-3)  # 128·132·1.98 GHz
    assert found.measured_flop_per_s is None


def test_the_roofline_keeps_a_level_that_was_only_measured():
    h100 = DEVICES["h100-sxm"]
    measured = replace(h100.measured, l2_bytes_per_s=6.956e12)
    found = roofline(replace(h100, l2_bytes_per_s=None, measured=measured))
    l2 = next(level for level in found.levels if level.name == "L2")
    assert (l2.bytes_per_s, l2.measured_bytes_per_s) == (None, 6.956e12)


def test_the_slowest_ceiling_limits_and_every_time_gives_its_rate():
    counts = access_counts(TILED, SQUARE)
    found = theory(counts, (requests("shared", 1, 2 * 4096**3 // 32),), RTX_3090)
    times = {ceiling.name: ceiling.time_s for ceiling in found.ceilings}
    assert times["FP32"] == pytest.approx(2 * 4096**3 / 35.58e12)
    assert times["DRAM"] == pytest.approx(3 * 4096**2 * 4 / 936.2e9)
    # two wavefronts per multiply-add of a warp, one per clock and SM
    assert times["load/store unit"] == pytest.approx(2 * 4096**3 / 32 / (82 * 1.695e9), rel=1e-3)
    assert found.limiter == "load/store unit"
    assert found.attainable_flop_per_s == pytest.approx(82 * 1.695e9 * 32, rel=1e-3)
    for ceiling in (*found.ceilings, found.uncached):
        assert ceiling.flop_per_s == pytest.approx(found.flop / ceiling.time_s)
        assert ceiling.basis


def test_without_patterns_the_load_store_unit_is_no_ceiling():
    found = theory(access_counts(NAIVE, SQUARE), (), RTX_3090)
    assert [ceiling.name for ceiling in found.ceilings] == ["FP32", "DRAM"]
    assert (found.limiter, found.attainable_flop_per_s) == ("FP32", RTX_3090.fp32_flop_per_s)


def test_a_data_path_of_half_the_width_takes_two_clocks_per_wavefront_and_one_per_line():
    half = replace(RTX_3090, shared_bytes_per_clock_per_sm=64)
    counts = access_counts(TILED, SQUARE)

    def slowdown(pattern):
        narrow, wide = (
            theory(counts, (pattern,), device).ceilings[-1].time_s for device in (half, RTX_3090)
        )
        return narrow / wide

    assert slowdown(requests("shared", 1, 1000)) == pytest.approx(2)
    assert slowdown(requests("global", 1, 1000)) == pytest.approx(1)


def test_idle_sms_lower_the_roofs_of_what_each_sm_has_its_own_of():
    counts = access_counts(NAIVE, SQUARE)
    pattern = requests("shared", 1, 1000)
    full = theory(counts, (pattern,), RTX_3090, blocks=RTX_3090.sm_count)
    half = theory(counts, (pattern,), RTX_3090, blocks=RTX_3090.sm_count // 2)
    assert half.busy_sms == 41  # 82 / 2
    fp32, dram, load_store = (
        low.time_s / high.time_s for low, high in zip(half.ceilings, full.ceilings, strict=True)
    )
    assert (fp32, dram, load_store) == pytest.approx((2, 1, 2))  # DRAM belongs to all of them
    assert "41 of 82 SMs" in half.ceilings[0].basis
    assert [c.name for c in half.ceilings] == [
        "FP32 of 41 SMs",
        "DRAM",
        "load/store unit of 41 SMs",
    ]


@pytest.mark.parametrize("blocks", [0, -1])
def test_a_grid_has_a_block(blocks):
    counts = access_counts(TILED, SQUARE)
    with pytest.raises(InputError, match=f"blocks = {blocks}: give 1 or more"):
        theory(counts, (), RTX_3090, blocks=blocks)


def test_volta_adds_what_pascal_does_side_by_side():
    counts = access_counts(NAIVE, SQUARE)
    both = (requests("global", 2, 1500), requests("shared", 2, 500))
    pascal, volta = (DEVICES[key] for key in ("gtx-1080-ti", "v100"))

    def clocks(device):
        time_s = theory(counts, both, device).ceilings[-1].time_s
        return time_s * device.sm_count * device.boost_clock_hz

    assert clocks(pascal) == pytest.approx(3000)  # the longer of two paths
    assert clocks(volta) == pytest.approx(4000)  # one path for both


def test_the_rate_of_pascals_separate_l1_is_not_made_up():
    assert "L1" not in [level.name for level in roofline(DEVICES["gtx-1080-ti"]).levels]
    assert "L1" in [level.name for level in roofline(DEVICES["v100"]).levels]


# Products on tensor cores.

TF32_PARTS = TensorProducts(format="TF32", products=3, warp_m=64, warp_n=32, relative_error=2**-21)
ON_TENSOR_CORES = Tiling(
    block_m=128, block_n=128, block_k=32, thread_m=8, thread_n=8, tensor=TF32_PARTS
)


def test_tensor_cores_make_several_products_for_each_one():
    counts = access_counts(ON_TENSOR_CORES, SQUARE)
    # 3 products of 4096³ multiply-adds, 16·8·8 of them in an instruction
    assert counts.tensor_instructions == 3 * 4096**3 // 1024
    assert counts.multiply_adds == 0
    # 8 warps of a block read 64 values of A and 32 of B per k
    assert counts.elements("shared", "load") == 32**2 * 8 * (64 + 32) * 4096


def test_sums_of_scaled_tiles_take_a_multiply_add_in_each_phase():
    tiling = replace(ON_TENSOR_CORES, tensor=replace(TF32_PARTS, is_scaled=True))
    counts = access_counts(tiling, SQUARE)
    assert counts.multiply_adds == 4096**2 * (4096 // 32)


def test_the_ceiling_of_tensor_cores_takes_the_place_of_fp32s():
    found = theory(access_counts(ON_TENSOR_CORES, SQUARE), (), DEVICES["h200"])
    assert [ceiling.name for ceiling in found.ceilings] == ["tensor cores", "DRAM"]
    assert found.attainable_flop_per_s == pytest.approx(989.4e12 / 2 / 3)  # TF32: half of FP16
    few = theory(access_counts(ON_TENSOR_CORES, SQUARE), (), DEVICES["h200"], blocks=66)
    assert few.attainable_flop_per_s == pytest.approx(989.4e12 / 2 / 3 / 2)


def test_a_device_without_a_known_rate_has_no_ceiling_of_tensor_cores():
    unknown = replace(DEVICES["h200"], tensor_flop_per_s=None)
    found = theory(access_counts(ON_TENSOR_CORES, SQUARE), (), unknown)
    assert [ceiling.name for ceiling in found.ceilings] == ["DRAM"]
    assert tensor_roofs([ON_TENSOR_CORES], unknown) == ()


def test_tf32_needs_compute_capability_8():
    assert DEVICES["v100"].tensor_rate("FP16") == 125e12
    assert DEVICES["v100"].tensor_rate("TF32") is None
    assert DEVICES["a100-40gb"].tensor_rate("TF32") == 156e12


def test_a_roof_of_tensor_cores_is_there_once():
    tilings = [TILED, ON_TENSOR_CORES, replace(ON_TENSOR_CORES, stages=3)]
    (roof,) = tensor_roofs(tilings, DEVICES["h200"])
    assert (roof.name, roof.flop_per_s) == ("1/3 TF32 peak", pytest.approx(164.9e12))
