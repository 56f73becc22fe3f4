"""Types of host code: what names stand for, and bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from toolkit.launch.host_declarations import HostFunction, HostVariable, SourcePlace
from toolkit.launch.host_nodes import text_of
from toolkit.launch.host_numbers import BITS, C_TYPES, UnknownValueError, Value
from toolkit.launch.host_unit import HostUnit

_PLAIN_DECLARATORS = (
    *("identifier", "reference_declarator", "init_declarator"),
    "function_declarator",  # dim3 grid(columns, rows)
)
_TWO_BYTES = ("half", "__half", "__nv_bfloat16", "nv_bfloat16", "half_t")
_VECTOR = re.compile(r"(u?(?:char|short|int|long|longlong)|float|double)([1-4])")
_VECTOR_ALIGNED = {"char": 1, "short": 2, "int": 4, "long": 8, "longlong": 8, "float": 4} | {
    "double": 8
}
# Attributes of a struct, and macros that name one
_LAYOUT = re.compile(rb"align|ALIGN|PACKED|__packed__|[(:,]\s*packed\b")
_PRAGMA_PACK = re.compile(r"#[ \t]*pragma\s+pack\b|_Pragma\s*\(\s*\"pack\b")
_QUALIFIERS = re.compile(
    r"\b(?:const|constexpr|static|volatile|register|inline|extern|struct|std::|__restrict__)\s*"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """A call of a host function: what its parameters and its template parameters mean."""

    function: HostFunction | None = None
    arguments: Mapping[str, tuple[Node, SourcePlace, Frame]] = field(default_factory=dict)
    templates: Mapping[str, tuple[Node, SourcePlace, Frame]] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)  # of a function that is evaluated


OUTSIDE = Frame()


@dataclass(frozen=True)
class Types:
    """Types of a unit; `extent` evaluates the extent of an array."""

    unit: HostUnit
    extent: Callable[[Node, SourcePlace, Frame], int]

    def type_of(self, variable: HostVariable, frame: Frame) -> str | None:
        """Kind of a plain variable, "dim3", or None of any other."""
        declarator = variable.declarator
        if variable.kind == "parameter" or declarator.type == "init_declarator":
            declarator = declarator.child_by_field_name("declarator") or declarator
        if declarator.type not in _PLAIN_DECLARATORS:
            return None
        text = variable.type_text
        if text.strip() in ("auto", "const auto"):
            return None
        whole = text_of(variable.declaration)
        if re.match(r"\s*(?:\w+\s+)*unsigned\b", whole.partition(variable.name)[0]):
            text = text if "unsigned" in text else f"unsigned {text}"
        found = self.kind(text, frame)
        if found is None:
            raise UnknownValueError
        return found

    def kind(self, text: str, frame: Frame, depth: int = 8) -> str | None:
        """Kind of the type that a text names: "i32", "dim3"; None of any other."""
        name = " ".join(_QUALIFIERS.sub("", text).split())
        if name == "dim3":
            return name
        if name in C_TYPES:
            return C_TYPES[name]
        if depth == 0:
            return None
        if name in frame.templates:
            node, _, outer = frame.templates[name]
            return self.kind(text_of(node), outer, depth - 1)
        meant = self.meaning(name)
        return self.kind(meant, frame, depth - 1) if meant is not None else None

    def meaning(self, name: str) -> str | None:
        """Return the text that a typedef, an alias or a macro stands for."""
        if name in self.unit.types and self.unit.types[name] != name:
            meant = self.unit.types[name]
            return None if "{" in meant else meant  # a struct that a typedef names
        macro = self.unit.macros.get(name)
        return macro.body if macro is not None and macro.parameters is None else None

    def type_text(self, text: str, frame: Frame, depth: int = 8) -> str:
        """A type without the names that only host code or a template knows."""
        name = " ".join(re.sub(r"\b(?:const|volatile|struct)\b", "", text).split())
        if depth and name in frame.templates:
            node, _, outer = frame.templates[name]
            return self.type_text(text_of(node), outer, depth - 1)
        meant = self.meaning(name)
        return self.type_text(meant, frame, depth - 1) if depth and meant else name

    def is_type(self, text: str, frame: Frame) -> bool:
        """True for the name of a type that is known: of a struct, of numbers, of vectors."""
        if text in self.unit.structs:
            return True
        try:
            return self.size(text, frame) > 0
        except UnknownValueError:
            return False

    def size(self, text: str, frame: Frame, depth: int = 8) -> int:  # noqa: PLR0911
        """Bytes of a type. Raises UnknownValueError."""
        if text.rstrip().endswith("*"):
            return 8
        name = self.type_text(text, frame)
        kind = self.kind(name, frame)
        if kind == "dim3":
            return 12
        if kind is not None:
            return BITS[kind] // 8
        if name.rpartition("::")[2] in _TWO_BYTES:
            return 2
        if name in ("half2", "__half2", "__nv_bfloat162"):
            return 4
        if vector := _VECTOR.fullmatch(name):
            return _VECTOR_ALIGNED[vector[1].removeprefix("u")] * int(vector[2])
        if depth and (node := self.unit.structs.get(name)) is not None:
            if not has_usual_layout(self.unit, name):
                raise UnknownValueError
            return self._struct_size(node, frame, depth - 1)
        raise UnknownValueError

    def _struct_size(self, node: Node, frame: Frame, depth: int) -> int:
        """Bytes of a struct of plain types and arrays of them."""
        body, at, widest = node.child_by_field_name("body"), 0, 1
        if body is None or any(one.type == "base_class_clause" for one in node.children):
            raise UnknownValueError
        if re.search(r"\bvirtual\b|\bunion\b|:\s*\d", text_of(node)):
            raise UnknownValueError
        for one in body.named_children:
            if one.type in ("comment", "access_specifier", "function_definition"):
                continue
            kind = one.child_by_field_name("type")
            if one.type != "field_declaration" or kind is None:
                raise UnknownValueError
            for declarator in one.children_by_field_name("declarator"):
                if declarator.type == "function_declarator" or "static" in text_of(one).split():
                    continue
                align, size = self._field_size(text_of(kind), declarator, frame, depth)
                at = -(-at // align) * align + size
                widest = max(widest, align)
        return -(-at // widest) * widest

    def _field_size(self, kind: str, declarator: Node, frame: Frame, depth: int) -> tuple[int, int]:
        """Alignment and bytes of a field."""
        plain, count = self.type_text(kind, frame), 1
        if plain in self.unit.structs:
            raise UnknownValueError  # its alignment is not followed
        while declarator.type == "array_declarator":
            extent = declarator.child_by_field_name("size")
            if extent is None:
                raise UnknownValueError
            count *= self.extent(extent, SourcePlace(file=0, at=0), frame)
            declarator = declarator.child_by_field_name("declarator") or declarator
        if declarator.type == "pointer_declarator":
            return 8, 8 * count
        each, vector = self.size(kind, frame, depth), _VECTOR.fullmatch(plain)
        if vector and vector[2] == "3":
            return _VECTOR_ALIGNED[vector[1].removeprefix("u")], each * count
        return min(each & -each, 16), each * count

    def size_of_variable(self, variable: HostVariable, frame: Frame) -> int:
        """Bytes of a variable, an array included."""
        declarator, count = variable.declarator, 1
        if declarator.type == "init_declarator":
            declarator = declarator.child_by_field_name("declarator") or declarator
        while declarator.type == "array_declarator":
            extent = declarator.child_by_field_name("size")
            if extent is None or variable.kind == "parameter":
                raise UnknownValueError
            count *= self.extent(extent, variable.place, frame)
            declarator = declarator.child_by_field_name("declarator") or declarator
        if declarator.type == "pointer_declarator":
            return 8 * count
        return self.size(variable.type_text, frame) * count


def has_usual_layout(unit: HostUnit, struct: str) -> bool:
    """False if attributes or pragmas may change the offsets of a struct's fields or its size.

    They are searched for in the text as it is written: the tree is without some of them.
    """
    if any(map(_PRAGMA_PACK.search, unit.texts)):
        return False
    node, written = unit.structs[struct], unit.texts[unit.struct_files[struct]].encode()
    before, after = written[: node.start_byte], written[node.end_byte :]
    declaration = (
        re.split(rb"[;}\n]", before)[-1],
        written[node.start_byte : node.end_byte],
        after.partition(b";")[0],
    )
    return not any(map(_LAYOUT.search, declaration))
