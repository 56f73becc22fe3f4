"""Entries of `explain`: words of the first lines and of the ladder that name no cause."""

from __future__ import annotations

from analysis.records.entry import EntryGroup, WordEntry

_RESULT = (EntryGroup.RESULT,)

ENTRIES = (
    WordEntry(
        word="state of L2",
        groups=_RESULT,
        sentences=(
            "It says what the launch finds in L2, which changes its time.",
            "Dirty L2 holds lines that others wrote and that DRAM has yet to take, clean L2 lines "
            "that others read, warm L2 what the same launch left there.",
            "Dirty is the default, as the launch before usually wrote something else.",
        ),
        formula="none; it is an input: --l2 dirty, clean or warm",
        where="terminal: first line; page: below the time",
        guide="timing.md#L2 at the start",
        also=("L2 state", "L2 dirty", "L2 clean", "L2 warm", "dirty", "clean", "warm"),
    ),
    WordEntry(
        word="interval",
        groups=_RESULT,
        sentences=(
            "The measured time is expected between the two numbers in 80 of 100 launches.",
            "They come from the errors of launches that were measured and have the same "
            "limiter and similarly busy units.",
            "It is no bound: of public launches that it does not come from, 70 of 100 lay inside.",
        ),
        formula="predicted time / quotients of predicted and measured times of such launches",
        where="terminal: first line and `trust`; page: below the time",
        guide="trust.md#Error seen, and when not to trust it",
        also=("trust", "range"),
    ),
    WordEntry(
        word="rung",
        groups=_RESULT,
        sentences=(
            "A rung is one kernel of the ladder: 21 kernels that multiply matrices, each "
            "faster than the one before or for other shapes.",
            "Commands such as `simulate` and `tune` take it by its name, with a shape.",
            "The command `list variants` prints all of them.",
        ),
        formula="none",
        where="page of `profile`: one row each",
        guide="ladder.md#The upper rungs, one by one",
        also=("ladder",),
    ),
    WordEntry(
        word="busy",
        groups=_RESULT,
        sentences=(
            "It is the share of the time for which a unit works at its full rate.",
            "For latency it is the time of the longest chain of instructions that wait for each "
            "other.",
            "The unit with the largest share is the limiter.",
        ),
        formula="least time of the unit for its work / time of the launch",
        where="page: How near each unit is to its limit; terminal: `busy`",
        guide="timing.md#The whole launch",
    ),
)
