"""Hardware counters that were gathered elsewhere: a report of Nsight Compute, or a CSV it printed.

The launches in it must be those of the plan, made by the script that `profile --counters` names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.devices import Device
from analysis.errors import CountersError
from analysis.records.profile import Counted, Record
from kernels.ladder import CPU, CUBLAS
from kernels.variant import Variant
from toolkit.gpu.nsight_compute import ncu
from toolkit.gpu.nsight_compute.attribution import (
    MARKER,
    CountableLaunch,
    by_marker,
    counted,
)
from toolkit.launch.progress import Progress
from toolkit.profiling.plan import Plan
from toolkit.profiling.record import planned, with_counted
from toolkit.store.user_files import read_file

_REPORT_MAGIC = b"NVR\0"
_VERSION = re.compile(rb"\b(20\d\d\.\d+\.\d+)[.\d]* \(build \d+\)")
_MAKE_IT = "make it with the command that `profile --counters` names"


@dataclass(frozen=True, kw_only=True)
class CountersFile:
    """The kernels of a file; `name` without its folder, `profiler` with its version if known."""

    name: str
    profiler: str
    kernels: tuple[ncu.ProfiledKernel, ...]

    @property
    def source(self) -> str:
        return f"{self.profiler}, from {self.name}"


def read_counters(path: str | Path) -> CountersFile:
    """What a .ncu-rep or a CSV holds.

    Raises CountersError for a file that is absent, cut short, foreign, or empty.
    """
    path = Path(path)
    content = _content(path)
    is_report = content.startswith(_REPORT_MAGIC) or path.suffix == ".ncu-rep"
    text = _imported(path, content) if is_report else _decoded(path, content)
    kernels = ncu.kernels_in(text, str(path))
    if not kernels:
        raise CountersError(f"{path}: no launch was counted in it: {_MAKE_IT}")
    if not by_marker(kernels):
        raise CountersError(
            f"{path}: it does not say which variants its {len(kernels)} kernels are of "
            f"({kernels[0].name} ...): {_MAKE_IT}"
        )
    version = _version_in(content)
    return CountersFile(
        name=path.name,
        profiler=f"Nsight Compute {version}" if version else "Nsight Compute",
        kernels=kernels,
    )


def _content(path: Path) -> bytes:
    try:
        return read_file(path)
    except FileNotFoundError as error:
        raise CountersError(f"{path}: there is no such file") from error
    except (OSError, ValueError) as error:
        raise CountersError(
            f"{path}: it cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error


def _decoded(path: Path, content: bytes) -> str:
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise CountersError(
            f"{path}: byte {error.start} is no text: give a .ncu-rep or a CSV of ncu's"
        ) from error


def _imported(path: Path, content: bytes) -> str:
    """The report as CSV, through the ncu that is here."""
    elsewhere = f"ncu --import {path.name} {' '.join(ncu.AS_RAW_CSV)} > counters.csv"
    here = ncu.path()
    if here is None:
        raise CountersError(
            f"{path}: there is no ncu here to read it: where there is one, run: {elsewhere}"
        )
    try:
        return ncu.imported(here, path)
    except CountersError as error:
        wrote = _version_in(content)
        by = (
            f"written by Nsight Compute {wrote}"
            if wrote
            else "cut short, or written by another version"
        )
        raise CountersError(
            f"{path}: the ncu that is here cannot read it ({error}); it is {by}: copy it again, "
            f"or, where the ncu is that wrote it, run: {elsewhere}"
        ) from None


def _version_in(content: bytes) -> str:
    """The version of the ncu that wrote a report, where it says so."""
    match = _VERSION.search(content)
    return match[1].decode() if match else ""


class CountersOfPlan:
    """What a file counted of each launch of a plan.

    Raises CountersError where the file is of another GPU, lacks a rung's launch, or has another.
    """

    def __init__(
        self, file: CountersFile, plan: Plan, device: Device, progress: Progress | None = None
    ) -> None:
        self._file = file
        self._groups = by_marker(file.kernels)
        _check_device(file, device)
        launches = _launches(plan, device)
        self._check_all_there(launches)
        self._found = {
            launch.marker: self._counted(launch)
            for launch in launches
            if launch.marker in self._groups
        }
        others = sorted(self._groups.keys() - self._found.keys())
        if others and progress is not None:
            progress.notice(
                f"{file.name}: {len(others)} launches are not of this plan: "
                f"{', '.join(name.removeprefix(MARKER) for name in others[:3])}"
                f"{' ...' if len(others) > 3 else ''}"
            )

    def added_to(self, record: Record) -> Record:
        """The record with its counters, where the file has them."""
        found = self._found.get(CountableLaunch(record, None).marker)
        if found is None or record.status == "failed":
            return record
        return with_counted(record, found)

    def _check_all_there(self, launches: Sequence[CountableLaunch]) -> None:
        missing = [
            launch for launch in launches if launch.entry and launch.marker not in self._groups
        ]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise CountersError(
                f"{self._file.name}: it has no launch of {missing[0]}{more}: name the shapes and "
                "variants that were counted, or count these too"
            )

    def _counted(self, launch: CountableLaunch) -> Counted:
        kernels = self._groups[launch.marker]
        try:
            return counted(launch, kernels, asked=ncu.COUNTERS, source=self._file.source)
        except CountersError as error:
            raise CountersError(f"{self._file.name}: {error}: {_MAKE_IT}") from None


def _check_device(file: CountersFile, device: Device) -> None:
    major, minor = device.compute_capability
    for kernel in file.kernels:
        if kernel.compute_capability != f"{major}.{minor}":
            raise CountersError(
                f"{file.name}: it was counted on compute capability {kernel.compute_capability}, "
                f"and this profile is for {device.name}, {major}.{minor}: name the device that "
                "counted with --device"
            )


def _launches(plan: Plan, device: Device) -> list[CountableLaunch]:
    """The launches of a plan that a GPU would count."""
    launches = []
    for shape in plan.shapes:
        for selection in plan.at(shape, device).selections:
            record = planned(selection, shape, device)
            if record.status == "ok" and selection.variant is not CPU:
                variant = selection.variant
                entry = variant.entry if isinstance(variant, Variant) else None
                assert entry or variant is CUBLAS
                launches.append(CountableLaunch(record, entry))
    return launches
