"""The kernels of the probe of local memory hold what they claim to measure."""

import re

import pytest

from tests.cubins import cubin_of
from toolkit.microbenchmarks.local_memory import FILL, FILLED, FOLLOW, FOLLOWED, LOAD

WIDTH = re.compile(r"STL(?:\.(\d+))?")


def texts_of(source, name, **macros):
    defines = "".join(f"#define {macro} {value}\n" for macro, value in macros.items())
    return [one.text for one in cubin_of(defines + source, name, "sm_90").instructions]


@pytest.mark.parametrize("words", [FOLLOWED[0], FOLLOWED[-1]])
def test_words_are_followed_in_local_memory(words):
    texts = texts_of(FOLLOW, "follow_words", WORDS=words)
    clocks = [k for k, text in enumerate(texts) if "SR_CLOCK" in text]
    inside = texts[clocks[0] : clocks[-1]]
    assert any("LDL" in text for text in inside)
    assert not any("STL" in text for text in inside)


@pytest.mark.parametrize("words", FILLED)
def test_all_words_are_stored(words):
    stored = [text for text in texts_of(FILL, "fill_words", WORDS=words) if text.startswith("STL")]
    assert sum(int(WIDTH.search(text)[1] or 32) for text in stored) == 32 * words


@pytest.mark.parametrize("scope", ["gpu", "sys"])
def test_loads_are_coherent(scope):
    texts = texts_of(LOAD, "load_one", LOADS=16, SCOPE=f'"{scope}"')
    loads = [text for text in texts if "LDG" in text]
    assert len(loads) == 1
    assert f"STRONG.{scope.upper()}" in loads[0]
