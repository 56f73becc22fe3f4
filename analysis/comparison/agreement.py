"""Comparison of closed forms with counts of the machine code, and the reasons of differences.

A closed form counts accesses of the source. The compiler merges and widens accesses, guards switch
lanes off, and alpha and beta cost arithmetic. Elements and instructions are therefore compared
separately, and a difference is explained only if the counts prove the reason:

| quantity          | closed form                      | may differ because                      |
|-------------------|----------------------------------|-----------------------------------------|
| elements          | floats moved                     | nothing: a difference is a mistake      |
| instructions      | elements over the stated width   | other widths, shown by their histogram  |
| requests          | full warps                       | the same; lanes that guards exclude     |
| sectors           | the first warp's, for every warp | the same; rows off a sector's boundary  |
| wavefronts        | the first warp's, for every warp | other widths; lanes that guards exclude |
| multiply-adds     | over whole tiles                 | beta · C: one more per element of C     |
| FLOP              | 2·M·N·K                          | zeros outside the matrices; alpha · C   |
| products          | of tensor cores, whole tiles     | nothing                                 |

A rung that multiplies on tensor cores has no closed form of its FP32 FLOP: it splits and adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from analysis.access import AccessCounts, Operation, Pattern, Space
from analysis.geometry import WARP_SIZE
from analysis.problem import FLOAT_BYTES
from analysis.records.counters import InstructionCounts, MemoryAction, MemorySpace
from analysis.records.metrics import (
    FADD,
    FFMA,
    FMUL,
    HMMA,
    L1_REQUESTS,
    L1_SECTORS,
    SHARED_INSTRUCTIONS,
    SHARED_WAVEFRONTS,
    fp32_flop,
    total,
)
from analysis.records.profile import MachineAccess, Record, Simulated
from analysis.theory import Theory

SECTOR_FLOATS = 8  # 32 bytes

_ACCESSES: tuple[tuple[Space, Operation], ...] = (
    ("global", "load"),
    ("global", "store"),
    ("shared", "load"),
    ("shared", "store"),
)


def _counters() -> Iterator[tuple[tuple[str, str], str]]:
    yield ("arithmetic", "multiply-adds"), FFMA
    yield ("tensor cores", "products"), HMMA
    for place, (operation, short) in enumerate((("load", "ld"), ("store", "st"))):
        of_global, of_shared = f"global {operation}s", f"shared {operation}s"
        yield (of_global, "requests"), L1_REQUESTS["global", short]
        yield (of_global, "sectors"), L1_SECTORS["global", short]
        yield (of_shared, "warp instructions"), SHARED_INSTRUCTIONS[place]
        yield (of_shared, "wavefronts"), SHARED_WAVEFRONTS[place]


COUNTER_OF: Mapping[tuple[str, str], str] = MappingProxyType(dict(_counters()))


_SHARED_LOADS = {name for (subject, _), name in COUNTER_OF.items() if subject == "shared loads"}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One quantity of a launch by closed form and by simulation.

    `subject` names the counted operations ("global loads", "arithmetic"), `quantity` the unit.
    `reason` says why the numbers differ, None if they are equal; `is_explained` is True if the
    counts prove it.
    """

    subject: str
    quantity: str
    closed_form: int
    simulated: int
    reason: str | None = None
    is_explained: bool = True

    @property
    def is_equal(self) -> bool:
        return self.closed_form == self.simulated

    @property
    def counter(self) -> str | None:
        """The counter of this quantity, None if there is none."""
        return COUNTER_OF.get((self.subject, self.quantity))


def closed_forms(theory: Theory) -> dict[str, int]:
    """Closed forms of a launch, by the names of the corresponding counters."""
    found = {FFMA: theory.accesses.multiply_adds}
    if theory.accesses.tensor_instructions:
        found[HMMA] = theory.accesses.tensor_instructions
    for space, operation in _ACCESSES:
        patterns = _patterns(theory, space, operation)
        if patterns or not theory.accesses.elements(space, operation):
            issued, cost = _QUANTITIES[space]
            subject = _subject(space, operation)
            found[COUNTER_OF[subject, issued]] = _requests(patterns)
            found[COUNTER_OF[subject, cost]] = _cost(patterns)
    return found


