"""Structs that host code passes by value: `Add()`, `Scale{2.0f, 3}`, a variable that is one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from typing import cast

import numpy as np
from tree_sitter import Node

from toolkit.launch.host_declarations import SourcePlace
from toolkit.launch.host_nodes import (
    default_of,
    named_struct,
    only_child,
    text_of,
    type_made,
    uncast,
    without_comments,
)
from toolkit.launch.host_numbers import Number, UnknownValueError, converted
from toolkit.launch.host_types import OUTSIDE, Frame, has_usual_layout
from toolkit.launch.host_unit import HostUnit
from toolkit.launch.host_values import Evaluator
from toolkit.machine_code.source_tree import walk

# Types of the standard library without data, whose templates have their values
_EMPTY = re.compile(r"std::(bool_constant|integral_constant)<.*>$|std::(true|false)_type$")
_NUMPY = {"i": "int", "u": "uint", "f": "float"}


@dataclass(frozen=True, kw_only=True)
class _StructField:
    """Field of a struct: its name, its kind, such as "f32", and its default value."""

    name: str
    kind: str
    default: Node | None


@dataclass(frozen=True)
class Structs:
    """Values of structs without constructors, whose fields are numbers."""

    unit: HostUnit
    evaluator: Evaluator

    def value(self, node: Node, place: SourcePlace, frame: Frame) -> np.void:
        """Value of an expression. Raises UnknownValueError."""
        node = uncast(node)
        if _EMPTY.match("".join(text_of(type_made(node)).split())):
            return cast(np.void, np.zeros((), np.dtype([("empty", "int8")]))[()])
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

    def _made(self, struct: str, values: Node | None, place: SourcePlace, frame: Frame) -> np.void:
        if not has_usual_layout(self.unit, struct):
            raise UnknownValueError
        fields = self._fields(self.unit.structs[struct], frame)
        given = without_comments(values)
        if len(given) > len(fields):
            raise UnknownValueError
        types = [(one.name, _NUMPY[one.kind[0]] + one.kind[1:]) for one in fields]
        zeros = np.zeros((), np.dtype(types or [("empty", "int8")], align=True))
        found = cast(np.void, zeros[()])
        for one, value in zip_longest(fields, given):
            if value is not None:
                number = self.evaluator.number(value, place, frame)
            elif one.default is not None:
                number = self._default(struct, one.default)
            elif values is None:  # it has no value, where with {} it is 0
                raise UnknownValueError
            else:
                continue
            found[one.name] = converted(number, one.kind).value
        return found

    def _default(self, struct: str, node: Node) -> Number:
        """Default value of a field, of which no name means a part of the struct.

        Raises UnknownValueError.
        """
        if node.type == "initializer_list":
            only = only_child(node)
            if only is None:
                raise UnknownValueError
            node = only
        declared = {text_of(x) for x in walk(self.unit.structs[struct]) if _is_declared(x)}
        if declared & {text_of(x) for x in walk(node) if x.type == "identifier"}:
            raise UnknownValueError
        place = SourcePlace(file=self.unit.struct_files[struct], at=node.start_byte)
        return self.evaluator.number(node, place, OUTSIDE)

    def _fields(self, struct: Node, frame: Frame) -> list[_StructField]:
        """The fields of a struct. Raises UnknownValueError for all but plain numbers."""
        body, found = struct.child_by_field_name("body"), list[_StructField]()
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
            plain = self.evaluator.types.kind(text_of(kind), frame)
            if (
                plain is None
                or plain[0] not in _NUMPY
                or any(x.type != "field_identifier" for x in declarators)
            ):
                raise UnknownValueError
            found += [
                _StructField(name=text_of(x), kind=plain, default=default_of(one, x))
                for x in declarators
            ]
        return found


def _is_declared(node: Node) -> bool:
    """True for the name of a field, a function or an enumerator of a struct."""
    is_enumerator = node.parent is not None and node.parent.type == "enumerator"
    return node.type == "field_identifier" or (node.type == "identifier" and is_enumerator)


def _is_function(declarator: Node) -> bool:
    inner: Node | None = declarator
    while inner is not None and inner.type != "function_declarator":
        inner = inner.child_by_field_name("declarator")
    return inner is not None
