"""The text of the Python file that a kernel stands in, and where a text stands in it."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from toolkit.machine_code.kernel import Kernel


def with_python_source(kernel: Kernel, path: str | None) -> Kernel:
    """Copy of the kernel whose source is a Python file; without text where it cannot be read."""
    if path is None:
        return kernel
    text = "".join(linecache.getlines(path))
    return replace(kernel, file=Path(path).name, source=text or None)


def placed(text: str, paths: Iterable[str]) -> tuple[str, int, str] | None:
    """(path, line, whole text) of the first Python file that holds `text`, None if none does."""
    for path in paths:
        whole = "".join(linecache.getlines(path))
        before, found, _ = whole.partition(text)
        if found:
            return path, before.count("\n") + 1, whole
    return None


def files_of(value: object) -> Iterator[str]:
    """Python files that may hold `value`: those that are running, and modules with its name."""
    yield from running_files()
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path and any(one is value for one in list(vars(module).values())):
            yield path


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
