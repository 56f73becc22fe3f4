"""Arrays of the libraries that `matmul` takes: their addresses, layouts, devices and streams.

A library is recognised by the module of an array's type, so that none is imported for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from numbers import Integral
from typing import Any

from analysis.argument_types import shown
from analysis.errors import InputError, UnavailableError, first_line
from analysis.problem import FLOAT_BYTES
from toolkit.product import device
from toolkit.product.operands import WIDEST_BYTES, OperandView, tight_strides

Facts = tuple[Any, ...]


class Library:
    """Functions that read and make the arrays of one library.

    `facts` of an array decide its layout, type and device, and can be compared and hashed. They
    are read in each call, `view` when facts are new.
    """

    name = ""
    #: Code that copies an array `{0}` to the GPU, converts it to float32, or takes it over from
    #: another library.
    to_gpu, to_float32, from_other = "", "", ""
    strides_in_bytes = True

    def facts(self, array: Any) -> tuple[int, Facts]:
        """Address, and shape, strides, type, and whatever else `view` reads."""
        raise NotImplementedError

    def address(self, array: Any) -> int:
        """Address of an array alone."""
        return self.facts(array)[0]

    def identifier(self, facts: Facts) -> int:
        """Return a number that tells a context from a later one with the same handle."""
        return 0

    def context(self, name: str, array: Any, address: int, facts: Facts) -> int:
        """Handle of the context of an array's memory."""
        return device.primary_context(facts[3])

    def place(self, array: Any) -> str:
        """Words for where an array is."""
        raise NotImplementedError

    def stream(self, facts: Facts, arrays: tuple[Any, ...], given: Any) -> int:
        """Handle of the caller's stream; `facts` are those of the first array."""
        raise NotImplementedError

    def empty(self, like: Any, shape: tuple[int, ...]) -> Any:
        """A new float32 array on the device of another one, stored by rows without gaps."""
        raise NotImplementedError

    def refusal(self, array: Any, *, is_output: bool) -> str | None:
        """Reason and remedy if an array cannot be used, else None. Types are checked apart."""
        return None

    def note_write(self, array: Any) -> None:
        """Tell the library that an output is written."""

    def refuse_stream(self, manager: str) -> int:
        raise InputError(
            f"{self.name} has a current stream, which matmul takes: leave stream out, and call "
            f"matmul inside of `with {manager}:`"
        )

    def view(
        self, name: str, array: Any, address: int, facts: Facts, *, is_output: bool = False
    ) -> OperandView:
        """The layout of an array. Raises InputError for one that cannot be used."""
        shape, strides, dtype = tuple(facts[0]), facts[1], facts[2]
        if strides is None:
            strides = tight_strides(shape)
        elif self.strides_in_bytes:
            strides = _in_elements(name, shape, tuple(strides), dtype)
        described = f"{name} ({_type_name(dtype)}, shape {shape}, strides {strides} elements)"
        if reason := self.refusal(array, is_output=is_output):
            raise InputError(f"{described}: {reason.format(name)}")
        if _type_name(dtype) != "float32":
            raise InputError(
                f"{described}: the product is of float32: convert it, "
                f"{self.to_float32.format(name)}"
            )
        if address % FLOAT_BYTES:
            raise InputError(
                f"{described}: its address {address:#x} is not a multiple of {FLOAT_BYTES}: copy it"
            )
        alignment = min(address & -address, WIDEST_BYTES)
        return OperandView(name, shape, tuple(strides), alignment)


class Torch(Library):
    """Tensors of PyTorch. Their device is that of facts[3], -1 for the host."""

    name = "PyTorch"
    to_gpu, to_float32 = "{0}.cuda()", "{0}.float()"
    from_other = "torch.as_tensor({0}, device=a.device)"
    strides_in_bytes = False

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self._is_grad_enabled = torch.is_grad_enabled
        fast = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self._stream: Callable[[int], int] = fast or self._public_stream

    def _public_stream(self, ordinal: int) -> int:
        return int(self._torch.cuda.current_stream(ordinal).cuda_stream)

    def facts(self, array: Any) -> tuple[int, Facts]:
        try:
            return array.data_ptr(), (
                array.shape,
                array.stride(),
                array.dtype,
                array.get_device(),
                array.is_neg(),
                array.requires_grad and self._is_grad_enabled(),
            )
        except (RuntimeError, NotImplementedError) as error:  # a sparse tensor, or of a transform
            raise InputError(
                f"a {type(array).__name__} of layout {getattr(array, 'layout', None)} has no "
                f"strides or no address ({first_line(error)}): give a dense tensor on a GPU"
            ) from None

    def refusal(self, array: Any, *, is_output: bool) -> str | None:
        if not array.is_cuda:
            return f"it is on {array.device}, and not on a GPU: copy it there first, {self.to_gpu}"
        if array.is_neg():
            return "it is a negative view: write its values out first, {0}.resolve_neg()"
        if array.requires_grad and self._is_grad_enabled():
            return (
                "it requires a gradient, which matmul does not compute: give {0}.detach(), or call "
                "it under torch.no_grad()"
            )
        return None

    def note_write(self, array: Any) -> None:
        if not array.is_inference():  # autograd then notices a tensor that it kept for later
            self._torch.autograd.graph.increment_version(array)

    def address(self, array: Any) -> int:
        found: int = array.data_ptr()
        return found

    def place(self, array: Any) -> str:
        return str(array.device)

    def stream(self, facts: Facts, arrays: tuple[Any, ...], given: Any) -> int:
        return self._stream(facts[3]) if given is None else self.refuse_stream("torch.cuda.stream")

    def empty(self, like: Any, shape: tuple[int, ...]) -> Any:
        return self._torch.empty(shape, dtype=self._torch.float32, device=like.device)


