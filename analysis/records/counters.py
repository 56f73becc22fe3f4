"""Raw counts of an execution under Nsight Compute's names, by the simulator or by hardware.

Each name has a class, which defines agreement:

- exact     equal to the hardware's to the last digit
- noisy     other traffic adds to the hardware's count (arbitration): compared with a tolerance
- modelled  a model's estimate: graded by its error

`InstructionCounts` are the same facts for one machine instruction. `totals` sums them to the
counters of a launch, and `by_line` to those of each source line. For warp instructions,
`smsp__sass_*` is the sum of `executed`, and `smsp__inst_*` adds `reissued`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Literal

from analysis.vocabulary import Vocabulary


class CounterClass(Vocabulary):
    """Meaning of agreement for a counter: see the head of this file."""

    EXACT = "exact"
    NOISY = "noisy"
    MODELLED = "modelled"


MemorySpace = Literal["global", "shared", "local", "constant", "generic"]
MemoryAction = Literal[
    "load", "store", "reduction", "atomic", "copy", "bulk load", "bulk store", "bulk reduction"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class InstructionCounts:
    """Counts of one machine instruction, over all warps of a launch.

    `address` is in bytes from the start of the code; `file` and `line` are its CUDA source, None
    where unknown. `executed` counts warps that issued it (also where every lane's guard was
    false), `threads` their active lanes, `predicated` those of them whose guard was true.

    Of an access to memory: `space`, `action`, `bytes_per_lane` (0 of a bulk copy, which is one
    request past L1); `requests` that reached memory (a warp of which at least one lane took part);
    `sectors` of 32 bytes and their fewest possible number (global, local), or `wavefronts` and the
    part of them without bank conflicts (shared). `ideal` is the fewest sectors or wavefronts that
    could carry the bytes that differ. Of a branch: lanes that took it, and warps that it split.
    `reissued` and `reissued_threads` are what hardware issues once more where lanes of a warp came
    apart: instrumented counters (`smsp__sass_*`, and those per instruction) do not see it, those of
    the issue stage do. `refused` are lanes of a branch whose guard was true and whose other
    predicate (`@P1 BRA P2`) was not: they are among `predicated`, as for instrumented counters, and
    the issue stage leaves them out.
    """

    address: int
    opcode: str
    text: str
    file: str | None
    line: int | None
    executed: int
    threads: int
    predicated: int
    space: MemorySpace | None = None
    action: MemoryAction | None = None
    bytes_per_lane: int = 0
    requests: int = 0
    sectors: int = 0
    wavefronts: int = 0
    conflict_free: int = 0
    ideal: int = 0
    taken: int = 0
    divergent: int = 0
    reissued: int = 0
    reissued_threads: int = 0
    refused: int = 0


@dataclass(frozen=True, kw_only=True)
class Counter:
    """A counter: its name in Nsight Compute, its class, its meaning, and how it is summed.

    `of` is None if it is not a sum over instructions but a model's estimate for the whole launch.
    """

    name: str
    counter_class: CounterClass
    meaning: str
    of: Callable[[InstructionCounts], int] | None = field(repr=False, default=None)


def _memory(
    space: MemorySpace, actions: tuple[MemoryAction, ...], quantity: str
) -> Callable[[InstructionCounts], int]:
    def count(i: InstructionCounts) -> int:
        return int(getattr(i, quantity)) if i.space == space and i.action in actions else 0

    return count


def _true_lanes(*opcodes: str) -> Callable[[InstructionCounts], int]:
    """Function that counts the executed lanes of these opcodes whose guard is true."""

    def count(i: InstructionCounts) -> int:
        return i.predicated if i.opcode in opcodes else 0

    return count


_CACHED_SPACES: tuple[MemorySpace, ...] = ("global", "local")


def _counter(
    name: str,
    meaning: str,
    of: Callable[[InstructionCounts], int] | None = None,
    counter_class: CounterClass = CounterClass.EXACT,
) -> Counter:
    """Counter by its name in Nsight Compute without ".sum", exact unless stated otherwise."""
    return Counter(name=f"{name}.sum", counter_class=counter_class, meaning=meaning, of=of)


def _counters() -> Iterable[Counter]:
    noisy = partial(_counter, counter_class=CounterClass.NOISY)
    yield _counter("smsp__inst_executed", "warp instructions", lambda i: i.executed + i.reissued)
    yield _counter(
        "smsp__thread_inst_executed",
        "thread instructions",
        lambda i: i.threads + i.reissued_threads,
    )
    yield _counter(
        "smsp__thread_inst_executed_pred_on",
        "thread instructions whose predicate is true",
        lambda i: i.predicated + i.reissued_threads - i.refused,
    )
    for operation, opcodes in (
        ("ffma", ("FFMA", "FFMA32I")),
        ("fadd", ("FADD", "FADD32I")),
        ("fmul", ("FMUL", "FMUL32I")),
        ("dfma", ("DFMA",)),
        ("dadd", ("DADD",)),
        ("dmul", ("DMUL",)),
    ):
        yield _counter(
            f"smsp__sass_thread_inst_executed_op_{operation}_pred_on",
            f"{operation.upper()} of threads whose predicate is true",
            _true_lanes(*opcodes),
        )
    sides: tuple[tuple[str, MemoryAction], ...] = (("ld", "load"), ("st", "store"))
    for short, action in sides:
        # an asynchronous copy into shared memory is a global load as well
        reaching: tuple[MemoryAction, ...] = ("load", "copy") if short == "ld" else (action,)
        for space in _CACHED_SPACES:
            for quantity, unit in (("requests", "requests"), ("sectors", "32-byte sectors")):
                yield _counter(
                    f"l1tex__t_{quantity}_pipe_lsu_mem_{space}_op_{short}",
                    f"{unit} of {space} {action}s",
                    _memory(space, reaching, quantity),
                )
    for short, action in sides:
        yield _counter(
            f"smsp__sass_inst_executed_op_shared_{short}",
            f"warp instructions that are shared {action}s",
            _memory("shared", (action,), "requests"),
        )
        maker = _counter if short == "ld" else noisy
        yield maker(
            f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{short}",
            f"wavefronts of shared {action}s",
            _memory("shared", (action,), "wavefronts"),
        )
        yield noisy(
            f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{short}",
            f"wavefronts of shared {action}s that bank conflicts cause",
            _conflicts(action),
        )


def _conflicts(action: MemoryAction) -> Callable[[InstructionCounts], int]:
    wavefronts = _memory("shared", (action,), "wavefronts")
    free = _memory("shared", (action,), "conflict_free")
    return lambda i: wavefronts(i) - free(i)


def _modelled() -> Iterable[Counter]:
    for name, meaning in (
        ("l1tex__m_xbar2l1tex_read_sectors", "32-byte sectors that L1 fetches from L2"),
        ("lts__t_sectors_srcunit_tex_op_read", "32-byte sectors that SMs read from L2"),
        ("lts__t_sectors_op_read", "32-byte sectors read at L2, between its partitions too"),
        ("lts__t_sectors_op_write", "32-byte sectors written at L2, between its partitions too"),
        ("dram__bytes_read", "bytes read from DRAM"),
        ("dram__bytes_write", "bytes written to DRAM"),
    ):
        yield _counter(name, meaning, counter_class=CounterClass.MODELLED)


def _of_bulk_copies() -> Iterable[Counter]:
    """Counters of bulk copies, under our names: those of Nsight Compute are not known."""
    sides: tuple[tuple[str, tuple[MemoryAction, ...]], ...] = (
        ("read", ("bulk load",)),
        ("written", ("bulk store", "bulk reduction")),
    )
    for side, actions in sides:
        yield _counter(
            f"bulk__sectors_{side}",
            f"32-byte sectors that bulk copies have {side} at L2",
            _memory("global", actions, "sectors"),
        )


COUNTERS: Mapping[str, Counter] = MappingProxyType({c.name: c for c in _counters()})
OF_BULK_COPIES: Mapping[str, Counter] = MappingProxyType({c.name: c for c in _of_bulk_copies()})
MODELLED: Mapping[str, Counter] = MappingProxyType({c.name: c for c in _modelled()})
ALL_COUNTERS: Mapping[str, Counter] = MappingProxyType({**COUNTERS, **OF_BULK_COPIES, **MODELLED})


def totals(instructions: Iterable[InstructionCounts]) -> dict[str, int]:
    """Sums of the counters over instructions: every name in `COUNTERS`, including zeros.

    They include the counters of `OF_BULK_COPIES` if there are bulk copies.
    """
    listed = tuple(instructions)
    has_bulk = any(i.action is not None and i.action.startswith("bulk") for i in listed)
    named = {**COUNTERS, **(OF_BULK_COPIES if has_bulk else {})}
    return {name: sum(map(c.of, listed)) for name, c in named.items() if c.of is not None}


def by_line(
    instructions: Iterable[InstructionCounts],
) -> dict[tuple[str, int], dict[str, int]]:
    """Counters of each (file, line); instructions without a line are left out."""
    return {place: totals(listed) for place, listed in of_lines(instructions).items()}


def of_lines(
    instructions: Iterable[InstructionCounts],
) -> dict[tuple[str, int], list[InstructionCounts]]:
    """Instructions of each (file, line), in order of the lines."""
    lines: dict[tuple[str, int], list[InstructionCounts]] = {}
    for one in instructions:
        if one.file is not None and one.line is not None:
            lines.setdefault((one.file, one.line), []).append(one)
    return dict(sorted(lines.items()))
