"""Notes of a host unit on its parse trees: variables and their changes, functions and calls."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from toolkit.launch.host_nodes import name_of_declarator, text_of

CONSTANT = {"const", "constexpr"}


@dataclass(frozen=True, kw_only=True)
class SourcePlace:
    """A place in one of the files, in bytes."""

    file: int
    at: int


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """Assumption of an evaluator, in words. `loop`: place of the loop whose first pass it is."""

    words: str
    loop: SourcePlace | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class HostVariable:
    """A declared variable: its declaration, its declarator, and the range where it is visible."""

    name: str
    declaration: Node
    declarator: Node
    place: SourcePlace
    scope: tuple[int, int]
    is_global: bool
    kind: str  # "variable", "parameter" or "element" of a range loop

    @property
    def type_text(self) -> str:
        node = self.declaration.child_by_field_name("type")
        return text_of(node) if node is not None else ""

    @property
    def is_constant(self) -> bool:
        """True for `const int n = 4`, whose value no function may change; not for pointers."""
        declarator: Node | None = self.declarator
        if declarator is not None and declarator.type == "init_declarator":
            declarator = declarator.child_by_field_name("declarator")
        if declarator is None or declarator.type not in ("identifier", "function_declarator"):
            return False
        qualifiers = (x for x in self.declaration.children if x.type == "type_qualifier")
        return any(text_of(one) in CONSTANT for one in qualifiers)


@dataclass(frozen=True, kw_only=True, eq=False)
class Write:
    """A change of a variable. `path` is ".x" of a field; `value` None of what is not known.

    `home` is the block that certainly executes it, None where it depends on a condition; `node` is
    the expression.
    """

    node: Node
    place: SourcePlace
    path: str
    value: Node | None
    home: tuple[int, int] | None


@dataclass(frozen=True, kw_only=True)
class Use:
    """An address of a variable, or a variable as an argument, in a call of a function."""

    place: SourcePlace
    function: str
    position: int
    is_address: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class HostFunction:
    """A function definition; `templates` are the names of its template parameters."""

    name: str
    node: Node
    file: int
    begin: int
    end: int
    parameters: tuple[Node, ...]
    templates: tuple[str, ...]
    is_kernel: bool

    def contains(self, place: SourcePlace) -> bool:
        return self.file == place.file and self.begin <= place.at < self.end

    @property
    def parameter_names(self) -> list[str | None]:
        return [name_of_declarator(one) for one in self.parameters]

    def takes_reference(self, position: int) -> bool:
        """True if the callee may change its argument at this position."""
        if position >= len(self.parameters):
            return False
        return "&" in text_of(self.parameters[position]).partition("=")[0]


@dataclass(frozen=True, kw_only=True, eq=False)
class HostCall:
    """A call of a function, a launch of a kernel where `launch` is its configuration.

    `node` and `launch` of a launch that a macro makes are of the text of the macro.
    """

    name: str
    node: Node
    place: SourcePlace
    launch: Node | None
    line: int
