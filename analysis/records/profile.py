"""Records of profile.json, which reports draw and notebooks read.

One `Record` per (variant, shape). Each carries up to four grades of number, absent (None) when
they were not obtained:

- theory     closed forms: access counts, intensity, ceilings (this library, no execution)
- simulated  counters of the machine code, executed on a CPU
- predicted  a model's time, its limiter, and the parts that it is spent on
- measured   samples of a clock, and the statistics of them; counters of the hardware (`counted`)

All quantities are SI base units (s, Hz, byte, FLOP, FLOP/s, W, °C); text is made in reports.text.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Self

from analysis.devices import Device
from analysis.geometry import Geometry
from analysis.l2_state import L2State
from analysis.occupancy import Occupancy, Resources
from analysis.problem import Gemm
from analysis.product_errors import ProductError
from analysis.records.counters import CounterClass, MemoryAction, MemorySpace
from analysis.rounding import Check
from analysis.theory import Theory
from analysis.timing.predicted import Predicted
from analysis.vocabulary import Vocabulary

# The recorded runs that ship have 4 and 5, and are read: fields that they lack are absent, and
# fields that later versions dropped are ignored.
SCHEMA_VERSION = 6
OLDEST_SCHEMA_VERSION = 4


class Grade(Vocabulary):
    """Way in which a number was obtained."""

    THEORY = "theory"
    COMPILED = "compiled"  # what the compiler reports
    SIMULATED = "simulated"
    PREDICTED = "predicted"
    MEASURED = "measured"
    RECORDED = "recorded"  # measured in an earlier run
    CHECKED = "checked"
    NOMINAL = "nominal"


Status = Literal["ok", "skipped", "failed"]
ExecutorName = Literal["gpu", "simulate", "theory"]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A 95% confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class MachineAccess:
    """All machine instructions that access one space in one way, with one width per lane."""

    space: MemorySpace
    action: MemoryAction
    instruction_bytes: int  #: bytes that a lane moves
    executed: int  #: warps that issued one of the instructions
    requests: int  #: such warps of which at least one lane's guard was true
    lanes: int  #: lanes that took part
    sectors: int  #: 32-byte pieces, in global or local memory
    wavefronts: int  #: wavefronts of shared memory
    conflict_free: int  #: the part of the wavefronts without bank conflicts
    ideal: int  #: fewest sectors or wavefronts that could carry the distinct bytes


@dataclass(frozen=True, kw_only=True)
class LineCounters:
    """Counts of the machine code of one source line; zeros are left out.

    `text` is the line itself, empty where the source is not at hand.
    """

    file: str
    line: int
    text: str
    counters: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class FirstRequest:
    """First request that an instruction made in one block, lane by lane.

    `lanes` are byte offsets from the start of `buffer`, None for a lane that took no part. `buffer`
    is "A", "B" or "C" of a rung, "shared", or the label of an argument. Of a rung, `k` is the K at
    which the block was executed and `row_floats` the length of a row of the matrix; None for shared
    memory, and both for other kernels.
    """

    block: int
    warp: int
    k: int | None
    buffer: str
    row_floats: int | None
    lanes: tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True)
class LineAccess:
    """Machine instructions of one source line that access memory alike, over a whole launch.

    They are unrolled copies: of one space, action and width, and their first requests have one
    shape. `place` is the index of the first of them in the listing, `first` its first request, None
    for memory of other kinds. Counts are those of `MachineAccess`.
    """

    place: int
    space: MemorySpace
    action: MemoryAction
    bytes_per_lane: int
    requests: int
    sectors: int
    wavefronts: int
    conflict_free: int
    ideal: int
    first: FirstRequest | None = None


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """Counters of a launch whose machine code was executed on the CPU, block by block."""

    architecture: str  #: of the machine code
    compiler: str  #: of the machine code
    counters: dict[str, int]  #: of the whole launch, under Nsight Compute's names
    accesses: tuple[MachineAccess, ...]
    lines: tuple[LineCounters, ...]
    basis: str  #: text that names the executed blocks, and the proof that they represent all
    blocks_executed: int  #: number of executed blocks
    #: origin of the modelled counters (`analysis.records.counters.MODELLED`), None without any
    traffic_basis: str | None = None
    executed: tuple[int, ...] = ()  #: warps that issued each instruction of the listing
    memory: tuple[LineAccess, ...] = ()  #: accesses to memory by source line
    listing: str | None = None  #: label of the `Listing`; None: the record's label


@dataclass(frozen=True, kw_only=True)
class CountedKernel:
    """One kernel of a launch, as the profiler reported it: `name` demangled, sizes in bytes.

    `tile` is the part of C that a block computes, (rows, columns), if the name of a library's
    kernel states it.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers_per_thread: int
    static_shared_bytes: int
    dynamic_shared_bytes: int
    tile: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Hardware counters of one launch under a profiler. No time is taken from such a run."""

    counters: dict[str, int]  #: sums over the kernels, under Nsight Compute's names
    kernels: tuple[CountedKernel, ...]  #: a library may launch more than one
    caches: Literal["flushed", "warm"]  #: state of L2 at the start
    source: str  #: the profiler, such as "Nsight Compute 2025.3.1"
    missing: tuple[str, ...] = ()  #: requested counters that this GPU or profiler does not have


class Verdict(Vocabulary):
    """Result of comparing the grades of a counter."""

    EQUAL = "equal"
    WITHIN = "within"
    APART = "apart"
    ALONE = "alone"


@dataclass(frozen=True, kw_only=True)
class Score:
    """One counter of one launch by every grade that has it, and the difference between grades.

    An "apart" that `is_explained` is not a disagreement.
    """

    counter: str
    grade: CounterClass
    theory: int | None
    simulated: int | None
    measured: int | None
    #: `simulated` over `measured`; without the first, `theory` over `measured`; without the last,
    #: `simulated` over `theory`. None if the denominator is 0 or only one grade has the counter
    ratio: float | None
    #: distance of the ratio from 1 that the class allows; for bank conflicts, their difference as a
    #: fraction of the wavefronts
    tolerance: float
    verdict: Verdict  #: on the two numbers of the ratio
    reason: str | None = None  #: why grades differ, including theory if it is not in the ratio
    is_explained: bool = True

    @property
    def is_apart(self) -> bool:
        """True if grades differ and nothing explains it."""
        return self.verdict == Verdict.APART and not self.is_explained

    @property
    def by_grade(self) -> dict[Grade, int]:
        """The counts of the grades that have one."""
        counts = {
            Grade.THEORY: self.theory,
            Grade.SIMULATED: self.simulated,
            Grade.MEASURED: self.measured,
        }
        return {grade: count for grade, count in counts.items() if count is not None}


@dataclass(frozen=True, kw_only=True)
class GpuState:
    """State of a GPU at one moment, from its management library; None if it does not report it."""

    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttle_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Moment:
    """State of the GPU `time_s` after the first round of samples of a shape began.

    `rounds` is the number of completed rounds: each variant that is still sampled has as many
    samples.
    """

    time_s: float
    rounds: int
    state: GpuState


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """States of a GPU while the variants of one shape were sampled in turns."""

    shape: Gemm
    moments: tuple[Moment, ...]


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """Speed against a peer, sample by sample in the same run (above 1: faster than the peer)."""

    peer: str
    median: float
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Times of single launches, and statistics of them.

    `samples_s` holds every sample in the order taken. `interval_s` is that of the median, None if
    there are too few samples. `stopped_by` says why sampling ended.
    """

    clock: Literal["CUDA events", "host clock"]
    l2: L2State | Literal["host"]
    samples_s: tuple[float, ...]
    median_s: float
    interval_s: Interval | None
    flop_per_s: float
    stopped_by: Literal["precision", "time limit", "interrupt", "sample limit"]
    relative_to_cublas: Ratio | None = None
    before: GpuState | None = None
    after: GpuState | None = None


