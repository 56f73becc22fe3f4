"""Forked children: they begin alike, run as who asks for them, and their end is told."""

import os
import signal
import subprocess

import pytest

from tests.forks import forked

BEFORE = "import os, signal, sys, time; numbers = []"


def run(code, **how):
    """Text that a child writes into its pipe, and the child."""
    receives, sends = os.pipe()
    try:
        child = forked(BEFORE, code, sends, how.pop("shows_output", False))
    finally:
        os.close(sends)
    with os.fdopen(receives, "rb") as told:
        said = told.read().decode()
    child.wait(30)
    return said, child


def test_a_child_has_the_environment_and_the_folder_of_who_asks(tmp_path, monkeypatch):
    monkeypatch.setenv("ADDED", "now")
    monkeypatch.chdir(tmp_path)
    told, child = run(
        "said = os.environ['ADDED'], os.getcwd(), os.getppid()\n"
        "os.write(int(sys.argv[1]), repr(said).encode())"
    )
    assert told == repr(("now", str(tmp_path), os.getpid()))
    assert child.pid != os.getpid()


def test_no_child_sees_what_another_changed():
    code = "numbers.append(1); os.write(int(sys.argv[1]), str(numbers).encode())"
    assert [run(code)[0] for _ in range(2)] == ["[1]", "[1]"]


@pytest.mark.parametrize(
    ("code", "status"),
    [("os._exit(0)", 0), ("os._exit(3)", 3), ("os.abort()", -signal.SIGABRT), ("1 / 0", 1)],
)
def test_its_end_is_told(code, status):
    _, child = run(code)
    assert child.returncode == child.wait() == status


def test_one_that_does_not_end_is_ended():
    receives, sends = os.pipe()
    child = forked(BEFORE, "time.sleep(3600)", sends, shows_output=False)
    for limit_s in (0.0, 0.01):
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(limit_s)
    child.terminate()
    assert child.wait(30) == -signal.SIGTERM
    os.close(sends)
    with os.fdopen(receives, "rb") as told:
        assert told.read() == b""  # nobody holds the other end


@pytest.mark.parametrize(("shows_output", "shown"), [(True, "line\n"), (False, "")])
def test_output_is_shown_where_that_is_asked(capfd, shows_output, shown):
    _, child = run("print('line', flush=True); os._exit(0)", shows_output=shows_output)
    assert child.returncode == 0
    assert capfd.readouterr().out == shown


def test_an_error_is_shown(capfd):
    _, child = run("1 / 0", shows_output=True)
    assert child.returncode == 1
    assert "ZeroDivisionError" in capfd.readouterr().err
