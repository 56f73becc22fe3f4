"""Calls that reach a function of host code, and what its parameters mean in each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tree_sitter import Node

from toolkit.launch.host_declarations import HostCall, HostFunction, HostVariable, SourcePlace
from toolkit.launch.host_nodes import (
    call_arguments,
    named_struct,
    template_arguments,
    text_of,
    type_made,
    uncast,
)
from toolkit.launch.host_types import OUTSIDE, Frame
from toolkit.launch.host_unit import HostUnit

MOST_FRAMES = 16  # calls of a function that launches
MOST_CALLERS = 8  # functions between `main` and a launch


@dataclass(frozen=True)
class HostCalls:
    """Calls of the functions of a unit."""

    unit: HostUnit

    def frames(self, function: HostFunction | None, depth: int = MOST_CALLERS) -> list[Frame]:
        """Calls that reach a function, from `main` on; one without arguments if none is seen."""
        if function is None:
            return [OUTSIDE]
        calls = [
            one
            for one in self.unit.calls
            if one.name == function.name and one.launch is None and _fits(one, function)
        ]
        if not calls or depth == 0:
            return [Frame(function=function)]
        found = []
        for call in calls:
            caller = self.unit.function_at(call.place)
            if caller is function:  # it calls itself
                return [Frame(function=function)]
            for outer in self.frames(caller, depth - 1):
                found.append(self.called(function, call, outer))
                if len(found) > MOST_FRAMES:
                    return [Frame(function=function)]
        return found

    def called(self, function: HostFunction, call: HostCall, outer: Frame) -> Frame:
        """The frame of a call: arguments and template arguments of the callee."""
        nodes = call_arguments(call.node)
        arguments = {}
        for position, name in enumerate(function.parameter_names):
            if name is None:
                continue
            if position < len(nodes):
                arguments[name] = (nodes[position], call.place, outer)
            elif default := function.parameters[position].child_by_field_name("default_value"):
                arguments[name] = (default, SourcePlace(file=function.file, at=0), OUTSIDE)
        written = template_arguments(call.node.child_by_field_name("function"))
        templates = {
            name: (node, call.place, outer)
            for name, node in zip(function.templates, written, strict=False)
        }
        frame = Frame(function=function, arguments=arguments, templates=templates)
        for name, node in deduced(function, nodes, self.unit, call.place).items():
            templates.setdefault(name, (node, call.place, outer))
        return replace(frame, templates=templates)


def _fits(call: HostCall, function: HostFunction) -> bool:
    """True if the number of arguments is right."""
    count = len(call_arguments(call.node))
    needed = [x for x in function.parameters if x.child_by_field_name("default_value") is None]
    if text_of(function.parameters[0] if function.parameters else None) == "void":
        return count == 0
    return len(needed) <= count <= len(function.parameters)


def deduced(
    function: HostFunction, arguments: list[Node], unit: HostUnit, place: SourcePlace
) -> dict[str, Node]:
    """Template parameters that follow from the types of arguments: `T *x` of a `float *`.

    So does `B` of `std::bool_constant<B>`, if `std::bool_constant<true>{}` is passed.
    """
    found: dict[str, Node] = {}
    for parameter, argument in zip(function.parameters, arguments, strict=False):
        kind = parameter.child_by_field_name("type")
        made = type_made(argument)
        if made is not None and text_of(made).partition("<")[0] == text_of(kind).partition("<")[0]:
            pairs = zip(template_arguments(kind), template_arguments(made), strict=False)
            for inner, given in pairs:
                if text_of(inner) in function.templates:
                    found.setdefault(text_of(inner), given)
            continue
        if kind is None or text_of(kind) not in function.templates:
            continue
        plain = uncast(argument)
        struct = named_struct(plain, unit.structs)
        if struct is not None and "*" not in text_of(parameter):
            found.setdefault(text_of(kind), struct)
            continue
        variable = unit.variable(text_of(plain), place) if plain.type == "identifier" else None
        theirs = variable.declaration.child_by_field_name("type") if variable else None
        if variable is None or theirs is None or text_of(theirs) == "auto":
            continue
        stars = [text_of(x).count("*") for x in (parameter, declared_part(variable))]
        if stars[0] == stars[1]:
            found.setdefault(text_of(kind), theirs)
    return found


def declared_part(variable: HostVariable) -> Node:
    declarator = variable.declarator
    if declarator.type == "init_declarator":
        return declarator.child_by_field_name("declarator") or declarator
    return declarator
