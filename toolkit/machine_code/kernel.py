"""One kernel of a cubin, parsed once: what the ELF file says of it, and its instructions.

How code refers to what is not in it, as the compiler does it for sm_75 to sm_120:
- Launch parameters stand in constant bank 0, from an offset that .nv.info says.
- `__constant__` variables are bank 3, at offsets that are fixed. Their generic addresses count
  from a base that the driver puts into bank 0.
- Variables in global memory (`__device__`, strings, tables of classes) are in .nv.global, which
  is zero, and .nv.global.init. Code loads their addresses from bank 4; relocations (R_CUDA_64)
  of .nv.constant4 say whose, and those (R_CUDA_G64) of other banks and of .nv.global.init where
  initial values hold addresses.
- Functions of the system, such as vprintf and malloc, are targets of relocations of bank 4 too.
- Pointers to functions are offsets into bank 2, which holds the addresses in the kernel's own
  code; so are the tables of a switch. Every kernel has its own copy of the functions it calls.
- Debuggable (-G) and linked code has relocations in its instructions instead: halves of addresses
  in MOV, and calls to functions of other sections. Those that a kernel may reach are read as if
  they stood behind the kernel in its own section. Relocatable code (-rdc), whose symbols and
  sections are of other types, is linked first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.errors import (
    InputError,
    ToolkitError,
    UnsupportedError,
    first_line,
)
from analysis.occupancy import Resources
from toolkit.machine_code.attributes import (
    KernelParameter,
    bounds_of,
    launch_parameters,
    resources_of,
    warp_operations_of,
)
from toolkit.machine_code.code_sections import (
    CONSTANT_BANK,
    check_callees,
    code_sections,
    functions_of,
    lines_of,
    padded,
)
from toolkit.machine_code.demangled import parameters_of
from toolkit.machine_code.elf import OBJECT, CubinFile, Symbol, cubin_file
from toolkit.machine_code.include_paths import DEVICE_LAUNCH
from toolkit.machine_code.kernel_names import plain_name, symbol_of
from toolkit.machine_code.left_out import LeftOut
from toolkit.machine_code.signature import Declared, DeclaredVariable, declared_variables

if TYPE_CHECKING:
    from toolkit.machine_code.instruction import Instruction, SourceLine

# Types of relocations: an address, and a generic one, of 32 or 64 bits; the lower and the upper
# half of one as the immediate of an instruction.
_ADDRESS_BYTES = {1: 4, 2: 8, 3: 4, 4: 8}  # R_CUDA_32, R_CUDA_64, R_CUDA_G32, R_CUDA_G64
_ADDRESS_SHIFTS = {0x38: 0, 0x39: 32}  # R_CUDA_ABS32_LO_32, R_CUDA_ABS32_HI_32
_CALLS = (0x3A, 0x4B)  # of a function in another section, before sm_90 and since
_IMMEDIATE_OFFSET = 4  # every opcode has its 32-bit immediate in the second word
_DEVICE_LAUNCH = ("__cudaCDP", "cudaCDP", "cudaLaunchDevice", "cudaGetParameterBuffer")
_GLOBAL = (".nv.global", ".nv.global.init")
POINTER_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A variable in global memory; bytes beyond its `content` are zero at first."""

    name: str
    size: int
    content: bytes
    is_managed: bool = False


