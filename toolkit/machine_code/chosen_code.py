"""The machine code of one kernel, chosen by architecture of all that a file holds.

The order is that of the driver: machine code for the very architecture, then for an older minor one
of the same major one, then PTX, which is compiled here (CUDA C++ Programming Guide, "Application
Compatibility"). Relocatable machine code is linked with that of the other sources in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from analysis.errors import CompileError, InputError, UnknownNameError, UnsupportedError, shortened
from toolkit.machine_code.architectures import DEFAULT_ARCHITECTURE
from toolkit.machine_code.containers import ContainerEntry, EntryKind, Form, entries_of, form_of
from toolkit.machine_code.device_linker import linked
from toolkit.machine_code.kernel_names import plain_name, symbol_of

MOST_LISTED, MOST_NAMED = 20, 3  # kernels in a message
OLDEST = 75  # capability of the oldest machine code that nvdisasm of CUDA 13 reads
_ARCHITECTURE = re.compile(r"sm_(\d+)([af]?)", re.ASCII)
_UNDEFINED = re.compile(r"Undefined reference to '(?P<name>[^']+)'")


@dataclass(frozen=True, kw_only=True)
class ChosenCode:
    """A cubin with the wanted kernel, and what is to be said of the choice.

    `compiler` made it here, None where it was in the file.
    """

    image: bytes
    symbol: str
    compiler: str | None = None
    notes: tuple[str, ...] = ()


def chosen_code(content: bytes, kernel: str | None, wanted: str | None) -> ChosenCode:
    """The machine code of `kernel` in a file with this content, for the architecture `wanted`.

    Without `wanted` it is that of the default device, if there is code for it, or else the newest
    that is there. Without `kernel` it is the only one. Raises InputError where the file holds no
    such kernel, or nothing for this architecture; UnavailableError and CompileError as `linked`.
    """
    entries, form = entries_of(content), form_of(content)
    wanted = None if form == Form.CUBIN else wanted  # its architecture is what it is
    _check_some(entries)
    usable = _usable(entries, wanted)
    with_kernels = list(_first_of_groups(usable))
    symbols = list(dict.fromkeys(symbol for entry in with_kernels for symbol in entry.kernels))
    symbol = _symbol(kernel, symbols, "the cubin" if form == Form.CUBIN else "it")
    first = next(entry for entry in with_kernels if symbol in entry.kernels)
    target = _target(first, wanted)
    if first.kind == EntryKind.CUBIN and not first.is_relocatable:
        notes = _notes(first, entries, wanted)
        return ChosenCode(image=first.content, symbol=symbol, notes=notes)
    inputs = [first]
    if first.is_relocatable or first.is_part:
        inputs += _parts(entries, first, target)
    try:
        image, compiler = linked([_input(one, n) for n, one in enumerate(inputs)], target)
    except CompileError as error:
        raise _explained(error, first) from error
    made = (
        f"compiled for {target} from {_named(first)}" if first.kind == EntryKind.PTX else "linked"
    )
    note = f"{made} by {compiler}: the driver of a GPU may make other machine code"
    return ChosenCode(image=image, symbol=symbol, compiler=compiler, notes=(note,))


def _check_some(entries: Sequence[ContainerEntry]) -> None:
    if not entries:
        raise InputError(
            "it holds no device code: give the file that nvcc compiled the kernel into, such as an "
            "object file, or compile the kernel with `nvcc -cubin -lineinfo`"
        )
    if all(entry.kind == EntryKind.LTO for entry in entries):
        raise InputError(
            "it holds LTO IR only (nvcc -dlto): compile it without -dlto, or give the program"
        )


def _usable(entries: Sequence[ContainerEntry], wanted: str | None) -> list[ContainerEntry]:
    """Entries for an architecture, the best first. Raises InputError if there are none."""
    target = wanted or DEFAULT_ARCHITECTURE
    if _parsed(target)[0] < OLDEST:
        raise InputError(
            f"machine code for {target} cannot be read, the oldest is sm_{OLDEST}: name a newer "
            "device, such as --device t4"
        )
    usable = [entry for entry in entries if _runs(entry, target)]
    if wanted is None:  # else any, which decides the device
        usable += [entry for entry in entries if entry not in usable and _is_known(entry)]
    usable = [entry for entry in usable if entry.kind != EntryKind.LTO]
    if usable:
        return sorted(usable, key=lambda entry: _rank(entry, target))
    there = ", ".join(_offers(entries))
    if not any(map(_is_known, entries)):
        raise UnsupportedError(
            f"its machine code is for {there}, and the oldest that can be read is sm_{OLDEST}: "
            f"compile it with -arch=sm_{OLDEST} or newer"
        )
    own = [entry.architecture for entry in entries if entry.kind == EntryKind.CUBIN]
    other = f", or name {own[-1]} with --arch" if own else ""
    raise InputError(
        f"it holds code for {there}, which does not run on {target}: compile it with "
        f"-arch={target}{other}"
    )


def _first_of_groups(ranked: Sequence[ContainerEntry]) -> Iterator[ContainerEntry]:
    """The first entry with kernels of each fatbin, whose entries are of one source."""
    done = set()
    for entry in ranked:
        if entry.group not in done and entry.kernels:
            done.add(entry.group)
            yield entry


def _symbol(kernel: str | None, symbols: Sequence[str], where: str) -> str:
    """As `symbol_of`, but a library with hundreds of kernels does not list them all."""
    if len(symbols) <= MOST_LISTED:
        return symbol_of(kernel, symbols, where)
    names = list(dict.fromkeys(map(plain_name, symbols)))
    some = ", ".join(get_close_matches(kernel or "", names, MOST_NAMED) or names[:MOST_NAMED])
    if kernel is None:
        raise InputError(f"{where} holds {len(symbols)} kernels: name one with -k, such as {some}")
    try:
        return symbol_of(kernel, symbols, where)
    except UnknownNameError as error:
        fitting = [symbol for symbol in symbols if plain_name(symbol) == kernel]
        some = ", ".join(fitting[:MOST_NAMED]) or some
        raise InputError(
            f"unknown kernel {shortened(kernel)!r}: {where} holds {len(symbols)}, such as {some}"
        ) from error


def _is_known(entry: ContainerEntry) -> bool:
    return entry.kind == EntryKind.PTX or entry.capability >= OLDEST


def _runs(entry: ContainerEntry, target: str) -> bool:
    """True if a device of the architecture `target` runs the entry, PTX once it is compiled."""
    capability, _ = _parsed(target)
    if not _is_known(entry) or entry.capability > capability:
        return False
    if entry.suffix == "a":
        return entry.capability == capability
    same = entry.capability // 10 == capability // 10
    return same or (entry.kind == EntryKind.PTX and not entry.suffix)


def _parsed(target: str) -> tuple[int, str]:
    match = _ARCHITECTURE.fullmatch(target)
    if match is None:
        raise InputError(f"{target!r} is no architecture: give one such as {DEFAULT_ARCHITECTURE}")
    return int(match[1]), match[2]


def _rank(entry: ContainerEntry, target: str) -> tuple[object, ...]:
    """Sort key: machine code, what runs on the target, linked, of the newest architecture."""
    return (
        entry.kind != EntryKind.CUBIN,
        not _runs(entry, target),
        entry.is_relocatable,
        -entry.capability,
        not entry.suffix,
    )


def _target(entry: ContainerEntry, wanted: str | None) -> str:
    """The architecture to compile or link for."""
    if entry.kind == EntryKind.CUBIN or entry.suffix == "a":
        return entry.architecture
    target = wanted or DEFAULT_ARCHITECTURE
    return target if _runs(entry, target) else entry.architecture


def _parts(
    entries: Sequence[ContainerEntry], first: ContainerEntry, target: str
) -> list[ContainerEntry]:
    """Return the entries of the file's other relocatable sources for the target, one each."""
    found: dict[int, ContainerEntry] = {}
    for entry in sorted(entries, key=lambda one: _rank(one, target)):
        is_part = entry.is_relocatable or (entry.kind == EntryKind.PTX and entry.is_part)
        if is_part and _runs(entry, target) and entry.group != first.group:
            found.setdefault(entry.group, entry)
    return list(found.values())