@dataclass(frozen=True, kw_only=True)
class Launched:
    """Known facts of one launch of any kernel; a number that was not obtained is None.

    `label` is the name of the kernel. `reason` explains a status other than ok; `notes` are for the
    reader.
    """

    label: str
    status: Status = "ok"
    reason: str | None = None
    notes: tuple[str, ...] = ()
    geometry: Geometry | None = None
    resources: Resources | None = None
    occupancy: Occupancy | None = None
    waves: float | None = None
    theory: Theory | None = None
    simulated: Simulated | None = None
    predicted: Predicted | None = None
    measured: Measured | None = None
    counted: Counted | None = None
    check: Check | None = None

    def noted(self, note: str) -> Self:
        """Record with one more note."""
        return replace(self, notes=(*self.notes, note))

    @property
    def trusted(self) -> Measured | None:
        """Measurement of a launch whose result was not found to be wrong, else None."""
        return None if self._is_wrong else self.measured

    @property
    def trusted_prediction(self) -> Predicted | None:
        """Predicted time of a launch whose result was not found to be wrong, else None."""
        return None if self._is_wrong else self.predicted

    @property
    def _is_wrong(self) -> bool:
        return self.status == "failed" or (self.check is not None and not self.check.passed)


@dataclass(frozen=True, kw_only=True)
class Record(Launched):
    """All facts of one variant at one shape.

    `label` is the variant with its non-default parameters ("tiled:tile=16"); `rung` is None for
    a reference. `executed_shape` differs from `shape` when the launcher padded the matrices
    with zeros. `published` are times that texts state, in files of versions that added them.
    """

    variant: str
    title: str
    idea: str
    rung: int | None
    parameters: dict[str, int]
    shape: Gemm
    executed_shape: Gemm
    scores: tuple[Score, ...] = ()
    published: tuple[dict[str, object], ...] = ()
    errors: tuple[ProductError, ...] = ()  #: on classes of inputs


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Environment of a profile: versions of software, and the hardware, as found."""

    toolkit_version: str
    commit: str | None
    software: dict[str, str] = field(default_factory=dict)
    hardware: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Source of a variant beside its machine code, which is the same at every shape.

    `sass` is the text of each instruction and `lines` its source line, 0 if that is not known or in
    another file.
    """

    label: str
    file: str
    source: str
    sass: tuple[str, ...]
    lines: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One run of `profile`, complete in itself: it can be rendered elsewhere and later.

    `executor` names how launches ran: "gpu", "simulate" for machine code executed on the CPU, or
    "theory" if nothing was launched. `created` is ISO 8601 in UTC; `seed` reproduces the random
    inputs.
    """

    schema_version: int
    created: str
    command: str
    status: Literal["complete", "interrupted"]
    executor: ExecutorName
    seed: int
    device: Device
    environment: Environment
    records: tuple[Record, ...]
    listings: tuple[Listing, ...] = ()
    conditions: tuple[Conditions, ...] = ()
