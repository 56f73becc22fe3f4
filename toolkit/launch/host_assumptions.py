"""Assumptions of an evaluator of host code where a launch stays open (decisions 155 and 178).

The program runs without arguments and on one device, each loop around a place is in its first
pass, and a global variable that is written once has that value.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tree_sitter import Node

from analysis.devices import Device
from analysis.geometry import WARP_SIZE
from toolkit.launch.host_declarations import Assumption, HostCall, HostVariable, SourcePlace, Write
from toolkit.launch.host_expressions import NO_ARGUMENTS
from toolkit.launch.host_nodes import only_child
from toolkit.launch.host_numbers import Number, UnknownValueError
from toolkit.launch.host_types import Frame
from toolkit.launch.host_unit import BLOCKS, UNCONDITIONAL

if TYPE_CHECKING:
    from toolkit.launch.host_values import Evaluator

# Nodes that execute what they contain; `_branch` tells the condition of an else_clause
_ALWAYS = (*UNCONDITIONAL, *BLOCKS, "else_clause")

# Fields of cudaDeviceProp: their types, and their values
_PROPERTIES: dict[str, tuple[str, Callable[[Device], int]]] = {
    "multiProcessorCount": ("i32", lambda device: device.sm_count),
    "maxThreadsPerMultiProcessor": ("i32", lambda device: device.max_threads_per_sm),
    "maxThreadsPerBlock": ("i32", lambda device: device.max_threads_per_block),
    "maxBlocksPerMultiProcessor": ("i32", lambda device: device.max_blocks_per_sm),
    "warpSize": ("i32", lambda device: WARP_SIZE),
    "regsPerMultiprocessor": ("i32", lambda device: device.registers_per_sm),
    "sharedMemPerMultiprocessor": ("u64", lambda device: device.shared_bytes_per_sm),
    "sharedMemPerBlock": ("u64", lambda device: device.shared_bytes_per_block),
    "sharedMemPerBlockOptin": ("u64", lambda device: device.shared_bytes_per_block_optin),
    "major": ("i32", lambda device: device.compute_capability[0]),
    "minor": ("i32", lambda device: device.compute_capability[1]),
}


# Attributes of cudaDeviceGetAttribute, by what follows cudaDevAttr
_ATTRIBUTES = {
    "MultiProcessorCount": "multiProcessorCount",
    "MaxThreadsPerMultiProcessor": "maxThreadsPerMultiProcessor",
    "MaxThreadsPerBlock": "maxThreadsPerBlock",
    "MaxBlocksPerMultiprocessor": "maxBlocksPerMultiProcessor",
    "WarpSize": "warpSize",
    "MaxRegistersPerMultiprocessor": "regsPerMultiprocessor",
    "MaxSharedMemoryPerMultiprocessor": "sharedMemPerMultiprocessor",
    "MaxSharedMemoryPerBlock": "sharedMemPerBlock",
    "MaxSharedMemoryPerBlockOptin": "sharedMemPerBlockOptin",
    "ComputeCapabilityMajor": "major",
    "ComputeCapabilityMinor": "minor",
}


def device_attribute(evaluator: Evaluator, name: str) -> Number:
    """Value of an attribute such as "cudaDevAttrWarpSize", an int."""
    found = _ATTRIBUTES.get(name.removeprefix("cudaDevAttr"))
    if found is None:
        raise UnknownValueError
    return replace(device_property(evaluator, found), kind="i32")


def device_property(evaluator: Evaluator, name: str) -> Number:
    """Value of a field of cudaDeviceProp on the device of the evaluator."""
    device = evaluator.device
    if device is None or name not in _PROPERTIES:
        raise UnknownValueError
    kind, value_on = _PROPERTIES[name]
    found = Number(value_on(device), kind)
    evaluator.assume(Assumption(words=f"{name} = {found.value}"))
    return found


def assume_written(evaluator: Evaluator, variable: HostVariable, write: Write) -> None:
    """Assume that the only write of a global variable was executed before the launch."""
    text = evaluator.unit.texts[write.place.file].encode()
    line = text[: write.place.at].count(b"\n") + 1
    where = f"line {line} of {evaluator.unit.names[write.place.file]}"
    evaluator.assume(Assumption(words=f"the value that {variable.name} gets in {where}"))


def number_of_words(evaluator: Evaluator, variable: HostVariable) -> Number:
    """Value of `argc`, the first parameter of main, in a run without arguments."""
    function = evaluator.unit.function_at(variable.place)
    if function is None or function.name != "main" or not function.parameter_names:
        raise UnknownValueError
    if variable.name != function.parameter_names[0]:
        raise UnknownValueError
    evaluator.assume(NO_ARGUMENTS)
    return Number(1, "i32")


def is_taken(
    evaluator: Evaluator,
    node: Node,
    origin: SourcePlace,
    place: SourcePlace,
    frame: Frame,
    depth: int,
) -> bool | None:
    """True if conditions around a node hold, so that it comes before a place; None: unknown.

    `origin` is the place of the node: a write of a variable, or a launch. A loop that does not
    begin takes none. A loop that does has later passes, so that nothing is known from the first
    pass of a loop that is not around the place.
    """
    around = evaluator.unit.loops_around(place)
    passed = {
        SourcePlace(file=place.file, at=begin)
        for begin, end in evaluator.unit.loops_around(origin)
        if (begin, end) not in around
    }
    assumed = set[Assumption]()
    known = True
    while (outer := node.parent) is not None and outer.type != "function_definition":
        if outer.start_byte <= place.at < outer.end_byte:
            break
        branch = _branch(outer, node)
        if outer.type == "case_statement" and _is_other_case(evaluator, outer, place, frame, depth):
            return False
        if branch is None:
            known = known and outer.type in _ALWAYS
        else:
            condition, expected = branch
            holds, all_of_it = _holds(evaluator, condition, place.file, frame, depth - 1)
            because = {one for one in all_of_it if one.loop not in passed}
            others = {one.loop for one in all_of_it - because if one.loop is not None}
            if any(loop.at < outer.start_byte for loop in others):  # not of the loop itself
                holds = None
            if holds is (not expected):
                evaluator.assume_all(because)
                return False
            known = known and holds is expected and outer.type == "if_statement"
            assumed |= because
        node = outer
    if known:
        evaluator.assume_all(assumed)
    return True if known else None


def _holds(
    evaluator: Evaluator, condition: Node, file: int, frame: Frame, depth: int
) -> tuple[bool | None, frozenset[Assumption]]:
    """Value of a condition where it is tested first, None if unknown, and what it assumes.

    It is kept: conditions read variables that are written under earlier conditions.
    """
    key = (file, condition.start_byte, condition.end_byte, frame)
    if key not in evaluator.conditions:
        first = evaluator if evaluator.assumed is None else replace(evaluator, assumed=set())
        holds = None
        with suppress(UnknownValueError):
            at = SourcePlace(file=file, at=condition.start_byte)
            holds = bool(first.number(condition, at, frame, depth).value)
        evaluator.conditions[key] = holds, frozenset(first.assumed or ())
    return evaluator.conditions[key]


def assume_first_pass(evaluator: Evaluator, begin: int, place: SourcePlace) -> None:
    """Assume that the loop that begins at `begin` is in its first pass."""
    line = evaluator.unit.texts[place.file].encode()[:begin].count(b"\n") + 1
    words = f"the first pass of the loop in line {line}"
    evaluator.assume(Assumption(words=words, loop=SourcePlace(file=place.file, at=begin)))


def assume_first_call(evaluator: Evaluator, call: HostCall) -> None:
    """Assume the first of several calls of a lambda."""
    line = call.line
    evaluator.assume(Assumption(words=f"the call of {call.name or 'a lambda'} in line {line}"))


def is_in_update(write: Write, place: SourcePlace) -> bool:
    """True if a write is the update of a loop around a place: it follows each pass."""
    node = write.node
    while (outer := node.parent) is not None:
        if outer.type == "for_statement" and outer.child_by_field_name("update") == node:
            return outer.start_byte <= place.at < outer.end_byte
        node = outer
    return False


def _is_other_case(
    evaluator: Evaluator, case: Node, place: SourcePlace, frame: Frame, depth: int
) -> bool:
    """True if a `switch` is known to take another case, which does not run on into this one.

    It is kept, as conditions are.
    """
    key = (place.file, case.start_byte, case.end_byte, frame)
    if key not in evaluator.conditions:
        is_other = _takes_another(evaluator, case, place, frame, depth)
        evaluator.conditions[key] = is_other, frozenset()
    return evaluator.conditions[key][0] is True


def _takes_another(
    evaluator: Evaluator, case: Node, place: SourcePlace, frame: Frame, depth: int
) -> bool:
    body = case.parent
    switch = body.parent if body is not None else None
    condition = switch.child_by_field_name("condition") if switch is not None else None
    if body is None or condition is None:
        return False
    exact = replace(evaluator, assumed=None)  # what is assumed here would not be noted
    at = SourcePlace(file=place.file, at=condition.start_byte)
    cases = [one for one in body.named_children if one.type == "case_statement"]
    with suppress(UnknownValueError):
        value = exact.number(only_child(condition) or condition, at, frame, depth - 1).value
        labels = [one.child_by_field_name("value") for one in cases]
        values = [None if x is None else exact.number(x, at, frame).value for x in labels]
        if value not in values and None not in values:
            return True
        chosen = values.index(value if value in values else None)
        between = cases[chosen : cases.index(case)]
        return cases[chosen] != case and (not between or any(map(_ends, between)))
    return False


def _ends(case: Node) -> bool:
    """True if a case of a `switch` ends with `break` or `return`, also in braces."""
    if not case.named_children:  # an empty default
        return False
    last = case.named_children[-1]
    if last.type == "compound_statement" and last.named_children:
        last = last.named_children[-1]
    return last.type in ("break_statement", "return_statement")


def _branch(outer: Node, inner: Node) -> tuple[Node, bool] | None:
    """The condition of a statement, and whether it holds where a part of it is executed."""
    condition = outer.child_by_field_name("condition")
    if condition is None or outer.type not in ("if_statement", "for_statement", "while_statement"):
        return None
    if condition.type == "condition_clause":
        condition = condition.child_by_field_name("value") or condition
    if inner == outer.child_by_field_name("alternative"):
        return condition, False
    parts = [outer.child_by_field_name(x) for x in ("consequence", "body", "update")]
    return (condition, True) if inner in parts else None
