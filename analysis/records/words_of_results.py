"""Entries of `explain`: words of the first lines and of the ladder that name no cause."""

from __future__ import annotations

from analysis.records.entry import EntryGroup, WordEntry

_RESULT = (EntryGroup.RESULT,)

ENTRIES = (
    WordEntry(
        word="state of L2",
        groups=_RESULT,
        sentences=(
            "It is what L2 holds when the launch begins, which changes the time of the launch.",
            "Dirty: other data that were written and must still be written back to DRAM. Clean: "
            "other data that were only read. Warm: what the same launch left there.",
            "Dirty is the default, because the launch before usually wrote other data.",
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
            "The measured time of 80 of 100 launches is expected between the two numbers.",
            "They come from the errors of launches that were measured and have the same "
            "limiter and similarly busy units.",
            "It is not a bound: of public launches that its width does not come from, 80 of 100 "
            "were inside.",
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
        formula="time that the unit alone needs for its work / time of the launch",
        where="page: How near each unit is to its limit; terminal: `busy`",
        guide="timing.md#Bounds",
    ),
    WordEntry(
        word="roof",
        groups=_RESULT,
        sentences=(
            "It is a lower bound on the time of the launch: that of its busiest unit or memory at "
            "full rate.",
            "It is what is left of a time once everything that can be avoided is removed.",
            "Only less work, such as fewer bytes, makes a kernel at its roof faster.",
        ),
        formula="work / rate of the unit, of the unit for which it is the largest",
        where="page: Parts of the time, Roofline; terminal: second line, if it is the largest part",
        guide="timing.md#Costs",
        also=("roofs", "roofline", "at its roof", "speed of light"),
    ),
    WordEntry(
        word="limiter",
        groups=_RESULT,
        sentences=(
            "It is the unit or memory that is busy for the largest share of the time.",
            "Latency is the limiter if no unit is busy for most of it.",
            "The limiter says what the launch waits for, the causes what can be done about it.",
        ),
        formula="the largest of the least times that the units need for their work",
        where="page: How near each unit is to its limit; terminal: first of `busy`, `compare`",
        guide="timing.md#Bounds",
        also=("limited by", "bottleneck"),
    ),
    WordEntry(
        word="sectors",
        groups=_RESULT,
        sentences=(
            "A sector is 32 bytes of global or local memory that begin at a multiple of 32.",
            "L1, L2 and DRAM move whole sectors, even where a warp needs 4 bytes of each.",
            "A load of 32 neighbouring floats takes 4 per request, one with large strides 32.",
        ),
        formula="sectors of a warp's request / requests",
        where="page: Source; terminal: `sectors /request` of the lines",
        guide="guide/01-coalescing.md#The idea",
        also=("sector", "sectors per request", "sectors/request"),
    ),
    WordEntry(
        word="held out",
        groups=_RESULT,
        sentences=(
            "No number of the model was fitted on held-out launches.",
            "Their predicted times are compared with measured ones, and their mean error is what "
            "to expect of similar launches.",
            "Fitted launches have smaller errors, which say less.",
        ),
        formula="mean of |predicted / measured - 1|",
        where="terminal: `trust`; page: Trust",
        guide="trust.md#Error seen, and when not to trust it",
        also=("held-out launches", "mean error", "fitted"),
    ),
)
