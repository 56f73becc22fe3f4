"""Search for the kernels of a source without any: headers in other folders, other .cu files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from toolkit.machine_code.include_paths import is_of_host
from toolkit.store.user_files import read_file

MOST_FILES = 2000  # that are looked at below the folder of the source
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^">\n]+)[">]', re.MULTILINE)
# Comments and strings, which may look like a launch
_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def where_kernels_are(text: str, folder: Path, folders: Sequence[Path], kernel: str | None) -> str:
    """Say what to give in place of a source without a kernel; empty if nothing is found.

    `folder` is that of the source, and `folders` are further ones of headers. With `kernel`, a
    name without template arguments, only files that launch it count.
    """
    below = list(islice(_files(folder), MOST_FILES))
    found = [*_headers(text, folder, folders, below), *_launching(folder, below, kernel)]
    return "; ".join(found)


def _files(folder: Path) -> Iterator[Path]:
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        yield from (Path(place, name) for name in sorted(names))


def _headers(
    text: str, folder: Path, folders: Sequence[Path], below: Sequence[Path]
) -> Iterator[str]:
    for written in dict.fromkeys(_INCLUDED.findall(text)):
        if is_of_host(written) or any((one / written).is_file() for one in (folder, *folders)):
            continue
        paths = [one for one in below if one.as_posix().endswith(f"/{written}")]
        if len(paths) == 1:
            place = Path(str(paths[0])[: -len(written)]).relative_to(folder)
            yield f"its header {written} is in {place}: --option -I{folder / place}"


def _launching(folder: Path, below: Sequence[Path], kernel: str | None) -> Iterator[str]:
    launch = re.compile(rf"\b{re.escape(kernel)}\b[^;{{}}]*<<<" if kernel else "<<<")
    files = []
    for path in below:
        if path.suffix == ".cu":
            with suppress(OSError, ValueError):
                if launch.search(_NO_CODE.sub(" ", read_file(path).decode(errors="replace"))):
                    files.append(path.relative_to(folder).as_posix())
    if len(files) == 1:
        yield f"{files[0]} launches {kernel or 'kernels'}: give that file"
    elif files:
        yield f"{', '.join(files[:3])} launch {kernel or 'kernels'}: give one of them"