def known_reason(theory: Theory, counter: str, count: int) -> str | None:
    """Possible reason why a closed form differs from a counter, None if there is none.

    It is weaker than those of `comparisons`, which examines every kind of access in the machine
    code.
    """
    counts = theory.accesses
    if counter == FFMA:
        extra, of_c = count - counts.multiply_adds, counts.problem.c_elements
        return f"beta · C is {_per_element(extra, of_c)}" if _is_scaling(extra, of_c) else None
    causes = []
    if counts.tiling.leaves_sums:
        causes.append(LEFT_SUMS)
    if counts.tiling.bulk and counter in _SHARED_LOADS:
        causes.append(READ_AHEAD)
    if counts.has_edges:
        causes.append("tiles extend beyond the matrices, where guards deactivate lanes")
    for space, operation in _ACCESSES:
        if counter == COUNTER_OF.get((_subject(space, operation), "sectors")):
            causes.append(_misaligned(counts, _patterns(theory, space, operation)))
    return "; ".join(filter(None, causes)) or None


def _patterns(theory: Theory, space: Space, operation: Operation) -> tuple[Pattern, ...]:
    return tuple(p for p in theory.patterns if (p.space, p.operation) == (space, operation))


# An asynchronous copy is a global load, here as in the counters; a bulk copy only here.
_OPERATION = {"copy": "load", "bulk load": "load"}
LEFT_SUMS = "partial sums that slices or blocks exchange"
READ_AHEAD = "each thread also reads ahead after the last phase"


def _kind(access: MachineAccess) -> tuple[str, str]:
    """Space and operation of an access, as closed forms name them."""
    return access.space, _OPERATION.get(access.action, access.action)


def _subject(space: Space, operation: Operation) -> str:
    return f"{space} {operation}s"


_QUANTITIES: Mapping[Space, tuple[str, str]] = MappingProxyType(
    {"global": ("requests", "sectors"), "shared": ("warp instructions", "wavefronts")}
)


def _requests(patterns: Iterable[Pattern]) -> int:
    return sum(p.requests for p in patterns)


def _cost(patterns: Iterable[Pattern]) -> int:
    """Cost of accesses: sectors of global ones, wavefronts of shared ones."""
    total = 0
    for one in patterns:
        cost_of_request = one.sectors if one.space == "global" else one.wavefronts
        total += one.requests * (cost_of_request or 0)
    return total


_SUMMED = ("executed", "requests", "sectors", "wavefronts", "conflict_free", "ideal")


def machine_accesses(instructions: Iterable[InstructionCounts]) -> tuple[MachineAccess, ...]:
    """The instructions that access memory, summed by space, action and width."""
    kinds: dict[tuple[MemorySpace, MemoryAction, int], list[InstructionCounts]] = {}
    for one in instructions:
        if one.space is not None and one.action is not None and one.executed:
            kinds.setdefault((one.space, one.action, one.bytes_per_lane), []).append(one)
    return tuple(
        MachineAccess(
            space=space,
            action=action,
            instruction_bytes=bytes_per_lane,
            lanes=sum(one.predicated for one in same),
            **{name: sum(getattr(one, name) for one in same) for name in _SUMMED},
        )
        for (space, action, bytes_per_lane), same in sorted(kinds.items())
    )


def comparisons(record: Record) -> tuple[Comparison, ...]:
    """Every quantity that both grades have of a record, in a fixed order; empty without both."""
    theory, simulated = record.theory, record.simulated
    if theory is None or simulated is None:
        return ()
    return (
        *_arithmetic(theory.accesses, simulated),
        *(
            comparison
            for space, operation in _ACCESSES
            for comparison in _Side(theory, simulated, space, operation).comparisons()
        ),
        *_unforeseen(record, simulated),
    )


def unexplained(record: Record) -> tuple[Comparison, ...]:
    """Comparisons of a record that differ for an unknown reason."""
    return tuple(one for one in comparisons(record) if not one.is_explained)


# Arithmetic.


