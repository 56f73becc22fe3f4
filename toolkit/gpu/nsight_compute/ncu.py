"""Nsight Compute's command line: what it is asked, how it is run, and what its output says.

Reading is pure: text in, kernels or a complaint out.
"""

from __future__ import annotations

import csv
import os
import queue
import re
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from threading import Thread

from analysis.errors import CountersError, shortened
from analysis.records.counters import ALL_COUNTERS, MODELLED
from toolkit.machine_code import cuda_tools as commands

INSTALL = "install Nsight Compute: https://developer.nvidia.com/nsight-compute"
ALLOW_COUNTERS = (
    "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | "
    "sudo tee /etc/modprobe.d/nvidia-profiling.conf, then reboot; or run with sudo"
)

# Every counter is a share of a pass over every launch.
COUNTER_NAMES = tuple(tag for tag, counter in ALL_COUNTERS.items() if counter.is_asked_for)
# Traffic is counted in a run of its own, in one pass: before each further pass of a launch ncu puts
# back what the kernel wrote; that stands in L2 then, and some of it reaches DRAM while the kernel
# runs (docs/experiments.md).
TRAFFIC = tuple(name for name in COUNTER_NAMES if name in MODELLED)
INSTRUCTIONS = tuple(name for name in COUNTER_NAMES if name not in TRAFFIC)
TRAFFIC_TIMES = 3  # runs that count traffic, because the counts vary between launches
REGISTERS = "launch__registers_per_thread"
STATIC_SHARED = "launch__shared_mem_per_block_static"
DYNAMIC_SHARED = "launch__shared_mem_per_block_dynamic"
OF_LAUNCH = (REGISTERS, STATIC_SHARED, DYNAMIC_SHARED)

AS_RAW_CSV = ("--csv", "--page", "raw", "--print-units", "base")
_NO_PERMISSION = "ERR_NVGPUCTRPERM"
_TIME_TO_STOP_S = 5.0
_MOST_WORDS = 240  # of a message of ncu's that is passed on

Size = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class ProfiledKernel:
    """One kernel that ncu profiled; `values` are those of its metrics that are known here.

    What was not counted is not among them.
    """

    name: str
    grid: Size
    block: Size
    values: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class NcuRun:
    """Result of a run of ncu: its log, the output of the program, and how the run ended."""

    log: str
    output: str
    returncode: int
    timed_out: bool

    @property
    def everything(self) -> str:
        return f"{self.log}\n{self.output}"


# The command.


def path() -> str | None:
    """Path of ncu: on PATH, in a CUDA toolkit, or in the folder of its own packages."""
    packaged = sorted(Path("/opt/nvidia/nsight-compute").glob("*"), reverse=True)
    return commands.command_path("ncu", *commands.cuda_folders(), *packaged)


def version(ncu: str) -> str:
    """Such as "2025.3.1.0"; raises as `commands.version_printed_by`."""
    return commands.version_printed_by(ncu, r"Version (\S+)")


def counting_options(counters: Iterable[str]) -> list[str]:
    """Options of ncu: count only the launches that the program marks, flush caches, keep clocks."""
    metrics = ",".join((*counters, *OF_LAUNCH))
    return ["--clock-control", "none", "--profile-from-start", "off", "--metrics", metrics]


