import random
from itertools import product

from hypothesis import example, given
from hypothesis import strategies as st

from tests.toolkit.reorder.code_by_hand import code
from toolkit.reorder.blocks import blocks
from toolkit.reorder.flow import MULTIPLY_ADD_CLOCKS
from toolkit.reorder.freedom import freedom
from toolkit.reorder.placement import problem
from toolkit.reorder.schedule import late_clocks, ordered


def _problem(text):
    made = code(text)
    (block,) = blocks(made.instructions)
    return problem(made, freedom(made, block, others=0))


def _outer_product(rows, columns, sum_of):
    """Column by column, as compilers like it: a of R200 on, b of R220 on."""
    return "\n".join(
        f"FFMA R{sum_of[i, j]}, R{200 + i}, R{220 + j}, R{sum_of[i, j]}"
        for j, i in product(range(columns), range(rows))
    )


def test_an_outer_product_loses_nothing_but_at_its_beginning():
    # each sum in the bank that its column of b leaves free
    sums = {(i, j): 16 * i + 2 * (j // 2) + 1 - j % 2 for i in range(8) for j in range(8)}
    asked = _problem(_outer_product(8, 8, sums))
    plain = late_clocks(asked, [(n, False) for n in range(64)])
    found = ordered(asked)
    assert plain > 20  # in each column, every second row reads two registers of one bank
    assert late_clocks(asked, found) <= 1  # the first one has three registers to read


def test_with_the_sums_of_a_column_in_its_bank_the_even_rows_are_walked_by_columns():
    sums = {(i, j): 16 * i + j for i in range(4) for j in range(4)}
    asked = _problem(_outer_product(4, 4, sums))
    found = ordered(asked)
    assert late_clocks(asked, found) < late_clocks(asked, [(n, False) for n in range(16)])


def test_all_are_placed_once():
    sums = {(i, j): 8 * i + j for i in range(3) for j in range(5)}
    found = ordered(_problem(_outer_product(3, 5, sums)))
    assert sorted(number for number, _ in found) == list(range(15))


@given(st.integers(0, 10_000))
@example(2751)  # two are due at one position
def test_no_order_breaks_a_bound(seed):
    chance = random.Random(seed)
    asked = _problem("\n".join(_line(chance) for _ in range(30)))
    found = ordered(asked)
    if found is not None:
        _hold(asked, [number for number, _ in found])


def _line(chance):
    r = [chance.randrange(12) for _ in range(4)]
    if chance.random() < 0.1:
        return f"LDS R{r[0]}, [R{20 + r[1]}]; 2 w0"
    wait = "; 1 W0" if chance.random() < 0.2 else ""
    return f"FFMA R{r[0]}, R{r[1]}, R{r[2]}, R{r[3]}{wait}"


def _hold(asked, order):
    free, position_of = asked.freedom, {number: position for position, number in enumerate(order)}
    for number, position in position_of.items():
        assert free.earliest[number] <= position <= free.latest[number]
        assert all(position_of[other] < position for other in free.after[number])
        for other in free.results[number]:
            clocks = free.clocks[position] - free.clocks[position_of[other]]
            assert clocks >= MULTIPLY_ADD_CLOCKS
