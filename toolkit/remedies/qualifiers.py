"""Edits of a kernel's declaration: `__restrict__` pointers, and launch bounds."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from analysis.occupancy import Limiter
from analysis.timing.predicted import Effect
from reports import text
from toolkit.machine_code.source_tree import line_of
from toolkit.remedies.edit import Edit, Replacement
from toolkit.remedies.facts import Facts

LATENCIES = (
    Effect.DRAM_LATENCY,
    Effect.L2_LATENCY,
    Effect.L1_LATENCY,
    Effect.SHARED_LATENCY,
    Effect.DEPENDENCES,
)
LEAST_SHARE = 0.6  # of the registers of a thread: with fewer, most of it would be in local memory


def unaliased(facts: Facts) -> Iterator[Edit]:
    """`__restrict__` on all pointers, so that the compiler moves loads before stores."""
    pointers = list(facts.source.pointers.values())
    bare = [one for one in pointers if not one.is_restrict]
    if len(pointers) < 2 or not bare:
        return
    yield Edit(
        effect=facts.worst((*LATENCIES, Effect.L1_WAVEFRONTS)),
        lines=tuple(sorted({line_of(one.declarator) for one in bare})),
        title=f"__restrict__ on {text.listing([one.name for one in bare])}, which must not overlap",
        replacements=tuple(
            Replacement(
                start=one.declarator.start_byte,
                end=one.declarator.start_byte,
                text="__restrict__ ",
            )
            for one in bare
        ),
    )


def bounded(facts: Facts) -> Iterator[Edit]:
    """Launch bounds that let another block on an SM, or that leave more registers."""
    source, threads = facts.source, prod(facts.block)
    (declarator,) = source.kernel.children_by_field_name("declarator")
    present = next((one for one in source.kernel.children if one.type == "launch_bounds"), None)
    start = present.start_byte if present else declarator.start_byte
    end = present.end_byte if present else start
    spills = facts.matters([Effect.LOCAL_MEMORY])
    resident = facts.occupancy.blocks_per_sm
    wanted = list[str]()
    if spills and present is not None:
        wanted.append(f"__launch_bounds__({threads})")
    if not spills and facts.occupancy.limiters[0] == Limiter.REGISTERS:
        blocks = resident + 1
        registers = facts.device.registers_per_sm // (blocks * threads)
        is_close = registers >= LEAST_SHARE * facts.execution.resources.registers_per_thread
        fits = blocks * threads <= facts.device.max_threads_per_sm
        if is_close and fits and prod(facts.grid) > resident * facts.device.sm_count:
            wanted.append(f"__launch_bounds__({threads}, {blocks})")
    for bounds in wanted:
        yield Edit(
            effect=Effect.LOCAL_MEMORY if spills else facts.worst(LATENCIES),
            lines=(line_of(declarator),),
            title=f"{bounds}, {'more registers' if spills else 'more blocks on an SM'}",
            replacements=(
                Replacement(start=start, end=end, text=bounds if present else f"{bounds} "),
            ),
        )
