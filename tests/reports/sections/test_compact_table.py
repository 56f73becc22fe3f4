"""The ladder on a terminal shows what the page's table has."""

import pytest

from reports.sections.compact_table import compact_table
from tests.reports.profiles_by_hand import view
from tests.reports.sections.test_ladder_table import ladder_table


def cells(table, grade, title):
    """The texts of one column; absent values are empty."""
    (place,) = (
        k for k, one in enumerate(table.columns) if (one.grade, one.title) == (grade, title)
    )
    return [row[place].text.replace("–", "") for row in table.rows]


@pytest.mark.parametrize(
    ("grade", "on_page", "on_terminal"),
    [
        ("measured", "time", "time"),
        ("measured", "of cuBLAS", "of cuBLAS"),
        ("theory", "attainable", "roof"),
        ("compiled", "registers per thread", "regs"),
    ],
)
def test_a_column_is_that_of_the_page(on_gpu, grade, on_page, on_terminal):
    page = ladder_table(view(on_gpu))
    terminal = compact_table(view(on_gpu), 200)
    assert cells(terminal, grade, on_terminal) == cells(page, grade, on_page)


def test_a_narrow_terminal_has_fewer_columns(on_gpu):
    wide, narrow = (compact_table(view(on_gpu), width) for width in (200, 80))
    assert {one.title for one in narrow.columns} < {one.title for one in wide.columns}
    assert not any(cell.details for row in wide.rows for cell in row)