def _arithmetic(counts: AccessCounts, simulated: Simulated) -> Iterator[Comparison]:
    of_c = counts.problem.c_elements
    fused = total(simulated.counters, FFMA)
    extra = fused - counts.multiply_adds
    yield _compared(
        "arithmetic",
        "multiply-adds",
        counts.multiply_adds,
        fused,
        f"beta · C is {_per_element(extra, of_c)}",
        is_explained=_is_scaling(extra, of_c),
    )
    if counts.tiling.tensor is not None:
        products = simulated.counters.get(HMMA, 0)
        yield _compared("tensor cores", "products", counts.tensor_instructions, products, "")
        return
    padding = 2 * counts.multiply_adds - counts.problem.flop  # zeros outside of the matrices
    scaling = 2 * extra + total(simulated.counters, FADD, FMUL)
    causes = []
    if padding:
        share = 100 * padding / counts.problem.flop
        causes.append(f"multiply-adds on zeros outside the matrices, {share:.3g} % more")
    adds_sums = counts.tiling.leaves_sums
    if scaling:
        added = ", and adding up" if adds_sums else ""
        causes.append(f"alpha and beta{added}, {_per_element(scaling, of_c)}")
    yield _compared(
        "arithmetic",
        "FLOP",
        counts.problem.flop,
        fp32_flop(simulated.counters),
        " and ".join(causes),
        is_explained=adds_sums
        or (_is_scaling(scaling, of_c) and (not padding or counts.has_edges)),
    )


def _is_scaling(operations: int, c_elements: int) -> bool:
    """True if operations can be those of alpha and beta: a few for each element of C."""
    return 0 <= operations <= 4 * c_elements and operations % c_elements == 0


def _per_element(operations: int, c_elements: int) -> str:
    return f"{operations / c_elements:.4g} per element of C"


# Accesses.


@dataclass(frozen=True)
class _Side:
    """The accesses of one space and direction, by both grades."""

    theory: Theory
    simulated: Simulated
    space: Space
    operation: Operation

    @property
    def counts(self) -> AccessCounts:
        return self.theory.accesses

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        return _patterns(self.theory, self.space, self.operation)

    @property
    def machine(self) -> tuple[MachineAccess, ...]:
        return tuple(a for a in self.simulated.accesses if _kind(a) == (self.space, self.operation))

    @property
    def lanes(self) -> int:
        return sum(a.lanes for a in self.machine)

    @property
    def moved_bytes(self) -> int:
        return sum(a.lanes * a.instruction_bytes for a in self.machine)

    @property
    def subject(self) -> str:
        return _subject(self.space, self.operation)

    def comparisons(self) -> Iterator[Comparison]:
        elements = self.counts.elements(self.space, self.operation)
        moved = self.moved_bytes // FLOAT_BYTES
        if not elements and not moved:
            return
        if self.counts.tiling.bulk and (self.space, self.operation) == ("global", "load"):
            yield self._bulk_copies(elements)
            return
        more = self._more(moved - elements)
        yield _compared(self.subject, "elements", elements, moved, more)
        if more:
            return
        of_widths = elements == moved
        instructions = self.counts.instructions(self.space, self.operation)
        lanes = self.lanes
        widths = self._widths() if instructions != lanes else ""
        yield _compared(
            self.subject, "instructions", instructions, lanes, widths, is_explained=of_widths
        )
        if not self.patterns:
            return
        is_global = self.space == "global"
        requests = sum(a.requests for a in self.machine)
        issued = requests if is_global else sum(a.executed for a in self.machine)
        idle = self._idle(requests)
        causes = [widths, idle, self._switched_off(issued - requests)]
        is_known = of_widths and (not idle or self.counts.has_edges)
        named, costing = _QUANTITIES[self.space]
        yield self._caused(named, _requests(self.patterns), issued, causes, is_known=is_known)
        if is_global:
            causes.append(_misaligned(self.counts, self.patterns))
        cost = sum(a.sectors if is_global else a.wavefronts for a in self.machine)
        yield self._caused(costing, _cost(self.patterns), cost, causes, is_known=is_known)

    def _more(self, elements: int) -> str:
        """Known reason why so many more elements are moved than in the closed forms.

        A thread holds values for four k of its rows of A, and for one k of its columns of B. It
        reads the next values before it computes, also after the last phase.
        """
        tiling = self.counts.tiling
        if tiling.leaves_sums and elements > 0:
            return LEFT_SUMS
        ahead = self.counts.threads * (4 * tiling.thread_m + tiling.thread_n)
        reads = (self.space, self.operation) == ("shared", "load")
        return READ_AHEAD if tiling.bulk and reads and elements == ahead else ""

    def _bulk_copies(self, elements: int) -> Comparison:
        """The sectors of bulk copies, which have neither lanes nor requests.

        Other instructions read partial sums of other blocks; these are not compared.
        """
        problem = self.counts.problem
        off = [row for row in (problem.k, problem.n) if row % SECTOR_FLOATS]
        rows = f"rows of {' and '.join(map(str, off))} floats do not begin at a sector boundary"
        return _compared(
            self.subject,
            "sectors",
            elements // SECTOR_FLOATS,
            sum(a.sectors for a in self.machine if a.action == "bulk load"),
            rows,
            is_explained=bool(off),
        )

    def _caused(
        self, quantity: str, closed_form: int, simulated: int, causes: list[str], *, is_known: bool
    ) -> Comparison:
        reason = "; ".join(filter(None, causes))
        return _compared(
            self.subject, quantity, closed_form, simulated, reason, is_explained=is_known
        )

    def _widths(self) -> str:
        """Widths of the compiler's instructions, against the stated widths."""
        moved = self.moved_bytes
        parts = [
            f"{100 * a.lanes * a.instruction_bytes / moved:.3g} % in {a.instruction_bytes} bytes"
            for a in self.machine
            if a.lanes
        ]
        stated = sorted({p.instruction_bytes for p in self.patterns})
        expected = " and ".join(map(str, stated)) or str(FLOAT_BYTES)
        return (
            f"the compiler moves {', '.join(parts)} per lane, the closed form says {expected}"
            if parts
            else ""
        )

    def _idle(self, requests: int) -> str:
        """Average active lanes of the warps that access memory, if not all lanes are active."""
        if self.lanes == WARP_SIZE * requests:
            return ""
        return f"guards leave {self.lanes / requests:.4g} of 32 lanes active on average"

    def _switched_off(self, instructions: int) -> str:
        """Instructions of warps without active lanes, as in the other branch of a guard."""
        if not instructions:
            return ""
        return f"{instructions:,} more are issued without an active lane"


