"""Remedies as a table."""

from reports.sections.remedies import remedies_table
from tests.reports.launches import REMEDIES


def test_what_was_made_has_its_saving_and_other_remedies_the_most_that_they_save():
    table = remedies_table(REMEDIES)
    cells = [[cell.text for cell in row] for row in table.rows]
    assert [row[2:] for row in cells] == [
        ["2.00", "4.00"],  # 6 - 4 µs
        ["1.90", "4.10"],
        ["≤ 0.500", ""],
    ]
