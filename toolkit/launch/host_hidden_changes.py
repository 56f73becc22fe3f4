"""Changes of variables of host code that no assignment to their names shows.

A reference, a pointer, an operator or a macro may change a variable. What it is changed to is not
followed: the value of the variable is unknown from there on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tree_sitter import Node

from toolkit.launch.host_directives import Macro
from toolkit.launch.host_nodes import (
    constructor_arguments,
    launch_of,
    only_child,
    text_of,
    uncast,
    without_comments,
)
from toolkit.machine_code.source_tree import tree_of, walk

MOST_NESTED = 4  # macros in macros
_ASSIGNS = r"(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--"
# A struct that may keep a reference, or a pointer, to what it is made of
_KEEPS_REFERENCE = re.compile(r"(?<!&)&\s*\w+\s*[;,)]|\*\s*\w+\s*;")


def lent_names(node: Node, structs: Mapping[str, Node]) -> Iterator[str]:
    """Names of variables that something else may change from this node on: a pointer to them, or a
    reference. Arguments of calls are not among them."""
    is_address = node.type == "pointer_expression" and text_of(node).startswith("&")
    if is_address and not _is_argument(node) and not _is_read_only(node):
        yield from _bases(node.child_by_field_name("argument"))
    if node.type == "lambda_capture_initializer" and text_of(node).startswith("&"):
        yield from _bases(node.named_children[-1])
    if node.type == "declaration" and not _is_constant(node):
        kind = text_of(node.child_by_field_name("type")).removeprefix("struct ")
        keeps = kind in structs and _KEEPS_REFERENCE.search(text_of(structs[kind]))
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value")
            inner = declarator.child_by_field_name("declarator")
            if inner is not None and inner.type == "reference_declarator":
                yield from _bases(value)
            elif keeps:
                given = constructor_arguments(declarator) or without_comments(value)
                for one in given:
                    yield text_of(one) if one.type == "type_identifier" else ""
                    yield from _bases(one)


def extracted_names(node: Node) -> Iterator[str]:
    """Names that `stream >> x` reads: the result of a shift would be used."""
    outer = node.parent
    while outer is not None and outer.type in ("parenthesized_expression", "unary_expression"):
        outer = outer.parent
    if outer is None:
        return
    operator = text_of(outer.child_by_field_name("operator"))
    conditions = ("expression_statement", "condition_clause", "while_statement", "if_statement")
    if outer.type in conditions or operator in ("&&", "||", ">>"):
        yield from _bases(node.child_by_field_name("right"))


def written_by_macro(
    node: Node, macros: Mapping[str, Macro | None], depth: int = MOST_NESTED
) -> Iterator[str]:
    """Names that a macro may change: what it assigns, and arguments that it assigns.

    So do macros in the text that it becomes.
    """
    name = text_of(node.child_by_field_name("function") if node.type == "call_expression" else node)
    macro = macros.get(name)
    if macro is None:
        return
    listed = without_comments(node.child_by_field_name("arguments"))
    arguments = dict(zip(macro.parameters or (), listed, strict=False))
    for found in re.findall(
        rf"(\w+)\s*\)?\s*(?:{_ASSIGNS})|(?:\+\+|--|&)\s*\(?\s*(\w+)", macro.body
    ):
        written = found[0] or found[1]
        if written in arguments:
            yield from _bases(arguments[written])
        elif not written.isdigit():
            yield written
    filled = expanded(macro, list(map(text_of, listed)))
    is_nested = filled is not None and any(map(macros.get, re.findall(r"\w+", macro.body)))
    if is_nested and depth > 1:
        for inner in walk(tree_of(f"void f() {{ {filled}; }}")):
            if inner.type in ("call_expression", "identifier"):
                yield from written_by_macro(inner, macros, depth - 1)


def launches_of_macro(
    call: Node, macros: Mapping[str, Macro | None], depth: int = MOST_NESTED
) -> Iterator[Node]:
    """Launches that a macro with parameters stands for, as calls of the text that it becomes."""
    macro = macros.get(text_of(call.child_by_field_name("function")))
    if macro is None or macro.parameters is None or depth == 0:
        return
    filled = expanded(
        macro, [text_of(x) for x in without_comments(call.child_by_field_name("arguments"))]
    )
    if filled is None or "(" not in filled:
        return
    for node in walk(tree_of(f"void f() {{ {filled}; }}")):
        if node.type != "call_expression":
            continue
        if launch_of(node) is not None:
            yield node
        else:
            yield from launches_of_macro(node, macros, depth - 1)


def expanded(macro: Macro, arguments: Sequence[str]) -> str | None:
    """Text of a macro with its arguments in place; None if it makes names of them, or if their
    number is wrong."""
    names = list(macro.parameters or ())
    body = re.sub(r",\s*##\s*__VA_ARGS__", ", __VA_ARGS__", macro.body)
    texts = dict(zip(names, arguments, strict=False))
    if names and names[-1].endswith("..."):
        rest = names[-1].removesuffix("...").strip() or "__VA_ARGS__"
        texts[rest] = ", ".join(arguments[len(names) - 1 :])
    elif len(names) != len(arguments):
        return None
    if "#" in body:
        return None
    return re.sub(r"\b[A-Za-z_]\w*", lambda found: texts.get(found[0], found[0]), body)


def attribute_target(arguments: Sequence[Node]) -> Iterator[str]:
    """Name of the variable that cudaDeviceGetAttribute writes, by its arguments."""
    target = uncast(arguments[0]) if len(arguments) == 3 else None
    if target is not None and target.type == "pointer_expression":
        yield from _bases(target.child_by_field_name("argument"))


def target_names(target: Node | None) -> Iterator[str]:
    """Names of the variables that `(c ? a : b) = value` or `(a, b) = value` may change."""
    yield from _bases(target)


def _bases(node: Node | None) -> Iterator[str]:
    """Names of the variables that an expression may be, or be a field of."""
    if node is None:
        return
    node = uncast(node)
    match node.type:
        case "identifier":
            yield text_of(node)
        case "field_expression":
            if "->" not in text_of(node):
                yield from _bases(node.child_by_field_name("argument"))
        case "conditional_expression":
            yield from _bases(node.child_by_field_name("consequence"))
            yield from _bases(node.child_by_field_name("alternative"))
        case "comma_expression":
            yield from _bases(node.child_by_field_name("right"))
        case "assignment_expression" | "update_expression":
            yield from _bases(node.child_by_field_name("left") or only_child(node))


def _is_argument(node: Node) -> bool:
    """True for an argument of a call, also in casts, which is a use of its own.

    What is made of an argument, as in `Parser parser(&n)`, may keep it.
    """
    outer = node.parent
    while outer is not None and outer.type in ("cast_expression", "parenthesized_expression"):
        outer = outer.parent
    if outer is None or outer.type != "argument_list" or outer.parent is None:
        return False
    return outer.parent.type == "call_expression"


def _is_read_only(node: Node) -> bool:
    """True for what initializes a pointer to constants, or an array of arguments of a launch."""
    outer = node.parent
    while outer is not None and outer.type not in ("declaration", "compound_statement"):
        outer = outer.parent
    if outer is None or outer.type != "declaration":
        return False
    is_list = any(one.type == "initializer_list" for one in walk(outer))
    is_of_arguments = text_of(outer.child_by_field_name("type")) == "void" and is_list
    return _is_constant(outer) or is_of_arguments


def _is_constant(declaration: Node) -> bool:
    qualifiers = (one for one in declaration.children if one.type == "type_qualifier")
    return any(text_of(one) in ("const", "constexpr") for one in qualifiers)
