"""The table of numbers: it has every one of them, and every fitted one with its errors."""

import ast
import json

from benchmarks import constants

DOCUMENT = constants.ROOT / "docs" / "validation.md"


def test_every_number_has_a_row_and_every_fitted_one_its_errors(
    capsys,
):
    assert constants.main([]) == 0, capsys.readouterr().err


def test_values_are_those_of_the_code():
    found = {row.name: row.value for row in constants.rows()}
    assert found["flag_latency"] == "2,400"
    assert found["HELD_BY_CONFLICTS"] == "0.8, 60,000"
    assert found["CODE_AHEAD"] == "5"
    assert found["t4 sustained_clock_hz"] == "585,000,000"
    assert found["sm_75 units.FP64"] == "64"
    assert found["sm_100: 90 others"] == "as on sm_90"
    kinds = {row.name: row.kind for row in constants.rows()}
    assert kinds["units.LSU"] == kinds["sm_86 units.LSU"] == "not measured"


def test_a_fitted_number_without_its_errors_fails_and_says_how_to_get_them(
    tmp_path, monkeypatch, capsys
):
    errors = constants.recorded_errors()
    del errors["select h200"]["flag_latency"]
    errors["select h200"]["DIRTY_SHARE"]["values"] = {"DIRTY_SHARE": "0.5"}
    file = tmp_path / "errors.json"
    file.write_text(json.dumps(errors), encoding="utf-8")
    monkeypatch.setattr(constants, "ERRORS", file)
    assert constants.main(["--kind", "fitted"]) == 1
    other, missing = capsys.readouterr().err.splitlines()  # in the order of the files
    assert "flag_latency is fitted, and its error with and without it on select h200" in missing
    assert "--part select --device h200 --only 'flag_latency' --errors" in missing
    assert "DIRTY_SHARE is fitted: its errors on select h200 were found with" in other


def test_a_number_without_a_row_and_a_row_without_a_number_fail(
    monkeypatch,
):
    table = {
        **constants.TABLE,
        "analysis/timing/model_runs.py": {"GONE": constants.measured("once")},
    }
    monkeypatch.setattr(constants, "TABLE", table)
    found = "\n".join(constants.problems(constants.rows(), constants.recorded_errors()))
    assert "analysis/timing/model_runs.py: MEET_BY_WAITS has no row" in found
    assert "analysis/timing/model_runs.py has no number GONE" in found


def test_constants_are_found_where_they_are_written_with_a_number(tmp_path):
    module = ast.parse("A, B = 1, 2\nC: float = 2 * D\nE = D[1]\nF = {'x': 0.5}\nG = 'text'\nh = 1")
    assert list(constants._names_of_numbers(module)) == ["A", "B", "C", "F"]
    code = tmp_path / "sm.c"
    code.write_text(
        "enum { A = 4, /* B = 1, */ C, D = 1 << 2,\n       E = 3 };\n#define F 0.5\n"
        "#define G __attribute__((x))\nstatic const double H = 2.5;\n",
        encoding="utf-8",
    )
    found = {"A": "4", "D": "1 << 2", "E": "3", "F": "0.5", "H": "2.5"}
    assert constants.numbers_in(code) == found


def test_the_document_has_the_table_of_rules():
    """After a change: python -m benchmarks.constants --markdown prints it."""
    lines = constants.markdown(constants.rows(), constants.recorded_errors())
    assert "\n".join(lines) in DOCUMENT.read_text(encoding="utf-8")
