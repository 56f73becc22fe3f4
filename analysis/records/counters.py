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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from analysis.records.description import Format, Group, Metric, MetricUnit
from analysis.records.operations import SOURCES, half_operations, products_of
from analysis.vocabulary import Vocabulary

if TYPE_CHECKING:
    from analysis.traffic.l2 import Traffic


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
    """Counts of one machine instruction, over all warps of a launch."""

    address: int  #: in bytes from the start of the code
    opcode: str
    text: str  #: the instruction as nvdisasm prints it
    file: str | None  #: CUDA source, None if unknown; of the inlined function where there is one
    line: int | None  #: CUDA source line, None if unknown
    executed: int  #: warps that issued it, also if the guard of every lane was false
    threads: int  #: active lanes of these warps
    predicated: int  #: active lanes whose guard was true
    space: MemorySpace | None = None  #: memory that it accesses
    action: MemoryAction | None = None
    bytes_per_lane: int = 0  #: 0 for a bulk copy, which is one request past L1
    requests: int = 0  #: requests to memory: warps of which at least one lane took part
    sectors: int = 0  #: sectors of 32 bytes, in global or local memory
    wavefronts: int = 0  #: wavefronts, in shared memory
    conflict_free: int = 0  #: the part of the wavefronts without bank conflicts
    ideal: int = 0  #: fewest sectors or wavefronts that could carry the distinct bytes
    taken: int = 0  #: lanes that took a branch
    divergent: int = 0  #: warps that a branch split
    #: warps for which hardware issues the instruction once more, because lanes diverged; only
    #: counters of the issue stage see it, not instrumented ones (`smsp__sass_*`)
    reissued: int = 0
    reissued_threads: int = 0  #: active lanes of these warps
    #: lanes of a branch whose guard was true and whose other predicate (`@P1 BRA P2`) was not; they
    #: are among `predicated`, as for instrumented counters, but the issue stage leaves them out
    refused: int = 0
    #: (file, line) of the calls of the inlined functions around it, the innermost first
    callers: tuple[tuple[str, int], ...] = ()

    @property
    def places(self) -> tuple[tuple[str, int], ...]:
        """(file, line) of the instruction, then of its `callers`; empty if they are unknown."""
        if self.file is None or self.line is None:
            return ()
        return ((self.file, self.line), *self.callers)

    @property
    def charged(self) -> tuple[str, int] | None:
        """(file, line) that the instruction counts for: the outermost call, or its own line."""
        return self.places[-1] if self.places else None


class Wait(Vocabulary):
    """Condition that a block polls; hardware polls more often than the simulator."""

    BARRIER = "barrier"  # one that a bulk copy completes
    FLAG = "flag"  # one that another block sets


@dataclass(frozen=True, kw_only=True)
class Counter(Metric):
    """A counter: its description, its class, and how it is counted.

    It is a sum over instructions (`of`), or a model's word on the traffic of the whole launch
    (`of_traffic`). One of the two is None.
    """

    counter_class: CounterClass
    of: Callable[[InstructionCounts], int] | None = field(repr=False, default=None)
    of_traffic: Callable[[Traffic], float] | None = field(repr=False, default=None)
    #: The waits whose polls increase it.
    polled_at: frozenset[Wait] = frozenset()
    #: What a launch must have for it to be counted; None: any launch.
    only_with: Literal["bulk copies", "tensor cores", "half precision"] | None = None
    #: True if `profile` asks Nsight Compute for it.
    is_asked_for: bool = True


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


def _conflicts(action: MemoryAction) -> Callable[[InstructionCounts], int]:
    wavefronts = _memory("shared", (action,), "wavefronts")
    free = _memory("shared", (action,), "conflict_free")
    return lambda i: wavefronts(i) - free(i)


_CACHED_SPACES: tuple[MemorySpace, ...] = ("global", "local")
_SIDES: tuple[tuple[str, MemoryAction], ...] = (("ld", "load"), ("st", "store"))
_ALL_WAITS = frozenset(Wait)


