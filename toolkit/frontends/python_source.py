"""The text of the Python file that a kernel stands in, and where a text stands in it."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from toolkit.machine_code.kernel import Kernel


def with_python_source(kernel: Kernel, path: str | None) -> Kernel:
    """Copy of the kernel whose source is a Python file; without text where it cannot be read."""
    if path is None:
        return kernel
    text = "".join(linecache.getlines(path))
    return replace(kernel, file=Path(path).name, source=text or None)


def placed(text: str, paths: Iterator[str] | None = None) -> tuple[str, int, str] | None:
    """(path, line, whole text) of the Python file that holds `text`, None if none does.

    `paths` are those of the running functions, the innermost first, unless they are given.
    """
    for path in paths if paths is not None else running_files():
        whole = "".join(linecache.getlines(path))
        before, found, _ = whole.partition(text)
        if found:
            return path, before.count("\n") + 1, whole
    return None


def running_files() -> Iterator[str]:
    """Paths of the files whose functions are running, the innermost first."""
    frame = inspect.currentframe()
    seen = set()
    while frame is not None:
        path = frame.f_code.co_filename
        if path not in seen:
            seen.add(path)
            yield path
        frame = frame.f_back


def numbered(text: str, line: int, name: str) -> str:
    """CUDA C++ text whose lines count as those of file `name` from `line` on."""
    return f'#line {line} "{name}"\n{text}'
