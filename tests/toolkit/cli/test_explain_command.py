"""The command `explain`, and `toolkit.explain`."""

import json

import pytest

import toolkit
from analysis.records.words import ENTRIES
from tests.toolkit.cli.commands import invoke


def test_a_word_of_several_parts_needs_no_quotes():
    found = invoke("", "explain", "bank", "conflicts")
    assert found.exit_code == 0
    assert found.output == f"{toolkit.explain('bank conflicts')}\n"
    lines = found.output.splitlines()
    assert lines[0].startswith("shared-memory bank conflicts (cause; also bank conflicts")
    assert 'docs/guide/07-coarsening-2d.md, "A bank conflict"' in found.output
    assert max(map(len, lines)) <= 82  # the figure is not broken


def test_without_a_word_all_are_listed_by_group():
    found = invoke("", "explain")
    shown = " ".join(found.output.split())
    assert [one.word for one in ENTRIES if one.word not in shown] == []
    assert found.output.splitlines()[0] == "cause"


@pytest.mark.parametrize("words", [["dram"], []])
def test_json_has_the_same(words):
    found = json.loads(invoke("", "explain", *words, "--json").output)
    one = found if words else found["cause"][0]
    assert set(one) >= {"word", "groups", "sentences", "formula", "where", "guide", "also"}
    assert len(one["sentences"]) == 3


def test_an_unknown_word_fails_in_one_line():
    found = invoke("", "explain", "conflcts")
    assert found.exit_code == 1
    assert "did you mean 'shared-memory bank conflicts'?" in found.output
