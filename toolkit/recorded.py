"""Runs on real GPUs that ship with the package, for readers who have no such GPU.

Each is a profile.json, compressed: recorded/KEY.json.xz, KEY being the device's. To ship one:

    python -m toolkit.recorded profile.json
"""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.errors import InputError, RecordError, ToolkitError

if TYPE_CHECKING:
    from analysis.result import Profile

FOLDER = Path(str(files("toolkit").joinpath("recorded")))


def recorded_run(device_key: str) -> Profile | None:
    """The shipped profile that was measured on the device of that key, None where none was.

    Raises RecordError where it is damaged.
    """
    from toolkit.store import load

    path = _path(device_key)
    if not path.is_file():
        return None
    try:
        return load(path)
    except RecordError as error:
        raise RecordError(f"{error}; it came with the package: install that again") from error


def ship(source: Path) -> Path:
    """Put a profile among the shipped ones, in place of an earlier one of its device; its path.

    The same profile gives the same bytes. Raises RecordError for a file that is no profile,
    InputError for a run that was not finished on a GPU.
    """
    from toolkit.store import compressed, load, write_atomically

    run = load(source)
    if run.executor != "gpu" or run.status != "complete":
        raise InputError(
            f"{source}: a {run.status} run of executor {run.executor}: "
            "give a complete one of executor gpu"
        )
    path = _path(run.device.key)
    write_atomically(path, compressed(run))
    return path


def _path(device_key: str) -> Path:
    return FOLDER / f"{device_key}.json.xz"


def main() -> None:
    """Ship the profile that is named on the command line."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m toolkit.recorded PROFILE.json")
    try:
        print(f"wrote {ship(Path(sys.argv[1]))}")
    except ToolkitError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
