"""What one rung of the ladder declares, and what the toolkit knows of it without running it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import product
from types import MappingProxyType
from typing import Literal

from analysis.access import Tiling
from analysis.devices import Device
from analysis.errors import InputError, ShapeError, UnavailableError, UnknownNameError
from analysis.geometry import Geometry, ceil_div
from analysis.problem import Gemm
from analysis.traffic.grid import COLUMN_MAJOR, ROW_MAJOR, Order, TileGrid
from kernels.warps import WarpAccesses

Parameters = Mapping[str, int]
# What an argument of a kernel is: a matrix, a tensor map of one, an extent, a factor, or memory in
# which blocks leave sums for each other.
Role = Literal[
    "A", "B", "C", "tiles of A", "tiles of B", "M", "N", "K", "alpha", "beta", "workspace"
]
EXTENTS: tuple[Role, ...] = ("M", "N", "K")
FACTORS: tuple[Role, ...] = ("alpha", "beta")
PLAIN_ARGUMENTS: tuple[Role, ...] = ("A", "B", "C", *EXTENTS, *FACTORS)

_INCLUDED = re.compile(r'^#include "(\w+\.cuh)"\n', re.MULTILINE)
OLDEST = 75  # the oldest architecture of today's compilers: older devices get its code, and a note


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A compile-time integer of a kernel, passed as a macro of the same name in capitals.

    `sets` names the fields of the rung's `Tiling` that have its value.
    """

    default: int
    legal: tuple[int, ...]
    meaning: str
    sets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Preference:
    """Parameters with which a rung may serve a shape for which nothing was tuned.

    `share_of_peak` is the fraction of the peak rate that its main loop reaches. Preferences without
    it come after all others, those of later rungs first, and only if an element of A and B is in
    at least `fewest_products` products on average, M·N / (M + N).
    """

    parameters: Parameters = field(default_factory=dict)
    share_of_peak: float | None = None
    fewest_products: int = 0


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A relation between parameters: `holds` decides, `text` explains."""

    text: str
    holds: Callable[[Parameters], bool]


@dataclass(frozen=True, kw_only=True)
class BulkTiles:
    """What one bulk copy moves of A and of B, as rows and columns; rows of A are swizzled.

    A rung with these takes tensor maps of A and B.
    """

    a: tuple[int, int]
    b: tuple[int, int]
    swizzle_a: int


@dataclass(frozen=True, kw_only=True)
class Words:
    """`count` words of 32 bits from an offset in bytes on, all of one value."""

    count: int
    offset: int = 0
    value: int = 1


@dataclass(frozen=True, kw_only=True)
class Copies:
    """Where in the workspace a rung copies A and B to: bytes, None for one that it takes as it is.

    The length of a copy's rows is a multiple of `ROW_FLOATS`. `end` is the byte behind the last.
    """

    a: int | None = None
    b: int | None = None
    end: int = 0


@dataclass(frozen=True, kw_only=True)
class TileSharing:
    """Cooperation of blocks on tiles of C, through a workspace in global memory.

    The workspace holds flags, partial sums, and copies of A and B. It is zero before the first
    launch, and each launch leaves its flags zero. A block waits only for blocks of lower numbers,
    or for its neighbours.
    """

    #: Bytes of the workspace at an executed shape. 0 if blocks share no tile at that shape.
    workspace_bytes: Callable[[Tiling, Parameters, TileGrid, Gemm], int]
    #: Words of the workspace when all data that a block waits for is there. The last argument is
    #: True for the last block of the launch that waits, and False for the others.
    ready_words: Callable[[Tiling, Parameters, TileGrid, Gemm, bool], tuple[Words, ...]]
    #: Places in the workspace to which the rung copies A and B.
    copies: Callable[[Tiling, Parameters, Gemm], Copies] = lambda tiling, p, problem: Copies()
    #: Name of the parameter that is the number of resident blocks. They share the tiles of an
    #: incomplete last wave.
    workers: str | None = None
    #: Name of the parameter that is the number of blocks that share each tile.
    splits: str | None = None


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One rung: a kernel, and everything the toolkit knows of it without running it.

    `tile` makes the tiling from what the parameters set. `warp` says where the first warp reads and
    writes. `arguments` says what each argument of the kernel is. `rows_along_x` says that
    threadIdx.x and blockIdx.x run along the rows of C. `flat_block` launches a one-dimensional
    block. `multiple_of` is what N and K must be multiples of; the launcher pads with zeros.
    `max_extent` bounds M and N. `since` is the oldest architecture that the rung compiles for, as a
    number (compute capability 8.6 is 86). `dynamic_shared_bytes` is what a block asks for at
    launch. `order` says which tile of C each block computes and what grid that takes; by default
    along the rows of C, or along its columns with `rows_along_x`. `bulk_tiles` are those of a rung
    that copies whole tiles. `sharing` is that of a rung whose blocks share tiles of C.
    """

    name: str
    rung: int
    title: str
    idea: str
    file: str
    entry: str
    tile: Callable[..., Tiling]
    warp: Callable[[Tiling, Gemm], WarpAccesses] | None = None
    arguments: tuple[Role, ...] = PLAIN_ARGUMENTS
    parameters: Mapping[str, Parameter] = field(default_factory=lambda: MappingProxyType({}))
    constraints: tuple[Constraint, ...] = ()
    rows_along_x: bool = False
    flat_block: bool = False
    multiple_of: int = 1
    max_extent: int | None = None
    since: int = OLDEST
    dynamic_shared_bytes: Callable[[Tiling], int] = lambda tiling: 0
    order: Callable[[Parameters], Order] | None = None
    bulk_tiles: Callable[[Tiling], BulkTiles] | None = None
    sharing: TileSharing | None = None
    preferences: tuple[Preference, ...] = ()

    @property
    def source(self) -> str:
        """The CUDA C++ text of the kernel, with the text of the files that it includes.

        Line numbers of listings and counters are those of this text.
        """
        return _text(self.file)

    @property
    def defaults(self) -> dict[str, int]:
        return {name: parameter.default for name, parameter in self.parameters.items()}

    def parameter_sets(self) -> list[dict[str, int]]:
        """Every legal combination of the parameters, defaults among them."""
        all_values = combinations(self.parameters)
        return [one for one in all_values if all(c.holds(one) for c in self.constraints)]

    def macros(self, parameters: Parameters) -> dict[str, int]:
        """The preprocessor definitions that set `parameters`."""
        return {name.upper(): value for name, value in parameters.items()}

    def resolve(self, chosen: Parameters) -> dict[str, int]:
        """All parameters: the chosen ones over the defaults.

        Raises UnknownNameError for a parameter that the rung does not have, InputError for an
        illegal value or a broken constraint.
        """
        check_values(self.name, self.parameters, chosen)
        resolved = self.defaults | dict(chosen)
        for constraint in self.constraints:
            if not constraint.holds(resolved):
                values = ", ".join(f"{name} = {value}" for name, value in resolved.items())
                raise InputError(f"{self.name}: {values}: {constraint.text}")
        return resolved

    def check_shape(self, problem: Gemm) -> None:
        """Raise ShapeError when the rung cannot take `problem`, padded or not."""
        if self.max_extent and max(problem.m, problem.n) > self.max_extent:
            raise ShapeError(
                f"{self.name} cannot take {problem}: C has at most "
                f"{self.max_extent}x{self.max_extent} elements: choose M and N up to "
                f"{self.max_extent}, or another rung"
            )

    def runs_on(self, architecture: int) -> bool:
        """Whether the rung compiles for an architecture, given as a number."""
        return max(architecture, OLDEST) >= self.since

    def check_device(self, parameters: Parameters, device: Device) -> None:
        """Raise UnavailableError when `device` is too old, or has too little shared memory."""
        if not self.runs_on(int(device.sm_arch.removeprefix("sm_"))):
            raise UnavailableError(
                f"{self.name} needs sm_{self.since} or later, and {device.name} is "
                f"{device.sm_arch}: choose another device or another rung"
            )
        asked = self.dynamic_shared_bytes(self.tiling(parameters))
        most = device.shared_bytes_per_block_optin
        if asked > most:
            raise UnavailableError(
                f"{self.label(parameters)} takes {asked:,} bytes of shared memory per block, and "
                f"{device.name} gives at most {most:,}: choose smaller tiles or fewer stages"
            )

    def tiling(self, parameters: Parameters) -> Tiling:
        """How a launch cuts the product."""
        return tiling_of(self.tile, self.parameters, parameters)

    def executed(self, problem: Gemm) -> Gemm:
        """The shape that is launched: N and K padded to what the rung needs."""

        def padded(extent: int) -> int:
            return ceil_div(extent, self.multiple_of) * self.multiple_of

        return Gemm(m=problem.m, n=padded(problem.n), k=padded(problem.k))

    def tile_grid(self, parameters: Parameters, problem: Gemm) -> TileGrid:
        """How many tiles cover C at the executed shape `problem`."""
        tiling = self.tiling(parameters)
        return TileGrid(
            down=ceil_div(problem.m, tiling.block_m), across=ceil_div(problem.n, tiling.block_n)
        )

    def geometry(self, parameters: Parameters, problem: Gemm) -> Geometry:
        """Grid and block of one launch at the executed shape `problem`."""
        tiling = self.tiling(parameters)
        threads_m = tiling.block_m // tiling.thread_m
        threads_n = tiling.block_n // tiling.thread_n
        block = (threads_m, threads_n, 1) if self.rows_along_x else (threads_n, threads_m, 1)
        return Geometry(
            grid=self.order_of(parameters).grid(self.tile_grid(parameters, problem)),
            block=(tiling.threads_per_block, 1, 1) if self.flat_block else block,
            dynamic_shared_bytes=self.dynamic_shared_bytes(tiling),
        )

    def workspace(self, parameters: Parameters, problem: Gemm) -> int | None:
        """Bytes of the workspace at the executed shape, None for a rung that takes none."""
        if self.sharing is None:
            return None
        tiling, tiles = self.tiling(parameters), self.tile_grid(parameters, problem)
        return self.sharing.workspace_bytes(tiling, parameters, tiles, problem)

    def order_of(self, parameters: Parameters) -> Order:
        """Which tile of C each block computes."""
        if self.order is not None:
            return self.order(parameters)
        return COLUMN_MAJOR if self.rows_along_x else ROW_MAJOR

    def label(self, parameters: Parameters) -> str:
        """The name, with the parameters that differ from their defaults: "tiled:tile=16"."""
        changed = [
            f"{name}={value}"
            for name, value in parameters.items()
            if value != self.parameters[name].default
        ]
        return f"{self.name}:{','.join(changed)}" if changed else self.name


