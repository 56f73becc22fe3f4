"""The ladder as a short table: rates, speedup and reason of every rung."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analysis.records.profile import Grade
from reports import text
from reports.ladder import CUBLAS
from reports.sections import rungs
from reports.sections.ladder_rows import Row, Rows
from reports.sections.product_errors import normal_error
from reports.sections.table import Table, Title, plain_table

TERA = 1e12

ERROR: Title = ("error", "rms", True)

_Column = tuple[Title, Callable[[Row], str]]


def summary(shown: Rows) -> Table:
    """A row per rung, then cuBLAS and the peaks; columns without any number are left out."""
    columns = [one for one in _columns(shown) if any(one[1](row) for row in shown.rungs)]
    titles: list[Title] = ["rung", *(title for title, _ in columns)]
    found = [[_name(row), *(cell(row) for _, cell in columns)] for row in shown.rungs]
    if shown.grade != Grade.THEORY:
        cublas = next((one for one in shown.view.records if one.variant == CUBLAS), None)
        error = normal_error(shown.view, cublas) if cublas else ""
        found += [_reference(titles, *one, error=error) for one in _references(shown)]
    return plain_table(titles, found)


def _columns(shown: Rows) -> tuple[_Column, ...]:
    if shown.grade == Grade.THEORY:
        return (
            (("TFLOP/s", "at most", True), rate),
            (("FLOP/B", "of loads", True), _intensity),
            ("limited by", lambda row: row.record.theory.limiter if row.record.theory else ""),
        )
    grade = "rec." if shown.grade == Grade.RECORDED else "meas."
    return (
        (("TFLOP/s", grade, True), rate if shown.is_measured else lambda _: ""),
        (("TFLOP/s", "pred.", True), predicted_rate),
        (("% of", "cuBLAS", True), of_cublas),
        (("speedup", "", True), speedup),
        (ERROR, lambda row: row.error),
        ("why", lambda row: rungs.brief(row.step) if row.step else ""),
    )


def _name(row: Row) -> str:
    return f"{row.record.rung or '':>2} {row.label}"


def rate(row: Row) -> str:
    """TFLOP/s of the bar to three digits, or nothing."""
    return text.three_digits(row.rate / TERA) if row.rate else ""


def predicted_rate(row: Row) -> str:
    return text.three_digits(row.predicted.flop_per_s / TERA) if row.predicted else ""


def of_cublas(row: Row) -> str:
    return text.three_digits(100 * row.of_cublas) if row.of_cublas else ""


def speedup(row: Row) -> str:
    return text.three_digits(row.speedup) if row.speedup else ""


def _intensity(row: Row) -> str:
    return text.per_each(row.record.theory.intensity_loads) if row.record.theory else ""


def _references(shown: Rows) -> Sequence[tuple[str, float, bool]]:
    """Name and rate of what rungs are compared with, and whether it is cuBLAS."""
    roofs = [(name, rate, False) for name, rate in shown.roofs]
    return [("cuBLAS", shown.cublas.flop_per_s, True), *roofs] if shown.cublas else roofs


def _reference(
    titles: Sequence[Title], name: str, rate: float, is_cublas: bool, *, error: str
) -> list[str]:
    cells = [f"   {name}", text.three_digits(rate / TERA)]
    for title in titles[2:]:
        is_share = is_cublas and not isinstance(title, str) and title[:2] == ("% of", "cuBLAS")
        cells.append("100" if is_share else error if is_cublas and title == ERROR else "")
    return cells
