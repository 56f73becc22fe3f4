"""Recordings: JSON with one record per line, so that a diff shows a changed record as one line.

    python -m validation.recordings FILE ...     writes JSON files in this form

A list or an object that holds only lists and objects has one of them per line, and so has the
whole document. All else, a record, is on one line, without spaces. Constants that
`python -m toolkit.microbenchmarks` measured get the number of their method, and each method (unit
and how) is there once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def write(path: Path, document: Any) -> None:
    path.write_text(text_of(document), encoding="utf-8")


def text_of(document: Any) -> str:
    return _opened(document, "\n") + "\n"


def with_methods_once(document: Any) -> Any:
    """Measured constants, each with the number of its method in a list `methods`.

    Returns any other document, and one that has such a list, as it is.
    """
    if "constants" not in document or "methods" in document:
        return document
    methods: list[dict[str, str]] = []
    constants = {}
    for name, constant in document["constants"].items():
        method = {key: constant[key] for key in ("unit", "how")}
        if method not in methods:
            methods.append(method)
        rest = {key: value for key, value in constant.items() if key not in method}
        constants[name] = {**rest, "method": methods.index(method)}
    return {**document, "methods": methods, "constants": constants}


def _opened(value: Any, line: str) -> str:
    """A list or an object, one item per line; `line` begins the line of its last bracket."""
    inner = line + " "
    if isinstance(value, dict):
        items = [f"{_flat(name)}:{_laid_out(item, inner)}" for name, item in value.items()]
        return "{" + inner + f",{inner}".join(items) + line + "}"
    items = [_laid_out(item, inner) for item in value]
    return "[" + inner + f",{inner}".join(items) + line + "]"


def _laid_out(value: Any, line: str) -> str:
    items = value.values() if isinstance(value, dict) else value
    is_of_records = isinstance(value, dict | list) and all(
        isinstance(item, dict | list) for item in items
    )
    return _opened(value, line) if is_of_records and value else _flat(value)


def _flat(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m validation.recordings FILE.json ...")
    for name in sys.argv[1:]:
        write(Path(name), with_methods_once(read(Path(name))))
