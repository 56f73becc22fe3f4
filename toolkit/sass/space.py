"""The device's address space: buffers with addresses, and the constant bank of a launch.

Addresses are made up, with what kernels may rely on: buffers are aligned like cudaMalloc's and
lie so far apart that a step outside one is never a step into another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from analysis.errors import InputError
from analysis.geometry import Geometry
from toolkit.machine_code.kernel import Parameter
from toolkit.sass.core.binding import ALLOCATION

# Ascending, as the core wants its allocations: parameters, constants, variables, buffers.
PARAMETER_WINDOW = 0x7EB000000000
CONSTANT_WINDOW = 0x7EC000000000
FIRST_VARIABLE = 0x7ED000000000
FIRST_ADDRESS = 0x7F0000000000
ALIGNMENT = 512  # of cudaMalloc
GAP = 1 << 16
# Beyond what 32 bits of an index of 16-byte elements can step over. The lower bits of addresses, of
# which caches make their sets, are those of buffers that lie close together.
FAR = 1 << 36

# Generic addresses of a thread's shared and local memory; 16 MiB each, shared memory for each block
# of a cluster.
SHARED_WINDOW = 0x7E0000000000
LOCAL_WINDOW = 0x7E8000000000


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """Device memory with an address; `name` is for messages.

    Of what is `unwritten` the sanitizer says who reads it before a block has written it.
    """

    name: str
    address: int
    data: NDArray[np.uint8]
    writable: bool = True
    unwritten: bool = False

    @property
    def bytes(self) -> int:
        return self.data.nbytes


@dataclass(frozen=True, kw_only=True)
class BankLayout:
    """Where constant bank 0 holds what the driver puts there, in bytes."""

    parameters: int
    block: int
    grid: int
    stack_pointer: int
    shared_window: int | None
    local_window: int | None
    constant_window: int
    dynamic_shared: int | None  # bytes of it
    reserved_shared: int | None  # bytes that the system takes of each block's
    descriptor: int | None  # of global memory, which says nothing that matters here
    grid_id: int
    parameter_window: int | None = None  # the generic address of the parameters
    cluster: int | None = (
        None  # whether blocks run in clusters; blocks along each axis, 1 over each
    )
    clusters: int | None = None  # along each axis of the grid
    cluster_blocks: int | None = None

    def known(self) -> frozenset[int]:
        """The offsets that hold in a launch here what the driver would put there."""
        return frozenset(
            start + 4 * k
            for name, words in _WORDS.items()
            if (start := getattr(self, name)) is not None
            for k in range(words)
        )


# What the driver puts there, in words.
_WORDS = {
    **dict.fromkeys(("block", "grid", "clusters"), 3),
    **dict.fromkeys(("stack_pointer", "dynamic_shared", "reserved_shared", "cluster_blocks"), 1),
    **dict.fromkeys(("shared_window", "local_window", "constant_window", "descriptor"), 2),
    **dict.fromkeys(("grid_id", "parameter_window"), 2),
    "cluster": 7,
}

# Found in compiled code; the first parameter's place is also in each cubin.
_BEFORE_100 = BankLayout(
    parameters=0x160,
    block=0x0,
    grid=0xC,
    stack_pointer=0x28,
    shared_window=0x18,
    local_window=0x20,
    constant_window=0x50,
    dynamic_shared=0x2C,
    reserved_shared=0x114,
    descriptor=0x118,
    grid_id=0x30,
)
_SM_90 = replace(
    _BEFORE_100,
    parameters=0x210,
    constant_window=0xD0,
    descriptor=0x208,
    parameter_window=0x198,
    cluster=0x140,
    clusters=0x15C,
    cluster_blocks=0x188,
)
_SINCE_100 = BankLayout(
    parameters=0x380,
    block=0x360,
    grid=0x370,
    stack_pointer=0x37C,
    shared_window=None,
    local_window=0x2F8,
    constant_window=0x120,
    dynamic_shared=None,
    reserved_shared=0x16C,
    descriptor=0x358,
    grid_id=0x140,
    parameter_window=0x348,
)


def bank_layout(architecture: int) -> BankLayout:
    """The layout of bank 0 for an architecture such as 86."""
    if architecture >= 100:
        return _SINCE_100
    return _SM_90 if architecture >= 90 else _BEFORE_100


def allocate(
    named: Sequence[tuple[str, NDArray[np.uint8], bool]], first: int = FIRST_ADDRESS
) -> list[Buffer]:
    """Give each (name, bytes, writable) an address, in order, apart from each other."""
    buffers = []
    for name, data, writable in named:
        buffers.append(Buffer(name=name, address=first, data=data, writable=writable))
        first += -(-(data.nbytes + GAP) // ALIGNMENT) * ALIGNMENT + FAR
    return buffers


def allocation_table(buffers: Sequence[Buffer]) -> NDArray[np.void]:
    """The buffers as the core reads them."""
    table = np.zeros(max(1, len(buffers)), dtype=ALLOCATION)
    for row, buffer in zip(table, buffers, strict=False):
        row["base"], row["bytes"] = buffer.address, buffer.bytes
        row["host"], row["writable"] = buffer.data.ctypes.data, buffer.writable
        row["unwritten"] = buffer.unwritten
    return table


def pack_parameters(
    kernel: str,
    parameters: Sequence[Parameter],
    arguments: Sequence[NDArray[np.generic] | np.generic],
    addresses: Mapping[int, int],
) -> bytes:
    """The bytes of the kernel's parameters: addresses of arrays, values of scalars and structs.

    `addresses` maps the position of each array among the arguments to its device address.
    Raises InputError for a wrong number of arguments or one of the wrong size.
    """
    if len(arguments) != len(parameters):
        raise InputError(
            f"{kernel} takes {len(parameters)} argument{'s' * (len(parameters) != 1)}, "
            f"{len(arguments)} {'was' if len(arguments) == 1 else 'were'} given"
        )
    end = max((parameter.offset + parameter.size for parameter in parameters), default=0)
    packed = bytearray(end)
    for index, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
        if isinstance(argument, np.ndarray):
            value = addresses[index].to_bytes(8, "little")
            what = f"a device buffer ({argument.dtype} array, an 8-byte pointer)"
        else:
            value = argument.tobytes()
            what = f"{argument.dtype} ({argument.nbytes} bytes)"
        if len(value) != parameter.size:
            raise InputError(
                f"argument {index} of {kernel} is {what}; the kernel's parameter {index} has "
                f"{parameter.size} bytes: give {_of_size(parameter.size)}"
            )
        packed[parameter.offset : parameter.offset + parameter.size] = value
    return bytes(packed)


def _of_size(size: int) -> str:
    known = {
        1: "a NumPy scalar such as int8",
        2: "a NumPy scalar such as int16 or float16",
        4: "a NumPy scalar such as int32 or float32",
        8: "an array (for a pointer), or a scalar such as int64 or float64",
    }
    return known.get(size, f"a NumPy structured scalar (numpy.void) of {size} bytes")


def _reciprocal_bits(count: int) -> int:
    """1 over a count as a float; what code multiplies with it and truncates is the quotient."""
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
) -> NDArray[np.uint8]:
    """Constant bank 0 of a launch: the driver's words, then the parameters."""
    layout = bank_layout(architecture)
    size = max(len(initial), parameter_base + len(parameters), layout.parameters)
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
    }
    for name, words in values.items():
        if (offset := getattr(layout, name)) is not None:
            bank[offset : offset + 4 * len(words)] = np.array(words, dtype="<u4").view(np.uint8)
    packed = np.frombuffer(parameters, dtype=np.uint8)
    bank[parameter_base : parameter_base + len(parameters)] = packed
    return bank
