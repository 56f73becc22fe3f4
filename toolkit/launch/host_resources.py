"""Resources of the host: cores, free memory, and threads of BLAS."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from math import inf, prod
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from analysis.errors import ShapeError

MIB = 2**20
_GROUP = Path("/sys/fs/cgroup")
_CACHED_FILES = ("active_file", "inactive_file")  # in memory.stat of a control group
ARENA_MAX, MMAP_THRESHOLD, TRIM_THRESHOLD = -8, -3, -1  # options of mallopt


def available_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_bytes() -> float:
    """Memory that the host or its container can still give; infinite where neither says."""
    return min(_free_on_host(), _free_in_container())


def memory_bytes() -> float:
    """All memory of the host or of its container; infinite where neither says."""
    found = inf
    with suppress(OSError, ValueError, AttributeError):
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(found, _limit_of_container())


def shortage(needed_bytes: float) -> str:
    """'1.2 GB on the host, 0.8 GB are free' if that is more than `available_bytes`, else ''."""
    available = available_bytes()
    if needed_bytes <= available:
        return ""
    return f"{_gb(needed_bytes)} on the host, {_gb(available)} are free"


def _gb(size_bytes: float) -> str:
    """'1.2 GB', and from 100 GB on without a decimal."""
    size = size_bytes / 1e9
    return f"{size:,.{0 if size >= 100 else 1}f} GB"


def _free_on_host() -> float:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvail"))
    except (OSError, ValueError, StopIteration):
        return inf


def _free_in_container() -> float:
    """Bytes left of the limit of a control group (version 2), which containers set.

    Files that the system keeps in memory count as used, but it gives them up before the limit.
    """
    limit = _limit_of_container()
    try:
        used = int(_GROUP.joinpath("memory.current").read_text())
    except (OSError, ValueError):
        return inf
    with suppress(OSError, ValueError):
        lines = (line.split() for line in _GROUP.joinpath("memory.stat").read_text().splitlines())
        used -= sum(int(size) for name, size in lines if name in _CACHED_FILES)
    return min(max(limit - used, 0), limit)


def _limit_of_container() -> float:
    """Bytes that a control group (version 2) may use, infinite without a limit."""
    try:
        return int(_GROUP.joinpath("memory.max").read_text())
    except (OSError, ValueError):  # no group, or "max"
        return inf


def share_freed_memory() -> None:
    """Let freed memory serve all threads, and return large freed blocks to the system.

    glibc gives each thread a pool of its own, and once a large block was freed, it keeps later ones
    of that size. One pool took a fifth off the memory of a report. That blocks from 1 MiB on are
    returned takes off another 7 to 24%, for 3% more time. To be called before there are threads.
    Other C libraries have no such call.
    """
    with suppress(AttributeError, TypeError):  # TypeError: on Windows
        for option, value in ((ARENA_MAX, 1), (MMAP_THRESHOLD, MIB), (TRIM_THRESHOLD, MIB)):
            ctypes.CDLL(None).mallopt(option, value)


def sparse_zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Zeros of which little will be touched: memory is taken for that alone.

    Pages of 2 MiB, for which NumPy asks, would be cleared as a whole. Raises ShapeError
    where the system does not promise so much.
    """
    size = prod(shape) * np.dtype(dtype).itemsize
    try:
        memory = mmap.mmap(-1, max(1, size), access=mmap.ACCESS_COPY)
    except (OSError, OverflowError) as error:
        extents = " x ".join(map(str, shape))
        raise ShapeError(
            f"a buffer of {extents} elements takes {size / 1e9:.1f} GB, more than this machine "
            "gives: take a smaller shape"
        ) from error
    with suppress(AttributeError, OSError):  # a system without such pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype, prod(shape)).reshape(shape)


_blas_lock = Lock()


_blas_before: list[int] = []  # an entry for each that wants one thread: how many there were


@contextmanager
def blas_on_one_thread() -> Iterator[None]:
    """While others compute: threads of OpenBLAS that have nothing to do ask for work all the time.

    That is for NumPy's products, in all threads of the process; another BLAS goes on as it does.
    """
    get, set_to = _blas_threads() or (lambda: 1, lambda threads: None)
    with _blas_lock:
        _blas_before.append(_blas_before[0] if _blas_before else get())
        set_to(1)
    try:
        yield
    finally:
        with _blas_lock:
            before = _blas_before.pop()
            if not _blas_before:  # who leaves last gives them back
                set_to(before)


@cache
def _blas_threads() -> tuple[Any, Any] | None:
    """Functions that read and set the threads of NumPy's OpenBLAS; None if it has another BLAS."""
    try:
        found = ctypes.CDLL(str(import_module("numpy.linalg._umath_linalg").__file__))
    except OSError:
        return None
    for prefix in ("scipy_", ""):
        for suffix in ("64_", ""):
            get, set_to = (
                getattr(found, f"{prefix}openblas_{verb}_num_threads{suffix}", None)
                for verb in ("get", "set")
            )
            if get and set_to:
                return get, set_to
    return None
