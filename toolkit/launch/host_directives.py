"""Directives of host code: the macros that hold, and what an `#if` leaves out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from toolkit.launch.host_nodes import expression, integer_of, text_of

# What the host compiler of a CUDA toolkit defines, and what it certainly does not.
DEEPEST = 64  # conditions within conditions
PREDEFINED = {"__CUDACC__": "1", "__NVCC__": "1", "__cplusplus": "201703L", "__linux__": "1"}
_UNDEFINED = ("__CUDACC_RTC__", "__CUDA_ARCH__", "__HIPCC__", "__CYGWIN__", "__APPLE__")
_FROM_HEADERS = re.compile(r"__|CUDA|CUDNN|CUBLAS|CUB_|THRUST_|NV_")


@dataclass(frozen=True, kw_only=True)
class Macro:
    """A macro; `parameters` are None of one without parentheses, and end with "..." if it takes
    any number of arguments."""

    parameters: tuple[str, ...] | None
    body: str


@dataclass
class Directives:
    """The macros of a source, None where one is defined in several ways, and nodes left out."""

    macros: dict[str, Macro | None] = field(default_factory=dict)
    off: set[int] = field(default_factory=set)

    def follow(self, root: Node, include: Callable[[str], None]) -> None:
        """Follow the directives of a file, in order; `include` gets names as written."""
        pending = list(reversed(root.children))
        while pending:
            node = pending.pop()
            if node.id in self.off:
                continue
            match node.type:
                case "preproc_def" | "preproc_function_def":
                    self._define(node)
                case "preproc_call":
                    words = text_of(node).split()
                    if words[:1] == ["#undef"] and len(words) > 1:
                        self.macros.pop(words[1], None)
                case "preproc_include":
                    path = node.child_by_field_name("path")
                    include(text_of(path).strip())
                case "preproc_if" | "preproc_ifdef" | "preproc_elif" | "preproc_elifdef":
                    self._decide(node)
                    pending.extend(reversed(node.children))
                case _:
                    pending.extend(reversed(node.children))

    def active(self, node: Node) -> Iterator[Node]:
        """A node and all below it that directives do not leave out."""
        pending = [node]
        while pending:
            one = pending.pop()
            if one.id in self.off:
                continue
            yield one
            pending.extend(reversed(one.children))

    def _define(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        listed = node.child_by_field_name("parameters")
        names = text_of(listed).strip("() \t").split(",") if listed is not None else None
        parameters = None if names is None else tuple(filter(None, map(str.strip, names)))
        body = re.sub(r"\\\r?\n", " ", text_of(value)) if value is not None else ""
        body = re.sub(r"//.*|/\*.*?\*/", " ", body).strip()
        macro = Macro(parameters=parameters, body=body)
        key = text_of(name)
        self.macros[key] = macro if self.macros.get(key, macro) == macro else None

    def _decide(self, node: Node) -> None:
        """Mark the side of a conditional that is left out; none where that is not known."""
        holds = self._condition(node)
        alternative = node.child_by_field_name("alternative")
        if holds is None:
            return
        if holds:
            if alternative is not None:
                self.off.add(alternative.id)
            return
        kept = {one.id for one in (alternative,) if one is not None}
        names = (node.child_by_field_name("name"), node.child_by_field_name("condition"))
        kept |= {one.id for one in names if one is not None}
        self.off |= {one.id for one in node.children if one.is_named} - kept

    def _condition(self, node: Node) -> bool | None:
        name = node.child_by_field_name("name")
        if name is not None:
            is_defined = self._is_defined(text_of(name))
            negated = node.children[0].type in ("#ifndef", "#elifndef")
            return None if is_defined is None else is_defined != negated
        condition = node.child_by_field_name("condition")
        value = self._number(condition, DEEPEST) if condition is not None else None
        return None if value is None else bool(value)

    def _is_defined(self, name: str) -> bool | None:
        if name in self.macros:
            return True
        if name in _UNDEFINED or not _FROM_HEADERS.match(name):
            return False
        return None

    def _number(self, node: Node, depth: int) -> int | None:  # noqa: PLR0911
        """Value of the condition of a directive; None if it is not known."""
        if depth == 0:
            return None
        children = node.named_children
        match node.type:
            case "number_literal":
                return integer_of(text_of(node))
            case "parenthesized_expression":
                return self._number(children[0], depth - 1) if children else None
            case "preproc_defined":
                known = self._is_defined(text_of(children[0])) if children else None
                return None if known is None else int(known)
            case "identifier":
                name = text_of(node)
                macro = self.macros.get(name)
                if macro is None:
                    return (
                        0 if name not in self.macros and self._is_defined(name) is False else None
                    )
                inner = expression(macro.body) if macro.parameters is None else None
                return self._number(inner, depth - 1) if inner is not None else None
            case "unary_expression" if children:
                value = self._number(children[-1], depth - 1)
                sign = node.children[0].type
                if value is None or sign not in ("!", "-", "+"):
                    return None
                return {"!": int(not value), "-": -value, "+": value}[sign]
            case "binary_expression" if len(children) == 2:
                return _logic(
                    node.children[1].type, *(self._number(one, depth - 1) for one in children)
                )
        return None


def _logic(operator: str, a: int | None, b: int | None) -> int | None:
    if operator == "&&" and 0 in (a, b):
        return 0
    if operator == "||" and (a or b):
        return 1
    if a is None or b is None:
        return None
    known: dict[str, Callable[[int, int], int]] = {
        "&&": lambda x, y: int(bool(x and y)),
        "||": lambda x, y: int(bool(x or y)),
        "==": lambda x, y: int(x == y),
        "!=": lambda x, y: int(x != y),
        "<": lambda x, y: int(x < y),
        ">": lambda x, y: int(x > y),
        "<=": lambda x, y: int(x <= y),
        ">=": lambda x, y: int(x >= y),
        "+": lambda x, y: x + y,
        "-": lambda x, y: x - y,
        "*": lambda x, y: x * y,
    }
    return known[operator](a, b) if operator in known else None
