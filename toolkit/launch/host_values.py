"""Values that host code gives its variables, where they are the same in every run.

A value that may be another one at run time is unknown: of the command line, of a file, of a loop,
or of a branch. Arithmetic is that of C: integers divide toward zero, and what overflows is unknown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from tree_sitter import Node

from toolkit.launch.host_unit import (
    Function,
    HostUnit,
    Place,
    Use,
    Variable,
    Write,
    constructor_arguments,
    expression,
    integer_of,
    name_of_callee,
    name_of_declarator,
    text_of,
    uncast,
)

_PLAIN_DECLARATORS = (
    *("identifier", "reference_declarator", "init_declarator"),
    "function_declarator",  # dim3 grid(columns, rows)
)
DEEPEST = 48  # values that follow from other values
_RANKS = ("i32", "u32", "i64", "u64", "f32", "f64")
_BITS = {"b8": 8, "i8": 8, "u8": 8, "i16": 16, "u16": 16} | {x: int(x[1:]) for x in _RANKS}
_C_TYPES = {
    "bool": "b8",
    "char": "i8",
    "signed char": "i8",
    "unsigned char": "u8",
    "uchar": "u8",
    "int8_t": "i8",
    "uint8_t": "u8",
    "short": "i16",
    "short int": "i16",
    "unsigned short": "u16",
    "ushort": "u16",
    "int16_t": "i16",
    "uint16_t": "u16",
    "int": "i32",
    "signed": "i32",
    "signed int": "i32",
    "int32_t": "i32",
    "unsigned": "u32",
    "unsigned int": "u32",
    "uint": "u32",
    "uint32_t": "u32",
    "long": "i64",
    "long int": "i64",
    "long long": "i64",
    "long long int": "i64",
    "int64_t": "i64",
    "ptrdiff_t": "i64",
    "ssize_t": "i64",
    "unsigned long": "u64",
    "unsigned long int": "u64",
    "unsigned long long": "u64",
    "unsigned long long int": "u64",
    "uint64_t": "u64",
    "size_t": "u64",
    "float": "f32",
    "double": "f64",
}
_TWO_BYTES = ("half", "__half", "__nv_bfloat16", "nv_bfloat16", "half_t")
_VECTOR = re.compile(r"(u?(?:char|short|int|long|longlong)|float|double)([1-4])")
_VECTOR_ALIGNED = {"char": 1, "short": 2, "int": 4, "long": 8, "longlong": 8, "float": 4} | {
    "double": 8
}
_QUALIFIERS = re.compile(
    r"\b(?:const|constexpr|static|volatile|register|inline|extern|struct|std::|__restrict__)\s*"
)
# Functions that only read what an address points to
_READS = re.compile(
    r"cudaMemcpyToSymbol|cudaLaunch|v?f?printf|cublas\w*(gemm|gemv|scal|axpy)", re.I
)
# Functions that take numbers by value
_HARMLESS = re.compile(
    r"(cuda|cublas|curand|cu[A-Z]|std::)|(v|f|s|sn)?printf$|(check|CHECK)\w*$|\w*(CHECK|Check|check)"
    r"|(mem(cpy|set|cmp)|(m|c)alloc|free|assert|exit|min|max|ceilf?|floorf?|sqrtf?|pow|abs|srand|sdk"
    r"|make_|dim3|(reinterpret|static|const)_cast|sizeof|thrust)"
)


class UnknownValueError(Exception):
    """The value may be another one at run time."""


@dataclass(frozen=True)
class Number:
    """A number of a C type, such as 4096 of "i32"."""

    value: int | float
    kind: str

    @property
    def is_float(self) -> bool:
        return self.kind[0] == "f"


@dataclass(frozen=True)
class Dim3:
    """A dim3, or another struct of the components x, y and z."""

    x: Number
    y: Number
    z: Number

    @property
    def extents(self) -> tuple[int, int, int]:
        return int(self.x.value), int(self.y.value), int(self.z.value)


Value = Number | Dim3
ONE = Number(1, "u32")


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """A call of a host function: what its parameters and its template parameters mean."""

    function: Function | None = None
    arguments: Mapping[str, tuple[Node, Place, Frame]] = field(default_factory=dict)
    templates: Mapping[str, tuple[Node, Place, Frame]] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)  # of a function that is evaluated


OUTSIDE = Frame()


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """Evaluator of expressions of a unit. `given` are values that the user gives: of
    variables, and of their fields (".x").
    """

    unit: HostUnit
    given: Mapping[tuple[Variable, str], Number] = field(default_factory=dict)

    def value(self, node: Node, place: Place, frame: Frame, depth: int = DEEPEST) -> Value:
        """Value of an expression at a place. Raises UnknownValueError."""
        if depth == 0:
            raise UnknownValueError
        handler = _HANDLERS.get(node.type)
        if handler is None:
            raise UnknownValueError
        return handler(self, node, place, frame, depth - 1)

    def number(self, node: Node, place: Place, frame: Frame, depth: int = DEEPEST) -> Number:
        found = self.value(node, place, frame, depth)
        if not isinstance(found, Number):
            raise UnknownValueError
        return found

    def dim3(self, node: Node, place: Place, frame: Frame) -> Dim3:
        """Value of an expression that a launch takes as a grid or a block."""
        found = self.value(node, place, frame)
        return found if isinstance(found, Dim3) else Dim3(found, ONE, ONE)

    # Names.

    def name(self, name: str, place: Place, frame: Frame, depth: int, path: str = "") -> Value:
        unit = self.unit
        if not path and name in frame.values:
            return frame.values[name]
        if not path and name in frame.templates:
            return self.value(*frame.templates[name], depth)
        variable = unit.variable(name, place)
        if variable is not None:
            return self.variable(variable, place, frame, depth, path)
        if path:
            raise UnknownValueError
        if name in unit.macros:
            macro = unit.macros[name]
            inner = expression(macro.body) if macro and macro.parameters is None else None
            if inner is None:
                raise UnknownValueError
            return self.value(inner, place, frame, depth)
        if name in unit.enumerators:
            return self.value(unit.enumerators[name], place, frame, depth)
        raise UnknownValueError

    def variable(
        self, variable: Variable, place: Place, frame: Frame, depth: int, path: str = ""
    ) -> Value:
        """Value of a variable, or of the field `path` of it, at a place."""
        if depth == 0 or variable.kind == "element":
            raise UnknownValueError
        if (variable, path) in self.given:
            return self.given[variable, path]
        if any(
            self._may_change(use)
            for use in self.unit.uses_of(variable)
            if variable.is_global or self._is_earlier(use.place, place)
        ):
            raise UnknownValueError
        kind = self.type_of(variable, place, frame)
        last, later = self._last_write(variable, place, path)
        if last is None:
            found = self._initial(variable, frame, depth, path)
        else:
            if last.value is None:
                raise UnknownValueError
            found = self.value(last.value, last.place, frame, depth)
        for write in later:
            if not isinstance(found, Dim3) or write.value is None:
                raise UnknownValueError
            component = self.number(write.value, write.place, frame, depth)
            parts = {"x": found.x, "y": found.y, "z": found.z} | {write.path[1:]: component}
            found = Dim3(parts["x"], parts["y"], parts["z"])
        if path:
            return found
        if kind == "dim3" and isinstance(found, Number):
            return Dim3(found, ONE, ONE)
        return converted(found, kind) if isinstance(found, Number) and kind else found

    def _initial(  # noqa: PLR0911
        self, variable: Variable, frame: Frame, depth: int, path: str
    ) -> Value:
        """Value that a variable is declared with."""
        if variable.kind == "parameter":
            if variable.name not in frame.arguments:
                raise UnknownValueError
            node, place, outer = frame.arguments[variable.name]
            return self._field(self.value(node, place, outer, depth), path)
        declarator = variable.declarator
        is_dim3 = variable.type_text in ("dim3", "const dim3")
        if declarator.type == "function_declarator":
            names = constructor_arguments(declarator) or []
            whole = [self.value(x, variable.place, frame, depth) for x in names]
            if len(whole) == 1:
                return self._field(whole[0], path)
            parts = [one for one in whole if isinstance(one, Number)]
            if not is_dim3 or len(parts) != len(whole) or len(parts) > 3:
                raise UnknownValueError
            x, y, z = (*parts, ONE, ONE)[:3]
            return self._field(Dim3(x, y, z), path)
        if declarator.type != "init_declarator":
            if is_dim3 and declarator.type == "identifier":
                return self._field(Dim3(ONE, ONE, ONE), path)
            raise UnknownValueError
        value = declarator.child_by_field_name("value")
        inner = declarator.child_by_field_name("declarator")
        if value is None or inner is None or inner.type != "identifier":
            raise UnknownValueError  # of a pointer, a reference or an array
        if value.type in ("argument_list", "initializer_list"):
            parts = [self.number(x, variable.place, frame, depth) for x in value.named_children]
            if is_dim3 and 1 <= len(parts) <= 3:
                x, y, z = (*parts, ONE, ONE)[:3]
                return self._field(Dim3(x, y, z), path)
            if len(parts) == 1 and not is_dim3:
                return self._field(parts[0], path)
            raise UnknownValueError
        return self._field(self.value(value, variable.place, frame, depth), path)

    @staticmethod
    def _field(value: Value, path: str) -> Value:
        if not path:
            return value
        if isinstance(value, Dim3) and path in (".x", ".y", ".z"):
            found: Number = getattr(value, path[1:])
            return found
        raise UnknownValueError

    def _last_write(
        self, variable: Variable, place: Place, path: str
    ) -> tuple[Write | None, list[Write]]:
        """The write that certainly comes last before a place, and those of fields after it.

        None is the declaration. Raises UnknownValueError where another write may come between.
        """
        writes = [
            one
            for one in self.unit.writes_of(variable)
            if not path or not one.path or one.path == path
        ]
        if not writes:
            return None, []
        if variable.is_global:  # any function may be called in between
            raise UnknownValueError
        certain = [one for one in writes if self._is_certain(one, place)]
        whole = [one for one in certain if one.path in ("", path)]
        last = whole[-1] if whole else None
        begin = last.place.at if last else variable.place.at
        later = []
        for one in writes:
            if one is last:
                continue
            if begin < one.place.at < place.at:
                if one not in certain:
                    raise UnknownValueError
                later.append(one)
        for first, end in self.unit.loops_around(place):
            if first <= begin < end:
                continue
            if any(first <= one.place.at < end for one in writes):
                raise UnknownValueError
        return last, later

    def _is_earlier(self, other: Place, place: Place) -> bool:
        """True if what happens at a place of the same function may come before another one."""
        around = self.unit.loops_around(place)
        return other.at < place.at or any(first <= other.at < end for first, end in around)

    @staticmethod
    def _is_certain(write: Write, place: Place) -> bool:
        home = write.home
        return home is not None and home[0] <= place.at < home[1] and write.place.at < place.at

    def _may_change(self, use: Use) -> bool:
        """True if a function may change the variable that it is given."""
        functions = self.unit.functions.get(use.function)
        if use.is_address:
            return not _READS.match(use.function)
        if functions:
            return any(one.takes_reference(use.position) for one in functions)
        if use.function in self.unit.prototypes:
            return any("&" in one for one in self.unit.prototypes[use.function])
        if use.function in self.unit.macros:
            return False
        return not _HARMLESS.match(use.function)

    # Types.

    def type_of(self, variable: Variable, place: Place, frame: Frame) -> str | None:
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
        if name in _C_TYPES:
            return _C_TYPES[name]
        if depth == 0:
            return None
        if name in frame.templates:
            node, _, outer = frame.templates[name]
            return self.kind(text_of(node), outer, depth - 1)
        meant = self.meaning(name)
        return self.kind(meant, frame, depth - 1) if meant is not None else None

    def meaning(self, name: str) -> str | None:
        """What a typedef, an alias or a macro stands for."""
        if name in self.unit.types and self.unit.types[name] != name:
            return self.unit.types[name]
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

    def size(self, text: str, frame: Frame, depth: int = 8) -> int:  # noqa: PLR0911
        """Bytes of a type. Raises UnknownValueError."""
        if text.rstrip().endswith("*"):
            return 8
        name = self.type_text(text, frame)
        kind = self.kind(name, frame)
        if kind == "dim3":
            return 12
        if kind is not None:
            return _BITS[kind] // 8
        if name.rpartition("::")[2] in _TWO_BYTES:
            return 2
        if name in ("half2", "__half2", "__nv_bfloat162"):
            return 4
        if vector := _VECTOR.fullmatch(name):
            return _VECTOR_ALIGNED[vector[1].removeprefix("u")] * int(vector[2])
        if depth and (node := self.unit.structs.get(name)) is not None:
            return self._struct_size(node, frame, depth - 1)
        raise UnknownValueError

    def _struct_size(self, node: Node, frame: Frame, depth: int) -> int:
        """Bytes of a struct of plain types and arrays of them."""
        body, at, widest = node.child_by_field_name("body"), 0, 1
        if body is None or any(one.type == "base_class_clause" for one in node.children):
            raise UnknownValueError
        if re.search(r"align|\bvirtual\b|\bunion\b|:\s*\d", text_of(node)):
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
            count *= int(self.number(extent, Place(file=0, at=0), frame).value)
            declarator = declarator.child_by_field_name("declarator") or declarator
        if declarator.type == "pointer_declarator":
            return 8, 8 * count
        each, vector = self.size(kind, frame, depth), _VECTOR.fullmatch(plain)
        if vector and vector[2] == "3":
            return _VECTOR_ALIGNED[vector[1].removeprefix("u")], each * count
        return min(each & -each, 16), each * count

    # Expressions.

    def _literal(self, node: Node, place: Place, frame: Frame, depth: int) -> Value:
        return literal(text_of(node))

    def _truth(self, node: Node, place: Place, frame: Frame, depth: int) -> Value:
        return Number(int(node.type == "true"), "b8")

    def _identifier(self, node: Node, place: Place, frame: Frame, depth: int) -> Value:
        return self.name(text_of(node), place, frame, depth)

    def _qualified(self, node: Node, place: Place, frame: Frame, depth: int) -> Value:
        return self.name(text_of(node).rpartition("::")[2], place, frame, depth)

    def _inside(self, node: Node, place: Place, frame: Frame, depth: int) -> Value:
        inner = [one for one in node.named_children if one.type != "comment"]
        if len(inner) != 1:
            raise UnknownValueError
        return self.value(inner[0], place, frame, depth)

    def _list(self, node: Node, place: Place, frame: Frame, depth: int) -> Value:
        parts = [self.number(one, place, frame, depth) for one in node.named_children]
        if not 1 <= len(parts) <= 3:
            raise UnknownValueError
        x, y, z = (*parts, ONE, ONE)[:3]
        return Dim3(x, y, z)

    def _unary(self, node: Node, place: Place, frame: Frame, depth: int) -> Value:
        sign = node.children[0].type
        one = self.number(node.children[-1], place, frame, depth)
        if sign == "!":
            return Number(int(not one.value), "b8")
        kind = promoted(one.kind)
        if sign == "-":
            return checked(-one.value, kind)
        if sign == "+":
            return Number(one.value, kind)
        if sign == "~" and not one.is_float:
            return checked(~int(one.value), kind)
        raise UnknownValueError

    def _binary(self, node: Node, place: Place, frame: Frame, depth: int) -> Value:
        left, right = (node.child_by_field_name(side) for side in ("left", "right"))
        if left is None or right is None:
            raise UnknownValueError
        operator = text_of(node.child_by_field_name("operator"))
        a = self.number(left, place, frame, depth)
        if operator in ("&&", "||") and bool(a.value) == (operator == "||"):
            return Number(int(operator == "||"), "b8")
        return combined(operator, a, self.number(right, place, frame, depth))

    def _conditional(self, node: Node, place: Place, frame: Frame, depth: int) -> Value:
        parts = [node.child_by_field_name(x) for x in ("condition", "consequence", "alternative")]
        condition, yes, no = parts
        if condition is None or yes is None or no is None:
            raise UnknownValueError
        chosen = yes if self.number(condition, place, frame, depth).value else no
        return self.value(chosen, place, frame, depth)

    def _cast(self, node: Node, place: Place, frame: Frame, depth: int) -> Value:
        kind, value = (node.child_by_field_name(x) for x in ("type", "value"))
        if kind is None or value is None:
            raise UnknownValueError
        return self._as(text_of(kind), self.value(value, place, frame, depth), frame)

    def _as(self, type_text: str, value: Value, frame: Frame) -> Value:
        kind = self.kind(type_text, frame)
        if kind == "dim3":
            return value if isinstance(value, Dim3) else Dim3(value, ONE, ONE)
        if kind is None or not isinstance(value, Number):
            raise UnknownValueError
        return converted(value, kind)

    def _sizeof(self, node: Node, place: Place, frame: Frame, depth: int) -> Value:
        kind = node.child_by_field_name("type")
        if kind is not None:
            name = text_of(kind)
            variable = self.unit.variable(name, place)
            if variable is None:
                return Number(self.size(name, frame), "u64")
            return Number(self._size_of_variable(variable, place, frame), "u64")
        value = node.child_by_field_name("value")
        if value is None:
            raise UnknownValueError
        target, taken = uncast(value), 0
        while target.type in ("subscript_expression", "pointer_expression"):
            inner = target.child_by_field_name("argument")
            if inner is None or text_of(target).startswith("&"):
                raise UnknownValueError
            target, taken = uncast(inner), taken + 1
        if target.type != "identifier":
            raise UnknownValueError
        variable = self.unit.variable(text_of(target), place)
        if variable is None:  # the name of a type in parentheses
            return Number(self.size(text_of(target), frame), "u64")
        if not taken:
            return Number(self._size_of_variable(variable, place, frame), "u64")
        levels = text_of(variable.declarator).partition("=")[0]
        if taken != levels.count("*") + levels.count("["):
            raise UnknownValueError
        return Number(self.size(variable.type_text, frame), "u64")

    def _size_of_variable(self, variable: Variable, place: Place, frame: Frame) -> int:
        declarator, count = variable.declarator, 1
        if declarator.type == "init_declarator":
            declarator = declarator.child_by_field_name("declarator") or declarator
        while declarator.type == "array_declarator":
            extent = declarator.child_by_field_name("size")
            if extent is None or variable.kind == "parameter":
                raise UnknownValueError
            count *= int(self.number(extent, variable.place, frame).value)
            declarator = declarator.child_by_field_name("declarator") or declarator
        if declarator.type == "pointer_declarator":
            return 8 * count
        return self.size(variable.type_text, frame) * count

    def _member(self, node: Node, place: Place, frame: Frame, depth: int) -> Value:
        path, one = "", node
        while one.type == "field_expression":
            path = f".{text_of(one.child_by_field_name('field'))}{path}"
            inner = one.child_by_field_name("argument")
            if inner is None or text_of(one)[len(text_of(inner)) :].lstrip().startswith("->"):
                raise UnknownValueError
            one = inner
        if one.type == "identifier":
            name = text_of(one)
            if name in frame.values:
                return self._field(frame.values[name], path)
            return self.name(name, place, frame, depth, path)
        return self._field(self.value(one, place, frame, depth), path)

    def _call(self, node: Node, place: Place, frame: Frame, depth: int) -> Value:
        function, listed = (node.child_by_field_name(x) for x in ("function", "arguments"))
        if function is None or listed is None:
            raise UnknownValueError
        arguments = [one for one in listed.named_children if one.type != "comment"]
        if cast := re.match(r"static_cast\s*<(.*)>$", text_of(function), re.DOTALL):
            return self._as(cast[1], self._only(arguments, place, frame, depth), frame)
        name = name_of_callee(function)
        macro = self.unit.macros.get(name)
        if macro is not None and macro.parameters is not None:
            return self._expanded(macro.parameters, macro.body, arguments, place, frame, depth)
        if name == "dim3":
            return self._list(listed, place, frame, depth)
        if name in self.unit.functions:
            return self._called(name, arguments, place, frame, depth)
        kind = self.kind(text_of(function), frame)
        if kind is not None:
            return self._as(kind_name(kind), self._only(arguments, place, frame, depth), frame)
        numbers = [self.number(one, place, frame, depth) for one in arguments]
        return library_function(name, numbers)

    def _only(self, arguments: list[Node], place: Place, frame: Frame, depth: int) -> Value:
        if len(arguments) != 1:
            raise UnknownValueError
        return self.value(arguments[0], place, frame, depth)

    def _expanded(
        self,
        parameters: tuple[str, ...],
        body: str,
        arguments: list[Node],
        place: Place,
        frame: Frame,
        depth: int,
    ) -> Value:
        if len(parameters) != len(arguments) or "#" in body:
            raise UnknownValueError
        texts = dict(zip(parameters, map(text_of, arguments), strict=True))
        filled = re.sub(r"\b[A-Za-z_]\w*", lambda m: texts.get(m[0], m[0]), body)
        inner = expression(filled)
        if inner is None:
            raise UnknownValueError
        return self.value(inner, place, frame, depth)

    def _called(
        self, name: str, arguments: list[Node], place: Place, frame: Frame, depth: int
    ) -> Value:
        """Value of a function of declarations and one return."""
        functions = self.unit.functions[name]
        body = functions[0].node.child_by_field_name("body")
        names = functions[0].parameter_names
        if len(functions) != 1 or body is None or len(names) != len(arguments):
            raise UnknownValueError
        function = functions[0]
        values: dict[str, Value] = {}
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            own, kind_node = name_of_declarator(parameter), parameter.child_by_field_name("type")
            value = self.value(argument, place, frame, depth)
            kind = self.kind(text_of(kind_node), frame) if kind_node is not None else None
            if own is None:
                continue
            if isinstance(value, Number) and kind is not None and kind != "dim3":
                value = converted(value, kind)
            elif isinstance(value, Number) and text_of(kind_node) not in function.templates:
                raise UnknownValueError
            values[own] = value
        inner = Frame(function=function, values=values)
        for statement in body.named_children:
            if statement.type == "return_statement" and statement.named_child_count == 1:
                at = Place(file=function.file, at=statement.start_byte)
                found = self.value(statement.named_children[0], at, inner, depth)
                kind_node = function.node.child_by_field_name("type")
                kind = self.kind(text_of(kind_node), inner) if kind_node is not None else None
                if isinstance(found, Number) and kind not in (None, "dim3"):
                    return converted(found, str(kind))
                return found
            if statement.type not in ("declaration", "comment"):
                raise UnknownValueError
        raise UnknownValueError


Handler = Callable[[Evaluator, Node, Place, Frame, int], Value]
_HANDLERS: dict[str, Handler] = {
    "number_literal": Evaluator._literal,
    "true": Evaluator._truth,
    "false": Evaluator._truth,
    "identifier": Evaluator._identifier,
    "type_identifier": Evaluator._identifier,
    "qualified_identifier": Evaluator._qualified,
    "parenthesized_expression": Evaluator._inside,
    "type_descriptor": Evaluator._inside,
    "initializer_list": Evaluator._list,
    "compound_literal_expression": Evaluator._inside,
    "unary_expression": Evaluator._unary,
    "binary_expression": Evaluator._binary,
    "conditional_expression": Evaluator._conditional,
    "cast_expression": Evaluator._cast,
    "sizeof_expression": Evaluator._sizeof,
    "field_expression": Evaluator._member,
    "call_expression": Evaluator._call,
}


def kind_name(kind: str) -> str:
    """A C type of this kind."""
    return next((name for name, known in _C_TYPES.items() if known == kind), kind)


def literal(text: str) -> Number:
    """The number that a literal of C++ writes. Raises UnknownValueError."""
    plain = text.replace("'", "")
    whole = integer_of(plain)
    if whole is not None:
        suffix = (re.search(r"[uUlLzZ]+$", plain) or [""])[0].lower()
        unsigned, long = "u" in suffix, "l" in suffix or "z" in suffix
        is_hex = plain.lower().startswith("0x")
        if not long and whole < 2**31 and not unsigned:
            return Number(whole, "i32")
        if not long and whole < 2**32 and (unsigned or is_hex):
            return Number(whole, "u32")
        return checked(whole, "u64" if unsigned else "i64")
    match = re.fullmatch(r"([0-9.]+(?:[eE][-+]?\d+)?)([fFlL]?)", plain)
    if match is None:
        raise UnknownValueError
    return checked(float(match[1]), "f32" if match[2] in ("f", "F") else "f64")


def promoted(kind: str) -> str:
    return kind if kind in _RANKS else "i32"


def checked(value: int | float, kind: str) -> Number:
    """A result of arithmetic. Raises UnknownValueError where a signed integer overflows."""
    if kind[0] == "f":
        try:
            rounded = float(np.float32(value)) if kind == "f32" else float(value)
        except OverflowError:
            raise UnknownValueError from None
        if not math.isfinite(rounded):
            raise UnknownValueError
        return Number(rounded, kind)
    bits, whole = _BITS[kind], int(value)
    if kind[0] == "u":
        return Number(whole % 2**bits, kind)
    if not -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
        raise UnknownValueError
    return Number(whole, kind)


def converted(value: Number, kind: str) -> Number:
    """A number as another type; what does not fit a signed one is unknown."""
    if kind == "b8":
        return Number(int(bool(value.value)), kind)
    if kind[0] != "f" and value.is_float:
        whole = math.trunc(value.value)
        if kind[0] == "u" and whole < 0:
            raise UnknownValueError
        return checked(whole, kind)
    return checked(value.value, kind)


def combined(operator: str, a: Number, b: Number) -> Number:  # noqa: PLR0911
    """Result of a binary operator of C."""
    if operator in ("&&", "||"):
        return Number(int(bool(b.value)), "b8")  # the left side did not decide
    if operator in ("<<", ">>"):
        kind = promoted(a.kind)
        if a.is_float or b.is_float or not 0 <= b.value < _BITS[kind]:
            raise UnknownValueError
        n = int(b.value)
        return checked(int(a.value) << n if operator == "<<" else int(a.value) >> n, kind)
    kind = max(promoted(a.kind), promoted(b.kind), key=_RANKS.index)
    a, b = converted(a, kind), converted(b, kind)
    x, y = a.value, b.value
    comparisons: dict[str, Callable[[float, float], bool]] = {
        "<": lambda p, q: p < q,
        ">": lambda p, q: p > q,
        "<=": lambda p, q: p <= q,
        ">=": lambda p, q: p >= q,
        "==": lambda p, q: p == q,
        "!=": lambda p, q: p != q,
    }
    if operator in comparisons:
        return Number(int(comparisons[operator](x, y)), "b8")
    if operator in ("/", "%"):
        if not y:
            raise UnknownValueError
        if kind[0] == "f":
            if operator == "%":
                raise UnknownValueError
            return checked(x / y, kind)
        quotient = abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1)
        return checked(quotient if operator == "/" else int(x) - quotient * int(y), kind)
    if operator in ("+", "-", "*"):
        result: int | float = x + y if operator == "+" else x - y if operator == "-" else x * y
        return checked(result, kind)
    if operator in ("&", "|", "^") and kind[0] != "f":
        p, q = int(x), int(y)
        return checked(p & q if operator == "&" else p | q if operator == "|" else p ^ q, kind)
    raise UnknownValueError


def library_function(name: str, numbers: list[Number]) -> Number:
    """Result of a function of the standard library. Raises UnknownValueError for another one."""
    rounding = {"ceil": math.ceil, "floor": math.floor, "ceilf": math.ceil, "floorf": math.floor}
    if name in rounding and len(numbers) == 1:
        single = name.endswith("f") or numbers[0].kind == "f32"
        return checked(float(rounding[name](numbers[0].value)), "f32" if single else "f64")
    if name in ("min", "max", "fmin", "fmax", "MIN", "MAX") and len(numbers) == 2:
        a, b = numbers
        kind = max(promoted(a.kind), promoted(b.kind), key=_RANKS.index)
        pick = min if name.lower().endswith("min") else max
        return pick(converted(a, kind), converted(b, kind), key=lambda one: one.value)
    if name == "abs" and len(numbers) == 1:
        return checked(abs(numbers[0].value), promoted(numbers[0].kind))
    if name in ("sqrt", "sqrtf") and len(numbers) == 1 and numbers[0].value >= 0:
        return checked(math.sqrt(numbers[0].value), "f32" if name == "sqrtf" else "f64")
    if name == "pow" and len(numbers) == 2:
        return checked(float(numbers[0].value) ** float(numbers[1].value), "f64")
    raise UnknownValueError