def _misaligned(counts: AccessCounts, patterns: Iterable[Pattern]) -> str:
    """Rows that do not begin at a sector boundary, so that a warp accesses one more sector."""
    p = counts.problem
    rows = {"A": p.k, "B": p.n, "C": p.n}
    off = {q.operand: rows[q.operand] for q in patterns if rows[q.operand] % SECTOR_FLOATS}
    if not off:
        return ""
    pitches = " and ".join(f"{operand} of {floats} floats" for operand, floats in off.items())
    return f"rows of {pitches} do not begin at a 32-byte boundary, as the first warp's do"


def _unforeseen(record: Record, simulated: Simulated) -> Iterator[Comparison]:
    """Accesses without a closed form: spilled registers, generic or atomic accesses."""
    for access in simulated.accesses:
        if _kind(access) not in _ACCESSES and access.requests:
            subject = f"{access.space} {access.action}s"
            reason = _reason_of_unforeseen(record, access)
            yield _compared(subject, "requests", 0, access.requests, reason)


def _reason_of_unforeseen(record: Record, access: MachineAccess) -> str:
    if access.space == "local":
        return "spilled registers are kept in local memory"
    blocks = record.geometry.blocks if record.geometry else None
    if (access.space, access.action, access.requests) == ("global", "atomic", blocks):
        return "each block increments a counter, whether it copies or waits"
    return ""


def _compared(
    subject: str,
    quantity: str,
    closed_form: int,
    simulated: int,
    reason: str,
    *,
    is_explained: bool = True,
) -> Comparison:
    """The comparison of two counts. An unequal one is explained only by a reason."""
    if closed_form == simulated:
        reason, is_explained = "", True
    elif not reason or not is_explained:
        reason, is_explained = f"not explained{': ' if reason else ''}{reason}", False
    return Comparison(
        subject=subject,
        quantity=quantity,
        closed_form=closed_form,
        simulated=simulated,
        reason=reason or None,
        is_explained=is_explained,
    )