def _counter(
    name: str,
    label: str,
    unit: MetricUnit,
    group: Group,
    of: Callable[[InstructionCounts], int] | None = None,
    *,
    counter_class: CounterClass = CounterClass.EXACT,
    **more: Any,
) -> Counter:
    """A counter by its name at Nsight Compute without ".sum", exact unless stated otherwise."""
    return Counter(
        tag=f"{name}.sum",
        label=label,
        unit=unit,
        format=Format.DIGITS,
        group=group,
        counter_class=counter_class,
        of=of,
        **more,
    )


def _of_instructions() -> Iterable[Counter]:
    of_threads = partial(_counter, unit=MetricUnit.THREAD_INSTRUCTIONS, group=Group.INSTRUCTIONS)
    yield _counter(
        "smsp__inst_executed",
        "warp instructions",
        MetricUnit.INSTRUCTIONS,
        Group.INSTRUCTIONS,
        lambda i: i.executed + i.reissued,
        polled_at=_ALL_WAITS,
    )
    yield of_threads(
        "smsp__thread_inst_executed",
        "thread instructions",
        of=lambda i: i.threads + i.reissued_threads,
        polled_at=_ALL_WAITS,
    )
    yield of_threads(
        "smsp__thread_inst_executed_pred_on",
        "thread instructions whose predicate is true",
        of=lambda i: i.predicated + i.reissued_threads - i.refused,
        polled_at=_ALL_WAITS,
    )
    for operation, opcodes, is_double in (
        ("ffma", ("FFMA", "FFMA32I"), False),
        ("fadd", ("FADD", "FADD32I"), False),
        ("fmul", ("FMUL", "FMUL32I"), False),
        ("dfma", ("DFMA",), True),
        ("dadd", ("DADD",), True),
        ("dmul", ("DMUL",), True),
    ):
        yield of_threads(
            f"smsp__sass_thread_inst_executed_op_{operation}_pred_on",
            f"{operation.upper()} of threads whose predicate is true",
            short=operation.upper(),
            of=_true_lanes(*opcodes),
            is_asked_for=not is_double,  # no rung computes in double precision
        )


# Opcodes by what Nsight Compute counts them as, on an H200 and, of warpgroups, an H100. It has no
# counter for products of bits.
_PRODUCTS = {
    "hmma": ("HMMA", "QMMA", "OMMA", "HGMMA", "QGMMA"),
    "imma": ("IMMA", "BMMA", "IGMMA", "BGMMA"),
    "dmma": ("DMMA",),
    "gmma": ("HGMMA", "QGMMA", "IGMMA", "BGMMA"),
}
_ON_TENSOR_CORES = {opcode for opcodes in _PRODUCTS.values() for opcode in opcodes}


def _executed(*opcodes: str) -> Callable[[InstructionCounts], int]:
    """Function that counts the warps that execute one of these opcodes."""

    def count(i: InstructionCounts) -> int:
        return i.executed if i.opcode in opcodes else 0

    return count


def _operations(source: str) -> Callable[[InstructionCounts], int]:
    """Function that counts the operations of products whose operands are of one type."""

    def count(i: InstructionCounts) -> int:
        of, operations = products_of(i.text)
        return operations * i.executed if of == source else 0

    return count


def _of_half_precision() -> Iterable[Counter]:
    """FP16 arithmetic under our name: Nsight Compute counts loads of constants among it."""
    yield _counter(
        "fp16__operations",
        "FP16 operations outside the tensor cores",
        MetricUnit.OPERATIONS,
        Group.INSTRUCTIONS,
        lambda i: half_operations(i.opcode, i.text) * i.predicated,
        hint="counted by the simulator alone",
        only_with="half precision",
        is_asked_for=False,
    )


