"""Files with device code, and the machine code and PTX in them.

A fatbin is a header and entries, each a cubin, a PTX text or LTO IR for one architecture, which may
be compressed. NVIDIA does not document it: what is here was compared with what nvcc 13 writes in
each mode of compression. Executables, object files and libraries hold fatbins: in .nv_fatbin and,
of relocatable device code (-rdc), in __nv_relfatbin. They are found by their first 8 bytes, so that
a static library or a DLL needs no reader of its own.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from analysis.errors import InputError, UnavailableError
from toolkit.machine_code.elf import HEADER, SECTION, CubinFile, cubin_file, is_of_gpu

MOST_BYTES = 2**30  # of an entry that is compressed

_FATBIN = struct.Struct("<IHHQ")  # magic number, version, bytes of the header, bytes after it
_BEGIN = struct.pack("<IHH", 0xBA55ED50, 1, _FATBIN.size)
# kind, version, bytes of the header and of the content with padding; bytes of compressed content,
# options of ptxas, minor and major version, architecture, name of the source, flags, bytes of the
# content once it is not compressed
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_LZ4, _ZSTANDARD = 0x2000, 0x8000
_TO_BE_LINKED = b"--compile-only"  # among the options
_OF_ARCHITECTURE, _OF_FAMILY = 0x100000, 0x200000  # sm_90a, sm_100f

_COMMENTS = re.compile(r"(?:\s|//[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_PTX_VERSION = re.compile(r"\.version\s+\d+\.\d+\s")
_PTX_TARGET = re.compile(r"^\s*\.target\s+sm_(\d+)([af]?)", re.MULTILINE)
_PTX_ENTRY = re.compile(r"^[^\n/\"]*\.entry\s+([\w$]+)", re.MULTILINE)
HEAD_BYTES = 2**16  # in which a file shows what it is


class Form(StrEnum):
    """Kind of a file with device code, in words."""

    CUBIN = "cubin"
    FATBIN = "fatbin"
    PTX = "PTX"
    HOST = "executable, object file or library"


class EntryKind(StrEnum):
    """Kind of an entry."""

    CUBIN = "machine code"
    PTX = "PTX"
    LTO = "LTO IR"


_KINDS = {1: EntryKind.PTX, 2: EntryKind.CUBIN, 8: EntryKind.LTO}


@dataclass(frozen=True, kw_only=True)
class ContainerEntry:
    """Device code for one architecture; `capability` is 90 of sm_90a, and `suffix` "a"."""

    kind: EntryKind
    capability: int
    suffix: str
    stored: bytes  #: content as it is in the file
    compression: int = 0
    size: int = 0  #: bytes of the content, if it is compressed
    group: int = 0  #: number of its fatbin, which has one source file
    is_part: bool = False  #: it was made to be linked with others (nvcc -rdc=true)

    @property
    def architecture(self) -> str:
        return f"sm_{self.capability}{self.suffix}"

    @property
    def content(self) -> bytes:
        """Machine code, or the text of PTX. Raises InputError where it is damaged."""
        if self.compression:
            return _decompressed(self.stored, self.compression, self.size)
        return self.stored.rstrip(b"\0") if self.kind == EntryKind.PTX else self.stored

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """Symbols of its kernels. Raises InputError for damaged machine code."""
        if self.kind == EntryKind.CUBIN:
            return tuple(_cubin(self.content).kernels)
        return tuple(_PTX_ENTRY.findall(_text(self.content))) if self.kind == EntryKind.PTX else ()

    @cached_property
    def is_relocatable(self) -> bool:
        """True for machine code that must be linked before it runs (nvcc -rdc=true)."""
        return self.kind == EntryKind.CUBIN and _cubin(self.content).is_relocatable


def form_of(content: bytes) -> Form | None:
    """Return the form of a file with this content; None without device code, as of a source."""
    if content[:4] == b"\x7fELF":
        return Form.CUBIN if is_of_gpu(content) else Form.HOST
    if content.startswith(_BEGIN[:4]):
        return Form.FATBIN
    if content.startswith((b"!<arch>\n", b"MZ")):  # static libraries, and programs of Windows
        return Form.HOST
    head = content[:HEAD_BYTES].decode(errors="replace")
    match = _COMMENTS.match(head)
    return Form.PTX if match and _PTX_VERSION.match(head, match.end()) else None


def entries_of(content: bytes) -> list[ContainerEntry]:
    """The device code in a file, in order. Raises InputError for a damaged or truncated file."""
    match form_of(content):
        case Form.CUBIN:
            file = _cubin(content)
            return [
                ContainerEntry(
                    kind=EntryKind.CUBIN, capability=file.capability, suffix="", stored=content
                )
            ]
        case Form.PTX:
            return [_ptx(content)]
        case Form.FATBIN:
            return list(_of_fatbins(content, aligned=True))
        case Form.HOST:
            _check_whole(content)
            return list(_of_fatbins(content, aligned=False))
    raise InputError("it holds no device code")


def _ptx(content: bytes) -> ContainerEntry:
    target = _PTX_TARGET.search(_text(content))
    if target is None:
        raise InputError("the PTX has no .target")
    return ContainerEntry(
        kind=EntryKind.PTX,
        capability=int(target[1]),
        suffix=target[2],
        stored=content.rstrip(b"\0"),
    )


def _of_fatbins(content: bytes, *, aligned: bool) -> Iterator[ContainerEntry]:
    """Entries of all fatbins; `aligned` where the file is one, and begins with it."""
    at, number = content.find(_BEGIN), 0
    if aligned and at != 0:
        raise InputError("the fatbin has an unknown version: name the cubin or the PTX itself")
    while at >= 0:
        end = at + _FATBIN.size
        if end <= len(content):
            _, _, header, size = _FATBIN.unpack_from(content, at)
            end = at + header + size
        if end > len(content):
            raise InputError(
                f"it is truncated: a fatbin goes on for {end - len(content):,} bytes: make it again"
            )
        yield from _of_fatbin(content, at + _FATBIN.size, end, number)
        at, number = content.find(_BEGIN, end), number + 1


def _of_fatbin(content: bytes, at: int, end: int, number: int) -> Iterator[ContainerEntry]:
    while at + _ENTRY.size <= end:
        kind, _, header, padded, packed, options, _, _, capability, _, _, flags, _, size = (
            _ENTRY.unpack_from(content, at)
        )
        start, after = at + header, at + header + padded
        if header < _ENTRY.size or not start <= after <= end:
            raise InputError(f"a fatbin is damaged: an entry of {padded:,} bytes does not fit")
        compression = flags & (_LZ4 | _ZSTANDARD)
        if kind in _KINDS:
            suffixes = {_OF_ARCHITECTURE: "a", _OF_FAMILY: "f"}
            yield ContainerEntry(
                kind=_KINDS[kind],
                capability=capability,
                suffix=suffixes.get(flags & (_OF_ARCHITECTURE | _OF_FAMILY), ""),
                stored=content[start : start + packed] if compression else content[start:after],
                compression=compression,
                size=size,
                group=number,
                is_part=options > 0 and _TO_BE_LINKED in content[at + options : start],
            )
        at = after


def _decompressed(stored: bytes, compression: int, size: int) -> bytes:
    """Content of `size` bytes. Raises InputError for damaged bytes, UnavailableError for a lack."""
    if size > MOST_BYTES:
        raise InputError(f"an entry of {size:,} bytes is too large: {MOST_BYTES:,} are read")
    try:
        if compression == _LZ4:
            import lz4.block

            content: bytes = lz4.block.decompress(stored, uncompressed_size=size)
        else:
            import zstandard

            content = zstandard.ZstdDecompressor().decompress(stored, max_output_size=size)
    except ImportError as error:
        raise UnavailableError(
            f"{error.name} is not installed, and this device code is compressed: pip install "
            "lz4 zstandard"
        ) from None
    except Exception as error:  # of these libraries, for damaged bytes
        raise InputError("it is damaged: an entry cannot be decompressed") from error
    if len(content) != size:
        raise InputError(f"it is damaged: an entry has {len(content):,} of {size:,} bytes")
    return content


def _cubin(content: bytes) -> CubinFile:
    try:
        return cubin_file(content)
    except ValueError as error:
        raise InputError(f"the machine code is not a cubin: {error}") from error


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


def _check_whole(content: bytes) -> None:
    """Raise InputError for an ELF file whose table of sections is not there any more."""
    if content[:4] != b"\x7fELF":
        return
    is_64_bit = content[4:5] == b"\2"
    if is_64_bit and len(content) >= HEADER.size:
        _, _, _, _, _, _, table, *_, count, _ = HEADER.unpack_from(content)
        if table + count * SECTION.size <= len(content):
            return
    elif not is_64_bit and len(content) > 5:
        raise InputError("it is a 32-bit program, which CUDA no longer supports")
    raise InputError("it is truncated: its table of sections is beyond its end: make it again")
