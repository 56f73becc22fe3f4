"""Record of one launch that `simulate --json` and `run --json` write: what is read again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace

from analysis.devices import DEVICES
from analysis.geometry import Geometry
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.occupancy import Resources
from analysis.records.counters import MODELLED, InstructionCounts
from analysis.records.profile import Launched, LineCounters, Simulated
from analysis.records.remedy import Remedy
from analysis.timing.predicted import Predicted

# 4: estimates; 5: measured times.
SCHEMA_VERSION = 5
OLDEST_SCHEMA_VERSION = 3
MOST_NAMES = 3  # of estimates in one sentence


LINE_INFORMATION = "-lineinfo"  # which the commands always compile with
COMPILER = "--compiler="  # before the compiler's name among the options


@dataclass(frozen=True, kw_only=True)
class AskedLaunch:
    """A launch as a user asked `simulate`, `run` or `check` for it.

    `arguments` are as they were written, `device` is the key of the one that traffic below L1 and
    the time are modelled for, None without. `rung` is the label of a rung by its name.
    `settings` are variables of --set as they were written. `heap_bytes`, `limit_s`, `blocks` and
    `max_instructions` are None for the default.
    `l2` is what the launch finds in L2: dirty in records of earlier versions.
    `inner_lines` is None, and `constants`, a file, may be unknown, in records of earlier versions.
    `source_dirs` are the folders of --source-dir.
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
    device: str | None = None
    rung: str | None = None
    inner_lines: bool | None = None
    constants: str | None = None
    clock_mhz: float | None = None  #: of --clock
    l2: L2State = DEFAULT_L2
    source_dirs: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    cooperative: bool = False
    heap_bytes: int | None = None
    limit_s: float | None = None
    blocks: str | None = None
    max_instructions: int | None = None
    allow_out_of_bounds: bool = False

    def words(self, command: str, architecture: str) -> list[str]:
        """Words of the shell command that repeats the launch with the subcommand `command`."""
        words = ["python", "-m", "toolkit", command]
        if self.rung is not None:
            words += [self.rung, *_each("--shape", self.arguments)]
        else:
            words += [self.source, *(["-k", self.kernel] if self.kernel else [])]
            words += ["-g", ",".join(map(str, self.grid)), "-b", ",".join(map(str, self.block))]
            words += _each("-a", self.arguments)
            words += _each("--set", self.settings)
            words += _each("-D", [f"{name}={value}" for name, value in self.defines.items()])
            if self.dynamic_shared_bytes:
                words += ["--shared", str(self.dynamic_shared_bytes)]
            words += ["--cooperative"] if self.cooperative else []
            words += _given("--heap", self.heap_bytes)
        options = [one for one in self.options if one != LINE_INFORMATION]
        words += [one for one in options if one.startswith(COMPILER)]
        words += _each("--option", [one for one in options if not one.startswith(COMPILER)])
        words += _each("--source-dir", self.source_dirs)
        words += _each("--constants", filter(None, [self.constants]))
        words += [] if command == "check" else _given("--clock", self.clock_mhz)
        words += _given("--limit", self.limit_s)
        words += _given("--max-instructions", self.max_instructions)
        words += [] if self.l2 == DEFAULT_L2 or command == "check" else ["--l2", self.l2]
        if self.allow_out_of_bounds and command == "simulate":
            words.append("--allow-out-of-bounds")
        words += _given("--seed", self.seed)
        if self.device is not None and command != "run":
            words += ["--device", self.device]
        if not self.source.endswith(".cubin") and self._needs(architecture):
            words += ["--arch", architecture]
        words += ["--inner-lines"] if self.inner_lines else []
        return words + _each("--blocks", filter(None, [self.blocks]))

    def _needs(self, architecture: str) -> bool:
        """True if the device does not imply the architecture."""
        if self.device is None:
            return True
        known = DEVICES.get(self.device)
        return known is not None and known.sm_arch != architecture


def _given(option: str, value: float | None) -> list[str]:
    return [] if value is None else [option, f"{value:.12g}" if value % 1 else str(int(value))]


def _each(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


@dataclass(frozen=True, kw_only=True)
class LaunchRecord(AskedLaunch):
    """One launch of `simulate` or `run`.

    `estimates` has the ends of the 95% interval, or bounds, of each counter that is an estimate;
    None in records of earlier versions. `unseen_share` is the share of blocks that may differ
    unseen (95%).
    `samples_s` are measured times, in the order taken, each of a launch that found L2 as `l2` says.
    `uncertainty` warns of the time or of estimates.
    """

    resources: Resources
    basis: str | None
    counters: dict[str, int]
    lines: tuple[LineCounters, ...]
    predicted: Predicted | None
    executed_blocks: int | None = None
    estimates: dict[str, tuple[float, float]] | None = None
    unseen_share: float | None = None
    samples_s: tuple[float, ...] = ()
    uncertainty: str = ""

    @property
    def estimated(self) -> tuple[str, ...]:
        """Names of the counters that are estimates: neither counted in all blocks nor proved.

        In records of earlier versions these are all except the modelled ones, unless all blocks
        were executed or the launch is of a rung.
        """
        if self.estimates is not None:
            return tuple(self.estimates)
        basis = self.basis or ""
        if self.rung is not None or basis.startswith(("all ", "the one block")):
            return ()
        return tuple(name for name in self.counters if name not in MODELLED)

    @property
    def command(self) -> str:
        """Shell command that repeats the launch."""
        return shlex.join(self._words)

    @property
    def exact_command(self) -> str:
        """Shell command that executes all blocks of the launch."""
        return shlex.join([*replace(self, blocks=None)._words, "--blocks", "all", "--json"])

    @property
    def _words(self) -> list[str]:
        return self.words("run" if self.samples_s else "simulate", self.resources.architecture)

    def doubt(self, side: str) -> str:
        """Note that names the counters of one side of a comparison that are estimates, else "".

        It ends with the command that makes them exact.
        """
        names = self.estimated
        if not names:
            return ""
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        listed = f"{', '.join(names[:MOST_NAMES])}{more}"
        return (
            f"counters of the {side} launch are estimates ({listed}); this command makes them "
            f"exact: {self.exact_command}"
        )

    @property
    def launched(self) -> Launched:
        """Same facts in the form of the records of a profile, without measured times."""
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


@dataclass(frozen=True, kw_only=True)
class LaunchDocument(LaunchRecord):
    """Everything that the page of a launch shows; fields that a record lacks are empty."""

    traffic_basis: str | None = None
    prediction_basis: str | None = None
    notes: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    instructions: tuple[InstructionCounts, ...] = ()

    @property
    def source_text(self) -> str | None:
        """The lines of the source that were executed, each at its place; None without any."""
        own = {one.line: one.text for one in self.lines if one.file == self.source}
        if not any(own.values()):
            return None
        return "\n".join(own.get(number, "") for number in range(1, max(own) + 1))
