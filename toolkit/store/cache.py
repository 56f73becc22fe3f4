"""The user's cache: results that are slow to make, keyed by content.

The name of an entry is a digest of all that decides its content. An entry holds its name, a
checksum and the content. An entry that is damaged, or that stands under another name, counts as
absent and is made anew. The cache is a convenience: where it cannot be read or written, nothing is
kept.

All entries together take at most `MOST_BYTES`: the ones that were not used for longest are removed,
once a process has kept a sixteenth of that, and when it keeps its first one. Files in folders of
the cache, such as what `tune` measured, stay.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from analysis.errors import ToolkitError
from toolkit.store.user_files import users_folder, write_atomically

MOST_BYTES = 2**29  # the ladder on one device takes 10 MB


def cache_directory() -> Path:
    """Folder of the cache: $GEMM_LADDER_CACHE, or a folder in the user's cache.

    Raises InputError for a user without a home.
    """
    if chosen := os.environ.get("GEMM_LADDER_CACHE"):
        return Path(chosen)
    return users_folder("XDG_CACHE_HOME", "~/.cache")


def cached(name: str) -> bytes | None:
    """The content of entry `name`, None where there is no intact one."""
    try:
        path = cache_directory() / name
        entry = path.read_bytes()
        with suppress(OSError):
            os.utime(path)  # used
    except (OSError, ToolkitError):  # ToolkitError: a user without a home
        return None
    content = entry[len(_entry(name, b"")) :]
    return content if entry == _entry(name, content) else None


def keep(name: str, content: bytes) -> None:
    """Make `content` the entry `name`."""
    with suppress(ToolkitError, OSError):
        directory = cache_directory()
        directory.mkdir(parents=True, exist_ok=True)
        entry = _entry(name, content)
        write_atomically(directory / name, entry, durable=False)  # a damaged one is made anew
        _unlooked[directory] = _unlooked.get(directory, MOST_BYTES) + len(entry)
        if _unlooked[directory] > MOST_BYTES // 16:
            _unlooked[directory] = 0
            _shrink(directory)


def _entry(name: str, content: bytes) -> bytes:
    return name.encode() + b"\n" + sha256(content).digest() + content


_unlooked: dict[Path, int] = {}  # bytes that were kept since the size of a folder was looked at


def _files(directory: Path) -> Iterator[tuple[os.stat_result, str]]:
    with os.scandir(directory) as items:
        for item in items:
            with suppress(OSError):  # another process removed it meanwhile
                if item.is_file():
                    yield item.stat(), item.path


def _shrink(directory: Path) -> None:
    """Remove the entries that were not used for longest, until the others fit."""
    found = list(_files(directory))
    size = sum(status.st_size for status, _ in found)
    for status, path in sorted(found, key=lambda one: one[0].st_mtime_ns):
        if size <= MOST_BYTES:
            break
        with suppress(OSError):  # another process removed it, or reads it just now
            Path(path).unlink()
        size -= status.st_size


def digest_of_files(*paths: str | None) -> str:
    """A digest of our own files that decide the content of entries, for their names."""
    return sha256(b"\0".join(Path(path).read_bytes() for path in paths if path)).hexdigest()


def digest_of_folders(root: Path, folders: Iterable[str]) -> str:
    """A digest of all files in `folders` below `root`, and of their names.

    Sources of kernels are left out: their machine code is part of what is kept.
    """
    digest = sha256()
    for path in sorted(path for folder in folders for path in _paths_below(str(root / folder))):
        with open(path, "rb") as file:  # noqa: PTH123 (Path takes three times as long here)
            content = file.read()
        digest.update(f"{path.removeprefix(str(root))} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _paths_below(folder: str) -> Iterator[str]:
    """Paths of the files in a folder and its folders, without sources of kernels and bytecode."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)  # noqa: PTH118 (as above)
            if not name.endswith((".cu", ".cuh", ".pyc")) and os.path.isfile(path):  # noqa: PTH113
                yield path
