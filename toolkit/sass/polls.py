"""Loops in which a block may wait for other blocks.

A block that asks for what other blocks write, by an atomic operation or a coherent load, need not
wait for it: it may take the next free place of an array, or find out whether it is the last block.
It can wait only in a loop that asks again until the answer is another one. Here a loop counts as
such if an answer that it gets may decide when it ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_

from toolkit.machine_code.instruction import Instruction
from toolkit.sass.control_flow import INDIRECT
from toolkit.sass.isa.memory import LOCAL, SHARED, is_strong
from toolkit.sass.regions import Flow
from toolkit.sass.unread_values import DataFlowRow, rows_of

EVERYWHERE = (1 << 2048) - 1  # all registers and predicates


def reads_what_others_write(one: Instruction) -> bool:
    """True for an atomic operation that returns a value, and for a coherent load."""
    return one.opcode in ("ATOM", "ATOMG") or (one.opcode in ("LD", "LDG") and is_strong(one))


def may_wait(flow: Flow) -> bool:
    """True if some loop may repeat until another block has written something, or if the code does
    not say where its jumps lead."""
    code = flow.instructions
    asks = {pc for pc, one in enumerate(code) if reads_what_others_write(one)}
    if not asks:
        return False
    if any(
        one.opcode in INDIRECT or (one.opcode == "CALL" and pc not in flow.control.callees)
        for pc, one in enumerate(code)
    ):
        return True
    rows = rows_of(flow)
    return any(
        asks & called or (asks & loop and _ends_by_answers(flow, rows, loop, asks & loop))
        for loop, called in loops_of(flow)
    )


def loops_of(flow: Flow) -> Iterator[tuple[set[int], set[int]]]:
    """Instructions of each loop, and of the functions that it calls.

    Those of a loop reach a jump backward without passing its target.
    """
    control = flow.control
    before: list[list[int]] = [[] for _ in range(control.end + 1)]
    for pc, following in enumerate(control.successors):
        for after in following:
            before[min(after, control.end)].append(pc)
    for pc, following in enumerate(control.successors):
        for target in (after for after in following if after <= pc):
            body, pending = {target}, [pc]
            while pending:
                if (inside := pending.pop()) not in body:
                    body.add(inside)
                    pending += before[inside]
            called = [control.callees[k] for k in body if k in control.callees]
            yield body, control.between(called, control.end)


def _ends_by_answers(
    flow: Flow, rows: Sequence[DataFlowRow], loop: set[int], asks: set[int]
) -> bool:
    """True if a value that the instructions `asks` of a loop get may decide when it ends.

    Values are followed along the paths of the loop. A register that is written anew no longer has
    one; memory of a block keeps them, and so do its barriers, which reduce predicates. `under`:
    instructions that such a value decides about.
    """
    control = flow.control
    exits = {pc for pc in loop if not loop.issuperset(control.successors[pc])}
    exits |= {pc for pc in loop if flow.instructions[pc].opcode in ("EXIT", "BREAK")}
    spaces, under, in_barriers = set[int](), set[int](), False
    while True:
        before = len(spaces), len(under), in_barriers
        reached, pending = dict.fromkeys(loop, 0), sorted(loop)
        while pending:
            pc = pending.pop()
            row = rows[pc]
            sources = reduce(or_, row.read, row.guard | row.predicates_read)
            depends = pc in under or bool(sources & reached[pc])
            if depends and pc in exits:
                return True
            if depends and len(control.successors[pc]) > 1:
                under |= set(flow.region(pc)[0]) & loop
            if depends and row.is_memory:
                spaces |= row.spaces & {SHARED, LOCAL}
            in_barriers |= depends and row.name == "BARRIER"
            depends |= in_barriers and row.name == "BARRIER_RESULT"
            found = reached[pc] & ~row.replaced
            if pc in control.callees and reached[pc]:
                found = EVERYWHERE  # where a function leaves them is not followed
            elif pc in asks or depends or (row.is_memory and spaces & row.spaces):
                found = reached[pc] | row.written
            for after in loop.intersection(control.successors[pc]):
                if found & ~reached[after]:
                    reached[after] |= found
                    pending.append(after)
        if before == (len(spaces), len(under), in_barriers):
            return False
