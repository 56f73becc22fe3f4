"""The ELF file of a cubin: sections, symbols, relocations and attributes, as the file has them."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from analysis.errors import InputError, ToolkitError

_MANAGED = 4  # STO_CUDA_MANAGED of st_other
HEADER, SECTION, SYMBOL = map(
    struct.Struct, ("<16sHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ")
)  # Elf64_Ehdr, Elf64_Shdr, Elf64_Sym
_RELOCATABLE, _CUDA = 1, b"\xbe\0"  # ET_REL, EM_CUDA
_64_BIT = b"\2\1"  # ELFCLASS64, ELFDATA2LSB
ZEROS = 8  # SHT_NOBITS
SHARED = 4  # times that bytes of a file are used at most: 1 or 2 in what ptxas makes
OBJECT, FUNCTION = 1, 2  # STT_OBJECT, STT_FUNC: kinds of symbols
_SIZED_VALUE = 0x04  # EIFMT_SVAL: the attribute's payload follows, its length is in the header

_TOOL_VERSION = re.compile(rb"Cuda compilation tools, release [\d.]+, V([\d.]+)")


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise InputError for any error of a reader that a damaged file causes."""
    try:
        yield
    except ToolkitError:
        raise
    except Exception as error:
        raise InputError(f"{what} is damaged: {error!r}") from error


@lru_cache(maxsize=8)  # a kernel is read in several steps, and a cubin may hold many kernels
def cubin_file(image: bytes) -> CubinFile:
    """Its sections and symbols; raises ValueError for a damaged image."""
    return CubinFile(image)


def is_of_gpu(image: bytes) -> bool:
    """True for an ELF file of machine code for a GPU, as far as its header goes."""
    return image[18:20] in (b"", _CUDA)  # e_machine


class Section(NamedTuple):
    """The header of a section, as the file has it."""

    name: int = 0
    kind: int = 0
    flags: int = 0
    address: int = 0
    offset: int = 0
    size: int = 0
    link: int = 0
    info: int = 0
    alignment: int = 1
    entry_bytes: int = 0

    def bytes_in(self, image: bytes) -> int:
        """Number of bytes of the section that the file contains."""
        end = min(self.offset + self.size, len(image))
        return 0 if self.kind == ZEROS else max(0, end - self.offset)

    def content(self, image: bytes) -> bytes:
        """Its bytes; none of one that is just zero."""
        return b"" if self.kind == ZEROS else image[self.offset : self.offset + self.size]


class CubinFile:
    """The sections and symbols of a cubin; threads may share it.

    `capability` is 90 for sm_90, `compiler` what made it ("ptxas 13.0.88").
    """

    def __init__(self, image: bytes) -> None:
        """Raises ValueError for a damaged image."""
        if image[:4] != b"\x7fELF":
            raise ValueError("it is not an ELF file")
        if not is_of_gpu(image):
            raise ValueError("it is an ELF file, but holds no code for a GPU")
        if image[4:6] not in (b"", _64_BIT):
            raise ValueError("it is not a 64-bit cubin")
        try:
            ident, kind, *_, table, flags, _, _, _, _, count, strings = HEADER.unpack_from(image)
            self.sections = [
                Section(*SECTION.unpack_from(image, table + n * SECTION.size)) for n in range(count)
            ]
            if sum(x.bytes_in(image) for x in self.sections) > SHARED * len(image):
                raise ValueError("its sections have many times the bytes of the file")
            names = self.sections[strings].content(image)
            self.names = _strings(names, [x.name for x in self.sections], len(image))  # in order
        except (struct.error, IndexError, ValueError, OverflowError) as error:
            raise ValueError("it is damaged") from error
        # the ABI of CUDA 13 made room for the architecture in the second byte
        self.capability = flags >> (8 if ident[8] >= 8 else 0) & 0xFF
        self.is_relocatable = kind == _RELOCATABLE
        version = _TOOL_VERSION.search(image)
        self.compiler = f"ptxas {version[1].decode()}" if version else "ptxas"
        self.image = image
        self._by_name = dict(zip(self.names, self.sections, strict=True))

    @property
    def kernels(self) -> list[str]:
        """The symbols of the kernels, in order."""
        prefix = ".nv.constant0."  # the bank of launch parameters, which only kernels have
        return [name.removeprefix(prefix) for name in self.names if name.startswith(prefix)]

    def has(self, name: str) -> bool:
        return name in self._by_name

    def content(self, name: str) -> bytes:
        """Bytes of a section; empty if it is only zeros. Raises KeyError if there is none."""
        return self._by_name[name].content(self.image)

    def place(self, name: str) -> tuple[int, int]:
        """Offset of a section in the image, and its size in bytes. Raises KeyError without it."""
        section = self._by_name[name]
        return section.offset, section.size

    @cached_property
    def symbols(self) -> list[Symbol]:
        found = list(SYMBOL.iter_unpack(self.content(".symtab")))
        names = _strings(self.content(".strtab"), [name for name, *_ in found], len(self.image))
        return [
            Symbol(
                name=name,
                kind=info & 0xF,
                section=self.names[section] if section < len(self.names) else "",
                value=value,
                size=size,
                is_managed=bool(other & _MANAGED),
            )
            for name, (_, info, other, section, value, size) in zip(names, found, strict=True)
        ]

    def attributes(self, name: str) -> list[tuple[int, bytes]]:
        """(attribute, payload) for each in a section `.nv.info`. Raises KeyError without it."""
        return list(_attributes_in(self.content(name)))

    def relocations(self, name: str) -> Iterator[tuple[int, int, Symbol, int | None]]:
        """(offset, type, symbol, addend) for section `name`; no addend where it is in there."""
        for prefix, form in ((".rel", "<QQ"), (".rela", "<QQq")):
            if not self.has(prefix + name):
                continue
            for offset, info, *addend in struct.iter_unpack(form, self.content(prefix + name)):
                symbol = self.symbols[info >> 32]
                yield offset, info & 0xFFFFFFFF, symbol, addend[0] if addend else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Symbol:
    """Symbol with its place in a section; the section is "" if it is in another file."""

    name: str
    kind: int
    section: str
    value: int
    size: int
    is_managed: bool = False  #: a `__managed__` variable


def _strings(strings: bytes, offsets: Sequence[int], file_bytes: int) -> list[str]:
    """The strings at offsets of a table. Those of a damaged file may be one long string each.

    Raises ValueError where they have many times the bytes of the file, or one has no end.
    """
    left, found = SHARED * file_bytes, []
    for offset in offsets:
        end = strings.index(0, offset, offset + left + 1)
        left -= end - offset
        found.append(strings[offset:end].decode(errors="replace"))
    return found


def _attributes_in(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset < len(data):
        form, code, value = struct.unpack_from("<BBH", data, offset)
        offset += 4
        if form == _SIZED_VALUE:
            yield code, data[offset : offset + value]
            offset += value
        else:  # the value itself stands where the length would
            yield code, struct.pack("<H", value)
