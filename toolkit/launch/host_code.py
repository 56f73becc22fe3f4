"""Launches that host code of a source makes: `k<<<grid, block, shared>>>(arguments)`.

Grid, block, scalars and the bytes of arrays are read where they are the same in every run
(`toolkit.launch.host_values`); None stands for what is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from tree_sitter import Node

from analysis.devices import Device
from reports import text as words
from toolkit.launch.host_arrays import Arrays
from toolkit.launch.host_assumptions import is_taken
from toolkit.launch.host_calls import MOST_CALLERS, HostCalls, declared_part, deduced
from toolkit.launch.host_declarations import (
    Assumption,
    HostCall,
    HostFunction,
    HostVariable,
    SourcePlace,
)
from toolkit.launch.host_nodes import (
    call_arguments,
    components_of,
    path_of,
    template_arguments,
    template_parameters,
    text_of,
    uncast,
    without_comments,
)
from toolkit.launch.host_numbers import Dim3, Number, UnknownValueError, Value
from toolkit.launch.host_structs import Structs
from toolkit.launch.host_types import OUTSIDE, Frame
from toolkit.launch.host_unit import HostUnit
from toolkit.launch.host_values import DEEPEST, Evaluator
from toolkit.machine_code.signature import Declared, declared

Extent = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class HostArgument:
    """An argument of a launch: its text, its value of a scalar or a struct, the bytes of an array.

    `element` is the type that host code points to, None of what is no pointer.
    """

    text: str
    value: Number | None = None
    struct: np.void | None = None
    bytes: int | None = None
    element: str | None = None
    elsewhere: str = ""  #: "managed memory" or other memory than that of the GPU


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
    assumed: tuple[str, ...] = ()  #: what was assumed to know these values, in words
    empty: tuple[str, ...] = ()  #: a grid or block that is known and has a size below 1
    is_skipped: bool = False  #: it is in a branch, or a loop, that is known not to be executed

    @property
    def unknown(self) -> int:
        """Number of facts that are not known, grid and block included."""
        facts = [self.grid, self.block, self.name, self.shared_bytes]
        of_arguments = [
            one.value is None and one.struct is None and one.bytes is None for one in self.arguments
        ]
        return sum(one is None for one in facts) + sum(of_arguments)

    @property
    def why_open(self) -> str:
        """Reason why facts are not known, in words."""
        if self.empty:
            return f"{words.listing(self.empty)} (sizes must be at least 1)"
        return "values that are known only at run time"


@dataclass(frozen=True)
class HostCode:
    """Launches of a unit, in the order of the source; `device` runs them, None if unknown."""

    unit: HostUnit
    device: Device | None = None

    @cached_property
    def calls(self) -> HostCalls:
        return HostCalls(self.unit)

    def launches(
        self,
        given: Mapping[str, Number] | None = None,
        kernel: str | None = None,
        *,
        block: Extent | None = None,
        assuming: bool = False,
    ) -> list[HostLaunch]:
        """All launches, or those of a kernel, by its name without template arguments.

        `given` are values of scalar parameters of the kernel, by name, and `block` is a given one.
        If `assuming`, a run without arguments on the command line, and first passes of loops, are
        assumed.

        A launch in a function that several calls reach is there several times.
        """
        found = []
        for call in self.launch_calls:
            function = self.unit.function_at(call.place)
            for frame in self.calls.frames(function):
                if kernel is not None and self.kernel_of(call, frame) != kernel:
                    continue
                assumed = set[Assumption]() if assuming else None
                reading = _Reading(self.unit, self, call, frame, given or {}, block, assumed)
                launch = reading.launch
                in_words = sorted({one.words for one in assumed or ()})
                found.append(replace(launch, assumed=tuple(in_words)))
        return found

    @cached_property
    def launch_calls(self) -> list[HostCall]:
        """Launches in the order of the source; those of headers before it come last.

        Those that kernels make are not of host code.
        """
        found = [one for one in self.unit.calls if one.launch is not None]
        found = [one for one in found if not self._is_in_kernel(one)]
        return sorted(found, key=lambda one: (one.place.file, one.place.at))

    def _is_in_kernel(self, call: HostCall) -> bool:
        function = self.unit.function_at(call.place)
        return function is not None and function.is_kernel

    def kernel_of(self, call: HostCall, frame: Frame, depth: int = 8) -> str:
        """Name of the kernel of a launch, which a macro or a pointer may stand for."""
        name, place = call.name, call.place
        for _ in range(depth):
            if any(one.is_kernel for one in self.unit.functions.get(name, ())):
                return name
            macro = self.unit.macros.get(name)
            variable = self.unit.variable(name, place)
            if macro is not None and macro.parameters is None:
                name = macro.body.partition("<")[0].strip()
            elif variable is not None and variable.name in frame.arguments:
                value, place, frame = frame.arguments[variable.name]
                name = _name_of_pointer(value)
            elif variable is not None and (known := self._only_value(variable)) is not None:
                name = _name_of_pointer(known)
            else:
                break
        return call.name

    def _only_value(self, variable: HostVariable) -> Node | None:
        """Value that a variable is declared with, or that the only assignment gives it."""
        value, writes = (
            variable.declarator.child_by_field_name("value"),
            self.unit.writes_of(variable),
        )
        if value is None and len(writes) == 1 and variable.kind == "variable":
            return writes[0].value
        return value if not writes else None


def _name_of_pointer(value: Node) -> str:
    return text_of(uncast(value)).lstrip("&").partition("<")[0].strip()


@dataclass(frozen=True)
class _Reading:
    """One launch, reached by one sequence of calls."""

    unit: HostUnit
    code: HostCode
    call: HostCall
    frame: Frame
    given: Mapping[str, Number]
    block: Extent | None
    assumed: set[Assumption] | None

    @property
    def launch(self) -> HostLaunch:
        call = self.call
        assert call.launch is not None, "it is one"
        kernel = self.code.kernel_of(call, self.frame)
        configuration = without_comments(call.launch)
        read = {
            name: self._extent(node)
            for name, node in zip(("grid", "block"), configuration, strict=False)
        }
        sizes = {name: one for name, one in read.items() if one is not None and min(one) >= 1}
        empty = {name: one for name, one in read.items() if one is not None and name not in sizes}
        shared = self._number(configuration[2]) if len(configuration) > 2 else Number(0, "i32")
        templates = self._templates
        return HostLaunch(
            file=self.unit.names[call.place.file],
            line=call.line,
            kernel=kernel,
            name=self._name(kernel, templates),
            grid=sizes.get("grid"),
            block=sizes.get("block"),
            empty=tuple(f"{name} {','.join(map(str, one))}" for name, one in empty.items()),
            shared_bytes=int(shared.value) if shared is not None else None,
            arguments=tuple(map(self._argument, [*self._arguments, *self._defaults])),
            parameters=self._parameters,
            is_skipped=_is_skipped(self.call, self._evaluator, self.frame),
        )

    @cached_property
    def _arguments(self) -> list[Node]:
        return call_arguments(self.call.node)

    @property
    def _defaults(self) -> list[Node]:
        """Default values of the parameters that the launch leaves out."""
        left = self._definition.parameters[len(self._arguments) :] if self._definition else ()
        values = [one.child_by_field_name("default_value") for one in left]
        return [one for one in values if one is not None] if None not in values else []

    @cached_property
    def _definition(self) -> HostFunction | None:
        kernel = self.code.kernel_of(self.call, self.frame)
        found = [one for one in self.unit.functions.get(kernel, ()) if one.is_kernel]
        fitting = [one for one in found if len(one.parameters) == len(self._arguments)]
        chosen = fitting or found
        return chosen[0] if len(chosen) == 1 else None

    @cached_property
    def _evaluator(self) -> Evaluator:
        """Evaluator that knows the variables behind what the user gives."""
        bindings = list[_Binding]()
        names = self._definition.parameter_names if self._definition else []
        for name, argument in zip(names, self._arguments, strict=False):
            if name is not None and name in self.given:
                bindings += self._bound(argument, self.call.place, self.given[name])
        if self.block is not None:
            _, *written = without_comments(self.call.launch)
            for node in written[:1]:
                bindings += self._bound_by_block(node, self.block)
        return Evaluator(
            unit=self.unit,
            given=_agreed(bindings),
            device=self.code.device,
            assumed=self.assumed,
        )

    def _bound(self, node: Node, place: SourcePlace, value: Value) -> Iterator[_Binding]:
        """Yield a value of a variable, and of those of the callers that it is given as."""
        frame = self.frame
        for _ in range(MOST_CALLERS):
            base, path = path_of(uncast(node))
            variable = self.unit.variable(text_of(base), place)
            if variable is None:
                return
            yield (variable, path), value
            if variable.name not in frame.arguments or path:
                return
            node, place, frame = frame.arguments[variable.name]

    def _bound_by_block(self, node: Node, block: Extent) -> Iterator[_Binding]:
        """Yield what a given block says of the variables that make it."""
        place, sizes = self.call.place, [Number(size, "u32") for size in block]
        variable = self.unit.variable(text_of(uncast(node)), place)
        if variable is not None and variable.type_text in ("dim3", "const dim3"):
            yield from self._bound(node, place, Dim3(*sizes))
            for name, size in zip("xyz", sizes, strict=True):
                yield (variable, f".{name}"), size
            node, place = variable.declarator, variable.place
        elif variable is not None and block[1:] == (1, 1):
            yield from self._bound(node, place, sizes[0])
        for component, size in zip(components_of(node), sizes, strict=False):
            yield from self._bound(component, place, size)

    def _extent(self, node: Node) -> Extent | None:
        try:
            return self._evaluator.dim3(node, self.call.place, self.frame).extents
        except UnknownValueError:
            return None

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
        for name, node in deduced(definition, self._arguments, self.unit, place).items():
            nodes.setdefault(name, node)
        return {
            name: self._template(nodes[name]) if name in nodes else None
            for name in definition.templates
        }

    def _template(self, node: Node) -> str | None:
        text, evaluator = text_of(node), self._evaluator
        plain = evaluator.types.type_text(text, self.frame)
        is_type = node.type in ("primitive_type", "sized_type_specifier")
        if is_type or evaluator.types.is_type(plain, self.frame):
            return plain
        if text in self.unit.enumerators:
            return text  # a number is no enumerator
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
        return outside is not None and "=" in text_of(template_parameters(outside)[position])

    # Arguments.

    def _argument(self, node: Node) -> HostArgument:
        text = " ".join(text_of(node).split())
        inner = uncast(node)
        number = None
        if inner.type not in ("pointer_expression", "null"):
            number = self._number(node)
        if number is not None:
            return HostArgument(text=text, value=number)
        with suppress(UnknownValueError):
            structs = Structs(self.unit, self._evaluator)
            return HostArgument(text=text, struct=structs.value(node, self.call.place, self.frame))
        arrays = Arrays(self.unit, self.code.calls, self._evaluator)
        try:
            size = arrays.bytes(node, self.call.place, self.frame, DEEPEST)
        except UnknownValueError:
            size = None
        return HostArgument(
            text=text,
            bytes=size,
            element=_pointed_to(inner, self.unit, self.call.place),
            elsewhere=arrays.elsewhere(node, self.call.place),
        )


def _is_skipped(call: HostCall, evaluator: Evaluator, frame: Frame) -> bool:
    """True if a condition around a launch does not hold."""
    function = evaluator.unit.function_at(call.place)
    if function is None or call.node.start_byte != call.place.at:  # of the text of a macro
        return False
    end = SourcePlace(file=call.place.file, at=function.node.end_byte)
    return is_taken(evaluator, call.node, call.place, end, frame, DEEPEST) is False


_Binding = tuple[tuple[HostVariable, str], Value]  # a variable, a field of it, and its value


def _agreed(bindings: Iterable[_Binding]) -> dict[tuple[HostVariable, str], Value]:
    """The bindings without the variables that are given several values.

    A block of 256 threads says nothing of `b` in `dim3(b, b)`.
    """
    found: dict[tuple[HostVariable, str], Value] = {}
    several = set[tuple[HostVariable, str]]()
    for key, value in bindings:
        if found.setdefault(key, value) != value:
            several.add(key)
    return {key: value for key, value in found.items() if key not in several}


def declared_parameters(
    unit: HostUnit, kernel: HostFunction, templates: Mapping[str, str | None]
) -> tuple[Declared, ...]:
    """The parameters of a kernel, with types that macros, typedefs and templates stand for."""
    found, evaluator = [], Evaluator(unit=unit)
    for one in kernel.parameters:
        text = " ".join(text_of(one).split())
        kind = one.child_by_field_name("type")
        if text == "void":
            continue
        written = text
        if kind is not None:
            name = text_of(kind)
            plain = templates.get(name) or evaluator.types.type_text(name, OUTSIDE)
            if plain != name:
                text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", plain, text, count=1)
        found.append(replace(declared(text), was_resolved=text != written))
    return tuple(found)


def _pointed_to(node: Node, unit: HostUnit, place: SourcePlace) -> str | None:
    """The type that a pointer variable points to."""
    if node.type != "identifier":
        return None
    variable = unit.variable(text_of(node), place)
    if variable is None or "*" not in text_of(declared_part(variable)):
        return None
    return variable.type_text


def launches_of(unit: HostUnit, given: Mapping[str, Number] | None = None) -> list[HostLaunch]:
    """The launches of a unit, in the order of the source.

    >>> from toolkit.launch.host_unit import host_unit
    >>> text = "__global__ void k(float *x) {} int main() { int n = 99; k<<<n / 2, 64>>>(x); }"
    >>> (launch,) = launches_of(host_unit(text, "my.cu", None))
    >>> launch.name, launch.grid, launch.block
    ('k', (49, 1, 1), (64, 1, 1))
    """
    return HostCode(unit).launches(given)
