"""Words that pages and tables print for causes and limiters have an entry of `explain`."""

import pytest

from analysis.records.entry import EntryGroup
from analysis.records.words import explain
from reports.sections import ladder_answer, rungs, time_parts


@pytest.mark.parametrize(
    "words",
    [
        rungs.PARTS.values(),
        rungs.SHORT.values(),
        ladder_answer.RESOURCES.values(),
        time_parts.SHORT.values(),
        [time_parts.OTHERS, "unexplained"],
    ],
)
def test_each_word_for_a_part_of_a_time_is_a_cause_or_a_limiter(words):
    known = {EntryGroup.CAUSE, EntryGroup.LIMITER}
    assert [word for word in words if known.isdisjoint(explain(word).groups)] == []
