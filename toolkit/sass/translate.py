"""From a compiled kernel to a program of the core, and from that to a launch of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from analysis.errors import InputError
from analysis.geometry import Geometry, ceil_div
from toolkit.launch.host_resources import sparse_zeros
from toolkit.launch.launch import Argument, buffers_of
from toolkit.launch.setup import PLAIN, LaunchSetup
from toolkit.launch.tensor_map import MAP_BYTES
from toolkit.machine_code.instruction import (
    RZ,
    URZ,
    Constant,
    Instruction,
    Operand,
    Register,
)
from toolkit.machine_code.kept import kept
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.program import Linked, link
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.isa import lower
from toolkit.sass.isa.control import BRANCH_WAITS, SYSTEM_FUNCTIONS
from toolkit.sass.isa.registry import Lowered
from toolkit.sass.isa.slots import refuse
from toolkit.sass.module_variables import (
    CONSTANT_BANK,
    WORD,
    MemoryUse,
    symbols_of,
)
from toolkit.sass.polls import reads_what_others_write
from toolkit.sass.space import (
    CONSTANT_WINDOW,
    HEAP_WINDOW,
    PARAMETER_WINDOW,
    WORKSPACE_WINDOW,
    Buffer,
    allocate,
    allocate_variables,
    bank_layout,
    known_offsets,
    launch_bank,
    pack_parameters,
)
from toolkit.sass.tensor_maps import described, maps_in_memory
from toolkit.sass.textures import table
from toolkit.sass.waits import waits

FUNCTION_BANK = 4  # of addresses of variables and of functions of the system
RESERVED_SHARED_BYTES = 0x400  # the system's, below a kernel's own from sm_90 on
LOCAL_ALIGNMENT = 16
# cudaLimitStackSize: what calls may take beyond the frame that is known, by recursion or through
# pointers. Without calls nothing lies below the frame, so that no array can reach below its first.
STACK_BYTES = 1024
REGISTER_UNIT = 8  # of each thread, in which a warp gets registers

WORKSPACE, HEAP = "the workspace of grid.sync()", "the heap of malloc"
# The workspace of a cooperative launch: its size, and the counter of the barrier.
WORKSPACE_BYTES = 8
# From sm_100 on code finds it at an address from SR_CgaSize: so far beyond its place for size 1.
BEFORE_CLUSTERS = 0xA0

# Opcodes whose effect depends on what other blocks did before, as that of loads does which ask for
# what others just wrote: such blocks run in order. Those that read it may wait for it.
_REDUCED = {"RED", "REDG", "UTMAREDG", "UBLKRED", "SURED"}


@dataclass(frozen=True, kw_only=True)
class Translated:
    """Kernel translated to a program: the simulator knows its every instruction."""

    kernel: Kernel
    linked: Linked
    lowered: Lowered


@lru_cache(maxsize=64)
def translate(kernel: Kernel) -> Translated:
    """Decode and lower a kernel; the last ones are kept.

    Raises UnsupportedError for an instruction that the simulator does not know.
    """
    linked = link(kernel, _addresses(kernel))
    return Translated(kernel=kernel, linked=linked, lowered=_lowered(kernel))


@kept
def _lowered(kernel: Kernel) -> Lowered:
    _check_constants(kernel)
    linked = link(kernel, _addresses(kernel))
    lowered = lower(linked.instructions, kernel.capability)
    for loop in waits(kernel.instructions):
        lowered.program["flags"][loop[-1]] |= BRANCH_WAITS
    return lowered


def bind(
    translated: Translated,
    geometry: Geometry,
    arguments: Sequence[Argument],
    *,
    in_place: bool = False,
    setup: LaunchSetup = PLAIN,
) -> tuple[BoundLaunch, tuple[NDArray[np.generic], ...]]:
    """A launch, and its array arguments as they will be, once each `Buffer` is complete.

    `in_place`, it writes the arrays themselves, which are contiguous; a store to one that is
    read-only is a fault. The arguments fit the kernel's parameters (`check_arguments`). Raises
    InputError for a `setup` that does not fit the kernel.
    """
    kernel = translated.kernel
    _check_setup(kernel, setup)
    symbols = symbols_of(kernel, setup.symbols)
    arrays = buffers_of(arguments)
    in_memory = maps_in_memory(arguments, kernel.parameters)
    buffers = allocate(
        [
            (f"argument {k}", np.ascontiguousarray(a).reshape(-1).view(np.uint8), a.flags.writeable)
            for k, a in arrays.items()
        ]
        + [(f"tensor map of argument {k}", np.zeros(MAP_BYTES, np.uint8), False) for k in in_memory]
    )
    buffers, maps = buffers[: len(arrays)], buffers[len(arrays) :]
    if not in_place:
        buffers = [buffer.sharing(buffer.data) for buffer in buffers]
    banks = _constant_banks(translated, symbols)
    addresses = {k: buffer.address for k, buffer in zip(arrays, buffers, strict=True)}
    values = described(arguments, arrays, addresses)
    for k, buffer in zip(in_memory, maps, strict=True):
        buffer.data[:] = np.frombuffer(values[k].tobytes(), np.uint8)
        values[k] = np.uint64(buffer.address)
    packed = pack_parameters(kernel.parameters, values, addresses)
    static = kernel.resources.static_shared_bytes
    local = _stack_bytes(kernel) if _uses_stack(kernel) else 0
    reserved = RESERVED_SHARED_BYTES if kernel.capability >= 90 else 0
    banks[0] = launch_bank(
        translated.linked.constant_banks.get(0, b""),
        packed,
        architecture=kernel.capability,
        parameter_base=kernel.parameter_base,
        geometry=geometry,
        stack_bytes=local,
        reserved_shared_bytes=reserved,
        cluster=kernel.cluster,
        workspace=WORKSPACE_WINDOW if setup.cooperative else 0,
    )
    takes_heap = uses_heap(kernel)
    meet = takes_heap or any(map(reads_what_others_write, kernel.instructions))
    module = _memory_of_module(translated, banks, symbols)
    system = _memory_of_system(setup, takes_heap=takes_heap)
    size = banks[CONSTANT_BANK].size if CONSTANT_BANK in banks else 0
    bound = BoundLaunch(
        lowered=translated.lowered,
        geometry=geometry,
        banks=banks,
        buffers=[*module, *system, *maps, *buffers],
        heap_bytes=setup.heap_bytes if takes_heap else 0,
        use=MemoryUse(constants=np.zeros(size // WORD + 1, dtype=np.uint8)),
        shared_base=reserved,
        shared_bytes=reserved + static + geometry.dynamic_shared_bytes,
        local_bytes=local,
        in_order=meet or any(i.opcode in _REDUCED for i in kernel.instructions),
        cluster=kernel.cluster,
        blocks_meet=meet,
        textures=table(arguments, arrays, addresses),
        registers=ceil_div(kernel.resources.registers_per_thread, REGISTER_UNIT) * REGISTER_UNIT,
    )
    written = zip(buffers, arrays.values(), strict=True)
    return bound, tuple(x.data.view(a.dtype).reshape(a.shape) for x, a in written)


def uses_heap(kernel: Kernel) -> bool:
    """True if the kernel calls malloc or free, or if that cannot be told from its code.

    Code loads the address of a function of the system from bank 4, at an offset that is a constant
    or in a register. All kernels of a module share that bank.
    """
    places = {
        x.offset
        for x in kernel.relocations
        if x.place == FUNCTION_BANK and x.target in ("malloc", "free")
    }
    code = kernel.instructions
    if not places or not any(map(_is_system_call, code)):
        return False
    for index, instruction in enumerate(code):
        for operand in instruction.operands:
            if isinstance(operand, Constant) and operand.bank == FUNCTION_BANK:
                at = operand.offset
                if operand.base is not None:
                    base = _constant_of(operand.base, code[:index])
                    if base is None:
                        return True
                    at += base
                if at in places:
                    return True
    return False


def _is_system_call(instruction: Instruction) -> bool:
    return instruction.opcode == "CALL" and isinstance(instruction.operands[-1], Register)


def _constant_of(register: Register, before: Sequence[Instruction]) -> int | None:
    """Value that a register got from a move of a constant just before; None if it is unknown."""
    if _is_zero(register):
        return 0
    for instruction in reversed(before):
        if not instruction.operands or instruction.operands[0] != register:
            continue
        return _moved(instruction)
    return None


def _moved(instruction: Instruction) -> int | None:
    """The constant that an instruction moves to a register; None if it does something else."""
    *others, value = instruction.operands[1:]
    if not all(_is_zero(one) for one in others[:2]):
        return None
    if instruction.opcode in ("MOV", "IMAD", "UMOV"):
        return 0 if _is_zero(value) else getattr(value, "integer", None)
    if instruction.opcode == "HFMA2" and len(others) == 3:  # two halves, of which -0*0 is added
        words = [getattr(one, "number", None) for one in (value, others[2])]
        low, high = (None if x is None else int(np.float16(x).view(np.uint16)) for x in words)
        return None if low is None or high is None else high << 16 | low
    return None


def _is_zero(operand: Operand) -> bool:
    return isinstance(operand, Register) and operand.index in (RZ, URZ)


def reads_workspace(kernel: Kernel) -> bool:
    """True if the kernel asks where the workspace of grid.sync() is."""
    start = bank_layout(kernel.capability)["workspace"]
    return any(
        isinstance(x, Constant)
        and not x.bank
        and x.offset - (start if x.base is None else start + BEFORE_CLUSTERS) in (0, WORD)
        for instruction in kernel.instructions
        for x in instruction.operands
    )


def _check_setup(kernel: Kernel, setup: LaunchSetup) -> None:
    """Raise InputError where a kernel needs another kind of launch."""
    if not setup.cooperative and reads_workspace(kernel):
        raise InputError(
            f"{kernel.name} calls grid.sync(), which needs a cooperative launch: add --cooperative "
            "(cooperative=True in Python)"
        )


def _constant_banks(
    translated: Translated, symbols: Mapping[str, bytes]
) -> dict[int, NDArray[np.uint8]]:
    """The constant banks but bank 0, with the `__constant__` variables that a caller set."""
    banks = {
        number: np.frombuffer(content, dtype=np.uint8)
        for number, content in translated.linked.constant_banks.items()
        if number
    }
    if CONSTANT_BANK in banks:
        banks[CONSTANT_BANK] = _with_symbols(translated.kernel, banks[CONSTANT_BANK], symbols)
    return banks


def _with_symbols(
    kernel: Kernel, bank: NDArray[np.uint8], symbols: Mapping[str, bytes]
) -> NDArray[np.uint8]:
    """The bank of `__constant__` variables with those that a caller set."""
    found = bank.copy()
    for variable in kernel.constants:
        if variable.name in symbols:
            content = np.frombuffer(symbols[variable.name], dtype=np.uint8)
            found[variable.offset : variable.offset + variable.size] = content
    return found


def _check_constants(kernel: Kernel) -> None:
    """Raise UnsupportedError where code reads a constant of which nothing is known."""
    known = known_offsets(kernel.capability)
    for instruction in kernel.instructions:
        for operand in instruction.operands:
            if not isinstance(operand, Constant) or operand.bank_register is not None:
                continue
            if operand.bank and operand.bank not in kernel.constant_banks:
                refuse(instruction, f"the cubin has no constant bank {operand.bank}")
            if operand.base is not None and operand.base.index != RZ:
                continue  # the core checks it when it runs
            of_driver = not operand.bank and operand.offset < kernel.parameter_base
            if of_driver and operand.offset not in known:
                refuse(
                    instruction,
                    "the simulator does not know this word of the driver (of a cluster, or a "
                    "special register)",
                )
            bank = kernel.constant_banks.get(operand.bank, b"")
            if operand.bank and operand.offset >= len(bank):
                refuse(instruction, f"it reads beyond the {len(bank):,} bytes of its constant bank")


def _addresses(kernel: Kernel) -> dict[str, int]:
    """Addresses of all symbols that code and tables may name.

    Functions of the system ("vprintf") have a number for an address, 0 where they are not known.
    """
    targets = [x.target for x in kernel.relocations]
    targets += [x.target for x in kernel.code_relocations]
    variables = zip(kernel.variables, _place_variables(kernel), strict=True)
    return {
        **{target: SYSTEM_FUNCTIONS.get(target, 0) for target in targets},
        **{x.name: CONSTANT_WINDOW + x.offset for x in kernel.constants},
        **{variable.name: buffer.address for variable, buffer in variables},
    }


def _reads_parameters(kernel: Kernel) -> bool:
    """True if the code asks for the address of its parameters."""
    window = bank_layout(kernel.capability).get("parameter_window")
    return any(
        isinstance(operand, Constant) and not operand.bank and operand.offset == window
        for instruction in kernel.instructions
        for operand in instruction.operands
    )


def _place_variables(kernel: Kernel) -> list[Buffer]:
    """The `__device__` variables, empty, in the order that they have in every launch."""
    return allocate_variables(
        [(x.name, np.zeros(x.size, dtype=np.uint8), True) for x in kernel.variables]
    )


def addresses_of(kernel: Kernel) -> dict[str, int]:
    """Address of each `__device__` variable, by its symbol."""
    return {buffer.name: buffer.address for buffer in _place_variables(kernel)}


def variables_of(translated: Translated) -> list[tuple[Buffer, bytes]]:
    """The `__device__` variables and strings of a module, with their initial content."""
    initial = translated.linked.variables
    return [(x, initial[x.name]) for x in _place_variables(translated.kernel)]


def _memory_of_module(
    translated: Translated,
    banks: Mapping[int, NDArray[np.uint8]],
    symbols: Mapping[str, bytes],
) -> list[Buffer]:
    """Constant memory as global loads see it, and fresh variables with their initial values.

    Parameters too, where code asks for their address: a tensor map is read where it stands.
    """
    buffers = []
    if _reads_parameters(translated.kernel):
        base = translated.kernel.parameter_base
        parameters = ("the parameters", banks[0][base:], False)
        buffers = allocate([parameters], PARAMETER_WINDOW + base)  # aligned as they are in the bank
    if CONSTANT_BANK in banks:
        content = banks[CONSTANT_BANK]
        buffers += allocate([("constant memory", content, False)], CONSTANT_WINDOW)
    initial = {**translated.linked.variables, **symbols}
    variables = _place_variables(translated.kernel)
    return buffers + [x.sharing(np.frombuffer(initial[x.name], np.uint8)) for x in variables]


def _memory_of_system(setup: LaunchSetup, *, takes_heap: bool) -> list[Buffer]:
    """The workspace of a cooperative launch, and the heap of malloc."""
    found = list[Buffer]()
    if setup.cooperative:
        space = np.zeros(WORKSPACE_BYTES, dtype=np.uint8)
        space[:4] = np.uint32(WORKSPACE_BYTES).reshape(1).view(np.uint8)
        found += [x.sharing(space) for x in allocate([(WORKSPACE, space, True)], WORKSPACE_WINDOW)]
    if takes_heap:
        space = sparse_zeros((setup.heap_bytes,), np.uint8)
        found += [replace(x, is_heap=True) for x in allocate([(HEAP, space, True)], HEAP_WINDOW)]
    return found


def _uses_stack(kernel: Kernel) -> bool:
    accesses = ("LDL", "STL")
    return kernel.resources.local_bytes > 0 or any(
        i.opcode in accesses for i in kernel.instructions
    )


def _stack_bytes(kernel: Kernel) -> int:
    """Bytes of local memory per thread, aligned: the stack starts at their end."""
    calls = any(i.opcode == "CALL" for i in kernel.instructions)
    wanted = kernel.resources.local_bytes + (STACK_BYTES if calls else 0)
    return -(-wanted // LOCAL_ALIGNMENT) * LOCAL_ALIGNMENT
