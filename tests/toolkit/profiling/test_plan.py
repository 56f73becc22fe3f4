"""Plan of a run: every mistake is reported before anything starts."""

from dataclasses import replace

import pytest

from analysis.devices import find_device
from analysis.errors import InputError, ShapeError, UnavailableError, UnknownNameError
from analysis.problem import parse_shape
from kernels import LADDER, REFERENCES
from tests.refusals import refusal
from toolkit.gpu.sampling import Sampling
from toolkit.profiling.plan import make_plan
from toolkit.rungs.matrices import LARGEST_SEED


def plan(shapes=(64,), variants=None, seed=1):
    return make_plan(shapes, variants, sampling=Sampling(), seed=seed)


def test_every_way_to_write_a_shape():
    made = plan(["64", 32, parse_shape("1x2x3"), "4x5x6", " 7 X 8 X 9 ".replace(" ", "")])
    assert [str(shape) for shape in made.shapes] == [
        "64x64x64", "32x32x32", "1x2x3", "4x5x6", "7x8x9",
    ]  # fmt: skip


def test_repeated_shapes_and_variants_count_once_and_keep_their_order():
    made = plan(["64", "32", "64x64x64", 32], ["tiled:tile=32", "cpu", "TILED", "tiled:tile=16"])
    assert [shape.m for shape in made.shapes] == [64, 32]
    assert [s.label for s in made.selections] == ["tiled", "cpu", "tiled:tile=16"]


def test_the_default_is_the_whole_ladder_with_its_references():
    names = [*(v.name for v in LADDER), *(r.name for r in REFERENCES)]
    for nothing in (None, []):
        made = plan(variants=nothing)
        assert [s.label for s in made.selections] == names
        assert not made.explicit
    assert plan(variants=["tiled"]).explicit


def test_a_seed_is_chosen_where_none_is_given_and_kept_where_one_is():
    assert plan(seed=0).seed == 0
    assert plan(seed=LARGEST_SEED).seed == LARGEST_SEED
    assert plan(seed=None).seed != plan(seed=None).seed


@pytest.mark.parametrize("seed", [-1, LARGEST_SEED + 1])
def test_a_seed_out_of_range_is_refused(seed):
    with pytest.raises(InputError, match=f"seed {seed} is out of range"):
        plan(seed=seed)


@pytest.mark.parametrize(
    "shape",
    ["0", "-1", "4096x", "x", "", "1x2", "1x2x3x4", "１２", "²", "4096.0", 1.5, True,
     "1e3", "9" * 5000],
)  # fmt: skip
def test_a_shape_that_is_none_is_refused_in_one_line(shape):
    refusal(ShapeError, plan, [shape])


def test_no_shape_is_refused():
    assert "no shape to profile" in refusal(InputError, plan, [])


@pytest.mark.parametrize("settings", [{"shapes": "4096"}, {"variants": "tiled"}])
def test_a_text_is_no_list(settings):
    assert "give a list, such as ['" in refusal(InputError, plan, **settings)


def test_an_unknown_variant_gets_a_suggestion():
    assert "did you mean 'tiled'" in refusal(UnknownNameError, plan, variants=["tield"])


def test_a_named_rung_that_cannot_take_a_shape_is_an_error():
    assert "one-block cannot take 64x64x64" in refusal(
        ShapeError, plan, [32, 64], ["tiled", "one-block"]
    )
    assert plan([64]).selections[0].label == "one-block"  # a remark, where nobody named it


def test_a_shape_that_fits_no_memory_is_refused():
    device = find_device("rtx-3090")
    plan([40_000]).check_fits(device)  # 3 · 40,000² · 4 B = 19.2 GB of 25.8 GB
    with pytest.raises(ShapeError, match=r"A, B and C take 30\.0 GB, .* has 25\.8 GB: take a"):
        plan([64, 50_000]).check_fits(device)  # 3 · 50,000² · 4 B = 30 GB


def test_a_named_rung_that_a_device_cannot_run_is_an_error():
    device, (named,) = find_device("t4"), plan(variants=["tiled"]).selections
    new = replace(named, variant=replace(named.variant, since=80))
    whole = replace(plan(), selections=(new,))
    whole.check_fits(device)  # a remark, where nobody named it
    assert "tiled needs sm_80 or later, and NVIDIA T4 is sm_75" in refusal(
        UnavailableError, replace(whole, explicit=True).check_fits, device
    )


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        ("tiled:tile=7", "tiled: tile = 7 is not legal: choose one of 8, 16, 32"),
        ("tiled:tyle=8", "unknown parameter of tiled 'tyle': did you mean 'tile'? (known: tile)"),
        ("tiled:tile", "'tiled:tile': 'tile' is not a setting: write name=integer, as in"),
        ("tiled:tile=8,tile=16", "'tiled:tile=8,tile=16': a parameter is given twice"),
        ("cpu:threads=1", "'cpu:threads=1': cpu is a reference and has no parameters"),
        ("", "unknown variant '': choose one of one-block, "),
    ],
)
def test_a_variant_that_is_none_says_why(variant, message):
    assert refusal(InputError, plan, variants=["tiled", variant]).startswith(message)
