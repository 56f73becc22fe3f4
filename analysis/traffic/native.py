"""The native library of the traffic model, and calls of it that Ctrl-C ends."""

from __future__ import annotations

import ctypes
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.library import loaded
from analysis.native_threads import NativeThreads

FAILED = -1


@cache
def library() -> ctypes.CDLL:
    """The library. Raises UnavailableError if it was not built."""
    folder = Path(__file__).parent
    return loaded(folder / "_traffic.so", folder, "the native code of the traffic model")


def call(function: str, argument: ctypes.Structure, *others: Any) -> int:
    """Result of a function of the library for these arguments.

    Ctrl-C sets the field `is_cancelled` of the first argument, which the function polls. Raises
    MemoryError.
    """
    called = getattr(library(), function)
    called.restype = ctypes.c_int64

    def end() -> None:
        argument.is_cancelled = 1

    with NativeThreads(1, end) as pool:
        result = int(pool.submit(partial(called, ctypes.byref(argument), *others)).result())
    if result == FAILED:
        raise MemoryError
    return result


def sorted_keys(keys: NDArray[Any]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Keys in ascending order, and the index of each in `keys`; equal keys keep their order.

    Raises MemoryError.
    """
    ordered = keys.astype(np.uint64)
    indices = np.empty(len(keys), dtype=np.uint32)
    sort = library().sort_keys
    if sort(pointer_to(ordered), ctypes.c_uint64(len(keys)), pointer_to(indices)):
        raise MemoryError
    return ordered, indices


def pointer_to(array: NDArray[Any]) -> ctypes.c_void_p:
    """Address of an array's data, for as long as the array is kept."""
    return ctypes.c_void_p(array.ctypes.data)
