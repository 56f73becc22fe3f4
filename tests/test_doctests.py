"""Every example in a docstring does what it says."""

import doctest
import re
from importlib import import_module

import pytest

from validation import ROOT

MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in ("analysis", "kernels", "reports", "toolkit")
    for path in sorted((ROOT / package).rglob("*.py"))
    if re.search(r"^\s*>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
]


def test_there_are_examples():
    assert "analysis.errors" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
