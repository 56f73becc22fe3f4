"""Lambdas of host code: what they capture, and the calls that give their parameters values."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from toolkit.launch.host_nodes import name_of_declarator, text_of, without_comments


@dataclass(frozen=True, kw_only=True, eq=False)
class HostLambda:
    """A lambda; `name` is that of the variable that it is the value of, empty if there is none."""

    node: Node
    name: str

    @property
    def begin(self) -> int:
        return self.node.start_byte

    def contains(self, at: int) -> bool:
        return self.begin <= at < self.node.end_byte

    def captures_by_reference(self, name: str) -> bool:
        """True if it sees changes of the variable `name` from outside."""
        listed = [x.strip() for x in self._captures.strip("[] \n").split(",")]
        if f"&{name}" in [x.replace(" ", "") for x in listed]:
            return True
        is_copied = any(re.fullmatch(rf"{name}(\s*=.*)?", x, re.DOTALL) for x in listed)
        return listed[0] == "&" and not is_copied

    def takes_reference(self, position: int) -> bool:
        """True if it may change its argument at this position."""
        listed = self.parameters
        return position >= len(listed) or "&" in text_of(listed[position]).partition("=")[0]

    @property
    def parameters(self) -> list[Node]:
        declarator = self.node.child_by_field_name("declarator")
        if declarator is None:
            return []
        return without_comments(declarator.child_by_field_name("parameters"))

    @property
    def parameter_names(self) -> list[str | None]:
        return [name_of_declarator(one) for one in self.parameters]

    @property
    def _captures(self) -> str:
        return text_of(self.node.child_by_field_name("captures"))


def lambda_of(node: Node) -> HostLambda:
    """The lambda of a node, with the name that a declaration gives it."""
    outer = node.parent
    while outer is not None and outer.type in ("parenthesized_expression", "cast_expression"):
        outer = outer.parent
    name = name_of_declarator(outer) if outer is not None else None
    is_declared = outer is not None and outer.type == "init_declarator"
    return HostLambda(node=node, name=(name or "") if is_declared else "")