class CuPy(Library):
    """Arrays of CuPy. Their device is that of facts[3]."""

    name = "CuPy"
    to_gpu, to_float32 = "cupy.asarray({0})", '{0}.astype("float32")'
    from_other = "cupy.asarray({0})"

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy
        self._stream = cupy.cuda.get_current_stream

    def facts(self, array: Any) -> tuple[int, Facts]:
        memory = array.data
        return memory.ptr, (array.shape, array.strides, array.dtype, memory.device_id)

    def place(self, array: Any) -> str:
        return f"GPU {array.data.device_id}"

    def stream(self, facts: Facts, arrays: tuple[Any, ...], given: Any) -> int:
        ordinal = facts[3]
        if given is not None:
            return self.refuse_stream("stream")
        if ordinal == self._cupy.cuda.runtime.getDevice():
            return int(self._stream().ptr)
        with self._cupy.cuda.Device(ordinal):
            return int(self._stream().ptr)

    def empty(self, like: Any, shape: tuple[int, ...]) -> Any:
        if like.data.device_id == self._cupy.cuda.runtime.getDevice():
            return self._cupy.empty(shape, "f")
        with self._cupy.cuda.Device(like.data.device_id):
            return self._cupy.empty(shape, "f")


class _OfContext(Library):
    """Arrays of a library that has no current device: facts[3] is the context of the memory.

    It is 0 for memory that belongs to none, such as that of the host or of a memory pool.
    """

    def identifier(self, facts: Facts) -> int:
        return device.context_id(facts[3]) if facts[3] else 0

    def context(self, name: str, array: Any, address: int, facts: Facts) -> int:
        ordinal = device.device_of(address)
        if ordinal is None:
            raise InputError(
                f"{name} (a {type(array).__name__} of shape {tuple(facts[0])}) is in memory of the "
                f"host: copy it to the GPU first, {self.to_gpu.format(name)}"
            )
        return facts[3] or device.primary_context(ordinal)

    def place(self, array: Any) -> str:
        address, facts = self.facts(array)
        return f"GPU {device.device_of(address)}, context {facts[3]:#x}"

    def stream(self, facts: Facts, arrays: tuple[Any, ...], given: Any) -> int:
        return 0 if given is None else handle_of_stream(given)


class PyCuda(_OfContext):
    """GPUArrays of PyCUDA, which belong to a context."""

    name = "PyCUDA"
    to_gpu, to_float32 = "pycuda.gpuarray.to_gpu({0})", "{0}.astype(numpy.float32)"
    from_other = "pycuda.gpuarray.to_gpu({0})"

    def __init__(self) -> None:
        from pycuda import gpuarray

        self._new = gpuarray.empty

    def facts(self, array: Any) -> tuple[int, Facts]:
        address = int(array.ptr)
        return address, (array.shape, array.strides, array.dtype, device.context_at(address))

    def empty(self, like: Any, shape: tuple[int, ...]) -> Any:
        made = self._new(shape, "f", allocator=like.allocator)
        own, others = (device.context_at(int(one.ptr)) for one in (made, like))
        if own != others:
            raise InputError(
                f"out is missing, and a new array is in the current context {own:#x}, not in "
                f"{others:#x} of a: give out, or make the context of a current"
            )
        return made


