"""Fetches from textures, and accesses of surfaces.

An instruction names its object by the lower 32 bits of a handle: in a constant (sm_75 to sm_89), in
a uniform register (from sm_90 on), or in a register, where each lane may name another (.B). Mipmaps
do not exist here, so levels and derivatives are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolkit.machine_code.instruction import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Special,
)
from toolkit.sass.core.binding import POOL
from toolkit.sass.isa.memory import (
    ATOMIC_TYPES,
    ATOMICS,
    CACHING,
    TYPE_SHIFT,
    U32,
    check_whole,
    width,
)
from toolkit.sass.isa.registry import Lowering, is_predicate, opcode
from toolkit.sass.isa.slots import ConstantWord, Source, refuse, refuse_form

TEXTURES = ("TEX", "TLD", "TLD4", "TXD")
SURFACES = ("SULD", "SUST", "SURED")

# Ins.aux of texture.h
LAYERED = 4
MASK_SHIFT, CHANNEL_SHIFT, REDUCE_SHIFT = 3, 9, 8
FETCHES, GATHERS = 1 << 7, 1 << 8
OUTSIDE_IGNORED, OUTSIDE_CLAMPED = 8, 16
ALL_CHANNELS = 15
MOST_COORDINATES = 3

# Axes of what is fetched, and LAYERED.
_SHAPES = {
    "1D": 1,
    "2D": 2,
    "3D": 3,
    "ARRAY_1D": 1 | LAYERED,
    "ARRAY_2D": 2 | LAYERED,
    "1D_ARRAY": 1 | LAYERED,
    "2D_ARRAY": 2 | LAYERED,
}
_AXES = 3  # bits of a shape
_CUBES = ("CUBE", "ARRAY_CUBE")
_CHANNELS = "RGBA"
# How the level is chosen: of one level all are the same. .B of a handle in a register, too.
_LEVELS = "LL LZ LB NDV"
# What NVRTC's texture functions do not ask for.
_REFUSED = {
    "DC": "a depth comparison",
    "AOFFI": "offsets of texels",
    "LC": "a clamped level of detail (mipmaps)",
    "PTP": "a gather with four offsets",
}


@opcode("TEX", "TLD", modifiers=f"SCR B {_LEVELS}")
def tex(i: Lowering) -> None:
    """[predicate,] channels from the third on, the first two, coordinates, more, handle, shape"""
    predicates, high, low, first, rest, handle, shape, mask = fetch_operands(i)
    words = (
        coordinate_words(shape) + (handle is None) + ("LL" in i.modifiers or "LB" in i.modifiers)
    )
    in_first = (words + 1) // 2 if "SCR" in i.modifiers else coordinate_words(shape)
    found = [
        word(i, first, k) if k < in_first else word(i, rest, k - in_first) for k in range(words)
    ]
    layer, *found = found if shape & LAYERED else (Source(POOL), *found)
    axes = shape & _AXES
    flags = FETCHES if i.opcode == "TLD" else 0
    emit_fetch(
        i, predicates, high, low, handle or found[axes], found[:axes], layer, shape | flags, mask
    )


@opcode("TXD", modifiers="B")
def txd(i: Lowering) -> None:
    """As TEX, with derivatives of the coordinates: handle, coordinates and layer in one range."""
    predicates, high, low, first, _, handle, shape, mask = fetch_operands(i)
    start = int(handle is None)
    axes = shape & _AXES
    coordinates = [word(i, first, start + k) for k in range(axes)]
    layer = word(i, first, start + axes) if shape & LAYERED else Source(POOL)
    emit_fetch(
        i, predicates, high, low, handle or word(i, first, 0), coordinates, layer, shape, mask
    )


@opcode("TLD4", modifiers="SCR R G B A")
def tld4(i: Lowering) -> None:
    """As TEX: one channel of the four texels that a linear filter reads."""
    predicates, high, low, first, rest, handle, shape, mask = fetch_operands(i)
    words = coordinate_words(shape) + (handle is None)
    in_first = (words + 1) // 2 if "SCR" in i.modifiers else coordinate_words(shape)
    found = [
        word(i, first, k) if k < in_first else word(i, rest, k - in_first) for k in range(words)
    ]
    layer, *found = found if shape & LAYERED else (Source(POOL), *found)
    axes = shape & _AXES
    channel = _CHANNELS.index(next(name for name in i.modifiers if name in _CHANNELS))
    flags = GATHERS | channel << CHANNEL_SHIFT
    emit_fetch(
        i, predicates, high, low, handle or found[axes], found[:axes], layer, shape | flags, mask
    )


@opcode("TXQ", modifiers="B")
def txq(i: Lowering) -> None:
    """high, low, level or handle, TEX_HEADER_DIMENSION, [handle,] mask: sizes of an object"""
    high, low, first, what, *rest = i.operands
    if what != Special(name="TEX_HEADER_DIMENSION"):
        refuse_form(i, f"a query of a texture other than its sizes ({what})")
    handle, behind = handle_of(i, rest)
    mask = _mask(i, behind)
    i.emit(
        "TEXTURE_QUERY",
        d=low,
        d2=high,
        s=[handle or word(i, first, 0)],
        aux=mask << MASK_SHIFT,
    )


def fetch_operands(
    i: Lowering,
) -> tuple[list[Operand], Operand, Operand, Operand, Operand, Source | None, int, int]:
    """Predicates, both results, both ranges of registers, the handle, the shape, the channels.

    The handle is None where it is among the registers.
    """
    for name, what in _REFUSED.items():
        if name in i.modifiers:
            refuse_form(i, f"the simulator does not know {what} (.{name})")
    operands = list(i.operands)
    predicates = [operands.pop(0)] if is_predicate(operands[0]) else []
    high, low, first = operands[:3]
    at = next(k for k, x in enumerate(operands) if isinstance(x, Special))
    named = operands[3:at]
    rest: Operand = Register(file="R", index=255)
    if named and isinstance(named[0], Register) and named[0].file == "R":
        rest = named.pop(0)
    handle, _ = handle_of(i, named)
    shape = operands[at]
    assert isinstance(shape, Special)
    if shape.name in _CUBES:
        refuse(i.instruction, "cubemaps are not simulated: fetch from a layered 2D texture")
    if shape.name not in _SHAPES:
        refuse_form(i, f"the simulator does not know textures of shape {shape.name}")
    return (
        predicates,
        high,
        low,
        first,
        rest,
        handle,
        _SHAPES[shape.name],
        _mask(i, operands[at + 1 :]),
    )


def channels_written(instruction: Instruction) -> int:
    """Channels that a fetch writes, one register each."""
    last = instruction.operands[-1]
    return (last.integer if isinstance(last, Immediate) else ALL_CHANNELS).bit_count()


def _mask(i: Lowering, operands: Sequence[Operand]) -> int:
    """The channels that an instruction writes: the number at its end, else all."""
    return i.number(operands[0], ALL_CHANNELS + 1) if operands else ALL_CHANNELS


def coordinate_words(shape: int) -> int:
    return (shape & _AXES) + (1 if shape & LAYERED else 0)


def handle_of(i: Lowering, operands: Sequence[Operand]) -> tuple[Source | None, Sequence[Operand]]:
    """The handle that operands begin with, and the operands behind it.

    `0x0, 0x58` is word 0x58 of bank 0; `UR4, 0x0` and `UR4` are a uniform register.
    """
    match operands:
        case [Immediate() as bank, Immediate() as place, *rest]:
            return Source(i.words(ConstantWord(bank.integer, 4 * place.integer))), rest
        case [Register(file="UR") as register, Immediate(text="0x0"), *rest]:
            return Source(i.slot(register)), rest
        case [Register(file="UR") as register, *rest]:
            return Source(i.slot(register)), rest
    return None, operands


def word(i: Lowering, operand: Operand, k: int) -> Source:
    """Word `k` of a range of registers."""
    check_whole(i, operand)
    assert isinstance(operand, Register)
    if operand.index == 255:
        return Source(POOL)
    return Source(i.slot(replace(operand, index=operand.index + k)))


def emit_fetch(
    i: Lowering,
    predicates: Sequence[Operand],
    high: Operand,
    low: Operand,
    handle: Source,
    coordinates: Sequence[Source],
    layer: Source,
    aux: int,
    mask: int,
) -> None:
    unused = [Source(POOL)] * (MOST_COORDINATES - len(coordinates))
    i.emit(
        "TEXTURE",
        d=low,
        d2=high,
        s=[handle, *coordinates, *unused, layer],
        pd=predicates,
        aux=aux | mask << MASK_SHIFT,
    )


_SURFACES = " ".join(name for name in _SHAPES if not name.startswith("ARRAY"))
_FORMS = f"D BA TRAP IGN {_SURFACES} {CACHING}"


@opcode("SULD", modifiers=f"{_FORMS} U8 S8 U16 S16 64 128")
def suld(i: Lowering) -> None:
    """register, [coordinates], handle"""
    d, address, *handle = i.operands
    surface(i, "SURFACE_LOAD", address, handle, d=d)


@opcode("SUST", modifiers=f"{_FORMS} P R U8 S8 U16 S16 64 128")
def sust(i: Lowering) -> None:
    """[coordinates], data, handle"""
    address, data, *handle = i.operands
    if "P" in i.modifiers:
        refuse_form(i, "stores that convert to the surface's type (sust.p) are not simulated")
    surface(i, "SURFACE_STORE", address, handle, data)


# all that PTX's sured does
@opcode("SURED", modifiers=f"{_FORMS} ADD MIN MAX AND OR U32 S32 64 U64 S64 SD32 SD64")
def sured(i: Lowering) -> None:
    """[coordinates], data, handle"""
    address, data, *handle = i.operands
    if "BA" not in i.modifiers:
        refuse_form(i, "reductions of the surface's own type (sured.p) are not simulated")
    kind = i.first(ATOMIC_TYPES, U32)
    aux = (i.choice(ATOMICS) | kind << TYPE_SHIFT) << REDUCE_SHIFT
    surface(i, "SURFACE_REDUCE", address, handle, data, aux=aux)


def surface(
    i: Lowering,
    operation: str,
    address: Operand,
    handle: Sequence[Operand],
    data: Operand | None = None,
    *,
    d: Operand | None = None,
    aux: int = 0,
) -> None:
    """An access to a surface; without .TRAP or .IGN one outside of it is clamped."""
    match address:
        case Address(registers=(Register(file="R") as first,), offset=0):
            pass
        case _:
            i.refuse_operand(address, "registers of coordinates")
    shape = i.choice(_SHAPES)
    object_, _ = handle_of(i, handle)
    words = [word(i, first, k) for k in range(coordinate_words(shape))]
    words += [Source(POOL)] * (MOST_COORDINATES - len(words))
    if object_ is None:
        object_ = word(i, handle[0], 0)
    outside = (
        0 if "TRAP" in i.modifiers else OUTSIDE_IGNORED if "IGN" in i.modifiers else OUTSIDE_CLAMPED
    )
    if data is not None:
        check_whole(i, data)
    assert data is None or isinstance(data, Register)
    i.emit(
        operation,
        d=d,
        s=[object_, *words, *([] if data is None else [i.slot(data)])],
        width=width(i),
        aux=shape | outside | aux,
    )
