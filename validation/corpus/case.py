"""A launch of a corpus kernel with random input, and what it must leave in memory.

References are NumPy in float64 or integers, written down without a look at the machine code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from analysis.geometry import Geometry
from toolkit.launch.launch import Argument, buffers_of

Array = NDArray[Any]
Mask = NDArray[np.bool_]
Extent = tuple[int, int, int]
Shape = tuple[Extent, Extent]  # grid and block
Given = list[Any]  # the arguments of a launch, as its reference takes them

CORPUS = Path(__file__).parent
# __global__, attributes such as __launch_bounds__(128), and the name
KERNEL = re.compile(r"__global__\b[^{;]*?\b(?!__)(\w+)\((?!\d)")
FILES = {
    kernel: path.name
    for path in CORPUS.glob("*.cu")
    for kernel in KERNEL.findall(path.read_text(encoding="utf-8"))
}
BLANK = 0xA5  # what fills outputs before the launch


@dataclass(frozen=True, kw_only=True)
class Near:
    """Numbers that are right within `error`, an array or one number; infinities and NaN exactly."""

    value: Array
    error: Array | float

    def wrong(self, got: Array) -> Mask:
        value, largest = np.asarray(self.value, np.float64), np.finfo(got.dtype).max
        got = got.reshape(value.shape).astype(np.float64)
        with np.errstate(all="ignore"):
            alike = (got == value) | (np.isnan(got) & np.isnan(value))
            beyond = np.isinf(got) & (got * value > 0) & (abs(value) + self.error >= largest)
            right: Mask = alike | beyond | (abs(got - value) <= self.error)
            return ~right


@dataclass(frozen=True, kw_only=True)
class AnyOrder:
    """Values that the launch may leave in any order."""

    value: Array

    def wrong(self, got: Array) -> Mask:
        different: Mask = np.sort(got, axis=None) != np.sort(self.value, axis=None)
        return different


@dataclass(frozen=True, kw_only=True)
class Bits:
    """The bits of an array, known by their SHA-256."""

    value: str

    def wrong(self, got: Array) -> Mask:
        """A single element for the whole array."""
        return np.array([sha256_of(got) != self.value])


def sha256_of(array: Array) -> str:
    return sha256(array.tobytes()).hexdigest()


Outcome = Array | Near | AnyOrder | Bits | None  # None: whatever
Outcomes = Sequence[Outcome]
Draw = Callable[[Generator], Array]  # an argument that the generator of a launch gives
Arguments = Sequence[Argument | int | Draw]
Make = Callable[[Generator], Arguments] | Arguments
Expected = Callable[[Given], Outcome | Outcomes]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One launch: `make` gives its arguments, `expected` what their arrays hold afterwards.

    Arrays among the arguments are device buffers, in order, as are those of tensor maps; NumPy
    scalars (structures as `numpy.void` of an aligned dtype) are passed by value. `expected` returns
    an outcome per array, or that of the first alone; arrays after these must be unchanged.
    `kernel` is an extern "C" name. All of a launch's randomness is in the generator that `make` is
    given.
    """

    name: str
    file: str
    kernel: str
    grid: Extent
    block: Extent
    make: Callable[[Generator], list[Argument]]
    expected: Expected
    dynamic_shared_bytes: int = 0
    minimum_capability: int = 75
    most_capability: int = 999

    @property
    def source(self) -> str:
        return (CORPUS / self.file).read_text(encoding="utf-8")

    @property
    def geometry(self) -> Geometry:
        return Geometry(
            grid=self.grid, block=self.block, dynamic_shared_bytes=self.dynamic_shared_bytes
        )

    def runs_on(self, arch: str) -> bool:
        """True if the kernel compiles for `arch`, such as "sm_86", to code the simulator knows."""
        capability = int(arch.removeprefix("sm_"))
        return self.minimum_capability <= capability <= self.most_capability

    def outcomes(self, arguments: list[Argument]) -> list[Outcome]:
        """Expected outcome of every array among `arguments`, as they were before the launch."""
        arrays = list(buffers_of(arguments).values())
        with np.errstate(all="ignore"):
            found = self.expected(arguments)
        if found is None or isinstance(found, np.ndarray | Near | AnyOrder | Bits):
            found = [found]
        known = list(found)
        return known + arrays[len(known) :]

    def check(self, outputs: Sequence[Array], arguments: list[Argument]) -> None:
        """Raise AssertionError where `outputs` are not what `arguments` must lead to."""
        outcomes = self.outcomes(arguments)
        assert len(outputs) == len(outcomes), f"{self.name}: {len(outputs)} arrays came back"
        for index, (got, outcome) in enumerate(zip(outputs, outcomes, strict=True)):
            if outcome is not None:
                self._check_array(index, np.asarray(got), outcome)

    def _check_array(self, index: int, got: Array, outcome: Array | Near | AnyOrder | Bits) -> None:
        if isinstance(outcome, np.ndarray):
            wrong, expected = _unequal(got, outcome), outcome
        else:
            wrong, expected = outcome.wrong(got), np.asarray(outcome.value)
        if not wrong.any():
            return
        where = int(np.flatnonzero(wrong)[0])
        raise AssertionError(
            f"{self.name}: array {index}: {np.count_nonzero(wrong)} of {wrong.size} elements are "
            f"wrong, first element {where}: {got.ravel()[where]!r} instead of "
            f"{expected.ravel()[where]!r}"
        )


