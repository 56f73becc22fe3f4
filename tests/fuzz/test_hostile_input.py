"""Nothing that comes from outside ends in a traceback."""

import json
import signal
from base64 import b64decode
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.errors import RecordError
from reports import render
from tests.fuzz.cases import COUNTS, SAMPLES, case
from tests.fuzz.targets import HOSTILE, MARKUP, TARGETS, document, report, seeds
from tests.sampling import exhaustive
from toolkit.cli.errors import damage_of
from toolkit.store.profile_json import parse

SLOW = {"report": 3, "cubins": 1, "profiles": 1, "launches": 1, "command_line": 1}
CASES = {"stored_text": 20} | SLOW
MOST = 60
LIMIT_S = 120  # of one case, many times what any takes


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_bytes_are_refused_in_a_line(name):
    @settings(
        max_examples=CASES.get(name, MOST),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(st.one_of(st.binary(max_size=400), st.text(max_size=200).map(_bytes)))
    def feed(data):
        TARGETS[name](data)

    feed()


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in SLOW])
def test_the_seeds_of_the_fuzzer_are_taken(name):
    for seed in seeds(name):
        TARGETS[name](seed)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *SAMPLES.items(),
        *(exhaustive(*of) for of in COUNTS.items()),
    ],
)
def test_cases_of_the_fuzzer_end_in_results_or_lines(name, count):
    """`-k stored_text-2000` runs one target. A case that hangs ends the process, by an alarm."""
    for number in range(count):
        signal.alarm(LIMIT_S)
        try:
            TARGETS[name](case(name, number))
        except Exception as error:
            error.add_note(f"case {number} of {name}")
            raise
        finally:
            signal.alarm(0)


def test_every_target_has_a_count():
    assert set(COUNTS) == set(TARGETS)


# What the fuzzer found once, by target.
FOUND = {
    # a counter that nobody knows: a KeyError when the page is drawn
    "report": "ADXFv3QqL/beI5QXZNWLuQqhC0vc142KuUfI7IlX"
    "4kYZ8tK5c30gKQJQlFIpCE34LlnOayESHYTY/P9KaF6pHQ==",
    # an image without what is known of its kernel
    "machine_code": "hrHCEtsMDakeNqJEbYPcPl528q2wh73E"
    "3SVz4+BQMDaqAAAAAG3O1KC6g1AiSA4QRH6ZxVkrU/ElHSo=",
}


@pytest.mark.parametrize("name", FOUND)
def test_what_the_fuzzer_found_stays_mended(name):
    TARGETS[name](b64decode(FOUND[name]))


def test_a_counter_that_nobody_knows_is_blamed_on_the_file():
    stored = json.loads(json.dumps(document()))
    stored["records"][0]["scores"][0]["counter"] = "no_such_counter.sum"
    found = parse(json.dumps(stored), "profile.json")
    blamed = pytest.raises(RecordError, match=r"profile.json: its numbers cannot be drawn")
    with blamed, damage_of(Path("profile.json")):
        render(found)


def test_markup_in_every_text_of_a_profile_stays_text():
    report(b"\xff\xff\xff\xff" * 40)
    assert MARKUP in HOSTILE


def _bytes(text):
    return text.encode(errors="surrogatepass")