@dataclass(frozen=True, kw_only=True)
class ConstantVariable:
    """A `__constant__` variable: where its bytes are in a constant bank."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Relocation:
    """Address to write into data once everything has its place in memory.

    The value is the address of `target` plus `addend`.
    """

    place: int | str  # number of a constant bank (4), or name of a variable ("table")
    offset: int  # in bytes from the start of the place
    size: int  # of the address, in bytes
    target: str  # a variable, a constant variable, or a system function such as "vprintf"
    addend: int


@dataclass(frozen=True, kw_only=True)
class CodeRelocation:
    """Half an address in an instruction: that of `target`, plus `addend`, shifted right.

    The target is a variable, or a function that the kernel may reach. In a CALL it is a function.
    """

    address: int
    shift: int  # 0 or 32
    target: str
    addend: int


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One kernel of a cubin, with everything that the simulator and a driver need of it."""

    image: bytes  #: the cubin
    name: str  #: name as the caller wrote it ("gemm<128, 64>")
    symbol: str  #: name in the cubin
    resources: Resources
    code: bytes  #: 16 bytes per instruction, including the functions that the kernel calls
    #: offset of each function in `code`, in bytes; the kernel is the first
    functions: Mapping[str, int] = field(hash=False)
    #: source line of each instruction by its address, except in the compiler's own functions (slow
    #: paths of division, square root ...)
    lines: Mapping[int, SourceLine] = field(hash=False)
    parameters: tuple[KernelParameter, ...]
    parameter_base: int  #: offset of the parameters in constant bank 0
    constant_banks: Mapping[int, bytes] = field(hash=False)
    constants: tuple[ConstantVariable, ...] = ()
    variables: tuple[Variable, ...] = ()
    relocations: tuple[Relocation, ...] = ()
    code_relocations: tuple[CodeRelocation, ...] = ()
    max_threads: int | None  #: of `__launch_bounds__`
    required_block: tuple[int, ...] | None  #: of `__block_size__`
    cluster: tuple[int, int, int]  #: of `__cluster_dims__`
    #: address of each instruction that lanes of a warp execute together, with the register of their
    #: mask (None: a constant); a __syncwarp() of lanes known to be together is a NOP there
    warp_operations: Mapping[int, int | None] = field(hash=False)
    unsupported: str | None = None  #: reason why the simulator does not support the kernel's data
    declared: tuple[Declared, ...] | None = None  #: parameters as the source declares them
    target: str | None = None  #: requested architecture, if the kernel was compiled here
    file: str | None = None  #: name of the source, if it is known
    #: text of the source, if the kernel was compiled here or its line table leads to the text
    source: str | None = field(default=None, repr=False, compare=False)
    source_path: Path | None = None  #: file of this text, if the line table leads to it
    origin: Path | None = None  #: file of the machine code, if it was compiled elsewhere
    is_foreign: bool = False  #: it was compiled elsewhere: an edit of the source changes nothing
    notes: tuple[str, ...] = ()  #: which code of a file was chosen, and what its source lacks
    left_out: tuple[LeftOut, ...] = ()  #: host code of the source, which was not compiled

    @classmethod
    def from_image(cls, image: bytes, name: str | None = None) -> Kernel:
        """The kernel `name` (its symbol, or its plain name) of machine code compiled elsewhere.

        `name` may be left out where there is just one. Raises InputError for bytes that are no
        cubin, or where the kernel is not in it.
        """
        try:
            file = cubin_file(image)
            symbol = symbol_of(name, file.kernels, "the cubin")
            return _read(file, symbol, _shown(symbol, name))
        except ToolkitError:
            raise
        except Exception as error:  # whatever a damaged file makes its reader stumble over
            reason = first_line(error) if isinstance(error, ValueError) else "it is damaged"
            raise InputError(f"the machine code is not a cubin: {reason}") from error

    @property
    def architecture(self) -> str:
        return self.resources.architecture

    @property
    def limits_of(self) -> str:
        """Architecture whose limits apply: the compiler may not know it."""
        return self.target or self.architecture

    @property
    def compiler(self) -> str:
        return self.resources.compiler

    @property
    def capability(self) -> int:
        """90 for sm_90."""
        return int(self.architecture.removeprefix("sm_").rstrip("af"))

    @cached_property
    def declared_variables(self) -> Mapping[str, DeclaredVariable]:
        """Variables in global and constant memory that the source declares, by plain name."""
        return declared_variables(self.source or "")

    @property
    def with_inner_lines(self) -> Kernel:
        """Copy in which inlined functions count for their own lines, not for those of calls."""
        lines = {address: replace(line, caller=None) for address, line in self.lines.items()}
        return replace(self, lines=lines)

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """Instructions in order of address, without a gap.

        Targets of jumps and calls are addresses; those of BRX, CALL and RET with a register are
        to be added to it. Raises UnsupportedError for code that the simulator cannot take,
        UnavailableError without nvdisasm, and ToolkitError or InputError for damaged code.
        """
        from toolkit.machine_code.program import decoded

        return decoded(self)


