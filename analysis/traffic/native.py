"""The native library of the traffic model, and calls of it that Ctrl-C ends."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from analysis.errors import REBUILD, UnavailableError

FAILED = -1


@cache
def library() -> ctypes.CDLL:
    """The library. Raises UnavailableError if it was not built."""
    path = Path(__file__).with_name("_traffic.so")
    if not path.exists():
        raise UnavailableError(f"the native code of the traffic model was not built: {REBUILD}")
    return ctypes.CDLL(str(path))


def check_sizes(function: str, sizes: list[int]) -> None:
    """Compare `sizes` of structures with those that `function` of the library fills in.

    Raises UnavailableError if they differ.
    """
    built = (ctypes.c_uint32 * len(sizes))()
    getattr(library(), function)(built)
    if list(built) != sizes:
        raise UnavailableError(
            f"the native code of the traffic model was built from other sources: {REBUILD}"
        )


def call(function: str, argument: ctypes.Structure, *others: Any) -> int:
    """What a function of the library returns for these arguments.

    Ctrl-C sets the field `is_cancelled` of the first argument, which the function looks at. Raises
    MemoryError.
    """
    called = getattr(library(), function)
    called.restype = ctypes.c_int64
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(called, ctypes.byref(argument), *others)
        try:
            result = int(waiting.result())
        except BaseException:  # Ctrl-C, which the native code does not see
            argument.is_cancelled = 1
            raise
    if result == FAILED:
        raise MemoryError
    return result


def pointer_to(array: NDArray[Any]) -> ctypes.c_void_p:
    """Address of an array's data, for as long as the array is kept."""
    return ctypes.c_void_p(array.ctypes.data)
