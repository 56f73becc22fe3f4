"""The ladder: what a rung declares is legal, complete and enough to launch it."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analysis.access import access_counts
from analysis.devices import find_device
from analysis.errors import InputError, ShapeError, UnavailableError, UnknownNameError
from analysis.problem import LARGEST_DIMENSION, Gemm, parse_shape
from analysis.traffic.grid import MAX_GRID_Y
from kernels import LADDER, REFERENCES, find, parse_selection
from kernels.closed_forms import first_warp_patterns, tiles_of_c
from kernels.ladder import CUBLAS
from kernels.selection import whole_ladder
from kernels.variant import EXTENTS, FACTORS
from reports import ladder
from tests.rungs import every_rung
from tests.sampling import sampled

SQUARE = parse_shape("4096")


def _others(variant, chosen):
    return [name for name, default in variant.defaults.items() if chosen[name] != default]


def _few_others(kernel):
    """A key per rung and single parameter that differs from its default, and one for the rest."""
    variant, chosen = kernel
    others = _others(variant, chosen)
    return (variant.name, *(others if len(others) < 2 else ["several"]))


_KERNELS = [
    pytest.param(variant, chosen, id=variant.label(chosen))
    for variant in LADDER
    for chosen in variant.parameter_sets()
]
EVERY_KERNEL = sampled(_KERNELS, key=_few_others)
# Of rungs with many parameters, those that differ from the defaults in one.
NEAR_DEFAULTS = sampled(
    [
        kernel
        for kernel in _KERNELS
        if len(kernel.values[0].parameters) < 3 or len(_others(*kernel.values)) < 2
    ],
    key=lambda kernel: kernel[0].name,
)


def test_rungs_are_numbered_from_one_in_order():
    assert [variant.rung for variant in LADDER] == list(range(1, len(LADDER) + 1))


@every_rung
def test_file_and_entry_are_named_after_the_rung(variant):
    stem = variant.name.replace("-", "_")
    assert variant.file == f"{variant.rung:02}_{stem}.cu"
    assert variant.entry == f"sgemm_{stem}"


@every_rung
def test_a_rung_declares_what_its_arguments_need(variant):
    assert {"C", *EXTENTS, *FACTORS} <= set(variant.arguments)
    assert len(set(variant.arguments)) == len(variant.arguments)
    assert ("workspace" in variant.arguments) == (variant.sharing is not None)
    assert ("tiles of A" in variant.arguments) == (variant.bulk_tiles is not None)


def test_parameter_sets_are_all_legal_combinations():
    assert [len(variant.parameter_sets()) for variant in LADDER[:7]] == [1, 3, 3, 3, 6, 2, 2]
    one_dimensional = LADDER[4].parameter_sets()
    # of 3 · 3 pairs, (4, 4), (4, 8) and (8, 4) leave threads without anything to copy
    assert {(p["bk"], p["tm"]) for p in one_dimensional} == {
        (4, 16), (8, 8), (8, 16), (16, 4), (16, 8), (16, 16)
    }  # fmt: skip
    # of 2 depths · 3 rings, (32, 3) and (32, 4) are too large; block tiles of 2 · 2 shapes
    rings = find("async-copy").parameter_sets()
    assert {(p["bk"], p["stages"]) for p in rings} == {(16, 2), (16, 3), (16, 4), (32, 2)}
    assert len(rings) == 16
    for variant in LADDER:
        assert variant.defaults in variant.parameter_sets()
        assert all(variant.resolve(chosen) == chosen for chosen in variant.parameter_sets())


def test_names_are_unique_and_found():
    everything = [*LADDER, *REFERENCES]
    assert [find(one.name) for one in everything] == everything
    assert len({one.name for one in everything}) == len(everything)


def test_the_whole_ladder_holds_each_rung_and_reference_once():
    labels = [selection.label for selection in whole_ladder()]
    assert labels == [one.name for one in (*LADDER, *REFERENCES)]  # defaults have bare names


every_kernel = pytest.mark.parametrize(("variant", "parameters"), EVERY_KERNEL)


@every_kernel
def test_geometry_covers_c_once(variant, parameters):
    problem = parse_shape("30x20x5") if variant.max_extent else parse_shape("1000x332x64")
    tiling = variant.tiling(parameters)
    geometry = variant.geometry(parameters, problem)
    along_m, along_n = -(-problem.m // tiling.block_m), -(-problem.n // tiling.block_n)
    tiles = variant.tile_grid(parameters, problem)
    _, row, column = variant.order_of(parameters).with_tiles(tiles)
    assert sorted(zip(row, column, strict=True)) == list(product(range(along_m), range(along_n)))
    if variant.order is None:
        assert geometry.blocks == along_m * along_n
    assert geometry.threads_per_block == tiling.threads_per_block
    elements = geometry.threads_per_block * tiling.thread_m * tiling.thread_n
    assert elements == tiling.block_m * tiling.block_n * tiling.slices


@every_kernel
def test_block_is_one_that_every_device_takes(variant, parameters):
    geometry = variant.geometry(parameters, parse_shape("8"))
    assert geometry.threads_per_block <= 1024
    assert geometry.threads_per_block % 32 == 0


@given(
    variant=st.sampled_from([v for v in LADDER if not v.max_extent]),
    m=st.integers(1, LARGEST_DIMENSION),
    n=st.integers(1, LARGEST_DIMENSION // 4),
)
def test_grids_of_any_shape_are_legal_and_cover_c(variant, m, n):
    problem = variant.executed(Gemm(m=m, n=n, k=1))
    parameters = variant.defaults
    if variant.order is not None:
        assume(m * n < 2**38)  # a terabyte of C
    x, y, z = variant.geometry(parameters, problem).grid
    assert x < 2**31  # CUDA C++ Programming Guide, technical specifications
    assert y <= MAX_GRID_Y
    assert z <= MAX_GRID_Y
    if variant.order is not None:
        assert x * y * z >= variant.tile_grid(parameters, problem).tiles
        return
    tiling = variant.tiling(parameters)
    across, down = (tiling.block_m, tiling.block_n)[:: 1 if variant.rows_along_x else -1]
    extent_x, extent_y = (m, problem.n) if variant.rows_along_x else (problem.n, m)
    assert x * across >= extent_x
    assert y * z * down >= extent_y
    # int arithmetic in the kernels: the last row of the last block must not wrap around
    assert y * z * down < 2**31


def test_rows_and_columns_change_places_in_the_uncoalesced_rung():
    tall = parse_shape("64x32x1")
    assert find("naive-uncoalesced").geometry({"width": 32}, tall).grid == (2, 1, 1)
    assert find("naive-coalesced").geometry({"width": 32}, tall).grid == (1, 2, 1)


def test_one_block_takes_32_by_32_and_nothing_larger():
    rung = find("one-block")
    rung.check_shape(parse_shape("32x32x100000"))
    for m, n in ((33, 1), (1, 33)):
        with pytest.raises(ShapeError, match=r"one-block cannot take .*at most 32x32"):
            rung.check_shape(Gemm(m=m, n=n, k=1))


def test_vectorized_is_padded_to_multiples_of_four():
    rung = find("vectorized")
    assert rung.executed(parse_shape("127x129x31")) == parse_shape("127x132x32")
    assert rung.executed(SQUARE) == SQUARE
    assert find("tiled").executed(parse_shape("127x129x31")) == parse_shape("127x129x31")


def test_selection_names_only_what_differs_from_the_default():
    assert parse_selection("tiled").label == "tiled"
    assert parse_selection("tiled:tile=32").label == "tiled"
    assert parse_selection("Tiled:TILE=16").label == "tiled:tile=16"
    assert parse_selection("coarsened_1d:bk=8,tm=8").label == "coarsened-1d:bk=8,tm=8"
    assert parse_selection("coarsened-1d:tm=8,bk=8").parameters == {"bk": 8, "tm": 8}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("tield", UnknownNameError, "did you mean 'tiled'"),
        ("", UnknownNameError, "unknown variant ''"),
        ("tiled:tle=16", UnknownNameError, "did you mean 'tile'"),
        ("tiled:tile=33", InputError, "tile = 33 is not legal: choose one of 8, 16, 32"),
        ("tiled:tile=x", InputError, "'tile=x' is not a setting"),
        ("tiled:tile", InputError, "'tile' is not a setting"),
        (
            "tiled:",
            InputError,
            "'tiled:': '' is not a setting: write name=integer, as in tiled:tile",
        ),
        ("tiled:tile=16,", InputError, "'tiled:tile=16,': '' is not a setting"),
        ("coarsened-1d:bk=4,tm=4", InputError, "bk \\* tm must be at least 64"),
        ("cublas:tile=3", InputError, "has no parameters"),
    ],
)
def test_wrong_selection_says_what_would_be_right(text, error, message):
    with pytest.raises(error, match=message):
        parse_selection(text)


@every_kernel
def test_patterns_account_for_every_request_of_the_launch(variant, parameters):
    problem = parse_shape("32x32x64") if variant.max_extent else parse_shape("256x256x64")
    counts = access_counts(variant.tiling(parameters), problem)
    patterns = first_warp_patterns(variant, parameters, problem)
    # bulk copies are no accesses of a warp: one per tile, by one thread
    bulk = {("global", "load")} if variant.bulk_tiles else set()
    accesses = [a for a in counts.accesses if (a.space, a.operation) not in bulk]
    for space in ("global", "shared"):
        requests = sum(p.requests for p in patterns if p.space == space)
        instructions = sum(a.instructions for a in accesses if a.space == space)
        assert 32 * requests == instructions  # full warps: 32 lanes each
    keys = [(p.space, p.operation, p.operand) for p in patterns]
    assert sorted(keys) == sorted((a.space, a.operation, a.operand) for a in accesses)


@pytest.mark.parametrize(("variant", "parameters"), NEAR_DEFAULTS)
@given(m=st.integers(1, 70), n=st.integers(1, 70), k=st.integers(1, 70))
@settings(deadline=None, max_examples=30)
def test_patterns_exist_for_every_small_shape(variant, parameters, m, n, k):
    problem = variant.executed(
        Gemm(m=min(m, variant.max_extent or m), n=min(n, variant.max_extent or n), k=k)
    )
    for pattern in first_warp_patterns(variant, parameters, problem):
        assert pattern.requests >= 1
        assert 1 <= pattern.cycles <= 32


def test_uncoalesced_warps_touch_a_sector_per_lane():
    sectors = {
        name: {p.operand: p.sectors for p in first_warp_patterns(find(name), {"width": 32}, SQUARE)}
        for name in ("naive-uncoalesced", "naive-coalesced")
    }
    assert sectors["naive-uncoalesced"] == {"A": 32, "B": 1, "C": 32}  # 32 rows, one column
    assert sectors["naive-coalesced"] == {"A": 1, "B": 4, "C": 4}  # 32 · 4 B / 32 B = 4


def test_reports_know_cublas_by_the_registrys_name():
    assert CUBLAS.name == ladder.CUBLAS  # reports may not import kernels


@every_kernel
def test_the_tiles_of_all_blocks_are_c(variant, parameters):
    for shape in ((32, 32, 8), (7, 29, 5), (300, 131, 9)):
        m, n, k = (min(extent, variant.max_extent or extent) for extent in shape)
        executed = variant.executed(Gemm(m=m, n=n, k=k))
        covered = np.zeros((executed.m, executed.n), dtype=int)
        blocks = range(variant.geometry(parameters, executed).blocks)
        for rows, columns in tiles_of_c(variant, parameters, executed, blocks):
            covered[rows.start : rows.stop, columns.start : columns.stop] += 1
        assert (covered == 1).all()


def test_blocks_beyond_c_have_no_tile():
    tall = Gemm(m=1, n=32 * 65_536, k=1)  # y ends at 65,535: a second z, half of it beyond C
    variant = find("naive-uncoalesced")
    grid = variant.geometry(variant.defaults, tall).grid
    assert grid == (1, 32_768, 2)
    (tile,) = tiles_of_c(variant, variant.defaults, tall, [65_535])
    assert tile == (range(1), range(2097120, 2097152))
    odd = Gemm(m=1, n=32 * 65_537, k=1)
    assert variant.geometry(variant.defaults, odd).grid == (1, 32_769, 2)
    assert tiles_of_c(variant, variant.defaults, odd, [65_537]) == []


# What later rungs ask of a device, and of the grid.

NEW = replace(LADDER[3], since=90)
LARGE = replace(LADDER[3], dynamic_shared_bytes=lambda tiling: 2048 * tiling.block_m)


@pytest.mark.parametrize(
    ("device", "runs"), [("t4", False), ("rtx-3090", False), ("h100-sxm", True)]
)
def test_a_rung_names_what_is_too_old_for_it(device, runs):
    found = find_device(device)
    assert NEW.runs_on(int(found.sm_arch[3:])) == runs
    LADDER[3].check_device({"tile": 32}, found)
    if runs:
        NEW.check_device({"tile": 32}, found)
    else:
        with pytest.raises(UnavailableError, match=r"tiled needs sm_90 or later, and .* is sm_"):
            NEW.check_device({"tile": 32}, found)


def test_a_device_that_is_older_than_compilers_gets_the_code_of_the_oldest():
    LADDER[3].check_device({"tile": 32}, find_device("gtx-1080-ti"))  # sm_61
    assert LADDER[3].runs_on(61)
    assert not replace(LADDER[3], since=80).runs_on(61)


def test_more_shared_memory_than_a_block_can_have_is_refused():
    assert LARGE.geometry({"tile": 32}, SQUARE).dynamic_shared_bytes == 65_536  # 2048 · 32
    LARGE.check_device({"tile": 32}, find_device("t4"))  # 64 KiB: just what it has
    larger = replace(LARGE, dynamic_shared_bytes=lambda tiling: 65_537)
    with pytest.raises(UnavailableError) as caught:
        larger.check_device({"tile": 16}, find_device("t4"))
    assert str(caught.value) == (
        "tiled:tile=16 takes 65,537 bytes of shared memory per block, and NVIDIA T4 gives at most "
        "65,536: choose smaller tiles or fewer stages"
    )


@pytest.mark.parametrize(
    ("k", "n", "is_a_copied", "is_b_copied"),
    [
        (68, 2304, False, False),
        (68, 2301, False, True),
        (69, 2304, True, False),
        (65, 2305, True, True),
    ],
)
def test_rows_that_do_not_begin_at_16_bytes_are_copied(k, n, is_a_copied, is_b_copied):
    realigned = find("realigned")
    parameters = realigned.defaults
    tiling = realigned.tiling(parameters)
    copies = realigned.sharing.copies(tiling, parameters, Gemm(m=2561, n=n, k=k))
    assert (copies.a is not None, copies.b is not None) == (is_a_copied, is_b_copied)
