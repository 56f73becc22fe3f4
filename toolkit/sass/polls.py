"""Loops in which a block may wait for other blocks.

A block that asks for what other blocks write, by an atomic operation or a coherent load, need not
wait for it: it may take the next free place of an array, or find out whether it is the last block.
It can wait only in a loop that asks again until the answer is another one. Here a loop counts as
such if an answer that it gets may decide when it ends.

A loop that exchanges a word, or compares and swaps it, at one address mostly repeats only if others
come before: it takes a lock, or adds to a number. A block that is executed alone leaves it, unless
it waits for a value that only another block writes.
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
EXCHANGES = {"CAS", "EXCH"}  # modifiers of atomic operations


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
    return any(not is_of_exchanges for is_of_exchanges in _asking_loops(flow, asks))


def repeats_exchanges(flow: Flow) -> bool:
    """True if some loop exchanges a word at one address until the answer is another one."""
    asks = {pc for pc, one in enumerate(flow.instructions) if reads_what_others_write(one)}
    return any(_asking_loops(flow, asks))


def _asking_loops(flow: Flow, asks: set[int]) -> Iterator[bool]:
    """For each loop that answers may end: True if it only exchanges words at one address each."""
    rows = rows_of(flow)
    live = _read_later(flow, rows)
    for loop, called in loops_of(flow):
        if asks & called:
            yield False
        elif asks & loop and _ends_by_answers(flow, rows, live, loop, asks & loop):
            yield _only_exchanges(flow.instructions, rows, loop, asks & loop)


def may_depend_on_data(flow: Flow) -> bool:
    """True if a branch may depend on what is in global memory, or behind a call on anything."""
    code, control = flow.instructions, flow.control
    loads = {pc for pc, one in enumerate(code) if one.opcode in ("LD", "LDG", "ATOM", "ATOMG")}
    branches = {pc for pc in range(control.end) if len(control.successors[pc]) > 1}
    rows = rows_of(flow)
    part = set(range(control.end))
    return _decide(flow, rows, _read_later(flow, rows), part, loads, branches)


def _only_exchanges(
    code: Sequence[Instruction], rows: Sequence[DataFlowRow], loop: set[int], asks: set[int]
) -> bool:
    """True if a loop asks only by exchanges of words whose addresses it does not change.

    Where the address changes, as in a search for a free place of a table, how often the loop
    repeats depends on what other blocks have written.
    """
    written = reduce(or_, (rows[pc].written for pc in loop))
    return all(EXCHANGES & set(code[pc].modifiers) for pc in asks) and not any(
        written & (rows[pc].read[0] | rows[pc].read[1]) for pc in asks
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


def _read_later(flow: Flow, rows: Sequence[DataFlowRow]) -> list[int]:
    """Registers and predicates that each instruction, or one after it, reads before they change."""
    control = flow.control
    found, before = [0] * (control.end + 1), None
    while found != before:
        before = list(found)
        for pc in reversed(range(control.end)):
            after = reduce(or_, (found[min(k, control.end)] for k in control.successors[pc]), 0)
            if pc in control.callees:
                after |= found[control.callees[pc]]
            row = rows[pc]
            own = reduce(or_, row.read, row.guard | row.predicates_read)
            found[pc] = own | (after & ~row.replaced)
    return found


def _ends_by_answers(
    flow: Flow,
    rows: Sequence[DataFlowRow],
    live: Sequence[int],
    loop: set[int],
    asks: set[int],
) -> bool:
    """True if a value that the instructions `asks` of a loop get may decide when it ends."""
    successors = flow.control.successors
    exits = {pc for pc in loop if not loop.issuperset(successors[pc])}
    exits |= {pc for pc in loop if flow.instructions[pc].opcode in ("EXIT", "BREAK")}
    return _decide(flow, rows, live, loop, asks, exits)


def _decide(
    flow: Flow,
    rows: Sequence[DataFlowRow],
    live: Sequence[int],
    part: set[int],
    asks: set[int],
    decided: set[int],
) -> bool:
    """True if values that the instructions `asks` of a part of the code get may decide what one of
    the instructions `decided` does.

    Values are followed along the paths of the part. A register that is written anew no longer has
    one, and one that is not read later (`live`) is not followed. Memory of a block keeps them, and
    so do its barriers, which reduce predicates. `under`: instructions that such a value decides
    about.
    """
    control = flow.control
    spaces, under, in_barriers = set[int](), set[int](), False
    while True:
        before = len(spaces), len(under), in_barriers
        reached, pending = dict.fromkeys(part, 0), sorted(part)
        while pending:
            pc = pending.pop()
            row = rows[pc]
            sources = reduce(or_, row.read, row.guard | row.predicates_read)
            depends = pc in under or bool(sources & reached[pc])
            if depends and pc in decided:
                return True
            if depends and len(control.successors[pc]) > 1:
                under |= set(flow.region(pc)[0]) & part
            if depends and row.is_memory:
                spaces |= row.spaces & {SHARED, LOCAL}
            in_barriers |= depends and row.name == "BARRIER"
            depends |= in_barriers and row.name == "BARRIER_RESULT"
            found = reached[pc] & ~row.replaced
            if pc in control.callees and reached[pc]:
                found = EVERYWHERE  # where a function leaves them is not followed
            elif pc in asks or depends or (row.is_memory and spaces & row.spaces):
                found = reached[pc] | row.written
            for after in part.intersection(control.successors[pc]):
                if found & live[after] & ~reached[after]:
                    reached[after] |= found & live[after]
                    pending.append(after)
        if before == (len(spaces), len(under), in_barriers):
            return False
