"""Executes the blocks of one page, from top to bottom, in a folder of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from docs.snippets.pages import ROOT, Block, PageError

# What a reader has beside the page: a checkout.
CHECKOUT = (
    "analysis",
    "benchmarks",
    "docs",
    "kernels",
    "reports",
    "tests",
    "toolkit",
    "validation",
)
COLOURS = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TTY_COMPATIBLE", "CLICOLOR_FORCE")
MOST_SECONDS = 600  # of one block: it hangs

STATUS = "\x1d"  # around the exit status that follows each command's output
# The status is put back, so that the next command can ask for `$?`.
REPORT_STATUS = r"""
page_status=$?; printf '\x1d%d\x1d' $page_status; (exit $page_status)
"""


def environment(data: Path, *, gpu: bool) -> dict[str, str]:
    """Environment of commands: this checkout and this Python, a plain terminal of 100 columns."""
    kept = {name: value for name, value in os.environ.items() if name not in COLOURS}
    path = [str(Path(sys.executable).parent), kept.get("PATH", os.defpath)]
    set_here = {
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
        "GEMM_LADDER_DATA": str(data),  # what a user has tuned changes what is printed
    }
    return kept | set_here | ({} if gpu else {"CUDA_VISIBLE_DEVICES": ""})


class Session:
    """The folder, the environment and the Python of one page.

    A GPU is hidden, unless the page is followed with one: then Python sees it from its start, and
    commands where they are told to.
    """

    def __init__(self, scratch: Path, *, gpu: bool = False) -> None:
        self.folder = scratch / "page"
        self.folder.mkdir()
        for name in CHECKOUT:
            (self.folder / name).symlink_to(ROOT / name)
        self._environments = {
            seen: environment(scratch / "data", gpu=seen) for seen in (True, False)
        }
        self._gpu = gpu
        self._python: subprocess.Popen[str] | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        if self._python:
            self._python.communicate()

    def lay_out(self, block: Block) -> None:
        """The files that a block's remarks speak of."""
        if block.copy:
            source, name = block.copy
            shutil.copyfile(ROOT / source, self.folder / name)
        if block.file:
            target = self.folder / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")

    def commands(
        self, commands: Sequence[str], where: str, *, gpu: bool = False
    ) -> list[tuple[str, int]]:
        """Output of each command of one shell, both streams in order, and its exit status."""
        script = "exec 2>&1\n" + "".join(f"{command}{REPORT_STATUS}" for command in commands)
        parts = re.split(f"{STATUS}(\\d+){STATUS}", self._bash(["-c", script], where, gpu)[0])
        answers = list(zip(parts[0::2], map(int, parts[1::2]), strict=False))
        if len(answers) < len(commands):
            raise PageError(f"{where}: the shell ended after {commands[len(answers)]!r}")
        return answers

    def script(self, text: str, where: str, *, gpu: bool = False) -> None:
        """Execute a script, each command of which must succeed."""
        printed, status = self._bash(["-euo", "pipefail", "-c", f"exec 2>&1\n{text}"], where, gpu)
        if status:
            raise PageError(f"{where}: exit status {status} of the script\n{text}\n{printed}")

    def _bash(self, arguments: Sequence[str], where: str, gpu: bool) -> tuple[str, int]:
        process = subprocess.Popen(
            ["bash", *arguments],
            cwd=self.folder,
            env=self._environments[gpu],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,  # what it started ends with it
        )
        try:
            return process.communicate(timeout=MOST_SECONDS)[0], process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise PageError(f"{where}: not done after {MOST_SECONDS} s") from None

    def python(self, code: str, where: str, *, mode: str = "exec") -> str:
        """Output of code in the page's one namespace; `single` mode answers as a prompt does."""
        asked = json.dumps({"code": code, "mode": mode, "where": where})
        answer = json.loads(_answer(self._interpreter(), asked, where))
        if answer["error"]:
            raise PageError(f"{where}: {answer['error']}\n{code}\n{answer['printed']}")
        return str(answer["printed"])

    def _interpreter(self) -> subprocess.Popen[str]:
        self._python = self._python or subprocess.Popen(
            [sys.executable, str(ROOT / "docs/snippets/interpreter.py")],
            cwd=self.folder,
            env=self._environments[self._gpu],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        return self._python


def _answer(python: subprocess.Popen[str], asked: str, where: str) -> str:
    assert python.stdin is not None
    assert python.stdout is not None
    hangs = threading.Timer(MOST_SECONDS, python.kill)
    hangs.start()
    print(asked, file=python.stdin, flush=True)
    line = python.stdout.readline()
    hangs.cancel()
    if not line:
        raise PageError(f"{where}: Python ended, or was stopped after {MOST_SECONDS} s")
    return line
