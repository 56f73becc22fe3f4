"""Results of a search for remedies. Commands that search for none import nothing else of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.records.remedy import Remedy
    from toolkit.remedies.edit import Edit
    from toolkit.remedies.kernel_launch import KernelLaunch

LIMIT_S = 4.0  # of processor time: no further trial begins then


@dataclass(frozen=True, kw_only=True)
class Remedies:
    """Remedies of a launch, and the edits of those that were made, by their number.

    `refused` has a line for each edit that was not offered because results differ. `untried`: edits
    for which there was no time (`LIMIT_S`). `need_source`: edits of a source that was not
    compiled here.
    """

    launch: KernelLaunch | None
    found: tuple[Remedy, ...] = ()
    edits: dict[int, Edit] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    untried: int = 0
    need_source: int = 0


NONE = Remedies(launch=None)
