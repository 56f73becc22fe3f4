"""The kernels of the probe of local memory hold what they claim to measure."""

import re

import pytest

from tests.cubins import cubin_of
from toolkit.microbenchmarks.local_memory import FILLED, FOLLOWED, SOURCE

WIDTH = re.compile(r"STL(?:\.(\d+))?")


def texts_of(name, words=FOLLOWED[0], scope="gpu"):
    macros = f'#define WORDS {words}\n#define LOADS 16\n#define SCOPE "{scope}"\n'
    return [one.text for one in cubin_of(macros + SOURCE, name, "sm_90").instructions]


def test_words_are_followed_in_local_memory():
    texts = texts_of("follow_words")
    clocks = [k for k, text in enumerate(texts) if "SR_CLOCK" in text]
    inside = texts[clocks[0] : clocks[-1]]
    assert any("LDL" in text for text in inside)
    assert not any("STL" in text for text in inside)


@pytest.mark.parametrize("words", FILLED)
def test_all_words_are_stored(words):
    stored = [text for text in texts_of("fill_words", words) if text.startswith("STL")]
    assert sum(int(WIDTH.search(text)[1] or 32) for text in stored) == 32 * words


@pytest.mark.parametrize("scope", ["gpu", "sys"])
def test_loads_are_coherent(scope):
    loads = [text for text in texts_of("load_one", scope=scope) if "LDG" in text]
    assert len(loads) == 1
    assert f"STRONG.{scope.upper()}" in loads[0]
