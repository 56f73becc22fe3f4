"""Values that host code gives its variables, where they are the same in every run.

A value that may be another one at run time is unknown: of the command line, of a file, of a loop,
or of a branch. An evaluator that assumes takes a run without arguments on the command line, and the
first pass of each loop around a place (decision 155). Arithmetic is that of C: integers divide
toward zero, and what overflows is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tree_sitter import Node

from analysis.devices import Device
from toolkit.launch.host_assumptions import (
    assume_first_pass,
    assume_written,
    device_attribute,
    device_property,
    is_in_update,
    is_taken,
)
from toolkit.launch.host_captures import changes_in_lambda, given_to_lambda, seen_from
from toolkit.launch.host_declarations import Assumption, HostVariable, SourcePlace, Use, Write
from toolkit.launch.host_expressions import HANDLERS, field_of
from toolkit.launch.host_macro_text import is_taken_apart
from toolkit.launch.host_nodes import (
    call_arguments,
    constructor_arguments,
    expression,
    text_of,
    without_comments,
)
from toolkit.launch.host_numbers import (
    ONE,
    REAL_FUNCTIONS,
    Dim3,
    Number,
    UnknownValueError,
    Value,
    converted,
)
from toolkit.launch.host_types import Frame, Types
from toolkit.launch.host_unit import HostUnit

DEEPEST = 48  # values that follow from other values
# Functions that only read what an address points to
_READS = re.compile(
    r"cudaMemcpyToSymbol|cudaLaunch|v?f?printf|cublas\w*(gemm|gemv|scal|axpy)", re.I
)
# Functions that take numbers by value
_HARMLESS = re.compile(
    r"(cuda|cu(blas|rand|dnn|fft|sparse|solver)|nccl|nvtx|cu[A-Z]|std::)|(v|f|s|sn)?printf$|(check|CHECK)\w*$|\w*(CHECK|Check|check)"
    r"|(mem(cpy|set|cmp)|(m|c)alloc|free|assert|exit|min|max|ceilf?|floorf?|sqrtf?|pow|abs|srand|sdk"
    r"|make_|dim3|(reinterpret|static|const)_cast|sizeof|thrust)"
)


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """Evaluator of expressions of a unit. `given` are values that the user gives: of
    variables, and of their fields (".x"). `device` is the one that the program runs on, None if it
    is not known. `assumed` collects what was assumed; None if nothing may
    be. `conditions` are known conditions, by where they are, and what they assume.
    """

    unit: HostUnit
    given: Mapping[tuple[HostVariable, str], Value] = field(default_factory=dict)
    device: Device | None = None
    assumed: set[Assumption] | None = None
    conditions: dict[tuple[int, int, int, Frame], tuple[bool | None, frozenset[Assumption]]] = (
        field(default_factory=dict)
    )

    def assume(self, what: Assumption) -> None:
        """Note an assumption. Raises UnknownValueError if nothing may be assumed."""
        if self.assumed is None:
            raise UnknownValueError
        self.assumed.add(what)

    def assume_all(self, those: Iterable[Assumption]) -> None:
        for one in those:
            self.assume(one)

    @cached_property
    def types(self) -> Types:
        return Types(
            self.unit, lambda node, place, frame: int(self.number(node, place, frame).value)
        )

    def value(self, node: Node, place: SourcePlace, frame: Frame, depth: int = DEEPEST) -> Value:
        """Value of an expression at a place. Raises UnknownValueError."""
        if depth == 0:
            raise UnknownValueError
        handler = HANDLERS.get(node.type)
        if handler is None:
            raise UnknownValueError
        if node.type in ("identifier", "call_expression") and is_taken_apart(
            node, self.unit.macros
        ):
            raise UnknownValueError
        return handler(self, node, place, frame, depth - 1)

    def number(self, node: Node, place: SourcePlace, frame: Frame, depth: int = DEEPEST) -> Number:
        found = self.value(node, place, frame, depth)
        if not isinstance(found, Number):
            raise UnknownValueError
        return found

    def dim3(self, node: Node, place: SourcePlace, frame: Frame) -> Dim3:
        """Value of an expression that a launch takes as a grid or a block."""
        found = self.value(node, place, frame)
        return found if isinstance(found, Dim3) else Dim3(found, ONE, ONE)

    def name(
        self, name: str, place: SourcePlace, frame: Frame, depth: int, path: str = ""
    ) -> Value:
        unit = self.unit
        if not path and name in frame.values:
            return frame.values[name]
        if not path and name in frame.templates:
            return self.value(*frame.templates[name], depth)
        variable = unit.variable(name, place)
        if variable is not None:
            return self.variable(variable, place, frame, depth, path)
        if path:
            raise UnknownValueError
        if name in unit.macros:
            macro = unit.macros[name]
            inner = expression(macro.body) if macro and macro.parameters is None else None
            if inner is None:
                raise UnknownValueError
            return self.value(inner, place, frame, depth)
        if name in unit.enumerators:
            return self.value(unit.enumerators[name], place, frame, depth)
        raise UnknownValueError

    def variable(
        self, variable: HostVariable, place: SourcePlace, frame: Frame, depth: int, path: str = ""
    ) -> Value:
        """Value of a variable, or of the field `path` of it, at a place."""
        if depth == 0 or variable.kind == "element":
            raise UnknownValueError
        if (variable, path) in self.given:
            return self.given[variable, path]
        if path and variable.type_text.removeprefix("struct ") == "cudaDeviceProp":
            return device_property(self, path.removeprefix("."))
        place = seen_from(self, variable, place)
        earlier = (
            use
            for use in self.unit.uses_of(variable)
            if variable.is_global or self.is_earlier(use.place, place)
        )
        if self.unit.is_ambiguous(variable) or self._is_changed_by(earlier, variable):
            raise UnknownValueError
        kind = self.types.type_of(variable, frame)
        last, later = self._last_write(variable, place, path, frame, depth)
        if last is None:
            found = self._initial(variable, frame, depth, path)
        else:
            if last.value is None:
                raise UnknownValueError
            if last.value is last.node:  # of cudaDeviceGetAttribute
                attribute = text_of(call_arguments(last.node)[1])
                return device_attribute(self, attribute)
            writer = self.unit.function_at(last.place)
            is_here = writer is self.unit.function_at(place)
            found = self.value(
                last.value, last.place, frame if is_here else Frame(function=writer), depth
            )
        for write in later:
            if not isinstance(found, Dim3) or write.value is None:
                raise UnknownValueError
            component = self.number(write.value, write.place, frame, depth)
            parts = {"x": found.x, "y": found.y, "z": found.z} | {write.path[1:]: component}
            found = Dim3(parts["x"], parts["y"], parts["z"])
        if path:
            return found
        if kind == "dim3" and isinstance(found, Number):
            return Dim3(found, ONE, ONE)
        return converted(found, kind) if isinstance(found, Number) and kind else found

    def _initial(  # noqa: PLR0911
        self, variable: HostVariable, frame: Frame, depth: int, path: str
    ) -> Value:
        """Value that a variable is declared with."""
        if variable.kind == "parameter":
            if variable.name not in frame.arguments:
                return given_to_lambda(self, variable, frame, depth, path)
            node, place, outer = frame.arguments[variable.name]
            return field_of(self.value(node, place, outer, depth), path)
        declarator = variable.declarator
        is_dim3 = variable.type_text in ("dim3", "const dim3")
        if declarator.type == "function_declarator":
            names = constructor_arguments(declarator) or []
            whole = [self.value(x, variable.place, frame, depth) for x in names]
            if len(whole) == 1:
                return field_of(whole[0], path)
            parts = [one for one in whole if isinstance(one, Number)]
            if not is_dim3 or len(parts) != len(whole) or len(parts) > 3:
                raise UnknownValueError
            x, y, z = (*parts, ONE, ONE)[:3]
            return field_of(Dim3(x, y, z), path)
        if variable.declaration.has_error:
            raise UnknownValueError  # text that is not C++ may be a macro, which is not followed
        if declarator.type != "init_declarator":
            if is_dim3 and declarator.type == "identifier":
                return field_of(Dim3(ONE, ONE, ONE), path)
            raise UnknownValueError
        value = declarator.child_by_field_name("value")
        inner = declarator.child_by_field_name("declarator")
        if value is None or inner is None or inner.type != "identifier":
            raise UnknownValueError  # of a pointer, a reference or an array
        if value.type in ("argument_list", "initializer_list"):
            parts = [self.number(x, variable.place, frame, depth) for x in without_comments(value)]
            if is_dim3 and 1 <= len(parts) <= 3:
                x, y, z = (*parts, ONE, ONE)[:3]
                return field_of(Dim3(x, y, z), path)
            if len(parts) == 1 and not is_dim3:
                return field_of(parts[0], path)
            raise UnknownValueError
        return field_of(self.value(value, variable.place, frame, depth), path)

    def _last_write(
        self, variable: HostVariable, place: SourcePlace, path: str, frame: Frame, depth: int
    ) -> tuple[Write | None, list[Write]]:
        """The write that certainly comes last before a place, and those of fields after it.

        None is the declaration. Raises UnknownValueError where another write may come between.
        """
        writes = [
            one
            for one in self.unit.writes_of(variable)
            if not path or not one.path or one.path == path
        ]
        if any(changes_in_lambda(self, one, variable, place) for one in writes):
            raise UnknownValueError
        updates = [one for one in writes if is_in_update(one, place)]
        writes = [one for one in writes if one not in updates]
        taken = {
            one: is_taken(self, one.node, one.place, place, frame, depth)
            for one in writes
            if not variable.is_global and one.place.at < place.at and not is_certain(one, place)
        }
        writes = [one for one in writes if taken.get(one) is not False]
        if not writes and not updates:
            return None, []
        if variable.is_global:  # any function may be called in between
            return self._only_write(variable, writes + updates, place), []
        certain = [one for one in writes if is_certain(one, place) or taken.get(one)]
        whole = [one for one in certain if one.path in ("", path)]
        last = whole[-1] if whole else None
        begin = last.place.at if last else variable.place.at
        later = []
        for one in writes:
            if one is last:
                continue
            if begin < one.place.at < place.at:
                if one not in certain:
                    raise UnknownValueError
                later.append(one)
        for first, end in self.unit.loops_around(place):
            if first <= begin < end:
                continue
            if any(first <= one.place.at < end for one in (*writes, *updates)):
                assume_first_pass(self, first, place)
        return last, later

    def _only_write(
        self, variable: HostVariable, writes: Sequence[Write], place: SourcePlace
    ) -> Write:
        """The only write of a global variable without another value, which is assumed to be first.

        Raises UnknownValueError where it may come later, or not at all.
        """
        value = variable.declarator.child_by_field_name("value")
        has_value = value is not None and text_of(value) not in ("0", "NULL", "nullptr")
        if len(writes) != 1 or has_value or writes[0].path or writes[0].home is None:
            raise UnknownValueError
        (found,) = writes
        is_here = self.unit.function_at(found.place) is self.unit.function_at(place)
        if self.unit.loops_around(found.place) or (is_here and found.place.at > place.at):
            raise UnknownValueError
        assume_written(self, variable, found)
        return found

    def is_earlier(self, other: SourcePlace, place: SourcePlace) -> bool:
        """True if what happens at a place of the same function may come before another one."""
        around = self.unit.loops_around(place)
        return other.at < place.at or any(first <= other.at < end for first, end in around)

    def may_be_changed(self, variable: HostVariable) -> bool:
        """True if a function may change a variable, wherever that is called."""
        uses = self.unit.uses_of(variable)
        return self.unit.is_ambiguous(variable) or self._is_changed_by(uses, variable)

    def _is_changed_by(self, uses: Iterable[Use], variable: HostVariable) -> bool:
        """True if one of these uses may change a variable; none changes one that is `const`."""
        return not variable.is_constant and any(map(self.may_change, uses))

    def may_change(self, use: Use) -> bool:
        """True if a function may change the variable that it is given."""
        functions = self.unit.functions.get(use.function)
        if use.is_address:
            return not use.function or not _READS.match(use.function)
        if self.unit.variable(use.function, use.place) is not None:  # a lambda, or a pointer
            known = [x for x in self.unit.lambdas[use.place.file] if x.name == use.function]
            return not known or any(one.takes_reference(use.position) for one in known)
        if functions:
            return any(one.takes_reference(use.position) for one in functions)
        if use.function in self.unit.prototypes:
            return any("&" in one for one in self.unit.prototypes[use.function])
        if use.function in self.unit.macros or use.function.removesuffix("f") in REAL_FUNCTIONS:
            return False
        return not _HARMLESS.match(use.function)


def is_certain(write: Write, place: SourcePlace) -> bool:
    """True if a write is certainly executed before a place."""
    home = write.home
    return home is not None and home[0] <= place.at < home[1] and write.place.at < place.at
