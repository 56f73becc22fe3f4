"""Reasons why a predicted time is not to be trusted: what the model of time does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analysis.records.counters import InstructionCounts
from analysis.records.profile import FirstRequest
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.waits import waits

_CLOCKS = ("SR_CLOCK", "SR_GLOBALTIMER")
_WRITES = ("store", "atomic", "reduction", "bulk store", "bulk reduction")


def doubts(
    kernel: Kernel,
    instructions: Sequence[InstructionCounts],
    requests: Mapping[int, FirstRequest],
) -> Iterator[str]:
    """List, a sentence each, requests of executed instructions that take another time on a GPU.

    `requests`: the first one of each instruction, by its number.
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
    done = [one for one in instructions if one.executed]
    if any(one.opcode.partition(".")[0] == "NANOSLEEP" for one in done):
        yield "Do not trust the time: the kernel sleeps (nanosleep), which the model ignores"
    if any(clock in one.text for one in done for clock in _CLOCKS):
        yield (
            "Do not trust the time if it depends on the clock that the kernel reads: here it "
            "counts instructions"
        )
