"""What the ELF file of a compiled kernel says: the kernels in it and what each one uses.

The attributes of section `.nv.info` are what ptxas and cuobjdump print; NVIDIA documents them
only by name (`cuobjdump -elf`). A test compares the numbers read here with those of ptxas.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from toolkit.sass.instruction import SourceLine
from toolkit.sass.lines import line_table

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_FRAME_SIZE = 0x11  # EIATTR_FRAME_SIZE: bytes of local memory per thread, spills included
_REGISTER_COUNT = 0x2F  # EIATTR_REGCOUNT; the upper byte of sh_info holds it only before sm_90
_PARAMETER_BANK = 0x0A  # EIATTR_PARAM_CBANK: symbol, offset in bank 0, bytes
_PARAMETER = 0x17  # EIATTR_KPARAM_INFO: index, ordinal, offset, bytes << 18 and flags
_SIZED_VALUE = 0x04  # EIFMT_SVAL: the attribute's payload follows, its length is in the header

_TOOL_VERSION = re.compile(rb"Cuda compilation tools, release [\d.]+, V([\d.]+)")

# From sm_90 on the compiler counts 1 KB of each block, which the system keeps for itself, into
# the section of static shared memory; ptxas and the occupancy rules do not ("smem" of -v).
_RESERVED_SHARED_BYTES = 0x400
_FIRST_WITH_RESERVED_IN_SECTION = 90


@dataclass(frozen=True, kw_only=True)
class KernelSizes:
    """What a kernel uses: registers and local bytes per thread, static shared bytes per block."""

    registers_per_thread: int
    static_shared_bytes: int
    local_bytes: int


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A kernel parameter: where it stands among the parameters, and its size in bytes."""

    ordinal: int
    offset: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a cubin was compiled for (90 for sm_90), and by what ("ptxas 13.0.88")."""

    capability: int
    compiler: str


def origin(image: bytes) -> Origin:
    """Where a cubin comes from. Raises ValueError for bytes that are no cubin."""
    if image[:4] != b"\x7fELF":
        raise ValueError("it is no ELF file")
    header = _elf(image).header
    if header.e_machine != "EM_CUDA":
        raise ValueError("it is an ELF file, but holds no code for a GPU")
    version = _TOOL_VERSION.search(image)
    return Origin(
        # the ABI of CUDA 13 made room for the architecture in the second byte
        capability=header.e_flags >> (8 if header.e_ident["EI_ABIVERSION"] >= 8 else 0) & 0xFF,
        compiler=f"ptxas {version[1].decode()}" if version else "ptxas",
    )


def kernel_symbols(image: bytes) -> list[str]:
    """The symbol names of the kernels in a cubin, in its order."""
    prefix = ".nv.constant0."  # the bank of launch parameters, which only kernels have
    names = (section.name for section in _elf(image).iter_sections())
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def kernel_sizes(image: bytes, symbol: str, *, capability: int) -> KernelSizes:
    """What kernel `symbol` of a cubin for compute capability `capability` (86) uses.

    Raises KeyError where the cubin has no such kernel.
    """
    elf = _elf(image)
    attributes = {(code, name): value for code, name, value in _attributes(elf)}
    return KernelSizes(
        registers_per_thread=attributes[_REGISTER_COUNT, symbol],
        static_shared_bytes=_static_shared_bytes(elf, symbol, capability),
        local_bytes=attributes[_FRAME_SIZE, symbol],
    )


def parameters(image: bytes, symbol: str) -> tuple[int, tuple[Parameter, ...]]:
    """Where in constant bank 0 the parameters of a kernel begin, and the parameters in order."""
    section: Any = _elf(image).get_section_by_name(f".nv.info.{symbol}")
    base, found = 0, []
    for code, payload in _records(section.data()):
        if code == _PARAMETER_BANK:
            _, base, _ = struct.unpack("<IHH", payload)
        elif code == _PARAMETER:
            _, ordinal, offset, packed = struct.unpack("<IHHI", payload)
            found.append(Parameter(ordinal=ordinal, offset=offset, size=packed >> 18))
    return base, tuple(sorted(found, key=lambda parameter: parameter.ordinal))


def constant_banks(image: bytes, symbol: str) -> dict[int, bytes]:
    """The content of the constant banks that a kernel sees, before a launch adds to it."""
    banks = {}
    for section in _elf(image).iter_sections():
        match = re.fullmatch(r"\.nv\.constant(\d+)(?:\.(.+))?", section.name)
        if match and match[2] in (None, symbol):
            banks[int(match[1])] = section.data()
    return banks


def source_lines(image: bytes, symbol: str) -> dict[int, SourceLine]:
    """The source line of each instruction of a kernel, by address; empty without -lineinfo."""
    elf: Any = _elf(image)
    section, relocations = (
        elf.get_section_by_name(name) for name in (".debug_line", ".rela.debug_line")
    )
    relocations = relocations or elf.get_section_by_name(".rel.debug_line")
    if section is None or relocations is None:
        return {}
    symbols: Any = elf.get_section_by_name(".symtab")
    targets = {
        entry["r_offset"]: symbols.get_symbol(entry["r_info_sym"]).name
        for entry in relocations.iter_relocations()
    }
    size = elf.get_section_by_name(f".text.{symbol}")["sh_size"]
    return line_table(section.data(), targets, symbol, size)


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(attribute, payload) of a section of attributes."""
    offset = 0
    while offset < len(data):
        form, code, value = struct.unpack_from("<BBH", data, offset)
        offset += 4
        if form == _SIZED_VALUE:
            yield code, data[offset : offset + value]
            offset += value
        else:
            yield code, struct.pack("<H", value)


def _static_shared_bytes(elf: ELFFile, symbol: str, capability: int) -> int:
    section = elf.get_section_by_name(f".nv.shared.{symbol}")
    if section is None:
        return 0
    in_section = capability >= _FIRST_WITH_RESERVED_IN_SECTION
    return int(section["sh_size"]) - (_RESERVED_SHARED_BYTES if in_section else 0)


def _attributes(elf: ELFFile) -> Iterator[tuple[int, str, int]]:
    """(attribute, symbol, value) for each attribute of `.nv.info` that belongs to a symbol."""
    symbols: Any = elf.get_section_by_name(".symtab")
    attributes: Any = elf.get_section_by_name(".nv.info")
    data = attributes.data()
    offset = 0
    while offset < len(data):
        form, code, length = struct.unpack_from("<BBH", data, offset)
        offset += 4
        if form != _SIZED_VALUE:
            continue  # the value itself stands where the length would
        if length == 8:
            index, value = struct.unpack_from("<II", data, offset)
            yield code, symbols.get_symbol(index).name, value
        offset += length


def _elf(image: bytes) -> ELFFile:
    from elftools.elf.elffile import ELFFile

    return ELFFile(BytesIO(image))
