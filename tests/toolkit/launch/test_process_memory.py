"""Settings that commands make before they import anything large."""

import subprocess
import sys

import pytest

PRINTED = """
import runpy, sys
sys.argv = ["toolkit", "list", "devices"]
try:
    runpy.run_module("toolkit", run_name="__main__", alter_sys=True)
except SystemExit:
    pass
import gc, os, numpy
print(gc.get_threshold()[0], os.environ["NUMPY_MADVISE_HUGEPAGE"], gc.get_freeze_count() > 0)
"""


@pytest.mark.parametrize(("given", "pages"), [(None, "0"), ("1", "1")])
def test_a_command_looks_for_garbage_rarely_and_keeps_a_choice_of_pages(monkeypatch, given, pages):
    monkeypatch.delenv("NUMPY_MADVISE_HUGEPAGE", raising=False)
    if given is not None:
        monkeypatch.setenv("NUMPY_MADVISE_HUGEPAGE", given)
    ran = subprocess.run(
        [sys.executable, "-c", PRINTED], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1].split() == ["50000", pages, "True"]
