"""`explain`: every word that the tool prints has an entry, and each entry can be followed."""

import re

import pytest

from analysis.errors import InputError
from analysis.records.counters import ALL_COUNTERS
from analysis.records.entry import EntryGroup
from analysis.records.metrics import METRICS
from analysis.records.words import BY_NAME, ENTRIES, by_group, explain, normal
from analysis.sm import LOST
from analysis.timing.predicted import Effect, GapCause, Resource
from toolkit.remedies.advice import ADVICE
from toolkit.remedies.proposals import KINDS
from validation import ROOT


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (EntryGroup.COUNTER, ALL_COUNTERS),
        (EntryGroup.METRIC, METRICS),
        (EntryGroup.CAUSE, [*Effect, *GapCause]),
        (EntryGroup.CAUSE, ADVICE),
        (EntryGroup.LIMITER, Resource),
        (EntryGroup.STALL, LOST),
        (EntryGroup.REMEDY, [kind.word for kind in KINDS]),
    ],
)
def test_every_word_that_the_tool_prints_has_an_entry(group, words):
    assert len(words) >= 6
    assert [word for word in words if group not in explain(word).groups] == []


def test_no_two_entries_have_one_word():
    assert len({normal(one.word) for one in ENTRIES}) == len(ENTRIES)
    for one in ENTRIES:
        assert explain(one.word) is one


def test_remedies_are_those_that_are_tried():
    assert [one.word for one in by_group()[EntryGroup.REMEDY]] == [kind.word for kind in KINDS]


@pytest.mark.parametrize("one", ENTRIES, ids=lambda one: one.word)
def test_an_entry_has_three_sentences_a_formula_and_a_chapter(one):
    assert all(re.fullmatch(r"[A-Z0-9_(].*\.", sentence) for sentence in one.sentences)
    assert one.formula
    assert one.where
    file, _, heading = one.guide.partition("#")
    headings = re.findall(r"^#+ (.*)$", (ROOT / "docs" / file).read_text("utf-8"), re.MULTILINE)
    assert heading in headings
    assert len(one.figure.splitlines()) <= 3
    assert max(map(len, one.text(80).splitlines())) <= 84 or not one.figure


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("bank conflicts", Effect.CONFLICTS),
        ("Bank-Conflict", Effect.CONFLICTS),
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld", None),
        ("L1TEX__T_SECTORS_PIPE_LSU_MEM_GLOBAL_OP_LD.sum", None),
        ("stall_long_scoreboard", "global latency"),
        ("DRAM", Effect.DRAM_BANDWIDTH),
        ("float4", "vectorized access"),
        ("stg", "LDG"),
        ("LDG.E.128", "LDG"),
        ("FADD.FTZ", "FFMA"),
    ],
)
def test_words_are_found_by_their_other_names(word, found):
    assert explain(word).word == (found or "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")


@pytest.mark.parametrize(
    ("word", "nearest"),
    [("conflcts", "'shared-memory bank conflicts'"), ("lts__t_sectors", "'lts__t_sectors_")],
)
def test_unknown_words_suggest_the_nearest(word, nearest):
    with pytest.raises(InputError) as raised:
        explain(word)
    assert str(raised.value).startswith(f"unknown word '{word}': did you mean {nearest}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("word", ["", "zzzzzz.E", "zzzzzz", " ", "x" * 10_000])
def test_words_that_are_like_no_other_say_how_to_list_all(word):
    with pytest.raises(InputError, match="`explain` without a word lists all"):
        explain(word)


def test_other_names_lead_to_one_entry():
    assert {one.word for one in BY_NAME.values()} == {one.word for one in ENTRIES}
