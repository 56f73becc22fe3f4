"""`__constant__` and `__device__` variables of a launch: what they hold, and who reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.errors import InputError, UnknownNameError
from reports import text
from toolkit.launch.setup import Content
from toolkit.machine_code.instruction import Constant, Instruction
from toolkit.machine_code.kernel import ConstantVariable, Kernel, Variable
from toolkit.machine_code.signature import DeclaredVariable
from toolkit.machine_code.variable_names import is_of_user, variable_name
from toolkit.sass.core.binding import WAS_READ
from toolkit.sass.isa.memory import width
from toolkit.sass.space import CONSTANT_WINDOW

CONSTANT_BANK = 3  # of `__constant__` variables
WORD = 4


@dataclass(frozen=True, kw_only=True)
class MemoryUse:
    """Accesses of executed code to the memory of a module, over all runs of a bound launch.

    `constants`: 1 for each word of the bank that was read at an address from a register. `buffers`:
    WAS_READ and WAS_WRITTEN of each buffer of the launch by its address, once it ran.
    """

    constants: NDArray[np.uint8]
    buffers: dict[int, int] = field(default_factory=dict)

    def note(self, addresses: Iterable[int], touched: NDArray[np.uint32]) -> None:
        for address, how in zip(addresses, touched.tolist(), strict=False):
            self.buffers[address] = self.buffers.get(address, 0) | how


def symbols_of(kernel: Kernel, given: Content) -> dict[str, bytes]:
    """Bytes of the variables that a caller sets, by their symbols in the cubin.

    Raises UnknownNameError for a name that is none, and InputError for content of another size or
    type than the variable's.
    """
    there = _users(kernel)
    found = {}
    for name, content in given.items():
        variable = _named(kernel, name, there)
        _check(name, variable, content, kernel.declared_variables.get(_last(variable.name)))
        found[variable.name] = np.ascontiguousarray(content).tobytes()
    return found


def _check(
    name: str,
    variable: ConstantVariable | Variable,
    content: NDArray[np.generic] | np.generic,
    declared: DeclaredVariable | None,
) -> None:
    """Raise InputError for content that has not the size or the type of a variable."""
    what = f"`{name}`" + (f" ({declared.text})" if declared else "")
    given = f"{content.dtype.name}[{','.join(map(str, content.shape))}]".removesuffix("[]")
    wanted = _wanted(variable, declared)
    if content.nbytes != variable.size:
        raise InputError(
            f"{what} has {text.many(variable.size, 'byte')}, and {given} has {content.nbytes:,}: "
            f"give {wanted}"
        )
    dtype = np.dtype(declared.dtype) if declared and declared.dtype else None
    kinds = {content.dtype.kind, dtype.kind if dtype else "V"}
    if dtype is None or content.dtype.kind == "V" or content.dtype.itemsize == 1:
        return
    if content.dtype.itemsize != dtype.itemsize or len(kinds & set("fc")) == 1 < len(kinds):
        raise InputError(f"{what} is of type {dtype.name}, and {given} was given: give {wanted}")


def _wanted(variable: ConstantVariable | Variable, declared: DeclaredVariable | None) -> str:
    """'f32[25]', 'i32', or bytes where the type is not known."""
    if declared is None or declared.dtype is None:
        return f"u8[{variable.size}]"
    dtype = np.dtype(declared.dtype)
    name = f"{dtype.kind}{8 * dtype.itemsize}"
    return f"{name}[{variable.size // dtype.itemsize}]" if declared.is_array else name


def _users(kernel: Kernel) -> list[ConstantVariable | Variable]:
    """Variables that the kernel's source declares, `__constant__` ones first."""
    everything: list[ConstantVariable | Variable] = [*kernel.constants, *kernel.variables]
    return [x for x in everything if x.size and is_of_user(x.name)]


def _last(symbol: str) -> str:
    return variable_name(symbol).rpartition("::")[2]


