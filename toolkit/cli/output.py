"""Outputs of a command: whole files, and text or JSON on standard output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.errors import InputError
from toolkit.cli.errors import one_line_errors
from toolkit.cli.terminal import err, say


def check_output(path: Path, others: Sequence[Path] = ()) -> None:
    """Raise InputError where `path` cannot be written, or is one of the other files in use."""
    from toolkit.store.user_files import check_writable, same_file

    check_writable(path)
    if any(same_file(path, other) for other in others):
        raise InputError(
            f"cannot write the report to {path}: the record has that name: give another"
        )
    check_is_no_input(path, ())


def check_page_output(path: Path, others: Sequence[Path] = ()) -> None:
    """Raise InputError as `check_output` does, and unless the path ends in .html."""
    from toolkit.store.user_files import check_page_name

    check_output(path, others)
    check_page_name(path)


def check_is_no_input(path: Path, inputs: Sequence[Path]) -> None:
    """Raise InputError where `path` is a file that the command reads, or one of this project."""
    from toolkit.store.user_files import same_file

    for one in inputs:
        if same_file(path, one):
            raise InputError(f"cannot write {path}: the command reads {one}: give another place")
    real = Path(os.path.realpath(path))
    if real.exists() and any(real.is_relative_to(folder) for folder in _packages()):
        raise InputError(f"cannot write {path}: it is a file of gemm-ladder: give another place")


def _packages() -> list[Path]:
    """The folders of this project's packages."""
    root = Path(os.path.realpath(__file__)).parents[2]
    return [root / name for name in ("analysis", "kernels", "reports", "toolkit")]


def write(contents: Mapping[Path, str | bytes]) -> None:
    """Write one whole file after the other, and say so of each."""
    from toolkit.store.user_files import write_atomically

    # Ctrl-C may come between a file and its line
    with one_line_errors(
        "interrupted while writing: each file is complete, either the old or the new one"
    ):
        for path, content in contents.items():
            write_atomically(path, content)
            say(f"wrote {path}", console=err)


def print_json(document: Any) -> None:
    sys.stdout.write(to_json(document))


def to_json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
