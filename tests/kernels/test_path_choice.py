"""The choice of a path: for every product and device, by estimates, without a table of shapes."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.devices import DEVICES, find_device
from analysis.errors import ShapeError, UnavailableError
from benchmarks.choice_times import choice_times_s
from kernels.path_rates import CONSTANTS, RATES
from kernels.path_tiles import ANY_TILES, BULK_TILES
from kernels.path_times import FEW_BLOCKS, SUMS_TOGETHER, basis, candidates, plan_for
from kernels.paths import (
    Factor,
    Pointer,
    TensorMapOf,
    any_layout,
    few_rows,
    sliced,
    source_of,
    splits_of_few_rows,
)
from kernels.product import Product
from validation.products.law import products

H200 = find_device("h200")
MODERN = [one for one in DEVICES.values() if int(one.sm_arch.removeprefix("sm_")) >= 80]
MOST_GRID = 65_535  # blocks along y and z


def label(device=H200, **sizes):
    return plan_for(device, Product(**sizes)).label.partition(":")[0]


@pytest.mark.parametrize(
    ("sizes", "path"),
    [
        ({"m": 1, "n": 4096, "k": 4096}, "few-rows"),
        ({"m": 4096, "n": 2, "k": 4096}, "few-rows"),
        ({"m": 8, "n": 8, "k": 8}, "short-k"),
        ({"m": 11_557, "n": 51, "k": 13}, "short-k"),
        ({"m": 511, "n": 511, "k": 511, "batch": 40}, "any-layout"),
        ({"m": 4096, "n": 4096, "k": 4096}, "bulk"),
        ({"m": 8191, "n": 8191, "k": 8191}, "bulk"),
        ({"m": 8192, "n": 8192, "k": 8192, "transpose_a": True}, "bulk"),
    ],
)
def test_a_path_for_each_kind_of_product(sizes, path):
    assert label(**sizes) == path


def test_what_bulk_copies_cannot_read_is_packed_first():
    aligned = plan_for(H200, Product(m=4096, n=4096, k=4096))
    odd = plan_for(H200, Product(m=4097, n=4097, k=4097))
    assert [one.file for one in aligned.launches] == ["streamed.cu"]
    assert [one.file for one in odd.launches] == ["pack.cu", "streamed.cu"]


@settings(max_examples=60, deadline=None)
@given(
    device=st.sampled_from(MODERN),
    m=st.integers(1, 20_000),
    n=st.integers(1, 20_000),
    k=st.integers(1, 20_000),
    batch=st.integers(1, 64),
    transposes=st.tuples(st.booleans(), st.booleans()),
)
def test_launches_are_legal(device, m, n, k, batch, transposes):
    product = Product(
        m=m, n=n, k=k, batch=batch, transpose_a=transposes[0], transpose_b=transposes[1]
    )
    plan = plan_for(device, product)
    assert plan.zeroed_bytes <= plan.workspace_bytes
    for launch in plan.launches:
        assert launch.grid[0] < 2**31
        assert max(launch.grid[1:]) <= MOST_GRID
        assert launch.block <= 1024
        assert launch.dynamic_shared_bytes <= device.shared_bytes_per_block_optin
        for argument in launch.arguments:
            if isinstance(argument, TensorMapOf):
                assert int(device.sm_arch.removeprefix("sm_")) >= 90
                assert all(pitch % 16 == 0 for pitch in argument.pitches_bytes)
                assert argument.pointer.offset_bytes % 16 == 0
            if isinstance(argument, Pointer) and argument.of == "workspace":
                assert argument.offset_bytes <= plan.workspace_bytes


def test_pruning_leaves_the_shortest():
    for case in products()[::7]:
        shortest = min(candidates(H200, case.product), key=lambda one: one[0])
        pruned = min(candidates(H200, case.product, is_pruned=True), key=lambda one: one[0])
        assert pruned == shortest


@pytest.mark.parametrize("name", RATES)
def test_more_blocks_on_an_sm_take_longer_but_each_a_smaller_share(name):
    clocks = RATES[name]
    assert all(more > 0.99 * fewer for fewer, more in pairwise(clocks))
    assert clocks[-1] <= clocks[0] * len(clocks)


def test_choices_of_products_that_were_never_seen_are_timed():
    cases = [case.product for case in products()[:3]]
    once, often = (choice_times_s(H200, cases, rounds) for rounds in (1, 5))
    assert len(once) == len(often) == 3
    assert all(0 < one < 0.1 for one in once + often)


def test_each_device_has_estimates_of_its_own():
    product = Product(m=1000, n=1000, k=1000)
    half = replace(H200, sm_count=H200.sm_count // 2)
    for _ in range(2):  # what is kept of a device is not taken for another
        both = [min(one[0] for one in candidates(device, product)) for device in (H200, half)]
        assert both[1] > 1.5 * both[0]


def test_a_plan_does_not_depend_on_alpha_and_beta():
    product = Product(m=300, n=200, k=5000)
    plan = plan_for(H200, product)
    assert plan == plan_for(H200, replace(product, alpha=2.0, beta=-1.0))
    assert Factor("beta") in plan.launches[-1].arguments


def test_many_splits_are_added_by_a_second_launch():
    plan = plan_for(H200, Product(m=64, n=64, k=65_536))
    assert [one.entry for one in plan.launches][-1] == "sgemm_sums"
    tile = {one.name: one for one in ANY_TILES + BULK_TILES}[plan.label.split(":")[1].split(",")[0]]
    assert int(plan.label.partition("splits=")[2].partition(",")[0]) > tile.most_ticketed
    assert plan.zeroed_bytes == 0  # no tickets


def test_an_operand_that_a_batch_shares_is_packed_once():
    sizes = {"m": 1001, "n": 1001, "k": 4001, "batch": 3}
    own, shared = (
        sliced(Product(**sizes, **strides), BULK_TILES[0], 1)
        for strides in ({}, {"stride_a": 0, "stride_b": 0})
    )
    copies = 4 * 4004 * 1001 + 4 * 4001 * 1004  # of one A and one B, rows of whole quads
    assert copies <= shared.workspace_bytes < copies + 512
    assert 3 * copies <= own.workspace_bytes < 3 * copies + 512


def test_the_basis_is_said():
    assert "loop rates" in basis(H200)
    assert basis(H200).endswith("the device's bandwidth of DRAM")
    assert basis(find_device("l4")).endswith("; no product was timed on NVIDIA L4")
    unknown = replace(H200, dram_bytes_per_s=None)
    assert "an H100's bandwidth of DRAM" in basis(unknown)
    assert plan_for(unknown, Product(m=100, n=100, k=100)).launches


def test_a_device_without_asynchronous_copies_is_refused():
    with pytest.raises(UnavailableError, match=r"paths need sm_80 or later, and .* is sm_75"):
        plan_for(find_device("t4"), Product(m=8, n=8, k=8))


def test_strides_that_overlap_are_refused():
    with pytest.raises(ShapeError, match="lda = 3 is less than the 4 columns of A: give 4 or more"):
        Product(m=2, n=2, k=4, lda=3)
    with pytest.raises(ShapeError, match="batch = 65536: give 1 to 65535"):
        Product(m=2, n=2, k=4, batch=65_536)
    with pytest.raises(ShapeError, match="ldb = 4294967296 is out of range"):
        Product(m=2, n=2, k=4, ldb=2**32)
    with pytest.raises(ShapeError, match="stride_c = 0 is less than the 4 floats of C"):
        Product(m=2, n=2, k=4, batch=2, stride_c=0)


def test_splits_that_get_no_k_are_refused():
    one = Product(m=100, n=100, k=40)
    for make, tile in ((any_layout, ANY_TILES[0]), (sliced, BULK_TILES[0])):
        most = -(-one.k // tile.bk)
        assert make(one, tile, most).launches
        for splits in (0, most + 1):
            with pytest.raises(ShapeError, match=rf"splits = {splits}, but .* give 1 to {most}$"):
                make(one, tile, splits)
    row = Product(m=1, n=100, k=150)
    assert few_rows(row, 3, 64).launches
    for splits in (2, 4):  # too few leave some of K out
        with pytest.raises(ShapeError, match=rf"splits = {splits} of 64 of K = 150: give 3$"):
            few_rows(row, splits, 64)


def number_in(file, pattern):
    found = re.search(pattern, source_of(file))
    assert found, f"{pattern} is not in {file}"
    return int(found[1])


def test_estimates_know_what_kernels_do_at_a_time():
    assert number_in("any_layout.cu", r"FEW_BLOCKS = (\d+);") == FEW_BLOCKS
    assert number_in("any_layout.cu", r"add_in_order<(\d+)>\(total, sums, 0") == SUMS_TOGETHER
    assert number_in("few_rows.cu", r"SUMS_AT_ONCE = ROWS == 4 \? 4 : (\d+);") == 16
    # one row and 32 columns: 8 groups of threads, each with 16 splits on their way
    assert splits_of_few_rows(1, 32) == 128
    assert splits_of_few_rows(4, 32) == 2 * 4
    assert splits_of_few_rows(8, 128) == 16 // 4


@pytest.mark.parametrize(
    ("name", "groups", "together"),
    [
        ("32x32x64/4x8x8", 1, 16),  # a quad of a thread, and 80 registers
        ("64x32x32/8x8x4", 1, 4),
        ("64x128x16/8x8x1", 2, 2),  # 16 quads in groups of eight, with 128 registers
        ("64x128x16/8x16x1", 2, 2),  # 32 quads in groups of 16, with 255
        ("96x96x16/12x12x1", 3, 3),  # 36 quads in groups of twelve
    ],
)
def test_quads_that_are_added_together(name, groups, together):
    tile = next(one for one in ANY_TILES if one.name == name)
    assert (tile.groups, tile.splits_together) == (groups, together)


def test_more_blocks_than_few_start_the_next_launch_late():
    few, many = (Product(m=32, n=32 * blocks, k=300) for blocks in (FEW_BLOCKS, FEW_BLOCKS + 1))
    tile = next(one for one in ANY_TILES if one.name == "32x32x32/4x8x4")

    def estimate(product):
        found = candidates(H200, product)
        return next(s for s, make, rest in found if make is any_layout and rest == (tile, 1))

    later = estimate(many) - estimate(few)
    assert later == pytest.approx(CONSTANTS.late_start_s, rel=1e-6)