def _input(entry: ContainerEntry, number: int) -> tuple[str, str, bytes]:
    return entry.kind.name, f"source {number + 1}", entry.content


def _explained(error: CompileError, entry: ContainerEntry) -> CompileError:
    if undefined := _UNDEFINED.search(str(error)):
        return CompileError(
            f"it calls or reads {plain_name(undefined['name'])}, which it does not define (nvcc "
            "-rdc): give the linked program or library, or the static library with all of its "
            "parts",
            log=error.log,
        )
    newer = ""
    if "Unsupported .version" in str(error):
        newer = ": a newer nvJitLink may read it: pip install -U nvidia-nvjitlink"
    what = "PTX" if entry.kind == EntryKind.PTX else "relocatable machine code"
    return CompileError(f"its {what}: {error}{newer}", log=error.log)


def _named(entry: ContainerEntry) -> str:
    if entry.kind == EntryKind.CUBIN:
        return entry.architecture
    return f"{entry.kind} for {entry.architecture.replace('sm', 'compute')}"


def _offers(entries: Iterable[ContainerEntry]) -> list[str]:
    """Name the contents of a file, each once."""
    return list(dict.fromkeys(map(_named, entries)))


def _notes(
    chosen: ContainerEntry, entries: Sequence[ContainerEntry], wanted: str | None
) -> tuple[str, ...]:
    """Say what was chosen, where there was a choice."""
    *others, last = _offers(entries)
    if not others:
        return ()
    more = "" if wanted else ": --device chooses another"
    there = f"{', '.join(others)} and {last}"
    return (f"the machine code for {_named(chosen)} was chosen of {there}{more}",)
