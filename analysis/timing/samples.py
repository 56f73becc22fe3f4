"""Samples: the streams that are replayed for a launch, and the extrapolation of their totals.

Blocks are replayed completely, or shorter versions of them are replayed and the totals are
extrapolated linearly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from analysis.sm import Streams

STEADY = 0.04  # a loop is steady if the clocks of its repetitions differ by less than this fraction


class Linear(Protocol):
    """Totals of a replay that grow linearly."""

    @property
    def clocks(self) -> float: ...

    def line_to(self, other: Any, steps: float) -> Any:
        """Linear extrapolation: these totals plus `steps` times the difference to `other`."""


T = TypeVar("T", bound=Linear)


class UnsteadyError(Exception):
    """Error: repetitions of a loop take different times, so that totals are not linear."""


class Sample(ABC):
    """Streams that are replayed in place of a launch."""

    #: All blocks of an SM are replayed if they fill at most this many waves after the first one.
    most_waves: ClassVar[int]
    #: Otherwise two numbers of blocks are replayed, which differ by this many waves.
    waves_apart: ClassVar[int]

    @property
    @abstractmethod
    def replayed(self) -> tuple[Streams, ...]:
        """Streams to replay, the shortest first."""

    @abstractmethod
    def changed(self, change: Callable[[Streams], Streams]) -> Sample:
        """Sample with changed streams."""

    @abstractmethod
    def extrapolated(self, found: Sequence[T]) -> T:
        """Totals of the complete blocks, from the totals `found` of each of `replayed`."""

    def marked_at(self, instructions: int, executed: int) -> int:
        """Number of issued warp instructions at which a run of the longest streams is marked.

        `instructions`: the same number for a run of the complete blocks. `executed`: warp
        instructions of the run.
        """
        del executed
        return instructions

    @property
    def longest(self) -> tuple[Streams, ...]:
        """Those of `replayed` whose totals `extended` needs."""
        return self.replayed[-2:]

    def extended(self, found: Sequence[T]) -> T:
        """As `extrapolated`, also where the time of a repetition changes: for what-if runs.

        `found`: totals of each of `longest`.
        """
        return self.extrapolated(found)

    @property
    def how(self) -> str:
        """Text on the difference to complete blocks; completes the words "blocks replayed"."""
        return ""


@dataclass(frozen=True, kw_only=True)
class Whole(Sample):
    """Blocks that are replayed completely."""

    streams: Streams
    #: instructions of these blocks as they are counted, if loops repeat more often in time
    counted: int | None = None

    most_waves: ClassVar[int] = 4
    waves_apart: ClassVar[int] = 4

    @property
    def replayed(self) -> tuple[Streams, ...]:
        return (self.streams,)

    def changed(self, change: Callable[[Streams], Streams]) -> Whole:
        return replace(self, streams=change(self.streams))

    def extrapolated(self, found: Sequence[T]) -> T:
        (only,) = found
        return only


@dataclass(frozen=True, kw_only=True)
class AlongK(Sample):
    """Blocks of a matrix product at two smaller values of K; totals are linear in K."""

    at: Mapping[int, Streams]  #: streams by their K
    k: int  #: K of the launch

    most_waves: ClassVar[int] = 2  #: fewer, because K is extrapolated too
    waves_apart: ClassVar[int] = 2

    @property
    def replayed(self) -> tuple[Streams, ...]:
        return tuple(self.at[k] for k in sorted(self.at))

    def changed(self, change: Callable[[Streams], Streams]) -> AlongK:
        return replace(self, at={length: change(one) for length, one in self.at.items()})

    def extrapolated(self, found: Sequence[T]) -> T:
        return _on_a_line(self.at, found, self.k)

    @property
    def how(self) -> str:
        return f" at K = {_two_largest(self.at)}"


@dataclass(frozen=True, kw_only=True)
class Windows(Sample):
    """Parts of very long blocks, of two lengths; totals are linear in these.

    The shorter one has the first half of each window, so that what a window finds cold at its
    beginning does not count for what follows.
    """

    at: Mapping[int, Streams]  #: streams by the number of instructions of a warp
    of: int  #: instructions of a warp of a complete block
    counted: int  #: instructions of all complete blocks
    windows: int  #: number of these parts; one is at the beginning of the block

    most_waves: ClassVar[int] = 2
    waves_apart: ClassVar[int] = 1

    @property
    def replayed(self) -> tuple[Streams, ...]:
        return tuple(self.at[number] for number in sorted(self.at))

    def changed(self, change: Callable[[Streams], Streams]) -> Windows:
        return replace(self, at={number: change(one) for number, one in self.at.items()})

    def extrapolated(self, found: Sequence[T]) -> T:
        return _on_a_line(self.at, found, self.of)

    def marked_at(self, instructions: int, executed: int) -> int:
        return min(instructions, executed * 7 // 8)

    @property
    def how(self) -> str:
        steps = f"{_two_largest(self.at)} of {self.of:,} instructions of a warp"
        return (
            f" with the first {steps}"
            if self.windows == 1
            else f" with {steps}, in {self.windows} windows"
        )


@dataclass(frozen=True, kw_only=True)
class Repetitions(Sample):
    """Blocks whose loop has fewer repetitions; totals are linear in the number of repetitions.

    Of three numbers of repetitions, the two largest define the line. The smallest one shows whether
    all repetitions take the same time.
    """

    at: Mapping[int, Streams]  #: streams by their number of repetitions
    of: int  #: number of repetitions in the launch

    most_waves: ClassVar[int] = 4
    waves_apart: ClassVar[int] = 2

    @property
    def replayed(self) -> tuple[Streams, ...]:
        return tuple(self.at[number] for number in sorted(self.at))

    def changed(self, change: Callable[[Streams], Streams]) -> Repetitions:
        return replace(self, at={length: change(one) for length, one in self.at.items()})

    def extrapolated(self, found: Sequence[T]) -> T:
        """Totals of the complete blocks. Raises UnsteadyError if repetitions differ in time."""
        first, second = np.diff([one.clocks for one in found]) / np.diff(sorted(self.at))
        if not abs(first - second) <= STEADY * second:
            raise UnsteadyError
        return self.extended(found)

    def extended(self, found: Sequence[T]) -> T:
        return _on_a_line(self.at, found, self.of)

    def marked_at(self, instructions: int, executed: int) -> int:
        """Number of issued warp instructions, scaled down like the repetitions.

        A launch that is marked late in the loop is marked near the end of the shorter run, after at
        most 7/8 of its instructions.
        """
        return max(instructions * max(self.at) // self.of, min(instructions, executed * 7 // 8))

    @property
    def how(self) -> str:
        return f" with {_two_largest(self.at)} of {self.of:,} repetitions of a loop"


def _on_a_line(at: Mapping[int, Streams], found: Sequence[T], length: int) -> T:
    """Totals at `length`, on the line through the totals at the two largest lengths."""
    low, high = sorted(at)[-2:]
    extrapolated: T = found[-2].line_to(found[-1], (length - low) / (high - low))
    return extrapolated


def _two_largest(at: Mapping[int, Streams]) -> str:
    low, high = sorted(at)[-2:]
    return f"{low:,} and {high:,}"
