"""Programs have limits, and none goes on after the process that started it."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from tests.sampling import exhaustive
from tests.toolkit.cli.commands import started
from toolkit.machine_code.programs import run_program, stop_programs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")


def python(code, limit_s=60, **limits):
    return run_program([sys.executable, "-c", code], limit_s=limit_s, **limits)


def is_gone(process):
    """True if a process has ended, after at most 10 s."""
    deadline = time.monotonic() + 10
    status = Path(f"/proc/{process}/status")
    while time.monotonic() < deadline:
        try:
            if "State:\tZ" in status.read_text(encoding="ascii"):
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_what_a_program_prints_and_its_status_are_known():
    ran = python("import sys; print('a'); print('b', file=sys.stderr); sys.exit(7)")
    assert (ran.stdout, ran.stderr, ran.returncode) == (b"a\n", b"b\n", 7)


def test_a_program_that_takes_too_long_is_ended_with_what_it_started(tmp_path):
    code = "import os, time; os.fork() or open('{}', 'w').write(str(os.getpid())); time.sleep(60)"
    child = tmp_path / "child"
    with pytest.raises(subprocess.TimeoutExpired):
        python(code.format(child), limit_s=1)
    assert is_gone(child.read_text())


@pytest.mark.parametrize(
    ("code", "ended_by"),
    [
        ("while True: print('a' * 10**5)", signal.SIGXFSZ),
        ("bytearray(2**32)", None),
        exhaustive("while True: pass", signal.SIGKILL),  # 2 s of processor time
    ],
)
def test_a_program_is_ended_that_takes_too_much(code, ended_by, monkeypatch):
    """The limits are of disk, of memory, and of CPU time if this process does not end it."""
    monkeypatch.setattr(subprocess.Popen, "wait", _patient(subprocess.Popen.wait))
    ran = python(code, limit_s=1, most_output_bytes=10**6, most_memory_bytes=2**30)
    if ended_by is None:
        assert b"MemoryError" in ran.stderr
    elif ended_by == signal.SIGXFSZ:  # which Python turns into an error
        assert b"File too large" in ran.stderr
    else:
        assert ran.returncode == -ended_by
    assert len(ran.stdout) <= 10**6


def _patient(wait):
    return lambda process, timeout=None: wait(process, 30)


def test_whoever_waits_for_a_program_hears_that_it_was_ended():
    found = []
    thread = Thread(target=lambda: found.append(python("import time; time.sleep(60)").returncode))
    thread.start()
    while not found and thread.is_alive():
        time.sleep(0.05)
        stop_programs()
    thread.join()
    assert found == [-signal.SIGKILL]


COMPILES_FOR_EVER = """
import sys
from toolkit.machine_code import compiler_process as compiler
doubled = "#define A0 0\\n" + "".join(f"#define A{n} A{n - 1}+A{n - 1}\\n" for n in range(1, 60))
child = compiler._Child()
print(child._process.pid, flush=True)
compiler._idle[compiler.os.getpid()] = [child]
asked = {"name": "k.cu", "headers": {}, "options": (), "expression": None}
compiler.compile_apart(doubled + "int x = A59;", **asked)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_compiler_ends_with_the_process_that_asked_it(how):
    with started("-c", COMPILES_FOR_EVER) as process:
        compiler = int(process.stdout.readline())
        time.sleep(0.5)
        assert Path(f"/proc/{compiler}").exists()
        process.send_signal(how)
        assert is_gone(compiler)


RUNS = """
from toolkit.machine_code import programs
import signal, sys, threading
signal.signal(signal.SIGTERM, signal.default_int_handler)
print(flush=True)
programs.run_program([sys.executable, "-c", sys.argv[1]], limit_s=60)
"""


def test_a_program_ends_with_the_process_that_runs_it(tmp_path):
    child = tmp_path / "child"
    code = f"import os, time; open({str(child)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    with started("-c", RUNS, code) as process:
        while not child.exists() or not child.read_text():
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    assert is_gone(child.read_text())
