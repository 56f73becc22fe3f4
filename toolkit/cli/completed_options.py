"""The options of a launch, completed by what host code says, or by one line that asks.

This comes before the compilation, which may need a template argument that host code has.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import numpy as np

from analysis.devices import Device
from analysis.errors import InputError, LaunchError, UnknownNameError, shortened
from reports import text as words
from toolkit.cli.argument_syntax import parse_argument
from toolkit.cli.launch_source import defines_of, machine_code_of, target_of
from toolkit.cli.option_groups import given_words
from toolkit.cli.options import KernelOptions
from toolkit.cli.typed_numbers import TYPES, is_number, is_type, type_name
from toolkit.frontends.script_names import is_script
from toolkit.launch.element_types import type_named
from toolkit.launch.host_code import Extent
from toolkit.launch.proposed import Proposed, Size, extent_text
from toolkit.launch.source_launches import SourceLaunches
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import is_machine_code, read_source
from toolkit.machine_code.signature import Declared, kernel_names, signature, unqualified
from toolkit.rungs.names import is_name
from toolkit.store.watched_files import folders_of

Command = Literal["simulate", "check", "run"]

_BY_HAND = "give --grid, --block and --arg"
_BY_DATA = re.compile(r"\bglobal (read|write) of .* out of bounds|\bmisaligned (global|shared) ")
_BEYOND_SHARED = re.compile(r"\bshared (read|write) of .* out of bounds")
_EXTERN_SHARED = re.compile(r"\bextern\b[^;]*\b__shared__\b")
_BEYOND_ARRAYS = re.compile(r"\bglobal (read|write) of .* out of bounds")
_NAMED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<argument>.+)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class CompletedOptions:
    """Options of a launch that is complete but for the sizes of some arrays.

    `arguments` are the texts of all arguments in order, None for an array whose size is not known;
    `declared` are the parameters. `notes` say what host code told.
    """

    command: Command
    launch: KernelOptions
    given: KernelOptions
    arguments: tuple[str | None, ...]
    declared: tuple[Declared, ...] | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()  #: why its time is not to be trusted


@contextmanager
def told_of_content(options: CompletedOptions, *, saves: bool = False) -> Iterator[None]:
    """Say of an access out of bounds, or of a misaligned one, what to do.

    Host code tells sizes and no content of arrays. A launch whose results are saved cannot go on.
    """
    try:
        yield
    except LaunchError as error:
        said = str(error)
        remedies = []
        if _BEYOND_SHARED.search(said) and _takes_dynamic_shared(options.launch):
            given = options.launch.shared or 0
            remedies.append(
                "if it is in the extern __shared__ array, give that its bytes (--shared BYTES, the "
                f"third launch parameter: here {given:,})"
            )
        if options.notes and _BY_DATA.search(said):
            remedies.append(
                "if its place depends on data, give them (-a NAME=FILE.npy): arrays hold "
                "random numbers"
            )
        if not saves and _BEYOND_ARRAYS.search(said) and "a null pointer" not in said:
            remedies.append("for a time all the same, add --allow-out-of-bounds")
        if not remedies:
            raise
        told = LaunchError(f"{error}: {'; '.join(remedies)}")
        told.printed = error.printed
        raise told from error


def _takes_dynamic_shared(launch: KernelOptions) -> bool:
    """True if the source declares an array of dynamic shared memory."""
    if is_name(launch.source) or is_script(launch.source) or is_machine_code(launch.source):
        return False
    return bool(_EXTERN_SHARED.search(read_source(Path(launch.source))[0]))


def completed(
    launch: KernelOptions, command: Command, here: Device | None = None
) -> CompletedOptions:
    """The launch that the options mean, on the GPU `here` unless they name a device.

    Raises InputError for a kernel that is not there, and for what nobody says: it names the
    parameters. `check` guesses no sizes.
    """
    if is_name(launch.source):
        _check_rung(launch.source)
        if launch.launch_line is not None:
            raise InputError(
                f"--launch: {launch.source} is a rung, which has its own launch: leave it out"
            )
        return _as_given(launch, command)
    if is_script(launch.source):
        if launch.launch_line is not None:
            raise InputError(
                f"--launch: {launch.source} is Python, without host code in C++: {_BY_HAND}"
            )
        return _as_given(launch, command)
    if is_machine_code(launch.source):
        return _of_machine_code(launch, command)
    source = Path(launch.source)
    text, name = read_source(source)
    if _is_complete(launch, text):
        return _as_given(launch, command)
    known = SourceLaunches(
        text,
        name,
        source.parent,
        defines_of(launch),
        folders_of(launch.options or ()),
        _device_of(launch, here),
    )
    kernel = known.chosen(launch.kernel, launch.launch_line)
    declared = known.declared(kernel)
    given = _typed(_given(launch.arguments or (), declared or ()), declared or ())
    proposed = known.proposed(
        kernel,
        given={k: _scalar(text, k, declared or ()) for k, text in given.items()},
        grid=_given_extent("--grid", launch.grid),
        block=_given_extent("--block", launch.block),
        shared_bytes=launch.shared,
        line=launch.launch_line,
    )
    return _filled(launch, command, proposed, given)


def _device_of(launch: KernelOptions, here: Device | None) -> Device | None:
    """The device of the options; None for one that is not known, which the compilation refuses."""
    with suppress(InputError):
        return target_of(launch, here)[1]
    return None


def _check_rung(name: str) -> None:
    """Raise InputError for a name that is neither a rung nor, with its suffix, a file."""
    from kernels.selection import parse_selection  # as in `is_name`

    try:
        parse_selection(name)
    except UnknownNameError as error:
        if (file := Path(f"{name}.cu")).exists():
            raise InputError(f"unknown rung {name!r}: did you mean the file {file}?") from error
        raise InputError(f"{error} (the name of a file needs its suffix: {file})") from error


def _as_given(launch: KernelOptions, command: Command) -> CompletedOptions:
    return CompletedOptions(
        command=command, launch=launch, given=launch, arguments=tuple(launch.arguments or ())
    )


def _is_complete(launch: KernelOptions, text: str) -> bool:
    """True if the options leave nothing open that host code could tell."""
    if launch.grid is None or launch.block is None or launch.launch_line is not None:
        return False
    names = kernel_names(text)
    kernel = launch.kernel
    plain = unqualified(kernel) if kernel else None
    if (plain is None and len(names) != 1) or (plain is not None and plain not in names):
        return False
    if "<" not in (kernel or "") and re.search(r"\btemplate\s*<", text):
        return False
    declared = signature(text, kernel or names[0])
    arguments = launch.arguments or ()
    if declared is None:
        return bool(arguments)
    if any(_name_of(one, declared) for one in arguments):
        return False
    has_open_type = any(  # headers may say what a macro or a typedef stands for
        is_number(text) and one.kind is None for text, one in zip(arguments, declared, strict=False)
    )
    return not has_open_type and len(arguments) >= len(declared)


def _of_machine_code(launch: KernelOptions, command: Command) -> CompletedOptions:
    kernel = machine_code_of(launch)
    assert kernel is not None, "it is machine code"
    if launch.launch_line is not None:
        raise InputError(
            f"--launch: {launch.source} is machine code, without host code: {_BY_HAND}"
        )
    declared = kernel.declared
    if declared is None:
        if launch.grid is None or launch.block is None:
            raise InputError(f"{launch.source}: give the launch of {kernel.name}: -g ? -b ?")
        return _as_given(launch, command)
    given = _given(launch.arguments or (), declared)
    if len(given) > len(declared):
        return _as_given(launch, command)
    proposed = Proposed(
        kernel=_selected(launch, kernel),
        declared=declared,
        grid=_given_extent("--grid", launch.grid),
        block=_given_extent("--block", launch.block),
        shared_bytes=launch.shared or 0,
        arguments={},
        missing=tuple(k for k in range(len(declared)) if k not in given),
        implied=frozenset(),
        launch=None,
    )
    return _filled(launch, command, proposed, given)


def _selected(launch: KernelOptions, kernel: Kernel) -> str | None:
    """The name that means the kernel alone; the one that was given if several have it."""
    try:
        found = machine_code_of(replace(launch, kernel=kernel.name))
    except UnknownNameError:
        return launch.kernel
    return kernel.name if found and found.symbol == kernel.symbol else launch.kernel


# Arguments that are given.


def _name_of(text: str, declared: Sequence[Declared]) -> str | None:
    """The parameter that `NAME=ARGUMENT` names, None of `TYPE=VALUE` and of other arguments.

    Raises UnknownNameError for another name, unless a type has nearly the same.
    """
    match = _NAMED.fullmatch(text)
    names = [one.name for one in declared if one.name is not None]
    if match is None or is_type(match["name"]) or not names:
        return None
    if (name := match["name"]) not in names:
        if set(get_close_matches(name, [*names, *TYPES])) & TYPES.keys():
            return None  # the mistake is in the type
        raise UnknownNameError("parameter", name, names)
    return name


def _given(texts: Sequence[str], declared: Sequence[Declared]) -> dict[int, str]:
    """The arguments that are given, by position: those without a name are the first ones."""
    names = [one.name for one in declared]
    found, following = dict[int, str](), 0
    for text in texts:
        if (name := _name_of(text, declared)) is not None:
            position, text = names.index(name), text.partition("=")[2]  # noqa: PLW2901
        else:
            position, following = following, following + 1
        if position in found:
            raise InputError(f"--arg {shortened(text)!r}: parameter {position} is given twice")
        found[position] = text
    return found


def _typed(given: Mapping[int, str], declared: Sequence[Declared]) -> dict[int, str]:
    """The same with types before bare numbers, where the parameter alone does not say its type.

    The type is that of the macro or the typedef, which a header may hold.
    """
    found = dict(given)
    for position, text in given.items():
        one = declared[position] if position < len(declared) else None
        if one is None or one.pointer or one.dtype is None or not is_number(text):
            continue
        if one.was_resolved:
            found[position] = f"{type_name(type_named(one.dtype))}={text}"
    return found


def _scalar(text: str, position: int, declared: Sequence[Declared]) -> np.generic | None:
    """The value of an argument, None of an array. Raises InputError for a text that is neither."""
    known = declared[position] if position < len(declared) else None
    name = known.name if known and known.name else position
    found = parse_argument(f"--arg {name}", text, known)
    return found if isinstance(found, np.generic) else None


def _given_extent(option: str, text: str | None) -> Extent | None:
    return None if text is None else extent_of(option, text)


def extent_of(option: str, text: str) -> Extent:
    """The extent that an option means. Raises InputError."""
    parts = re.split(r"[,x×]", text)
    if not (
        len(parts) <= 3
        and all(re.fullmatch(r" *\d{1,10} *", part, re.ASCII) for part in parts)
        and all(map(int, parts))
    ):
        raise InputError(
            f"{option} {shortened(text)!r} is not a size: give one to three numbers of at least 1, "
            f"such as {option} 64 or {option} 8,8"
        )
    x, y, z = (*map(int, parts), 1, 1)[:3]
    return x, y, z


# What is filled in.


def _filled(
    launch: KernelOptions, command: Command, proposed: Proposed, given: Mapping[int, str]
) -> CompletedOptions:
    guessed = [] if command == "check" else proposed.guessable
    if proposed.is_open(guessed):
        raise _open_facts(launch, command, proposed, guessed)
    arguments = [
        one if isinstance(one, str | None) else _written(one) for one in proposed.in_order(given)
    ]
    assert proposed.grid is not None, "it is refused"
    assert proposed.block is not None, "it is refused"
    filled = replace(
        launch,
        kernel=proposed.kernel,
        grid=launch.grid or extent_text(proposed.grid),
        block=launch.block or extent_text(proposed.block),
        shared=proposed.shared_bytes,
        launch_line=None,
        arguments=[one for one in arguments if one is not None],
    )
    return CompletedOptions(
        command=command,
        launch=filled,
        given=launch,
        arguments=tuple(arguments),
        declared=proposed.declared,
        notes=tuple(proposed.notes(Path(launch.source).name)),
        doubts=tuple(proposed.doubts),
    )


def _written(one: np.generic | Size) -> str:
    """An argument as a user writes it: "f32[1024]", "i32=4"."""
    if isinstance(one, Size):
        return str(one)
    if isinstance(one, np.void):
        return "struct:" + ",".join(_written(one[name]) for name in one.dtype.names or ())
    return f"{type_name(one.dtype)}={one.item() if one.dtype.kind in 'iub' else str(one)}"


# What is open.


def _open_facts(
    launch: KernelOptions, command: Command, proposed: Proposed, guessed: Sequence[int]
) -> InputError:
    """The error for facts that nobody says, with the options that give them."""
    facts = proposed.open_facts(guessed)
    proposed.check_pointers(facts)
    of_launch = {"grid": "-g ?", "block": "-b ?", "shared": "--shared ?"}
    options = [
        of_launch[fact]
        if isinstance(fact, str)
        else f"-a {shlex.quote(_to_complete((proposed.declared or ())[fact]))}"
        for fact in facts
    ]
    return InputError(
        f"{Path(launch.source).name}: {proposed.why_open()}: "
        f"give {words.listing(list(facts.values()))}: "
        f"{command_line(launch, command, proposed.kernel)} {' '.join(options)}"
    )


# What stands for a parameter of such a type, to be completed
_BY_VALUE = {
    "cudaTextureObject_t": "tex:f32[?,?]",
    "cudaSurfaceObject_t": "surf:f32[?,?]",
    "(__half2|half2)": "struct:f16=?,f16=?",
    "(__nv_bfloat162|nv_bfloat162)": "struct:bf16=?,bf16=?",
    "(cuComplex|cuFloatComplex|cufftComplex)": "c64=?",
    "(cuDoubleComplex|cufftDoubleComplex)": "c128=?",
    **{f"float{n}": f"struct:{','.join(['f32=?'] * n)}" for n in (2, 3, 4)},
    **{f"double{n}": f"struct:{','.join(['f64=?'] * n)}" for n in (2, 3, 4)},
    **{f"int{n}": f"struct:{','.join(['i32=?'] * n)}" for n in (2, 3, 4)},
    **{f"uint{n}": f"struct:{','.join(['u32=?'] * n)}" for n in (2, 3, 4)},
}


def _to_complete(one: Declared) -> str:
    """`n=?`, `x=f32[?]`; without a name the type alone."""
    prefix = f"{one.name}=" if one.name else ""
    for written, kind in _BY_VALUE.items():
        if not one.pointer and re.search(rf"\b{written}\b", one.text):
            return f"{prefix}{kind}"
    if one.pointer:
        kind = type_name(type_named(one.dtype)) if one.dtype else "u8"
        return f"{prefix}{kind}[?]"
    if one.dtype is None:
        return f"{prefix}struct:?"
    return f"{prefix}?" if prefix else f"{type_name(type_named(one.dtype))}=?"


def open_sizes(options: CompletedOptions, why: str, needed: Sequence[int]) -> InputError:
    """The error for arrays whose sizes or contents the addresses do not tell."""
    declared = options.declared or ()
    command = command_line(options.given, options.command, options.launch.kernel)
    words = [f"-a {shlex.quote(_to_complete(declared[k]))}" for k in needed]
    return InputError(f"{Path(options.launch.source).name}: {why}: {command} {' '.join(words)}")


def command_line(launch: KernelOptions, command: Command, kernel: str | None) -> str:
    """The command as it was given, with the kernel."""
    named = launch if launch.kernel is None else replace(launch, kernel=kernel or launch.kernel)
    return shlex.join(["python", "-m", "toolkit", command, launch.source, *given_words(named)])
