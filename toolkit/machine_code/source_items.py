"""Items of a source outside of functions: declared names, used names, and if the device runs them.

An item is a function, a variable, a type, an include or a macro, in a namespace or an `extern "C"`
block too. Names stand for meaning here: code depends only on items that declare a name which it
writes, directly or through others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node, Parser

from toolkit.machine_code.left_out import ItemKind
from toolkit.machine_code.source_tree import CUDA, line_of, walk, without_unknown

_CONTAINERS = {
    "translation_unit",
    "namespace_definition",
    "declaration_list",
    "linkage_specification",
    "preproc_if",
    "preproc_ifdef",
    "preproc_elif",
    "preproc_elifdef",
    "preproc_else",
}
_TYPES = {
    "struct_specifier",
    "class_specifier",
    "union_specifier",
    "enum_specifier",
    "type_definition",
    "alias_declaration",
    "namespace_alias_definition",
    "concept_definition",
    "static_assert_declaration",
}
_DIRECTIVES = {"preproc_call", "preproc_def", "preproc_function_def"}
_NAMES = {
    "identifier",
    "type_identifier",
    "namespace_identifier",
    "field_identifier",
    "operator_name",
    "destructor_name",
}
_IGNORED = re.compile(
    rb"//(?:\\\r?\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_ANNOTATIONS = frozenset(
    (
        b"__device__",
        b"__global__",
        b"__constant__",
        b"__shared__",
        b"__managed__",
        b"__grid_constant__",
    )
)
_OF_ANOTHER_HEADER = re.compile(rb"[A-Z_]*(?:DEVICE|KERNEL)[A-Z_]*")  # a macro such as CUTE_DEVICE
DIRECTIVE = re.compile(rb"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_MACRO_WITH_BODY = re.compile(
    rb"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)\(((?:\\\r?\n|[^\n])*\{(?:\\\r?\n|[^\n])*)",
    re.MULTILINE,
)
_CALL_AT_LINE_START = re.compile(
    rb"^([A-Za-z_]\w*)[ \t]*\((?:[^(){};]|\([^(){};]*\))*\)(?=[ \t]*\r?\n\s*[^\s{:=])",
    re.MULTILINE,
)
_ENDS_A_LINE = re.compile(rb"[^\r\n]")


@dataclass(frozen=True, kw_only=True, eq=False)
class Item:
    """One item: its place in a file, in bytes."""

    file: str
    kind: ItemKind
    node: Node
    text: bytes
    line: int

    @property
    def start(self) -> int:
        return int(self.node.start_byte)

    @property
    def end(self) -> int:
        return int(self.node.end_byte)

    @property
    def last_line(self) -> int:
        row, column = self.node.end_point
        return int(row) + bool(column)  # a directive ends where the next line begins

    @cached_property
    def words(self) -> frozenset[bytes]:
        """All identifiers of its text."""
        return words_of(self.text)

    @cached_property
    def head(self) -> frozenset[bytes]:
        """Identifiers before the body of a function, or before the value of a variable."""
        inner, end = inner_of(self.node), self.end
        body = inner.child_by_field_name("body")
        if body is not None:
            end = body.start_byte
        elif self.kind is ItemKind.VARIABLE:
            values = [one for one in inner.children if one.type == "init_declarator"]
            value = values[0].child_by_field_name("value") if values else None
            end = value.start_byte if value is not None else end
        return words_of(self.text[: end - self.start])

    @cached_property
    def names(self) -> frozenset[bytes]:
        """Names that it declares. Of a class: its name, and those behind its body."""
        return frozenset(_declared(inner_of(self.node)))

    @property
    def name(self) -> str:
        """For messages: the name, or how the text begins."""
        function = inner_of(self.node).child_by_field_name("declarator")
        if self.kind is ItemKind.FUNCTION and function is not None:
            named = _innermost(function)
            if named.text:
                return named.text.decode(errors="replace")
        if self.kind is ItemKind.INCLUDE:
            return included(self.node)[0]
        if self.names:
            return min(self.names, key=self.text.find).decode(errors="replace")
        return " ".join(self.text.decode(errors="replace").split())[:40]

    @property
    def is_prototype(self) -> bool:
        inner = inner_of(self.node)
        return inner.child_by_field_name("body") is None

    @property
    def is_conditional(self) -> bool:
        """True if it stands in an #if."""
        node = self.node.parent
        while node is not None and not node.type.startswith("preproc"):
            node = node.parent
        return node is not None

    @property
    def is_annotated(self) -> bool:
        """True if it, or a member or a lambda in it, is marked for the device."""
        return bool(_ANNOTATIONS & self.words)

    def runs_on_device(self, macros: frozenset[bytes]) -> bool:
        """True if its head says so, itself or by one of these macros."""
        return bool(self.head & (_ANNOTATIONS | macros)) or any(
            _OF_ANOTHER_HEADER.fullmatch(word) for word in self.head
        )

    def members_on_device(self, macros: frozenset[bytes]) -> frozenset[bytes]:
        """Names of the functions that a class declares for the device, without bodies."""
        kinds = "field_declaration", "declaration"
        declared = (one for one in _outside_bodies(self.node) if one.type in kinds)
        return frozenset(
            name
            for one in declared
            if words_of(one.text or b"") & (_ANNOTATIONS | macros)
            for name in _declared(one)
        )

    def calls(self) -> Iterator[tuple[bytes, int]]:
        """Name and line of each call of a plain name, such as f(x) or f<4>(x)."""
        own = {one.text for one in _parameters_and_locals(self.node)}
        for call in walk(self.node):
            if call.type != "call_expression":
                continue
            function = call.child_by_field_name("function")
            if function is not None and function.type == "template_function":
                function = function.child_by_field_name("name")
            if function is None or function.type != "identifier" or function.text in own:
                continue
            if function.text:
                yield function.text, line_of(function)


