"""Two saved files beside each other: profiles, or launches."""

from __future__ import annotations

from pathlib import Path

from analysis.comparison.runs import RunComparison, compare, compare_launches
from analysis.errors import InputError
from toolkit.store.profile_json import holds_launch, load, load_launch
from toolkit.store.user_files import same_file


def compare_files(before: Path, after: Path) -> RunComparison:
    """Differences between two profiles, or between two of `simulate --json` or `run --json`.

    Raises InputError for one file twice, or one of each kind; RecordError for a damaged file.
    """
    if same_file(before, after):
        raise InputError(f"{before} and {after} are one file: give two profiles or launches")
    launches = [path for path in (before, after) if holds_launch(path)]
    if len(launches) == 2:
        return compare_launches(load_launch(before), load_launch(after))
    profiles = [load(path) for path in (before, after) if path not in launches]
    if launches:
        raise InputError(
            f"only {launches[0]} is of `simulate --json` or `run --json`: give two of a kind"
        )
    return compare(*profiles)
