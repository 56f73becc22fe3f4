"""Commands as a user meets them: in this process, and in processes of their own."""

import os
import shlex
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

from typer import testing

from toolkit.cli.app import app
from validation import ROOT

testing._get_command = cache(testing._get_command)  # the parsers of all commands: 30 ms


def invoke(command, *words):
    """A command line, split as a shell splits it, and words behind it as they are."""
    arguments = [*shlex.split(command), *words]
    return testing.CliRunner().invoke(app, arguments, prog_name="python -m toolkit")


def refused(command, *words, code=1):
    """Standard error of a command line that is refused; assert that it wrote nothing."""
    before = contents()
    result = invoke(command, *words)
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert contents() == before
    if code in (1, 2):
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
    return str(result.stderr).removeprefix("error: ").rstrip("\n")


def write(name, text):
    Path(name).write_text(text, encoding="utf-8")


def contents():
    """Contents of all files in the working folder."""
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def started(*words, environment=None, stdout=subprocess.PIPE):
    """Python with arguments."""
    known = {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    return subprocess.Popen(
        [sys.executable, *words],
        env=os.environ | known | (environment or {}),
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def run(*words, **how):
    """Exit status, standard output and standard error of Python with arguments."""
    with started(*words, **how) as process:
        return ended(process)


def interrupted(*words, when, **how):
    """The same of a process that gets Ctrl-C soon after something is so."""
    with started(*words, **how) as process:
        deadline = time.monotonic() + 60
        while not when() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        return ended(process)


def ended(process):
    stdout, stderr = process.communicate(timeout=60)
    return process.returncode, stdout, stderr
