"""Remarks of ptxas on code that it compiles: it repaired wgmma, or runs them one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_REMARK = re.compile(r"^ptxas info *: *\((?P<code>C75\d\d)\) (?P<text>.+)$", re.MULTILINE)
_PLACE = re.compile(r"in around line (?P<line>\d+)(?: of \S+)? by compiler")
_FILE = re.compile(r'^\s*\.file\s+(?P<number>\d+)\s+"(?P<name>[^"]+)"')
_LINE = re.compile(
    r"^\s*\.loc\s+(?P<file>\d+) (?P<line>\d+)(?:.*inlined_at (?P<caller>\d+) (?P<at>\d+))?"
)


def remarks(log: str, ptx: str = "") -> Iterator[str]:
    """The remarks on wgmma in a compiler's log, each once, with its line of the source.

    ptxas names lines of PTX; `ptx` is that text, empty where it is not known.

    >>> list(remarks("ptxas info    : (C7514) Potential Performance Loss: x in function 'k'"))
    ["ptxas (C7514): Potential Performance Loss: x in function 'k'"]
    """
    found = []
    for match in _REMARK.finditer(log):
        said = " ".join(match["text"].split())
        if place := _PLACE.search(said):
            where = _source_line(ptx, int(place["line"]))
            said = _PLACE.sub(f"{where}by the compiler", said)
        found.append(f"ptxas ({match['code']}): {said}")
    yield from dict.fromkeys(found)


def about_kernel(said: Iterable[str], symbol: str) -> Iterator[str]:
    """The remarks that are about one kernel, or that name none."""
    for remark in said:
        named = re.search(r"function '(\S+)'", remark)
        if named is None or named[1] == symbol:
            yield remark


def _source_line(ptx: str, number: int) -> str:
    """The source line of a line of PTX, of the outermost call, as a part of a sentence."""
    files: dict[str, str] = {}
    place = ""
    for count, line in enumerate(ptx.splitlines(), 1):
        if match := _FILE.match(line):
            files[match["number"]] = match["name"].rpartition("/")[2]
        if count <= number and (match := _LINE.match(line)):
            file, at = match["caller"] or match["file"], match["at"] or match["line"]
            place = f"{file} {at}"
    if not place:
        return ""
    file, at = place.split()
    return f"before the wgmma near {files.get(file, 'the source')}, line {at}, "
