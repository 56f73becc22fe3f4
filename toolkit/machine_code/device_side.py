"""The device side of a source with host code: the same text, in which host code is blank.

NVRTC compiles no host code, and knows no header of the host. What is left out is replaced by spaces
in place, so that lines and columns stay. Headers of the user's own are treated alike.

Blank are host functions, variables of the host, and headers that NVRTC cannot use. Macros,
conditions, types, constants and all device code stay. Where the compiler still complains of an item
(`without`), this item is left out too, unless the kernel may depend on it: unless it declares a
name that the kernel or what it uses writes (`reached`). So nothing that decides the kernel's code
is left out, but host functions, which device code cannot call. A kernel that calls one is refused,
even if there is a built-in function of the same name.
"""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from analysis.errors import CompileError, InputError
from toolkit.machine_code.host_macros import (
    DEVICE_SIDE_HEADERS,
    HOST_HEADERS,
    LIBRARY_HEADERS,
    PRELUDE,
    library_headers,
)
from toolkit.machine_code.include_paths import in_folders_of_cuda, is_of_host
from toolkit.machine_code.left_out import NOT_FOUND, ItemKind, LeftOut
from toolkit.machine_code.signature import unqualified
from toolkit.machine_code.source_items import (
    Item,
    blanked,
    device_macros,
    included,
    inner_of,
    items_of,
    reached,
)
from toolkit.machine_code.source_tree import walk
from toolkit.store.user_files import read_file

ALL_ON_DEVICE = "-default-device"  # for members of classes without annotations
_IN_NO_SPACE = "is considered a host function"  # what NVRTC says of them
_COMPUTED = "dynamic initialization is not supported"  # of a constant that nvcc computes
_REPLACED = {
    *HOST_HEADERS,
    *(name for texts in DEVICE_SIDE_HEADERS.values() for name in texts),
    *LIBRARY_HEADERS,
}
_PRELUDE_FILE = "device_side_prelude.h"
_MOST_HEADERS = 200
# Macros of nvcc and its host compiler that NVRTC lacks, defined where a source tests them.
_OF_NVCC = {
    "__NVCC__": "1",
    "__GNUC__": "11",
    "__linux__": "1",
    "__linux": "1",
    "linux": "1",
    "__unix__": "1",
    "__x86_64__": "1",
}
_NOT_FOR_NVRTC = re.compile(
    r"thrust/(?!functional|tuple|pair)|cuda_profiler_api\.h|nvrtc\.h|cub/device"
)


