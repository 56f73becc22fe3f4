"""Commands as a user meets them: in this process, and in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from toolkit.cli.app import app
from validation import ROOT


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments, prog_name="python -m toolkit")


def refused(*arguments: str, code: int = 1) -> str:
    """What the command says on standard error when it refuses; it wrote nothing."""
    before = contents()
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert contents() == before
    if code == 1:
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
    return str(result.stderr).removeprefix("error: ").rstrip("\n")


def contents() -> dict[Path, bytes]:
    """Of all files in the working folder."""
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def started(
    *words: str, environment: Mapping[str, str] | None = None, stdout: Any = subprocess.PIPE
) -> subprocess.Popen[str]:
    """Python with arguments."""
    known = {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    return subprocess.Popen(
        [sys.executable, *words],
        env=os.environ | known | (environment or {}),
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def run(*words: str, **how: Any) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of Python with arguments."""
    with started(*words, **how) as process:
        return ended(process)


def interrupted(*words: str, when: Callable[[], bool], **how: Any) -> tuple[int, str, str]:
    """The same of a process that gets Ctrl-C soon after something is so."""
    with started(*words, **how) as process:
        deadline = time.monotonic() + 60
        while not when() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        return ended(process)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    stdout, stderr = process.communicate(timeout=60)
    return process.returncode, stdout, stderr
