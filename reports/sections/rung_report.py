"""A rung of a profile as the report of a launch, so that both have the same figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from analysis.geometry import WARP_SIZE
from analysis.records.counters import InstructionCounts
from analysis.records.profile import Listing, Simulated
from reports import ladder
from reports.ladder import View
from reports.sections.ladder_rows import Row
from reports.sections.launch_report import LaunchReport


def report_of(view: View, row: Row) -> LaunchReport | None:
    """Return the report of a rung, None if it was not even compiled."""
    record = row.record
    if record.resources is None:
        return None
    listing, simulated = ladder.listing_of(view.profile, record), record.simulated
    return LaunchReport(
        name=record.label,
        resources=record.resources,
        file=listing.file if listing else None,
        source=listing.source if listing else None,
        geometry=record.geometry,
        device=view.profile.device,
        predicted=row.predicted,
        samples_s=row.measured.samples_s if row.measured else (),
        instructions=_instructions(listing, simulated) if listing and simulated else (),
        counters=simulated.counters if simulated else {},
        memory=simulated.memory if simulated else (),
        is_rung=True,
    )


def _instructions(listing: Listing, simulated: Simulated) -> Sequence[InstructionCounts]:
    """Counts of each line: an entry per access to memory, and one for all other instructions."""
    if len(simulated.executed) != len(listing.lines):  # of an earlier version
        return ()
    others: dict[int, int] = defaultdict(int)
    for line, executed in zip(listing.lines, simulated.executed, strict=True):
        others[line] += executed
    found = []
    for one in simulated.memory:
        line = listing.lines[one.place]
        others[line] -= one.requests
        access = _of_line(listing, one.place, one.requests)
        lanes = round(one.requests * _lanes(simulated, one.space, one.action))
        found.append(
            replace(
                access,
                predicated=lanes,
                **{name: getattr(one, name) for name in _OF_ACCESSES},
            )
        )
    places = {line: place for place, line in enumerate(listing.lines)}
    return [*found, *(_of_line(listing, places[line], number) for line, number in others.items())]


_OF_ACCESSES = (
    *("space", "action", "bytes_per_lane", "requests"),
    *("sectors", "wavefronts", "conflict_free", "ideal"),
)


def _of_line(listing: Listing, place: int, executed: int) -> InstructionCounts:
    line = listing.lines[place] or None
    return InstructionCounts(
        address=16 * place,
        opcode="",
        text="",
        file=listing.file if line else None,
        line=line,
        executed=max(0, executed),
        threads=0,
        predicated=0,
    )


def _lanes(simulated: Simulated, space: str, action: str) -> float:
    """Average number of lanes of a request."""
    alike = [one for one in simulated.accesses if (one.space, one.action) == (space, action)]
    requests = sum(one.requests for one in alike)
    return sum(one.lanes for one in alike) / requests if requests else WARP_SIZE
