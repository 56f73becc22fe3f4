"""Address space of the device: buffers with addresses, and the constant bank of a launch.

Addresses are made up, but have the properties that kernels may rely on: buffers are aligned like
those of cudaMalloc. They are so far apart that an access beyond one is never inside another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from analysis.geometry import Geometry
from toolkit.launch.host_resources import sparse_zeros
from toolkit.machine_code.attributes import KernelParameter
from toolkit.sass.core.binding import ALLOCATION

# Ascending, as the core wants its allocations: parameters, constants, variables, what the driver
# brings for grid.sync() and malloc, buffers.
PARAMETER_WINDOW = 0x7EB000000000
CONSTANT_WINDOW = 0x7EC000000000
FIRST_VARIABLE = 0x7ED000000000
WORKSPACE_WINDOW = 0x7EF000000000
HEAP_WINDOW = 0x7EF800000000
FIRST_ADDRESS = 0x7F0000000000
ALIGNMENT = 512  # of cudaMalloc
GAP = 1 << 16
# Beyond what 32 bits of an index of 16-byte elements can step over. The lower bits of addresses, of
# which caches make their sets, are those of buffers that lie close together.
FAR = 1 << 36
MOST_FAR_VARIABLES = 2  # for which there is room at this distance

PAGE_BYTES = COPIED = 1 << 16  # what is copied at a time, and the state of such a page (space.h)

# Generic addresses of a thread's shared and local memory; 16 MiB each, shared memory for each block
# of a cluster.
SHARED_WINDOW = 0x7E0000000000
LOCAL_WINDOW = 0x7E8000000000


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """Device memory with an address; `name` is for messages.

    `shared`: the caller's contents, and the state of each page. A page is copied to `data` when a
    block first writes to it; its state is then `COPIED` or more, before 0. If it is `unwritten`,
    the sanitizer reports reads of bytes that no block has written. Of the heap (`is_heap`) only the
    live blocks of malloc may be accessed. `accessed`: one number, not 0 if some thread of a launch
    read or wrote the buffer. `element_bytes` is for messages.
    """

    name: str
    address: int
    data: NDArray[np.uint8]
    writable: bool = True
    unwritten: bool = False
    is_heap: bool = False
    shared: tuple[NDArray[np.uint8], NDArray[np.uint32]] | None = None
    accessed: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(1, np.uint32))
    element_bytes: int = 1

    @property
    def bytes(self) -> int:
        return self.data.nbytes

    def sharing(self, content: NDArray[np.uint8]) -> Buffer:
        """This buffer, writable, with `content` that stays as it is."""
        data = sparse_zeros(content.shape, np.uint8)
        pages = np.zeros(content.size // PAGE_BYTES + 1, dtype=np.uint32)
        return replace(self, data=data, shared=(content, pages), writable=True)

    def complete(self) -> None:
        """Copy the pages that no block has written, so that `data` is whole."""
        if self.shared:
            content, pages = self.shared
            for page in np.flatnonzero(pages == 0):
                part = slice(page * PAGE_BYTES, (page + 1) * PAGE_BYTES)
                self.data[part] = content[part]
            pages[:] = COPIED


# Where constant bank 0 holds what the driver puts there, by byte: `clusters` along each axis of the
# grid, and of a `cluster` whether blocks run in some, blocks along each axis, and 1 over each;
# generic addresses of the windows; bytes of shared memory, dynamic ones and those that the system
# takes of each block; the descriptor of global memory, which says nothing that matters here; and
# where the `workspace` of grid.sync() is, the upper word first (%envreg1, %envreg2 of PTX).
# Found in compiled code; the first parameter's place is also in each cubin.
BankLayout = Mapping[str, int]
_BEFORE_100: BankLayout = {
    "parameters": 0x160,
    "block": 0x0,
    "grid": 0xC,
    "stack_pointer": 0x28,
    "shared_window": 0x18,
    "local_window": 0x20,
    "constant_window": 0x50,
    "dynamic_shared": 0x2C,
    "reserved_shared": 0x114,
    "descriptor": 0x118,
    "grid_id": 0x30,
    "workspace": 0x8C,
}
_SM_90: BankLayout = {
    **_BEFORE_100,
    "parameters": 0x210,
    "constant_window": 0xD0,
    "workspace": 0x44,
    "descriptor": 0x208,
    "parameter_window": 0x198,
    "cluster": 0x140,
    "clusters": 0x15C,
    "cluster_blocks": 0x188,
}
_SINCE_100: BankLayout = {
    "parameters": 0x380,
    "block": 0x360,
    "grid": 0x370,
    "stack_pointer": 0x37C,
    "local_window": 0x2F8,
    "constant_window": 0x120,
    "reserved_shared": 0x16C,
    "descriptor": 0x358,
    "grid_id": 0x140,
    "parameter_window": 0x348,
    "workspace": 0x1B4,
}

# How many words each is.
_WORDS = {
    **dict.fromkeys(("block", "grid", "clusters"), 3),
    **dict.fromkeys(("stack_pointer", "dynamic_shared", "reserved_shared", "cluster_blocks"), 1),
    **dict.fromkeys(("shared_window", "local_window", "constant_window", "descriptor"), 2),
    **dict.fromkeys(("grid_id", "parameter_window", "workspace"), 2),
    "cluster": 7,
}


def bank_layout(architecture: int) -> BankLayout:
    """The layout of bank 0 for an architecture such as 86."""
    if architecture >= 100:
        return _SINCE_100
    return _SM_90 if architecture >= 90 else _BEFORE_100


def known_offsets(architecture: int) -> frozenset[int]:
    """Offsets of the words of bank 0 that are set as the driver would set them."""
    return frozenset(
        start + 4 * k
        for name, start in bank_layout(architecture).items()
        for k in range(_WORDS.get(name, 0))
    )


def allocate(
    named: Sequence[tuple[str, NDArray[np.uint8], bool]],
    first: int = FIRST_ADDRESS,
    apart: int = FAR,
) -> list[Buffer]:
    """Give each (name, bytes, writable) an address, in order, `apart` bytes from each other."""
    buffers = []
    for name, data, writable in named:
        buffers.append(Buffer(name=name, address=first, data=data, writable=writable))
        first += -(-(data.nbytes + GAP) // ALIGNMENT) * ALIGNMENT + apart
    return buffers


def allocate_variables(named: Sequence[tuple[str, NDArray[np.uint8], bool]]) -> list[Buffer]:
    """Give variables their addresses: as `allocate`, but closer together where there are many."""
    apart = FAR >> (len(named) - 1).bit_length() if len(named) > MOST_FAR_VARIABLES else FAR
    return allocate(named, FIRST_VARIABLE, apart)


def allocation_table(buffers: Sequence[Buffer]) -> NDArray[np.void]:
    """The buffers as the core reads them."""
    table = np.zeros(max(1, len(buffers)), dtype=ALLOCATION)
    for row, buffer in zip(table, buffers, strict=False):
        row["base"], row["bytes"] = buffer.address, buffer.bytes
        row["host"], row["writable"] = buffer.data.ctypes.data, buffer.writable
        row["unwritten"], row["is_heap"] = buffer.unwritten, buffer.is_heap
        if buffer.shared:
            row["source"], row["pages"] = (array.ctypes.data for array in buffer.shared)
    return table


def pack_parameters(
    parameters: Sequence[KernelParameter],
    arguments: Sequence[NDArray[np.generic] | np.generic],
    addresses: Mapping[int, int],
) -> bytes:
    """The bytes of the kernel's parameters: addresses of arrays, values of scalars and structs.

    `addresses` maps the position of each array among the arguments to its device address. The
    arguments fit the parameters (`toolkit.launch.checks.check_arguments`).
    """
    packed = bytearray(max((p.offset + p.size for p in parameters), default=0))
    for index, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
        is_buffer = isinstance(argument, np.ndarray)
        value = addresses[index].to_bytes(8, "little") if is_buffer else argument.tobytes()
        packed[parameter.offset : parameter.offset + parameter.size] = value
    return bytes(packed)


def _reciprocal_bits(count: int) -> int:
    """Bits of 1 / count as a float, rounded so that a truncated product is the quotient."""
    reciprocal = np.float32(1) / np.float32(count)
    if float(reciprocal) * count < 1:
        reciprocal = np.nextafter(reciprocal, np.float32(2), dtype=np.float32)
    return int(reciprocal.view(np.uint32))


def _words(address: int) -> list[int]:
    """The lower and the upper word of an address."""
    return [address & 0xFFFFFFFF, address >> 32]


def launch_bank(
    initial: bytes,
    parameters: bytes,
    *,
    architecture: int,
    parameter_base: int,
    geometry: Geometry,
    stack_bytes: int,
    reserved_shared_bytes: int,
    cluster: tuple[int, int, int],
    workspace: int = 0,
) -> NDArray[np.uint8]:
    """Constant bank 0 of a launch: the driver's words, then the parameters.

    `workspace` is the address of what grid.sync() counts in, 0 of a launch that is not cooperative.
    """
    layout = bank_layout(architecture)
    size = max(len(initial), parameter_base + len(parameters), layout["parameters"])
    bank = np.zeros(-(-size // 16) * 16, dtype=np.uint8)
    bank[: len(initial)] = np.frombuffer(initial, dtype=np.uint8)
    values: dict[str, Sequence[int]] = {
        "block": geometry.block,
        "grid": geometry.grid,
        "stack_pointer": [stack_bytes],
        "dynamic_shared": [geometry.dynamic_shared_bytes],
        "reserved_shared": [reserved_shared_bytes],
        "shared_window": _words(SHARED_WINDOW),
        "local_window": _words(LOCAL_WINDOW),
        "constant_window": _words(CONSTANT_WINDOW),
        "parameter_window": _words(PARAMETER_WINDOW + parameter_base),
        "cluster": [int(prod(cluster) > 1), *cluster, *map(_reciprocal_bits, cluster)],
        "clusters": [n // of for n, of in zip(geometry.grid, cluster, strict=True)],
        "cluster_blocks": [prod(cluster)],
        "workspace": _words(workspace)[::-1],
    }
    for name, words in values.items():
        if (offset := layout.get(name)) is not None:
            bank[offset : offset + 4 * len(words)] = np.array(words, dtype="<u4").view(np.uint8)
    packed = np.frombuffer(parameters, dtype=np.uint8)
    bank[parameter_base : parameter_base + len(parameters)] = packed
    return bank