@dataclass(frozen=True, kw_only=True)
class DeviceSide:
    """A source without its host code. `reasons`: what is blank, with the compiler's complaint.

    `computed` are constants with `const` that NVRTC computes only if it says `constexpr`.
    """

    file: str
    kernel: str | None
    contents: Mapping[str, bytes]
    items: Sequence[Item]
    missing: frozenset[Item] = frozenset()
    reasons: Mapping[Item, str] = field(default_factory=dict)
    bodies: Mapping[tuple[str, int, int], LeftOut] = field(default_factory=dict)
    computed: frozenset[Item] = frozenset()
    all_on_device: bool = False

    @property
    def source(self) -> str:
        return self._text(self.file)

    @cached_property
    def headers(self) -> dict[str, str]:
        """Headers by the name with which they are included."""
        own = {name: self._text(name) for name in self.contents if name != self.file}
        used = self.needed[1]
        libraries = {
            name: text if namespace.encode() in used else ""
            for namespace, texts in DEVICE_SIDE_HEADERS.items()
            for name, text in texts.items()
        }
        libraries |= library_headers(used)
        return {**HOST_HEADERS, **libraries, **own, _PRELUDE_FILE: PRELUDE}

    @property
    def options(self) -> list[str]:
        """Options of NVRTC for it."""
        texts = b"\n".join(self.contents.values())
        return [
            *([ALL_ON_DEVICE] if self.all_on_device else []),
            f"--pre-include={_PRELUDE_FILE}",
            *(
                f"-D{name}={value}"
                for name, value in _OF_NVCC.items()
                if re.search(rb"\b%s\b" % name.encode(), texts)
            ),
        ]

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """All that is blank, in the order of files and lines."""
        order = list(self.contents)
        found = [
            LeftOut(kind=item.kind, name=item.name, file=item.file, line=item.line, reason=reason)
            for item, reason in self.reasons.items()
        ]
        found += self.bodies.values()
        return tuple(sorted(found, key=lambda one: (order.index(one.file), one.line)))

    @property
    def missing_for_device(self) -> list[tuple[Item, str]]:
        """Includes of headers that were not found, and that are not known as the host's."""
        named = [(item, included(item.node)[0]) for item in self.missing]
        found = [
            (item, name)
            for item, name in named
            if not (is_of_host(name) or in_folders_of_cuda(name))
        ]
        return sorted(found, key=lambda one: (one[0].file != self.file, one[0].line))

    @cached_property
    def roots(self) -> list[Item]:
        """The definitions of the kernel; without a name, or where none is found, all kernels."""
        macros = self.macros
        kernels = [
            item
            for item in self.items
            if item.kind in (ItemKind.FUNCTION, ItemKind.OTHER)
            and (b"__global__" in item.words or item.words & macros)
        ]
        name = unqualified(self.kernel or "").encode()
        named = [item for item in kernels if name in item.names]
        return named or kernels

    @cached_property
    def macros(self) -> frozenset[bytes]:
        return device_macros(self.items)

    @cached_property
    def needed(self) -> tuple[set[Item], frozenset[bytes]]:
        return reached([item for item in self.items if item not in self.reasons], self.roots)

    @property
    def certainly_has_host_code(self) -> bool:
        """True if a host function is defined under no condition: NVRTC refuses the source."""
        return any(
            item.kind is ItemKind.FUNCTION
            and item.file == self.file
            and not item.is_prototype
            and not item.is_conditional
            for item in self.reasons
        )

    def without(self, complaints: Iterable[tuple[str, int, str]]) -> DeviceSide | None:
        """The same, with the items blank of which the compiler complains: (file, line, text).

        None if the kernel may depend on all of them.
        """
        complaints = list(complaints)
        if not self.all_on_device and any(_IN_NO_SPACE in text for _, _, text in complaints):
            return replace(self, all_on_device=True)
        reasons, bodies, computed = dict(self.reasons), dict(self.bodies), self.computed
        for file, line, text in complaints:
            item = self._at(file, line)
            if item is None or item in reasons or _IN_NO_SPACE in text:
                continue
            if _COMPUTED in text and item.kind is ItemKind.VARIABLE:
                computed |= self._constants_of(item)
                continue
            if item not in self.needed[0]:
                reasons[item] = text
            elif item.kind is ItemKind.TYPE and (body := _host_body(item, line)):
                bodies[file, *body[:2]] = LeftOut(
                    kind=ItemKind.FUNCTION, name=body[2], file=file, line=line, reason=text
                )
        new = replace(self, reasons=reasons, bodies=bodies, computed=computed)
        return None if new._changes == self._changes else new

    @property
    def _changes(self) -> tuple[int, int, int]:
        return len(self.reasons), len(self.bodies), len(self.computed)

    def _constants_of(self, item: Item) -> frozenset[Item]:
        """Constants of the host by which nvcc computes a constant: itself, and others it names."""
        named = reached(self.items, [item])[0]
        return frozenset(
            one for one in named if one.kind is ItemKind.VARIABLE and one.head >= {b"const"}
        )

    def only_needed(self) -> DeviceSide:
        """Only what the kernel may depend on, and all variables of the device."""
        kept = self.needed[0]
        reasons = {
            item: "the kernel does not use it"
            for item in self.items
            if item not in kept and item.kind in (ItemKind.FUNCTION, ItemKind.TYPE, ItemKind.OTHER)
        }
        return replace(self, reasons=reasons | dict(self.reasons))

    def _text(self, name: str) -> str:
        content = self.contents[name]
        ranges = [(item.start, item.end) for item in self.reasons if item.file == name]
        text = blanked(content, ranges)
        for file, start, end in self.bodies:
            if file == name:
                text = text[:start] + b";" + blanked(text[start + 1 : end], [(0, end)]) + text[end:]
        for item in sorted(self.computed, key=lambda one: -one.start):  # the last comes first:
            if item.file == name:  # it moves what follows
                own = re.sub(rb"\bconst\b", b"constexpr", text[item.start : item.end], count=1)
                text = text[: item.start] + own + text[item.end :]
        return text.decode()

    def _at(self, file: str, line: int) -> Item | None:
        there = [
            item for item in self.items if item.file == file and item.line <= line <= item.last_line
        ]
        return min(there, key=lambda item: item.end - item.start, default=None)


