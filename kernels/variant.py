"""Declaration of a rung, and the facts that follow from it without running the kernel."""

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
# Role of a kernel argument: a matrix, a tensor map of a matrix, an extent, a factor, or memory
# through which blocks exchange data.
Role = Literal[
    "A", "B", "C", "tiles of A", "tiles of B", "M", "N", "K", "alpha", "beta", "workspace"
]
EXTENTS: tuple[Role, ...] = ("M", "N", "K")
FACTORS: tuple[Role, ...] = ("alpha", "beta")
PLAIN_ARGUMENTS: tuple[Role, ...] = ("A", "B", "C", *EXTENTS, *FACTORS)

_INCLUDED = re.compile(r'^#include "(\w+\.cuh)"\n', re.MULTILINE)
OLDEST = 75  # oldest architecture of today's compilers; older devices get its code, and a note


@dataclass(frozen=True, kw_only=True)
class RungParameter:
    """A compile-time integer of a kernel, passed as a macro of the same name in capitals."""

    default: int
    legal: tuple[int, ...]
    meaning: str
    sets: tuple[str, ...] = ()  #: fields of the rung's `Tiling` that get the value


@dataclass(frozen=True, kw_only=True)
class Preference:
    """Parameters with which a rung may be chosen for a shape for which nothing was tuned."""

    parameters: Parameters = field(default_factory=dict)
    #: Fraction of the peak rate that the main loop reaches. Preferences without it come after all
    #: others, those of later rungs first.
    share_of_peak: float | None = None
    #: Lower bound on M·N / (M + N), the average number of products that an element of A and B is
    #: in. It counts only for preferences without `share_of_peak`.
    fewest_products: int = 0


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A relation between parameters."""

    text: str  #: the relation, as an error message states it
    holds: Callable[[Parameters], bool]


@dataclass(frozen=True, kw_only=True)
class BulkTiles:
    """Tiles of A and B that one bulk copy moves each, by tensor maps of A and B."""

    a: tuple[int, int]  #: rows and columns
    b: tuple[int, int]  #: rows and columns
    swizzle_a: int  #: bytes within which the 16-byte pieces of a row of A are swizzled


@dataclass(frozen=True, kw_only=True)
class Words:
    """Consecutive 32-bit words with the same value."""

    count: int
    offset: int = 0  #: in bytes
    value: int = 1


@dataclass(frozen=True, kw_only=True)
class Copies:
    """Offsets in the workspace of copies of A and B, in bytes.

    The length of a copy's rows is a multiple of `kernels.workspace.ROW_FLOATS`.
    """

    a: int | None = None  #: None if A is not copied
    b: int | None = None  #: None if B is not copied
    end: int = 0  #: offset of the first byte after the copies, 0 if there are none


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
    """One rung: a kernel, and everything that the toolkit knows about it without running it."""

    rung: int  #: number in the ladder, from 1
    name: str  #: in commands, for example "split-k"
    title: str  #: in reports
    idea: str  #: one line for lists and reports

    file: str  #: in kernels/sgemm/
    entry: str  #: name of the kernel in the file
    arguments: tuple[Role, ...] = PLAIN_ARGUMENTS
    since: int = OLDEST  #: oldest architecture, for example 86 for compute capability 8.6

    parameters: Mapping[str, RungParameter] = field(default_factory=lambda: MappingProxyType({}))
    constraints: tuple[Constraint, ...] = ()
    tile: Callable[..., Tiling]  #: called with the fields that the parameters set
    bulk_tiles: Callable[[Tiling], BulkTiles] | None = None  #: None without bulk copies
    #: Assignment of tiles of C to blocks. None: along rows of C, or columns if `rows_along_x`.
    order: Callable[[Parameters], Order] | None = None
    sharing: TileSharing | None = None  #: None if each tile of C has its own block

    rows_along_x: bool = False  #: threadIdx.x and blockIdx.x run along the rows of C
    flat_block: bool = False  #: the block is one-dimensional
    multiple_of: int = 1  #: of N and K: the launcher pads matrices with zeros
    max_extent: int | None = None  #: upper bound on M and N
    dynamic_shared_bytes: Callable[[Tiling], int] = lambda tiling: 0  #: per block

    warp: Callable[[Tiling, Gemm], WarpAccesses] | None = None  #: accesses of the first warp
    preferences: tuple[Preference, ...] = ()  #: for the dispatcher, `toolkit.rungs.best`

    @property
    def source(self) -> str:
        """CUDA C++ text of the kernel, in which included files replace their directives.

        Line numbers of listings and counters refer to this text.
        """
        return _text(self.file)

    @property
    def defaults(self) -> dict[str, int]:
        """Default value of each parameter."""
        return {name: parameter.default for name, parameter in self.parameters.items()}

    def parameter_sets(self) -> list[dict[str, int]]:
        """All legal combinations of parameters. The defaults are one of them."""
        all_values = combinations(self.parameters)
        return [one for one in all_values if all(c.holds(one) for c in self.constraints)]

    def macros(self, parameters: Parameters) -> dict[str, int]:
        """Preprocessor definitions that set `parameters`."""
        return {name.upper(): value for name, value in parameters.items()}

    def resolve(self, chosen: Parameters) -> dict[str, int]:
        """All parameters: the chosen ones, and the defaults of the others.

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
        """Raise ShapeError if the rung cannot compute `problem`, padded or not."""
        if self.max_extent and max(problem.m, problem.n) > self.max_extent:
            raise ShapeError(
                f"{self.name} cannot take {problem}: C has at most "
                f"{self.max_extent}x{self.max_extent} elements: choose M and N up to "
                f"{self.max_extent}, or another rung"
            )

    def runs_on(self, architecture: int) -> bool:
        """True if the rung compiles for an architecture, for example 86."""
        return max(architecture, OLDEST) >= self.since

    def check_device(self, parameters: Parameters, device: Device) -> None:
        """Raise UnavailableError if `device` is too old, or has too little shared memory."""
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
        """Tiling of the product with these parameters."""
        return tiling_of(self.tile, self.parameters, parameters)

    def executed(self, problem: Gemm) -> Gemm:
        """Shape that is launched: N and K are padded to multiples of `multiple_of`."""

        def padded(extent: int) -> int:
            return ceil_div(extent, self.multiple_of) * self.multiple_of

        return Gemm(m=problem.m, n=padded(problem.n), k=padded(problem.k))

    def tile_grid(self, parameters: Parameters, problem: Gemm) -> TileGrid:
        """Number of tiles that cover C at the executed shape `problem`."""
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
        """Bytes of the workspace at the executed shape `problem`, None if the rung has none."""
        if self.sharing is None:
            return None
        tiling, tiles = self.tiling(parameters), self.tile_grid(parameters, problem)
        return self.sharing.workspace_bytes(tiling, parameters, tiles, problem)

    def order_of(self, parameters: Parameters) -> Order:
        """Assignment of tiles of C to blocks."""
        if self.order is not None:
            return self.order(parameters)
        return COLUMN_MAJOR if self.rows_along_x else ROW_MAJOR

    def label(self, parameters: Parameters) -> str:
        """Name with the parameters that differ from their defaults, such as "tiled:tile=16"."""
        changed = [
            f"{name}={value}"
            for name, value in parameters.items()
            if value != self.parameters[name].default
        ]
        return f"{self.name}:{','.join(changed)}" if changed else self.name