def _named(
    kernel: Kernel, name: str, there: Sequence[ConstantVariable | Variable]
) -> ConstantVariable | Variable:
    """The variable of a name: a symbol, or one of the source, with namespaces or without."""
    found: list[ConstantVariable | Variable] = []
    ways: tuple[Callable[[str], str], ...] = (str, variable_name, _last)
    for name_of in ways:
        found = [x for x in there if name_of(x.name) == name] or found
        if len(found) == 1:
            return found[0]
    if not there:
        raise InputError(
            f"{kernel.name}: its module has no __constant__ or __device__ variable {name!r}, "
            "nor any other: the compiler may leave out one that no kernel uses"
        )
    names = [variable_name(x.name) if len(found) == 0 else x.name for x in found or there]
    raise UnknownNameError("variable", name, names)


def outputs_of(
    kernel: Kernel, buffers: Mapping[str, NDArray[np.uint8]], given: Content
) -> dict[str, NDArray[np.generic]]:
    """Content of the `__device__` variables after a launch, by their names in the source.

    `buffers` has their bytes by symbol. A type is that of the array that was given, else that of
    the source, else bytes.
    """
    found = {}
    set_by = {_named(kernel, name, _users(kernel)).name: x for name, x in given.items()}
    for variable in kernel.variables:
        if not is_of_user(variable.name) or variable.name not in buffers:
            continue
        found[variable_name(variable.name)] = _typed(
            np.array(buffers[variable.name]),
            set_by.get(variable.name),
            kernel.declared_variables.get(_last(variable.name)),
        )
    return found


def _typed(
    content: NDArray[np.uint8],
    given: NDArray[np.generic] | np.generic | None,
    declared: DeclaredVariable | None,
) -> NDArray[np.generic]:
    if given is not None:
        return content.view(given.dtype).reshape(given.shape)
    dtype = np.dtype((declared.dtype if declared else None) or np.uint8)
    if content.nbytes % dtype.itemsize:
        return content
    values: NDArray[Any] = content.view(dtype)
    is_value = declared is not None and not declared.is_array and values.size == 1
    return values.reshape(()) if is_value else values


def describe_unset(
    kernel: Kernel,
    instructions: Sequence[Instruction],
    executed: NDArray[Any],
    use: MemoryUse | None,
    addresses: Mapping[str, int],
    given: Content,
) -> Iterator[str]:
    """Note on each variable that the kernel read, that was not set and holds zeros at first.

    `executed` is the number of executions of each instruction, `addresses` are those of variables
    in global memory by symbol. A `__device__` variable that the kernel writes too is left out: it
    may be set there.
    """
    assert use is not None, "the launch was bound with it"
    there = _users(kernel)
    known = {_named(kernel, name, there).name for name in given}
    words = use.constants.copy()
    for instruction, count in zip(instructions, executed, strict=True):
        if count:
            for operand in instruction.operands:
                if isinstance(operand, Constant) and operand.bank == CONSTANT_BANK:
                    _mark(words, instruction, operand)
    bank = kernel.constant_banks.get(CONSTANT_BANK, b"")
    if use.buffers.get(CONSTANT_WINDOW):
        words[:] = 1  # a pointer to it: whose, is not known
    for variable in there:
        declared = kernel.declared_variables.get(_last(variable.name))
        if variable.name in known or (declared and declared.is_initialized):
            continue
        if isinstance(variable, ConstantVariable):
            end = variable.offset + variable.size
            is_read = bool(words[variable.offset // WORD : -(-end // WORD)].any())
            content = bank[variable.offset : end]
        else:
            is_read = use.buffers.get(addresses[variable.name]) == WAS_READ
            content = variable.content
        if is_read and not any(content):
            yield _unset(variable, declared)


def _mark(words: NDArray[np.uint8], instruction: Instruction, operand: Constant) -> None:
    if operand.base is not None or operand.bank_register is not None:
        return  # the core notes these
    is_load = instruction.opcode in ("LDC", "ULDC", "LDCU")
    size = width(instruction) if is_load else 2 * WORD if instruction.opcode[0] == "D" else WORD
    words[operand.offset // WORD : -(-(operand.offset + size) // WORD)] = 1


def _unset(variable: ConstantVariable | Variable, declared: DeclaredVariable | None) -> str:
    name, wanted = variable_name(variable.name), _wanted(variable, declared)
    example = f"'{wanted}=FILE.npy'" if "[" in wanted else f"{wanted}=VALUE"
    remedy = f"give --set {name}={example}"
    return f"`{name}` was not set, and the kernel reads it: it holds zeros: {remedy}"
