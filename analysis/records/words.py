"""The words that `explain` knows: counters and metrics by their descriptions, and other entries.

>>> from analysis.records.words import explain
>>> explain("bank conflicts").word
'shared-memory bank conflicts'
>>> explain("lts__t_sectors_op_read").groups
('counter',)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType

from analysis.argument_types import checked
from analysis.errors import InputError, shortened
from analysis.records import words_of_code, words_of_results, words_of_stalls, words_of_time
from analysis.records.counters import ALL_COUNTERS, CounterClass
from analysis.records.description import Group, Metric, MetricUnit
from analysis.records.entry import EntryGroup, WordEntry
from analysis.records.metrics import METRICS, Derived

NEAREST, LEAST_ALIKE = 3, 0.6

_UNITS = {
    MetricUnit.INSTRUCTIONS: "A warp instruction is issued once for up to 32 threads.",
    MetricUnit.THREAD_INSTRUCTIONS: "Each active thread of a warp instruction counts.",
    MetricUnit.REQUESTS: "A request is a warp instruction that accesses memory with at least one "
    "active thread.",
    MetricUnit.SECTORS: "A sector has 32 bytes, so that a request of 32 neighbouring floats takes "
    "4.",
    MetricUnit.WAVEFRONTS: "A wavefront is one pass of an access through shared memory: 4 bytes "
    "per thread without bank conflicts take 1.",
    MetricUnit.BYTES: "DRAM moves whole sectors of 32 bytes.",
    MetricUnit.OPERATIONS: "A multiply-add is two operations.",
    MetricUnit.SHARE: "It is 0 to 100 %.",
    MetricUnit.THREADS_PER_INSTRUCTION: "A warp without divergence has 32.",
    MetricUnit.SECTORS_PER_REQUEST: "Coalesced 4-byte accesses have 4, and 32 is the most for "
    "them.",
    MetricUnit.CONFLICTS_PER_ACCESS: "It is 0 without bank conflicts, and 31 where all lanes "
    "access one bank.",
}
_CLASSES = {
    CounterClass.EXACT: "The simulator's count equals the hardware's to the last digit.",
    CounterClass.NOISY: "Hardware counts more where other accesses interfere, so it is compared "
    "with a tolerance.",
    CounterClass.MODELLED: "A model derives it from the recorded accesses of blocks, and it is "
    "graded by its error.",
}
_DERIVED = "It follows from counters of the same launch and is as exact as they are."
_GUIDES = {
    Group.INSTRUCTIONS: "guide/06-coarsening-1d.md#Counts",
    Group.GLOBAL: "guide/01-coalescing.md#Counts",
    Group.SHARED: "guide/07-coarsening-2d.md#A bank conflict",
    Group.LOCAL: "guide/05-tile-size.md#Compiled",
    Group.GENERIC: "guide/01-coalescing.md#Counts",
    Group.BELOW_L1: "guide/02-flop-per-byte.md#Which bytes?",
}
_COUNTERS = "page: Machine code and counters; terminal: `simulate --verbose`; JSON: `counters`"
_METRICS = "page: Lines; terminal: `simulate --verbose`; JSON: `summaries`"


def _of_metrics() -> Iterator[WordEntry]:
    for counter in ALL_COUNTERS.values():
        summed = "a model of L1, L2 and DRAM" if counter.of is None else "machine instructions"
        yield WordEntry(
            word=counter.tag,
            groups=(EntryGroup.COUNTER,),
            sentences=(_counts(counter), _UNITS[counter.unit], _CLASSES[counter.counter_class]),
            formula=f"sum over {summed}" if counter.of else f"from {summed}",
            where=_COUNTERS,
            guide=_GUIDES[counter.group],
            also=_names(counter),
        )
    for metric in METRICS.values():
        yield WordEntry(
            word=metric.tag,
            groups=(EntryGroup.METRIC,),
            sentences=(_counts(metric), _UNITS[metric.unit], _DERIVED),
            formula=_formula(metric),
            where=_METRICS,
            guide=_GUIDES[metric.group],
            also=_names(metric),
        )


def _counts(metric: Metric) -> str:
    hint = f", {metric.hint}" if metric.hint else ""
    return f"{metric.label[0].upper()}{metric.label[1:]}{hint}."


def _names(metric: Metric) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (metric.label, metric.short))))


def _formula(metric: Derived) -> str:
    above = " + ".join(metric.tags)
    below = " + ".join(metric.by)
    if not below:
        return above
    above, below = (f"({one})" if " + " in one else one for one in (above, below))
    return f"{above} / {below}"


ENTRIES: tuple[WordEntry, ...] = (
    *words_of_time.ENTRIES,
    *words_of_stalls.ENTRIES,
    *words_of_code.ENTRIES,
    *words_of_results.ENTRIES,
    *_of_metrics(),
)


def normal(word: str) -> str:
    """A word as it is looked up: in lower case, without `.sum`, with spaces between its parts."""
    return " ".join(re.sub(r"[-\s]+", " ", word.lower()).strip().removesuffix(".sum").split())


def _known() -> dict[str, WordEntry]:
    """Each entry by its own word, then by other names of it that no other entry has."""
    found: dict[str, WordEntry] = {}
    for own in (True, False):
        for one in ENTRIES:
            for name in (one.word,) if own else one.also:
                found.setdefault(normal(name), one)
    return found


BY_NAME: Mapping[str, WordEntry] = MappingProxyType(_known())


@checked
def explain(word: str) -> WordEntry:
    """Say what a word of this toolkit or of Nsight Compute means.

    Parameters
    ----------
    word
        A cause, limiter, remedy, stall reason, counter, metric or opcode, in any case. An opcode
        may have modifiers, as LDG.E.128 has.

    Returns
    -------
    WordEntry
        Three sentences, the formula, where to read it, and a chapter. A prompt shows its text.

    Raises
    ------
    InputError
        For an unknown word, with the nearest known ones.

    Examples
    --------
    >>> from toolkit import explain
    >>> explain("more blocks")
    more blocks (remedy; also grid size)
    The work of a grid-stride loop is divided among more blocks. It helps if SMs
    have no block, or if the last wave is partial. The edit is made in memory and
    compiled, and the executed blocks must write the same values.
    formula   --grid 8 -> --grid 1056
    read it   page: Remedies; terminal: the table below the first lines; `--apply N`
              writes the file
    guide     docs/your_kernel.md, "Remedies"
    >>> explain("stall_long_scoreboard").word
    'global latency'
    """
    asked = normal(word)
    if asked in BY_NAME:
        return BY_NAME[asked]
    opcode = BY_NAME.get(asked.partition(".")[0])
    if opcode is not None and EntryGroup.OPCODE in opcode.groups:
        return opcode  # with modifiers: LDG.E.128
    near = [name for name in BY_NAME if asked and asked in name][:NEAREST]
    near += get_close_matches(asked, BY_NAME, NEAREST, LEAST_ALIKE)
    nearest = list(dict.fromkeys(BY_NAME[name].word for name in near))[:NEAREST]
    remedy = (
        f"did you mean {' or '.join(map(repr, nearest))}?"
        if nearest
        else "`explain` without a word lists all"
    )
    raise InputError(f"unknown word {shortened(word)!r}: {remedy}")


def by_group() -> dict[EntryGroup, list[WordEntry]]:
    """All entries; one of several groups stands in each of them."""
    return {group: [one for one in ENTRIES if group in one.groups] for group in EntryGroup}
