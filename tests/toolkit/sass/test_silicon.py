"""Instructions beside what an H200 computed of the same random words (validation/census)."""

import json
from functools import cache
from zlib import crc32

import numpy as np
import pytest

from analysis.errors import UnsupportedError
from tests.probe import State, probe
from tests.sampling import exhaustive
from tests.toolkit.sass.exact_floats import probed
from toolkit import simulate
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.patching import rewritten
from validation.census import silicon, special

RECORDED = np.load(silicon.HERE / "special_sm_90.npz")
EVERY = 24  # so many forms are left out for each that the default run tries


@cache
def forms():
    return silicon.recorded()


@cache
def words():
    return json.loads(silicon.FORMS.read_text(encoding="utf-8"))


def differing(texts):
    """Forms whose results are not those of the GPU, each with the number of rows that differ."""
    found = {}
    for text in texts:
        got = silicon.simulated(text, words()["registers"], words()["forms"][text])
        if rows := int((got != forms()[text]).any(0).sum()):
            found[text] = rows
    return found


def test_a_sample_of_the_forms_leaves_the_words_that_silicon_left():
    assert not differing(list(forms())[::EVERY])


@pytest.mark.parametrize("family", "ABCDEFGHILMPRSTUV")
@pytest.mark.exhaustive
def test_every_form_leaves_the_words_that_silicon_left(family):
    assert not differing([text for text in forms() if text[0] == family])


def test_there_is_a_form_of_each_family():
    assert len(forms()) > 1300
    assert {text.split(".")[0].split()[0] for text in forms()} > {
        "FFMA", "DFMA", "HFMA2", "F2FP", "F2I", "I2F", "IMAD", "LOP3", "SHF", "MUFU", "FCHK",
        "VIMNMX", "VIADDMNMX", "IDP", "PRMT", "FLO", "POPC", "SGXT", "BMSK", "MATCH", "SHFL",
    }  # fmt: skip


@pytest.mark.parametrize("function", sorted(special.FUNCTIONS))
def test_the_multi_function_unit_returns_the_bits_of_silicon_for_any_word(function):
    given = special.any_words(function)[: len(RECORDED[function])]
    found = np.array(probed(f"MUFU.{function} R4, R2", {2: given}), np.uint32)
    np.testing.assert_array_equal(found, RECORDED[function])


def tangents(exponent, step):
    """Results of the kernel of the recording for every `step`th mantissa of an octave."""
    patch = {"special": special.with_function("TANH")}
    kernel = Kernel.from_image(rewritten(special.CUBIN.read_bytes(), patch), "special")
    words = np.zeros(special.OCTAVE // step, np.uint32)
    arguments = [words, *map(np.uint32, ((127 + exponent) << 23, step, len(words)))]
    grid = len(words) // 256
    return simulate(kernel, grid=grid, block=256, arguments=arguments, predict=False).outputs[0]


@pytest.mark.parametrize("step", [special.SAMPLED, exhaustive(1)])
@pytest.mark.parametrize("exponent", range(-10, 5))
def test_the_hyperbolic_tangent_returns_the_bits_of_silicon(exponent, step):
    """From 2^-8 to 8 it is interpolated; below, the operand itself, and above, 1."""
    wanted = json.loads(special.TANGENTS.read_text())["octaves"][str(exponent)]
    assert crc32(tangents(exponent, step).tobytes()) == wanted["all" if step == 1 else "sampled"]


@pytest.mark.parametrize("format", ["F16", "BF16"])
def test_the_hyperbolic_tangent_of_halves_returns_the_bits_of_silicon(format):
    every = np.arange(1 << 16, dtype=np.uint32)
    found = np.array(probed(f"MUFU.TANH.{format} R4, R2", {2: every}), np.uint16)
    assert crc32(found.tobytes()) == json.loads(special.TANGENTS.read_text())[format]


def test_a_form_that_is_refused_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="SR_PM0"):
        probe("CS2R.32 R4, SR_PM0", State())
