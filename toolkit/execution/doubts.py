"""Reasons why a predicted time is not to be trusted: what the model of time does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.records.counters import InstructionCounts

_CLOCKS = ("SR_CLOCK", "SR_GLOBALTIMER")


def doubts(instructions: Sequence[InstructionCounts]) -> Iterator[str]:
    """What executed instructions ask for that takes another time on a GPU, a sentence each."""
    done = [one for one in instructions if one.executed]
    if any(one.opcode.partition(".")[0] == "NANOSLEEP" for one in done):
        yield "Do not trust the time: the kernel sleeps (nanosleep), and the model does not"
    if any(clock in one.text for one in done for clock in _CLOCKS):
        yield (
            "Do not trust the time if it depends on the clock that the kernel reads: here it "
            "counts instructions"
        )
