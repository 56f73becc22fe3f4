"""Settings that commands make before they import anything large."""

import subprocess
import sys

import pytest

from toolkit.launch import process_memory

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


GB = 10**9


@pytest.mark.parametrize(
    ("free", "own", "everything", "ends"),
    [
        (0.5 * GB, 12 * GB, 24 * GB, True),
        (0.6 * GB, 12 * GB, 24 * GB, False),  # more than 2^29 bytes are free
        (0.5 * GB, 2 * GB, 24 * GB, False),  # others have taken the memory
        (0.2 * GB, 2 * GB, 4 * GB, False),  # 5% of a small machine
        (0.1 * GB, 2 * GB, 4 * GB, True),
    ],
)
def test_a_command_ends_before_the_memory_does(free, own, everything, ends):
    found = process_memory.out_of_memory(free, own, everything)
    assert bool(found) == ends
    assert not ends or f"this command takes {own / GB:.1f} GB" in found


def test_a_command_without_memory_says_so_in_one_line():
    code = """
import time
import toolkit.__main__ as command
from toolkit.launch import host_resources, process_memory
host_resources.available_bytes = lambda: 1e6
host_resources.memory_bytes = lambda: 1e8
process_memory.end_before_memory_does(command._end_now)
time.sleep(20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: memory runs out: this command takes ")
    assert done.stderr.count("\n") == 1


# What ends last was registered first.
LOOKS_UNTIL_THE_END = """
import atexit, threading
from toolkit.launch import process_memory
atexit.register(lambda: print(len(threading.enumerate())))
process_memory.LOOKS_EVERY_S = 0.001
process_memory.end_before_memory_does(print)
"""


def test_no_thread_imports_numpy_while_python_ends():
    """`--version` ended with a segmentation fault in 4 of 60 runs."""
    done = subprocess.run(
        [sys.executable, "-c", LOOKS_UNTIL_THE_END], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"
