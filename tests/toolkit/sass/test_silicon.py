"""Instructions beside what an H200 computed of the same random words (validation/census)."""

import json
from functools import cache

import numpy as np
import pytest

from analysis.errors import UnsupportedError
from tests.probe import State, probe
from tests.toolkit.sass.exact_floats import probed
from validation.census import silicon, special

RECORDED = np.load(silicon.HERE / "special_sm_90.npz")
APPROXIMATE = {"TANH", "TANH.F16", "TANH.BF16"}
EVERY = 24  # so many forms are left out for each that the default run tries


@cache
def forms():
    return silicon.recorded()


@cache
def words():
    return json.loads(silicon.FORMS.read_text(encoding="utf-8"))


def is_exact(text):
    return not text.startswith("MUFU.TANH")


def differing(texts):
    """Forms whose results are not those of the GPU, each with the number of rows that differ."""
    found = {}
    for text in texts:
        got = silicon.simulated(text, words()["registers"], words()["forms"][text])
        if rows := int((got != forms()[text]).any(0).sum()):
            found[text] = rows
    return found


def test_a_sample_of_the_forms_leaves_the_words_that_silicon_left():
    assert not differing([text for text in list(forms())[::EVERY] if is_exact(text)])


@pytest.mark.parametrize("family", "ABCDEFGHILMPRSTUV")
@pytest.mark.exhaustive
def test_every_form_leaves_the_words_that_silicon_left(family):
    assert not differing([text for text in forms() if text[0] == family and is_exact(text)])


def test_there_is_a_form_of_each_family():
    assert len(forms()) > 1300
    assert {text.split(".")[0].split()[0] for text in forms()} > {
        "FFMA", "DFMA", "HFMA2", "F2FP", "F2I", "I2F", "IMAD", "LOP3", "SHF", "MUFU", "FCHK",
        "VIMNMX", "VIADDMNMX", "IDP", "PRMT", "FLO", "POPC", "SGXT", "BMSK", "MATCH", "SHFL",
    }  # fmt: skip


@pytest.mark.parametrize("function", sorted(special.FUNCTIONS.keys() - APPROXIMATE))
def test_the_multi_function_unit_returns_the_bits_of_silicon_for_any_word(function):
    given = special.any_words(function)[: len(RECORDED[function])]
    found = np.array(probed(f"MUFU.{function} R4, R2", {2: given}), np.uint32)
    np.testing.assert_array_equal(found, RECORDED[function])


def test_the_hyperbolic_tangent_is_within_its_largest_error():
    given = special.any_words("TANH")[: len(RECORDED["TANH"])]
    found = np.array(probed("MUFU.TANH R4, R2", {2: given}), np.uint32)
    wanted = RECORDED["TANH"]
    numbers = ~np.isnan(wanted.view(np.float32))
    apart = np.abs(found.astype(np.int64) - wanted.astype(np.int64))[numbers]
    assert 0 < apart.max() <= 134  # of all mantissas of ten octaves


def test_a_form_that_is_refused_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="SR_PM0"):
        probe("CS2R.32 R4, SR_PM0", State())
