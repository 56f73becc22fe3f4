from dataclasses import replace

import pytest

from analysis.devices import find_device
from kernels.selection import parse_selection
from tests.toolkit.reorder.code_by_hand import code
from toolkit.machine_code.patching import (
    REUSE,
    REUSE_BITS,
    STALL,
    WAIT,
    WAIT_BITS,
    field,
    with_field,
)
from toolkit.reorder.blocks import blocks
from toolkit.reorder.hazards import kept_wrongly, soonest, too_soon, unready
from toolkit.reorder.kernel import code_of
from toolkit.rungs.launch import compile_for


def _unready(text):
    made = code(text)
    return [said.partition(": ")[2] for said in unready(made, blocks(made.instructions))]


def test_a_load_is_waited_for():
    assert _unready("LDS R4, [R20]; 1 w0\nFFMA R0, R4, R8, R0; 1 W0") == []
    assert _unready("LDS R4, [R20]; 1 w0\nFFMA R0, R4, R8, R0") == [
        "R4 is read before it was loaded"
    ]
    assert _unready("LDS R4, [R20]; 1 w0\nFFMA R0, R4, R8, R0; 1 W1") != []
    assert _unready("LDS R4, [R20]; 1 w0\nFFMA R4, R8, R8, R0") == [
        "R4 is written before it was loaded"
    ]


def test_a_later_load_stands_for_those_of_before():
    text = "LDS R4, [R20]\nLDS R5, [R21]; 1 w0\nFFMA R0, R4, R5, R0; 1 W0"
    assert _unready(text) == []
    assert _unready(text.replace("; 1 W0", "")) != []


def test_a_load_of_the_turn_before_is_waited_for():
    text = "FFMA R0, R4, R8, R0{}\nLDS R4, [R20]; 1 w0\nBRA 0x0"
    assert _unready(text.format("; 1 W0")) == []
    assert _unready(text.format("")) == ["R4 is read before it was loaded"]


def test_what_is_to_be_stored_is_not_replaced():
    text = "STS [R20], R4; 1 r1\nFFMA R4, R8, R9, R0{}"
    assert _unready(text.format("; 1 W1")) == []
    assert _unready(text.format("")) == ["R4 is written before it was stored"]


def test_loads_and_stores_keep_their_order():
    """What a load brings comes after an earlier store has read its registers."""
    assert _unready("STS [R20], R4\nLDS R4, [R21]; 1 w0\nFFMA R0, R4, R8, R0; 1 W0") == []
    assert _unready("STS [R20], R4\nFFMA R4, R8, R9, R0") != []
    assert _unready("STS [R20], R4\nSTS [R20], R5; 1 r1\nFFMA R4, R8, R9, R0; 1 W1") == []


def test_clocks_between_opcodes_are_the_fewest_on_any_way():
    made = code("FFMA R0, R8, R9, R0; 5\nFMUL R1, R0, R2; 2\nFMUL R3, R0, R2\nBRA 0x0; 6")
    found = soonest(made, blocks(made.instructions))
    # to the next turn: 5 + 2 + 1 + 6
    assert found == {("FFMA", "FMUL"): 5, ("FFMA", "FFMA"): 14}


def test_an_ffma_reads_another_one_after_4_clocks_whatever_the_compiler_did():
    assert too_soon({("FFMA", "FFMA"): 9}, {("FFMA", "FFMA"): 4}) == []
    assert too_soon({("FFMA", "FFMA"): 9}, {("FFMA", "FFMA"): 3}) == [
        "FFMA reads the result of FFMA after 3 clocks, not 4"
    ]
    assert len(too_soon({("FFMA", "STG"): 9}, {("FFMA", "STG"): 8})) == 1
    assert len(too_soon({}, {("FFMA", "STG"): 8})) == 1


def test_a_register_that_is_replaced_cannot_be_kept():
    made = code("FFMA R8, R8, R9, R0\nFFMA R1, R8, R10, R1")
    words = [with_field(made.words[0], REUSE, REUSE_BITS, 1), made.words[1]]
    assert len(kept_wrongly(replace(made, words=words))) == 1
    words[0] = with_field(made.words[0], REUSE, REUSE_BITS, 2)
    assert kept_wrongly(replace(made, words=words)) == []


@pytest.fixture(scope="module")
def compiled():
    return code_of(compile_for(find_device("h200"), parse_selection("vectorized")))


def test_compiled_code_is_ready(compiled):
    assert unready(compiled, blocks(compiled.instructions)) == []
    assert kept_wrongly(compiled) == []


def test_every_wait_of_a_multiply_add_is_needed(compiled):
    """Without any one of them something is not ready: none of these checks is idle."""
    of_kernel = blocks(compiled.instructions)
    waiting = [k for k in compiled.operands if field(compiled.words[k], WAIT, WAIT_BITS)]
    assert len(waiting) > 20
    for position in waiting[:8]:
        words = list(compiled.words)
        words[position] = with_field(words[position], WAIT, WAIT_BITS, 0)
        assert unready(replace(compiled, words=words), of_kernel), hex(16 * position)


def test_a_shorter_stall_is_found(compiled):
    of_kernel = blocks(compiled.instructions)
    before = soonest(compiled, of_kernel)
    position = next(
        k
        for k, i in enumerate(compiled.instructions)
        if i.opcode == "STG" and compiled.instructions[k - 1].opcode == "FFMA"
    )
    words = list(compiled.words)
    words[position - 1] = with_field(words[position - 1], STALL, 4, 4)
    after = soonest(replace(compiled, words=words), of_kernel)
    assert before["FFMA", "STG"] == 5
    assert too_soon(before, after) == ["STG reads the result of FFMA after 4 clocks, not 5"]
