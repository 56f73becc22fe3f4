"""The mutants are in the product still, and what plants them in a copy of it works."""

import ast
import subprocess
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

from tests.mutants.edits import Mutant, NotFoundError, apply, find, functions, stored
from tests.mutants.generate import code_of, edits_of, original_assembly
from tests.mutants.printed import COMMIT, DRAWN, FOLDERS, MUTANTS, as_drawn, drawn
from tests.mutants.run import beside
from tests.refusals import refusal
from validation import ROOT

MOST_LOST = 9  # of 90: a function may change, and `generate.py` draws others then

PYTHON = '''
class Box:
    def area(self, width: int) -> int:
        """The area."""
        if width < 0:
            return 0
        return width * 2
        return width * 2

def area(width): return width * 2
'''
C = """/* int commented(void) { return 1; } */
#define DEFINED(x) { x }
static int area(int width) {
    if (width < 0) { return '}'; }
    return width * 2; /* } */
}

static int other(void) { return 1; }
"""


@pytest.fixture
def tree(tmp_path):
    for package in ("analysis", "kernels", "reports", "toolkit"):
        (tmp_path / package).mkdir()
    (tmp_path / "analysis/box.py").write_text(PYTHON)
    (tmp_path / "toolkit/box.c").write_text(C)
    return tmp_path


def tree_of(lines):
    return ast.dump(ast.parse(dedent("\n".join(lines))))


def mutant(**changes):
    fields = {"package": "analysis", "language": "python", "function": "Box.area"}
    edit = {"edit": "constant", "original": "return width * 2", "replacement": "return width * 3"}
    return Mutant(**fields | edit | changes)  # type: ignore[arg-type]


@pytest.mark.exhaustive  # of the tests, not of the product
def test_the_stored_mutants_are_in_the_product_once():
    lost = []
    for each in stored():
        try:
            path, line = find(ROOT, each)
        except NotFoundError as error:
            lost.append(str(error))
            continue
        if path.suffix == ".py":
            lines = path.read_text(encoding="utf-8").split("\n")
            # of functions around the line, the last is the inner one: the others take longer
            around = [f for f in functions(path) if f.first <= line < f.last][-1]
            before = tree_of(lines[around.first : around.last])
            lines[line] = lines[line].replace(each.original, each.replacement)
            assert tree_of(lines[around.first : around.last]) != before, each
    remedy = "python -m tests.mutants.generate draws others"
    assert len(lost) <= MOST_LOST, "\n".join([*lost, remedy])


def test_every_package_has_mutants_and_a_third_are_of_c():
    languages = Counter((m.package, m.language) for m in stored() if not m.equivalent)
    assert languages.total() == 90
    assert languages["analysis", "c"] + languages["toolkit", "c"] == 30
    assert set(languages) == {
        (p, "python") for p in ("analysis", "kernels", "reports", "toolkit")
    } | {
        ("analysis", "c"),
        ("toolkit", "c"),
    }


def test_a_mutant_is_found_by_its_function_in_whatever_file(tree):
    (tree / "analysis/box.py").rename(tree / "analysis/other.py")
    assert apply(tree, mutant()).name == "other.py"
    text = (tree / "analysis/other.py").read_text()
    assert text == PYTHON.replace("return width * 2\n", "return width * 3\n", 1)


def test_equal_lines_of_a_function_are_counted(tree):
    assert find(tree, mutant())[1] == 6
    assert find(tree, mutant(occurrence=1))[1] == 7


@pytest.mark.parametrize(
    "changes", [{"occurrence": 2}, {"function": "area.Box"}, {"original": "return"}]
)
def test_what_is_not_there_is_not_planted(tree, changes):
    assert "found 0 times" in refusal(NotFoundError, apply, tree, mutant(**changes))


def test_what_is_there_twice_is_not_planted(tree):
    (tree / "analysis/copy.py").write_text(PYTHON)
    assert "found 2 times" in refusal(NotFoundError, apply, tree, mutant())


def test_functions_of_c_end_at_their_brace(tree):
    found = [(each.name, each.first, each.last) for each in functions(tree / "toolkit/box.c")]
    assert found == [("area", 2, 6), ("other", 7, 8)]


def test_beside_a_file_are_those_that_mirror_its_folder():
    assert beside(Path("analysis/timing/costs.py")) == "tests/analysis/timing"
    assert beside(Path("toolkit/sass/core/integer.c")) == "tests/toolkit/sass"
    assert beside(Path("setup.py")) == ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "    if (a < b) { return 1; }",
            {"if (a <= b) { return 1; }", "if (!(a < b)) { return 1; }"},
        ),
        ("    x = f(a, b) + c", {"x = f(b, a) + c", "x = f(a, b) - c", "x = f(a, b)"}),
        ("    if a and not b:", {"if a or not b:", "if not (a and not b):"}),
        ("    self.add(one)", {"pass"}),
        ("    store(at, 3);", {"store(at, 4);", ";"}),
    ],
)
def test_a_line_is_edited_as_somebody_could_by_mistake(line, expected):
    found = {(line[:first] + text + line[last:]).strip() for _, first, last, text in edits_of(line)}
    assert expected <= found


def test_text_is_no_site_of_an_edit(tree):
    code = code_of(tree / "analysis/box.py")
    assert code[3].strip() == ""  # a docstring
    assert code[4] == "        if width < 0:"


def test_c_of_the_product_compiles_so_that_mutants_of_it_are_drawn():
    assert original_assembly(ROOT / "analysis/traffic")


def test_c_that_does_not_compile_without_a_mutant_is_no_reason_to_draw_another(tree):
    (tree / "toolkit/box.c").write_text("int broken(void) { return missing; }")
    assert "does not compile" in refusal(RuntimeError, original_assembly, tree / "toolkit")


def test_mutants_of_printed_numbers_are_of_three_folders_and_two_languages():
    found = stored(DRAWN)
    assert len(set(found)) == MUTANTS
    assert {each.package for each in found} == set(FOLDERS)
    assert {each.language for each in found} == {"python", "c"}
    assert len({each.function for each in found}) == MUTANTS


@pytest.mark.exhaustive  # compiles C for each mutant of it
def test_the_seed_draws_the_stored_mutants_of_printed_numbers_again():
    if subprocess.run(["git", "cat-file", "-e", COMMIT], cwd=ROOT, check=False).returncode:
        pytest.skip("git does not have the commit that they are drawn from")
    assert drawn() == as_drawn()