def items_of(file: str, content: bytes) -> list[Item]:
    """The items of a file, in order."""
    root = Parser(CUDA).parse(with_ended_calls(without_unknown(content))).root_node
    return [
        Item(
            file=file,
            kind=_kind(node),
            node=node,
            text=content[node.start_byte : node.end_byte],
            line=line_of(node),
        )
        for node in _item_nodes(root)
    ]


def with_ended_calls(content: bytes) -> bytes:
    """The same with `NAME ;` for calls of macros between functions, which no semicolon ends.

    The grammar takes what follows `BIND(int, 4)` for a part of it. Such a macro is defined in this
    file, with a body in braces, and is none of the device. All bytes stay in their places.
    """
    host = {
        found[1]
        for found in _MACRO_WITH_BODY.finditer(content)
        if not words_of(found[2]) & _ANNOTATIONS
    }
    if not host:
        return content
    plain = bytearray(_IGNORED.sub(lambda one: _ENDS_A_LINE.sub(b" ", one[0]), content))
    result = bytearray(content)
    directives = {found.end() for found in DIRECTIVE.finditer(plain)}
    for call in _CALL_AT_LINE_START.finditer(bytes(plain)):
        if call[1] not in host:
            continue
        before = len(plain[: call.start()].rstrip())
        if before and before not in directives and chr(plain[before - 1]) not in ";}":
            continue
        start, end = call.end(1), call.end() - 1
        for text in (plain, result):
            text[start:end] = _ENDS_A_LINE.sub(b" ", content[start:end])
            text[end : end + 1] = b";"
    return bytes(result)


def namespaces_of(kernel: str, file: str, text: str) -> set[str]:
    """The namespaces in which kernels of a name are defined: "deep::inner::", "" outside of any."""
    return {
        _namespaces(item.node)
        for item in items_of(file, text.encode())
        if kernel.encode() in item.names and b"__global__" in item.words
    }


def _namespaces(node: Node) -> str:
    found, outer = "", node.parent
    while outer is not None:
        name = outer.child_by_field_name("name")
        if outer.type == "namespace_definition" and name is not None and name.text is not None:
            found = f"{name.text.decode(errors='replace')}::{found}"
        outer = outer.parent
    return found


def device_macros(items: Iterable[Item]) -> frozenset[bytes]:
    """Macros that stand for `__device__` and the like, also through other macros."""
    bodies = {
        name: item.words - item.names
        for item in items
        if item.kind is ItemKind.MACRO
        for name in item.names
    }
    found: set[bytes] = set()
    while new := {
        name for name, body in bodies.items() if name not in found and body & (_ANNOTATIONS | found)
    }:
        found |= new
    return frozenset(found)


def reached(items: Sequence[Item], roots: Iterable[Item]) -> tuple[set[Item], frozenset[bytes]]:
    """Items on which the roots may depend, and all words of these."""
    by_name: dict[bytes, list[Item]] = {}
    for item in items:
        for name in item.names:
            by_name.setdefault(name, []).append(item)
    found, pending = set[Item](), list(roots)
    words: set[bytes] = set()
    while pending:
        item = pending.pop()
        if item in found:
            continue
        found.add(item)
        new = item.words - words
        words |= new
        pending += [other for word in new for other in by_name.get(word, ())]
    return found, frozenset(words)


def blanked(content: bytes, ranges: Iterable[tuple[int, int]]) -> bytes:
    """The same text with spaces in these ranges, except for line breaks and directives.

    Directives stay, so that macros and conditions mean the same to all that follows.
    """
    result = bytearray(content)
    for start, end in ranges:
        part, at = content[start:end], 0
        for directive in (*_kept_directives(content, start, end), None):
            stop = len(part) if directive is None else directive[0] - start
            result[start + at : start + stop] = _ENDS_A_LINE.sub(b" ", part[at:stop])
            at = stop if directive is None else directive[1] - start
    return bytes(result)