def combinations(
    declared: Mapping[str, RungParameter], fixed: Parameters = MappingProxyType({})
) -> list[dict[str, int]]:
    """All combinations of legal values, with `fixed` values. Constraints are not applied."""
    values = [
        (fixed[name],) if name in fixed else parameter.legal for name, parameter in declared.items()
    ]
    return [dict(zip(declared, one, strict=True)) for one in product(*values)]


def check_values(rung: str, declared: Mapping[str, RungParameter], chosen: Parameters) -> None:
    """Check that each chosen value is a legal value of its parameter.

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
    tile: Callable[..., Tiling], declared: Mapping[str, RungParameter], parameters: Parameters
) -> Tiling:
    """Tiling that `tile` makes from the fields that the parameters set."""
    fields = {field: parameters[name] for name, one in declared.items() for field in one.sets}
    return tile(**fields)


def _text(file: str) -> str:
    """Text of a file of kernels/sgemm/, in which included files replace their directives."""
    text = files("kernels").joinpath("sgemm", file).read_text(encoding="utf-8")
    return _INCLUDED.sub(lambda found: _text(found[1]), text)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A well-known implementation of the same product, measured beside the ladder."""

    name: str
    title: str
    idea: str
    rung: int | None = None  #: its place above the ladder, None for a library
    #: of `toolkit.matmul`, whose launches it is; None for another implementation
    precision: Literal["fp32x"] | None = None
    is_counted: bool = True  #: it is one kernel of a GPU, whose counters can be collected
    arguments: tuple[Role, ...] = ("A", "B", "C", *EXTENTS)
