"""The kernels of a source, and the launches that its host code makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from tree_sitter import Node

from analysis.devices import Device
from analysis.errors import InputError, UnknownNameError
from reports import text as words
from toolkit.launch.element_types import type_named
from toolkit.launch.elsewhere import where_kernels_are
from toolkit.launch.host_code import Extent, HostCode, HostLaunch, declared_parameters
from toolkit.launch.host_nodes import text_of, without_comments
from toolkit.launch.host_numbers import Number, UnknownValueError, converted
from toolkit.launch.host_unit import host_unit
from toolkit.launch.proposed import Proposal, Proposed, Size, extent_text
from toolkit.machine_code.kernel_names import TEMPLATES, numbered, same_kernel
from toolkit.machine_code.signature import Declared, kernel_names, signature, unqualified

# Of a scalar and a block that are not known yet, to see what follows from them
ANY_VALUE, ANY_BLOCK = 1024, (256, 1, 1)
_KINDS = {"int": "i", "uint": "u", "float": "f"}


@dataclass(frozen=True, kw_only=True)
class GivenLaunch:
    """Facts that the caller gives of a launch: positions of arguments, and known sizes."""

    positions: set[int]
    grid: Extent | None
    block: Extent | None
    shared_bytes: int | None


@dataclass(frozen=True)
class SourceLaunches:
    """The kernels of a source, and the launches that its host code makes on `device`."""

    text: str
    name: str
    folder: Path | None = None
    defines: Mapping[str, object] = field(default_factory=dict)
    folders: Sequence[Path] = ()
    device: Device | None = None

    @cached_property
    def code(self) -> HostCode:
        """Host code. Raises InputError for what is nested too deeply."""
        try:
            return self._code
        except RecursionError:
            raise self._too_deep from None

    @property
    def _too_deep(self) -> InputError:
        return InputError(
            f"{self.name}: its host code is nested too deeply: give kernel, grid, block and all "
            "arguments"
        )

    @property
    def _code(self) -> HostCode:
        unit = host_unit(self.text, self.name, self.folder, self.defines, self.folders)
        return HostCode(unit, self.device)

    @cached_property
    def launches(self) -> list[HostLaunch]:
        try:
            return self.code.launches()
        except RecursionError:
            raise self._too_deep from None

    @cached_property
    def kernels(self) -> list[str]:
        """Kernels in the order of the source; a template once per instantiation of host code.

        A template that host code does not launch is "gemm<...>".
        """
        unit, found = self.code.unit, list[str]()
        known = [one.name for each in unit.functions.values() for one in each if one.is_kernel]
        for name in dict.fromkeys([*kernel_names(self.text), *known]):
            launched = [one.name for one in self.launches if one.kernel == name and one.name]
            if launched:
                found += dict.fromkeys(launched)
            elif any(one.templates for one in unit.functions.get(name, ())):
                found.append(f"{name}<...>")
            else:
                found.append(name)
        return found

    @property
    def may_hold_more(self) -> bool:
        """True if macros may make kernels whose names are not seen."""
        bodies = [one.body for one in self.code.unit.macros.values() if one is not None]
        return any("##" in body or "__global__" in body for body in bodies)

    def chosen(self, kernel: str | None, line: int | None = None) -> str | None:
        """The name of the kernel that is meant, with its template arguments.

        Without a name it is the one that host code launches in `line`, or the only one that it
        launches.
        None if no kernel is seen. Raises InputError for a number or a name that is not there, and
        without a name for several kernels.
        """
        kernels = self.kernels
        if not kernels and not self.may_hold_more:
            raise InputError(f"{self.name} holds no kernel: {self._elsewhere(kernel)}")
        if kernel is None and line is not None:
            launched = {one.name for one in self.launches if one.line == line}
            if len(launched) == 1 and None not in launched:
                return launched.pop()
        if kernel is None:
            if len(kernels) > 1 and (only := _only_launched(self.launches, kernels)):
                return only
            if len(kernels) > 1:
                raise InputError(
                    f"{self.name} holds {len(kernels)} kernels: say which one, by name or by "
                    f"number (-k 1): {numbered(kernels)}"
                )
            kernel = kernels[0] if kernels else None
            if kernel is not None and kernel.endswith("<...>"):
                raise self._without_instance(kernel, f"{self.name} holds no kernel, only {kernel}")
            return kernel
        if kernel.isdecimal():
            if not 1 <= int(kernel) <= len(kernels):
                raise UnknownNameError("kernel", kernel, kernels)
            kernel = kernels[int(kernel) - 1]
        if kernel.endswith("<...>"):
            raise self._without_instance(kernel, f"{kernel} is never instantiated in {self.name}")
        return self._instantiated(kernel)

    def _elsewhere(self, kernel: str | None) -> str:
        plain = unqualified(kernel) if kernel else ""
        named = plain if plain.isidentifier() else None
        found = self.folder and where_kernels_are(self.text, self.folder, self.folders, named)
        return found or "it has no __global__ function, nor have its headers"

    def _instantiated(self, kernel: str) -> str:
        name = unqualified(kernel)
        if any(same_kernel(kernel, one) for one in self.kernels) or "<" in kernel:
            known = {unqualified(one) for one in self.kernels}
            if known and name not in known and not self.may_hold_more:
                raise UnknownNameError("kernel", kernel, self.kernels)
            return kernel
        same = [one for one in self.kernels if unqualified(one) == name]
        if not same:
            if self.kernels and not self.may_hold_more and not kernel.startswith("_Z"):
                raise UnknownNameError("kernel", kernel, self.kernels)
            return kernel
        if len(same) > 1:
            which = numbered(self.kernels, same)
            raise InputError(
                f"{kernel} is a template: say which one, by name or by number (-k 1): {which}"
            )
        if same[0].endswith("<...>"):
            raise self._without_instance(
                kernel, f"{kernel} is a template that {self.name} never instantiates"
            )
        return same[0] if "<" in same[0] else kernel

    def _without_instance(self, kernel: str, otherwise: str) -> InputError:
        """The error for a template without arguments; `otherwise` is for one without a launch."""
        name = unqualified(kernel.removesuffix("<...>"))
        launches = [one for one in self.launches if one.kernel == name]
        lines = [one.line for one in launches]
        if any(_is_lambda(x.text, self.text) for one in launches for x in one.arguments):
            return InputError(
                f"{self.name}: line {lines[0]} gives {name} a lambda, whose type has no name: "
                "write what it does into the kernel, with plain parameters"
            )
        if lines:
            why = (
                f"{self.name}: line {lines[0]} launches {name} with template arguments that could "
                "not be read"
            )
        else:
            why = f"{otherwise}{self._unread(name)}"
        return InputError(f"{why}: {_template(self.code, kernel)}")

    def _unread(self, kernel: str) -> str:
        """Say which macro, or which launch through a pointer, may launch this kernel."""
        bodies = {name: one.body for name, one in self.code.unit.macros.items() if one is not None}
        launching = [name for name, body in bodies.items() if "<<<" in body]
        found = [x for x in launching if kernel in bodies[x] or "##" in bodies[x]]
        if found:
            return f" (the macro {found[0]} launches kernels, but not in a way that is read)"
        calls = [one for one in self.code.unit.calls if one.name.startswith("cudaLaunch")]
        for call in calls:
            if re.search(rf"\b{re.escape(kernel)}\b", text_of(call.node)):
                return f" by <<< >>> (line {call.line} calls {call.name}, which is not read)"
        known = self.code.unit.functions
        through = [one for one in self.launches if not re.fullmatch(r"\w+", one.kernel)]
        through += [one for one in self.launches if one.kernel not in known]
        if not through:
            return ""
        first = through[0]
        return f" (line {first.line} launches {first.kernel}, a pointer that is not followed)"

    def proposed(
        self,
        kernel: str | None,
        *,
        given: Mapping[int | str, np.generic | None],
        grid: Extent | None = None,
        block: Extent | None = None,
        shared_bytes: int | None = None,
        line: int | None = None,
    ) -> Proposed:
        """The launch of a kernel, by its name with template arguments.

        `given` maps positions and names of parameters to values, None for arrays. `line` is that
        of the launch to take. Raises InputError for a line or a name that is not there.
        """
        declared = self.declared(kernel)
        names = [one.name for one in declared or ()]
        if unknown := [x for x in given if isinstance(x, str) and x not in names]:
            raise UnknownNameError("parameter", str(unknown[0]), [x for x in names if x])
        values = dict(_given_numbers(given, names))
        caller = GivenLaunch(
            positions={names.index(k) if isinstance(k, str) else k for k in given},
            grid=grid,
            block=block,
            shared_bytes=shared_bytes,
        )

        def best_of(launches: Sequence[HostLaunch]) -> Proposed | None:
            found = [_of_launch(one, kernel, declared, caller) for one in launches]
            return min(found, key=_open, default=None)

        name = unqualified(kernel) if kernel else None
        is_given = bool(values) or block is not None
        strictly = self.code.launches(values, name, block=block) if is_given else self.launches
        own = self._of_kernel(strictly, kernel, line)
        best = best_of(own)
        if best is None:
            one = _of_launch(None, kernel, declared, caller)
            is_left_out = name in kernel_names(self.text) and name not in self.code.unit.functions
            unread = self._unread(name) if name is not None else ""
            return replace(
                one,
                is_left_out=is_left_out,
                unread=unread,
                with_pointers=_with_pointers(self.code, declared),
            )
        if best.is_open(best.guessable):
            assuming = self.code.launches(values, name, block=block, assuming=True)
            known = best_of(self._of_kernel(assuming, kernel, line))
            if known is not None and not known.is_open(known.guessable):
                best = known
        assert best.launch is not None, "each has one"
        others = sorted({one.line for one in own} - {best.launch.line})
        best = replace(best, with_pointers=_with_pointers(self.code, declared))
        return _with_implied(best, self.code, values, block, others)

    def _of_kernel(
        self, launches: Sequence[HostLaunch], kernel: str | None, line: int | None
    ) -> list[HostLaunch]:
        """The launches of a kernel, in `line` if given. Raises InputError if none is there."""
        own = [one for one in launches if self._is_of(one, kernel)]
        own = [one for one in own if one.name is not None] or own  # of others it is not known
        at = [one for one in own if line is None or one.line == line]
        if line is not None and not at:
            lines = sorted({one.line for one in own})
            what = f"{kernel or 'a kernel'} is not launched in line {line}"
            there = f"choose one of {', '.join(map(str, lines))}" if lines else "no line does"
            raise InputError(f"{self.name}: {what}: {there}")
        return at

    def _is_of(self, launch: HostLaunch, kernel: str | None) -> bool:
        if kernel is None:
            return True
        if launch.name is not None and "<" in kernel:
            return same_kernel(launch.name, kernel)
        return launch.kernel == unqualified(kernel)

    def declared(self, kernel: str | None) -> tuple[Declared, ...] | None:
        """The parameters, with plain types where a launch or the name tells them."""
        if kernel is None:
            return None
        launches = [one for one in self.launches if self._is_of(one, kernel)]
        if "<" in kernel:  # a launch whose template arguments are not known tells no types
            launches = [one for one in launches if one.name is not None]
        known = [one.parameters for one in launches if one.parameters is not None]
        if known:
            return known[0]
        name = unqualified(kernel)
        functions = [x for x in self.code.unit.functions.get(name, ()) if x.is_kernel]
        if len(functions) == 1:
            texts = [x.strip() for x in kernel.partition("<")[2].rstrip("> ").split(",")]
            templates = dict(zip(functions[0].templates, texts, strict=False))
            return declared_parameters(self.code.unit, functions[0], templates)
        return signature(self.text, kernel)


def _is_lambda(argument: str, source: str) -> bool:
    """True for the text of a lambda, or for the name of one in a source."""
    is_name = re.fullmatch(r"\w+", argument)
    declared = rf"\bauto\s+{argument}\s*=\s*\["
    return argument.startswith("[") or bool(is_name and re.search(declared, source))


def _with_pointers(code: HostCode, declared: Sequence[Declared] | None) -> frozenset[int]:
    """Positions of parameters that are structs with a pointer among their fields."""
    structs = code.unit.structs
    return frozenset(
        position
        for position, one in enumerate(declared or ())
        if not one.pointer
        and any(
            _has_pointer(structs[name])
            for name in re.findall(r"[A-Za-z_]\w*", one.text)
            if name in structs
        )
    )


def _has_pointer(struct: Node) -> bool:
    """True if a field of a struct is a pointer; a static member is none of its fields."""
    body = struct.child_by_field_name("body")
    fields = [
        one
        for one in without_comments(body)
        if one.type == "field_declaration"
        and all(x.text != b"static" for x in one.children if x.type == "storage_class_specifier")
    ]
    return any(
        x.type == "pointer_declarator"
        for one in fields
        for x in one.children_by_field_name("declarator")
    )


def _only_launched(launches: Sequence[HostLaunch], kernels: Sequence[str]) -> str | None:
    """The kernel that all launches are of; None if they are of several, or of an unknown one.

    Launches that are known not to be executed count only if there are no others.
    """
    executed = [one for one in launches if not one.is_skipped] or launches
    launched = {one.name for one in executed}
    only = launched.pop() if len(launched) == 1 else None
    return only if only in kernels else None


def _given_numbers(
    given: Mapping[int | str, np.generic | None], names: Sequence[str | None]
) -> Iterator[tuple[str, Number]]:
    """Numbers among the given values, by the names of their parameters."""
    for key, value in given.items():
        if isinstance(key, str):
            name: str | None = key
        else:
            name = names[key] if key < len(names) else None
        if name is not None and value is not None and value.dtype.kind in "iufb":
            yield name, Number(value.item(), _kind_named(value.dtype.name))


def _of_launch(
    launch: HostLaunch | None,
    kernel: str | None,
    declared: Sequence[Declared] | None,
    given: GivenLaunch,
) -> Proposed:
    """The launch of a kernel, from what is given and from one in host code."""
    open_positions = [k for k in range(len(declared or ())) if k not in given.positions]
    arguments = dict[int, Proposal]()
    if launch is not None and declared is not None:
        found = {k: _proposal(launch, k, declared[k]) for k in open_positions}
        arguments = {k: one for k, one in found.items() if one is not None}
    if given.shared_bytes is not None:
        shared_bytes: int | None = given.shared_bytes
    else:
        shared_bytes = launch.shared_bytes if launch else 0
    return Proposed(
        kernel=kernel,
        declared=None if declared is None else tuple(declared),
        grid=given.grid or (launch.grid if launch else None),
        block=given.block or (launch.block if launch else None),
        shared_bytes=shared_bytes,
        arguments=arguments,
        missing=tuple(k for k in open_positions if k not in arguments),
        implied=frozenset(),
        launch=launch,
        facts=tuple(_facts(launch, given, arguments, declared or ())) if launch else (),
    )


def _facts(
    launch: HostLaunch,
    given: GivenLaunch,
    arguments: Mapping[int, Proposal],
    declared: Sequence[Declared],
) -> Iterator[str]:
    """Facts that host code tells of a launch, in words: 'grid 32,32', 'n = 1024'."""
    if given.grid is None and launch.grid:
        yield f"grid {extent_text(launch.grid)}"
    if given.block is None and launch.block:
        yield f"block {extent_text(launch.block)}"
    if given.shared_bytes is None and launch.shared_bytes:
        yield f"{launch.shared_bytes} bytes of shared memory"
    for position, one in arguments.items():
        name = declared[position].name or f"argument {position}"
        if isinstance(one, Size):
            yield f"{name} {one}"
        elif isinstance(one, np.void):
            yield f"{name} = {launch.arguments[position].text}"
        else:
            yield f"{name} = {one!s}"  # a float32 as short as it is exact


def _template(code: HostCode, kernel: str) -> str:
    """Say how to name a template, with the parameters that it declares."""
    name = unqualified(kernel)
    functions = code.unit.functions.get(name, ())
    declared = [one.templates for one in functions if one.templates]
    if not declared:
        return TEMPLATES
    names = words.listing(list(declared[0]))
    written = f"{name}<{', '.join(declared[0])}>"
    return f"give -k '{written}' with a type or number for {names}"


def _open(one: Proposed) -> tuple[bool, int]:
    """Order of proposals: launches that are not executed last, then by what is not known."""
    is_skipped = one.launch is not None and one.launch.is_skipped
    return is_skipped, len(one.missing) + (one.grid, one.block, one.shared_bytes).count(None)


def _with_implied(
    best: Proposed,
    code: HostCode,
    values: Mapping[str, Number],
    block: Extent | None,
    others: Sequence[int],
) -> Proposed:
    """The proposal, with what would be known if the missing scalars and the block were."""
    declared, launch = best.declared or (), best.launch
    assert launch is not None, "it is of host code"
    tried = dict(values)
    for position in best.missing:
        one = declared[position]
        if not one.pointer and one.dtype is not None and one.name:
            tried[one.name] = Number(ANY_VALUE, _kind_named(one.dtype))
    place = launch.file, launch.line

    def implied_by(values: Mapping[str, Number], block: Extent | None) -> set[int | str]:
        implied = set[int | str]()
        found = code.launches(values, launch.kernel, block=block)
        for then in (one for one in found if (one.file, one.line) == place):
            facts = {"grid": then.grid, "block": then.block, "shared": then.shared_bytes}
            implied |= {name for name, fact in facts.items() if fact is not None}
            implied |= {
                position
                for position in best.missing
                if declared[position].pointer
                and _proposal(then, position, declared[position]) is not None
            }
        return implied

    implied = implied_by(tried, block) if len(tried) > len(values) else set()
    if best.block is None and "block" not in implied:
        implied |= implied_by(tried, ANY_BLOCK) - {"block"}
    return replace(best, implied=frozenset(implied), others=tuple(others))


def _proposal(launch: HostLaunch, position: int, declared: Declared) -> Proposal | None:
    """Return the argument that host code gives a parameter; None if it does not tell."""
    argument = launch.arguments[position] if position < len(launch.arguments) else None
    if argument is None or declared.dtype is None:
        return None if argument is None or declared.pointer else argument.struct
    dtype = type_named(declared.dtype)
    if declared.pointer:
        if argument.bytes is None or argument.bytes < dtype.itemsize:
            return None
        return Size(dtype=declared.dtype, count=argument.bytes // dtype.itemsize)
    if argument.value is None:
        return None
    try:
        value = converted(argument.value, _kind_named(declared.dtype)).value
    except (UnknownValueError, KeyError):
        return None
    found: np.generic = dtype.type(value)
    return found


def _kind_named(dtype: str) -> str:
    """Kind of host values for NumPy's name of a type: "i32" for "int32"."""
    if dtype == "bool":
        return "b8"
    match = re.fullmatch(r"(u?int|float)(\d+)", dtype)
    return f"{_KINDS[match[1]]}{match[2]}" if match else dtype
