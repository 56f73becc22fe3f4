"""Nothing that comes from outside ends in a traceback; a fuzzer's command is in fuzz.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parent))
from targets import HOSTILE, MARKUP, TARGETS, report, seeds

CASES = {"report": 5, "stored_document": 60, "command_line": 60}
MOST = 300


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_bytes_are_refused_in_a_line(name: str) -> None:
    @settings(
        max_examples=CASES.get(name, MOST),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(st.one_of(st.binary(max_size=400), st.text(max_size=200).map(_bytes)))
    def feed(data: bytes) -> None:
        TARGETS[name](data)

    feed()


@pytest.mark.parametrize("name", [name for name in TARGETS if name != "report"])
def test_the_seeds_of_the_fuzzer_are_taken(name: str) -> None:
    for seed in seeds(name):
        TARGETS[name](seed)


def test_markup_in_every_text_of_a_profile_stays_text() -> None:
    report(b"\xff\xff\xff\xff" * 40)
    assert MARKUP in HOSTILE


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
