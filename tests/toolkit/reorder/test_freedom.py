from tests.toolkit.reorder.code_by_hand import code
from toolkit.reorder.blocks import blocks
from toolkit.reorder.freedom import freedom


def _freedom(text, others=0):
    made = code(text)
    (block,) = blocks(made.instructions)
    return freedom(made, block, others)


def test_independent_ones_may_go_anywhere():
    found = _freedom("FFMA R0, R8, R9, R0\nFFMA R1, R8, R9, R1\nFFMA R2, R8, R9, R2")
    assert (found.earliest, found.latest) == ([0, 0, 0], [2, 2, 2])
    assert found.after == [frozenset()] * 3


def test_a_sum_keeps_its_order():
    found = _freedom("FFMA R0, R8, R9, R0; 4\nFFMA R0, R10, R11, R0")
    assert found.after[1] == found.results[1] == {0}


def test_a_register_is_not_replaced_before_it_was_read():
    found = _freedom("FFMA R0, R8, R9, R0\nFFMA R8, R10, R11, R1")
    assert found.after[1] == {0}
    assert found.results[1] == frozenset()


def test_what_a_load_brings_is_read_where_it_was_waited_for_or_later():
    found = _freedom(
        """FFMA R0, R8, R9, R0
        LDS R4, [R20]; 1 w0
        FFMA R1, R8, R9, R1
        FFMA R2, R8, R9, R1; 1 W0
        FFMA R3, R8, R4, R1"""
    )
    # the third position waits, and the last one may move up to it; so may not what is there move
    # up: R2 is first touched there, and may be what is waited for
    assert found.earliest == [0, 0, 2, 2]


def test_what_a_load_replaces_is_read_before_it():
    found = _freedom(
        "FFMA R0, R4, R9, R0\nFFMA R1, R8, R9, R1\nLDS R4, [R20]; 1 w0\nFFMA R2, R8, R9, R2"
    )
    assert found.latest == [1, 2, 2]


def test_what_a_load_of_before_brings_is_waited_for():
    """R4 is loaded by an earlier turn of a loop."""
    found = _freedom("FFMA R0, R8, R9, R0\nFFMA R0, R8, R9, R0; 1 W2\nFFMA R0, R4, R9, R0")
    assert found.earliest == [0, 0, 1]


def test_a_result_is_in_time_for_an_instruction_that_stays():
    text = "FFMA R0, R8, R9, R0\n" + "FFMA R1, R8, R9, R2\n" * 20 + "STG.E desc[UR4][R6.64], R0"
    found = _freedom(text)
    # issued 21 clocks before the store, and nobody knows whether fewer than 14 are enough
    assert found.latest[0] == 21 - 14


def test_a_result_stays_as_close_to_a_reader_as_the_compiler_put_it():
    found = _freedom("FFMA R1, R8, R9, R1\nFFMA R0, R8, R9, R0; 5\nSTG.E desc[UR4][R6.64], R0")
    assert found.latest[1] == 1


def test_results_of_the_block_before_are_in_time():
    text = "FFMA R1, R8, R9, R1\n" * 6 + "FFMA R0, R8, R9, R0"
    found = _freedom(text, others=3)
    assert found.earliest[6] == 3


def test_the_block_behind_gets_its_results_in_time():
    found = _freedom("\n".join(f"FFMA R{n}, R8, R9, R{n}" for n in range(5)), others=4)
    # four clocks before the block's end, which is clock 5, or where the compiler had it
    assert found.latest == [1, 1, 2, 3, 4]


def test_multiply_adds_that_some_threads_do_not_execute_stay():
    found = _freedom("FFMA R0, R8, R9, R0\n@P0 FFMA R1, R8, R9, R1\nFFMA R2, R8, R9, R2")
    assert list(found.positions) == [0, 2]
