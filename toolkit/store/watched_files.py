"""A source and the files that it includes, looked at again and again: was one of them saved?

Polling needs no help of the system and sees any way to save: a file that is written to, and one
that another replaces.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from toolkit.store.user_files import read_file

MOST_FILES = 10_000  # those that are looked for, not only those that are there
SETTLED_S = 0.1  # a file that has not changed for so long is written whole

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_FOLDER = re.compile(r"^(?:-I|--include-path)[=\n]?(.+)$", re.MULTILINE)


class WatchedFiles:
    """A source and what it includes, compared with what they were when they were last `taken`.

    `options` of the compiler name more folders to include from. `others` are files that are read,
    too, such as the source of machine code.
    """

    def __init__(
        self,
        source: Path,
        options: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
        others: Sequence[Path] = (),
    ) -> None:
        self.source = source
        self._others = others
        self._folders = source.parent, *folders_of(options)
        self._clock = clock
        self._taken: dict[Path, tuple[int, ...] | None] = {}
        self._seen, self._seen_s = self._taken, 0.0

    def take(self) -> list[str]:
        """Names of the files that changed since the last call; none at the first."""
        before, self._taken = self._taken, {file: _state(file) for file in self._files()}
        self._seen = self._taken
        return [file.name for file in before if _state(file) != before[file]]

    def are_newer(self) -> bool:
        """True if a file was saved since, and is written whole."""
        self._look()
        return self._has_changed and self._seen[self.source] is not None

    def lost_source(self) -> bool:
        """True, but once, if there is no source for longer than an editor takes to replace it."""
        self._look()
        if self._has_changed and self._seen[self.source] is None:
            self._taken = self._seen
            return True
        return False

    def _look(self) -> None:
        states = {file: _state(file) for file in self._taken}
        if states != self._seen:
            self._seen, self._seen_s = states, self._clock()

    @property
    def _has_changed(self) -> bool:
        return self._seen != self._taken and self._clock() - self._seen_s >= SETTLED_S

    def _files(self) -> list[Path]:
        """Source and its includes, recursively; also paths that are searched and do not exist."""
        return [*files_of(self.source, self._folders), *self._others]


def folders_of(options: Sequence[str]) -> list[Path]:
    """The folders that options of the compiler name to include from."""
    return list(map(Path, _FOLDER.findall("\n".join(options))))


def files_of(source: Path, folders: Sequence[Path], text: str | None = None) -> list[Path]:
    """Source and its includes, recursively; also paths that are searched and do not exist.

    What is no regular file, or is too large (`read_file`), is not looked into. `text` is the
    source's where it is in no file.
    """
    files = [source]
    known = {os.path.realpath(source)}  # a link to its own folder has paths without end
    for file in files:  # which grows
        with suppress(OSError, ValueError):
            if text is None or file != source:
                content = read_file(file).decode(errors="replace")
            else:
                content = text
            for name in _INCLUDE.findall(content):
                for folder in (file.parent, *folders):
                    path = Path(os.path.normpath(folder / name))
                    if (real := os.path.realpath(path)) not in known and len(known) < MOST_FILES:
                        known.add(real)
                        files.append(path)
    return files


def _state(file: Path) -> tuple[int, ...] | None:
    """State that a save changes, also one that replaces the file; None if there is no file."""
    with suppress(OSError, ValueError):
        found = file.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino
    return None
