"""Text on textures and surfaces: an access that does not suit its object, what is not counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from reports import text
from toolkit.sass import machine
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.core.binding import Fault
from toolkit.sass.isa.texture import LAYERED, SURFACES, TEXTURES
from toolkit.sass.textures import FIRST_HANDLE, OF_MEMORY, OF_SURFACE
from toolkit.sass.translate import Translated


def describe_textures(translated: Translated, counts: NDArray[Any]) -> Iterator[str]:
    """Note on requests to textures and surfaces, if there were any: what is not counted."""
    instructions = translated.kernel.instructions
    for opcodes, what in ((TEXTURES, "texture"), (SURFACES, "surface")):
        requests = sum(
            int(count["executed"])
            for instruction, count in zip(instructions, counts, strict=True)
            if instruction.opcode in opcodes
        )
        if requests:
            yield (
                f"{text.many(requests, f'{what} request')} of warps: the counters of L1 leave them "
                "out; L2, DRAM and the time take them for global accesses to an array stored row "
                "by row (how a CUDA array is stored is not known)"
            )


def unchecked_surfaces(translated: Translated) -> Iterator[str]:
    """Note on accesses of surfaces, whose bounds are checked, but not their order."""
    if any(one.opcode in SURFACES for one in translated.kernel.instructions):
        yield "racecheck and initcheck did not check surfaces: only their bounds were checked"


def describe_texture_fault(fault: Fault, translated: Translated, bound: BoundLaunch) -> str:
    """Describe an access to an object that does not exist or is of another kind."""
    objects = bound.textures if bound.textures is not None else ()
    found = next((x for x in objects if x["handle"] == fault.address), None)
    if fault.kind != machine.NO_TEXTURE:
        assert found is not None
        return _surface_access(fault, found)
    opcode = translated.kernel.instructions[fault.instruction].opcode
    is_surface = opcode in SURFACES
    axes, layered = int(fault.width_bytes) & 3, bool(int(fault.width_bytes) & LAYERED)
    kind, call = ("surface", "surf") if is_surface else ("texture", "tex")
    if found is None:
        remedy = (
            "Surface(array), or surf:f32[512,512]"
            if is_surface
            else "Texture(array), or tex:f32[512,512]"
        )
        return (
            f"no {kind} has the handle {fault.address:#x}: pass a toolkit.{remedy} on the command "
            "line"
        )
    wanted = (
        "a fetch from linear memory (tex1Dfetch)"
        if opcode == "TLD" and axes == 1
        else (f"an access by {call}{axes}D{'Layered' if layered else ''}")
    )
    return f"{wanted} names {_shown(found)}: {_remedy(found, opcode, axes, layered, is_surface)}"


def _shown(found: Any) -> str:
    argument = f"argument {int(found['handle']) - FIRST_HANDLE}"
    if found["kind"] == OF_MEMORY:
        return f"{argument}, a texture of linear memory"
    kind = "surface" if found["kind"] == OF_SURFACE else "texture"
    layers = f" with {text.many(int(found['layers']), 'layer')}" if found["layers"] else ""
    return f"{argument}, a {int(found['axes'])}D {kind}{layers}"


def _remedy(found: Any, opcode: str, axes: int, layered: bool, is_surface: bool) -> str:
    if (found["kind"] == OF_SURFACE) != is_surface:
        return f"give a {'surface (surf:)' if is_surface else 'texture (tex:)'}"
    if found["kind"] == OF_MEMORY:
        return (
            "tex1D needs an array (add `array`, or memory=False in Python), tex2D one of two axes"
        )
    if opcode == "TLD" and axes == 1:
        return "leave out filter, address mode, `normalized` and `array`"
    if layered != bool(found["layers"]):
        return f"{'add' if layered else 'leave out'} `layered`"
    return f"give an array of {axes} {'axis' if axes == 1 else 'axes'}"


def _surface_access(fault: Fault, found: NDArray[Any]) -> str:
    width, axes = int(fault.width_bytes), int(found["axes"])
    row = int(found["size"][0]) * int(found["bytes"]) * int(found["channels"])
    what = f"surface {'write' if fault.is_store else 'read'} of {text.many(width, 'byte')}"
    x, *others = (_signed(value) for value in (fault.waiting, fault.resident, fault.pending))
    if fault.kind == machine.SURFACE_MISALIGNED:
        return (
            f"misaligned {what} at byte {x:,} of a row of {_shown(found)}: it is not a multiple of "
            f"{width} (x of a surface is in bytes)"
        )
    at = [
        f"byte {x:,}",
        *(f"{name} = {value:,}" for name, value in zip("yz", others[: axes - 1], strict=False)),
    ]
    extents = [text.many(row, "byte"), *(f"{int(n):,}" for n in found["size"][1:axes])]
    if found["layers"]:
        at.append(f"layer {_signed(fault.phase):,}")
        extents.append(f"{int(found['layers']):,} layers")
    hint = " (x of a surface is in bytes)" if 0 <= x < row * width else ""
    return (
        f"{what} out of bounds at {', '.join(at)}: {_shown(found)}, has {' x '.join(extents)}{hint}"
    )


def _signed(word: int) -> int:
    return int(word) - (1 << 32) if int(word) >> 31 else int(word)
