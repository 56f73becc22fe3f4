"""The state of a kernel that is being written: parameters, arrays, and the kinds of its blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.coalescing import SECTOR_BYTES
from toolkit.launch.launch import Argument
from validation.plans.index import Index, Values

Three = tuple[int, int, int]
RANDOM = "random"  # values of an array: uniform in [0, 1)
LEAST_SHARE = 0.1  # of the rarest kind of block, where kinds are to be frequent
C_TYPES = {
    "float32": "float",
    "int32": "int",
    "float64": "double",
    "int8": "signed char",
    "int16": "short",
}


@dataclass
class Writer:
    """One kernel. Statements add to the float `v` and the int `k` of each thread.

    `in_rows`: threads are elements of a matrix, each block a tile of it, rather than in a line.
    `is_even`: conditions divide the grid so that each kind keeps LEAST_SHARE of it.
    """

    seed: int
    random: Random
    grid: Three
    block: Three
    in_rows: bool
    is_even: bool
    parameters: list[str] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)  # lines at file scope
    used: set[str] = field(default_factory=set)
    kinds: list[Values] = field(default_factory=list)
    is_known: bool = True  # whether `kinds` are all that there are
    names: int = 0

    @property
    def blocks(self) -> int:
        return prod(self.grid)

    @property
    def threads(self) -> int:
        return prod(self.block)

    @cached_property
    def numbers(self) -> np.random.Generator:
        return np.random.default_rng(self.random.getrandbits(32))

    @cached_property
    def linear(self) -> Index:
        return Index("bid", np.arange(self.blocks))

    @cached_property
    def axes(self) -> list[Index]:
        """Indices of the axes with more than one block."""
        x, y, _ = self.grid
        at = np.arange(self.blocks)
        values = (at % x, at // x % y, at // x // y)
        names = zip(("bx", "by", "bz"), values, self.grid, strict=True)
        return [Index(name, found) for name, found, extent in names if extent > 1]

    @cached_property
    def elements(self) -> Values:
        """The element `i` of each thread, one row per block."""
        tid = np.arange(self.threads)
        if not self.in_rows:
            return self.linear.values[:, None] * self.threads + tid
        at = self.linear.values[:, None]
        x = at % self.grid[0] * self.block[0] + tid % self.block[0]
        y = at // self.grid[0] * self.block[1] + tid // self.block[0]
        return np.asarray(y * (self.grid[0] * self.block[0]) + x)

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def fresh_outside(self, stem: str) -> str:
        """A name at file scope: kernels of several seeds are compiled together."""
        return f"{self.fresh(stem)}_{self.seed}"

    def atom(self) -> Index:
        return self.random.choice([*self.axes, *self.axes, self.linear])

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def scalar(self, value: int) -> str:
        """An int that the compiler knows, or does not know."""
        if self.chance(0.5):
            return str(value)
        name = self.fresh("n")
        self.parameters.append(f"int {name}")
        self.arguments.append(np.int32(value))
        return name

    def array(self, values: NDArray[Any], *, is_read: bool = True) -> str:
        name = self.fresh("a" if is_read else "o")
        const = "const " if is_read else ""
        self.parameters.append(f"{const}{C_TYPES[values.dtype.name]} *{name}")
        self.arguments.append(values)
        return name

    def floats(self, size: int | None = None) -> str:
        """An array of random numbers, by default one for each thread."""
        return self.array(self.numbers.random(self._sized(size), np.float32))

    def integers(self, below: int, size: int | None = None) -> str:
        found = self.numbers.integers(0, below, self._sized(size), np.int32)
        return self.array(found)

    def zeros(self, size: int, kind: str = "float32") -> str:
        return self.array(np.zeros(size, kind), is_read=False)

    def table(self, values: Values) -> str:
        """A table in constant memory."""
        name = self.fresh_outside("table")
        listed = ", ".join(map(str, values.tolist()))
        self.outside.append(f"__constant__ int {name}[{len(values)}] = {{{listed}}};")
        return name

    def note(self, values: Values) -> None:
        """Blocks with different values may be of different kinds."""
        self.kinds.append(np.unique(values, return_inverse=True)[1].astype(np.int64))

    def note_addresses(self, first_bytes: Values) -> None:
        """Blocks may be of different kinds if they begin elsewhere in a sector."""
        self.note(first_bytes % SECTOR_BYTES)

    def kind_of(self, *more: Values) -> Values:
        """The kind of each block as a number."""
        found = np.zeros(self.blocks, np.int64)
        for values in (*self.kinds, *more):
            joined = found * (int(values.max(initial=0)) + 1) + values
            found = np.unique(joined, return_inverse=True)[1].astype(np.int64)
        return found

    def condition(self, draw: Callable[[Writer], Index]) -> Index | None:
        """A condition that `draw` makes, None if it leaves kinds that are too rare.

        The kinds of blocks that it divides the grid into are noted.
        """
        for _ in range(20):
            found = draw(self)
            shares = np.bincount(self.kind_of(found.values, *found.parts)) / self.blocks
            if 0 < found.values.sum() < self.blocks and (
                not self.is_even or shares.min() >= LEAST_SHARE
            ):
                for values in (found.values, *found.parts):
                    self.note(values)
                return found
        return None

    def threshold(self, one: Index) -> int:
        """A value to compare an index with."""
        if self.is_even:
            return int(np.quantile(one.values, self.random.uniform(0.2, 0.8)))
        values = np.unique(one.values)
        return int(self.random.choice([values[0], values[-1], *self.random.choices(values, k=4)]))

    def arithmetic(self) -> Iterator[str]:
        """A little work that is the same in all threads."""
        writers = (self._multiplies, self._sums, self._turns)
        yield from self.random.choice(writers)()

    def _multiplies(self) -> Iterator[str]:
        for _ in range(self.random.randint(1, 4)):
            yield f"v = v * 0.{self.random.randint(1, 9)}f + {self.random.randint(1, 9)}.5f;"

    def _sums(self) -> Iterator[str]:
        yield f"k = (k ^ {self.random.randint(1, 99)}) + tid * {self.random.randint(2, 9)};"
        yield "v += 0.25f * k;"

    def _turns(self) -> Iterator[str]:
        name = self.fresh("j")
        turns = self.scalar(self.random.randint(1, 6))
        yield f"for (int {name} = 0; {name} < {turns}; ++{name}) v = v * 0.5f + {name};"

    def _sized(self, size: int | None) -> int:
        return int(self.elements.max()) + 1 if size is None else size
