"""Expressions of host code, a function per kind of node of the parse tree.

Each raises UnknownValueError for a value that may be another one at run time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tree_sitter import Node

from toolkit.launch.host_declarations import Assumption, HostVariable, SourcePlace
from toolkit.launch.host_members import static_member
from toolkit.launch.host_nodes import (
    expression,
    name_of_callee,
    name_of_declarator,
    only_child,
    text_of,
    uncast,
    without_comments,
)
from toolkit.launch.host_numbers import (
    ONE,
    Dim3,
    Number,
    UnknownValueError,
    Value,
    checked,
    combined,
    converted,
    kind_name,
    library_function,
    literal,
    promoted,
)
from toolkit.launch.host_types import Frame
from toolkit.machine_code.source_tree import walk

if TYPE_CHECKING:
    from toolkit.launch.host_values import Evaluator


# Results of functions that read the command line, where it has no arguments. A header may define
# them, as helper_string.h of NVIDIA's samples does.
OF_NO_ARGUMENTS = {
    "getopt": Number(-1, "i32"),
    "getopt_long": Number(-1, "i32"),
    "checkCmdLineFlag": Number(0, "b8"),
}
NO_ARGUMENTS = Assumption(words="a run without arguments (argc = 1)")


def field_of(value: Value, path: str) -> Value:
    """The field ".x" of a dim3; the value itself for an empty path."""
    if not path:
        return value
    if isinstance(value, Dim3) and path in (".x", ".y", ".z"):
        found: Number = getattr(value, path[1:])
        return found
    raise UnknownValueError


def _literal(
    evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int
) -> Value:
    return literal(text_of(node))


def _truth(evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int) -> Value:
    return Number(int(node.type == "true"), "b8")


def _identifier(
    evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int
) -> Value:
    return evaluator.name(text_of(node), place, frame, depth)


def _qualified(
    evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int
) -> Value:
    scope, _, name = text_of(node).rpartition("::")
    member = static_member(evaluator, scope, name, place, frame, depth) if scope else None
    if member is not None:
        return member
    variable = evaluator.unit.variable(name, place)
    is_local = variable is not None and not variable.is_global
    if is_local or name in frame.values or name in frame.templates:
        raise UnknownValueError  # it means what is declared in its scope
    return evaluator.name(name, place, frame, depth)


def _inside(
    evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int
) -> Value:
    inner = without_comments(node)
    if len(inner) != 1:
        raise UnknownValueError
    return evaluator.value(inner[0], place, frame, depth)


def _list(evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int) -> Value:
    parts = [evaluator.number(one, place, frame, depth) for one in without_comments(node)]
    if not 1 <= len(parts) <= 3:
        raise UnknownValueError
    x, y, z = (*parts, ONE, ONE)[:3]
    return Dim3(x, y, z)


def _unary(evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int) -> Value:
    sign = node.children[0].type
    one = evaluator.number(node.children[-1], place, frame, depth)
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


def _binary(
    evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int
) -> Value:
    left, right = (node.child_by_field_name(side) for side in ("left", "right"))
    if left is None or right is None:
        raise UnknownValueError
    operator = text_of(node.child_by_field_name("operator"))
    a = evaluator.number(left, place, frame, depth)
    if operator in ("&&", "||") and bool(a.value) == (operator == "||"):
        return Number(int(operator == "||"), "b8")
    return combined(operator, a, evaluator.number(right, place, frame, depth))


def _conditional(
    evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int
) -> Value:
    parts = [node.child_by_field_name(x) for x in ("condition", "consequence", "alternative")]
    condition, yes, no = parts
    if condition is None or yes is None or no is None:
        raise UnknownValueError
    chosen = yes if evaluator.number(condition, place, frame, depth).value else no
    return evaluator.value(chosen, place, frame, depth)


def _cast(evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int) -> Value:
    kind, value = (node.child_by_field_name(x) for x in ("type", "value"))
    if kind is None or value is None:
        raise UnknownValueError
    return _as(evaluator, text_of(kind), evaluator.value(value, place, frame, depth), frame)


def _as(evaluator: Evaluator, type_text: str, value: Value, frame: Frame) -> Value:
    kind = evaluator.types.kind(type_text, frame)
    if kind == "dim3":
        return value if isinstance(value, Dim3) else Dim3(value, ONE, ONE)
    if kind is None or not isinstance(value, Number):
        raise UnknownValueError
    return converted(value, kind)


def _sizeof(
    evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int
) -> Value:
    kind = node.child_by_field_name("type")
    if kind is not None:
        name = text_of(kind)
        variable = evaluator.unit.variable(name, place)
        if variable is None:
            return Number(evaluator.types.size(name, frame), "u64")
        return Number(evaluator.types.size_of_variable(variable, frame), "u64")
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
    variable = evaluator.unit.variable(text_of(target), place)
    if variable is None:  # the name of a type in parentheses
        return Number(evaluator.types.size(text_of(target), frame), "u64")
    if not taken:
        return Number(evaluator.types.size_of_variable(variable, frame), "u64")
    levels = text_of(variable.declarator).partition("=")[0]
    if taken != levels.count("*") + levels.count("["):
        raise UnknownValueError
    return Number(evaluator.types.size(variable.type_text, frame), "u64")


def _member(
    evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int
) -> Value:
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
            return field_of(frame.values[name], path)
        return evaluator.name(name, place, frame, depth, path)
    return field_of(evaluator.value(one, place, frame, depth), path)


def _call(  # noqa: PLR0911
    evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int
) -> Value:
    function, listed = (node.child_by_field_name(x) for x in ("function", "arguments"))
    if function is None or listed is None:
        raise UnknownValueError
    arguments = without_comments(listed)
    if cast := re.match(r"static_cast\s*<(.*)>$", text_of(function), re.DOTALL):
        return _as(evaluator, cast[1], _only(evaluator, arguments, place, frame, depth), frame)
    name = name_of_callee(function)
    if name in OF_NO_ARGUMENTS:
        evaluator.assume(NO_ARGUMENTS)
        return OF_NO_ARGUMENTS[name]
    macro = evaluator.unit.macros.get(name)
    if macro is not None and macro.parameters is not None:
        return _expanded(evaluator, macro.parameters, macro.body, arguments, place, frame, depth)
    if name == "dim3":
        return _list(evaluator, listed, place, frame, depth)
    if name in evaluator.unit.functions:
        return _called(evaluator, name, arguments, place, frame, depth)
    kind = evaluator.types.kind(text_of(function), frame)
    if kind is not None:
        return _as(
            evaluator, kind_name(kind), _only(evaluator, arguments, place, frame, depth), frame
        )
    numbers = [evaluator.number(one, place, frame, depth) for one in arguments]
    return library_function(name, numbers)


def _assignment(
    evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int
) -> Value:
    """Value of what is assigned, as of `(option = getopt(...)) != -1`."""
    value = node.child_by_field_name("right")
    if value is None or text_of(node.child_by_field_name("operator")) != "=":
        raise UnknownValueError
    return evaluator.value(value, place, frame, depth)


def _element(
    evaluator: Evaluator, node: Node, place: SourcePlace, frame: Frame, depth: int
) -> Value:
    """Value of an element of an array that is declared with its values and only read."""
    array, listed = (node.child_by_field_name(x) for x in ("argument", "indices"))
    indices = without_comments(listed)
    variable = evaluator.unit.variable(text_of(array), place)
    if variable is None or len(indices) != 1 or variable.declarator.type != "init_declarator":
        raise UnknownValueError
    kind = evaluator.types.kind(variable.type_text, frame)
    values = variable.declarator.child_by_field_name("value")
    if values is None or values.type != "initializer_list" or kind in (None, "dim3"):
        raise UnknownValueError
    if not _is_only_read(evaluator, variable):
        raise UnknownValueError
    elements = without_comments(values)
    at = int(evaluator.number(indices[0], place, frame, depth).value)
    if not 0 <= at < len(elements):
        raise UnknownValueError
    return converted(evaluator.number(elements[at], variable.place, frame, depth), str(kind))


def _is_only_read(evaluator: Evaluator, array: HostVariable) -> bool:
    """True if an array is constant, or local and only its elements are read."""
    before, _, after = text_of(array.declaration).partition(array.name)
    if "const" in before.split() and "[" in after.partition("=")[0]:
        return True
    function = evaluator.unit.function_at(array.place)
    if function is None:
        return False
    named = [one for one in walk(function.node) if text_of(one) == array.name]
    return all(_is_read(one) for one in named if one.type == "identifier")


def _is_read(name: Node) -> bool:
    """True for `x[i]` that is not written, for `sizeof x`, and for the declaration `x[2]`."""
    outer = name.parent
    while outer is not None and outer.type == "parenthesized_expression":
        outer = outer.parent
    if outer is None or outer.type in ("array_declarator", "sizeof_expression"):
        return outer is not None
    if outer.type != "subscript_expression" or outer.child_by_field_name("argument") != name:
        return False
    around = outer.parent
    is_written = around is not None and (
        around.type in ("update_expression", "pointer_expression", "subscript_expression")
        or (around.type == "assignment_expression" and around.child_by_field_name("left") == outer)
    )
    return not is_written


def _only(
    evaluator: Evaluator, arguments: list[Node], place: SourcePlace, frame: Frame, depth: int
) -> Value:
    if len(arguments) != 1:
        raise UnknownValueError
    return evaluator.value(arguments[0], place, frame, depth)


def _expanded(
    evaluator: Evaluator,
    parameters: tuple[str, ...],
    body: str,
    arguments: list[Node],
    place: SourcePlace,
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
    return evaluator.value(inner, place, frame, depth)


def _called(
    evaluator: Evaluator,
    name: str,
    arguments: list[Node],
    place: SourcePlace,
    frame: Frame,
    depth: int,
) -> Value:
    """Value of a function of declarations and one return."""
    functions = evaluator.unit.functions[name]
    body = functions[0].node.child_by_field_name("body")
    names = functions[0].parameter_names
    if len(functions) != 1 or body is None or len(names) != len(arguments):
        raise UnknownValueError
    function = functions[0]
    values: dict[str, Value] = {}
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        own, kind_node = name_of_declarator(parameter), parameter.child_by_field_name("type")
        value = evaluator.value(argument, place, frame, depth)
        kind = evaluator.types.kind(text_of(kind_node), frame) if kind_node is not None else None
        if own is None:
            continue
        if isinstance(value, Number) and kind is not None and kind != "dim3":
            value = converted(value, kind)
        elif isinstance(value, Number) and text_of(kind_node) not in function.templates:
            raise UnknownValueError
        values[own] = value
    inner = Frame(function=function, values=values)
    for statement in body.named_children:
        returned = only_child(statement) if statement.type == "return_statement" else None
        if returned is not None:
            at = SourcePlace(file=function.file, at=statement.start_byte)
            found = evaluator.value(returned, at, inner, depth)
            kind_node = function.node.child_by_field_name("type")
            kind = (
                evaluator.types.kind(text_of(kind_node), inner) if kind_node is not None else None
            )
            if isinstance(found, Number) and kind not in (None, "dim3"):
                return converted(found, str(kind))
            return found
        if statement.type not in ("declaration", "comment"):
            raise UnknownValueError
    raise UnknownValueError


Handler = Callable[["Evaluator", Node, SourcePlace, Frame, int], Value]
HANDLERS: dict[str, Handler] = {
    "number_literal": _literal,
    "true": _truth,
    "false": _truth,
    "identifier": _identifier,
    "type_identifier": _identifier,
    "qualified_identifier": _qualified,
    "parenthesized_expression": _inside,
    "type_descriptor": _inside,
    "initializer_list": _list,
    "compound_literal_expression": _inside,
    "unary_expression": _unary,
    "binary_expression": _binary,
    "conditional_expression": _conditional,
    "cast_expression": _cast,
    "sizeof_expression": _sizeof,
    "field_expression": _member,
    "assignment_expression": _assignment,
    "call_expression": _call,
    "subscript_expression": _element,
}
