"""Filters of the pages' templates."""

import pytest

from reports.templating import unbroken

SPACE = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("It costs 0.229 µs.", f"It costs 0.229{SPACE}µs."),
        ("rung 18 beats it by 5.14 %, 80.4 %", f"rung 18 beats it by 5.14{SPACE}%, 80.4{SPACE}%"),
        ("53.8 TFLOP/s", f"53.8{SPACE}TFLOP/s"),
        ("124 of 132 SMs have no block", "124 of 132 SMs have no block"),  # a count, no unit
        ("line 10 shared", "line 10 shared"),  # a word that begins as a unit does
    ],
)
def test_a_number_stays_with_its_unit(sentence, shown):
    assert unbroken(sentence) == shown
