"""Runs on real GPUs that ship with the package, for readers who have no such GPU."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.result import Profile


def recorded_run(device_key: str) -> Profile | None:
    """The shipped profile that was measured on the device of that key, None where none was."""
    from toolkit.store import load

    path = Path(str(files("toolkit").joinpath("recorded", f"{device_key}.json")))
    return load(path) if path.is_file() else None
