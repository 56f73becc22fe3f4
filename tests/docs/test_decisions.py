"""docs/decisions/README.md lists every record once, under one topic, with its number."""

import re

from docs.snippets.pages import ROOT

FOLDER = ROOT / "docs" / "decisions"
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")


def test_every_record_is_listed_once_with_its_number():
    listed = re.findall(r"^- (\d+): \[(.+?)\]\((\d{4}-[\w-]+\.md)\)", INDEX, re.M)
    for number, _, file in listed:
        assert int(file[:4]) == int(number)
        heading = (FOLDER / file).read_text(encoding="utf-8").splitlines()[0]
        assert re.match(r"# 0*(\d+)\b", heading)[1] == number, heading
    assert sorted(file for *_, file in listed) == sorted(x.name for x in FOLDER.glob("0*.md"))


def test_numbers_are_in_order_within_a_topic():
    for topic in INDEX.split("\n## ")[1:]:
        numbers = [int(number) for number in re.findall(r"^- (\d+): ", topic, re.M)]
        assert numbers == sorted(set(numbers)), topic.splitlines()[0]


def test_no_record_is_listed_outside_the_topics():
    """A merge may append a line of the form that the list once had."""
    assert not re.findall(r"^\d+\. .*", INDEX, re.M)