def _kept_directives(content: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    for found in DIRECTIVE.finditer(content, start, end):
        word = _WORD.search(found[0])
        if word and word[0] not in (b"include", b"pragma", b"error", b"warning", b"line"):
            yield found.span()


def words_of(text: bytes) -> frozenset[bytes]:
    """Identifiers and keywords of a text, without those of comments and strings."""
    return frozenset(_WORD.findall(_IGNORED.sub(b" ", text)))


def included(node: Node) -> tuple[str, bool]:
    """The path of an include, and whether it stands in quotes; ("", False) if a macro makes it."""
    path = node.child_by_field_name("path")
    text = path.text.decode(errors="replace").strip() if path is not None and path.text else ""
    if path is None or path.type == "identifier" or len(text) < 2:
        return "", False
    return text[1:-1], text[0] == '"'


def inner_of(node: Node) -> Node:
    """The declaration in `template <...>` and in `extern "C"`; other nodes themselves."""
    while node.type in ("template_declaration", "linkage_specification"):
        inside = [
            one
            for one in node.named_children
            if one.type
            not in ("template_parameter_list", "string_literal", "requires_clause", "comment")
        ]
        if not inside:
            return node
        node = inside[-1]
    return node


def _item_nodes(node: Node) -> Iterator[Node]:
    names = ("name", "condition")
    skipped = {one.id for field in names if (one := node.child_by_field_name(field))}
    for child in node.named_children:
        if child.type == "comment" or child.id in skipped or child.type == "string_literal":
            continue
        if child.type in _CONTAINERS and _has_items(child):
            yield from _item_nodes(child)
        else:
            yield child


def _has_items(node: Node) -> bool:
    """False for `extern "C"` before a single declaration."""
    if node.type != "linkage_specification":
        return True
    body = node.child_by_field_name("body")
    return body is not None and body.type == "declaration_list"


def _kind(node: Node) -> ItemKind:
    inner = inner_of(node)
    if inner.type == "declaration":
        declarators = inner.children_by_field_name("declarator")
        if any(_function_declarator(one) for one in declarators):
            return ItemKind.FUNCTION
        return ItemKind.VARIABLE if declarators else ItemKind.TYPE
    kinds = {
        "preproc_include": ItemKind.INCLUDE,
        "function_definition": ItemKind.FUNCTION,
        **dict.fromkeys(_DIRECTIVES, ItemKind.MACRO),
        **dict.fromkeys(_TYPES, ItemKind.TYPE),
    }
    return kinds.get(inner.type, ItemKind.OTHER)


def _function_declarator(node: Node) -> bool:
    """True of `int* f(int)`, not of a pointer to a function, nor of an initial value."""
    while node.type in ("pointer_declarator", "reference_declarator"):
        inner = node.child_by_field_name("declarator") or (
            node.named_children[-1] if node.named_children else None
        )
        if inner is None:
            return False
        node = inner
    if node.type != "function_declarator":
        return False
    declarator = node.child_by_field_name("declarator")
    return declarator is not None and declarator.type != "parenthesized_declarator"


def _innermost(node: Node) -> Node:
    while node.type.endswith("declarator"):
        inner = node.child_by_field_name("declarator") or next(
            (one for one in node.named_children if one.type != "parameter_list"), None
        )
        if inner is None:
            return node
        node = inner
    return node


def _declared(node: Node) -> Iterator[bytes]:
    """Names that a declaration declares; both of `A::f`, and those of an unscoped enum."""
    declarators = node.children_by_field_name("declarator")
    name = node.child_by_field_name("name")
    kinds = node.child_by_field_name("type")
    if kinds is not None and kinds.type in _TYPES:
        yield from _declared(kinds)
    for one in (*declarators, *filter(None, [name])):
        innermost = _innermost(one)
        yield from (
            part.text for part in walk(innermost) if part.type in _NAMES and part.text is not None
        )
    if node.type == "enum_specifier":
        for one in walk(node):
            entry = one.child_by_field_name("name") if one.type == "enumerator" else None
            if entry is not None and entry.text is not None:
                yield entry.text
    if node.type in ("template_instantiation", "expression_statement", "ERROR"):
        yield from words_of(node.text or b"")
    if node.type == "using_declaration" and not any(
        one.type == "namespace" for one in node.children
    ):
        yield from [part.text for part in walk(node) if part.type in _NAMES and part.text][-1:]


def _outside_bodies(node: Node) -> Iterator[Node]:
    """A node and all below it, without the bodies of functions."""
    pending = [node]
    while pending:
        one = pending.pop()
        yield one
        pending += [child for child in one.children if child.type != "compound_statement"]


def _parameters_and_locals(node: Node) -> Iterator[Node]:
    for one in walk(node):
        if one.type in ("parameter_declaration", "init_declarator", "declaration"):
            for declarator in one.children_by_field_name("declarator"):
                if not _function_declarator(declarator):
                    yield _innermost(declarator)
