"""Words that pages and tables print for causes and limiters have an entry of `explain`."""

import pytest

from analysis.records.entry import EntryGroup
from analysis.records.words import explain
from analysis.timing.predicted import Effect
from reports.sections import ladder_answer, time_parts
from reports.sections.effect_names import in_bar, in_column, in_table


@pytest.mark.parametrize(
    "words",
    [
        *([named(effect) for effect in Effect] for named in (in_table, in_bar, in_column)),
        ladder_answer.RESOURCES.values(),
        [time_parts.OTHERS, "unexplained"],
    ],
)
def test_each_word_for_a_part_of_a_time_is_a_cause_or_a_limiter(words):
    known = {EntryGroup.CAUSE, EntryGroup.LIMITER}
    assert [word for word in words if known.isdisjoint(explain(word).groups)] == []
