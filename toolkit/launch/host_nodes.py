"""Nodes of the parse tree of host code: their texts, names and arguments."""

from __future__ import annotations

import re
from collections.abc import Container

from tree_sitter import Node

from toolkit.machine_code.source_tree import tree_of


def text_of(node: Node | None) -> str:
    return node.text.decode(errors="replace") if node is not None and node.text is not None else ""


def expression(text: str) -> Node | None:
    """The tree of an expression; None if the text is none."""
    root = tree_of(f"int __value = {text};")
    for node in root.children:
        declarator = node.child_by_field_name("declarator")
        if node.type == "declaration" and declarator is not None and not root.has_error:
            return declarator.child_by_field_name("value")
    return None


def integer_of(text: str) -> int | None:
    """The value of an integer literal."""
    digits = re.sub(r"[uUlLzZ]+$", "", text.replace("'", ""))
    try:
        return int(digits, 8 if re.fullmatch(r"0[0-7]+", digits) else 0)
    except ValueError:
        return None


def uncast(node: Node) -> Node:
    """An expression without casts and parentheses around it."""
    while True:
        inner: Node | None = None
        if node.type == "cast_expression":
            inner = node.child_by_field_name("value")
        elif node.type == "parenthesized_expression":
            inner = only_child(node)
        elif node.type == "call_expression":
            function = text_of(node.child_by_field_name("function"))
            if re.match(r"(reinterpret|static|const)_cast\s*<", function):
                inner = only_child(node.child_by_field_name("arguments"))
        if inner is None:
            return node
        node = inner


def name_of_callee(function: Node) -> str:
    """`run` of `ns::run<256>`, `data` of `v.data`."""
    match function.type:
        case "template_function":
            return name_of_callee(function.child_by_field_name("name") or function.children[0])
        case "qualified_identifier":
            return name_of_callee(function.child_by_field_name("name") or function.children[-1])
        case "field_expression":
            return text_of(function.child_by_field_name("field"))
    return text_of(function)


def name_of_declarator(node: Node) -> str | None:
    """The name that a declarator, or a parameter declaration, declares."""
    found: Node | None = node
    while found is not None and found.type != "identifier":
        inner = found.child_by_field_name("declarator")
        if inner is None and found.type == "reference_declarator":
            inner = next((x for x in found.named_children if x.type == "identifier"), None)
        if found.type == "parenthesized_declarator":  # of a pointer to a function
            inner = only_child(found)
        found = inner
    return text_of(found) if found is not None else None


def is_function_pointer(declarator: Node) -> bool:
    """True for `(*run)(int)`."""
    inner = declarator.child_by_field_name("declarator")
    return inner is not None and inner.type == "parenthesized_declarator"


def constructor_arguments(declarator: Node) -> list[Node] | None:
    """The names in `dim3 grid(columns, rows)`, which parse as types of parameters; else None."""
    listed = declarator.child_by_field_name("parameters")
    found = []
    for one in without_comments(listed):
        kind = one.child_by_field_name("type")
        if kind is None or one.child_by_field_name("declarator") is not None:
            return None
        if kind.type not in ("type_identifier", "qualified_identifier"):
            return None
        found.append(kind)
    return found or None


def components_of(node: Node) -> list[Node]:
    """Expressions of the components of a dim3: of `dim3(x, y)`, or of what declares it."""
    if node.type == "function_declarator":
        return constructor_arguments(node) or []
    value = node.child_by_field_name("value") if node.type == "init_declarator" else node
    if value is None or value.type in ("argument_list", "initializer_list"):
        return without_comments(value)
    is_dim3 = text_of(value.child_by_field_name("function")) == "dim3"
    return call_arguments(value) if is_dim3 else []


def call_arguments(call: Node) -> list[Node]:
    """Arguments of a call, in order; none where directives stand among them."""
    found = without_comments(call.child_by_field_name("arguments"))
    return [] if any(one.type.startswith("preproc") for one in found) else found


def launch_of(call: Node) -> Node | None:
    """The configuration of a launch, grid and block; None of another call."""
    return next((one for one in call.children if one.type == "kernel_call_syntax"), None)


def outermost_call(call: Node) -> Node:
    """The call that has a call among its arguments, such as that of a macro that checks it."""
    outer = call.parent
    while outer is not None and outer.type in ("argument_list", "call_expression"):
        call = outer if outer.type == "call_expression" else call
        outer = outer.parent
    return call


def template_arguments(function: Node | None) -> list[Node]:
    """The template arguments that a call writes."""
    while function is not None and function.type == "qualified_identifier":
        function = function.child_by_field_name("name")
    listed = function.child_by_field_name("arguments") if function is not None else None
    if listed is None or listed.type != "template_argument_list":
        return []
    return without_comments(listed)


def template_parameters(declaration: Node) -> list[Node]:
    """The template parameters that a declaration declares."""
    return without_comments(declaration.child_by_field_name("parameters"))


def without_comments(listed: Node | None) -> list[Node]:
    """The named children of a node that may be absent, without comments between them."""
    found = listed.named_children if listed is not None else []
    return [one for one in found if one.type != "comment"]


def only_child(listed: Node | None) -> Node | None:
    """The one named child of a node; None if there are others, or none."""
    found = without_comments(listed)
    return found[0] if len(found) == 1 else None


def path_of(node: Node) -> tuple[Node, str]:
    """The variable of `x.y`, `x->y` or `x[i]`, and ".y", "->y" or "[]"."""
    path = ""
    while True:
        inner = node.child_by_field_name("argument")
        if node.type == "parenthesized_expression" and (only := only_child(node)) is not None:
            node = only
        elif node.type == "field_expression" and inner is not None:
            path = f"{text_of(node)[len(text_of(inner)) :].strip()}{path}"
            node = inner
        elif node.type == "subscript_expression" and inner is not None:
            path, node = f"[]{path}", inner
        else:
            return node, path


def named_struct(node: Node, structs: Container[str]) -> Node | None:
    """The name of the struct that an expression makes: of `Add()` and `Add{}`."""
    name = type_made(node)
    return name if name is not None and text_of(name) in structs else None


def type_made(node: Node) -> Node | None:
    """`T` of `T()` and `T{}`, which may be a function in place of a type."""
    fields = {"call_expression": "function", "compound_literal_expression": "type"}
    return node.child_by_field_name(fields[node.type]) if node.type in fields else None


def default_of(declaration: Node, declarator: Node) -> Node | None:
    """Default value that follows a declarator, None if it has none."""
    parts = [
        child
        for k, child in enumerate(declaration.children)
        if declaration.field_name_for_child(k) in ("declarator", "default_value")
    ]
    following = parts[parts.index(declarator) + 1 :]
    is_default = following and following[0] not in declaration.children_by_field_name("declarator")
    return following[0] if is_default else None
