"""Cubins of one architecture merged into one: nvdisasm takes as long for one kernel as for twenty.

The code of kernels, their tables of jumps and the relocations of both are copied; variables in
global memory are symbols of one section that is zero, and everything else is left out. A mark in
front of each name tells its image. Without the marks, what nvdisasm prints of each function is what
it prints where the image is alone (tests/toolkit/machine_code/test_merge.py).
"""

from __future__ import annotations

import json
import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from analysis.errors import InputError
from toolkit.machine_code.elf import (
    HEADER,
    OBJECT,
    SECTION,
    SYMBOL,
    ZEROS,
    Section,
    cubin_file,
    reading,
)

_EXECUTABLE = 2  # ET_EXEC: neither relocatable device code nor a library
_TABLE, _STRINGS = 2, 3  # SHT_SYMTAB, SHT_STRTAB
_FEATURES = 0xFF000000  # of a header's flags: what a kernel needs of its architecture

# Code, tables of jumps, what is known of their targets, and relocations.
_KEPT = re.compile(r"((?:\.rela?)?\.(?:text|nv\.constant2|nv\.info)\.)(.+)")
_MARK = re.compile(r"~(\d+)~")  # in no name, and in no operand
_ALIGNMENT = 128  # of code

_NAMES, _SYMBOLS, _GLOBAL = 1, 2, 3  # the sections that are there before those of kernels


def mergeable(images: Iterable[bytes]) -> list[list[bytes]]:
    """The images that can be merged, those of one architecture together."""
    groups: dict[object, list[bytes]] = defaultdict(list)
    for image in images:
        if image[:4] == b"\x7fELF" and len(image) >= HEADER.size:
            ident, kind, machine, *_, flags, _, _, _, _, _, _ = HEADER.unpack_from(image)
            if kind == _EXECUTABLE:
                groups[ident, machine, flags & ~_FEATURES].append(image)
    return list(groups.values())


def merged(images: Sequence[bytes]) -> bytes:
    """One cubin with the kernels of all images, which are of one architecture.

    Raises InputError for a damaged image, or for one that has two symbols of one name.
    """
    result = _Merged()
    for number, image in enumerate(images):
        with reading("the machine code"):
            result.add(image, f"~{number}~")
    return result.file(images[0])


def disassemblies(printed: str, count: int) -> list[str]:
    """Disassembly of each of `count` merged images, from that of the merged one.

    Raises ValueError if the text is not a disassembly of merged images.
    """
    reader, start = json.JSONDecoder(), printed.index("[") + 1
    _, end = reader.raw_decode(printed, start)
    header, at = printed[start:end], printed.index("[", end) + 1
    functions: list[list[str]] = [[] for _ in range(count)]
    while printed[at] != "]":
        function, end = reader.raw_decode(printed, at)
        mark = _MARK.match(function["function-name"])
        if mark is None:
            raise ValueError(f"{function['function-name']} is of no image")
        functions[int(mark[1])].append(_MARK.sub("", printed[at:end]))
        at = end + (printed[end] == ",")
    return [f"[{header},[{','.join(one)}]]" for one in functions]


class _Merged:
    """Sections and symbols that grow by those of one image after another."""

    def __init__(self) -> None:
        self._symbols, self._symbol_names = bytearray(SYMBOL.size), bytearray(1)
        self._sections: list[tuple[str, Section, bytes | bytearray]] = [
            (".strtab", Section(kind=_STRINGS), self._symbol_names),
            (".symtab", Section(kind=_TABLE, link=_NAMES, entry_bytes=24), self._symbols),
            (".nv.global", Section(kind=ZEROS, flags=3, size=1 << 20), b""),
        ]

    def add(self, image: bytes, mark: str) -> None:
        file = cubin_file(image)
        kept = {n: match for n, name in enumerate(file.names) if (match := _KEPT.fullmatch(name))}
        places = {old: len(self._sections) + new for new, old in enumerate(kept, 1)}
        earlier = len(self._symbols) // SYMBOL.size
        for n, match in kept.items():
            section, content = file.sections[n], file.sections[n].content(image)
            if match[1].startswith(".rel"):
                content = b"".join(_moved(content, ".rela" in match[1], earlier))
            # of code: its symbol, with a number of registers above that; else the section meant
            is_code, link = match[1] == ".text.", _SYMBOLS if section.link else 0
            info = section.info + earlier if is_code else places.get(section.info, 0)
            section = section._replace(link=link, info=info)
            self._sections.append((match[1] + mark + match[2], section, content))
        symbols, strings = map(file.content, (".symtab", ".strtab"))
        self._add_symbols(symbols, strings, places, mark.encode())

    def _add_symbols(
        self, symbols: bytes, strings: bytes, places: Mapping[int, int], mark: bytes
    ) -> None:
        seen = {b""}
        for at, info, other, section, value, size in SYMBOL.iter_unpack(symbols):
            name = strings[at : strings.index(0, at)]
            if name.startswith(b"."):  # of a section
                name = b""
            elif name in seen and name:
                raise InputError(f"the machine code has two symbols {name!r}")
            seen.add(name)
            variable = _GLOBAL if section and info & 0xF == OBJECT else 0
            self._symbols += SYMBOL.pack(
                len(self._symbol_names), info, other, places.get(section, variable), value, size
            )
            self._symbol_names += (name and mark + name) + b"\0"

    def file(self, like: bytes) -> bytes:
        """The ELF file; its header is that of `like`, but for where things are."""
        names, body, headers = bytearray(1), bytearray(HEADER.size), bytearray(SECTION.size)
        for name, section, content in (*self._sections, (".shstrtab", Section(kind=3), names)):
            at = len(names)
            names += name.encode() + b"\0"
            body += bytes(-len(body) % _ALIGNMENT)
            size = len(content) or section.size
            headers += SECTION.pack(*section._replace(name=at, offset=len(body), size=size))
            body += content
        header = list(HEADER.unpack_from(like))
        header[4:7] = 0, 0, len(body)  # no entry, no program headers, the table of sections
        header[9:11] = 0, 0
        header[12:] = len(self._sections) + 2, len(self._sections) + 1
        body[: HEADER.size] = HEADER.pack(*header)
        return bytes(body + headers)


def _moved(content: bytes, has_addends: bool, symbols: int) -> Iterator[bytes]:
    """Relocations whose symbols are `symbols` further back."""
    form = struct.Struct("<QQq" if has_addends else "<QQ")
    for offset, info, *addend in form.iter_unpack(content):
        yield form.pack(offset, info + (symbols << 32), *addend)