def device_side(
    source: str, *, name: str, kernel: str | None, folder: Path | None, folders: Sequence[Path]
) -> DeviceSide:
    """The device side of a source whose own headers are in `folder` and `folders`.

    Raises InputError for a header that cannot be read.
    """
    contents, items = {name: source.encode()}, items_of(name, source.encode())
    places = {name: folder}
    missing = set[Item]()
    pending = list(items)
    while pending:
        item = pending.pop(0)
        if item.kind is not ItemKind.INCLUDE:
            continue
        header = included(item.node)[0]
        if not header or header in _REPLACED:
            continue
        path = _found(header, (places[item.file], folder, *folders))
        if path is None and (is_of_host(header) or not _is_of_cuda(header)):
            missing.add(item)  # of the host also where it is installed, such as cublas_v2.h
        elif path is None:
            continue
        elif header not in contents and len(contents) < _MOST_HEADERS:
            contents[header], places[header] = _read(path, name), path.parent
            new = items_of(header, contents[header])
            items, pending = items + new, pending + new
    side = DeviceSide(
        file=name,
        kernel=kernel,
        contents=contents,
        items=items,
        missing=frozenset(missing),
    )
    absent = {item for item, _ in side.missing_for_device}
    return replace(
        side, reasons={item: NOT_FOUND if item in absent else "" for item in _of_host(side)}
    )


def check_calls(side: DeviceSide) -> None:
    """Raise CompileError where the kernel, or what it uses, calls a host function."""
    hosts = {
        name: item
        for item in side.reasons
        if item.kind is ItemKind.FUNCTION and not side.reasons[item]
        for name in list(item.names)
    }
    kept = [item for item in side.items if item not in side.reasons]
    there = {name for item in kept for name in item.names} | {
        one for item in kept if item.kind is ItemKind.TYPE for one in item.words
    }
    for item in sorted(side.needed[0], key=lambda one: one.start):
        if item.kind is not ItemKind.FUNCTION:
            continue
        for name, line in item.calls():
            if name in hosts and name not in there:
                host = hosts[name]
                raise CompileError(
                    f"{item.file}, line {line}: {name.decode()} is a host function "
                    f"({host.file}, line {host.line}): write __device__ before it"
                )


def first_device_launch(side: DeviceSide) -> tuple[str, int] | None:
    """File and line of the first kernel launch in the device code that is needed."""
    for item in sorted(side.roots, key=lambda one: (one.file != side.file, one.line)):
        if (at := item.text.find(b"<<<")) >= 0:
            return item.file, item.line + item.text[:at].count(b"\n")
    return None


def host_variable(side: DeviceSide, name: str) -> Item | None:
    """The variable of the host with this name."""
    found = (
        item
        for item, reason in side.reasons.items()
        if item.kind is ItemKind.VARIABLE and item.name == name and not reason
    )
    return min(found, key=lambda item: (item.file != side.file, item.line), default=None)


def _found(header: str, folders: Iterable[Path | None]) -> Path | None:
    paths = (Path(os.path.normpath(one / header)) for one in folders if one is not None)
    return next((path for path in paths if path.is_file()), None)