def _unequal(got: Array, expected: Array) -> Mask:
    """Mask of elements whose bits differ; any NaN equals any other."""
    assert got.dtype == expected.dtype, f"{got.dtype} instead of {expected.dtype}"
    got, expected = got.ravel(), expected.ravel()
    assert got.size == expected.size, f"{got.size} elements instead of {expected.size}"
    bits = f"u{got.itemsize}" if got.dtype.kind == "f" else got.dtype
    same: Mask = np.ascontiguousarray(got).view(bits) == np.ascontiguousarray(expected).view(bits)
    if got.dtype.kind == "f":
        same |= np.isnan(got) & np.isnan(expected)
    return ~same


# How launches are written down.


def launched(
    kernel: str,
    shape: Shape,
    make: Make,
    expected: Expected,
    *,
    label: object = None,
    name: str | None = None,
    file: str | None = None,
    dynamic_shared_bytes: int = 0,
    minimum_capability: int = 75,
    most_capability: int = 999,
) -> Case:
    """A case that is called like its kernel, with a label where a kernel has several cases.

    `file` is relative to the corpus, and found by the kernel's name if it is a file of the corpus.
    `make` lists the arguments, or gives the list for a generator. Python's integers in it are
    passed as `int`; functions, such as those that `blank` and `real` return, are called with the
    generator, in order.
    """
    return Case(
        name=name or (kernel if label is None else f"{kernel}_{label}"),
        file=file or FILES[kernel],
        kernel=kernel,
        grid=shape[0],
        block=shape[1],
        make=lambda rng: [_drawn(x, rng) for x in listed(make, rng)],
        expected=expected,
        dynamic_shared_bytes=dynamic_shared_bytes,
        minimum_capability=minimum_capability,
        most_capability=most_capability,
    )


def listed(make: Make, rng: Generator) -> Arguments:
    """The arguments, some of them still to be drawn."""
    return make(rng) if callable(make) else make


def _drawn(given: Argument | int | Draw, rng: Generator) -> Argument:
    if isinstance(given, int):
        return np.int32(given)
    return given(rng) if callable(given) else given


def grid_of(blocks: int, threads: int) -> Shape:
    """Grid and block of so many blocks of so many threads."""
    return (blocks, 1, 1), (threads, 1, 1)


def flat(n: int, block: int = 128) -> Shape:
    """Grid and block of one thread per element."""
    return grid_of(-(-n // block), block)


def tiles(
    width: int,
    height: int,
    tile: tuple[int, int],
    block: tuple[int, int] | None = None,
    planes: int = 1,
) -> Shape:
    """Grid and block of tiles over planes; a block has the tile's shape unless it is given."""
    return (-(-width // tile[0]), -(-height // tile[1]), planes), (*(block or tile), 1)


def blank(shape: int | tuple[int, ...], dtype: type = np.float32) -> Draw:
    """An output: bytes that no kernel writes by accident."""

    def draw(_: Generator) -> Array:
        empty: Array = np.empty(shape, dtype)
        empty.view(np.uint8)[...] = BLANK
        return empty

    return draw


def words(n: int, dtype: type = np.uint32) -> Draw:
    """Integers of every magnitude, with the ends of the range among them."""
    bits = 8 * np.dtype(dtype).itemsize
    unsigned = np.dtype(f"u{bits // 8}")

    def draw(rng: Generator) -> Array:
        drawn: Array = rng.integers(0, 2**bits - 1, n, unsigned, endpoint=True)
        drawn >>= rng.integers(0, bits, n).astype(unsigned)
        negative = rng.random(n) < 0.4
        drawn[negative] = ~drawn[negative]
        ends = np.array([0, 1, 2**bits - 1, 2 ** (bits - 1), 2 ** (bits - 1) - 1], unsigned)
        places = rng.permutation(n)[: len(ends)]
        drawn[places] = ends[: len(places)]
        return drawn.view(dtype)

    return draw


def floats(
    n: int,
    exponents: tuple[int, int] = (-30, 30),
    dtype: type = np.float32,
    special: Sequence[float] = (),
) -> Draw:
    """Numbers of both signs and of magnitudes 2^low to 2^high, with special ones among them."""

    def draw(rng: Generator) -> Array:
        magnitude = np.exp2(rng.uniform(*exponents, n))
        numbers: Array = (magnitude * rng.choice([-1.0, 1.0], n)).astype(dtype)
        places = rng.permutation(n)[: len(special)]
        numbers[places] = np.asarray(special, dtype)[: len(places)]
        return numbers

    return draw


def integers(low: int, high: int, shape: int | tuple[int, ...], dtype: type = np.int32) -> Draw:
    """Integers from low to below high, drawn with 64 bits."""
    return lambda rng: rng.integers(low, high, shape).astype(dtype)


def native_integers(
    low: int, high: int, shape: int | tuple[int, ...], dtype: type = np.int32
) -> Draw:
    """The same, drawn in their own type."""
    return lambda rng: rng.integers(low, high, shape, dtype)


def small(shape: int | tuple[int, ...], dtype: type = np.float32) -> Draw:
    """Integers from -9 to 9: sums and products of a few are exact in any order."""
    return integers(-9, 10, shape, dtype)


def real(shape: int | tuple[int, ...], dtype: type = np.float32) -> Draw:
    """Numbers from -1 to 1."""
    return lambda rng: rng.uniform(-1, 1, shape).astype(dtype)


def fractions(*shape: int) -> Draw:
    """Numbers of float32 from 0 to 1."""
    return lambda rng: rng.random(shape, dtype=np.float32)
