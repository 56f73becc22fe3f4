"""Tuned configurations: which parameters won on which device and shape, for a dispatcher.

They stand in two places of the same format: `tuned/KEY.json` in the package, one file per device
(KEY is the device's), and `tuned.json` in the user's data folder, which `tune` adds to and which
goes first. A file holds

    {"schema_version": 1, "entries": [{"device": "NVIDIA H200", "architecture": "sm_90", ...}]}

with one entry per device, shape and variant. To ship the user's entries of a device:

    python -m toolkit.tuned h200
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from analysis.devices import Device, find_device
from analysis.errors import InputError, RecordError, ToolkitError
from analysis.problem import Gemm, parse_shape
from analysis.records.profile import Interval
from kernels.selection import Selection, find
from kernels.variant import Variant
from toolkit.store.profile_json import check_numbers, first_problem, read_text
from toolkit.store.user_files import only_writer, users_folder, write_atomically

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FOLDER = Path(str(files("toolkit").joinpath("tuned")))

# Octaves in M, N or K, whichever is furthest, beyond which a shape is no neighbour. Grids of half
# the blocks still choose alike where they fill the device; further off, what wins is another tile,
# and a rule serves better: 512 x 512 x 4096 by it has 1.05 times the speed of cuBLAS on an H200, by
# what won at 1536, 0.80 times.
FARTHEST_OCTAVES = 1.0

_REMEDY = ": tune again, or remove it"  # of a damaged file


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """A configuration that won: where, against what, and when.

    `ratio_to_cublas` is its speed over cuBLAS's (above 1, faster) and `interval` the 95% interval
    of that, both None where there was no cuBLAS; `time_s` is the median of a launch. `tied_with`
    are the parameters of the others that the samples could not tell from it.
    """

    device: str
    architecture: str
    shape: str
    variant: str
    parameters: dict[str, int]
    time_s: float
    ratio_to_cublas: float | None
    interval: Interval | None
    tied_with: tuple[dict[str, int], ...]
    date: str
    toolkit_version: str
    commit: str | None

    @property
    def problem(self) -> Gemm:
        return parse_shape(self.shape)

    @property
    def key(self) -> tuple[str, str, str]:
        """Key of an entry. A newer entry replaces an older one with the same key."""
        return self.device, self.shape, self.variant


@dataclass(frozen=True, kw_only=True)
class TunedFile:
    """Contents of a file of tuned configurations."""

    schema_version: Literal[1]
    entries: tuple[Tuned, ...]


def tuned_for(device: Device, shape: Gemm) -> Tuned | None:
    """The entry to go by at a shape, None where nothing near it was tuned.

    Entries of the same device go before those of another one of its architecture; among these the
    nearest shape (`octaves`), among those of one shape the fastest against cuBLAS, and the user's
    own before the package's. Raises RecordError for a file that is damaged.
    """
    user, shipped = _of_user(), _shipped()
    for entries in (
        [one for one in (*user, *shipped) if one.device == device.name],
        [one for one in (*user, *shipped) if one.architecture == device.sm_arch],
    ):
        near = [one for one in entries if octaves(one.problem, shape) <= FARTHEST_OCTAVES]
        if near:
            return min(near, key=lambda one: _order(one, shape))
    return None


def octaves(one: Gemm, other: Gemm) -> float:
    """Distance of two shapes: the largest number of doublings among M, N and K."""
    pairs = ((one.m, other.m), (one.n, other.n), (one.k, other.k))
    return max(abs(log2(a / b)) for a, b in pairs)


def selection_of(entry: Tuned) -> Selection:
    """The rung with the parameters of an entry; raises RecordError where they are not legal."""
    try:
        variant = find(entry.variant)
        if not isinstance(variant, Variant):
            raise InputError(f"{entry.variant} is not a rung")
        return Selection(variant=variant, parameters=variant.resolve(entry.parameters))
    except InputError as error:
        raise RecordError(
            f"tuned configuration of {entry.variant} at {entry.shape} on {entry.device}: {error}: "
            f"tune it again: python -m toolkit tune {entry.variant} --shape {entry.shape}"
        ) from None


def keep(entries: Iterable[Tuned]) -> Path:
    """Add entries to the user's file, in place of older ones of their places; its path.

    Raises RecordError for a damaged file, InputError where it cannot be written.
    """
    path = user_file()
    with suppress(OSError):  # `_write` says why
        path.parent.mkdir(parents=True, exist_ok=True)
    with only_writer(path):  # another run may add entries at the same time
        return _write(path, [*read(path), *entries])


def read(path: Path) -> tuple[Tuned, ...]:
    """The entries of a file, none where there is no such file; raises RecordError."""
    from pydantic import ValidationError

    if not path.exists():
        return ()
    text = read_text(path)
    try:
        entries = _adapter().validate_json(text, strict=True).entries
        check_numbers(json.loads(text), str(path), remedy=_REMEDY)
        for entry in entries:
            entry.problem  # noqa: B018  (raises for a shape that is none)
    except ValidationError as error:
        raise RecordError(f"{path}: {first_problem(error)}{_REMEDY}") from error
    except RecordError:
        raise
    except ToolkitError as error:
        raise RecordError(f"{path}: {error}") from error
    return entries


def user_file() -> Path:
    """Path where `tune` keeps its results: in $GEMM_LADDER_DATA, or the user's data folder.

    Raises InputError for a user without a home.
    """
    if chosen := os.environ.get("GEMM_LADDER_DATA"):
        return Path(chosen) / "tuned.json"
    return users_folder("XDG_DATA_HOME", "~/.local/share") / "tuned.json"


def ship(device_key: str) -> Path:
    """Put the user's entries of a device among the shipped ones; the path of their file.

    Raises InputError where there are none.
    """
    device = find_device(device_key)
    entries = [one for one in read(user_file()) if one.device == device.name]
    if not entries:
        raise InputError(
            f"{user_file()} has no entry of {device.name}: run python -m toolkit tune there first"
        )
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{device.key}.json"
    return _write(path, [*read(path), *entries])


def _of_user() -> tuple[Tuned, ...]:
    """The user's own entries; none of a user without a home."""
    try:
        path = user_file()
    except InputError:
        return ()
    return read(path)


def _order(entry: Tuned, shape: Gemm) -> tuple[float, float]:
    return octaves(entry.problem, shape), -(entry.ratio_to_cublas or 0.0)


def _shipped() -> tuple[Tuned, ...]:
    return tuple(entry for path in sorted(FOLDER.glob("*.json")) for entry in read(path))


def _write(path: Path, entries: Sequence[Tuned]) -> Path:
    newest = {entry.key: entry for entry in entries}
    document = asdict(TunedFile(schema_version=1, entries=tuple(newest.values())))
    write_atomically(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return path


@cache
def _adapter() -> TypeAdapter[TunedFile]:
    from pydantic import TypeAdapter

    return TypeAdapter(TunedFile)


def main() -> None:
    """Ship the entries of the device that is named on the command line."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m toolkit.tuned DEVICE")
    try:
        print(f"wrote {ship(sys.argv[1])}")
    except ToolkitError as error:
        sys.exit(f"error: {error}")