def _read(path: Path, name: str) -> bytes:
    try:
        content = read_file(path)
        content.decode()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{name}: {path}, which it includes, cannot be read: {reason}") from error
    if content.startswith(BOM_UTF8):  # NVRTC takes it for a token; spaces keep the places
        content = b" " * len(BOM_UTF8) + content.removeprefix(BOM_UTF8)
    return content


# What is of the host.


def _of_host(side: DeviceSide) -> Iterator[Item]:
    declared = _names_on_device(side.items, side.macros)
    functions = frozenset(
        name
        for item in side.items
        if item.kind is ItemKind.FUNCTION and item.runs_on_device(side.macros)
        for name in item.names
    )
    for item in side.items:
        match item.kind:
            case ItemKind.INCLUDE:
                is_host = item in side.missing
            case ItemKind.FUNCTION:
                is_host = not (
                    item.runs_on_device(side.macros)
                    or item.head & {b"constexpr", b"consteval"}
                    or item.names & declared
                )
            case ItemKind.VARIABLE:
                is_host = not (item.words & (side.macros | {b"__device__"})) and not (
                    item.runs_on_device(side.macros) or _is_constant(item)
                )
            case ItemKind.OTHER:
                is_host = _is_host_statement(item, side.macros, functions)
            case _:
                is_host = False
        if is_host:
            yield item


def _names_on_device(items: Iterable[Item], macros: frozenset[bytes]) -> frozenset[bytes]:
    """Names that are declared for the device without a body: who defines them may not say it."""
    found = set[bytes]()
    for item in items:
        if item.kind is ItemKind.FUNCTION and item.is_prototype and item.runs_on_device(macros):
            found |= item.names if b"__global__" not in item.head else set()
        elif item.kind is ItemKind.TYPE and (item.is_annotated or item.words & macros):
            found |= item.members_on_device(macros)
    return frozenset(found)


def _is_constant(item: Item) -> bool:
    """True of constants, which device code may use; `const char* name` is a variable."""
    if b"constexpr" in item.head:
        return True
    if b"const" not in item.head:
        return False
    declarators = inner_of(item.node).children_by_field_name("declarator")
    return not any(_is_pointer(one) for one in declarators) or bool(
        re.search(rb"\*\s*const\b", item.text)
    )


def _is_pointer(declarator: object) -> bool:
    return any(one.type == "pointer_declarator" for one in walk(declarator))  # type: ignore[arg-type]


def _is_host_statement(item: Item, macros: frozenset[bytes], functions: frozenset[bytes]) -> bool:
    """True of what the tree knows no kind of: calls of macros, instantiations, damaged code."""
    inner = inner_of(item.node)
    if inner.type in (";", "using_declaration", "namespace_alias_definition", "friend_declaration"):
        return False
    if item.is_annotated or item.words & macros:
        return False
    if inner.type == "template_instantiation":
        return not (item.words & {b"class", b"struct"} or item.words & functions)
    opened = [item.text.count(one) for one in (b"{", b"}", b"(", b")")]
    return opened[0] == opened[1] and bool(item.words or opened[2] != opened[3])


def _is_of_cuda(header: str) -> bool:
    return not _NOT_FOR_NVRTC.match(header) and in_folders_of_cuda(header)


def _host_body(item: Item, line: int) -> tuple[int, int, str] | None:
    """Body and initial values of the member of a class at this line, if it has no annotation."""
    for one in walk(item.node):
        if one.type != "function_definition" or not (
            one.start_point[0] + 1 <= line <= one.end_point[0] + 1
        ):
            continue
        body = one.child_by_field_name("body")
        text = one.text or b""
        if body is None or b"__device__" in text or b"__global__" in text:
            return None
        lists = [part for part in one.children if part.type == "field_initializer_list"]
        start = lists[0].start_byte if lists else body.start_byte
        name = one.child_by_field_name("declarator")
        called = (name.text or b"").decode().partition("(")[0] if name is not None else "a member"
        return start, int(body.end_byte), called
    return None
