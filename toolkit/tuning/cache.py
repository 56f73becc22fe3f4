"""What sweeps have measured: Kernel Tuner's cache files, and beside each what it was measured with.

A cache of another GPU, driver, compiler or kernel is set aside, never reused and never deleted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from analysis.errors import InputError
from kernels.variant import Variant
from toolkit.store.user_files import write_atomically
from toolkit.tuning.request import key_of

_CLOSED = "}\n}"  # how Kernel Tuner ends a cache that it has finished; one cut short lacks it

Identity = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known of one configuration: its samples, or why there are none."""

    samples_s: tuple[float, ...] = ()
    failure: str | None = None


class SweepCache:
    """The cache of one rung at one shape, opened for one GPU with its software."""

    def __init__(self, path: Path, rung: Variant, identity: Identity) -> None:
        self.path = path
        self._about = path.with_suffix(".about.json")
        self._rung = rung
        self._identity = dict(identity)
        self._failures: dict[str, str] = {}

    def open(self) -> str | None:
        """Make the file ready for Kernel Tuner; says so where an earlier one was set aside.

        Raises InputError where the folder cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot write {self.path.parent}: {error.strerror or error}"
            ) from None
        notice = None
        if self.path.exists() or self._about.exists():
            reason = self._foreign() or self._repaired()
            notice = self._set_aside(reason) if reason else None
        self._save()
        return notice

    def known(self) -> dict[str, Known]:
        """What is known of each configuration, by its key."""
        found = {key: Known(failure=reason) for key, reason in self._failures.items()}
        for entry in self._entries().values():
            own = {name: int(entry[name]) for name in self._rung.parameters}
            key = key_of(own)
            found[key] = _known(entry, self._failures.get(key))
        return found

    def fail(self, key: str, reason: str) -> None:
        """Remember why a configuration has no time."""
        self._failures[key] = reason
        self._save()

    def _entries(self) -> dict[str, Any]:
        document = _parsed(_read(self.path)) if self.path.exists() else None
        return document["cache"] if document else {}

    def _save(self) -> None:
        about = {"measured_with": self._identity, "failures": self._failures}
        write_atomically(self._about, json.dumps(about, indent=1, ensure_ascii=False) + "\n")

    def _foreign(self) -> str | None:
        """Why the file is not of this machine and kernel, None where it is."""
        try:
            about = json.loads(_read(self._about))
            theirs, failures = about["measured_with"], about["failures"]
        except (OSError, ValueError, KeyError, TypeError):
            return f"it does not say what it was measured with (no {self._about.name})"
        for name in dict.fromkeys([*self._identity, *theirs]):
            then, now = theirs.get(name), self._identity.get(name)
            if then != now:
                return f"it was measured with another {name}: {then}, this is {now}"
        self._failures = dict(failures)
        return None

    def _repaired(self) -> str | None:
        """Drop a last line that was cut short; says why where the rest is no cache either."""
        if not self.path.exists():  # nothing was measured: all that began has failed
            return None
        text = _read(self.path)
        if _parsed(text) is not None:
            return None
        whole = text.rstrip().rpartition("\n")[0]
        if _parsed(whole) is None:
            return "it is damaged"
        write_atomically(self.path, whole)
        return None

    def _set_aside(self, reason: str) -> str:
        aside = next(
            path
            for number in count(1)
            if not (path := self.path.with_suffix(f".aside-{number}.json")).exists()
        )
        for ours, theirs in ((self.path, aside), (self._about, aside.with_suffix(".about.json"))):
            with suppress(FileNotFoundError):
                ours.rename(theirs)
        return f"the cache {self.path} was set aside as {aside.name}: {reason}"


def _known(entry: Mapping[str, Any], failure: str | None) -> Known:
    """Of one of Kernel Tuner's entries; its times are milliseconds."""
    if failure is not None or "__error__" in entry:  # it may have failed later, in a final
        return Known(failure=failure or f"Kernel Tuner: {entry['__error__']}")
    return Known(samples_s=tuple(time_ms / 1e3 for time_ms in entry["times"]))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _parsed(text: str) -> dict[str, Any] | None:
    """A cache that may end after any of its entries, None where it ends within one."""
    text = text.strip()
    for ending in ("", _CLOSED):
        with suppress(ValueError):
            document = json.loads(text.removesuffix(",") + ending)
            if isinstance(document, dict) and isinstance(document.get("cache"), dict):
                return document
    return None