def _of_tensor_cores() -> Iterable[Counter]:
    of_warps = partial(
        _counter,
        unit=MetricUnit.INSTRUCTIONS,
        group=Group.INSTRUCTIONS,
        only_with="tensor cores",
        is_asked_for=False,  # most rungs have none; compared in docs/tensor_cores.md
    )
    yield of_warps(
        "sm__inst_executed_pipe_tensor",
        "warp instructions on tensor cores",
        of=_executed(*_ON_TENSOR_CORES),
    )
    for operation, opcodes in _PRODUCTS.items():
        yield of_warps(
            f"sm__inst_executed_pipe_tensor_op_{operation}",
            f"warp instructions on tensor cores that count as {operation.upper()}",
            short=operation.upper(),
            of=_executed(*opcodes),
        )
    for source in SOURCES:
        operands, _, sums = source.partition("_dst_")
        yield _counter(
            f"sm__ops_path_tensor_src_{source}",
            f"operations on tensor cores with {operands.upper().replace('_', ' and ')} operands",
            MetricUnit.OPERATIONS,
            Group.INSTRUCTIONS,
            _operations(source),
            hint=f"and {sums.upper()} sums" if sums else "",
            only_with="tensor cores",
            is_asked_for=False,
        )
    yield _counter(
        "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_gmma",
        "wavefronts of wgmma's reads of shared memory",
        MetricUnit.WAVEFRONTS,
        Group.SHARED,
        lambda i: i.wavefronts if i.opcode in _PRODUCTS["gmma"] else 0,
        only_with="tensor cores",
        is_asked_for=False,
    )


def _of_cached_memory() -> Iterable[Counter]:
    for short, action in _SIDES:
        # an asynchronous copy into shared memory is a global load as well
        reaching: tuple[MemoryAction, ...] = ("load", "copy") if short == "ld" else (action,)
        for space in _CACHED_SPACES:
            is_global_load = space == "global" and short == "ld"
            for unit, words in (
                (MetricUnit.REQUESTS, "requests"),
                (MetricUnit.SECTORS, "32-byte sectors"),
            ):
                yield _counter(
                    f"l1tex__t_{unit}_pipe_lsu_mem_{space}_op_{short}",
                    f"{words} of {space} {action}s",
                    unit,
                    Group(f"{space} memory"),
                    _memory(space, reaching, unit),
                    hint="with asynchronous copies into shared memory" if is_global_load else "",
                    polled_at=frozenset({Wait.FLAG} if is_global_load else ()),
                )


def _of_shared_memory() -> Iterable[Counter]:
    for short, action in _SIDES:
        is_load = short == "ld"
        yield _counter(
            f"smsp__sass_inst_executed_op_shared_{short}",
            f"warp instructions that are shared {action}s",
            MetricUnit.INSTRUCTIONS,
            Group.SHARED,
            _memory("shared", (action,), "requests"),
            polled_at=frozenset({Wait.BARRIER} if is_load else ()),
        )
        yield _counter(
            f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{short}",
            f"wavefronts of shared {action}s",
            MetricUnit.WAVEFRONTS,
            Group.SHARED,
            _memory("shared", (action,), "wavefronts"),
            counter_class=CounterClass.EXACT if is_load else CounterClass.NOISY,
        )
        yield _counter(
            f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{short}",
            f"wavefronts of shared {action}s that bank conflicts cause",
            MetricUnit.WAVEFRONTS,
            Group.SHARED,
            _conflicts(action),
            counter_class=CounterClass.NOISY,
        )


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
            MetricUnit.SECTORS,
            Group.BELOW_L1,
            _memory("global", actions, "sectors"),
            hint="counted by the simulator alone",
            only_with="bulk copies",
            is_asked_for=False,
        )


def _modelled() -> Iterable[Counter]:
    below = partial(_counter, group=Group.BELOW_L1, counter_class=CounterClass.MODELLED)
    sectors, in_bytes = (
        partial(below, unit=MetricUnit.SECTORS),
        partial(below, unit=MetricUnit.BYTES),
    )
    yield sectors(
        "l1tex__m_xbar2l1tex_read_sectors",
        "32-byte sectors that L1 fetches from L2",
        of_traffic=lambda t: t.fetched_sectors,
    )
    yield sectors(
        "lts__t_sectors_srcunit_tex_op_read",
        "32-byte sectors that SMs read from L2",
        of_traffic=lambda t: t.merged_sectors,
    )
    yield sectors(
        "lts__t_sectors_op_read",
        "32-byte sectors read at L2, also between its partitions",
        of_traffic=lambda t: t.l2_read_sectors,
    )
    yield sectors(
        "lts__t_sectors_op_write",
        "32-byte sectors written at L2, also between its partitions",
        of_traffic=lambda t: t.l2_write_sectors,
    )
    yield in_bytes(
        "dram__bytes_read", "bytes read from DRAM", of_traffic=lambda t: t.dram_read_bytes
    )
    yield in_bytes(
        "dram__bytes_write", "bytes written to DRAM", of_traffic=lambda t: t.dram_write_bytes
    )


