"""A launch that a caller leaves open in part, as far as host code tells it.

What the caller gives wins, one value by one. What nobody knows is named, with its type.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from analysis.errors import InputError
from reports import text as words
from toolkit.launch.element_types import type_named
from toolkit.launch.host_code import Extent, HostLaunch
from toolkit.machine_code.signature import Declared


@dataclass(frozen=True, kw_only=True)
class Size:
    """An array of `count` elements; `dtype` is NumPy's name of their type."""

    dtype: str
    count: int

    def __str__(self) -> str:
        """`f32[1024]`."""
        kind = type_named(self.dtype)
        letter = {"i": "i", "u": "u", "f": "f"}.get(kind.kind)
        name = f"{letter}{8 * kind.itemsize}" if letter else self.dtype
        return f"{name}[{self.count}]"


Proposal = np.generic | Size
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """A launch, as far as it is known: unknown sizes are None.

    `arguments` has what host code says of the parameters that the caller leaves open, by position;
    `missing` are the positions that neither says, `implied` those that follow from other missing
    values. `launch` is the one in host code, `facts` are what it told, `others` the lines of other
    launches of the kernel.
    """

    kernel: str | None
    declared: tuple[Declared, ...] | None
    grid: Extent | None
    block: Extent | None
    shared_bytes: int | None
    arguments: Mapping[int, Proposal]
    missing: tuple[int, ...]
    implied: frozenset[int | str]
    launch: HostLaunch | None
    facts: tuple[str, ...] = ()
    others: tuple[int, ...] = ()
    is_left_out: bool = False  #: the source holds the kernel, but an `#if` leaves it out
    unread: str = ""  #: says which macro or pointer may launch the kernel
    with_pointers: frozenset[int] = frozenset()  #: positions of structs with pointers in them

    def notes(self, file: str) -> list[str]:
        """Say what host code told, and its other launches; `file` is the name of the source."""
        host = self.launch
        if host is None or not self.facts:
            return []
        where = f"line {host.line}" + (f" of {host.file}" if host.file != file else "")
        found = [f"launched as in {where}: {', '.join(self.facts)}"]
        if host.assumed:
            other = "options such as -b and -a NAME=VALUE take other values"
            found.append(f"assumed {words.listing(host.assumed)}: {other}")
        if self.others:
            lines = words.listing([str(one) for one in self.others])
            found.append(f"it is launched in line {lines} too: --launch LINE takes another")
        return found

    @property
    def doubts(self) -> Iterator[str]:
        """Yield reasons not to trust a predicted time, from what host code says of the arrays."""
        of_host = self.launch.arguments if self.launch else ()
        found: dict[str, list[str]] = {}
        for position, parameter in enumerate(self.declared or ()):
            told = of_host[position].elsewhere if position < len(of_host) else ""
            if told and position in {*self.arguments, *self.missing}:
                found.setdefault(told, []).append(parameter.name or f"argument {position}")
        for told, names in found.items():
            are, them = ("are", "them") if len(names) > 1 else ("is", "it")
            yield (
                f"Do not trust the time: {words.listing(names)} {are} {told}, and the model has "
                f"{them} on the GPU"
            )

    @property
    def guessable(self) -> list[int]:
        """Positions of arrays without a known size, which addresses of the kernel may tell."""
        declared = self.declared or ()
        return [k for k in self.missing if declared[k].pointer and declared[k].dtype is not None]

    def in_order(self, given: Mapping[int, T]) -> list[T | Proposal | None]:
        """Arguments of all parameters: given ones, then those of host code, None for the others."""
        whole = {**self.arguments, **given}
        count = max([len(self.declared or ()), *(k + 1 for k in whole)], default=0)
        return [whole.get(k) for k in range(count)]

    def is_open(self, guessed: Container[int]) -> bool:
        """True if a fact of the launch is not known, other than the sizes of `guessed` arrays."""
        return None in (self.grid, self.block, self.shared_bytes) or bool(self.open_facts(guessed))

    def open_facts(self, guessed: Container[int]) -> dict[int | str, str]:
        """Facts that are neither known nor implied, by position or name, in words.

        `guessed` are the arrays whose sizes addresses will tell.
        """
        found: dict[int | str, str] = {}
        facts = (
            ("grid", self.grid is None),
            ("block", self.block is None),
            ("shared", self.shared_bytes is None),
        )
        names = {"shared": "bytes of shared memory"}
        for fact, is_open in facts:
            if is_open and fact not in self.implied:
                found[fact] = names.get(fact, fact)
        for position in self.missing:
            if position not in guessed and position not in self.implied:
                found[position] = (self.declared or ())[position].text
        return found

    def check_pointers(self, facts: Iterable[int | str]) -> None:
        """Raise InputError for an open argument that holds pointers: no option fills them."""
        for position in facts:
            if not isinstance(position, int):
                continue
            one = (self.declared or ())[position]
            if one.is_array_of_pointers:
                raise InputError(
                    f"`{one.text}` is an array of pointers, which cannot be filled here: pass one "
                    "array and compute where its parts begin"
                )
            if position in self.with_pointers:
                raise InputError(
                    f"`{one.text}` is a struct with pointers, which cannot be filled here: pass "
                    "its fields as parameters"
                )

    def why_open(self) -> str:
        """Return the reason why facts are not known, as text."""
        kernel = f" {self.kernel}" if self.kernel else ""
        if self.launch:
            return f"line {self.launch.line} launches{kernel} with {self.launch.why_open}"
        left = ", which stands in a part that an #if leaves out" if self.is_left_out else ""
        return f"no host code launches{kernel or ' a kernel'}{left}{self.unread}"


def extent_text(extent: Sequence[int]) -> str:
    """An extent as options take it: "8,8"."""
    while len(extent) > 1 and extent[-1] == 1:
        extent = extent[:-1]
    return ",".join(map(str, extent))