def run(
    command: Sequence[str],
    *,
    log: Path,
    on_line: Callable[[str], float],
    patience_s: float,
    environment: Mapping[str, str],
) -> NcuRun:
    """Run ncu, which writes into `log`, to its end. `on_line` receives the program's lines.

    `on_line` returns the timeout for the next line in seconds; `patience_s` is that for the first
    line. After a timeout, and on Ctrl-C, ncu and its child processes are stopped.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=dict(environment),
        start_new_session=True,  # a group of its own, so that all of it can be stopped
    )
    lines: list[str] = []
    timed_out = False
    try:
        next_line = _reader(process)
        while (line := next_line(patience_s)) is not None:
            lines.append(line)
            patience_s = on_line(line)
        process.wait(patience_s)
    except (TimeoutError, subprocess.TimeoutExpired):
        timed_out = True
    finally:
        _stop(process)
    said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return NcuRun(
        log=said, output="\n".join(lines), returncode=process.returncode, timed_out=timed_out
    )


def _reader(process: subprocess.Popen[str]) -> Callable[[float], str | None]:
    """A function that gives the next line that a process prints, None after the last.

    It raises TimeoutError where that takes longer than the seconds that it is given.
    """
    stream = process.stdout
    assert stream is not None
    arrived: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        with stream, suppress(ValueError):
            for line in stream:
                arrived.put(line.rstrip("\n"))
        arrived.put(None)

    def next_line(patience_s: float) -> str | None:
        try:
            return arrived.get(timeout=patience_s)
        except queue.Empty:
            raise TimeoutError from None

    Thread(target=read, daemon=True).start()
    return next_line


def _stop(process: subprocess.Popen[str]) -> None:
    """End a process that still runs, and its group, gently first."""
    for chosen in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, chosen)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_TIME_TO_STOP_S)


# What it says. Pure.


def complaint_in(text: str) -> str:
    """The first error of ncu's that is a cause, not a consequence; empty where it tells of none."""
    told = [
        line.removeprefix("==ERROR==").strip()
        for line in text.splitlines()
        if line.startswith("==ERROR==")
    ]
    consequences = (
        "An error was reported by the driver",
        "Failed to profile",
        "The application returned an error code",
        "An error occurred while trying to profile",
        "No kernels were profiled",
    )
    causes = (line for line in told if line and not line.startswith(consequences))
    return shortened(next(causes, ""), _MOST_WORDS)


def not_permitted(text: str) -> bool:
    """True if ncu says that this user may not read counters."""
    return _NO_PERMISSION in text


def unknown_metrics(text: str, asked: Sequence[str]) -> list[str]:
    """Requested metrics that an error message of ncu names.

    ncu names them whole ("a__b.sum") or as a pattern ("regex:^a__b\\.(sum|min)$"). An error that
    names all of them only repeats the command line: the result is then empty.
    """
    complaints = [
        line
        for line in text.splitlines()
        if line.startswith("==ERROR==") and "metric" in line.lower()
    ]
    words = set(re.findall(r"\w+(?:\.\w+)*", " ".join(complaints)))
    named = [name for name in asked if name in words or name.rpartition(".")[0] in words]
    return [] if len(named) == len(asked) else named


def kernels_in(text: str) -> tuple[ProfiledKernel, ...]:
    """The kernels in the raw page that ncu prints with --csv; other lines are passed over.

    Raises CountersError for a table that is cut short, or lacks what is needed.
    """
    try:
        rows = csv.DictReader((x for x in text.splitlines() if x.startswith('"')), strict=True)
        return tuple(_kernel(row) for row in rows if row["ID"])  # the others are units
    except (csv.Error, KeyError, ValueError) as error:
        raise CountersError(f"the table of ncu cannot be read: {error!r}") from None


def _kernel(row: Mapping[str, str | None]) -> ProfiledKernel:
    cells = {name: cell for name, cell in row.items() if cell is not None}
    if len(cells) < len(row):
        raise ValueError(f"{len(cells)} of {len(row)} columns")
    known = ALL_COUNTERS.keys() | OF_LAUNCH
    counts = {name: integer_in(cell) for name, cell in cells.items() if name in known}
    return ProfiledKernel(
        name=cells["Kernel Name"],
        grid=_size(cells["Grid Size"]),
        block=_size(cells["Block Size"]),
        values={name: count for name, count in counts.items() if count is not None},
    )


def integer_in(text: str) -> int | None:
    """The count that a cell holds, None where it holds none: hardware counts from 0, in 64 bits.

    >>> [integer_in(text) for text in ("1,048,576", "32.00", "n/a", "", "-5", "1e400")]
    [1048576, 32, None, None, None, None]
    """
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    is_count = number.is_finite() and 0 <= number < 2**64
    return int(number.to_integral_value()) if is_count else None


def _size(text: str) -> Size:
    """A grid or block: "(16, 16, 1)"."""
    x, y, z = map(int, re.findall(r"\d+", text))
    return x, y, z
