"""Values of variables in lambdas of host code, and behind lambdas that change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.launch.host_assumptions import assume_first_call, number_of_words
from toolkit.launch.host_declarations import HostCall, HostVariable, SourcePlace, Write
from toolkit.launch.host_expressions import field_of
from toolkit.launch.host_lambdas import HostLambda
from toolkit.launch.host_nodes import call_arguments
from toolkit.launch.host_numbers import UnknownValueError, Value
from toolkit.launch.host_types import Frame
from toolkit.launch.host_unit import HostUnit

if TYPE_CHECKING:
    from toolkit.launch.host_values import Evaluator


def changes_in_lambda(
    evaluator: Evaluator, write: Write, variable: HostVariable, place: SourcePlace
) -> bool:
    """True if a lambda that may be called before a place changes a variable from outside it."""
    return any(
        not (one.contains(place.at) and write.place.file == place.file)
        and not one.contains(variable.place.at)
        and evaluator.is_earlier(SourcePlace(file=place.file, at=one.begin), place)
        for one in _lambdas_around(evaluator.unit, write.place)
    )


def seen_from(evaluator: Evaluator, variable: HostVariable, place: SourcePlace) -> SourcePlace:
    """The place at which the value of a variable counts.

    In a lambda that captures it by reference, that is the only call of the lambda, and the place
    itself if nothing changes the variable later. Raises UnknownValueError where calls may find
    several values.
    """
    unit = evaluator.unit
    for one in _lambdas_around(unit, place):
        if variable.is_global or one.contains(variable.place.at):
            continue
        if not one.captures_by_reference(variable.name):
            continue
        changes = [write.place.at for write in unit.writes_of(variable)]
        changes += [x.place.at for x in unit.uses_of(variable) if evaluator.may_change(x)]
        if not any(at >= one.begin for at in changes) or variable.is_constant:
            continue
        calls = _calls_of(unit, one, place.file)
        if len(calls) != 1 or any(map(one.contains, changes)):
            raise UnknownValueError
        return calls[0].place
    return place


def given_to_lambda(
    evaluator: Evaluator, variable: HostVariable, frame: Frame, depth: int, path: str
) -> Value:
    """Value of a parameter of a lambda, in its first call; of `argc` in a run without arguments."""
    around = _lambdas_around(evaluator.unit, variable.place)
    names = around[-1].parameter_names if around else []
    calls = _calls_of(evaluator.unit, around[-1], variable.place.file) if around else []
    if variable.name not in names or not calls:
        return number_of_words(evaluator, variable)
    call, position = calls[0], names.index(variable.name)
    arguments = call_arguments(call.node)
    if position >= len(arguments):
        raise UnknownValueError
    if len(calls) > 1:
        assume_first_call(evaluator, call)
    return field_of(evaluator.value(arguments[position], call.place, frame, depth), path)


def _lambdas_around(unit: HostUnit, place: SourcePlace) -> list[HostLambda]:
    """The lambdas that a place is in, the innermost last."""
    found = [one for one in unit.lambdas[place.file] if one.contains(place.at)]
    return sorted(found, key=lambda one: one.begin)


def _calls_of(unit: HostUnit, one: HostLambda, file: int) -> list[HostCall]:
    """Calls of a lambda, by its name or where it is written."""
    return [
        call
        for call in unit.calls
        if call.place.file == file
        and (
            (call.name == one.name and one.name and call.place.at > one.begin)
            or call.node.child_by_field_name("function") == one.node
        )
    ]
