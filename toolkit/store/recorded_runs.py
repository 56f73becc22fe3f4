"""Runs on real GPUs that ship with the package, for readers who have no such GPU.

Each device has two compressed files. recorded/KEY.json.xz holds what was measured and changes only
with a new measurement. recorded/KEY.model.json.xz holds what the simulator and the model say about
the same launches; `python -m benchmarks.resimulate KEY` writes it again. To ship a run, or to
replace some variants by a later run:

    python -m toolkit.recorded profile.json
    python -m toolkit.recorded profile.json VARIANT...
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.errors import InputError, RecordError, ToolkitError
from toolkit.store.profile_json import compressed, load, profiles, read_text
from toolkit.store.user_files import write_atomically

if TYPE_CHECKING:
    from analysis.records.profile import Profile, Record

FOLDER = Path(str(files("toolkit").joinpath("recorded")))
_MODEL = ".model"


def recorded_run(device_key: str) -> Profile | None:
    """The shipped profile that was measured on the device of that key, None where none was.

    Raises RecordError where it is damaged.
    """
    with _says_where_it_came_from():
        measured = _measured_part(device_key)
        return measured and _joined(measured, _shipped(_path(device_key, _MODEL)))


def _measured_part(device_key: str) -> Profile | None:
    path = _path(device_key)
    return _shipped(path) if path.is_file() else None


@contextmanager
def _says_where_it_came_from() -> Iterator[None]:
    try:
        yield
    except RecordError as error:
        raise RecordError(f"{error}; it came with the package: install that again") from error


def _shipped(path: Path) -> Profile:
    """The profile in a shipped file; each call gives another one, which its caller may change."""
    status = path.stat()
    found: Profile = pickle.loads(_read(path, status.st_mtime_ns, status.st_size))
    return found


@lru_cache(maxsize=4)  # both parts of two runs: a notebook shows one profile after another
def _read(path: Path, modified_ns: int, size_bytes: int) -> bytes:
    """Profile in a file as it was then, pickled, which is read in a third of the time of JSON.

    Its numbers were checked when it was written.
    """
    from pydantic import ValidationError

    try:
        found = profiles().validate_json(read_text(path), strict=True)
    except (ValidationError, ToolkitError):
        found = load(path)  # which says what is wrong
    return pickle.dumps(found)


def run_beside(profile: Profile) -> Profile | None:
    """The shipped run to show beside a profile without measured times of its own, if there is one.

    It is its measured part: the profile has predictions of its own, and the model's part takes six
    times as long to read. Raises RecordError where it is damaged.
    """
    if profile.executor == "gpu":
        return None
    with _says_where_it_came_from():
        return _measured_part(profile.device.key)


def ship(source: Path) -> Path:
    """Put a profile among the shipped ones, in place of an earlier one of its device; its path.

    The same profile gives the same bytes. Raises RecordError for a file that is no profile,
    InputError for a run that was not finished on a GPU.
    """
    run = load(source)
    if run.executor != "gpu" or run.status != "complete":
        raise InputError(
            f"{source}: a {run.status} run of executor {run.executor}: "
            "give a complete one of executor gpu"
        )
    return _write(run)


def ship_model(run: Profile) -> Path:
    """Replace what is shipped of the simulator's and the model's part of a run; its path."""
    return _write_part(_of_model(run), _MODEL)


def _write(run: Profile) -> Path:
    ship_model(run)
    return _write_part(_of_hardware(run))


def _write_part(run: Profile, part: str = "") -> Path:
    path = _path(run.device.key, part)
    write_atomically(path, compressed(run))
    return path


def _of_hardware(run: Profile) -> Profile:
    """Measured and compiled part of a run, without the model's part."""
    records = (
        replace(
            record,
            simulated=None,
            predicted=None,
            scores=(),
            notes=tuple(note for note in record.notes if not _is_of_model(note)),
        )
        for record in run.records
    )
    return replace(run, records=tuple(records), listings=())


def _of_model(run: Profile) -> Profile:
    """Simulated and predicted part of a run, without measurements."""
    records = (
        replace(
            record,
            theory=None,
            measured=None,
            counted=None,
            check=None,
            notes=tuple(filter(_is_of_model, record.notes)),
        )
        for record in run.records
    )
    return replace(run, records=tuple(records), conditions=())


def _is_of_model(note: str) -> bool:
    return note.startswith(("not simulated: ", "not predicted: "))


def _joined(hardware: Profile, model: Profile) -> Profile:
    """A run of both parts. Raises RecordError where they are not of the same launches."""
    parts = {(record.shape, record.label): record for record in model.records}
    if parts.keys() != {(record.shape, record.label) for record in hardware.records}:
        raise RecordError(
            f"{_path(model.device.key, _MODEL)}: it is of other launches than the run"
        )
    records = []
    for record in hardware.records:
        part = parts[record.shape, record.label]
        records.append(
            replace(
                record,
                simulated=part.simulated,
                predicted=part.predicted,
                scores=part.scores,
                notes=(*record.notes, *part.notes),
            )
        )
    return replace(hardware, records=tuple(records), listings=model.listings)


def amend(source: Path, labels: Collection[str]) -> Path:
    """Take the records of some variants from a later run on the device of a shipped one; its path.

    Every record of these that is shipped goes, as it is of code that has changed; those that the
    later run measured come, and say when. All else of the shipped run stays. Raises RecordError for
    a file that is no profile, InputError where one of the variants was not measured, or no run of
    the device is shipped.
    """
    later = load(source)
    shipped = recorded_run(later.device.key)
    if shipped is None or later.executor != "gpu":
        raise InputError(f"{source}: no run of a GPU of its kind is shipped: ship a complete one")
    shapes = {record.shape for record in shipped.records}
    measured = [
        record.noted(f"measured on {later.created[:10]}, after the others")
        for record in later.records
        if record.label in labels and record.measured and record.shape in shapes
    ]
    if missing := set(labels) - {record.label for record in measured}:
        raise InputError(f"{source}: {', '.join(sorted(missing))} not measured at a shipped shape")
    kept = [record for record in shipped.records if record.label not in labels]
    names = {record.simulated.listing for record in measured if record.simulated}
    amended = replace(
        shipped,
        records=tuple(
            record
            for shape in dict.fromkeys(record.shape for record in shipped.records)
            for record in sorted((*kept, *measured), key=_place)
            if record.shape == shape
        ),
        listings=(
            *(one for one in shipped.listings if one.label not in names),
            *(one for one in later.listings if one.label in names),
        ),
    )
    return _write(amended)


def _place(record: Record) -> tuple[bool, int]:
    """Rungs in their order, then all else as it stands."""
    return record.rung is None, record.rung or 0


def _path(device_key: str, part: str = "") -> Path:
    return FOLDER / f"{device_key}{part}.json.xz"


def main() -> None:
    """Ship the profile that is named on the command line, or what it has of some variants."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m toolkit.recorded PROFILE.json [VARIANT...]")
    source, labels = Path(sys.argv[1]), sys.argv[2:]
    try:
        print(f"wrote {amend(source, labels) if labels else ship(source)}")
    except ToolkitError as error:
        sys.exit(f"error: {error}")
