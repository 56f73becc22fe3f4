"""Reasons why a predicted time is not to be trusted: what the model of time does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analysis.records.counters import InstructionCounts
from analysis.records.profile import FirstRequest
from toolkit.execution.in_time import MOST_INSTRUCTIONS
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.variable_names import variable_name
from toolkit.sass.translate import uses_heap
from toolkit.sass.waits import waits

# No time of a call explains both: a launch of which one thread prints four floats (`swiglu` of the
# public launches) takes 29 to 34 µs longer than predicted without that, with a warm and a cold L2,
# one of 32 threads takes 23 µs in all, and those of 2,048 threads 572 and 652 µs more
# (docs/decisions/0184, `gemv`).
PRINTING = "on an H200 one call took 29 to 34 µs, and 2,048 calls 570 to 650 µs"
_CLOCKS = ("SR_CLOCK", "SR_GLOBALTIMER")
_WRITES = ("store", "atomic", "reduction", "bulk store", "bulk reduction")


def doubts(
    kernel: Kernel,
    instructions: Sequence[InstructionCounts],
    requests: Mapping[int, FirstRequest],
    *,
    prints: bool = False,
    is_followed: bool = True,
) -> Iterator[str]:
    """List, a sentence each, requests of executed instructions that take another time on a GPU.

    `requests`: the first one of each instruction, by its number. `prints`: the launch printed.
    `is_followed`: blocks that wait for each other were executed in time to the end of the launch.
    """
    written = {one.buffer for k, one in requests.items() if instructions[k].action in _WRITES}
    polled = {
        requests[k].buffer for loop in waits(kernel.instructions) for k in loop if k in requests
    }
    for buffer in sorted(polled - written):
        yield (
            f"Do not trust the time: a loop waits for {buffer}, which no block of this launch "
            "writes"
        )
    if not is_followed:
        yield (
            "The time may be too short: blocks wait for each other, or swap values until no other "
            f"has come before, for more than the {MOST_INSTRUCTIONS / 1e6:.0f} million warp "
            "instructions that are followed in time"
        )
    managed = {f"variable `{variable_name(x.name)}`" for x in kernel.variables if x.is_managed}
    for buffer in sorted(managed & {one.buffer for one in requests.values()}):
        yield f"Do not trust the time: {buffer} is managed memory, and the model has it on the GPU"
    if prints:
        yield (
            "Do not trust the time: the kernel prints (printf), and the model ignores that: "
            f"{PRINTING}"
        )
    done = [one for one in instructions if one.executed]
    if uses_heap(kernel) and any(one.text.startswith("CALL.ABS") for one in done):
        yield ("Do not trust the time: the kernel calls malloc or free, and the model ignores that")
    if any(one.opcode.partition(".")[0] == "NANOSLEEP" for one in done):
        yield "Do not trust the time: the kernel sleeps (nanosleep), which the model ignores"
    if any(clock in one.text for one in done for clock in _CLOCKS):
        yield (
            "Do not trust the time if it depends on the clock that the kernel reads: here it "
            "counts instructions"
        )
