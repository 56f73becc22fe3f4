"""All exceptions that this project raises.

ToolkitError                  one line: what, where, the value, the remedy
├── InputError                a value that the caller gave cannot be used
│   ├── UnknownNameError      no such device, variant, parameter ... (suggests the nearest)
│   ├── ShapeError            a matrix shape that is malformed or that a rung cannot take
│   ├── RecordError           a profile.json that is broken, foreign or from a newer version
│   ├── CountersError         hardware counters that are broken, or of other launches
│   └── OutOfMemoryError      the GPU has no memory left for what a launch needs
├── UnavailableError          something missing on this machine: a GPU, a compiler, a package
├── CompileError              a kernel that does not compile; carries the compiler's log
├── UnsupportedError          machine code that the simulator does not support
└── LaunchError               a kernel that compiled and then failed to launch or to run

The library raises; only the command line turns these into text and exit codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

# What to do without the native libraries, in a checkout as in an installed package.
REBUILD = "run `pip install ziglang`, unless there is gcc or clang, and `python -m toolkit.native`"


class ToolkitError(Exception):
    """A failure that the user can act on; `str(error)` is one line."""


class InputError(ToolkitError):
    """A value that the caller gave cannot be used."""


class UnknownNameError(InputError):
    """A name that is not in a known set.

    >>> str(UnknownNameError("device", "rtx-309", ["rtx-3090", "t4"]))
    "unknown device 'rtx-309': did you mean 'rtx-3090'? (known: rtx-3090, t4)"
    """

    def __init__(
        self, kind: str, name: str, known: Iterable[str], *, others: str | None = None
    ) -> None:
        """`others`: text beside a suggestion that says which other names there are."""
        known = list(known)
        nearest = _nearest(name, known)
        all_of_them = ", ".join(known)
        if others is None and len(known) <= MOST_KNOWN:
            others = f"known: {all_of_them}"
        if nearest:
            remedy = f"did you mean {' or '.join(map(repr, nearest))}?"
            remedy += f" ({others})" if others else ""
        elif len(known) > 1:
            remedy = f"choose one of {all_of_them}"
        else:
            remedy = f"the only one is {all_of_them!r}"
        super().__init__(f"unknown {kind} {shortened(name)!r}: {remedy}")

    def __reduce__(self) -> tuple[type[InputError], tuple[object, ...]]:
        return InputError, self.args


class OutOfMemoryError(InputError):
    """The GPU has too little free memory for a launch. Other programs may hold it."""


class ShapeError(InputError):
    """A matrix shape that is malformed, too large, or not taken by a rung."""


class RecordError(InputError):
    """A stored profile that cannot be read."""


class CountersError(InputError):
    """Hardware counters that cannot be read, or that are of other launches."""


class UnavailableError(ToolkitError):
    """Something missing on this machine; the message names the remedy."""


class CompileError(ToolkitError):
    """A kernel that does not compile.

    `log` is the compiler's whole output; the message carries its first error.
    """

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class UnsupportedError(ToolkitError):
    """Machine code that the simulator does not support: it stops and does not guess."""


class LaunchError(ToolkitError):
    """A kernel that compiled and then failed to launch or to run.

    `printed` is what it printed (printf) before it failed in a simulation.
    """

    printed: str = ""


def first_line(error: BaseException) -> str:
    """The first line of another library's message, or the error's type if it is empty.

    >>> first_line(OSError("no such device\\nstack: ..."))
    'no such device'
    """
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def shortened(text: str, most: int = 60) -> str:
    """`text`, shortened to fit a one-line message.

    >>> shortened("9" * 100, most=5)
    '99999…'
    """
    return text if len(text) <= most else text[:most] + "…"


LEAST_LIKENESS = 0.6  # similarity below which a name is not suggested
MOST_NAMED = 3  # suggestions in a message
MOST_KNOWN = 6  # names that are listed beside a suggestion without being asked


def _nearest(name: str, known: list[str]) -> list[str]:
    """Known names that contain all words of `name`, else those with the most similar beginning."""
    name = name.lower()
    words = name.replace("_", " ").replace("-", " ").split()
    holding = [candidate for candidate in known if all(word in candidate for word in words)]
    if not words:
        return []
    if 0 < len(holding) <= MOST_NAMED:
        return holding
    likeness = {candidate: _likeness(name, candidate) for candidate in known}
    most = max(likeness.values(), default=(0.0, 0))
    nearest = [candidate for candidate in known if likeness[candidate] == most]
    return nearest[:MOST_NAMED] if most[0] >= LEAST_LIKENESS else []


def _likeness(name: str, candidate: str) -> tuple[float, int]:
    """Similarity of a name to a candidate or its beginning; length of their common prefix."""
    alike = (SequenceMatcher(None, name, part) for part in (candidate, candidate[: len(name)]))
    differs = (
        k for k, letters in enumerate(zip(name, candidate, strict=False)) if len({*letters}) > 1
    )
    return max(one.ratio() for one in alike), next(differs, min(len(name), len(candidate)))
