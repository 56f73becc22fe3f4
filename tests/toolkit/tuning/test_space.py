"""The legal configurations of a rung, and the line that says why there are none."""

from dataclasses import replace
from itertools import product

import pytest

from analysis.errors import InputError, UnknownNameError
from analysis.records.tuning import Exclusion
from kernels import LADDER, find
from kernels.variant import Constraint
from tests.refusals import refusal
from toolkit.tuning.space import parse_space, space


def rung(name):
    return find(name)


@pytest.mark.parametrize("variant", [v for v in LADDER if v.parameters], ids=lambda v: v.name)
def test_the_space_holds_what_the_registry_calls_legal(variant):
    found = space(variant, {})
    assert [dict(one.parameters) for one in found.selections] == variant.parameter_sets()
    removed = sum(one.configurations for one in found.exclusions)
    assert found.combinations == removed + len(found.selections)


def test_each_constraint_is_told_what_it_removed_of_what_the_others_left():
    found = parse_space("coarsened-1d")
    pairs = list(product((4, 8, 16), (4, 8, 16)))
    broken = sum(bk * tm < 64 for bk, tm in pairs)
    assert found.combinations == len(pairs)
    assert [one.configurations for one in found.exclusions] == [broken] == [3]


def test_a_fixed_parameter_leaves_a_part_of_the_space():
    found = parse_space("coarsened-1d:tm=8")
    assert [dict(one.parameters) for one in found.selections] == [
        {"bk": 8, "tm": 8},
        {"bk": 16, "tm": 8},
    ]


def test_a_space_without_a_configuration_names_the_constraint_that_removed_the_last():
    assert refusal(InputError, parse_space, "coarsened-1d:bk=4,tm=8") == (
        "coarsened-1d has no legal configuration with these values: bk * tm must be at least 64, "
        "so that every thread has something to copy, which excludes bk = 4, tm = 8: "
        "fix other values, or fewer"
    )


def test_of_several_constraints_the_one_that_emptied_the_space_is_named():
    variant = replace(
        rung("coarsened-1d"),
        constraints=(
            Constraint(text="bk is small", holds=lambda p: p["bk"] < 8),
            Constraint(text="bk is large", holds=lambda p: p["bk"] > 8),
            Constraint(text="nobody asks", holds=lambda p: True),
        ),
    )
    with pytest.raises(InputError, match=r"bk is large, which excludes bk = 4, tm = 16: "):
        space(variant, {})


def test_a_constraint_that_removes_nothing_is_listed_with_zero():
    found = space(rung("coarsened-1d"), {"bk": 16})
    assert found.exclusions == (
        Exclusion(constraint=rung("coarsened-1d").constraints[0].text, configurations=0),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cublas", "cublas has no parameters of its own to tune: choose one of naive-"),
        ("one-block", "one-block has no parameters to tune: choose one of naive-uncoalesced"),
        ("tiled:tile=7", "tiled: tile = 7 is not legal: choose one of 8, 16, 32"),
    ],
)
def test_what_cannot_be_tuned_is_refused_in_one_line(text, message):
    assert refusal(InputError, parse_space, text).startswith(message)


@pytest.mark.parametrize(("text", "unknown"), [("tilde", "variant"), ("tiled:bm=8", "parameter")])
def test_unknown_names_suggest_the_known_ones(text, unknown):
    with pytest.raises(UnknownNameError, match=f"unknown {unknown}"):
        parse_space(text)
