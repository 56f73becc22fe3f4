"""Objects kept for each context of the driver, and questions of a call to the driver.

Pointers, streams and contexts are integers here, as libraries hand them out.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_char, c_int, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from threading import RLock, get_ident
from typing import Any

from analysis.devices import DriverFacts
from toolkit.gpu.driver import MAX_DYNAMIC_SHARED_BYTES, driver

# cuda.h
INVALID_VALUE = 1
POINTER_CONTEXT, POINTER_MEMORY_TYPE, POINTER_DEVICE = 1, 2, 9
MEMORY_OF_HOST = 1
RELAXED_CAPTURE = 2
STREAM_PER_THREAD = 2
POOL_RELEASE_THRESHOLD = 4
PINNED, ON_DEVICE, NO_HANDLE = 1, 1, 0

# CU_DEVICE_ATTRIBUTE_..., by the field of `DriverFacts`
_ATTRIBUTES = {
    "sm_count": 16,
    "l2_bytes": 38,
    "memory_bus_width_bits": 37,
    "max_threads_per_sm": 39,
    "registers_per_sm": 82,
    "shared_bytes_per_sm": 81,
    "shared_bytes_per_block": 8,
    "shared_bytes_per_block_optin": 97,
    "reserved_shared_bytes_per_block": 111,
}
_CLOCK_KHZ, _MEMORY_CLOCK_KHZ, _MAJOR, _MINOR = 13, 36, 75, 76


# Contexts.


@dataclass(eq=False)
class Context:
    """A context of the driver, and what is loaded and allocated in it."""

    handle: int
    ordinal: int
    modules: dict[bytes, int] = field(default_factory=dict)
    pool: int = 0  #: memory pool for copies of operands, 0 before the first
    workspaces: OrderedDict[tuple[int, int], Workspace] = field(default_factory=OrderedDict)


@dataclass(eq=False)
class Workspace:
    """Memory for the launches of one stream, which use it one after the other."""

    lock: RLock = field(default_factory=RLock)
    address: int = 0
    size_bytes: int = 0
    zeroed_bytes: int = 0  #: its first bytes that are known to be zero


_contexts: dict[int, Context] = {}  # by the driver's identifier, which is never used again
_lock = RLock()  # around everything that is made once


@cache
def primary_context(ordinal: int) -> int:
    """Handle of the primary context of a device, which stays until the process ends."""
    handle = c_void_p()
    driver().call("cuDevicePrimaryCtxRetain", byref(handle), _device(ordinal))
    assert handle.value is not None
    return handle.value


def context_id(handle: int) -> int:
    """The driver's identifier of a context."""
    found = c_uint64()
    driver().call("cuCtxGetId", handle, byref(found))
    return found.value


def context_of(handle: int) -> Context:
    """Objects kept for a context."""
    key = context_id(handle)
    with _lock:
        if key not in _contexts:
            with pushed(handle):
                device = c_int()
                driver().call("cuCtxGetDevice", byref(device))
            _contexts[key] = Context(handle, device.value)
        return _contexts[key]


@contextmanager
def pushed(handle: int) -> Iterator[None]:
    """Make a context current in this thread."""
    driver().call("cuCtxPushCurrent_v2", handle)
    try:
        yield
    finally:
        driver().call("cuCtxPopCurrent_v2", byref(c_void_p()))


@contextmanager
def while_capturing() -> Iterator[None]:
    """Allow this thread to load and allocate while a stream is captured into a CUDA graph."""
    mode = c_int(RELAXED_CAPTURE)
    driver().call("cuThreadExchangeStreamCaptureMode", byref(mode))
    try:
        yield
    finally:
        driver().call("cuThreadExchangeStreamCaptureMode", byref(mode))


def context_at(address: int) -> int:
    """Handle of the context of some memory, 0 if it belongs to none that the driver knows."""
    return _attribute(address, POINTER_CONTEXT, c_void_p) or 0


def device_of(address: int) -> int | None:
    """Ordinal of the device of some memory, None for memory of the host."""
    if _attribute(address, POINTER_MEMORY_TYPE, c_uint) in (None, MEMORY_OF_HOST):
        return None
    return _attribute(address, POINTER_DEVICE, c_int)


def _attribute(address: int, attribute: int, kind: Any) -> int | None:
    found = kind()
    status = driver().cuPointerGetAttribute(byref(found), attribute, address)
    if status == INVALID_VALUE:  # memory that the driver does not know
        return None
    if status:
        raise driver().error("cuPointerGetAttribute", status)
    value: int | None = found.value
    return value


def _device(ordinal: int) -> int:
    found = c_int()
    driver().call("cuDeviceGet", byref(found), ordinal)
    return found.value


