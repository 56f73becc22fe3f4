"""Kernels with launches of several sizes: what those that are timed and those on trial share.

A kernel also has a small launch for the simulator, and what an H100 left of it is recorded
(`python -m validation.timing.record_results`). The simulator must leave the same bits, or numbers
within `error` of the largest one. All are compiled with `OPTIONS`, for `rng()`'s numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from toolkit.launch.launch import buffers_of
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from validation.corpus.case import (
    Array,
    Bits,
    Case,
    Expected,
    Given,
    Make,
    Near,
    Outcome,
    Shape,
    launched,
)

RESULTS = Path(__file__).parent / "recorded" / "small_results.npz"
SEED = 20
OPTIONS = ("-lineinfo",)
LAST_BITS = 1e-6  # where MUFU approximates, or atomics add floats in no fixed order

Size = tuple[int, ...]
Built = tuple[Shape, Make]
Build = Callable[..., Built]


def rng() -> Generator:
    """The generator of every launch's arguments."""
    return np.random.default_rng(SEED)


@dataclass(frozen=True, kw_only=True)
class Declared:
    """One kernel of a file beside the corpus: what builds its launches, and their sizes.

    `label` formats a size. `small` is a size for the simulator. `error` is the share of an array's
    largest number by which the results of a GPU and of the simulator may differ.
    """

    kernel: str
    file: str
    build: Build
    sizes: tuple[Size, ...]
    small: Size
    label: str | None = None
    error: float = 0.0
    dynamic_shared_bytes: int = 0

    @property
    def cases(self) -> list[Case]:
        """The launches that are timed. What they leave in memory is not known."""
        return [self._case(size, lambda given: [None] * len(_arrays(given))) for size in self.sizes]

    @property
    def small_case(self) -> Case:
        """The small launch, which must leave what a GPU left."""
        return self._case(self.small, lambda given: list(map(self._left, count(), _arrays(given))))

    def code(self, architecture: str) -> Kernel:
        """Machine code of the kernel; raises UnavailableError without its compiler."""
        return compile_cubin(
            self.small_case.source,
            name=self.file,
            kernel=self.kernel,
            arch=architecture,
            options=OPTIONS,
        )

    @property
    def key(self) -> str:
        """The name of the kernel among all that are recorded."""
        return f"{Path(self.file).stem} {self.kernel}"

    def _case(self, size: Size, expected: Expected) -> Case:
        label = self.label.format(*size) if self.label else "x".join(map(str, size))
        return launched(
            self.kernel,
            *self.build(*size),
            expected,
            name=f"{self.kernel} {label}",
            file=self.file,
            dynamic_shared_bytes=self.dynamic_shared_bytes,
        )

    def _left(self, number: int, before: Array) -> Outcome:
        """Outcome of an array of the small launch on a GPU: recorded if the launch changes it."""
        left = recorded_results().get(f"{self.key} {number}")
        if left is None:
            return before
        if self.error:
            return Near(value=left, error=self.error * float(abs(left).max()))
        return Bits(value=str(left))


def launch_of(case: Case) -> dict[str, Any]:
    """The launch as `toolkit.simulate` takes it, beside the machine code."""
    return {
        "grid": case.grid,
        "block": case.block,
        "dynamic_shared_bytes": case.dynamic_shared_bytes,
        "arguments": case.make(rng()),
        "options": OPTIONS,
    }


def _arrays(given: Given) -> list[Array]:
    return list(buffers_of(given).values())


@cache
def recorded_results() -> Mapping[str, Array]:
    """Arrays that small launches changed on a GPU, keyed by kernel and number of the array.

    For arrays that must be equal bit by bit, the SHA-256 of their bits.
    """
    with np.load(RESULTS) as arrays:
        return dict(arrays)