ALL_COUNTERS: Mapping[str, Counter] = MappingProxyType(
    {
        counter.tag: counter
        for family in (
            _of_instructions,
            _of_half_precision,
            _of_tensor_cores,
            _of_cached_memory,
            _of_shared_memory,
            _of_bulk_copies,
            _modelled,
        )
        for counter in family()
    }
)


def _those(is_one: Callable[[Counter], bool]) -> Mapping[str, Counter]:
    return MappingProxyType({tag: one for tag, one in ALL_COUNTERS.items() if is_one(one)})


MODELLED = _those(lambda one: one.counter_class == CounterClass.MODELLED)
OF_BULK_COPIES = _those(lambda one: one.only_with == "bulk copies")
OF_TENSOR_CORES = _those(lambda one: one.only_with == "tensor cores")
OF_HALF_PRECISION = _those(lambda one: one.only_with == "half precision")
#: What is counted of every launch.
COUNTERS = _those(lambda one: one.of is not None and one.only_with is None)


# Counts of an instruction; other numbers describe it.
_COUNTED = tuple(
    field.name
    for field in fields(InstructionCounts)
    if field.type == "int" and field.name not in ("address", "bytes_per_lane")
)
_counted = attrgetter(*_COUNTED)


def totals(instructions: Iterable[InstructionCounts]) -> dict[str, int]:
    """Sums of the counters over instructions: every name in `COUNTERS`, including zeros.

    They include the counters of `OF_BULK_COPIES` if there are bulk copies, of `OF_TENSOR_CORES`
    if there are matrix products, and of `OF_HALF_PRECISION` if there is FP16 arithmetic.
    """
    listed = tuple(instructions)
    has_bulk = any(i.action is not None and i.action.startswith("bulk") for i in listed)
    has_products = any(i.opcode in _ON_TENSOR_CORES for i in listed)
    has_halves = any(half_operations(i.opcode, i.text) for i in listed)
    named = {
        **COUNTERS,
        **(OF_HALF_PRECISION if has_halves else {}),
        **(OF_BULK_COPIES if has_bulk else {}),
        **(OF_TENSOR_CORES if has_products else {}),
    }
    merged = _merged(listed)
    return {name: sum(map(c.of, merged)) for name, c in named.items() if c.of is not None}


def _merged(instructions: Iterable[InstructionCounts]) -> list[InstructionCounts]:
    """Sums of instructions that count for the same counters, which are linear in the counts.

    The text of an instruction matters to counters of matrix products and of half precision alone.
    """
    kinds: dict[tuple[str, str, object, object], list[InstructionCounts]] = {}
    for i in instructions:
        text_matters = i.opcode in _ON_TENSOR_CORES or half_operations(i.opcode, i.text)
        kind = (i.opcode, i.text if text_matters else "", i.space, i.action)
        kinds.setdefault(kind, []).append(i)
    return [one if not others else _sum((one, *others)) for one, *others in kinds.values()]


def _sum(alike: Sequence[InstructionCounts]) -> InstructionCounts:
    columns = zip(*map(_counted, alike), strict=True)
    counts: dict[str, Any] = dict(zip(_COUNTED, map(sum, columns), strict=True))
    return replace(alike[0], **counts)


def of_traffic(traffic: Traffic) -> dict[str, int]:
    """The counters of traffic below L1: every name in `MODELLED`."""
    return {
        tag: round(counter.of_traffic(traffic))
        for tag, counter in MODELLED.items()
        if counter.of_traffic is not None
    }


def by_line(
    instructions: Iterable[InstructionCounts],
) -> dict[tuple[str, int], dict[str, int]]:
    """Counters of each (file, line); instructions without a line are left out."""
    return {place: totals(listed) for place, listed in of_lines(instructions).items()}


def of_lines(
    instructions: Iterable[InstructionCounts],
) -> dict[tuple[str, int], list[InstructionCounts]]:
    """Instructions that count for each (file, line), in order of the lines."""
    lines: dict[tuple[str, int], list[InstructionCounts]] = {}
    for one in instructions:
        if one.charged is not None:
            lines.setdefault(one.charged, []).append(one)
    return dict(sorted(lines.items()))
