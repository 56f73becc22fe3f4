"""What a command leaves: whole files, and text or JSON on standard output."""

from __future__ import annotations

import json
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
        raise InputError(f"cannot write the report to {path}: the record has that name")


def write(contents: Mapping[Path, str | bytes]) -> None:
    """Write one whole file after the other, and say so of each."""
    from toolkit.store.user_files import write_atomically

    # Ctrl-C may come between a file and its line
    with one_line_errors("interrupted while writing: each file is whole, the old or the new one"):
        for path, content in contents.items():
            write_atomically(path, content)
            say(f"wrote {path}", console=err)


def print_json(document: Any) -> None:
    sys.stdout.write(to_json(document))


def to_json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
