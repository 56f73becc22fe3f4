"""The phases of a small tiled product, drawn."""

from __future__ import annotations

from analysis.result import Profile
from reports.figures import phases


def test_the_slider_goes_through_loads_and_reads_of_each_phase(in_trace: Profile) -> None:
    figure = phases.figure(in_trace.phases)
    (slider,) = figure.layout.sliders
    assert [step.label for step in slider.steps] == [
        "phase 0: load", "phase 0: read", "phase 1: load", "phase 1: read",
    ]  # fmt: skip
    assert [trace.visible for trace in figure.data] == [True, False, False, False]


def test_elements_name_the_thread_that_loads_and_count_those_that_read(in_trace: Profile) -> None:
    loads, reads, later, _ = phases.figure(in_trace.phases).data
    # A first, row by row: t0 and t1 load A[0][0] and A[0][1]
    assert list(loads.text[:8]) == ["t0", "t1", "", "", "t2", "t3", "", ""]
    assert list(later.text[:8]) == ["", "", "t0", "t1", "", "", "t2", "t3"]
    assert [one for one in reads.text if one] == ["2×"] * 8
    assert reads.hovertext[0] == "A[0][0]<br>read by thread 0 and thread 1"


def test_each_matrix_has_its_name_above_its_first_column(in_trace: Profile) -> None:
    figure = phases.figure(in_trace.phases)
    squares = figure.data[0]
    half = len(squares.x) // 2  # A's elements first
    first_columns = [min(squares.x[:half]), min(squares.x[half:])]
    assert [(one.text, one.x) for one in figure.layout.annotations] == [
        ("A", first_columns[0]),
        ("B", first_columns[1]),
    ]


def test_the_table_has_a_row_per_thread(in_trace: Profile) -> None:
    assert in_trace.phases is not None
    table = phases.table(in_trace.phases)
    assert [column.title for column in table.columns][:3] == [
        "thread", "phase 0: loads", "phase 0: reads",
    ]  # fmt: skip
    assert [cell.text for cell in table.rows[3]] == [
        "3, C[1][1]",
        "A[1][1] and B[1][1]",
        "A[1][0], A[1][1], B[0][1] and B[1][1]",
        "A[1][3] and B[3][1]",
        "A[1][2], A[1][3], B[2][1] and B[3][1]",
    ]


def test_without_a_trace_it_says_so() -> None:
    assert not phases.figure(None).data
