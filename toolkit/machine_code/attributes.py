"""Attributes of a kernel in its cubin: what it needs of an SM, its parameters and its bounds.

The attributes of section `.nv.info` are what ptxas and cuobjdump print; NVIDIA documents them
only by name (`cuobjdump -elf`). A test compares the numbers read here with those of ptxas.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from analysis.occupancy import Resources
from toolkit.machine_code.elf import CubinFile

_STACK_SIZE = 0x12  # EIATTR_MIN_STACK_SIZE: local memory per thread, with that of all callees
_FRAME_SIZE = 0x11  # EIATTR_FRAME_SIZE: local memory per thread, with spills and known callees
_REGISTER_COUNT = 0x2F  # EIATTR_REGCOUNT; the upper byte of sh_info holds it only before sm_90
_PARAMETER_BANK = 0x0A  # EIATTR_PARAM_CBANK: symbol, offset in bank 0, bytes
_PARAMETER = 0x17  # EIATTR_KPARAM_INFO: index, ordinal, offset, bytes << 18 and flags
_LARGE_PARAMETER = 0x45  # EIATTR_KPARAM_INFO_V2, where one has more bytes than V1 has bits for
_MOST_THREADS = 0x05  # EIATTR_MAX_THREADS: of __launch_bounds__
_REQUIRED_BLOCK = 0x10  # EIATTR_REQNTID: of __block_size__
_CLUSTER = 0x3D  # EIATTR_CTA_PER_CLUSTER: blocks along each axis, of __cluster_dims__
_WARP_OFFSETS = 0x28  # EIATTR_COOP_GROUP_INSTR_OFFSETS: what lanes of a warp do together
_WARP_MASKS = 0x29  # EIATTR_COOP_GROUP_MASK_REGIDS: the register of each one's mask
_NO_REGISTER = 0xFFFFFFFF  # of a mask that is a constant

# From sm_90 on the compiler counts 1 KB of each block, which the system keeps for itself, into
# the section of static shared memory; ptxas and the occupancy rules do not ("smem" of -v).
_RESERVED_SHARED_BYTES = 0x400
_FIRST_WITH_RESERVED_IN_SECTION = 90

# CUDA C++ Programming Guide, "Compute Capabilities".
MOST_REGISTERS = 255  # per thread
MOST_LOCAL_BYTES = 512 * 1024  # per thread
MOST_SHARED_BYTES = 2**20  # per block: more than any device has


@dataclass(frozen=True, kw_only=True)
class KernelParameter:
    """A kernel parameter: where it stands among the parameters, and its size in bytes."""

    ordinal: int
    offset: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Bounds of a launch that a kernel declares."""

    max_threads: int | None  #: of `__launch_bounds__`
    required_block: tuple[int, ...] | None  #: of `__block_size__`
    cluster: tuple[int, int, int]  #: of `__cluster_dims__`


def bounds_of(attributes: Sequence[tuple[int, bytes]]) -> Bounds:
    most, required, cluster = (
        _values(attributes, code) for code in (_MOST_THREADS, _REQUIRED_BLOCK, _CLUSTER)
    )
    x, y, z = (*cluster, 1, 1)[:3]
    return Bounds(
        max_threads=prod(most) or None,
        required_block=required if prod(required) else None,
        cluster=(x or 1, y or 1, z or 1),
    )


def resources_of(file: CubinFile, symbol: str, *, calls: bool) -> Resources:
    """Raises KeyError where the cubin has no such kernel."""
    values = {}
    for code, payload in file.attributes(".nv.info"):
        if len(payload) == 8:
            index, value = struct.unpack("<II", payload)
            values[code, file.symbols[index].name] = value
    resources = Resources(
        architecture=f"sm_{file.capability}",
        compiler=file.compiler,
        registers_per_thread=values[_REGISTER_COUNT, symbol],
        static_shared_bytes=_static_shared_bytes(file, symbol),
        local_bytes=values[_STACK_SIZE if calls else _FRAME_SIZE, symbol],
    )
    for what, value, most in (
        ("registers", resources.registers_per_thread, MOST_REGISTERS),
        ("bytes of shared memory", resources.static_shared_bytes, MOST_SHARED_BYTES),
        ("bytes of local memory", resources.local_bytes, MOST_LOCAL_BYTES),
    ):
        if not 0 <= value <= most:
            raise ValueError(f"{symbol} takes {value:,} {what}, and {most:,} is the most")
    return resources


def _static_shared_bytes(file: CubinFile, symbol: str) -> int:
    section = f".nv.shared.{symbol}"
    if not file.has(section):
        return 0
    in_section = file.capability >= _FIRST_WITH_RESERVED_IN_SECTION
    return file.place(section)[1] - (_RESERVED_SHARED_BYTES if in_section else 0)


def _values(attributes: Sequence[tuple[int, bytes]], wanted: int) -> tuple[int, ...]:
    """The words of an attribute, or its short number; (0,) where it is absent."""
    for code, payload in attributes:
        if code == wanted:
            return _words(payload) if len(payload) > 2 else struct.unpack("<H", payload)
    return (0,)


def launch_parameters(
    attributes: Sequence[tuple[int, bytes]],
) -> tuple[int, tuple[KernelParameter, ...]]:
    """Offset of the parameters in bank 0, and the parameters in order."""
    base, found = 0, []
    for code, payload in attributes:
        if code == _PARAMETER_BANK:
            _, base, _ = struct.unpack("<IHH", payload)
        elif code == _PARAMETER:
            _, ordinal, offset, packed = struct.unpack("<IHHI", payload)
            found.append(KernelParameter(ordinal=ordinal, offset=offset, size=packed >> 18))
        elif code == _LARGE_PARAMETER:
            _, ordinal, offset, size, _ = struct.unpack("<IHHHH", payload)
            found.append(KernelParameter(ordinal=ordinal, offset=offset, size=size))
    return base, tuple(sorted(found, key=lambda parameter: parameter.ordinal))


def warp_operations_of(attributes: Mapping[int, bytes]) -> dict[int, int | None]:
    offsets, masks = (_words(attributes.get(code, b"")) for code in (_WARP_OFFSETS, _WARP_MASKS))
    return {
        offset: None if mask == _NO_REGISTER else mask & 0xFF
        for offset, mask in zip(offsets, masks, strict=True)
    }


def _words(payload: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(payload) // 4}I", payload)
