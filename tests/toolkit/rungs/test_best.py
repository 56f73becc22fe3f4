"""The dispatcher: tuned configurations first, then a rule, and never one that needs padding."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.devices import DEVICES, find_device
from analysis.problem import Gemm, parse_shape
from kernels.ladder import BEST
from tests.toolkit.tuned_entries import entry
from toolkit.gpu.sampling import Sampling
from toolkit.profiling.plan import make_plan
from toolkit.profiling.record import planned
from toolkit.rungs.best import best_for, by_rule
from toolkit.store import tuned

H200 = find_device("h200")


@pytest.fixture(autouse=True)
def nothing_of_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("GEMM_LADDER_DATA", str(tmp_path))


def test_what_ships_is_what_is_dispatched():
    for one in tuned.read(tuned.FOLDER / "h200.json"):
        found = best_for(H200, one.problem)
        assert found.label == "best"
        assert (found.variant.name, found.parameters) == (one.variant, one.parameters)


def test_the_users_own_go_first():
    tuned.keep([entry(variant="tiled", parameters={"tile": 16}, ratio_to_cublas=9.0)])
    found = best_for(H200, parse_shape("4096"))
    assert found.parameters == {"tile": 16}


def test_a_neighbour_that_would_need_padding_is_passed_over():
    near = parse_shape("4096x4095x4096")  # N is no multiple of 4
    found = best_for(H200, near)
    assert found.variant.name == "realigned"


@settings(max_examples=60)
@given(
    device=st.sampled_from(list(DEVICES.values())),
    m=st.integers(1, 5000),
    n=st.integers(1, 5000),
    k=st.integers(1, 5000),
)
def test_every_shape_is_served_on_every_device_without_padding(device, m, n, k):
    shape = Gemm(m=m, n=n, k=k)
    for choose in CHOICES:
        found = choose(device, shape)
        variant = found.variant
        assert variant.executed(shape) == shape
        variant.check_shape(shape)
        variant.check_device(found.parameters, device)


CHOICES = (best_for, by_rule)


@pytest.mark.parametrize(
    ("shape", "label"),
    [
        ("4096", "tall-thread-tile"),  # 832 tiles for 132 SMs
        ("4096x4096x64", "stream-k"),  # split-k would start 16 blocks on each SM
        ("1536", "stream-k"),
        ("128x8192x4096", "stream-k"),  # 160 rows would be one tile of 128
        ("1024", "split-k:bm=128,bn=64,stages=4"),  # 128 tiles
        ("512", "split-k:bn=32,tn=8,slices=8,stages=5"),  # 128 smaller ones
        ("512x512x4096", "split-k:bm=128,bn=64,splits=4,stages=4"),  # 32 tiles
        ("64x64x65536", "split-k:bn=64,slices=8,splits=132,stages=4"),  # one
        ("64x64x7744", "split-k:bn=32,tn=8,slices=8,splits=64,stages=5"),  # two, 121 phases
        ("384x384x2048", "split-k:bn=64,slices=8,splits=3,stages=4"),  # not 29 workers per tile
        ("256x256x32768", "split-k:bm=128,bn=64,splits=16,stages=4"),
        ("1000x64x4000", "split-k:bm=128,bn=64,splits=16,stages=4"),  # as narrow as C
        ("64x1000x4000", "split-k:splits=16,stages=4"),
        ("4096x4096x4095", "realigned"),  # rows of A begin anywhere
        ("4096x4095x4096", "realigned"),
        ("1024x1024x4095", "wide-thread-tile:fence=1"),  # copies would take a fifth of the time
    ],
)
def test_the_rule_fills_the_device(shape, label):
    assert by_rule(H200, parse_shape(shape)).label == label


def test_a_neighbours_tile_is_split_for_the_shape_at_hand():
    tuned.keep(
        [entry("64x128x16384", variant="split-k", parameters={"splits": 2}, ratio_to_cublas=1.5)]
    )
    assert best_for(H200, parse_shape("64x128x16384")).parameters["splits"] == 2  # as it was tuned
    assert best_for(H200, parse_shape("64x128x16388")).parameters["splits"] == 132
    assert best_for(H200, parse_shape("128x128x16388")).parameters["splits"] == 64


def test_what_another_device_has_is_split_for_this_one():
    shipped = parse_shape("64x64x65536")
    assert best_for(H200, shipped).parameters["splits"] == 128
    smaller = find_device("h100-pcie")
    assert smaller.sm_count == 114
    assert best_for(smaller, shipped).parameters["splits"] == 64


def test_workers_are_two_blocks_for_each_sm():
    assert by_rule(H200, parse_shape("4096x4096x64")).parameters["workers"] == 2 * 132
    rtx_5090 = find_device("rtx-5090")
    assert by_rule(rtx_5090, parse_shape("4096x4096x64")).parameters["workers"] == 2 * 170


def test_a_record_says_what_best_is():
    plan = make_plan([parse_shape("4096")], ["best"], sampling=Sampling(), seed=1)
    (shape,) = plan.shapes
    (selection,) = plan.at(shape, H200).selections
    record = planned(selection, shape, H200)
    assert (record.label, record.title, record.variant) == ("best", BEST.title, "tall-thread-tile")
    assert record.notes[0].startswith("best is tall-thread-tile at this shape")
