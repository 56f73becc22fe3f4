"""The arguments of a kernel, written as text: what `simulate --arg` takes.

    f32[4096,4096]          a buffer, filled at random; a size may be a product, 64*1024
    f32[1024]=zeros         filled: zeros, ones, arange, random, a number, or the file data.npy
    f32[1024]=unwritten     an output: `check` reports who reads it before it is written
    data.npy                a buffer as it was saved
    i32=4096                a value; 4096 alone where the source declares a plain type
    n=4096, x=f32[1024]     the same by the name of the parameter
    struct:i32=1,f32=2.0    a struct by value, its fields aligned as in C
    struct[64]:i32,f32[3]=1 a buffer of structs, each field filled as a buffer is
    tex:f32[512,512],linear,clamp   a texture of a buffer: how it is fetched stands behind it
    tex:u8x4[64,64]=FILE.npy,float  u8x4 has 4 channels: the last axis of FILE.npy
    surf:f32[512,512]=zeros         a surface

Behind a texture stand its filter (point, linear), an address mode for all axes or one for each, x
first (clamp, wrap, mirror, border), `normalized` (coordinates from 0 to 1), `float` (integers are
fetched as floats up to 1), `layered` (the first axis are layers), `array` (tex1D, where one axis
alone is memory for tex1Dfetch); behind a surface may stand `layered`; behind a file x2 or x4 for
its channels.

Types are i8 u8 i16 u16 i32 u32 i64 u64 f16 f32 f64 bool, bf16 and the FP8 types e4m3 and e5m2,
c64 and c128 (complex), or NumPy's or C's names for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from analysis.errors import InputError, UnknownNameError, first_line, shortened
from toolkit.cli.typed_numbers import NAMES, is_number, number, type_of
from toolkit.launch.element_types import is_real, small_float, type_named
from toolkit.launch.host_resources import shortage
from toolkit.launch.launch import Argument
from toolkit.launch.random_arrays import random_array
from toolkit.launch.texture import ADDRESS_MODES, FILTERS, Surface, Texture
from toolkit.machine_code.signature import Declared
from toolkit.store.user_files import check_regular

UNWRITTEN = "unwritten"
FILLS = ("random", "zeros", "ones", "arange", UNWRITTEN)
POISON = 0xFF  # bytes of unwritten memory: NaN in every floating type
MOST_AXES = 64  # of an array of NumPy
MOST_ELEMENTS = 2**48  # addresses of a process have 48 bits

_BUFFER = re.compile(r"(?P<type>\w*)\[(?P<shape>[^\]]*)\](?:=(?P<fill>.*))?", re.DOTALL)
_VALUE = re.compile(r"(?P<type>\w*)=(?P<value>.*)", re.DOTALL)
_STRUCTS = re.compile(r"struct\[(?P<shape>[^\]]*)\](?::(?P<fields>.*))?", re.DOTALL)
_FIELD = re.compile(r"(?P<type>\w*)(?:\[(?P<shape>[^\]]*)\])?(?:=(?P<fill>.*))?", re.DOTALL)
_OBJECT = re.compile(r"(?P<kind>tex|surf):(?P<rest>.*)", re.DOTALL)
_BETWEEN_OPTIONS = re.compile(r",(?![^\[]*\])")  # commas outside of brackets
_OF_CHANNELS = re.compile(r"x(\d+)", re.ASCII)
_OF_TEXTURES = (*FILTERS, *ADDRESS_MODES, "normalized", "float", "layered", "array")
_EXAMPLES = (
    "'f32[1024]', 'f32[64,64]=zeros', 'data.npy', 'i32=4096', 'struct:i32=1,f32=2' or "
    "'tex:f32[64,64],linear'"
)


@dataclass(frozen=True, kw_only=True)
class BufferArgument:
    """An array to make: `fill` is one of FILLS, a number, or a file that holds it.

    An array of structs is filled by its `fields`, each an array of this shape or more axes.
    """

    text: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fill: str | np.generic | Path
    fields: tuple[BufferArgument, ...] = ()

    @property
    def is_random(self) -> bool:
        """True if it has random content, at least in a field."""
        if self.fields:
            return any(one.is_random for one in self.fields)
        return isinstance(self.fill, str) and self.fill == "random"

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


# What a parameter of so many bytes may be
_VALUES = {
    1: "i8={0}",
    2: "i16={0} or f16={0}",
    4: "i32={0} or f32={0}",
    8: "i64={0}, f64={0} or, for a pointer, f32[{0}]",
}


@dataclass(frozen=True, kw_only=True)
class ObjectArgument(BufferArgument):
    """A texture or surface to make of an array: the options are those of `Texture`, `Surface`."""

    kind: type[Texture] | type[Surface]
    options: Mapping[str, Any]

    def made(self, array: NDArray[np.generic]) -> Texture | Surface:
        return self.kind(array, **self.options)


def parse_arguments(
    texts: Sequence[str],
    declared: Sequence[Declared] | None = None,
    sizes: Sequence[int] = (),
) -> list[BufferArgument | np.generic]:
    """Description of each argument; no large array is made yet.

    `declared` are the parameters in the source, None if unknown: they give a bare number its type.
    `sizes` are those of the parameters in bytes, for messages, where machine code tells them.
    Raises InputError, which names the argument's position.
    """
    known = [*(declared or ()), *([None] * len(texts))]
    bytes_of = dict(enumerate(sizes))
    return [
        parse_argument(f"--arg {position}", text, known[position], bytes_of.get(position))
        for position, text in enumerate(texts)
    ]


def make_arguments(parsed: Sequence[BufferArgument | np.generic], *, seed: int) -> list[Argument]:
    """The arguments themselves, random ones from `seed` and their position.

    Raises InputError where they do not fit into memory, or a file does not hold what was asked.
    """
    if lack := shortage(buffer_bytes(parsed)):
        largest = max(
            (x for x in parsed if isinstance(x, BufferArgument)), key=lambda buffer: buffer.bytes
        )
        raise InputError(f"the buffers take {lack}: make {largest.text!r} smaller")
    return [
        made(f"--arg {position}", item, np.random.default_rng((seed, position)))
        if isinstance(item, BufferArgument)
        else item
        for position, item in enumerate(parsed)
    ]


def parse_argument(
    option: str, text: str, declared: Declared | None, size: int | None = None
) -> BufferArgument | np.generic:
    """Description of one argument; raises InputError, which begins with the option.

    `size`: bytes of the parameter, None if they are not known.
    """
    try:
        if is_number(text):
            return number(text, _declared_type(text, declared, size))
        is_of_number = declared is not None and not declared.pointer and declared.dtype is not None
        if is_of_number and re.fullmatch(r"\w*", text) and text not in NAMES:
            assert declared is not None, "it has a type"
            raise InputError(f"`{declared.text}` takes a number: give one such as 4096")
        return _parsed(text)
    except InputError as error:
        raise InputError(f"{option} ({shortened(text)!r}): {error}") from error


def _parsed(text: str) -> BufferArgument | np.generic:
    if text.startswith("struct:"):
        return _struct(text.removeprefix("struct:"))
    if match := _STRUCTS.fullmatch(text):
        return _structs(text, _shape(match["shape"]), match["fields"])
    if match := _OBJECT.fullmatch(text):
        return _object(text, match["kind"], match["rest"])
    if match := _BUFFER.fullmatch(text):
        dtype = type_of(match["type"])
        shape = _shape(match["shape"])
        return BufferArgument(text=text, dtype=dtype, shape=shape, fill=_fill(match["fill"], dtype))
    if match := _VALUE.fullmatch(text):
        return number(match["value"], type_of(match["type"]))
    if text.endswith(".npy"):
        path = Path(text)
        array = _opened(path)
        return BufferArgument(text=text, dtype=array.dtype, shape=array.shape, fill=path)
    if text in NAMES:
        raise InputError(f"a size or a value is missing: give '{text}[1024]' or '{text}=1'")
    raise InputError(f"it is not understood: give {_EXAMPLES}")


def _declared_type(text: str, declared: Declared | None, size: int | None) -> np.dtype[Any]:
    """The type that the source gives a bare number; `size` is that of the parameter in bytes."""
    if declared is None and size in _VALUES:
        raise InputError(
            f"the type of this number is unknown here, and the kernel's parameter has {size} bytes:"
            f" give one, such as {_VALUES[size].format(text)}"
        )
    example = f"i32={text}" if re.fullmatch(r"[-+]?\w+", text) else f"f32={text}"
    if declared is None:
        raise InputError(f"the type of this number is unknown here: give one, such as {example}")
    if declared.pointer:
        raise InputError(f"the kernel takes `{declared.text}`: give a buffer, such as f32[{text}]")
    if declared.dtype is None:
        raise InputError(f"`{declared.text}` is not a plain type: give one, such as {example}")
    return type_named(declared.dtype)


def _shape(text: str) -> tuple[int, ...]:
    parts = [re.split(r" *\* *", part.strip()) for part in text.split(",")]
    if not all(re.fullmatch(r"\d{1,18}", one, re.ASCII) for part in parts for one in part):
        raise InputError(f"[{shortened(text)}] is not a size: give one such as [1024] or [64,64]")
    shape = tuple(prod(map(int, part)) for part in parts)
    if len(shape) > MOST_AXES or prod(shape) > MOST_ELEMENTS:
        raise InputError(
            f"[{shortened(text)}] is too large: an array has at most {MOST_AXES} axes and "
            f"{MOST_ELEMENTS:,} elements"
        )
    return shape


def _object(text: str, kind: str, rest: str) -> ObjectArgument:
    """A texture or surface: the buffer, and behind commas its options."""
    buffer, *options = (part.strip() for part in _BETWEEN_OPTIONS.split(rest))
    channels = [int(found[1]) for option in options if (found := _OF_CHANNELS.fullmatch(option))]
    options = [option for option in options if not _OF_CHANNELS.fullmatch(option)]
    if found := re.fullmatch(r"(\w+?)x(\d+)(\[.*)", buffer, re.DOTALL | re.ASCII):  # u8x4[64,64]
        channels.append(int(found[2]))
        closed = found[3].replace("]", f",{found[2]}]" if channels[-1] > 1 else "]", 1)
        buffer = f"{found[1]}{closed}"
    parsed = _parsed(buffer)
    if not isinstance(parsed, BufferArgument):
        raise InputError(f"{kind}: is of an array: give one such as {kind}:f32[512,512]")
    if parsed.fill == UNWRITTEN:
        raise InputError(f"a {kind}: cannot be unwritten: give zeros")
    known = _OF_TEXTURES if kind == "tex" else ("layered",)
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of {kind}:", option, known)
    named: dict[str, Any] = {"channels": channels[0] if channels else 1}
    if "layered" in options:
        named["layered"] = True
    if kind == "tex":
        modes = [option for option in options if option in ADDRESS_MODES]
        named |= {"filter": next((x for x in options if x in FILTERS), "point")}
        named |= {"read": "float"} if "float" in options else {}
        named |= {"normalized": True} if "normalized" in options else {}
        named |= {"memory": False} if "array" in options else {}
        named |= {"address": modes[0] if len(modes) == 1 else modes} if modes else {}
    made = ObjectArgument(
        text=text,
        dtype=parsed.dtype,
        shape=parsed.shape,
        fill=parsed.fill,
        kind=Texture if kind == "tex" else Surface,
        options=named,
    )
    made.made(np.broadcast_to(np.empty((), made.dtype), made.shape))  # raises InputError
    return made


def _fill(text: str | None, dtype: np.dtype[Any]) -> str | np.generic | Path:
    if text is None:
        return "random"
    if text in FILLS:
        return text
    if text.endswith(".npy"):
        return Path(text)
    try:
        return number(text, dtype)
    except InputError as error:
        if re.match(r"[-+.\d]|(?i:inf|nan)", text):  # it was meant as one
            raise
        raise InputError(
            f"a fill {shortened(text)!r} is not known: give {', '.join(FILLS)}, a number or a "
            "file such as data.npy"
        ) from error


def _struct(text: str) -> np.generic:
    fields: list[tuple[str, np.dtype[Any]]] = []
    values = []
    for position, part in enumerate(text.split(",")):
        match = _VALUE.fullmatch(part.strip())
        if match is None:
            raise InputError(
                f"its field {position} {shortened(part)!r} is not understood: give a type and a "
                "value, such as i32=1"
            )
        dtype = type_of(match["type"])
        fields.append((f"f{position}", dtype))
        values.append(number(match["value"], dtype))
    # zeros first, so that the bytes between fields are zeros too
    struct = np.zeros((), dtype=np.dtype(fields, align=True))
    for (name, _), value in zip(fields, values, strict=True):
        struct[name] = value
    return cast(np.void, struct[()])


def _structs(text: str, shape: tuple[int, ...], fields: str | None) -> BufferArgument:
    """An array of structs whose fields are aligned as in C."""
    found = []
    for position, part in enumerate(re.split(r",(?![^\[]*\])", fields or "")):
        match = _FIELD.fullmatch(part.strip())
        if match is None or not match["type"]:
            raise InputError(
                f"its field {position} {shortened(part)!r} is not understood: give types, such as "
                "struct[64]:i32,f32[3]=zeros"
            )
        dtype, own = type_of(match["type"]), _shape(match["shape"]) if match["shape"] else ()
        fill = _fill(match["fill"], dtype)
        found.append(BufferArgument(text=part, dtype=dtype, shape=shape + own, fill=fill))
    named = [(f"f{k}", one.dtype, one.shape[len(shape) :]) for k, one in enumerate(found)]
    unwritten = [one.fill == UNWRITTEN for one in found]
    if any(unwritten) and not all(unwritten):
        raise InputError("all fields of a struct are unwritten, or none: give each =unwritten")
    return BufferArgument(
        text=text,
        dtype=np.dtype(named, align=True),
        shape=shape,
        fill=UNWRITTEN if all(unwritten) else "fields",
        fields=tuple(found),
    )


def buffer_bytes(parsed: Sequence[BufferArgument | np.generic]) -> int:
    """Bytes of all buffers."""
    return sum(item.bytes for item in parsed if isinstance(item, BufferArgument))


def made(option: str, buffer: BufferArgument, rng: np.random.Generator) -> Argument:
    """The argument itself. Raises InputError, which begins with the option."""
    array = array_of(option, buffer, rng)
    if not isinstance(buffer, ObjectArgument):
        return array
    try:
        return buffer.made(array)
    except InputError as error:
        raise InputError(f"{option} ({shortened(buffer.text)!r}): {error}") from error


def array_of(option: str, buffer: BufferArgument, rng: np.random.Generator) -> NDArray[np.generic]:
    """The array of one argument. Raises InputError, which begins with the option."""
    try:
        is_filled_by_fields = buffer.fields and buffer.fill != UNWRITTEN
        return (_filled_structs if is_filled_by_fields else _filled)(buffer, rng)
    except InputError as error:
        raise InputError(f"{option} ({shortened(buffer.text)!r}): {error}") from error
    except MemoryError:
        raise InputError(
            f"{option} ({shortened(buffer.text)!r}): {buffer.bytes / 1e9:.1f} GB do not "
            "fit into memory: make it smaller"
        ) from None


def _filled_structs(buffer: BufferArgument, rng: np.random.Generator) -> NDArray[np.generic]:
    structs = np.zeros(buffer.shape, dtype=buffer.dtype)  # the bytes between fields too
    for position, one in enumerate(buffer.fields):
        structs[f"f{position}"] = _filled(one, rng)
    return structs


def _filled(buffer: BufferArgument, rng: np.random.Generator) -> NDArray[np.generic]:
    shape, dtype, fill = buffer.shape, buffer.dtype, buffer.fill
    if isinstance(fill, Path):
        return _loaded(fill, buffer)
    if isinstance(fill, np.generic):
        return np.full(shape, fill, dtype=dtype)
    if fill == "random":
        return random_array(shape, dtype, rng)
    if fill == UNWRITTEN:
        return np.full(buffer.bytes, POISON, dtype=np.uint8).view(dtype).reshape(shape)
    if fill == "arange":
        size = prod(shape)
        if is_real(dtype) and size:
            number(str(size - 1), dtype)  # raises InputError if it does not fit
        return np.arange(size).astype(dtype).reshape(shape)
    return np.full(shape, 1 if fill == "ones" else 0, dtype=dtype)


def _loaded(path: Path, buffer: BufferArgument) -> NDArray[np.generic]:
    array = _opened(path)
    # numpy.save keeps the bytes of bfloat16 and FP8, and not the type
    is_saved_small = array.dtype == np.dtype(f"V{buffer.dtype.itemsize}") and small_float(
        buffer.dtype
    )
    if is_saved_small:
        array = array.view(buffer.dtype)
    if (array.dtype, array.shape) != (buffer.dtype, buffer.shape):
        raise InputError(
            f"{path} holds {array.dtype.name} of shape {list(array.shape)}, not "
            f"{buffer.dtype.name} of {list(buffer.shape)}: give {str(path)!r} alone to take it "
            "as it is"
        )
    copy = np.zeros(array.shape, dtype=array.dtype)  # the bytes between fields of structs too
    copy[...] = array
    return copy


def _opened(path: Path) -> NDArray[np.generic]:
    """The array in a file, not read yet."""
    try:
        check_regular(path)
        return np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        if "magic string" in reason:
            reason = "numpy.save did not write it"
        raise InputError(f"{path} cannot be read as an array: {reason}") from error
