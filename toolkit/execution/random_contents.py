"""Sentence on arrays with random contents that decide accesses or loops of a launch.

Where an array is an index, or says how often a loop runs, counters and time are those of its
contents.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from reports import text as words
from toolkit.launch.launch import Execution
from toolkit.launch.random_arrays import RANDOM_INTEGERS
from toolkit.sass.deciding_loads import DecidingLoads
from toolkit.sass.regions import Flow
from toolkit.sass.translate import translate


def with_random_contents(execution: Execution, positions: Collection[int]) -> Execution:
    """The execution, which also says which arrays' random contents decide accesses or loops.

    `positions` are those of the arguments that are random arrays.
    """
    kernel = execution.cubin
    loads = dict[int, set[int]]()  # of each random array that the launch does not fill itself
    at = {pc: _position(request.buffer) for pc, request in execution.requests.items()}
    filled = {at[pc] for pc in at if execution.instructions[pc].action == "store"}
    for pc, position in at.items():
        is_load = execution.instructions[pc].action == "load"
        if is_load and position in positions and position not in filled:
            loads.setdefault(position, set()).add(pc)
    if kernel is None or not loads:
        return execution
    translated = translate(kernel)
    values = DecidingLoads(Flow(translated.linked.instructions, translated.lowered))
    if not values.decide(set().union(*loads.values())):
        return execution
    deciding = [position for position in sorted(loads) if values.decide(loads[position])]
    declared = kernel.declared or ()
    if not deciding:
        return execution
    own_names = [declared[k].name if k < len(declared) else None for k in deciding]
    listed = words.listing(
        [name or f"argument {k}" for k, name in zip(deciding, own_names, strict=True)]
    )
    decide, hold = ("decide", "hold") if len(deciding) > 1 else ("decides", "holds")
    example = f"{own_names[0]}=FILE.npy" if own_names[0] else "FILE.npy"
    doubt = f"The time depends on the contents of {listed}, which are random"
    note = (
        f"{listed} {hold} random numbers (integers from 0 to {RANDOM_INTEGERS - 1}, "
        f"floats from −1 to 1) and {decide} "
        f"addresses or the number of passes of a loop: give contents, such as -a '{example}'"
    )
    doubts = [doubt if execution.predicted else "", execution.uncertainty]
    return replace(
        execution,
        uncertainty=". ".join(filter(None, doubts)),
        notes=(*execution.notes, note),
    )


def _position(label: str) -> int:
    """Position of the argument that a buffer is labelled as, -1 for another buffer."""
    kind, _, rest = label.partition(" ")
    number = rest.partition(" ")[0].rstrip(",")
    return int(number) if kind == "argument" and number.isdecimal() else -1