class Interface(_OfContext):
    """Arrays of any other library, by their `__cuda_array_interface__`."""

    name = "the CUDA array interface"
    to_gpu, to_float32 = "such as cupy.asarray({0})", "such as cupy.asarray({0}, 'float32')"
    from_other = "such as cupy.asarray({0})"

    def facts(self, array: Any) -> tuple[int, Facts]:
        given = array.__cuda_array_interface__
        try:
            address, is_read_only = given["data"]
            shape, strides, kind = tuple(given["shape"]), given.get("strides"), given["typestr"]
            steps = None if strides is None else tuple(strides)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the __cuda_array_interface__ of a {type(array).__name__} cannot be read "
                f"({type(error).__name__}: {first_line(error)}): give an array of PyTorch, CuPy or "
                "PyCUDA"
            ) from None
        facts = shape, steps, kind, device.context_at(address)
        return address, (*facts, is_read_only, given.get("mask") is not None)

    def refusal(self, array: Any, *, is_output: bool) -> str | None:
        given = array.__cuda_array_interface__
        if given.get("mask") is not None:
            return "it has a mask, which a product does not take: give the array without it"
        if is_output and given["data"][1]:
            return "it is read-only: give an array that may be written to"
        return None

    def stream(self, facts: Facts, arrays: tuple[Any, ...], given: Any) -> int:
        if given is None:
            exported = [one.__cuda_array_interface__.get("stream") for one in arrays]
            named = list(dict.fromkeys(one for one in exported if one is not None))
            if len(named) > 1:
                raise InputError(
                    f"the arrays are of the streams {' and '.join(map(str, named))}: let one wait "
                    "for the other, and give stream"
                )
            given = named[0] if named else None
        return super().stream(facts, arrays, given)

    def empty(self, like: Any, shape: tuple[int, ...]) -> Any:
        raise InputError(
            f"out is missing: matmul makes no new {type(like).__name__}: give an out of shape "
            f"{shape}"
        )


_MAKERS: dict[str, Callable[[], Library]] = {"torch": Torch, "cupy": CuPy, "pycuda": PyCuda}
_made: dict[str, Library] = {}
_of_type: dict[type, Library] = {}


def library_of(array: Any, name: str) -> Library:
    """The library of an array. Raises InputError for what is no array on a GPU."""
    kind = type(array)
    found = _of_type.get(kind)
    return found if found is not None else _recognised(array, kind, name)


def _recognised(array: Any, kind: type, name: str) -> Library:
    modules = [one.__module__.partition(".")[0] for one in kind.__mro__]
    home = next((one for one in modules if one in _MAKERS and one in sys.modules), "")
    is_array = _is_array(array, home)
    if not is_array and hasattr(array, "__cuda_array_interface__"):
        home, is_array = "", True
    if not is_array:
        raise InputError(_no_array(array, kind, name))
    try:
        library = _made.get(home) or _MAKERS.get(home, Interface)()
    except ImportError as error:
        raise UnavailableError(f"{home} cannot be imported: {first_line(error)}") from None
    _of_type[kind] = _made.setdefault(home, library)
    return _of_type[kind]


def _is_array(array: Any, home: str) -> bool:
    needed = {
        "torch": ("data_ptr", "stride", "get_device"),
        "cupy": ("data", "strides", "dtype"),
        "pycuda": ("ptr", "strides", "dtype"),
    }
    return home in needed and all(hasattr(array, one) for one in needed[home])


def _no_array(array: Any, kind: type, name: str) -> str:
    described = f"{name} (a {kind.__module__}.{kind.__qualname__}"
    if hasattr(array, "dtype") and hasattr(array, "shape"):
        described += f" of {array.dtype}, shape {tuple(array.shape)}"
    described += ")"
    if hasattr(array, "__dlpack__") and kind.__module__ != "numpy":
        return f"{described} is no array of PyTorch, CuPy or PyCUDA: give torch.from_dlpack({name})"
    if hasattr(array, "__array_interface__"):
        return f"{described} is on the host: copy it to the GPU first, such as cupy.asarray({name})"
    return f"{described} is no array on a GPU: give one of PyTorch, CuPy or PyCUDA"


def handle_of_stream(stream: Any) -> int:
    """The driver's handle of a stream: an integer, or a stream of PyCUDA, CuPy, PyTorch or CUDA."""
    for found in (stream, *(getattr(stream, name, None) for name in _HANDLES)):
        if _is_handle(found):
            return int(found)
    with suppress(AttributeError, TypeError, ValueError):  # no protocol, or one that is broken
        _, found = stream.__cuda_stream__()
        if _is_handle(found):
            return int(found)
    raise InputError(
        f"stream = {shown(stream)}: give a stream of PyCUDA, or its handle as an integer"
    )


_HANDLES = ("handle", "ptr", "cuda_stream")  # attributes of streams of PyCUDA, CuPy and PyTorch


def _is_handle(value: Any) -> bool:
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    return is_integer and 0 <= value < 2**64


def _type_name(dtype: Any) -> str:
    """ "float32" for the types of all libraries."""
    if isinstance(dtype, str):
        import numpy as np

        dtype = np.dtype(dtype)
    text = str(dtype)
    return text.removeprefix("torch.")


def _in_elements(
    name: str, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any
) -> tuple[int, ...]:
    size = 4 if isinstance(dtype, str) and dtype[1:] == "f4" else getattr(dtype, "itemsize", 4)
    if any(stride % size for n, stride in zip(shape, strides, strict=True) if n > 1):
        raise InputError(
            f"{name} ({_type_name(dtype)}, shape {shape}, strides {strides} bytes): elements are "
            f"not multiples of {size} bytes apart: copy it to a new array"
        )
    return tuple(stride // size for stride in strides)
