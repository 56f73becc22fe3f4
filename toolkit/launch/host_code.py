"""Launches that host code of a source makes: `k<<<grid, block, shared>>>(arguments)`.

Grid, block, scalars and the bytes of arrays are read where they are the same in every run
(`toolkit.launch.host_values`); None stands for what is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tree_sitter import Node

from toolkit.launch.host_unit import (
    Call,
    Function,
    HostUnit,
    Place,
    Variable,
    call_arguments,
    name_of_callee,
    text_of,
    uncast,
)
from toolkit.launch.host_values import (
    DEEPEST,
    OUTSIDE,
    Evaluator,
    Frame,
    Number,
    UnknownValueError,
)
from toolkit.machine_code.signature import Declared, declared

Extent = tuple[int, int, int]
MOST_FRAMES = 16  # calls of a function that launches
MOST_CALLERS = 8  # functions between `main` and a launch
_ALLOCATIONS = {
    "cudaMalloc": 1,
    "cudaMallocManaged": 1,
    "cudaMallocAsync": 1,
    "cudaMallocHost": 1,
    "cudaHostAlloc": 1,
    "hipMalloc": 1,
}
_VECTOR = re.compile(
    r"(?:thrust::|std::)?(?:\w+::)*(?:device|host|universal)?_?vector\s*<\s*(.+)>$"
)
_RESIZES = {"resize", "push_back", "emplace_back", "assign", "insert", "clear", "swap", "erase"}


@dataclass(frozen=True, kw_only=True)
class HostArgument:
    """An argument of a launch: its text, its value of a scalar, the bytes of an array.

    `element` is the type that host code points to, None of what is no pointer.
    """

    text: str
    value: Number | None = None
    bytes: int | None = None
    element: str | None = None


@dataclass(frozen=True, kw_only=True)
class HostLaunch:
    """A launch in host code; `kernel` is the name without template arguments.

    `name` has them, "scale<float, 256>", None if one of them is not known.
    """

    file: str
    line: int
    kernel: str
    name: str | None
    grid: Extent | None
    block: Extent | None
    shared_bytes: int | None
    arguments: tuple[HostArgument, ...]
    #: the parameters as the kernel declares them, with plain types where they are known
    parameters: tuple[Declared, ...] | None

    @property
    def unknown(self) -> int:
        """Number of facts that are not known, grid and block included."""
        facts = [self.grid, self.block, self.name, self.shared_bytes]
        of_arguments = [one.value is None and one.bytes is None for one in self.arguments]
        return sum(one is None for one in facts) + sum(of_arguments)


@dataclass(frozen=True)
class HostCode:
    """Launches of a unit, in the order of the source."""

    unit: HostUnit

    def launches(self, given: Mapping[str, Number] | None = None) -> list[HostLaunch]:
        """All launches; `given` are values of scalar parameters of the kernel, by name.

        A launch in a function that several calls reach is there several times.
        """
        found = []
        for call in self.launch_calls:
            function = self.unit.function_at(call.place)
            for frame in self._frames(function, MOST_CALLERS):
                found.append(_Reading(self.unit, self, call, frame, given or {}).launch)
        return found

    @cached_property
    def launch_calls(self) -> list[Call]:
        """Launches in the order of the source; those of headers before it come last."""
        found = [one for one in self.unit.calls if one.launch is not None]
        return sorted(found, key=lambda one: (one.place.file, one.place.at))

    def kernel_of(self, call: Call, depth: int = 4) -> str:
        """Name of the kernel of a launch, which a macro or a pointer may stand for."""
        name = call.name
        for _ in range(depth):
            if any(one.is_kernel for one in self.unit.functions.get(name, ())):
                return name
            macro = self.unit.macros.get(name)
            variable = self.unit.variable(name, call.place)
            if macro is not None and macro.parameters is None:
                name = macro.body.partition("<")[0].strip()
            elif variable is not None and not self.unit.writes_of(variable):
                value = variable.declarator.child_by_field_name("value")
                name = text_of(uncast(value)).lstrip("&") if value is not None else name
            else:
                break
        return call.name

    def _frames(self, function: Function | None, depth: int) -> list[Frame]:
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
            for outer in self._frames(caller, depth - 1):
                found.append(self.called(function, call, outer))
                if len(found) > MOST_FRAMES:
                    return [Frame(function=function)]
        return found

    def called(self, function: Function, call: Call, outer: Frame) -> Frame:
        """The frame of a call: arguments and template arguments of the callee."""
        nodes = call_arguments(call.node)
        arguments = {}
        for position, name in enumerate(function.parameter_names):
            if name is None:
                continue
            if position < len(nodes):
                arguments[name] = (nodes[position], call.place, outer)
            elif default := function.parameters[position].child_by_field_name("default_value"):
                arguments[name] = (default, Place(file=function.file, at=0), OUTSIDE)
        written = template_arguments(call.node.child_by_field_name("function"))
        templates = {
            name: (node, call.place, outer)
            for name, node in zip(function.templates, written, strict=False)
        }
        frame = Frame(function=function, arguments=arguments, templates=templates)
        for name, node in _deduced(function, nodes, self.unit, call.place).items():
            templates.setdefault(name, (node, call.place, outer))
        return replace(frame, templates=templates)


@dataclass(frozen=True)
class _Reading:
    """One launch, reached by one sequence of calls."""

    unit: HostUnit
    code: HostCode
    call: Call
    frame: Frame
    given: Mapping[str, Number]

    @property
    def launch(self) -> HostLaunch:
        call = self.call
        assert call.launch is not None, "it is one"
        kernel = self.code.kernel_of(call)
        configuration = [one for one in call.launch.named_children if one.type != "comment"]
        grid, block = (
            self._extent(configuration[k]) if k < len(configuration) else None for k in (0, 1)
        )
        shared = self._number(configuration[2]) if len(configuration) > 2 else Number(0, "i32")
        templates = self._templates
        return HostLaunch(
            file=self.unit.names[call.place.file],
            line=call.node.start_point[0] + 1,
            kernel=kernel,
            name=self._name(kernel, templates),
            grid=grid,
            block=block,
            shared_bytes=int(shared.value) if shared is not None else None,
            arguments=tuple(map(self._argument, self._arguments)),
            parameters=self._parameters,
        )

    @cached_property
    def _arguments(self) -> list[Node]:
        return call_arguments(self.call.node)

    @cached_property
    def _definition(self) -> Function | None:
        kernel = self.code.kernel_of(self.call)
        found = [one for one in self.unit.functions.get(kernel, ()) if one.is_kernel]
        fitting = [one for one in found if len(one.parameters) == len(self._arguments)]
        chosen = fitting or found
        return chosen[0] if len(chosen) == 1 else None

    @cached_property
    def _evaluator(self) -> Evaluator:
        """Evaluator that knows the variables behind the scalars that the user gives."""
        found: dict[tuple[Variable, str], Number] = {}
        names = self._definition.parameter_names if self._definition else []
        for name, argument in zip(names, self._arguments, strict=False):
            if name is None or name not in self.given:
                continue
            node, place, frame = argument, self.call.place, self.frame
            for _ in range(MOST_CALLERS):
                base, path = _path(uncast(node))
                variable = self.unit.variable(text_of(base), place)
                if variable is None:
                    break
                found[variable, path] = self.given[name]
                if variable.name not in frame.arguments or path:
                    break
                node, place, frame = frame.arguments[variable.name]
        return Evaluator(unit=self.unit, given=found)

    def _extent(self, node: Node) -> Extent | None:
        try:
            extents = self._evaluator.dim3(node, self.call.place, self.frame).extents
        except UnknownValueError:
            return None
        return extents if min(extents) >= 1 else None

    def _number(self, node: Node, frame: Frame | None = None) -> Number | None:
        try:
            return self._evaluator.number(node, self.call.place, frame or self.frame)
        except UnknownValueError:
            return None

    @property
    def _parameters(self) -> tuple[Declared, ...] | None:
        definition = self._definition
        if definition is None:
            return None
        return declared_parameters(self.unit, definition, self._templates)

    # Template arguments.

    @cached_property
    def _templates(self) -> dict[str, str | None]:
        """The template arguments of the kernel by their names; None if they are not known."""
        definition = self._definition
        if definition is None or not definition.templates:
            return {}
        written = template_arguments(self.call.node.child_by_field_name("function"))
        place = self.call.place
        nodes = dict(zip(definition.templates, written, strict=False))
        for name, node in _deduced(definition, self._arguments, self.unit, place).items():
            nodes.setdefault(name, node)
        return {
            name: self._template(nodes[name]) if name in nodes else None
            for name in definition.templates
        }

    def _template(self, node: Node) -> str | None:
        text, evaluator = text_of(node), self._evaluator
        plain = evaluator.type_text(text, self.frame)
        is_type = evaluator.kind(plain, self.frame) is not None or plain in self.unit.structs
        if node.type in ("primitive_type", "sized_type_specifier") or is_type:
            return plain
        number = self._number(node)
        if number is not None:
            is_bool = number.kind == "b8"
            return str(bool(number.value)).lower() if is_bool else str(number.value)
        is_name = re.fullmatch(r"[A-Za-z_][\w:]*", plain) and node.type == "type_descriptor"
        return plain if is_name and self.unit.variable(plain, self.call.place) is None else None

    def _name(self, kernel: str, templates: Mapping[str, str | None]) -> str | None:
        function = self.call.node.child_by_field_name("function")
        scope = text_of(function).partition("<")[0].rpartition("::")
        prefix = f"{scope[0]}::" if scope[0] and kernel == self.call.name else ""
        if self._definition is None and template_arguments(function):
            listed = [self._template(one) for one in template_arguments(function)]
            known = [one for one in listed if one is not None]
            return f"{prefix}{kernel}<{', '.join(known)}>" if known == listed else None
        if not templates:
            return prefix + kernel
        values = list(templates.values())
        while values and values[-1] is None and self._has_default(len(values) - 1):
            values.pop()
        known = [one for one in values if one is not None]
        return f"{prefix}{kernel}<{', '.join(known)}>" if len(known) == len(values) else None

    def _has_default(self, position: int) -> bool:
        definition = self._definition
        outside = definition.node.parent if definition else None
        listed = outside.child_by_field_name("parameters") if outside else None
        return listed is not None and "=" in text_of(listed.named_children[position])

    # Arguments.

    def _argument(self, node: Node) -> HostArgument:
        text = " ".join(text_of(node).split())
        inner = uncast(node)
        number = None
        if inner.type not in ("pointer_expression", "null"):
            number = self._number(node)
        if number is not None:
            return HostArgument(text=text, value=number)
        arrays = _Arrays(self.unit, self.code, self._evaluator)
        try:
            size = arrays.bytes(node, self.call.place, self.frame, DEEPEST)
        except UnknownValueError:
            size = None
        return HostArgument(
            text=text, bytes=size, element=_pointed_to(inner, self.unit, self.call.place)
        )


@dataclass(frozen=True)
class _Arrays:
    """Sizes of the arrays behind pointers of host code."""

    unit: HostUnit
    code: HostCode
    evaluator: Evaluator

    def bytes(self, node: Node, place: Place, frame: Frame, depth: int) -> int:
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
        base, path = _path(node)
        if base.type != "identifier":
            raise UnknownValueError
        return self._of_name(base, path, place, frame, depth - 1)

    def _of_call(self, node: Node, place: Place, frame: Frame, depth: int) -> int:
        function, listed = (node.child_by_field_name(x) for x in ("function", "arguments"))
        if function is None or listed is None:
            raise UnknownValueError
        if name_of_callee(function) == "raw_pointer_cast" and listed.named_child_count == 1:
            return self.bytes(listed.named_children[0], place, frame, depth)
        is_method = function.type == "field_expression"
        if is_method and name_of_callee(function) in ("data", "get"):
            inner = function.child_by_field_name("argument")
            if inner is not None and inner.type == "identifier":
                return self._of_name(inner, "", place, frame, depth)
            if inner is not None and inner.type == "call_expression":
                return self._of_call(inner, place, frame, depth)
        raise UnknownValueError

    def _of_name(self, node: Node, path: str, place: Place, frame: Frame, depth: int) -> int:
        variable = self.unit.variable(text_of(node), place)
        if variable is None:
            raise UnknownValueError
        if not path and (vector := _VECTOR.match(variable.type_text.strip())):
            return self._of_vector(variable, vector[1], frame, depth)
        sizes = list(self._allocations(variable, path, frame))
        if sizes:
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
            if not self.evaluator._is_certain(writes[0], place):
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

    def _of_vector(self, variable: Variable, element: str, frame: Frame, depth: int) -> int:
        changed = self.unit.writes_of(variable) or any(
            one.name in _RESIZES
            and text_of(one.node.child_by_field_name("function")).startswith(variable.name)
            for one in self.unit.calls
        )
        value = variable.declarator.child_by_field_name("value")
        if changed or value is None:
            raise UnknownValueError
        if value.type == "identifier" or (
            value.type == "argument_list"
            and value.named_child_count == 1
            and (source := self._vector_in(value.named_children[0], variable.place)) is not None
        ):
            source = self._vector_in(uncast(value), variable.place) or self._vector_in(
                value.named_children[0], variable.place
            )
            if source is None:
                raise UnknownValueError
            inner = _VECTOR.match(source.type_text.strip())
            assert inner is not None, "it is a vector"
            return self._of_vector(source, inner[1], frame, depth - 1)
        if value.type != "argument_list" or not 1 <= value.named_child_count <= 2:
            raise UnknownValueError
        count = self.evaluator.number(value.named_children[0], variable.place, frame, depth)
        return int(count.value) * self.evaluator.size(element, frame)

    def _vector_in(self, node: Node, place: Place) -> Variable | None:
        found = self.unit.variable(text_of(node), place) if node.type == "identifier" else None
        return found if found and _VECTOR.match(found.type_text.strip()) else None

    def _allocations(self, variable: Variable, path: str, frame: Frame) -> Iterator[int | None]:
        """Bytes of each allocation of a pointer, None if they are not known."""
        for call in self.unit.calls:
            if call.name not in _ALLOCATIONS:
                continue
            nodes = call_arguments(call.node)
            if len(nodes) < 2:
                continue
            target = uncast(nodes[0])
            if not (target.type == "pointer_expression" and text_of(target).startswith("&")):
                continue
            inner = target.child_by_field_name("argument")
            base, own = _path(inner) if inner is not None else (target, "")
            if base.type != "identifier" or own != path:
                continue
            if self.unit.variable(text_of(base), call.place) is not variable:
                continue
            yield self._size(nodes[1], call, frame)
        yield from self._by_functions(variable, path, frame)

    def _size(self, node: Node, call: Call, frame: Frame) -> int | None:
        """Bytes of one allocation."""
        owner = self.unit.function_at(call.place)
        if owner is not frame.function:
            frames = self.code._frames(owner, MOST_CALLERS)
            if len(frames) != 1:
                return None
            frame = frames[0]
        try:
            found = self.evaluator.number(node, call.place, frame)
        except UnknownValueError:
            return None
        return int(found.value) if found.value > 0 else None

    def _by_functions(self, variable: Variable, path: str, frame: Frame) -> Iterator[int | None]:
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
            inner = self.code.called(function, call, frame)
            yield from self._inside(function, str(names[use.position]), inner)

    def _inside(self, function: Function, pointer: str, frame: Frame) -> Iterator[int | None]:
        for call in self.unit.calls:
            nodes = call_arguments(call.node)
            if call.name not in _ALLOCATIONS or len(nodes) < 2:
                continue
            if self.unit.function_at(call.place) is not function:
                continue
            if text_of(uncast(nodes[0])) == pointer:
                yield self._size(nodes[1], call, frame)


def declared_parameters(
    unit: HostUnit, kernel: Function, templates: Mapping[str, str | None]
) -> tuple[Declared, ...]:
    """The parameters of a kernel, with types that macros, typedefs and templates stand for."""
    found, evaluator = [], Evaluator(unit=unit)
    for one in kernel.parameters:
        text = " ".join(text_of(one).split())
        kind = one.child_by_field_name("type")
        if text == "void":
            continue
        if kind is not None:
            name = text_of(kind)
            plain = templates.get(name) or evaluator.type_text(name, OUTSIDE)
            if plain != name:
                text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", plain, text, count=1)
        found.append(declared(text))
    return tuple(found)


def _path(node: Node) -> tuple[Node, str]:
    """The variable of `x.y`, `x->y` or `x[i]`, and ".y", "->y" or "[]"."""
    path = ""
    while True:
        inner = node.child_by_field_name("argument")
        if node.type == "parenthesized_expression" and node.named_child_count == 1:
            node = node.named_children[0]
        elif node.type == "field_expression" and inner is not None:
            path = f"{text_of(node)[len(text_of(inner)) :].strip()}{path}"
            node = inner
        elif node.type == "subscript_expression" and inner is not None:
            path, node = f"[]{path}", inner
        else:
            return node, path


def template_arguments(function: Node | None) -> list[Node]:
    """The template arguments that a call writes."""
    while function is not None and function.type == "qualified_identifier":
        function = function.child_by_field_name("name")
    listed = function.child_by_field_name("arguments") if function is not None else None
    if listed is None or listed.type != "template_argument_list":
        return []
    return list(listed.named_children)


def _fits(call: Call, function: Function) -> bool:
    """True if the number of arguments is right."""
    count = len(call_arguments(call.node))
    needed = [x for x in function.parameters if x.child_by_field_name("default_value") is None]
    if text_of(function.parameters[0] if function.parameters else None) == "void":
        return count == 0
    return len(needed) <= count <= len(function.parameters)


def _deduced(
    function: Function, arguments: list[Node], unit: HostUnit, place: Place
) -> dict[str, Node]:
    """Template parameters that follow from the types of arguments: `T *x` of a `float *`."""
    found: dict[str, Node] = {}
    for parameter, argument in zip(function.parameters, arguments, strict=False):
        kind = parameter.child_by_field_name("type")
        if kind is None or text_of(kind) not in function.templates:
            continue
        plain = uncast(argument)
        variable = unit.variable(text_of(plain), place) if plain.type == "identifier" else None
        theirs = variable.declaration.child_by_field_name("type") if variable else None
        if variable is None or theirs is None or text_of(theirs) == "auto":
            continue
        stars = [text_of(x).count("*") for x in (parameter, _declared_part(variable))]
        if stars[0] == stars[1]:
            found.setdefault(text_of(kind), theirs)
    return found


def _declared_part(variable: Variable) -> Node:
    declarator = variable.declarator
    if declarator.type == "init_declarator":
        return declarator.child_by_field_name("declarator") or declarator
    return declarator


def _pointed_to(node: Node, unit: HostUnit, place: Place) -> str | None:
    """The type that a pointer variable points to."""
    if node.type != "identifier":
        return None
    variable = unit.variable(text_of(node), place)
    if variable is None or "*" not in text_of(_declared_part(variable)):
        return None
    return variable.type_text


def launches_of(unit: HostUnit, given: Mapping[str, Number] | None = None) -> list[HostLaunch]:
    """The launches of a unit, in the order of the source."""
    return HostCode(unit).launches(given)
