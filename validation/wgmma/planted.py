"""Mistakes with wgmma: the kernels of `kernels/planted.cu`, each with what a check must find.

Some are in machine code alone, as ptxas repairs them in a source: a `Patch` takes each instruction
of that opcode out of the compiled kernel, or with "gsb0" each product out of its group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from toolkit import TensorMap
from toolkit.execution.findings import Finding
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel, read_kernel
from toolkit.machine_code.patching import BARRIERS, Word, rewritten

SOURCE = Path(__file__).parent / "kernels" / "planted.cu"
MARK = "// <-"
ROWS, COLUMNS, DEPTH, TILES = 64, 8, 64, 4
_HEAD = re.compile(r"^// (Clean|Bug|Expected|Patch)\b ?(.*)$")
_KERNEL = re.compile(r"^KERNEL\((\w+), (\d+)\)")
_NOP = 0x918 | 7 << 12  # with the guard @PT
_GROUP_SHIFT, _NO_GROUP = 84, 7  # of the scoreboard of a product; 7: none


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A kernel; `tool` and `kind` are None where nothing is wrong."""

    name: str
    threads: int
    tool: str | None
    kind: str | None
    patch: str | None
    lines: frozenset[int]  # that a finding may name

    @property
    def launch(self) -> dict[str, Any]:
        """Arguments of `simulate` and `check`, except for the kernel."""
        a, b = matrices()
        maps = [TensorMap(x, (len(x), DEPTH), swizzle=2 * DEPTH) for x in (a, b)]
        values = [*maps, a.view(np.uint32), b.view(np.uint32), sums(), np.int32(TILES)]
        return {"grid": 1, "block": self.threads, "arguments": values}

    def code(self) -> Kernel:
        found = _compiled(self.name)
        if self.patch is None:
            return found
        image = rewritten(found.image, {self.name: partial(_patched, found, self.patch)})
        return replace(read_kernel(image, self.name, self.name), file=SOURCE.name, source=_text())

    def finds(self, findings: Iterable[Finding]) -> bool:
        """True if one of them is this mistake, at its lines, or if there are none and is none.

        A product of a chain may have the line of the statement behind it in ptxas' table.
        """
        if self.tool is None:
            return not list(findings)
        return any(
            (x.tool, x.kind) == (self.tool, self.kind)
            and {access.line for access in x.accesses} <= self.lines
            for x in findings
        )


@cache
def matrices() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(57)
    return tuple(  # type: ignore[return-value]
        rng.integers(-4, 5, (rows, DEPTH * TILES)).astype(np.float16) for rows in (ROWS, COLUMNS)
    )


def sums() -> np.ndarray[Any, Any]:
    """C before a launch: the kernel that reads it gets numbers that differ."""
    return np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)


@cache
def _text() -> str:
    return SOURCE.read_text(encoding="utf-8")


@cache
def _image() -> bytes:
    """The cubin of all kernels."""
    name = planted()[0].name
    return compile_cubin(_text(), name=SOURCE.name, kernel=name, arch="sm_90a").image


def _compiled(name: str) -> Kernel:
    return replace(read_kernel(_image(), name, name), file=SOURCE.name, source=_text())


def _patched(kernel: Kernel, patch: str, words: list[Word]) -> list[Word]:
    """The code with each such instruction replaced by a NOP, or with no product in a group."""
    found = list(words)
    for k, one in enumerate(kernel.instructions):
        if patch == "gsb0" and one.opcode.endswith("GMMA"):
            found[k] |= _NO_GROUP << _GROUP_SHIFT
        elif ".".join((one.opcode, *one.modifiers)).startswith(patch):
            found[k] = _NOP | words[k] >> BARRIERS - 5 << BARRIERS - 5
    assert found != words
    return found


def planted() -> list[Planted]:
    """All of them, in the order of the source."""
    found, head, lines = list[Planted](), dict[str, str](), set[int]()
    kernel: tuple[str, int] | None = None
    for number, line in enumerate(_text().splitlines(), 1):
        if match := _HEAD.match(line):
            head[match[1]] = match[2]
        elif match := _KERNEL.match(line):
            kernel = match[1], int(match[2])
        elif line == "}" and kernel is not None:
            tool, _, kind = head.get("Expected", "").partition(" ")
            found.append(
                Planted(
                    name=kernel[0],
                    threads=kernel[1],
                    tool=tool or None,
                    kind=kind or None,
                    patch=head.get("Patch"),
                    lines=frozenset(lines),
                )
            )
            head, lines, kernel = {}, set(), None
        if line.endswith(MARK) and kernel is not None:
            lines.add(number)
    return found
