"""Times measured by sweeps: a journal for each rung, shape and GPU, with the software versions.

A cache of another GPU, driver, compiler or kernel is set aside, never reused and never deleted.
Only times are kept, and failures of the final. A configuration that failed in a sweep is tried
again.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

from analysis.errors import InputError, RecordError
from analysis.records.profile import Profile, Record
from toolkit.profiling.resume import Records, differences, stands
from toolkit.store.journal import Journal
from toolkit.store.profile_json import JOURNAL_SUFFIX, load


class SweepCache:
    """The cache of one rung at one shape; `empty` is a profile of the GPU and its software."""

    def __init__(self, path: Path, empty: Profile) -> None:
        self.path = path
        self.records = Records(self._keep)
        self._empty = empty
        self._journal = Journal(path, empty)

    def open(self) -> str | None:
        """Read the results of an earlier sweep; a notice if they were set aside, else None.

        Raises InputError if the folder cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot write {self.path.parent}: {error.strerror or error}: give a place that "
                "can be written"
            ) from None
        if not self.path.exists():
            return None
        try:
            before = load(self.path)
            for what, old, new in differences(before, self._empty):
                return self._set_aside(f"{what} was {old}, now it is {new}")
        except RecordError as error:
            return self._set_aside(str(error).removeprefix(f"{self.path}: "))
        self.records.update({(one.shape, one.label): one for one in before.records})
        self._journal.add(before.records, {}, {})
        return None

    def fail(self, failed: Record) -> None:
        """Remember one that failed after it was timed."""
        self.records[failed.shape, failed.label] = failed
        self._journal.add([failed], {}, {})

    def _keep(self, record: Record) -> None:
        if is_timed(record):
            self._journal.add([record], {}, {})

    def _set_aside(self, reason: str) -> str:
        aside = next(
            path
            for number in count(1)
            if not (path := self.path.with_suffix(f".aside-{number}{JOURNAL_SUFFIX}")).exists()
        )
        self.path.rename(aside)
        return f"the cache {self.path} was set aside as {aside.name}: {reason}"


def is_timed(record: Record) -> bool:
    """True if a configuration has all its samples."""
    return record.status == "ok" and stands(record, "gpu")
