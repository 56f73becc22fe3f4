"""Run instructions on one warp of the native core from any state: what tests look through."""

import ctypes
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from analysis.errors import LaunchError
from toolkit.machine_code.decode import parse_guard, parse_operand, split_operands
from toolkit.machine_code.instruction import INSTRUCTION_BYTES, RZ, Instruction
from toolkit.sass.core import binding as core
from toolkit.sass.core.binding import LANES, PT, UPT
from toolkit.sass.isa.registry import lower
from toolkit.sass.isa.slots import WIDEST_RANGE, ConstantWord
from toolkit.sass.space import LOCAL_WINDOW, SHARED_WINDOW, allocate, allocation_table

FULL = 0xFFFFFFFF
MOST_INSTRUCTIONS = 1 << 20  # a probe that executes more does not end
REGISTERS, PREDICATES, CONVERGENCE_BARRIERS = 256, 8, 16

_INSTRUCTION = re.compile(r"(?:@(!?\w+)\s+)?([\w.]+)\s*(.*)")

Words = NDArray[np.uint32]


def lanes_of(mask):
    return [lane for lane in range(LANES) if int(mask) >> lane & 1]


def same(got, wanted):
    for name in ("r", "ur", "p", "up", "b"):
        one, other = getattr(got, name), getattr(wanted, name)
        if not np.array_equal(one, other):  # the assertion that says where takes ten times as long
            np.testing.assert_array_equal(one, other, err_msg=name)


def buffer_of(data):
    """Global memory with the bytes of an array."""
    (buffer,) = allocate([("data", data.view(np.uint8), True)])
    return buffer


def _zeros(rows):
    return np.zeros((rows, LANES), dtype=np.uint32)


def _predicates():
    masks = np.zeros(PREDICATES, dtype=np.uint32)
    masks[PT] = FULL
    return masks


@dataclass(frozen=True, kw_only=True)
class State:
    """State of one warp: `r[n, lane]`, `ur[n, lane]` (lanes alike), `p[n]` and `up[n]` masks.

    `b[n, lane]` are the convergence barriers. Rows of RZ, URZ and masks of PT, UPT are as they
    read.
    """

    r: Words = field(default_factory=lambda: _zeros(REGISTERS))
    ur: Words = field(default_factory=lambda: _zeros(REGISTERS))
    p: Words = field(default_factory=_predicates)
    up: Words = field(default_factory=_predicates)
    b: Words = field(default_factory=lambda: _zeros(CONVERGENCE_BARRIERS))

    def copy(self):
        return State(**{name: getattr(self, name).copy() for name in ("r", "ur", "p", "up", "b")})


_REGISTER = re.compile(r"(U?[RP])(\d+)(_64)?")


def holding(**values):
    """A state whose registers hold values, alike or lane by lane: `holding(R2=1, UR4=2, P0=FULL)`.

    `R2_64` is a pair of registers, as in [R2.64].
    """
    state = State()
    for name, value in values.items():
        file, index, is_pair = _REGISTER.fullmatch(name).groups()
        rows, first = getattr(state, file.lower()), int(index)
        if is_pair:
            wide = np.asarray(value).astype(np.uint64)
            rows[first], rows[first + 1] = wide & np.uint64(FULL), wide >> np.uint64(32)
        else:
            rows[first] = value
    return state


def instructions(text):
    """SASS as nvdisasm prints it, each instruction ending in `;` or in a line's end.

    >>> [i.modifiers for i in instructions("@!P0 IADD3.X R0, R2, -R3, RZ, P1, !PT; NOP")]
    [('X',), ()]
    """
    parts = [part.strip() for part in re.split(r"[;\n]", text)]
    return tuple(_parse(part, index) for index, part in enumerate(filter(None, parts)))


def parse_operands(text):
    """The operands of an instruction; raises OperandError for a form that is not known."""
    return tuple(map(parse_operand, split_operands(text)))


