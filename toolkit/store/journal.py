"""The journal of a run of `profile`: each record once, as soon as it is done.

While a run fills `profile.json`, its journal is `profile.json.journal` beside it, JSON Lines in
ASCII. The first line is the profile with no records. Each line after it holds what was added:

    {"records": [...], "listings": [...], "conditions": [...]}

A later record replaces an earlier one of the same variant and shape. A last line without its end is
ignored: the process was killed, or the disk was full, while it was written. The journal begins with
the first result and is removed when `profile.json` is written; `profile --resume` goes on from it,
and `report` and `load` read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from analysis.errors import InputError
from analysis.problem import Gemm
from analysis.records.profile import Conditions, Listing, Profile, Record
from toolkit.store.profile_json import JOURNAL_PARTS, JOURNAL_SUFFIX, check_numbers, load, profiles
from toolkit.store.user_files import write_atomically

T = TypeVar("T")


def journal_of(record: str | Path) -> Path:
    """Path of the journal of a run that fills `record`."""
    return Path(f"{record}{JOURNAL_SUFFIX}")


def unfinished(record: str | Path) -> Profile:
    """Results of an unfinished run that was to fill `record`: its journal, else the record itself.

    Raises RecordError if there is neither, or if it is damaged.
    """
    journal = journal_of(record)
    return load(journal if journal.exists() else record)


class Journal:
    """Writes the journal of one run; `empty` is its profile with nothing done."""

    def __init__(self, path: str | Path, empty: Profile) -> None:
        self._path, self._empty = Path(path), empty
        self._told: dict[object, object] = {}  # the listings and conditions that are in it
        self._begun = False

    def add(
        self,
        records: Iterable[Record],
        listings: Mapping[str, Listing],
        conditions: Mapping[Gemm, Conditions],
    ) -> None:
        """Append records, and the new parts of the rest.

        The first call replaces an older journal, in one step. Raises InputError where the file
        cannot be written, RecordError for a number that could not be read back.
        """
        added = replace(
            self._empty,
            records=tuple(records),
            listings=self._new(listings),
            conditions=self._new(conditions),
        )
        document = profiles().dump_python(added)  # much faster than asdict
        document = {name: document[name] for name in JOURNAL_PARTS}
        check_numbers(document, f"{self._path}: a record cannot be kept", remedy="")
        if self._begun:
            self._append(_line(document))
        else:
            write_atomically(
                self._path, _line(profiles().dump_python(self._empty)) + _line(document)
            )
            self._begun = True

    def _new(self, parts: Mapping[Any, T]) -> tuple[T, ...]:
        """Parts that are not in the journal yet."""
        new = {key: one for key, one in parts.items() if self._told.get(key) != one}
        self._told |= new
        return tuple(new.values())

    def _append(self, line: str) -> None:
        try:
            with self._path.open("ab") as file:
                file.write(line.encode())
        except OSError as error:
            raise InputError(
                f"cannot write {self._path}: {error.strerror or error}: the records before are "
                "kept; make room, and repeat the command with --resume"
            ) from error


def _line(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":")) + "\n"
