"""Cost of one request in the memory system, from the addresses of its lanes.

A global request costs sectors (32-byte pieces, the unit of traffic to L2) and clocks of the
load/store unit, which looks up the tags of its 128-byte lines and reads their words from the
banks of L1. A shared request costs wavefronts: shared memory has 32 banks of 4 bytes, and one
wavefront delivers one word of every bank.

Per request, `sectors` is Nsight Compute's `l1tex__t_sectors_pipe_lsu_mem_global_op_{ld,st}.sum`,
`wavefronts` its `l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{ld,st}.sum` and `conflicts` its
`l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{ld,st}.sum`. NVIDIA documents the banks (CUDA
C++ Programming Guide, "Compute Capabilities", "Shared Memory") but not the groups of lanes of wide
requests. That rule was found on an H100 and an H200, and a test compares it with recorded counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.access import BANKS, WAVEFRONT_BYTES, WORD_BYTES, Operand, Operation, Pattern, Space
from analysis.argument_types import checked, shown
from analysis.errors import InputError, first_line
from analysis.geometry import WARP_SIZE, ceil_div

SECTOR_BYTES = 32
LINE_BYTES = 128
MOST_ADDRESS = int(np.iinfo(np.int64).max)  # addresses are signed integers here

Addresses = Sequence[int] | NDArray[np.integer[Any]]
Mask = Sequence[bool] | NDArray[np.bool_]

# Number of groups of neighbouring lanes that serve a request, by bytes per lane: the number of
# wavefronts that the bytes of a full warp fill.
_GROUPS_PER_REQUEST = {1: 1, 2: 1, 4: 1, 8: 2, 16: 4}

LINES_PER_CLOCK = 4  # tags that L1 looks up
CLOCKS_PER_WIDE_LOAD = 4  # of 16 bytes per lane, even where all lanes load the same


@dataclass(frozen=True, kw_only=True)
class Wavefronts:
    """Cost of one shared request.

    `wavefronts` is the total. `groups` is the number of groups of lanes that are served one after
    another, which is the number of wavefronts without bank conflicts. `conflicts` is the rest.
    """

    wavefronts: int
    groups: int

    @property
    def conflicts(self) -> int:
        return self.wavefronts - self.groups


@checked
def sectors(addresses: Addresses, *, width_bytes: int, active: Mask | None = None) -> int:
    """Number of distinct 32-byte sectors that one global request accesses.

    `addresses` are byte addresses of up to 32 lanes, each of `width_bytes` (1, 2, 4, 8 or 16).
    `active` is True for the lanes that take part (None: all); the others access nothing. Raises
    InputError for an address that is negative, not a multiple of the width or not below 2^63.
    """
    return _distinct_pieces(addresses, width_bytes, active, SECTOR_BYTES)


@checked
def lines(addresses: Addresses, *, width_bytes: int, active: Mask | None = None) -> int:
    """Number of distinct 128-byte lines that a global request accesses; arguments as `sectors`."""
    return _distinct_pieces(addresses, width_bytes, active, LINE_BYTES)


@checked
def ideal_sectors(addresses: Addresses, *, width_bytes: int, active: Mask | None = None) -> int:
    """Fewest sectors that could hold the distinct bytes accessed; arguments as `sectors`."""
    return ceil_div(_distinct_bytes(addresses, width_bytes, active), SECTOR_BYTES)


@checked
def ideal_wavefronts(addresses: Addresses, *, width_bytes: int, active: Mask | None = None) -> int:
    """Fewest wavefronts that could carry the distinct bytes accessed; arguments as `sectors`."""
    return ceil_div(_distinct_bytes(addresses, width_bytes, active), WAVEFRONT_BYTES)


@checked
def shared_wavefronts(
    addresses: Addresses,
    *,
    width_bytes: int,
    operation: Operation = "load",
    active: Mask | None = None,
) -> Wavefronts:
    """Wavefronts of one shared request, and the part of them that bank conflicts cause.

    Arguments and errors as `sectors`, with byte addresses within shared memory. The rule:

    - Accesses of up to 4 bytes are one group of 32 lanes, of 8 bytes two half-warps, of 16 bytes
      four quarter-warps. A group without an active lane does not count (though it takes a clock).
    - A group costs the largest number of distinct 4-byte words in one bank. Lanes that load, or
      store to, the same word count once.
    - In loads, neighbouring groups (both halves; the quarters of each half) merge into one if
      address[i] == address[i ^ 1] for all lanes of the warp, or address[i] == address[i ^ 2] for
      all of them. Pairs with an inactive lane are ignored. Stores of 8 and 16 bytes never merge.
    """
    lanes, active_addresses = _active(addresses, width_bytes, active)
    count = _GROUPS_PER_REQUEST[width_bytes]
    if operation == "load" and count > 1 and _merges(lanes, active_addresses):
        count //= 2
    group_of_lane = lanes * count // WARP_SIZE
    groups = np.unique(group_of_lane)
    return Wavefronts(
        wavefronts=sum(
            _words_in_fullest_bank(active_addresses[group_of_lane == group], width_bytes)
            for group in groups
        ),
        groups=len(groups),
    )


@checked
def global_cycles(addresses: Addresses, *, width_bytes: int, active: Mask | None = None) -> int:
    """Lower bound on the clocks for which a global load that hits L1 occupies the load/store unit.

    It is the largest of: the distinct words in the fullest bank (L1 and shared memory are one array
    of 32 banks), the lines over 4 tags per clock, and 4 for 16 bytes per lane. 0 if no lane is
    active; arguments as `sectors`. Found by timing loads of 224 patterns on an H200: rows and
    columns of a matrix with a pitch of a power of two took exactly this, none took less (except
    three columns: 30 clocks instead of 32), and some took up to 3 times as long, by an unknown
    rule. The rule of stores is unknown, too.
    """
    _, active_addresses = _active(addresses, width_bytes, active)
    if not active_addresses.size:
        return 0
    touched = lines(addresses, width_bytes=width_bytes, active=active)
    return max(
        _words_in_fullest_bank(active_addresses, width_bytes),
        ceil_div(touched, LINES_PER_CLOCK),
        CLOCKS_PER_WIDE_LOAD if width_bytes == max(_GROUPS_PER_REQUEST) else 1,
    )


@checked
def pattern(
    *,
    space: Space,
    operation: Operation,
    operand: Operand,
    addresses: Addresses,
    instruction_bytes: int,
    requests: int,
    active: Mask | None = None,
) -> Pattern:
    """Cost of one access in the memory system, as the record of a profile.

    `addresses` and `active` as `sectors`; `requests` is the number of such requests of the launch.
    Raises InputError as `sectors` does, if no lane is active, and for a negative number of
    requests.
    """
    width = instruction_bytes
    if requests < 0:
        raise InputError(f"requests = {requests}: give 0 or more")
    if _distinct_bytes(addresses, width, active) == 0:
        raise InputError("a pattern needs at least one active lane")
    described = partial(
        Pattern,
        space=space,
        operation=operation,
        operand=operand,
        instruction_bytes=width,
        requests=requests,
    )
    if space == "shared":
        wavefronts = shared_wavefronts(
            addresses, width_bytes=width, operation=operation, active=active
        ).wavefronts
        return described(
            cycles=wavefronts,
            wavefronts=wavefronts,
            ideal_wavefronts=ideal_wavefronts(addresses, width_bytes=width, active=active),
        )
    return described(
        cycles=global_cycles(addresses, width_bytes=width, active=active),
        sectors=sectors(addresses, width_bytes=width, active=active),
        ideal_sectors=ideal_sectors(addresses, width_bytes=width, active=active),
    )


def _distinct_pieces(
    addresses: Addresses, width_bytes: int, active: Mask | None, piece_bytes: int
) -> int:
    # aligned accesses never straddle a piece: the first byte determines it
    _, active_addresses = _active(addresses, width_bytes, active)
    return len(np.unique(active_addresses // piece_bytes))


def _distinct_bytes(addresses: Addresses, width_bytes: int, active: Mask | None) -> int:
    _, active_addresses = _active(addresses, width_bytes, active)
    return len(np.unique(active_addresses)) * width_bytes


def _words_in_fullest_bank(addresses: NDArray[np.int64], width_bytes: int) -> int:
    words_per_lane = max(1, width_bytes // WORD_BYTES)
    words = np.unique(addresses[:, None] // WORD_BYTES + np.arange(words_per_lane))
    return int(np.bincount(words % BANKS).max())


def _merges(lanes: NDArray[np.int64], addresses: NDArray[np.int64]) -> bool:
    """True if all active lanes agree with lane ^ 1, or all with lane ^ 2, if both are active."""
    address_of_lane = dict(zip(lanes.tolist(), addresses.tolist(), strict=True))
    return any(
        all(
            address_of_lane.get(lane ^ distance, address) == address
            for lane, address in address_of_lane.items()
        )
        for distance in (1, 2)
    )


def _as_array(name: str, values: object) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:  # of lists of different lengths
        raise InputError(f"{name} = {shown(values)}: {first_line(error)}") from None


def _active(
    addresses: Addresses, width_bytes: int, active: Mask | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Active lanes and their addresses. Raises InputError for an impossible request."""
    if width_bytes not in _GROUPS_PER_REQUEST:
        raise InputError(f"width of {width_bytes} bytes: a lane accesses 1, 2, 4, 8 or 16 bytes")
    given = _as_array("addresses", addresses)
    if given.ndim != 1 or len(given) > WARP_SIZE:
        raise InputError(
            f"addresses of shape {given.shape}: give one per lane of a warp, at most {WARP_SIZE}"
        )
    if given.size and given.dtype.kind not in "iu":
        raise InputError(f"addresses of type {given.dtype}: give integers below 2^63")
    mask = np.ones(len(given), dtype=np.bool_) if active is None else _as_array("active", active)
    if mask.shape != given.shape or (mask.size and mask.dtype.kind != "b"):
        raise InputError(
            f"active has type {mask.dtype} and shape {mask.shape}: "
            f"give one boolean per address, {len(given)}"
        )
    lanes = np.flatnonzero(mask)
    if given.dtype.kind == "u" and given[lanes].max(initial=0) > MOST_ADDRESS:
        lane = lanes[np.argmax(given[lanes])]
        raise InputError(f"lane {lane}: address {int(given[lane]):#x} is not below 2^63")
    taken = given[lanes].astype(np.int64)
    wrong = np.flatnonzero((taken < 0) | (taken % width_bytes != 0))
    if wrong.size:
        lane, address = lanes[wrong[0]], int(taken[wrong[0]])
        reason = "is negative" if address < 0 else f"is not a multiple of {width_bytes} bytes"
        raise InputError(f"lane {lane}: address {address:#x} {reason}")
    return lanes.astype(np.int64), taken
