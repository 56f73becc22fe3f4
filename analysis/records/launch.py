"""What `simulate --json` keeps of one launch, as far as it is read again."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.geometry import Geometry
from analysis.occupancy import Resources
from analysis.records.profile import Launched, LineCounters, Simulated
from analysis.timing.predicted import Predicted

# 2: the device, and the text of each line; 3: the rung. Earlier ones are read too.
SCHEMA_VERSION = 3


@dataclass(frozen=True, kw_only=True)
class LaunchRecord:
    """One launch of `simulate`.

    `arguments` are as they were written, `device` is the key of the one that traffic below L1 and
    the time are modelled for, None without.
    """

    source: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int
    arguments: tuple[str, ...]
    defines: dict[str, str]
    options: tuple[str, ...]
    seed: int | None
    resources: Resources
    basis: str | None
    counters: dict[str, int]
    lines: tuple[LineCounters, ...]
    predicted: Predicted | None
    device: str | None = None

    @property
    def launched(self) -> Launched:
        """The same in the form that records of a profile have."""
        return Launched(
            label=self.kernel,
            geometry=Geometry(
                grid=self.grid, block=self.block, dynamic_shared_bytes=self.dynamic_shared_bytes
            ),
            resources=self.resources,
            simulated=Simulated(
                architecture=self.resources.architecture,
                compiler=self.resources.compiler,
                counters=self.counters,
                accesses=(),
                lines=self.lines,
                basis=self.basis or "",
                blocks_executed=0,
            ),
            predicted=self.predicted,
        )
