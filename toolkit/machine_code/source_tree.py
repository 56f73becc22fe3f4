"""A kernel's source as a parse tree, and what edits ask about it."""

from __future__ import annotations

import ast
import dataclasses
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

from toolkit.machine_code.signature import unqualified

CUDA = Language(tree_sitter_cuda.language())
# What the grammar does not know: some attributes, and pragmas inside functions
UNKNOWN = re.compile(
    rb"\b(?:__align__|alignas|__maxnreg__|__cluster_dims__)\s*\((?:[^()]|\([^()]*\))*\)"
    rb"|^[ \t]*#[ \t]*pragma\b[^\n]*",
    re.MULTILINE,
)
DEEPEST = 8  # constants that are defined by other constants

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


@dataclass(frozen=True, kw_only=True)
class SharedArray:
    """A declared `__shared__` array. `extents` are nodes, the outermost first."""

    name: str
    type: str
    extents: tuple[Node, ...]
    line: int


@dataclass(frozen=True, kw_only=True)
class PointerParameter:
    """A pointer parameter: its declaration, its `*` and its name."""

    name: str
    type: str
    is_const: bool
    is_restrict: bool
    declarator: Node


@dataclass(frozen=True, kw_only=True)
class NamedNumber:
    """A name with a number in the source. `value`: the place of the number."""

    name: str
    value: int
    start: int
    end: int
    line: int


