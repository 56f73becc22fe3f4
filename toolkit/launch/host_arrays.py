"""Sizes of the arrays behind pointers of host code: `cudaMalloc` and vectors."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from toolkit.launch.host_calls import HostCalls
from toolkit.launch.host_declarations import HostCall, HostFunction, HostVariable, SourcePlace
from toolkit.launch.host_nodes import (
    call_arguments,
    constructor_arguments,
    name_of_callee,
    path_of,
    text_of,
    uncast,
    without_comments,
)
from toolkit.launch.host_numbers import UnknownValueError
from toolkit.launch.host_types import Frame
from toolkit.launch.host_unit import HostUnit
from toolkit.launch.host_values import Evaluator, is_certain

_ALLOCATIONS = {
    "cudaMalloc": 1,
    "cudaMallocManaged": 1,
    "cudaMallocAsync": 1,
    "cudaMallocHost": 1,
    "cudaHostAlloc": 1,
    "hipMalloc": 1,
}
# What else than memory of the GPU an allocation may be.
_ELSEWHERE = {
    "cudaMallocManaged": "managed memory",
    "cudaMallocHost": "memory of the host",
    "cudaHostAlloc": "memory of the host",
    "cudaHostGetDevicePointer": "memory of the host",
}
_VECTOR = re.compile(
    r"(?:thrust::|std::)?(?:\w+::)*(?:device|host|universal)?_?vector\s*<\s*(.+)>$"
)
_RESIZES = {"resize", "push_back", "emplace_back", "assign", "insert", "clear", "swap", "erase"}


@dataclass(frozen=True)
class Arrays:
    """Sizes of the arrays behind pointers of host code."""

    unit: HostUnit
    calls: HostCalls
    evaluator: Evaluator

    def bytes(self, node: Node, place: SourcePlace, frame: Frame, depth: int) -> int:
        """Bytes behind a pointer. Raises UnknownValueError."""
        if depth == 0:
            raise UnknownValueError
        node = uncast(node)
        if node.type == "call_expression":
            return self._of_call(node, place, frame, depth - 1)
        if node.type == "pointer_expression" and text_of(node).startswith("&"):
            inner = node.child_by_field_name("argument")
            if inner is not None and re.search(r"\[\s*0\s*\]$", text_of(inner)):
                argument = inner.child_by_field_name("argument")
                if argument is not None and argument.type == "identifier":
                    return self._of_name(argument, "", place, frame, depth - 1)
            raise UnknownValueError
        base, path = path_of(node)
        if base.type != "identifier":
            raise UnknownValueError
        return self._of_name(base, path, place, frame, depth - 1)

    def elsewhere(self, node: Node, place: SourcePlace) -> str:
        """Name the memory of a pointer if it is not the GPU's, "" if host code says nothing."""
        base, path = path_of(uncast(node))
        if base.type != "identifier":
            return ""
        variable = self.unit.variable(text_of(base), place)
        found = (
            kind
            for name, kind in _ELSEWHERE.items()
            for call in self._calls_for(variable, path, (name,))
        )
        return next(found, "")

    def _of_call(self, node: Node, place: SourcePlace, frame: Frame, depth: int) -> int:
        function, listed = (node.child_by_field_name(x) for x in ("function", "arguments"))
        if function is None or listed is None:
            raise UnknownValueError
        given = without_comments(listed)
        if name_of_callee(function) == "raw_pointer_cast" and len(given) == 1:
            return self.bytes(given[0], place, frame, depth)
        is_method = function.type == "field_expression"
        if is_method and name_of_callee(function) in ("data", "get"):
            inner = function.child_by_field_name("argument")
            if inner is not None and inner.type == "identifier":
                return self._of_name(inner, "", place, frame, depth)
            if inner is not None and inner.type == "call_expression":
                return self._of_call(inner, place, frame, depth)
        raise UnknownValueError

    def _of_name(self, node: Node, path: str, place: SourcePlace, frame: Frame, depth: int) -> int:
        variable = self.unit.variable(text_of(node), place)
        if variable is None:
            raise UnknownValueError
        if not path and (vector := _VECTOR.match(variable.type_text.strip())):
            return self._of_vector(variable, vector[1], frame, depth)
        sizes = list(self._allocations(variable, path, frame))
        if sizes:
            sizes += self._sizes_of_exchanged(variable, path, frame)
            if len(set(sizes)) != 1 or sizes[0] is None:
                raise UnknownValueError
            return sizes[0]
        if path:
            raise UnknownValueError
        if self.unit.writes_of(variable):
            writes = self.unit.writes_of(variable)
            is_declared_empty = variable.declarator.type != "init_declarator"
            if len(writes) != 1 or writes[0].value is None or not is_declared_empty:
                raise UnknownValueError
            if not is_certain(writes[0], place):
                raise UnknownValueError
            return self.bytes(writes[0].value, writes[0].place, frame, depth)
        if variable.kind == "parameter":
            if variable.name not in frame.arguments:
                raise UnknownValueError
            inner, at, outer = frame.arguments[variable.name]
            return self.bytes(inner, at, outer, depth)
        value = variable.declarator.child_by_field_name("value")
        if value is None or value.type == "initializer_list":
            raise UnknownValueError
        return self.bytes(value, variable.place, frame, depth)

    def _sizes_of_exchanged(
        self, variable: HostVariable, path: str, frame: Frame
    ) -> list[int | None]:
        """Bytes of the allocations of pointers that a pointer is exchanged with."""
        others = [] if path else self._exchanged_with(variable)
        return [size for other in others for size in self._allocations(other, path, frame)]

    def _exchanged_with(self, variable: HostVariable) -> Iterator[HostVariable]:
        """Other pointers that one is assigned from, or swapped with."""
        values = [(one.value, one.place) for one in self.unit.writes_of(variable)]
        for use in self.unit.uses_of(variable):
            if use.function.removeprefix("std::") == "swap":
                calls = [one for one in self.unit.calls if one.place == use.place]
                values += [(x, use.place) for one in calls for x in call_arguments(one.node)]
        for value, place in values:
            node = uncast(value) if value is not None else None
            if node is not None and node.type == "identifier":
                other = self.unit.variable(text_of(node), place)
                if other is not None and other is not variable:
                    yield other

    def _of_vector(self, variable: HostVariable, element: str, frame: Frame, depth: int) -> int:
        """Bytes of a vector by its constructor. Raises UnknownValueError if it may grow."""
        changed = self.unit.writes_of(variable) or any(
            one.name in _RESIZES
            and text_of(one.node.child_by_field_name("function")).startswith(variable.name)
            for one in self.unit.calls
        )
        given = _constructor(variable)
        if changed or not 1 <= len(given) <= 2 or depth <= 0:
            raise UnknownValueError
        source = self._vector_in(uncast(given[0]), variable.place) if len(given) == 1 else None
        if source is not None:
            inner = _VECTOR.match(source.type_text.strip())
            assert inner is not None, "it is a vector"
            return self._of_vector(source, inner[1], frame, depth - 1)
        count = self.evaluator.number(given[0], variable.place, frame, depth)
        return int(count.value) * self.evaluator.types.size(element, frame)

    def _vector_in(self, node: Node, place: SourcePlace) -> HostVariable | None:
        found = self.unit.variable(text_of(node), place) if node.type == "identifier" else None
        return found if found and _VECTOR.match(found.type_text.strip()) else None

    def _allocations(self, variable: HostVariable, path: str, frame: Frame) -> Iterator[int | None]:
        """Bytes of each allocation of a pointer, None if they are not known."""
        for call in self._calls_for(variable, path, _ALLOCATIONS):
            yield self._size(call_arguments(call.node)[1], call, frame)
        yield from self._by_functions(variable, path, frame)

    def _calls_for(
        self, variable: HostVariable | None, path: str, names: Container[str]
    ) -> Iterator[HostCall]:
        """Calls of these functions that get the address of a pointer first."""
        for call in self.unit.calls:
            nodes = call_arguments(call.node) if call.name in names else []
            if len(nodes) < 2:
                continue
            target = uncast(nodes[0])
            if not (target.type == "pointer_expression" and text_of(target).startswith("&")):
                continue
            inner = target.child_by_field_name("argument")
            base, own = path_of(inner) if inner is not None else (target, "")
            if base.type != "identifier" or own != path:
                continue
            if self.unit.variable(text_of(base), call.place) is variable:
                yield call

    def _size(self, node: Node, call: HostCall, frame: Frame) -> int | None:
        """Bytes of one allocation."""
        owner = self.unit.function_at(call.place)
        if owner is not frame.function:
            frames = self.calls.frames(owner)
            if len(frames) != 1:
                return None
            frame = frames[0]
        try:
            found = self.evaluator.number(node, call.place, frame)
        except UnknownValueError:
            return None
        return int(found.value) if found.value > 0 else None

    def _by_functions(
        self, variable: HostVariable, path: str, frame: Frame
    ) -> Iterator[int | None]:
        """Allocations by a function that takes the address of the pointer."""
        if path:
            return
        for use in self.unit.uses_of(variable):
            functions = self.unit.functions.get(use.function, [])
            if not use.is_address or use.function in _ALLOCATIONS or len(functions) != 1:
                continue
            function = functions[0]
            call = next((one for one in self.unit.calls if one.place == use.place), None)
            names = function.parameter_names
            if call is None or use.position >= len(names):
                continue
            owner = self.unit.function_at(call.place)
            if owner is not frame.function:
                yield None
                continue
            inner = self.calls.called(function, call, frame)
            yield from self._inside(function, str(names[use.position]), inner)

    def _inside(self, function: HostFunction, pointer: str, frame: Frame) -> Iterator[int | None]:
        for call in self.unit.calls:
            nodes = call_arguments(call.node)
            if call.name not in _ALLOCATIONS or len(nodes) < 2:
                continue
            if self.unit.function_at(call.place) is not function:
                continue
            if text_of(uncast(nodes[0])) == pointer:
                yield self._size(nodes[1], call, frame)


def _constructor(variable: HostVariable) -> list[Node]:
    """Return the arguments of a variable's constructor: `n` and `1` of `v(n, 1)`."""
    value = variable.declarator.child_by_field_name("value")
    if variable.declarator.type == "function_declarator":
        return constructor_arguments(variable.declarator) or []
    if value is None:
        return []
    return without_comments(value) if value.type == "argument_list" else [value]
