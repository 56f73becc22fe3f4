"""Macros whose text an operator around them would take apart.

With `#define N 3 + 2`, `2 * N` is `2 * 3 + 2`: the preprocessor puts text in place, not values.
"""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from toolkit.launch.host_directives import Macro
from toolkit.launch.host_hidden_changes import MOST_NESTED, expanded
from toolkit.launch.host_nodes import call_arguments, expression, text_of

# Binary operators, the ones that bind tightest first (C++ standard, [expr])
_LEVELS = (
    ("*", "/", "%"), ("+", "-"), ("<<", ">>"), ("<", "<=", ">", ">="), ("==", "!="), ("&",),
    ("^",), ("|",), ("&&",), ("||",),
)  # fmt: skip
_TIGHTNESS = {operator: len(_LEVELS) - k for k, level in enumerate(_LEVELS) for operator in level}
# a + (b - c) is a + b - c, and a * (b * c) is a * b * c
_REGROUPS = {"+": {"+", "-"}, "*": {"*"}, "&": {"&"}, "|": {"|"}, "^": {"^"}}
_TIGHTER = ("unary_expression", "cast_expression", "pointer_expression", "subscript_expression")


def is_taken_apart(use: Node, macros: Mapping[str, Macro | None]) -> bool:
    """True if the operator around the use of a macro takes only a part of the macro's text."""
    outer, inner = use.parent, _text_tree(use, macros)
    own = _tightness(inner)
    if outer is None or inner is None or own is None:
        return False
    if outer.type != "binary_expression":
        return outer.type in _TIGHTER
    around = _TIGHTNESS.get(_operator(outer), 0)
    return own < around or (own == around and not _has_same_value(outer, use, inner))


def _tightness(node: Node | None) -> int | None:
    """Precedence of the operator of an expression; None of one that is a whole."""
    if node is None or node.type not in ("binary_expression", "conditional_expression"):
        return None
    return _TIGHTNESS.get(_operator(node), 0)


def _has_same_value(outer: Node, use: Node, inner: Node) -> bool:
    """True if operators that bind alike give the same value in either order."""
    if outer.child_by_field_name("left") == use:
        return True
    allowed = _REGROUPS.get(_operator(outer), ())
    chain: Node | None = inner
    while chain is not None and _tightness(chain) == _tightness(inner):
        if _operator(chain) not in allowed:
            return False
        chain = chain.child_by_field_name("left")
    return True


def _text_tree(use: Node, macros: Mapping[str, Macro | None]) -> Node | None:
    """The expression that a macro stands for, also through macros that only name another one."""
    for _ in range(MOST_NESTED):
        is_call = use.type == "call_expression"
        macro = macros.get(text_of(use.child_by_field_name("function") if is_call else use))
        if macro is None or (macro.parameters is None) == is_call:
            return None
        filled = expanded(macro, list(map(text_of, call_arguments(use)))) if is_call else macro.body
        inner = expression(filled) if filled is not None else None
        if inner is None or inner.type not in ("identifier", "call_expression"):
            return inner
        use = inner
    return None


def _operator(node: Node) -> str:
    return text_of(node.child_by_field_name("operator"))
