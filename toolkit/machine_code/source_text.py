"""The text of the source that machine code was made from, where its line table leads to it.

A file of the right name may be another one, or another version: it is taken if it has the size that
the line table states, or else if it mentions the kernel. A change is said where it can be seen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.errors import InputError
from toolkit.machine_code.attributes import KernelParameter
from toolkit.machine_code.elf import cubin_file
from toolkit.machine_code.instruction import SourceLine
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_names import plain_name
from toolkit.machine_code.line_table import TableFile, files_of_table
from toolkit.machine_code.signature import Declared, signature, unqualified
from toolkit.store.user_files import read_file

MOST_FILES = 100_000  # names that are looked at in one folder and the folders in it
_POINTER_BYTES = 8
_NO_LINES = (
    "it has no line table: compile it with `nvcc -lineinfo` to see source lines (Numba: "
    "lineinfo=True)"
)


@dataclass(frozen=True, kw_only=True)
class _Found:
    path: Path
    text: str
    note: str | None = None


def with_source_text(
    kernel: Kernel, folders: Sequence[str | Path] = (), origin: Path | None = None
) -> Kernel:
    """The kernel with the text of its source, and its parameters as this text declares them.

    The file is looked for in `folders`, then where the line table says, then beside `origin`, the
    file of the machine code. Where it is not found, or was changed, a note says so. Raises
    InputError for a folder that is none.
    """
    for folder in folders:
        if not Path(folder).is_dir():
            raise InputError(f"source folder {str(folder)!r} is not there: give one that is")
    if not kernel.lines:
        return replace(kernel, notes=(*kernel.notes, _NO_LINES))
    name, named = _files(kernel)
    for file in named:
        if found := _found(file, kernel, [Path(folder) for folder in folders], origin):
            return replace(
                kernel,
                file=name,
                source=found.text,
                source_path=found.path,
                declared=_declared(found.text, kernel),
                notes=(*kernel.notes, *filter(None, [found.note])),
            )
    where = f"not in {', '.join(map(str, folders))}" if folders else f"not at {named[0].path}"
    note = f"the text of {name} is {where}: --source-dir FOLDER says where it is"
    return replace(kernel, file=name, notes=(*kernel.notes, note))


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A file that a kernel stands in; `text` is None where it is not known."""

    path: Path
    text: str | None

    @property
    def name(self) -> str:
        return self.path.name


def included_source(kernel: Kernel) -> SourceFile | None:
    """The header that a kernel of a compiled source stands in.

    None if the kernel stands in the source itself, and where the header is not there or was changed
    since.
    """
    if not kernel.lines:
        return None
    name, named = _files(kernel)
    if name == kernel.file or len(named) != 1:
        return None
    path = Path(named[0].path)
    with suppress(OSError, ValueError):  # UnicodeDecodeError is a ValueError
        content = read_file(path)
        # NVRTC does not find files whose paths have characters beyond ASCII, to state their sizes
        if len(content) == named[0].size or not (named[0].size or named[0].path.isascii()):
            return SourceFile(path=path, text=content.decode("utf-8-sig").replace("\r\n", "\n"))
    return None


def _files(kernel: Kernel) -> tuple[str, list[TableFile]]:
    """The name of the file that a kernel stands in, and what its line table calls so."""
    name = _outermost(kernel.lines[min(kernel.lines)]).file
    table = files_of_table(cubin_file(kernel.image).content(".debug_line"))
    return name, [file for file in table if file.name == name]


def _outermost(line: SourceLine) -> SourceLine:
    """The line in a function that was not inlined."""
    return _outermost(line.caller) if line.caller else line


def _found(
    file: TableFile, kernel: Kernel, folders: Sequence[Path], origin: Path | None
) -> _Found | None:
    word = unqualified(plain_name(kernel.symbol))
    for path in _places(file, folders, origin):
        with suppress(OSError, ValueError):  # UnicodeDecodeError is a ValueError
            content = read_file(path)
            text = content.decode("utf-8-sig").replace("\r\n", "\n")
            if len(content) == file.size or re.search(rf"\b{re.escape(word)}\b", text):
                note = _change(path, len(content), file, origin)
                return _Found(path=path, text=text, note=note)
    return None


def _places(file: TableFile, folders: Sequence[Path], origin: Path | None) -> Iterator[Path]:
    """Paths at which the file may be, the likeliest first."""
    for folder in folders:
        yield from _in_folder(file.path, folder)
    path = Path(file.path)
    if path.is_absolute():
        yield path
    else:
        yield from (folder / path for folder in ([origin.parent] if origin else []))
        yield Path.cwd() / path
    if origin is not None:
        yield origin.parent / file.name


def _in_folder(path: str, folder: Path) -> list[Path]:
    """Files of this name in a folder and the folders in it; longer common ends of paths first.

    Raises InputError where two have equally long ones.
    """
    parts = [part for part in re.split(r"[/\\]", path) if part not in ("", ".", "..")]
    found: list[tuple[int, Path]] = []
    seen = 0
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        seen += len(names) + len(inner)
        if parts[-1] in names:
            candidate = Path(place) / parts[-1]
            found.append((_common_end(parts, candidate.absolute().parts), candidate))
        if seen > MOST_FILES:
            break
    found.sort(key=lambda one: -one[0])
    if len(found) > 1 and found[0][0] == found[1][0]:
        raise InputError(
            f"source folder {str(folder)!r} holds several files {parts[-1]}, such as {found[0][1]} "
            f"and {found[1][1]}: name the folder of the right one"
        )
    return [candidate for _, candidate in found]


def _common_end(one: Sequence[str], other: Sequence[str]) -> int:
    length = 0
    while length < min(len(one), len(other)) and one[-1 - length] == other[-1 - length]:
        length += 1
    return length


def _change(path: Path, size: int, file: TableFile, origin: Path | None) -> str | None:
    """Say why the file is not as it was when the machine code was made, None if it is."""
    off = "lines may be off: compile it again"
    if file.size and size != file.size:
        return f"{path.name} had {file.size:,} bytes then, and has {size:,} now: {off}"
    if str(path) != file.path:  # a copy, whose time says nothing
        return None
    made_s = file.time_s or (origin.stat().st_mtime if origin and origin.exists() else 0)
    if made_s and int(path.stat().st_mtime) > made_s:
        return f"{path.name} was saved after the machine code was made: {off}"
    return None


def _declared(text: str, kernel: Kernel) -> tuple[Declared, ...] | None:
    """The parameters in the text, None where they cannot be those of the machine code."""
    found = signature(text, kernel.name)
    if found is None or len(found) != len(kernel.parameters):
        return None
    return found if all(map(_fits, found, kernel.parameters)) else None


def _fits(declared: Declared, parameter: KernelParameter) -> bool:
    size = _POINTER_BYTES if declared.pointer else declared.size
    return size in (None, parameter.size)
