"""Answers of the compiler and marks of compiled sources in the cache.

With them a command that compiles nothing starts no process.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from toolkit.machine_code import compiler_process
from toolkit.machine_code.cuda_tools import files_of_wheel
from toolkit.store.cache import cached, digest_of_files, keep

NVRTC = ("libnvrtc.so.13", "nvrtc64_130_0.dll")
MOST_BYTES = 1 << 20  # of a file that is looked at: sources of kernels are smaller

_SOURCES = digest_of_files(compiler_process.__file__)


class AboutCompiler(NamedTuple):
    """NVRTC's version, and the compute capabilities that it knows."""

    version: tuple[int, int]
    capabilities: list[int]


def about_compiler() -> AboutCompiler:
    """NVRTC's version and capabilities, from the cache while the same packages are installed.

    Raises as `compiler_process.about_compiler`.
    """
    entry = _entry()
    if entry and (content := cached(entry)):
        version, capabilities = json.loads(content)
        return AboutCompiler(tuple(version), capabilities)
    found = AboutCompiler(*compiler_process.about_compiler())
    if entry:
        keep(entry, json.dumps(found).encode())
    return found


def _entry() -> str | None:
    """Name of its entry in the cache. None if its library or bindings are of no wheel."""
    with suppress(metadata.PackageNotFoundError, OSError):
        bindings = metadata.version("cuda-bindings")
        for path in files_of_wheel("nvidia-cuda-nvrtc", *NVRTC):
            status = path.stat()
            parts = [bindings, str(path), status.st_size, status.st_mtime_ns, _SOURCES]
            return f"{sha256(json.dumps(parts).encode()).hexdigest()}.nvrtc"
    return None


def note_compiled(source: str) -> None:
    """Note that the cache has machine code of a source."""
    mark = _mark(source.encode())
    if cached(mark) is None:
        keep(mark, b"")


def was_compiled(words: Sequence[str]) -> bool:
    """True if one of the words is a file whose machine code was noted, with whatever options."""
    for path in map(Path, words):
        with suppress(OSError, ValueError):  # ValueError: a zero byte in the path
            is_small = path.is_file() and path.stat().st_size <= MOST_BYTES  # a pipe is left alone
            if is_small and cached(_mark(path.read_bytes())) is not None:
                return True
    return False


def _mark(source: bytes) -> str:
    return f"{sha256(source).hexdigest()}.compiled"
