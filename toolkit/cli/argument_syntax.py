"""The arguments of a kernel, written as text: what `simulate --arg` takes.

    f32[4096,4096]          a buffer, filled at random; a size may be a product, 64*1024
    f32[1024]=zeros         filled: zeros, ones, arange, random, a number, or the file data.npy
    f32[1024]=unwritten     an output: `check` reports who reads it before it is written
    data.npy                a buffer as it was saved
    i32=4096                a value; 4096 alone where the source declares a plain type
    n=4096, x=f32[1024]     the same by the name of the parameter
    struct:i32=1,f32=2.0    a struct by value, its fields aligned as in C

Types are i8 u8 i16 u16 i32 u32 i64 u64 f16 f32 f64 bool, or NumPy's or C's names for them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from analysis.errors import InputError, UnknownNameError, first_line, shortened
from toolkit.launch.host_resources import shortage
from toolkit.launch.launch import Argument
from toolkit.launch.random_arrays import random_array
from toolkit.machine_code.signature import Declared
from toolkit.store.user_files import check_regular

TYPES: dict[str, np.dtype[Any]] = {
    f"{letter}{8 * size}": np.dtype(f"{kind}{size}")
    for letter, kind, sizes in (
        ("i", "i", (1, 2, 4, 8)),
        ("u", "u", (1, 2, 4, 8)),
        ("f", "f", (2, 4, 8)),
    )
    for size in sizes
} | {"bool": np.dtype("?")}
_OF_C = {"char": "i8", "short": "i16", "int": "i32", "unsigned": "u32", "long": "i64"} | {
    "half": "f16",
    "float": "f32",
    "double": "f64",
}
# With the names of NumPy and of C
_NAMES = (
    TYPES
    | {dtype.name: dtype for dtype in TYPES.values()}
    | {name: TYPES[ours] for name, ours in _OF_C.items()}
)

UNWRITTEN = "unwritten"
FILLS = ("random", "zeros", "ones", "arange", UNWRITTEN)
POISON = 0xFF  # bytes of what nobody wrote: NaN in every floating type
MOST_AXES = 64  # of an array of NumPy
MOST_ELEMENTS = 2**48  # addresses of a process have 48 bits

# Types of no NumPy array: their bits fit in one of integers.
_AS_BITS = {"bf16": "u16", "bfloat16": "u16", "fp8": "u8", "f8": "u8", "e4m3": "u8", "e5m2": "u8"}

_BARE_NUMBER = re.compile(r"[-+]?(?:\.?\d[\w.+-]*|(?i:inf|infinity|nan))", re.ASCII)
_BUFFER = re.compile(r"(?P<type>\w*)\[(?P<shape>[^\]]*)\](?:=(?P<fill>.*))?", re.DOTALL)
_VALUE = re.compile(r"(?P<type>\w*)=(?P<value>.*)", re.DOTALL)
_EXAMPLES = "'f32[1024]', 'f32[64,64]=zeros', 'data.npy', 'i32=4096' or 'struct:i32=1,f32=2'"


@dataclass(frozen=True, kw_only=True)
class BufferArgument:
    """An array to make: `fill` is one of FILLS, a number, or a file that holds it."""

    text: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fill: str | np.generic | Path

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


def parse_arguments(
    texts: Sequence[str], declared: Sequence[Declared] | None = None
) -> list[BufferArgument | np.generic]:
    """Description of each argument; no large array is made yet.

    `declared` are the parameters in the source, None if unknown: they give a bare number its type.
    Raises InputError, which names the argument's position.
    """
    known = [*(declared or ()), *([None] * len(texts))]
    return [parse_argument(position, text, known[position]) for position, text in enumerate(texts)]


def is_type(name: str) -> bool:
    """True for a name of a type, which may stand before `=` or `[`."""
    return name in _NAMES or name in _AS_BITS


def type_name(dtype: np.dtype[Any]) -> str:
    """The name of a type here: "f32"."""
    return next((name for name, known in TYPES.items() if known == dtype), dtype.name)


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
        _made(item, position, np.random.default_rng((seed, position)))
        if isinstance(item, BufferArgument)
        else item
        for position, item in enumerate(parsed)
    ]


def number(text: str, dtype: np.dtype[Any]) -> np.generic:
    """`text` as a number of a type; raises InputError where it is none, or does not fit."""
    if dtype.kind == "f":
        return _floating(text, dtype)
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    named = {"true": 1, "false": 0}.get(text.lower()) if dtype.kind == "b" else None
    try:
        value = int(text, 0) if named is None else named
    except ValueError:
        raise InputError(
            f"{shortened(text)!r} is not an integer: give one such as 4096, -1 or 0x1000"
        ) from None
    if not low <= value <= high:
        raise InputError(f"{shortened(text)} does not fit: {dtype.name} holds {low} to {high}")
    result: np.generic = dtype.type(value)
    return result


def _floating(text: str, dtype: np.dtype[Any]) -> np.generic:
    try:
        value = float(text)
    except ValueError:
        raise InputError(
            f"{shortened(text)!r} is not a number: give one such as 1.5, -2e-3, inf or nan"
        ) from None
    with np.errstate(over="ignore"):
        result: np.generic = dtype.type(value)
    if np.isinf(result) and "inf" not in text.lower():
        raise InputError(
            f"{shortened(text)} does not fit: {dtype.name} ends at {np.finfo(dtype).max:g}"
        )
    return result


def parse_argument(
    position: int, text: str, declared: Declared | None
) -> BufferArgument | np.generic:
    """Description of the argument at a position; raises InputError, which names it."""
    try:
        if _BARE_NUMBER.fullmatch(text):
            return number(text, _declared_type(text, declared))
        return _parsed(text)
    except InputError as error:
        raise InputError(f"--arg {position} ({shortened(text)!r}): {error}") from error


def _parsed(text: str) -> BufferArgument | np.generic:
    if text.startswith("struct:"):
        return _struct(text.removeprefix("struct:"))
    if match := _BUFFER.fullmatch(text):
        dtype = _type(match["type"])
        shape = _shape(match["shape"])
        return BufferArgument(text=text, dtype=dtype, shape=shape, fill=_fill(match["fill"], dtype))
    if match := _VALUE.fullmatch(text):
        return number(match["value"], _type(match["type"]))
    if text.endswith(".npy"):
        path = Path(text)
        array = _opened(path)
        return BufferArgument(text=text, dtype=array.dtype, shape=array.shape, fill=path)
    if text in _NAMES:
        raise InputError(f"a size or a value is missing: give '{text}[1024]' or '{text}=1'")
    raise InputError(f"it is not understood: give {_EXAMPLES}")


def _declared_type(text: str, declared: Declared | None) -> np.dtype[Any]:
    """The type that the source gives a bare number."""
    if declared is None:
        raise InputError(f"the type of this number is unknown here: give one, such as i32={text}")
    if declared.pointer:
        raise InputError(f"the kernel takes `{declared.text}`: give a buffer, such as f32[{text}]")
    if declared.dtype is None:
        raise InputError(f"`{declared.text}` is not a plain type: give one, such as i32={text}")
    return np.dtype(declared.dtype)


def _type(name: str) -> np.dtype[Any]:
    if bits := _AS_BITS.get(name):
        raise InputError(f"arrays of {name} are not supported: give the bits as {bits}")
    if name not in _NAMES:
        raise UnknownNameError("type", name, TYPES)
    return _NAMES[name]


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
        dtype = _type(match["type"])
        fields.append((f"f{position}", dtype))
        values.append(number(match["value"], dtype))
    # zeros first, so that the bytes between fields are zeros too
    struct = np.zeros((), dtype=np.dtype(fields, align=True))
    for (name, _), value in zip(fields, values, strict=True):
        struct[name] = value
    return cast(np.void, struct[()])


def buffer_bytes(parsed: Sequence[BufferArgument | np.generic]) -> int:
    """Bytes of all buffers."""
    return sum(item.bytes for item in parsed if isinstance(item, BufferArgument))


def _made(buffer: BufferArgument, position: int, rng: np.random.Generator) -> NDArray[np.generic]:
    try:
        return _filled(buffer, rng)
    except InputError as error:
        raise InputError(f"--arg {position} ({shortened(buffer.text)!r}): {error}") from error
    except MemoryError:
        raise InputError(
            f"--arg {position} ({shortened(buffer.text)!r}): {buffer.bytes / 1e9:.1f} GB do not "
            "fit into memory: make it smaller"
        ) from None


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
        return np.arange(prod(shape)).astype(dtype).reshape(shape)
    return np.full(shape, 1 if fill == "ones" else 0, dtype=dtype)


def _loaded(path: Path, buffer: BufferArgument) -> NDArray[np.generic]:
    array = _opened(path)
    if (array.dtype, array.shape) != (buffer.dtype, buffer.shape):
        raise InputError(
            f"{path} holds {array.dtype.name} of shape {list(array.shape)}, not "
            f"{buffer.dtype.name} of {list(buffer.shape)}: give {str(path)!r} alone to take it "
            "as it is"
        )
    return np.array(array, order="C")


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
