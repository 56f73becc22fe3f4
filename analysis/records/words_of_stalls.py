"""Entries of `explain` on reasons why the schedulers of an SM issue nothing."""

from __future__ import annotations

from analysis.records.entry import EntryGroup, WordEntry

_LOST = "clocks of the four schedulers without an issue for this reason / all their clocks"
_STALLS = "Python: the replay's `lost` (analysis.sm); its seconds are those of the cause"


def _stall(word: str, one: str, two: str, three: str, guide: str, *also: str) -> WordEntry:
    return WordEntry(
        word=word,
        groups=(EntryGroup.STALL,),
        sentences=(one, two, three),
        formula=_LOST,
        where=_STALLS,
        guide=guide,
        also=also,
    )


ENTRIES = (
    _stall(
        "products of warpgroups",
        "A warp waits at wgmma.wait_group, or to issue wgmma while the SM queues seven products.",
        "Tensor cores make the products one after the other, and arithmetic may have to wait.",
        "The cause is waiting for products of warpgroups.",
        "timing.md#Tensor cores",
    ),
    _stall(
        "write-back",
        "The register file is writing results of loads.",
        "Arithmetic that would read the same bank waits for a clock.",
        "A load needs these issue slots, as it needs its own.",
        "timing.md#Registers",
    ),
    _stall(
        "fixed latency",
        "The stall count of the last instruction is not over.",
        "The compiler writes it into each instruction whose latency it knows.",
        "The cause is waiting for other instructions.",
        "timing.md#Issue",
        "stall_wait",
        "wait",
    ),
    _stall(
        "unit busy",
        "The pipe of the next instruction takes no other one in this clock.",
        "A pipe of 16 lanes takes two clocks for a warp.",
        "The cause is the roof of that pipe.",
        "timing.md#Units",
        "stall_math_pipe_throttle",
        "math pipe throttle",
    ),
    _stall(
        "load/store queue",
        "The queue of the load/store unit is full.",
        "Requests with many wavefronts or sectors fill it.",
        "The cause is wavefronts, bank conflicts or uncoalesced accesses.",
        "timing.md#Load/store unit",
        "stall_lg_throttle",
        "stall_mio_throttle",
        "lg throttle",
        "mio throttle",
    ),
    _stall(
        "shared latency",
        "A result of shared memory, or of a shuffle, has not arrived.",
        "The next instruction waits for its scoreboard.",
        "The cause is waiting for shared memory.",
        "timing.md#Load/store unit",
        "stall_short_scoreboard",
        "short scoreboard",
    ),
    _stall(
        "global latency",
        "A load of global or local memory has not arrived.",
        "The next instruction waits for its scoreboard.",
        "The cause is waiting for L1, L2 or DRAM, wherever the data was.",
        "timing.md#L2 and DRAM",
        "stall_long_scoreboard",
        "long scoreboard",
    ),
    _stall(
        "arithmetic latency",
        "The result of an instruction without a fixed latency has not arrived: a special "
        "function, a conversion, FP64.",
        "The next instruction waits for its scoreboard.",
        "The cause is waiting for other instructions.",
        "timing.md#Units",
    ),
    _stall(
        "barrier",
        "The warp is at __syncthreads(), and other warps of its block are not.",
        "No instruction of it can issue.",
        "The cause is waiting at barriers.",
        "guide/03-tiling.md#Its phases",
        "stall_barrier",
    ),
    _stall(
        "no warp",
        "The scheduler has no warp that has not finished.",
        "Blocks end at different times, or too few are resident.",
        "The cause is idle SMs or starting blocks.",
        "timing.md#Issue",
    ),
)