def _shown(symbol: str, name: str | None) -> str:
    """The name of a kernel in messages: that of its symbol, where it is read whole."""
    plain = plain_name(symbol)
    return name if name is not None and "<...>" in plain else plain


def read_kernel(image: bytes, symbol: str, name: str | None = None) -> Kernel:
    """The kernel with this symbol. Raises KeyError where the cubin has no such kernel."""
    return _read(cubin_file(image), symbol, name or plain_name(symbol))


def _read(file: CubinFile, symbol: str, name: str) -> Kernel:
    sections, attributes = code_sections(file, symbol), file.attributes(f".nv.info.{symbol}")
    code = b"".join(padded(file.content(section)) for section in sections)
    base, parameters = launch_parameters(attributes)
    bounds = bounds_of(attributes)
    kernel = Kernel(
        image=file.image,
        name=name,
        symbol=symbol,
        resources=resources_of(file, symbol, calls=len(sections) > 1),
        code=code,
        functions={
            name: start + offset
            for section, start in sections.items()
            for name, offset in functions_of(file, section).items()
        },
        lines={
            start + address: line
            for section, start in sections.items()
            for address, line in lines_of(file, section).items()
        },
        parameters=parameters,
        parameter_base=base,
        constant_banks={},
        max_threads=bounds.max_threads,
        required_block=bounds.required_block,
        cluster=bounds.cluster,
        warp_operations=warp_operations_of(dict(attributes)),
        declared=_declared(symbol, parameters),
    )
    try:
        return _with_data(kernel, file)
    except UnsupportedError as error:
        return replace(kernel, unsupported=str(error))


def _with_data(kernel: Kernel, file: CubinFile) -> Kernel:
    """Kernel with its constants and variables, and the code and data that refer to them."""
    if any(x.name.startswith(_DEVICE_LAUNCH) for x in file.symbols):
        raise UnsupportedError(f"{kernel.symbol}: {DEVICE_LAUNCH}")
    if file.is_relocatable:
        raise UnsupportedError(
            f"{kernel.symbol} is relocatable device code: compile it without -rdc"
        )
    banks, variables = _constant_banks(file, kernel.symbol), _variables(file)
    return replace(
        kernel,
        constant_banks={number: file.content(name) for name, number in banks.items()},
        constants=_constants(file, banks),
        variables=tuple(
            Variable(
                name=x.name,
                size=x.size,
                content=content[x.value : x.value + x.size],
                is_managed=x.is_managed,
            )
            for section, kept in variables.items()
            if kept and (content := file.content(section)) is not None
            for x in kept
        ),
        relocations=tuple(_relocations(file, banks, variables)),
        code_relocations=tuple(
            _code_relocations(file, code_sections(file, kernel.symbol), variables)
        ),
    )


def _declared(symbol: str, parameters: Sequence[KernelParameter]) -> tuple[Declared, ...] | None:
    """The parameters by the types in a symbol, where it has as many of the right sizes."""
    found = parameters_of(symbol)
    if found is None or len(found) != len(parameters):
        return None
    for declared, parameter in zip(found, parameters, strict=True):
        size = POINTER_BYTES if declared.pointer else declared.size
        if size is not None and size != parameter.size:
            return None
    return found


def _constant_banks(file: CubinFile, symbol: str) -> dict[str, int]:
    """The constant banks that a kernel sees, by the names of their sections."""
    matches = filter(None, map(CONSTANT_BANK.fullmatch, file.names))
    return {m[0]: int(m[1]) for m in matches if m[2] in (None, symbol)}