def combinations(
    declared: Mapping[str, Parameter], fixed: Parameters = MappingProxyType({})
) -> list[dict[str, int]]:
    """All values of all declared parameters that are not fixed, legal together or not."""
    values = [
        (fixed[name],) if name in fixed else parameter.legal for name, parameter in declared.items()
    ]
    return [dict(zip(declared, one, strict=True)) for one in product(*values)]


def check_values(rung: str, declared: Mapping[str, Parameter], chosen: Parameters) -> None:
    """Check that each chosen value is legal by itself.

    Raises UnknownNameError for a parameter that is not declared, InputError for an illegal value.
    """
    for name, value in chosen.items():
        if name not in declared:
            raise UnknownNameError(f"parameter of {rung}", name, declared)
        legal = declared[name].legal
        if value not in legal:
            raise InputError(
                f"{rung}: {name} = {value} is not legal: choose one of {', '.join(map(str, legal))}"
            )


def tiling_of(
    tile: Callable[..., Tiling], declared: Mapping[str, Parameter], parameters: Parameters
) -> Tiling:
    """How a launch with these parameters cuts the product."""
    fields = {field: parameters[name] for name, one in declared.items() for field in one.sets}
    return tile(**fields)


def _text(file: str) -> str:
    """A file of kernels/sgemm with the files that it includes in the place of their directives."""
    text = files("kernels").joinpath("sgemm", file).read_text(encoding="utf-8")
    return _INCLUDED.sub(lambda found: _text(found[1]), text)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A well-known implementation of the same product, measured beside the ladder."""

    name: str
    title: str
    idea: str
    arguments: tuple[Role, ...] = ("A", "B", "C", *EXTENTS)
