"""The size of each folder, in code tokens: comments, docstrings and blank lines are free.

A limit may be lowered freely. Raising one needs a reason in docs/decisions, which has no limit.
"""

import ast
import io
import re
import subprocess
import tokenize

import pytest

from validation import ROOT

LIMITS = {
    "analysis": 66_500,
    "kernels": 22_020,
    "reports": 40_670,
    "toolkit/cli": 16_820,
    "toolkit/execution": 25_430,
    "toolkit/gpu": 14_120,
    "toolkit/launch": 3_700,
    "toolkit/machine_code": 18_220,
    "toolkit/microbenchmarks": 13_100,
    "toolkit/native": 1_010,
    "toolkit/profiling": 12_120,
    "toolkit/reorder": 11_560,
    "toolkit/rungs": 4_970,
    "toolkit/sass": 100_340,
    "toolkit/store": 6_420,
    "toolkit/tuning": 4_670,
    "benchmarks": 30_010,
    "docs": 48_800,
    "tests": 296_200,
    "validation": 112_350,
}

WITHOUT_MEANING = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
C_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|\d[\w.]*|[^\s\w]')
C_FILES = {".c", ".h", ".cu", ".cuh", ".js"}


def python_tokens(text):
    """Tokens of a Python module without comments and docstrings."""
    docstrings = {
        (node.body[0].lineno, node.body[0].col_offset)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node, clean=False) is not None
    }
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(t.type not in WITHOUT_MEANING and t.start not in docstrings for t in found)


def tokens(path):
    """Code tokens of a file; words of a text; 0 for data that is compressed."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return 0
    if path.suffix == ".py":
        return python_tokens(text)
    if path.suffix in C_FILES:
        return len(C_TOKEN.findall(C_COMMENT.sub(" ", text)))
    return len(text.split())


def size_of(folder):
    """Tokens of all files of a folder that git tracks or would add, without decisions."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z", folder]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {name for name in listed.split("\0") if not name.startswith("docs/decisions/")}
    return sum(tokens(ROOT / name) for name in names if (ROOT / name).is_file())


def test_tokens_are_counted_without_comments_and_docstrings():
    assert python_tokens('"""Doc."""\n\nx = 1  # one\n') == 3  # x, =, 1
    assert (
        python_tokens('def f():\n    """Doc."""\n    return "a"\n') == 7
    )  # def f ( ) : return "a"


SUPPORT = ("benchmarks", "docs", "tests", "validation")


@pytest.mark.parametrize(
    "folder",
    [pytest.param(x, marks=pytest.mark.exhaustive) if x in SUPPORT else x for x in LIMITS],
)
def test_a_folder_does_not_grow(folder):
    size = size_of(folder)
    assert size <= LIMITS[folder], f"{folder}: {size:,} tokens: remove some, or give the reason"
