"""Sizes of folders are reported; nothing fails because of them."""

from collections import Counter

import pytest

from validation import size
from validation.__main__ import main
from validation.size import python_tokens, sizes, table, tokens


def test_tokens_are_counted_without_comments_and_docstrings():
    assert python_tokens('"""Doc."""\n\nx = 1  # one\n') == 3  # x, =, 1
    # def f ( ) : return "a"
    assert python_tokens('def f():\n    """Doc."""\n    return "a"\n') == 7
    assert tokens("a.c", b"int x = 1; /* one */ // two\n") == 5  # int x = 1 ;
    assert tokens("a.md", b"three words here") == 3
    assert tokens("a.xz", b"\xfd7zXZ\xff\xfe") == 0


def test_every_file_counts_for_its_folder(monkeypatch):
    monkeypatch.setattr(size, "tokens", lambda name, content: 1)
    found = sizes()
    assert {"analysis", "kernels", "reports", "tests", "toolkit/execution", "toolkit/sass"} <= set(
        found
    )
    assert found["toolkit/sass"] > 30
    assert found["."] >= 5


@pytest.mark.exhaustive  # all files are read as Python and as C
def test_every_folder_has_a_size():
    found = sizes()
    assert {"analysis", "kernels", "reports", "tests", "toolkit/execution", "toolkit/sass"} <= set(
        found
    )
    assert found["toolkit/sass"] > 10_000


def test_growth_is_told_against_a_commit():
    lines = list(table(Counter({"a": 1200, "b": 5}), Counter({"a": 1000, "c": 7})))
    assert [line.split() for line in lines[1:]] == [
        ["a", "1,200", "+200"],
        ["b", "5", "+5"],
        ["c", "0", "-7"],
        ["all", "1,205", "+198"],
    ]


def test_a_commit_that_does_not_exist_is_one_line(capsys):
    assert main(["size", "--against", "no-such-commit"]) == 1
    assert capsys.readouterr().err == (
        "--against no-such-commit: git knows no such commit: give another\n"
    )
