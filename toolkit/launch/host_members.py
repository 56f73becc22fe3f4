"""Static constants of structs: `Tile::rows`, `Packed<half>::size`, and enumerators of a struct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tree_sitter import Node

from toolkit.launch.host_declarations import CONSTANT, SourcePlace
from toolkit.launch.host_nodes import default_of, template_parameters, text_of, without_comments
from toolkit.launch.host_numbers import Number, UnknownValueError, Value, converted
from toolkit.launch.host_types import Frame
from toolkit.launch.host_unit import template_name
from toolkit.machine_code.source_tree import tree_of, walk

if TYPE_CHECKING:
    from toolkit.launch.host_values import Evaluator


def static_member(
    evaluator: Evaluator, scope: str, member: str, place: SourcePlace, frame: Frame, depth: int
) -> Value | None:
    """Value of a constant of the struct that `scope` names at a place; None if it names none.

    Raises UnknownValueError if the struct has no such constant, or if its value is not known.
    """
    text = evaluator.types.type_text(scope, frame)
    struct = _struct_named(evaluator, text)
    if struct is None:
        return None
    body = evaluator.unit.structs[struct].child_by_field_name("body")
    outer = evaluator.unit.structs[struct].parent
    is_template = outer is not None and outer.type == "template_declaration"
    names = list(map(template_name, template_parameters(outer))) if outer and is_template else []
    templates = {
        name: (node, place, frame) for name, node in zip(names, _arguments_of(text), strict=False)
    }
    constants = dict(_constants(body)) if body is not None else {}
    at = evaluator.unit.struct_files[struct]
    return _value(evaluator, constants, member, at, Frame(templates=templates), depth)


def _struct_named(evaluator: Evaluator, text: str) -> str | None:
    """Name of the struct or of the template that a type means; None if it means none.

    Raises UnknownValueError for a template with specializations, which are not told apart.
    """
    structs, name = evaluator.unit.structs, "".join(text.split()).rpartition("::")[2]
    if name in structs:
        return name
    plain = name.partition("<")[0]
    if any(one.startswith(f"{plain}<") for one in structs):
        raise UnknownValueError
    return plain if plain in structs else None


def _arguments_of(text: str) -> list[Node]:
    """Template arguments that the name of a type has."""
    listed = (x for x in walk(tree_of(f"{text} x;")) if x.type == "template_argument_list")
    return without_comments(next(listed, None))


def _constants(body: Node) -> list[tuple[str, tuple[Node | None, Node]]]:
    """Constants of a struct by their names: the node of the type, if any, and that of the value."""
    found: list[tuple[str, tuple[Node | None, Node]]] = []
    for one in body.named_children:
        words = {text_of(x) for x in one.children}
        if one.type == "field_declaration" and "static" in words and words & CONSTANT:
            kind = one.child_by_field_name("type")
            for name in one.children_by_field_name("declarator"):
                if (value := default_of(one, name)) is not None:
                    found.append((text_of(name), (kind, value)))
        for inner in walk(one) if one.type != "function_definition" else ():
            enumerator, value = (inner.child_by_field_name(x) for x in ("name", "value"))
            if inner.type == "enumerator" and value is not None:
                found.append((text_of(enumerator), (None, value)))
    return found


def _value(
    evaluator: Evaluator,
    constants: dict[str, tuple[Node | None, Node]],
    member: str,
    file: int,
    frame: Frame,
    depth: int,
) -> Value:
    if member not in constants or depth == 0:
        raise UnknownValueError
    kind_node, value = constants[member]
    used = {text_of(one) for one in walk(value) if one.type == "identifier"} & constants.keys()
    values = {x: _value(evaluator, constants, x, file, frame, depth - 1) for x in sorted(used)}
    inside = Frame(templates=frame.templates, values=values)
    place = SourcePlace(file=file, at=value.start_byte)
    found = evaluator.value(value, place, inside, depth - 1)
    kind = evaluator.types.kind(text_of(kind_node), inside) if kind_node is not None else None
    return converted(found, kind) if isinstance(found, Number) and kind else found
