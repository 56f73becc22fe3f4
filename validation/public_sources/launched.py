"""The `__global__` functions that the .cu files of a repository launch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.machine_code.device_side import DeviceSide, device_side

_LAUNCH = re.compile(r"\b(\w+)\s*(<(?:[^<>;{}]|<[^<>;{}]*>)*>)?\s*<<<")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Launched:
    """A kernel that a .cu file launches. `forms`: its names in launches, as written."""

    path: Path
    name: str
    forms: tuple[str, ...]
    is_template: bool


def launched_kernels(path: Path) -> Iterator[Launched]:
    """The kernels that a .cu file launches, by name."""
    text = path.read_text(encoding="utf-8", errors="replace")
    forms: dict[str, dict[str, None]] = {}
    for found in _LAUNCH.finditer(_COMMENT.sub(" ", text)):
        name = f"{found[1]}{' '.join((found[2] or '').split())}"
        forms.setdefault(found[1], {})[name] = None
    if not forms:
        return
    side = side_of(path, text)
    for name, written in forms.items():
        templates = _definitions(side, name)
        if templates:
            yield Launched(path=path, name=name, forms=tuple(written), is_template=any(templates))


def side_of(path: Path, text: str, folders: Sequence[Path] = ()) -> DeviceSide:
    """The file, cut, with its own headers, beside it or in `folders`."""
    return device_side(text, name=path.name, kernel=None, folder=path.parent, folders=list(folders))


def _definitions(side: DeviceSide, name: str) -> list[bool]:
    """Of each kernel of this name: whether it is a template."""
    return [
        b"template" in item.head or item.node.type == "template_declaration"
        for item in side.roots
        if name.encode() in item.names
    ]
