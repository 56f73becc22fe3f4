"""Structs that host code passes by value: `Add()`, `Scale{2.0f, 3}`, a variable that is one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

import numpy as np
from tree_sitter import Node

from toolkit.launch.host_nodes import named_struct, text_of, uncast
from toolkit.launch.host_numbers import UnknownValueError, converted
from toolkit.launch.host_types import Frame, has_usual_layout
from toolkit.launch.host_unit import HostUnit, Place
from toolkit.launch.host_values import Evaluator

_NUMPY = {"i": "int", "u": "uint", "f": "float"}


@dataclass(frozen=True)
class Structs:
    """Values of structs without constructors, whose fields are numbers."""

    unit: HostUnit
    evaluator: Evaluator

    def value(self, node: Node, place: Place, frame: Frame) -> np.void:
        """Value of an expression. Raises UnknownValueError."""
        node = uncast(node)
        name = named_struct(node, self.unit.structs)
        if name is not None:
            field = "arguments" if node.type == "call_expression" else "value"
            return self._made(text_of(name), node.child_by_field_name(field), place, frame)
        variable = self.unit.variable(text_of(node), place)
        if node.type != "identifier" or variable is None or variable.kind == "parameter":
            raise UnknownValueError
        if self.unit.writes_of(variable) or self.evaluator.may_be_changed(variable):
            raise UnknownValueError
        name_of_type = self.evaluator.types.type_text(variable.type_text, frame)
        if name_of_type not in self.unit.structs:
            raise UnknownValueError
        value = variable.declarator.child_by_field_name("value")
        if value is not None and value.type != "initializer_list":
            return self.value(value, variable.place, frame)
        return self._made(name_of_type, value, variable.place, frame)

    def _made(self, struct: str, values: Node | None, place: Place, frame: Frame) -> np.void:
        if not has_usual_layout(self.unit, struct):
            raise UnknownValueError
        kinds = self._fields(self.unit.structs[struct], frame)
        given = [] if values is None else values.named_children
        if len(given) > len(kinds) or (kinds and not given and values is None):
            raise UnknownValueError
        types = [(name, _NUMPY[kind[0]] + kind[1:]) for name, kind in kinds]
        zeros = np.zeros((), np.dtype(types or [("empty", "int8")], align=True))
        found = cast(np.void, zeros[()])
        for (name, kind), one in zip(kinds, given, strict=False):
            number = self.evaluator.number(one, place, frame)
            found[name] = converted(number, kind).value
        return found

    def _fields(self, struct: Node, frame: Frame) -> list[tuple[str, str]]:
        """Names and kinds of the fields. Raises UnknownValueError for all but plain numbers."""
        body, found = struct.child_by_field_name("body"), list[tuple[str, str]]()
        if body is None or any(one.type == "base_class_clause" for one in struct.children):
            raise UnknownValueError
        if re.search(r"\bvirtual\b|\bunion\b|\bstatic\b|:\s*\d", text_of(body)):
            raise UnknownValueError
        for one in body.named_children:
            kind = one.child_by_field_name("type")
            if one.type in ("comment", "access_specifier"):
                continue
            if kind is None:
                raise UnknownValueError  # a constructor
            declarators = one.children_by_field_name("declarator")
            if all(_is_function(x) for x in declarators):
                continue
            if one.child_by_field_name("default_value") is not None:
                raise UnknownValueError
            plain = self.evaluator.types.kind(text_of(kind), frame)
            if (
                plain is None
                or plain[0] not in _NUMPY
                or any(x.type != "field_identifier" for x in declarators)
            ):
                raise UnknownValueError
            found += [(text_of(x), plain) for x in declarators]
        return found


def _is_function(declarator: Node) -> bool:
    inner: Node | None = declarator
    while inner is not None and inner.type != "function_declarator":
        inner = inner.child_by_field_name("declarator")
    return inner is not None
