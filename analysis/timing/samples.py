"""What is replayed of the blocks of a launch, and how totals of the launch follow from it.

Blocks are replayed from their first to their last instruction, or shorter versions of them are, and
totals are extrapolated linearly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from analysis.sm import Streams

STEADY = 0.04  # relative difference of the clocks of a repetition, up to which a loop is steady


class Linear(Protocol):
    """Totals of a replay that grow linearly."""

    @property
    def clocks(self) -> float: ...

    def line_to(self, other: Any, steps: float) -> Any:
        """These totals plus `steps` times the difference to `other`."""


T = TypeVar("T", bound=Linear)


class UnsteadyError(Exception):
    """Repetitions of a loop take different times."""


class Sample(ABC):
    """Streams that are replayed in place of a launch."""

    # An SM whose blocks fill at most so many further waves is replayed with all of its blocks.
    # Otherwise two numbers of blocks are replayed, which are `waves_apart`.
    most_waves: ClassVar[int]
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
        """Totals of the complete blocks, from those of each of `replayed`."""

    def marked_at(self, instructions: int, executed: int) -> int:
        """Warp instruction at which a run of the longest streams is marked.

        `instructions`: where a run of the complete blocks is marked. `executed`: number of warp
        instructions of the run.
        """
        del executed
        return instructions

    def extended(self, found: Sequence[T]) -> T:
        """As `extrapolated`, also where the time of a repetition changes: for what-if runs."""
        return self.extrapolated(found)

    @property
    def how(self) -> str:
        """How the streams differ from the complete blocks; completes "blocks replayed"."""
        return ""


@dataclass(frozen=True, kw_only=True)
class Whole(Sample):
    """Blocks that are replayed completely."""

    streams: Streams

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
    """Blocks of a product of matrices at two smaller values of K; totals are linear in K.

    `at`: streams by their K. `k`: K of the launch.
    """

    at: Mapping[int, Streams]
    k: int

    most_waves: ClassVar[int] = 2  # fewer, because K is extrapolated too
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
class Repetitions(Sample):
    """Blocks whose loop has fewer repetitions; totals are linear in their number.

    `at`: streams by their number of repetitions. The first of three shows whether each repetition
    takes equally long. `of`: number of repetitions in the launch.
    """

    at: Mapping[int, Streams]
    of: int

    most_waves: ClassVar[int] = 4
    waves_apart: ClassVar[int] = 2

    @property
    def replayed(self) -> tuple[Streams, ...]:
        return tuple(self.at[number] for number in sorted(self.at))

    def changed(self, change: Callable[[Streams], Streams]) -> Repetitions:
        return replace(self, at={length: change(one) for length, one in self.at.items()})

    def extrapolated(self, found: Sequence[T]) -> T:
        """As above. Raises UnsteadyError if repetitions take different times."""
        first, second = np.diff([one.clocks for one in found]) / np.diff(sorted(self.at))
        if not abs(first - second) <= STEADY * second:
            raise UnsteadyError
        return self.extended(found)

    def extended(self, found: Sequence[T]) -> T:
        return _on_a_line(self.at, found, self.of)

    def marked_at(self, instructions: int, executed: int) -> int:
        """As above: in the last repetitions, or after all, as in a run of the complete blocks."""
        return max(instructions * max(self.at) // self.of, min(instructions, executed * 7 // 8))

    @property
    def how(self) -> str:
        return f" with {_two_largest(self.at)} of {self.of:,} repetitions of a loop"


def _on_a_line(at: Mapping[int, Streams], found: Sequence[T], length: int) -> T:
    """Totals at a length, on the line through those at the two largest."""
    low, high = sorted(at)[-2:]
    extrapolated: T = found[-2].line_to(found[-1], (length - low) / (high - low))
    return extrapolated


def _two_largest(at: Mapping[int, Streams]) -> str:
    low, high = sorted(at)[-2:]
    return f"{low:,} and {high:,}"