@dataclass(frozen=True, kw_only=True)
class KernelSource:
    """The text of a source, its tree, and the definition of one kernel in it.

    `defines` are macros that the compiler is given.
    """

    text: bytes
    root: Node
    kernel: Node
    defines: Mapping[str, object] = dataclasses.field(default_factory=dict)

    @property
    def body(self) -> Node:
        body = self.kernel.child_by_field_name("body")
        assert body is not None, "a definition has one"
        return body

    def nodes(self, kind: str, inside: Node | None = None) -> Iterator[Node]:
        """All nodes of a kind in the kernel, in order."""
        return (one for one in walk(inside or self.kernel) if one.type == kind)

    def written(self, node: Node) -> str:
        return self.text[node.start_byte : node.end_byte].decode()

    @cached_property
    def shared_arrays(self) -> dict[str, SharedArray]:
        """Arrays in shared memory with all of their extents, by name."""
        found = {}
        for declaration in _visible(self.root, self.kernel, ("declaration",)):
            words = {self.written(one) for one in declaration.children}
            kind = declaration.child_by_field_name("type")
            if "__shared__" not in words or kind is None:
                continue
            for declarator in declaration.children_by_field_name("declarator"):
                array = self._array(declarator, self.written(kind))
                if array is not None:
                    found[array.name] = array
        return found

    def _array(self, declarator: Node, kind: str) -> SharedArray | None:
        extents, node = list[Node](), declarator
        while node.type == "array_declarator":
            size, inner = node.child_by_field_name("size"), node.child_by_field_name("declarator")
            if size is None or inner is None:
                return None
            extents.insert(0, size)
            node = inner
        if node.type != "identifier" or not extents:
            return None
        return SharedArray(
            name=self.written(node), type=kind, extents=tuple(extents), line=line_of(node)
        )

    def uses(self, name: str) -> list[Node]:
        """Identifiers of this name in the kernel, without its declarators."""
        return [
            one
            for one in self.nodes("identifier", self.body)
            if self.written(one) == name
            and not (one.parent and one.parent.type.endswith("declarator") and _declares(one))
        ]

    def subscripts(self, use: Node, depth: int) -> list[Node] | None:
        """Indices of an element, the outermost first; None if it is not used as one."""
        found, node = list[Node](), use
        for _ in range(depth):
            parent = node.parent
            if parent is None or parent.type != "subscript_expression":
                return None
            if parent.child_by_field_name("argument") != node:
                return None
            indices = parent.child_by_field_name("indices")
            if indices is None or indices.named_child_count != 1:
                return None
            found.append(indices.named_children[0])
            node = parent
        is_address = node.parent is not None and self.written(node.parent).startswith("&")
        return None if is_address and node.parent and is_pointer(node.parent) else found

    def element(self, use: Node, depth: int) -> Node:
        """The subscript expression of an element."""
        node = use
        for _ in range(depth):
            assert node.parent is not None, "`subscripts` found it"
            node = node.parent
        return node

    @cached_property
    def pointers(self) -> dict[str, PointerParameter]:
        """Pointer parameters of the kernel to plain types, by name."""
        found = {}
        declarator = self.kernel.child_by_field_name("declarator")
        parameters = declarator.child_by_field_name("parameters") if declarator else None
        for one in parameters.named_children if parameters else []:
            pointer, kind = one.child_by_field_name("declarator"), one.child_by_field_name("type")
            if pointer is None or kind is None or pointer.type != "pointer_declarator":
                continue
            name = pointer.child_by_field_name("declarator")
            if name is None or name.type != "identifier":
                continue
            text = self.written(one)
            found[self.written(name)] = PointerParameter(
                name=self.written(name),
                type=self.written(kind),
                is_const=bool(re.search(r"\bconst\b", text)),
                is_restrict="__restrict" in text,
                declarator=name,
            )
        return found

    @property
    def names_double(self) -> bool:
        """True if the kernel names the type double."""
        types = ("primitive_type", "type_identifier")
        found = (self.written(one) for kind in types for one in self.nodes(kind))
        return any(one.startswith("double") for one in found)

    def is_assigned(self, name: str, inside: Node) -> bool:
        """True if a variable changes in a part of the kernel."""
        for one in walk(inside):
            if one.type in ("assignment_expression", "update_expression"):
                field = "left" if one.type == "assignment_expression" else "argument"
                target = one.child_by_field_name(field)
                if target is not None and self.written(target) == name:
                    return True
        return False

    @cached_property
    def constants(self) -> dict[str, NamedNumber]:
        """Names that stand for one number each: macros, and constants of integers."""
        found = dict[str, NamedNumber]()
        for one in _visible(self.root, self.kernel, ("preproc_def", "init_declarator")):
            if one.type == "preproc_def":
                name, value = one.child_by_field_name("name"), one.child_by_field_name("value")
            elif self._is_constant(one):
                name, value = (
                    one.child_by_field_name("declarator"),
                    one.child_by_field_name("value"),
                )
            else:
                continue
            if name is None or value is None:
                continue
            text = self.written(value)
            if self.written(name) not in self.defines and re.fullmatch(r"\s*\d+[uU]?\s*", text):
                start = value.start_byte + len(text) - len(text.lstrip())
                number = re.sub(r"\D", "", text)
                found[self.written(name)] = NamedNumber(
                    name=self.written(name),
                    value=int(number),
                    start=start,
                    end=start + len(number),
                    line=line_of(value),
                )
        return found

    def _is_constant(self, declarator: Node) -> bool:
        declaration = declarator.parent
        words = self.written(declaration).split("=")[0].split() if declaration else []
        return bool({"const", "constexpr"} & set(words)) and "int" in words

    def number(self, node: Node) -> int | None:
        """Value of a constant expression; None if it is not known."""
        return self._value(self.written(node), DEEPEST)

    def _value(self, text: str, depth: int) -> int | None:
        if depth == 0 or not re.fullmatch(r"[\w\s+\-*/%()<>]*", text, re.ASCII):
            return None

        def number(match: re.Match[str]) -> str:
            name = match[0]
            if name in self.defines:
                return f"({self._value(str(self.defines[name]), depth - 1)})"
            known = self.constants.get(name)
            return str(known.value) if known else name

        text = re.sub(r"\b[A-Za-z_]\w*", number, text)
        try:
            return _evaluated(ast.parse(text.strip(), mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError):
            return None


def parsed(text: str, kernel: str, defines: Mapping[str, object]) -> KernelSource | None:
    """The source of a kernel, such as "scale" or "ns::gemm<128, 64>".

    None if the source does not define it, or defines several of this name. What the grammar does
    not know is left out of the tree.
    """
    content, root = text.encode(), tree_of(text)
    name = unqualified(kernel)
    found = [
        one for one in walk(root) if one.type == "function_definition" and _name(one) == name
    ]  # `__global__` may be part of a macro
    if len(found) != 1 or found[0].child_by_field_name("body") is None:
        return None
    return KernelSource(text=content, root=root, kernel=found[0], defines=defines)


def tree_of(text: str) -> Node:
    """The tree of a source, without what the grammar does not know; places are those of `text`."""
    return Parser(CUDA).parse(without_unknown(text.encode())).root_node


def without_unknown(content: bytes) -> bytes:
    """The text with spaces in place of what the grammar does not know."""
    return UNKNOWN.sub(_blank, content)


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, in order."""
    pending = [node]
    while pending:
        one = pending.pop()
        yield one
        pending.extend(reversed(one.children))


def _visible(root: Node, kernel: Node, kinds: Sequence[str]) -> list[Node]:
    """Nodes of these kinds outside of functions, then those in the kernel, which hide them.

    A macro is visible wherever it is defined.
    """
    found = [(one, _function_around(one)) for one in walk(root) if one.type in kinds]
    outside = [one for one, function in found if function is None]
    return outside + [one for one, function in found if function == kernel]


def _function_around(node: Node) -> Node | None:
    """The function whose names a declaration joins; None for all, as of a macro."""
    if node.type == "preproc_def":
        return None
    while (outer := node.parent) is not None and outer.type != "function_definition":
        node = outer
    return outer


def line_of(node: Node) -> int:
    """Line of the start of a node, from 1."""
    return int(node.start_point[0]) + 1


def is_pointer(node: Node) -> bool:
    return node.type == "pointer_expression"


def _blank(match: re.Match[bytes]) -> bytes:
    """As many spaces, so that places in the text stay the same."""
    return re.sub(rb"[^\n]", b" ", match[0])


def _declares(identifier: Node) -> bool:
    parent = identifier.parent
    return parent is not None and parent.child_by_field_name("declarator") == identifier


def _name(definition: Node) -> str | None:
    declarator = definition.child_by_field_name("declarator")
    name = declarator.child_by_field_name("declarator") if declarator else None
    return name.text.decode() if name is not None and name.text is not None else None


def _evaluated(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluated(node.left), _evaluated(node.right))
    raise ValueError(ast.dump(node))


def line_text(source: KernelSource, number: int) -> str:
    """Text of a line, counted from 1; empty if there is none."""
    lines = source.text.decode(errors="replace").splitlines()
    return lines[number - 1] if 1 <= number <= len(lines) else ""
