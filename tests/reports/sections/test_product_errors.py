"""The table of errors, and the sentence on who is less accurate than cuBLAS."""

from dataclasses import replace

import pytest

from analysis.product_errors import ProductError
from reports.ladder import View
from reports.sections import product_errors
from reports.sections.ladder_rows import rows
from reports.sections.ladder_summary import summary
from tests.records_by_hand import measured, record
from tests.reports import profiles_by_hand
from tests.reports.profiles_by_hand import SHAPE

OF_CUBLAS = {"normal": 2e-8, "uniform": 6e-7, "one-term": 3e-8, "k-scaled-30": 3e-8}


def errors(rms, shape=SHAPE):
    return tuple(
        ProductError(
            data=data, shape=shape, seed=1, elements=65_536, rms=one, maximum=one and 4 * one
        )
        for data, one in rms.items()
    )


def view(**of_rungs):
    """cuBLAS, and rungs with the errors of `of_rungs` by their name."""
    records = [
        record(SHAPE, name.replace("_", "-"), rung=20 + n, errors=found, measured=measured(1e-3))
        for n, (name, found) in enumerate(of_rungs.items())
    ]
    cublas = record(SHAPE, "cublas", rung=None, errors=errors(OF_CUBLAS), measured=measured(2e-3))
    return View(replace(profiles_by_hand.profile(), records=(*records, cublas)), SHAPE)


def cells(table):
    return [[(cell.text, *cell.details) for cell in row] for row in table.rows]


def test_a_row_has_rms_maximum_and_the_ratio_to_cublas():
    found = product_errors.table(view(parts=errors({"normal": 1e-8, "one-term": 9e-8})))
    assert [column.title for column in found.columns] == [
        "variant", "normal", "uniform", "k-scaled-30", "one-term"
    ]  # fmt: skip
    (parts, cublas) = found.rows
    assert [cell.text for cell in parts] == ["parts", "1.00e-8", "–", "–", "9.00e-8"]
    assert parts[1].details == ("max 4.00e-8", "0.500× cuBLAS")
    assert [cell.is_worse for cell in parts] == [None, False, None, None, True]
    assert cublas[1].details == ("max 8.00e-8",)


def test_who_is_worse_than_cublas_says_so():
    found = view(
        good=errors({"normal": 2.05e-8}),  # within what two seeds differ by
        parts=errors({"normal": 1e-8, "one-term": 9e-8}),
        scaled=errors({"k-scaled-30": None}),
        naive=errors({name: 2 * rms for name, rms in OF_CUBLAS.items()}),
    )
    worse, where = product_errors.sentences(found)
    assert worse == (
        "Less accurate than cuBLAS: parts on one-term (3.00×); scaled on k-scaled-30 (not finite); "
        "naive on 4 of 10 classes, up to 2.00×."
    )
    assert where == (
        "Errors: against float64, relative to |A||B|, of 65,536 elements at most, "
        "at 4096 × 4096 × 4096."
    )


def test_errors_of_another_shape_are_not_compared():
    small = replace(SHAPE, m=128)
    found = product_errors.table(view(parts=errors({"one-term": 9e-8}, small)))
    assert found.rows[0][4].details == ("max 3.60e-7",)


def test_a_result_that_is_not_finite_cannot_be_overlooked():
    (row, _) = product_errors.table(view(parts=errors({"normal": None}))).rows
    assert (row[1].text, row[1].is_bad) == ("not finite", True)


def test_without_errors_there_is_nothing():
    found = View(profiles_by_hand.profile(), SHAPE)
    assert not product_errors.has_errors(found)
    assert list(product_errors.sentences(found)) == []
    assert ("error", "rms", True) not in [
        (column.title, column.grade, column.is_number) for column in summary(rows(found)).columns
    ]


@pytest.mark.parametrize("label", ["parts", "cuBLAS"])
def test_the_summary_has_the_error_on_normal_numbers(label):
    found = summary(rows(view(parts=errors({"normal": 1e-8}))))
    column = [one.title for one in found.columns].index("error")
    texts = {row[0].text.split()[-1]: row[column].text for row in found.rows}
    assert texts[label] == {"parts": "1.00e-8", "cuBLAS": "2.00e-8"}[label]
