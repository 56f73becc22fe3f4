"""Counters of source lines before and after an edit."""

from hypothesis import given
from hypothesis import strategies as st

from analysis.comparison.lines import LineChange, line_changes
from analysis.records.profile import LineCounters


def lines(*counted, start=1):
    """(text, sectors) of lines that follow one another in a file."""
    return tuple(
        LineCounters(file="k.cu", line=start + place, text=text, counters={"sectors": count})
        for place, (text, count) in enumerate(counted)
    )


LOAD, STORE = ("x = a[i];", 8), ("c[i] = x;", 4)


def changes(before, after, **moved):
    return line_changes("sectors", lines(*before), lines(*after, **moved))


def test_a_line_keeps_its_counts_wherever_it_moves():
    assert changes([LOAD, STORE], [LOAD, STORE], start=9) == ()


def test_a_changed_line_has_both_numbers_and_both_places():
    after = [("int j = n * i;", 0), LOAD, ("c[i] = x;", 32)]
    assert changes([LOAD, STORE], after) == (
        LineChange(file="k.cu", text="c[i] = x;", line_before=2, line_after=3, before=4, after=32),
    )


def test_an_edited_line_is_the_successor_of_what_stood_there():
    (change,) = changes([LOAD, STORE], [("x = a[n * i];", 64), STORE])
    assert (change.text, change.line_before, change.line_after) == ("x = a[n * i];", 1, 1)
    assert change.difference == 56


def test_lines_of_one_side_only_have_no_number_on_the_other():
    more = [LOAD, ("y = b[i];", 16)]
    (added,) = changes([LOAD], more)
    assert (added.line_before, added.before, added.after) == (None, None, 16)
    (removed,) = changes(more, [LOAD])
    assert (removed.line_after, removed.after, removed.difference) == (None, None, -16)


def test_the_largest_difference_comes_first():
    found = changes([("a", 1), ("b", 1), ("c", 9)], [("a", 2), ("b", 9), ("c", 4)])
    assert [one.text for one in found] == ["b", "c", "a"]


def test_without_source_lines_belong_together_by_number():
    (change,) = changes([("", 1), ("", 2)], [("", 1), ("", 3)])
    assert (change.line_before, change.line_after) == (2, 2)


COUNTED = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=8)


@given(COUNTED, COUNTED)
def test_differences_of_lines_add_up_to_that_of_the_whole(before, after):
    whole = sum(count for _, count in after) - sum(count for _, count in before)
    assert sum(one.difference for one in changes(before, after)) == whole