def _constants(file: CubinFile, banks: Collection[str]) -> tuple[ConstantVariable, ...]:
    return tuple(
        ConstantVariable(name=x.name, offset=x.value, size=x.size)
        for x in file.symbols
        if x.kind == OBJECT and x.section in banks
    )


def _variables(file: CubinFile) -> dict[str, list[Symbol]]:
    """The variables of each section in global memory, in order of address.

    A symbol within another one, such as a second name for it, is no variable of its own.
    """
    found: dict[str, list[Symbol]] = {name: [] for name in _GLOBAL}
    candidates = [x for x in file.symbols if x.kind == OBJECT and x.section in _GLOBAL and x.size]
    for symbol in sorted(candidates, key=lambda x: (x.value, -x.size)):
        kept, (_, size) = found[symbol.section], file.place(symbol.section)
        if symbol.value + symbol.size > size:
            raise ValueError(f"{symbol.name} has more bytes than its section")
        if not kept or symbol.value >= kept[-1].value + kept[-1].size:
            kept.append(symbol)
    return found


def _relocations(
    file: CubinFile, banks: Mapping[str, int], variables: Mapping[str, Sequence[Symbol]]
) -> Iterator[Relocation]:
    for section in (*banks, *_GLOBAL):
        content = file.content(section) if file.has(section) else b""
        for at, kind, symbol, explicit in file.relocations(section):
            if kind not in _ADDRESS_BYTES:
                raise UnsupportedError(
                    f"{section} at {at:#x}: the simulator does not know relocations of type "
                    f"{kind:#x} (of {symbol.name!r})"
                )
            size = _ADDRESS_BYTES[kind]
            if explicit is None:
                explicit = int.from_bytes(content[at : at + size], "little")  # noqa: PLW2901
            place, offset = (
                (banks[section], at) if section in banks else _located(variables[section], at)
            )
            target, addend = _target(symbol, explicit, variables)
            yield Relocation(place=place, offset=offset, size=size, target=target, addend=addend)


def _code_relocations(
    file: CubinFile, sections: Mapping[str, int], variables: Mapping[str, Sequence[Symbol]]
) -> Iterator[CodeRelocation]:
    check_callees(file, [*sections][1:])
    for text, start in sections.items():
        code = file.content(text)
        for address, kind, symbol, addend in file.relocations(text):
            at = address + _IMMEDIATE_OFFSET
            if kind in _CALLS and symbol.section in sections:
                yield CodeRelocation(address=start + address, shift=0, target=symbol.name, addend=0)
                continue
            known = kind in _ADDRESS_SHIFTS and symbol.section in (*sections, *variables)
            if not known or (addend is None and any(code[at : at + 4])):
                raise UnsupportedError(
                    f"{text} at {address:#06x}: the simulator does not know relocations of type "
                    f"{kind:#x} (of {symbol.name!r}): compile the kernel without -G"
                )
            target, rest = _target(symbol, addend or 0, variables)
            yield CodeRelocation(
                address=start + address, shift=_ADDRESS_SHIFTS[kind], target=target, addend=rest
            )


def _target(
    symbol: Symbol, addend: int, variables: Mapping[str, Sequence[Symbol]]
) -> tuple[str, int]:
    """Name that a symbol and an addend refer to, and the distance from it."""
    if symbol.section not in variables:
        return symbol.name, addend
    if symbol.kind == OBJECT:
        name, inside = _located(variables[symbol.section], symbol.value)
        return name, inside + addend
    return _located(variables[symbol.section], symbol.value + addend)


def _located(variables: Sequence[Symbol], offset: int) -> tuple[str, int]:
    """The variable at an offset of a section, and where in it that is."""
    before = bisect_right(variables, offset, key=lambda variable: variable.value)
    for variable in variables[max(0, before - 1) : before]:
        if offset < variable.value + variable.size:
            return variable.name, offset - variable.value
    raise UnsupportedError(f"no variable is at {offset:#x} of its section of global memory")