def _parse(text, index):
    match = _INSTRUCTION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an instruction")
    guard, words, operands = match.groups()
    opcode, *modifiers = words.split(".")
    return Instruction(
        address=INSTRUCTION_BYTES * index,
        opcode=opcode,
        modifiers=tuple(modifiers),
        operands=parse_operands(operands),
        guard=parse_guard(guard) if guard else None,
        text=text,
    )


def probe(
    text,
    state,
    *,
    constants=None,
    lanes=FULL,
    grid=(1, 1, 1),
    block=(LANES, 1, 1),
    block_index=0,
    buffers=(),
    shared_bytes=0,
    local_bytes=0,
    counts=None,
    capability=90,
):
    """The state after the instructions and an EXIT, run by the first warp of a block.

    `constants` holds 32-bit words by (bank, offset), zero where there is none; of the warp only
    `lanes` live. Memory is that of `buffers`, and zero-based shared and local memory. `counts`,
    one core.COUNT per instruction and one for the EXIT, is added to.
    Raises UnsupportedError for what cannot be lowered and LaunchError for what stops.
    """
    lowered = _lowered(text, capability)
    pool = _pool(lowered, constants or {})
    table = allocation_table(buffers)
    launch = core.CoreLaunch(
        program=lowered.program.ctypes.data,
        length=len(lowered.program),
        slots=lowered.slots,
        pool=pool.ctypes.data,
        grid=grid,
        block=block,
        allocations=table.ctypes.data,
        allocation_count=len(buffers),
        shared_bytes=shared_bytes,
        local_bytes=local_bytes,
        shared_window=SHARED_WINDOW,
        local_window=LOCAL_WINDOW,
        cluster=(1, 1, 1),
        most_resident=1,
    )
    if counts is None:
        counts = np.zeros(len(lowered.program), dtype=core.COUNT)
    return _run(launch, lowered, state, counts, lanes, block_index)


@lru_cache(maxsize=64)
def _lowered(text, capability):
    """The core's program for instructions and an EXIT; rows of operands are tried on one."""
    body = instructions(text) if isinstance(text, str) else text
    return lower((*body, _exit(INSTRUCTION_BYTES * len(body))), capability)


def _exit(address):
    return Instruction(
        address=address, opcode="EXIT", modifiers=(), operands=(), guard=None, text="EXIT"
    )


def _pool(lowered, constants):
    values = [
        constants.get((entry.bank, entry.offset), 0) if isinstance(entry, ConstantWord) else entry
        for entry in lowered.pool
    ]
    return np.repeat(np.array(values, dtype=np.uint32), LANES)


def _run(
    launch,
    lowered,
    state,
    counts,
    lanes,
    block_index,
):
    after = state.copy()
    registers = _rows(lowered.first_uniform)
    uniforms = _rows(lowered.slots - lowered.first_uniform - WIDEST_RANGE)  # less the discard
    vectors = _zeros(lowered.slots)
    vectors[registers] = state.r[registers]
    vectors[lowered.first_uniform :][uniforms] = state.ur[uniforms]
    predicates = np.zeros(core.PREDICATE_DISCARD + 1, dtype=np.uint32)
    predicates[: PT + 1], predicates[PT + 1 : UPT + 1] = state.p, state.up
    handle = core.library().core_new_worker(
        ctypes.byref(launch), counts.ctypes.data, MOST_INSTRUCTIONS, 1
    )
    if not handle:
        raise LaunchError("the probe does not fit into this machine's memory")
    try:
        kind = core.library().core_probe(
            handle,
            block_index,
            lanes,
            vectors.ctypes.data,
            predicates.ctypes.data,
            after.b.ctypes.data,
        )
    finally:
        core.library().core_free_worker(handle)
    if kind:
        raise LaunchError(f"the probe stopped with a fault of kind {kind}")
    after.r[registers] = vectors[registers]
    after.ur[uniforms] = vectors[lowered.first_uniform :][uniforms]
    return replace(after, p=predicates[: PT + 1].copy(), up=predicates[PT + 1 : UPT + 1].copy())


def _rows(count):
    """The registers that `count` vectors hold; RZ is none of them."""
    return slice(0, min(count, RZ))