@cache
def facts_of(ordinal: int) -> DriverFacts:
    """Return the driver's facts on a device."""
    device = _device(ordinal)

    def attribute(number: int) -> int:
        found = c_int()
        driver().call("cuDeviceGetAttribute", byref(found), number, device)
        return found.value

    name, memory_bytes = (c_char * 256)(), c_size_t()
    driver().call("cuDeviceGetName", byref(name), len(name), device)
    driver().call("cuDeviceTotalMem_v2", byref(memory_bytes), device)
    return DriverFacts(
        name=name.value.decode(),
        compute_capability=(attribute(_MAJOR), attribute(_MINOR)),
        clock_hz=1e3 * attribute(_CLOCK_KHZ),
        memory_clock_hz=1e3 * attribute(_MEMORY_CLOCK_KHZ),
        dram_bytes=memory_bytes.value,
        **{name: attribute(number) for name, number in _ATTRIBUTES.items()},
    )


# What is made once in a context, which must be current.


def function_of(context: Context, image: bytes, entry: str, shared_bytes: int) -> int:
    """Handle of a kernel, whose machine code is loaded once in each context."""
    digest = sha256(image).digest()
    with _lock, while_capturing():
        if digest not in context.modules:
            module = c_void_p()
            driver().call("cuModuleLoadData", byref(module), image)
            assert module.value is not None
            context.modules[digest] = module.value
        function = c_void_p()
        driver().call(
            "cuModuleGetFunction", byref(function), context.modules[digest], entry.encode()
        )
        assert function.value is not None
        driver().call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED_BYTES, shared_bytes)
    return function.value


MOST_KEPT_BYTES = 2**26  # of a workspace that stays; a larger one is allocated for each call
MOST_POOLED_BYTES = 2**30  # that the pool keeps: what it gives back takes a call long to get again
MOST_WORKSPACES = 16  # of a context: streams that are used at a time


def workspace_of(context: Context, stream: int, size_bytes: int) -> Workspace:
    """Workspace of a stream with room for `size_bytes`."""
    identifier = c_uint64()
    driver().call("cuStreamGetId", stream, byref(identifier))
    key = identifier.value, get_ident() if stream == STREAM_PER_THREAD else 0
    kept = context.workspaces
    found = kept.get(key)
    if found is not None and found.size_bytes >= size_bytes:
        return found
    with _lock, while_capturing():
        found = kept.setdefault(key, Workspace())
        with found.lock:
            if found.size_bytes < size_bytes:
                _free(found)
                found.address, found.size_bytes = allocated(size_bytes), size_bytes
        kept.move_to_end(key)
        while len(kept) > MOST_WORKSPACES:
            _, oldest = kept.popitem(last=False)
            with oldest.lock:
                _free(oldest)
    return found


def allocated(size_bytes: int) -> int:
    """Address of new memory in the current context."""
    address = c_uint64()
    driver().call("cuMemAlloc_v2", byref(address), size_bytes)
    return address.value


def _free(workspace: Workspace) -> None:
    """Free the memory, once the GPU has done with it: cuMemFree waits for that."""
    if workspace.address:
        driver().call("cuMemFree_v2", workspace.address)
    workspace.address = workspace.size_bytes = workspace.zeroed_bytes = 0


class _Location(ctypes.Structure):
    _fields_ = (("type", c_int), ("id", c_int))


class _PoolProperties(ctypes.Structure):
    """CUmemPoolProps."""

    _fields_ = (
        ("allocation_type", c_int),
        ("handle_types", c_int),
        ("location", _Location),
        ("security", c_void_p),
        ("max_size", c_size_t),
        ("rest", c_char * 56),
    )


def pool_of(context: Context) -> int:
    """Memory pool of a context's device, which keeps what is freed."""
    with _lock, while_capturing():
        if not context.pool:
            wanted = _PoolProperties(PINNED, NO_HANDLE, _Location(ON_DEVICE, context.ordinal))
            pool, keeps = c_void_p(), c_uint64(MOST_POOLED_BYTES)
            driver().call("cuMemPoolCreate", byref(pool), byref(wanted))
            assert pool.value is not None
            driver().call("cuMemPoolSetAttribute", pool, POOL_RELEASE_THRESHOLD, byref(keeps))
            context.pool = pool.value
    return context.pool


@contextmanager
def borrowed(context: Context, stream: int, sizes_bytes: Sequence[int]) -> Iterator[list[int]]:
    """Addresses of memory that launches on `stream` may use inside of the block; 0 for no bytes.

    In a stream that is captured, the memory belongs to the graph.
    """
    addresses: list[int] = []
    try:
        for size_bytes in sizes_bytes:
            address = c_uint64()
            if size_bytes:
                driver().call(
                    "cuMemAllocFromPoolAsync",
                    byref(address),
                    size_bytes,
                    pool_of(context),
                    stream,
                )
            addresses.append(address.value)
        yield addresses
    finally:
        for one in addresses:
            if one:
                driver().call("cuMemFreeAsync", one, stream)


def is_capturing(stream: int) -> bool:
    """True if launches on the stream go into a CUDA graph."""
    status = c_int()
    driver().call("cuStreamIsCapturing", stream, byref(status))
    return status.value != 0


def zero(address: int, size_bytes: int, stream: int) -> None:
    """Set some memory to zero, on a stream."""
    if size_bytes:
        driver().call("cuMemsetD8Async", address, 0, size_bytes, stream)
