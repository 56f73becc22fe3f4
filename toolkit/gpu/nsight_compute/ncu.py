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
from analysis.records.counters import ALL_COUNTERS, MODELLED, OF_BULK_COPIES
from toolkit.machine_code import cuda_tools as commands

INSTALL = "install Nsight Compute: https://developer.nvidia.com/nsight-compute"
ALLOW_COUNTERS = (
    "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | "
    "sudo tee /etc/modprobe.d/nvidia-profiling.conf, then reboot; or run with sudo"
)

# Every counter is a share of a pass over every launch; no rung computes in double precision.
COUNTERS = tuple(
    name
    for name in ALL_COUNTERS
    if not re.search(r"_op_d(fma|add|mul)_", name) and name not in OF_BULK_COPIES
)
# Traffic is counted in a run of its own, in one pass: before each further pass of a launch ncu puts
# back what the kernel wrote; that stands in L2 then, and some of it reaches DRAM while the kernel
# runs (docs/experiments.md).
TRAFFIC = tuple(name for name in COUNTERS if name in MODELLED)
INSTRUCTIONS = tuple(name for name in COUNTERS if name not in TRAFFIC)
RUNS = (INSTRUCTIONS, TRAFFIC)
TRAFFIC_TIMES = 3  # that it is counted, for it differs from launch to launch
REGISTERS = "launch__registers_per_thread"
STATIC_SHARED = "launch__shared_mem_per_block_static"
DYNAMIC_SHARED = "launch__shared_mem_per_block_dynamic"
OF_LAUNCH = (REGISTERS, STATIC_SHARED, DYNAMIC_SHARED)

AS_RAW_CSV = ("--csv", "--page", "raw", "--print-units", "base")
_NO_PERMISSION = "ERR_NVGPUCTRPERM"
_IMPORT_PATIENCE_S = 120.0
_TIME_TO_STOP_S = 5.0
_MOST_WORDS = 240  # of a message of ncu's that is passed on

