"""Source lines of a launch, with the counts of their instructions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analysis.records.counters import InstructionCounts, of_lines
from analysis.records.profile import FirstRequest, LineAccess

# Number of sectors, relative to the fewest that could hold the bytes, from which a line is reported
# as wasteful: a warp that reads 128 bytes from an address between two sector boundaries takes 5
# sectors instead of 4.
WASTEFUL = 1.25
UNCOALESCED = 2.0  # the same, from which it is reported as uncoalesced
_SUMMED = ("requests", "sectors", "wavefronts", "conflict_free", "ideal")
NEGLIGIBLE = 0.02  # of the wavefronts or the branches: too few to be worth a remark


@dataclass(frozen=True, kw_only=True)
class AccessTotal:
    """Accesses of some instructions to one memory: sectors, or wavefronts of shared memory.

    `ideal` is the fewest sectors that could hold the bytes, or the number of wavefronts without
    bank conflicts.
    """

    space: str
    action: str
    requests: int
    units: int
    ideal: int

    @property
    def excess(self) -> int:
        return self.units - self.ideal

    @property
    def waste(self) -> str:
        """Reason why `units` exceed `ideal`; empty if the excess is negligible."""
        if self.space == "shared":
            return "bank conflicts" if self.excess > NEGLIGIBLE * self.units else ""
        if self.space == "local" or self.units < WASTEFUL * self.ideal:
            return ""
        return "uncoalesced" if self.units >= UNCOALESCED * self.ideal else "partly used"


def accesses(counted: Iterable[InstructionCounts | LineAccess]) -> list[AccessTotal]:
    """Accesses summed by memory and action."""
    kinds: dict[tuple[str, str], list[InstructionCounts | LineAccess]] = {}
    for one in counted:
        if one.space is not None and one.action is not None and one.requests:
            kinds.setdefault((one.space, one.action), []).append(one)
    return [
        AccessTotal(
            space=space,
            action=action,
            requests=sum(one.requests for one in same),
            units=sum(one.wavefronts if space == "shared" else one.sectors for one in same),
            ideal=sum(one.conflict_free if space == "shared" else one.ideal for one in same),
        )
        for (space, action), same in kinds.items()
    ]


def distinct_accesses(counted: Iterable[InstructionCounts]) -> list[AccessTotal]:
    """Accesses by memory and action; those that differ in units per request stay apart.

    The most units come first. Unrolled copies of an access have equal units and are one entry.
    """
    kinds: dict[tuple[object, ...], list[InstructionCounts]] = {}
    for one in counted:
        if one.space is not None and one.action is not None and one.requests:
            is_shared = one.space == "shared"
            units = one.wavefronts if is_shared else one.sectors
            ideal = one.conflict_free if is_shared else one.ideal
            each = tuple(float(f"{x / one.requests:.3g}") for x in (units, ideal))
            kinds.setdefault((one.space, one.action, *each), []).append(one)
    found = [total for same in kinds.values() for total in accesses(same)]
    return sorted(found, key=lambda one: -one.units)


@dataclass(frozen=True, kw_only=True)
class Line:
    """Counts of the instructions of one source line."""

    file: str
    number: int
    executed: int
    accesses: Sequence[AccessTotal]
    threads: int | None = None  # None where they were not counted
    branches: int = 0  # those that split a warp, by warps
    splits: int = 0

    def per_request(self, quantity: str, *, shared: bool) -> float | None:
        """Average `units`, `ideal` or `excess` of the accesses to shared memory, or to others."""
        of = [access for access in self.accesses if (access.space == "shared") == shared]
        requests = sum(access.requests for access in of)
        return sum(getattr(a, quantity) for a in of) / requests if requests else None


def summed_by_line(instructions: Iterable[InstructionCounts]) -> list[Line]:
    """Lines whose instructions were executed, in order."""
    lines = of_lines(one for one in instructions if one.executed)
    return [_line(file, number, of) for (file, number), of in lines.items()]


def _line(file: str, number: int, of: Sequence[InstructionCounts]) -> Line:
    splitting = [one for one in of if one.divergent]
    return Line(
        file=file,
        number=number,
        executed=sum(one.executed for one in of),
        threads=sum(one.threads for one in of),
        accesses=accesses(of),
        branches=sum(one.executed for one in splitting),
        splits=sum(one.divergent for one in splitting),
    )


def line_accesses(
    instructions: Sequence[InstructionCounts], first: Mapping[int, FirstRequest]
) -> tuple[LineAccess, ...]:
    """Accesses of instructions to memory, each with its first request; merges unrolled copies."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for index, one in enumerate(instructions):
        if one.space and one.requests:
            kind = (one.places, one.space, one.action, one.bytes_per_lane, _shape(first.get(index)))
            alike.setdefault(kind, []).append(index)
    return tuple(
        _access(indices[0], [instructions[index] for index in indices], first.get(indices[0]))
        for indices in alike.values()
    )


def _access(
    index: int, copies: Sequence[InstructionCounts], first: FirstRequest | None
) -> LineAccess:
    one = copies[0]
    assert one.space is not None
    assert one.action is not None
    return LineAccess(
        place=index,
        space=one.space,
        action=one.action,
        bytes_per_lane=one.bytes_per_lane,
        **{name: sum(getattr(copy, name) for copy in copies) for name in _SUMMED},
        first=first,
    )


def _shape(request: FirstRequest | None) -> tuple[object, ...]:
    """The buffer, and how far lanes are from the first one that takes part."""
    if request is None:
        return ()
    start = next(lane for lane in request.lanes if lane is not None)
    return (request.buffer, *(None if one is None else one - start for one in request.lanes))
