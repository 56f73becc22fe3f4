import pytest

from analysis.errors import ToolkitError
from tests.refusals import refusal
from tests.toolkit.reorder.code_by_hand import code
from toolkit.reorder.blocks import blocks
from toolkit.reorder.proof import check_same

LIVE = frozenset({0, 1})
BEFORE = """FFMA R0, R8, R9, R0
FFMA R1, R8, R10, R1
LDS R9, [R20]
STS [R21], R1"""


def _check(before, after, live=LIVE):
    old, new = code(before), code(after)
    of_kernel = blocks(old.instructions)
    check_same(
        old.instructions,
        new.instructions,
        (old.words, new.words),
        of_kernel,
        {block.start: live for block in of_kernel},
    )


def _lines(*order):
    lines = BEFORE.splitlines()
    return "\n".join(lines[k] for k in order)


def test_independent_ones_may_change_places():
    _check(BEFORE, _lines(1, 0, 2, 3))


def test_factors_may_change_places():
    _check(BEFORE, BEFORE.replace("R8, R9", "R9, R8"))


def test_a_value_may_be_elsewhere_while_it_is_wanted():
    before = "FFMA R4, R8, R9, R0\nFFMA R1, R4, R10, R1"
    _check(before, before.replace("R4", "R5"))


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (_lines(1, 2, 0, 3), "it is not the instruction that was there"),
        (BEFORE.replace("R8, R9, R0", "R8, R10, R0"), "R0 has another value behind it"),
        (BEFORE.replace("R8, R9, R0", "R8, -R9, R0"), "R0 has another value behind it"),
        (BEFORE.replace("FFMA R1, R8", "FFMA.RZ R1, R8"), "it reads other values than before"),
        (BEFORE.replace("FFMA R1, R8, R10, R1", "FFMA R1, R8, R0, R10"), "other values"),
        (BEFORE.replace("FFMA R0", "FFMA R10"), "it reads other values|another value"),
    ],
)
def test_anything_else_is_found(after, what):
    with pytest.raises(ToolkitError, match=what):
        _check(BEFORE, after)


def test_sums_keep_their_order():
    before = "FFMA R0, R2, R3, R0\nFFMA R0, R4, R5, R0"
    assert "R0 has another value" in refusal(
        ToolkitError, _check, before, "\n".join(reversed(before.splitlines()))
    )


def test_a_value_that_is_replaced_before_it_is_read_is_found():
    before = "FFMA R4, R8, R9, R0\nFFMA R5, R8, R10, R1\nSTS [R21], R4\nSTS [R22], R5"
    assert "other values" in refusal(
        ToolkitError, _check, before, before.replace("R5", "R4"), frozenset()
    )


def test_what_nobody_reads_later_may_differ():
    before = "FFMA R4, R8, R9, R0\nFFMA R0, R4, R10, R1"
    _check(before, before.replace("R4", "R7"), frozenset({0}))
    assert "R7 has another value" in refusal(
        ToolkitError, _check, before, before.replace("R4", "R7"), frozenset({0, 7})
    )


def test_a_result_of_some_threads_is_made_of_what_was_there():
    before = "FFMA R4, R8, R9, R0\n@P0 MOV R4, R5\nSTS [R20], R4"
    assert "other values" in refusal(
        ToolkitError, _check, before, before.replace("R8, R9, R0", "R8, R9, R1"), frozenset()
    )