Size = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class ProfiledKernel:
    """One kernel that ncu profiled; `values` are those of its metrics that are known here.

    What was not counted is not among them. `compute_capability` is such as "9.0".
    """

    name: str
    grid: Size
    block: Size
    compute_capability: str
    values: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run of ncu ended: what it said, and what the program said that it ran."""

    log: str
    output: str
    returncode: int
    timed_out: bool

    @property
    def everything(self) -> str:
        return f"{self.log}\n{self.output}"


# The command.


def path() -> str | None:
    """Where ncu is: on PATH, in a CUDA toolkit, or where its own packages put it."""
    packaged = sorted(Path("/opt/nvidia/nsight-compute").glob("*"), reverse=True)
    return commands.command_path("ncu", *commands.cuda_folders(), *packaged)


def version(ncu: str) -> str:
    """Such as "2025.3.1.0"; raises as `commands.version_printed_by`."""
    return commands.version_printed_by(ncu, r"Version (\S+)")


def counting_options(counters: Iterable[str]) -> list[str]:
    """What ncu counts with: only what the program marks, caches flushed, clocks as they are."""
    metrics = ",".join((*counters, *OF_LAUNCH))
    return ["--clock-control", "none", "--profile-from-start", "off", "--metrics", metrics]


def run(
    command: Sequence[str],
    *,
    log: Path,
    on_line: Callable[[str], float],
    patience_s: float,
    environment: Mapping[str, str],
) -> Outcome:
    """Run ncu, which writes into `log`, to its end; the program's lines go to `on_line`.

    That says for how many seconds the next line may take, as `patience_s` does of the first; then
    ncu and what it started are stopped, as they are on Ctrl-C.
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
    return Outcome(
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


def imported(ncu: str, report: Path) -> str:
    """The raw page of a .ncu-rep as CSV; raises CountersError with what ncu says."""
    command = [ncu, "--import", str(report), *AS_RAW_CSV]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=_IMPORT_PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CountersError(f"{report}: ncu cannot be run on it: {error}") from error
    text = done.stdout + done.stderr
    if done.returncode or "==ERROR==" in text:
        raise CountersError(complaint_in(text) or f"ncu ended with {done.returncode}")
    return done.stdout


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
    """Whether ncu says that this user may not read counters."""
    return _NO_PERMISSION in text


def unknown_metrics(text: str, asked: Sequence[str]) -> list[str]:
    """Those of the metrics asked for that an error of ncu's names.

    ncu names them whole ("a__b.sum") or as a pattern ("regex:^a__b\\.(sum|min)$"). Where one
    error names all of them it only repeats its command line, and none is meant.
    """
    complaints = [
        line
        for line in text.splitlines()
        if line.startswith("==ERROR==") and "metric" in line.lower()
    ]
    words = set(re.findall(r"\w+(?:\.\w+)*", " ".join(complaints)))
    named = [name for name in asked if name in words or name.rpartition(".")[0] in words]
    return [] if len(named) == len(asked) else named


def kernels_in(text: str, where: str) -> tuple[ProfiledKernel, ...]:
    """The kernels in what ncu prints with --csv: its raw page, or the one with a line per metric.

    Other lines are passed over. Raises CountersError, beginning with `where`, for a table that is
    cut short, lacks what is needed or was rounded.
    """
    header, rows = _table(text, where)
    if not rows:
        return ()
    if "Metric Name" in header:
        return _from_lines(rows, where)
    return _from_raw_page(rows, where)


Row = dict[str, str]
_NAME, _GRID, _BLOCK, _CAPABILITY = _OF_KERNEL = ("Kernel Name", "Grid Size", "Block Size", "CC")


def _table(text: str, where: str) -> tuple[list[str], list[Row]]:
    lines = [line for line in text.splitlines() if line.startswith('"')]
    starts = [number for number, line in enumerate(lines) if line.startswith('"ID",')]
    if not starts:
        return [], []
    try:
        header, *rows = csv.reader(lines[starts[0] :], strict=True)
    except csv.Error as error:
        raise _cut_short(where, len(lines), str(error)) from None
    for column in _OF_KERNEL:
        if column not in header:
            raise CountersError(
                f"{where}: its table has no column {column!r}: print it with "
                f"ncu {' '.join(AS_RAW_CSV)}, of version 2022 or later"
            )
    # what follows the value is of rules, and left out where there are none
    needed = header.index("Metric Value") + 1 if "Metric Value" in header else len(header)
    for number, row in enumerate(rows, start=starts[0] + 2):
        if len(row) < needed:
            raise _cut_short(where, number, f"{len(row)} of {needed} columns")
    return header, [dict(zip(header, row, strict=False)) for row in rows if row != header]


def _cut_short(where: str, line: int, why: str) -> CountersError:
    return CountersError(
        f"{where}: line {line} of its table is cut short ({why}): print or copy it again"
    )


def _from_lines(rows: Sequence[Row], where: str) -> tuple[ProfiledKernel, ...]:
    grouped: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row.get("Process ID", ""), row["ID"]), []).append(row)
    groups = list(grouped.values())
    if _metrics_of(groups[-1]) != _metrics_of(groups[0]):
        raise _cut_short(where, len(rows) + 1, "the last kernel lacks metrics of the first")
    return tuple(
        _kernel(
            group[0],
            {row["Metric Name"]: (row["Metric Value"], row["Metric Unit"]) for row in group},
            where,
        )
        for group in groups
    )


def _metrics_of(rows: Sequence[Row]) -> set[str]:
    """The metrics of one kernel that every kernel has, or none has."""
    return {row["Metric Name"] for row in rows if _is_known(row["Metric Name"])}


def _is_known(metric: str) -> bool:
    return metric in ALL_COUNTERS or metric in OF_LAUNCH


def _from_raw_page(rows: Sequence[Row], where: str) -> tuple[ProfiledKernel, ...]:
    units: Row = {}
    kernels = []
    for row in rows:
        if not row["ID"]:
            units = row
        else:
            cells = {name: (value, units.get(name, "")) for name, value in row.items()}
            kernels.append(_kernel(row, cells, where))
    return tuple(kernels)


def _kernel(row: Row, cells: Mapping[str, tuple[str, str]], where: str) -> ProfiledKernel:
    values = {}
    for name, (value, unit) in cells.items():
        if _is_known(name):
            if re.fullmatch(r"[KMGT]i?[a-z]+(/\w+)?", unit):
                raise CountersError(
                    f"{where}: {name} is rounded, to {value} {unit}: print it with "
                    "--print-units base"
                )
            number = integer_in(value)
            if number is not None:
                values[name] = number
    return ProfiledKernel(
        name=row[_NAME],
        grid=_size(row[_GRID], where),
        block=_size(row[_BLOCK], where),
        compute_capability=row[_CAPABILITY],
        values=values,
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


def _size(text: str, where: str) -> Size:
    """A grid or block: "(16, 16, 1)"."""
    parts = text.strip("() ").split(", " if ", " in text else ",")
    numbers = [integer_in(part) for part in parts]
    if len(numbers) != 3 or None in numbers:
        raise CountersError(
            f"{where}: {shortened(text)!r} is no size of a grid or block: print it with "
            f"ncu {' '.join(AS_RAW_CSV)}"
        )
    x, y, z = (number or 0 for number in numbers)
    return x, y, z
