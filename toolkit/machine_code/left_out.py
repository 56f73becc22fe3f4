"""Parts of a source with host code that were not compiled, and the line that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

NOT_FOUND = "not found"  # reason of an include that may have code of the device


class ItemKind(Enum):
    """Kind of an item of a source; the value is its name in messages."""

    FUNCTION = "function"
    VARIABLE = "variable"
    INCLUDE = "include"
    TYPE = "type"
    MACRO = "directive"
    OTHER = "other declaration"


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """One item that was not compiled. `reason`: why, if it is not plainly of the host."""

    kind: ItemKind
    name: str
    file: str
    line: int
    reason: str = ""

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{self.file}, line {self.line}: {self.kind.value} {self.name}{why}"


def summary(left_out: Sequence[LeftOut]) -> tuple[str, ...]:
    """One sentence with the number of items of each kind; none if all was compiled.

    >>> summary([LeftOut(kind=ItemKind.FUNCTION, name="main", file="a.cu", line=9)])
    ('host code left out: 1 function (--left-out lists it)',)
    """
    if not left_out:
        return ()
    numbers = Counter(one.kind for one in left_out)
    parts = [
        f"{numbers[kind]} {kind.value}{'s' if numbers[kind] > 1 else ''}"
        for kind in ItemKind
        if numbers[kind]
    ]
    them = "it" if len(left_out) == 1 else "them"
    said = [f"host code left out: {', '.join(parts)} (--left-out lists {them})"]
    if absent := [one.name for one in left_out if one.reason == NOT_FOUND]:
        said.append(
            f"compiled without {', '.join(absent)}: no such file was found beside the source; if "
            "device code needs it, name its folder: --option -IFOLDER"
        )
    return tuple(said)
