"""A remedy in a prompt."""

import pytest

from analysis.records.remedy import Remedy
from analysis.timing.predicted import Effect


@pytest.mark.parametrize(
    ("lines", "after_s", "most_s", "shown"),
    [
        ((3,), 6.16e-6, None, "<Remedy 1 of line 3: pads each row: 9.29 to 6.16 µs predicted>"),
        ((), None, None, "<Remedy 1: pads each row: 9.29 µs without it, not made>"),
        (
            (),
            None,
            2e-6,
            "<Remedy 1: pads each row: 9.29 µs without it, not made, saves at most 2.00 µs>",
        ),
    ],
)
def test_it_is_one_line(lines, after_s, most_s, shown):
    remedy = Remedy(
        number=1,
        effect=Effect.CONFLICTS,
        lines=lines,
        title="pads each row",
        before_s=9.29e-6,
        after_s=after_s,
        most_s=most_s,
        diff="--- a\n+++ b\n",
    )
    assert repr(remedy) == shown
