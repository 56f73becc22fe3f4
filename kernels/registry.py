"""The ladder: every rung with its source, parameters, geometry, constraints and closed forms.

Adding a rung is one `.cu` file in kernels/sgemm/ and one `Variant` in `LADDER`; the launcher, the
checks, the closed forms, the commands and the report follow from its fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from itertools import product
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from analysis.access import AccessCounts, Pattern, Tiling, access_counts
from analysis.devices import Device
from analysis.errors import InputError, ShapeError, UnavailableError, UnknownNameError
from analysis.geometry import Geometry, ceil_div
from analysis.problem import FLOAT_BYTES, Gemm
from analysis.traffic.grid import (
    COLUMN_MAJOR,
    ROW_MAJOR,
    Order,
    Pieces,
    TileGrid,
    behind,
    in_bands,
    split,
    streamed,
)
from kernels import warps

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
    that copies whole tiles. `workspace_bytes` is the size of the workspace, which begins with
    zeros, and whose flags are left so. Its blocks wait for others of lower numbers, or for their
    neighbours; `served` is what the workspace says once all that they wait for is there, to the
    last one of all blocks or to the others. A rung with `copies` copies A and B there. `workers`
    names the parameter that says how many blocks run at a time, which share the tiles of an
    incomplete last wave; `splits` names the one that says how many blocks share each tile.
    """

    name: str
    rung: int
    title: str
    idea: str
    file: str
    entry: str
    tile: Callable[..., Tiling]
    warp: Callable[[Tiling, Gemm], warps.WarpAccesses] | None = None
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
    workspace_bytes: Callable[[Parameters, TileGrid, Gemm], int] | None = None
    served: Callable[[Parameters, TileGrid, Gemm, bool], tuple[Words, ...]] | None = None
    copies: Callable[[Parameters, Gemm], Copies] | None = None
    workers: str | None = None
    splits: str | None = None
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

    def combinations(self, fixed: Parameters = MappingProxyType({})) -> list[dict[str, int]]:
        """All values of all parameters that are not fixed, legal together or not."""
        values = [
            (fixed[name],) if name in fixed else parameter.legal
            for name, parameter in self.parameters.items()
        ]
        return [dict(zip(self.parameters, one, strict=True)) for one in product(*values)]

    def parameter_sets(self) -> list[dict[str, int]]:
        """Every legal combination of the parameters, defaults among them."""
        return [one for one in self.combinations() if all(c.holds(one) for c in self.constraints)]

    def macros(self, parameters: Parameters) -> dict[str, int]:
        """The preprocessor definitions that set `parameters`."""
        return {name.upper(): value for name, value in parameters.items()}

    def resolve(self, chosen: Parameters) -> dict[str, int]:
        """All parameters: the chosen ones over the defaults.

        Raises UnknownNameError for a parameter that the rung does not have, InputError for an
        illegal value or a broken constraint.
        """
        self.check_values(chosen)
        resolved = self.defaults | dict(chosen)
        for constraint in self.constraints:
            if not constraint.holds(resolved):
                values = ", ".join(f"{name} = {value}" for name, value in resolved.items())
                raise InputError(f"{self.name}: {values}: {constraint.text}")
        return resolved

    def check_values(self, chosen: Parameters) -> None:
        """Raise as `resolve` for an unknown parameter or an illegal value, one by one."""
        for name, value in chosen.items():
            if name not in self.parameters:
                raise UnknownNameError(f"parameter of {self.name}", name, self.parameters)
            legal = self.parameters[name].legal
            if value not in legal:
                raise InputError(
                    f"{self.name}: {name} = {value} is not legal: "
                    f"choose one of {', '.join(map(str, legal))}"
                )

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
        return _tiling(self.tile, self.parameters, parameters)

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
        if self.workspace_bytes is None:
            return None
        return self.workspace_bytes(parameters, self.tile_grid(parameters, problem), problem)

    def order_of(self, parameters: Parameters) -> Order:
        """Which tile of C each block computes."""
        if self.order is not None:
            return self.order(parameters)
        return COLUMN_MAJOR if self.rows_along_x else ROW_MAJOR

    def tile_of_c(self, parameters: Parameters, problem: Gemm, block: int) -> tuple[range, range]:
        """The rows and columns of C that a block computes, empty for one beyond C.

        `block` is its linear index in the grid, x fastest.
        """
        tiling, tiles = self.tiling(parameters), self.tile_grid(parameters, problem)
        row, column = self.order_of(parameters).tile_of(np.array([block]), tiles)
        return (
            _part(int(row[0]), tiling.block_m, problem.m),
            _part(int(column[0]), tiling.block_n, problem.n),
        )

    def access_counts(
        self, parameters: Parameters, problem: Gemm, *, reads_c: bool = False
    ) -> AccessCounts:
        """Closed-form counts of one launch at the executed shape `problem`."""
        return access_counts(self.tiling(parameters), problem, reads_c=reads_c)

    def pieces(self, parameters: Parameters, problem: Gemm) -> Pieces:
        """What of which tiles of C each block computes at the executed shape `problem`."""
        phases = ceil_div(problem.k, self.tiling(parameters).block_k or 1)
        return self.order_of(parameters).pieces_of(self.tile_grid(parameters, problem), phases)

    def patterns(self, parameters: Parameters, problem: Gemm) -> tuple[Pattern, ...]:
        """What the first warp of the grid asks of the memory system, one pattern per access."""
        if self.warp is None:
            return ()
        return warps.patterns(
            self.warp(self.tiling(parameters), problem), self.access_counts(parameters, problem)
        )

    def label(self, parameters: Parameters) -> str:
        """The name, with the parameters that differ from their defaults: "tiled:tile=16"."""
        changed = [
            f"{name}={value}"
            for name, value in parameters.items()
            if value != self.parameters[name].default
        ]
        return f"{self.name}:{','.join(changed)}" if changed else self.name


def _tiling(
    tile: Callable[..., Tiling], declared: Mapping[str, Parameter], parameters: Parameters
) -> Tiling:
    fields = {field: parameters[name] for name, one in declared.items() for field in one.sets}
    return tile(**fields)


def _text(file: str) -> str:
    """A file of kernels/sgemm with the files that it includes in the place of their directives."""
    text = files("kernels").joinpath("sgemm", file).read_text(encoding="utf-8")
    return _INCLUDED.sub(lambda found: _text(found[1]), text)


def _part(index: int, extent: int, end: int) -> range:
    """Piece number `index` of so many elements, as far as there are any."""
    return range(min(index * extent, end), min((index + 1) * extent, end))


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A well-known implementation of the same product, measured beside the ladder."""

    name: str
    title: str
    idea: str
    arguments: tuple[Role, ...] = ("A", "B", "C", *EXTENTS)


# 128×128 elements of C per block, 8×8 per thread; the compiler merges reads by fours.
_TILE_2D = partial(
    Tiling,
    block_m=128,
    block_n=128,
    thread_m=8,
    thread_n=8,
    shared_load_a_width=4,
    shared_load_b_width=4,
)
_ASYNCHRONOUS = partial(
    _TILE_2D, global_width=4, global_load_a_width=1, asynchronous=True, narrows=True
)


BULK_DEPTH = 32  # rows of A of 128 bytes, the longest that a copy swizzles
SPLIT_DEPTH = 64  # of the split rung, for fewer phases: two copies each
FLAG_BYTES = 4
FLAGS_OF_A_SECTOR = 8
MOST_MEMBERS = 16  # blocks that add up at a time, of those that share a tile
FLAGS_ALIGNMENT = 128  # of the sums behind the flags
COUNTS_BYTES = 128  # between the sums and copies of A and B
ROW_FLOATS = 4  # of which the rows of a tensor map are multiples: 16 bytes


def row_floats(columns: int) -> int:
    """From row to row of a copy in the workspace."""
    return ceil_div(columns, ROW_FLOATS) * ROW_FLOATS


_BULK = partial(_TILE_2D, block_k=BULK_DEPTH, thread_n=16, global_width=4, bulk=True)
_STREAMED = partial(_BULK, leaves_sums=True)
_SPLIT = partial(_STREAMED, block_k=SPLIT_DEPTH)
_TALL = partial(_STREAMED, block_m=160, thread_m=10)


def _bulk_tiles(tiling: Tiling) -> BulkTiles:
    return BulkTiles(
        a=(tiling.block_m, BULK_DEPTH),
        b=(BULK_DEPTH, tiling.block_n),
        swizzle_a=FLOAT_BYTES * BULK_DEPTH,
    )


def _ring_bytes(tiling: Tiling) -> int:
    return tiling.stages * tiling.shared_bytes


def _ring_or_sums_bytes(tiling: Tiling) -> int:
    sums_bytes = FLOAT_BYTES * tiling.block_m * tiling.block_n * tiling.slices
    return max(_ring_bytes(tiling), sums_bytes)


def _flags_and_sums_bytes(tiling: Tiling, blocks: int, *, flags_of_a_block: int = 1) -> int:
    flags = ceil_div(FLAG_BYTES * flags_of_a_block * blocks, FLAGS_ALIGNMENT) * FLAGS_ALIGNMENT
    return flags + blocks * FLOAT_BYTES * tiling.block_m * tiling.block_n


def _of_workers(
    p: Parameters, tiles: TileGrid, problem: Gemm, tile: Callable[..., Tiling] = _STREAMED
) -> int:
    return _flags_and_sums_bytes(tile(), p["workers"]) if tiles.tiles % p["workers"] else 0


def _flags_of_workers(
    p: Parameters, tiles: TileGrid, problem: Gemm, is_last: bool
) -> tuple[Words, ...]:
    return (Words(count=p["workers"]),)


def _flags_of_splits(
    p: Parameters, tiles: TileGrid, problem: Gemm, is_last: bool
) -> tuple[Words, ...]:
    return (Words(count=tiles.tiles * p["splits"] * _flags_of_a_split(p["splits"])),)


def _flags_of_a_split(splits: int) -> int:
    """One from each member of its group, and one for the last group, in whole sectors."""
    flags = 1 + max(n for n in range(1, MOST_MEMBERS + 1) if splits % n == 0)
    return ceil_div(flags, FLAGS_OF_A_SECTOR) * FLAGS_OF_A_SECTOR


def _flags_and_counts_of_copies(
    p: Parameters, tiles: TileGrid, problem: Gemm, is_last: bool
) -> tuple[Words, ...]:
    """The last of the blocks that wait for copies knows it, as all others have been there."""
    flags = _flags_of_workers(p, tiles, problem, is_last)
    if not _realigned_copies(p, problem).end:
        return flags
    counts = _flags_and_sums_bytes(_TALL(), p["workers"])
    x, y, z = streamed(p["band"], p["workers"]).grid(tiles)
    known = x * y * z - 1 if is_last else 0
    return (
        *flags,
        Words(offset=counts, count=1, value=p["workers"]),
        Words(offset=counts + FLOAT_BYTES, count=1, value=known),
    )


def _realigned_copies(p: Parameters, problem: Gemm) -> Copies:
    """Of what has rows that are no multiple of `ROW_FLOATS` long: A's first, then B's."""
    copies_a, copies_b = problem.k % ROW_FLOATS != 0, problem.n % ROW_FLOATS != 0
    if not copies_a and not copies_b:
        return Copies()
    begin = _flags_and_sums_bytes(_TALL(), p["workers"]) + COUNTS_BYTES
    behind_a = begin + copies_a * FLOAT_BYTES * problem.m * row_floats(problem.k)
    end = behind_a + copies_b * FLOAT_BYTES * problem.k * row_floats(problem.n)
    return Copies(a=begin if copies_a else None, b=behind_a if copies_b else None, end=end)


def _of_realigning_workers(p: Parameters, tiles: TileGrid, problem: Gemm) -> int:
    """To the end of the last copy, or what workers leave where nothing is copied."""
    return _realigned_copies(p, problem).end or _of_workers(p, tiles, problem, _TALL)


def _of_splits(p: Parameters, tiles: TileGrid, problem: Gemm) -> int:
    if p["splits"] == 1:
        return 0
    flags, blocks = _flags_of_a_split(p["splits"]), tiles.tiles * p["splits"]
    return _flags_and_sums_bytes(_split_tiling(p), blocks, flags_of_a_block=flags)


def _split_tiling(p: Parameters) -> Tiling:
    return _tiling(_SPLIT, _SPLIT_PARAMETERS, p)


_BM = Parameter(default=128, legal=(64, 128), meaning="rows of C per block", sets=("block_m",))
_BN = Parameter(default=128, legal=(64, 128), meaning="columns of C per block", sets=("block_n",))
_DEPTH = Parameter(default=8, legal=(8, 16), meaning="depth of a phase", sets=("block_k",))
_RING_OF_TILES = Parameter(
    default=3, legal=(2, 3, 4), meaning="phases in shared memory at a time", sets=("stages",)
)
_TM = Parameter(default=8, legal=(8, 12), meaning="rows of C per thread", sets=("thread_m",))
_RING = {
    "bm": _BM,
    "bn": _BN,
    "bk": replace(_DEPTH, default=16, legal=(16, 32)),
    "stages": _RING_OF_TILES,
}
_STAGES = {"stages": replace(_RING_OF_TILES, legal=(2, 3))}
_BANDS = _STAGES | {
    "band": Parameter(default=8, legal=(4, 8, 16), meaning="rows of tiles of a band")
}
# two blocks for each SM of an RTX 5080, an H100 PCIe, an H100 or H200, a B200, an RTX 5090
_STREAM = _BANDS | {
    "workers": Parameter(
        default=264, legal=(168, 228, 264, 296, 340), meaning="blocks that run at a time"
    )
}
_SPLIT_PARAMETERS = {
    "bm": replace(_BM, default=64, legal=(64, 96, 128)),
    "bn": replace(_BN, legal=(32, 48, 64, 128)),
    "tm": _TM,
    "tn": Parameter(
        default=16, legal=(8, 12, 16), meaning="columns of C per thread", sets=("thread_n",)
    ),
    "slices": Parameter(
        default=4, legal=(2, 4, 8), meaning="groups of warps that share k", sets=("slices",)
    ),
    "splits": Parameter(
        default=1,
        legal=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 132),
        meaning="blocks that share a tile",
    ),
    "stages": replace(_RING_OF_TILES, legal=(3, 4, 5)),
}
MOST_SHARED_BYTES = 227 * 1024  # of a block from sm_90 on, CUDA C++ Programming Guide
_SPLIT_FITS = (
    Constraint(
        text="tm and tn are 8 and 8, 8 and 16, or 12 and 12",
        holds=lambda p: (p["tm"], p["tn"]) in ((8, 8), (8, 16), (12, 12)),
    ),
    Constraint(
        text="8 tm must divide bm, and 4 tn divide bn, so that warps fill a tile",
        holds=lambda p: p["bm"] % (8 * p["tm"]) == 0 and p["bn"] % (4 * p["tn"]) == 0,
    ),
    Constraint(
        text="a block has at most 512 threads, with 128 registers each or more",
        holds=lambda p: (
            _split_tiling(p).threads_per_block <= (512 if p["tm"] * p["tn"] <= 64 else 256)
        ),
    ),
    Constraint(
        text="ring and sums must fit into the 227 KiB of shared memory of a block",
        holds=lambda p: _ring_or_sums_bytes(_split_tiling(p)) + 1024 <= MOST_SHARED_BYTES,
    ),
)
_SQUARE = Parameter(
    default=32,
    legal=(8, 16, 32),
    meaning="width of the square block of threads",
    sets=("block_m", "block_n"),
)


def _next(before: Variant, name: str, **changes: Any) -> Variant:
    """The rung after another: as that one, but for what is given."""
    rung, stem = before.rung + 1, name.replace("-", "_")
    own = {"file": f"{rung:02}_{stem}.cu", "entry": f"sgemm_{stem}", "preferences": ()}
    return replace(before, name=name, rung=rung, **{**own, **changes})


_ONE_BLOCK = Variant(
    name="one-block",
    rung=1,
    title="One block",
    idea="one thread per element, all in a single block",
    file="01_one_block.cu",
    entry="sgemm_one_block",
    max_extent=32,
    tile=partial(Tiling, block_m=32, block_n=32),
    warp=warps.one_thread_per_element,
)
_NAIVE_UNCOALESCED = _next(
    _ONE_BLOCK,
    "naive-uncoalesced",
    title="Naive, uncoalesced",
    idea="a grid of blocks; neighbouring threads own neighbouring rows",
    max_extent=None,
    parameters={"width": _SQUARE},
    rows_along_x=True,
    tile=Tiling,
    warp=warps.uncoalesced,
)
_NAIVE_COALESCED = _next(
    _NAIVE_UNCOALESCED,
    "naive-coalesced",
    title="Naive, coalesced",
    idea="neighbouring threads own neighbouring columns",
    rows_along_x=False,
    warp=warps.one_thread_per_element,
)
_TILED = _next(
    _NAIVE_COALESCED,
    "tiled",
    title="Tiled",
    idea="a block stages square tiles of A and B in shared memory",
    parameters={
        "tile": replace(
            _SQUARE,
            meaning="width of the square tiles and of the block",
            sets=(*_SQUARE.sets, "block_k"),
        )
    },
    tile=partial(Tiling, shared_load_a_width=4),
    warp=warps.tiled,
)
_COARSENED_1D = _next(
    _TILED,
    "coarsened-1d",
    title="1D thread coarsening",
    idea="a thread computes TM elements of a column of C",
    flat_block=True,
    parameters={
        "bk": replace(_DEPTH, default=4, legal=(4, 8, 16)),
        "tm": replace(_TM, default=16, legal=(4, 8, 16), meaning="elements of C per thread"),
    },
    constraints=(
        Constraint(
            text="bk * tm must be at least 64, so that every thread has something to copy",
            holds=lambda p: p["bk"] * p["tm"] >= 64,
        ),
    ),
    tile=partial(Tiling, block_m=64, block_n=64, shared_load_a_width=4),
    warp=warps.coarsened,
)
_COARSENED_2D = _next(
    _COARSENED_1D,
    "coarsened-2d",
    title="2D thread coarsening",
    idea="a thread computes an 8x8 tile of C in registers",
    parameters={"bk": _DEPTH},
    constraints=(),
    tile=_TILE_2D,
    preferences=(Preference(),),
)
_VECTORIZED = _next(
    _COARSENED_2D,
    "vectorized",
    title="Vectorized",
    idea="float4 copies, A transposed in shared memory",
    multiple_of=4,
    tile=partial(_TILE_2D, global_width=4, shared_store_b_width=4),
    warp=warps.vectorized,
)
_CONFLICT_FREE = _next(
    _VECTORIZED,
    "conflict-free",
    title="Conflict-free",
    idea="layouts in shared memory that keep lanes off each other's banks",
    warp=warps.conflict_free,
)
_WARP_TILED = _next(
    _CONFLICT_FREE,
    "warp-tiled",
    title="Warp-tiled",
    idea="a warp owns a compact tile, its lanes laid out for merged reads",
    parameters={"bm": _BM, "bn": _BN, "bk": _DEPTH},
    warp=warps.warp_tiled,
)
_DOUBLE_BUFFERED = _next(
    _WARP_TILED,
    "double-buffered",
    title="Double-buffered",
    idea="the next tiles travel into registers while this phase computes",
    preferences=(Preference(),),
)
_ASYNC_COPY = _next(
    _DOUBLE_BUFFERED,
    "async-copy",
    title="Asynchronous copies",
    idea="a ring of tiles, copied past the registers; any shape without padding",
    multiple_of=1,
    since=80,
    parameters=_RING,
    constraints=(
        Constraint(
            text="bk * stages must be at most 64, so that the ring fits into shared memory",
            holds=lambda p: p["bk"] * p["stages"] <= 64,
        ),
    ),
    tile=_ASYNCHRONOUS,
    dynamic_shared_bytes=_ring_bytes,
    warp=warps.asynchronous,
)
_WIDE_THREAD_TILE = _next(
    _ASYNC_COPY,
    "wide-thread-tile",
    title="Wide thread tile",
    idea="8x16 elements of C per thread, in an order that reuses operands",
    parameters=_RING
    | {"fence": Parameter(default=0, legal=(0, 1), meaning="1: the compiler mixes no steps in k")},
    tile=partial(_ASYNCHRONOUS, thread_n=16),
    preferences=(Preference(parameters={"fence": 1}),),
)
_BULK_COPY = _next(
    _WIDE_THREAD_TILE,
    "bulk-copy",
    title="Bulk copies",
    idea="one thread has whole tiles copied; barriers in shared memory count their bytes",
    arguments=("tiles of A", "tiles of B", "C", *EXTENTS, *FACTORS),
    multiple_of=4,
    since=90,
    parameters=_STAGES,
    constraints=(),
    tile=_BULK,
    bulk_tiles=_bulk_tiles,
    warp=warps.bulk,
)
_FENCED = _next(
    _BULK_COPY,
    "fenced",
    title="Fenced",
    idea="an instruction that the compiler moves nothing across keeps operands in reuse",
)
_RASTERISED = _next(
    _FENCED,
    "rasterised",
    title="Rasterised",
    idea="blocks take tiles of C in bands, which share more in L2",
    parameters=_BANDS,
    order=lambda p: in_bands(p["band"]),
)
_STREAM_K = _next(
    _RASTERISED,
    "stream-k",
    title="Stream-K",
    idea="the tiles that fill no whole turn are dealt out by phases",
    arguments=(*_RASTERISED.arguments, "workspace"),
    parameters=_STREAM,
    tile=_STREAMED,
    order=lambda p: streamed(p["band"], p["workers"]),
    workspace_bytes=_of_workers,
    served=_flags_of_workers,
    workers="workers",
    preferences=(Preference(share_of_peak=0.88),),
)
_SPLIT_K = _next(
    _STREAM_K,
    "split-k",
    title="Split-K",
    idea="warps of a block, and blocks, share a tile by k: for a small C",
    parameters=_SPLIT_PARAMETERS,
    tile=_SPLIT,
    constraints=_SPLIT_FITS,
    dynamic_shared_bytes=_ring_or_sums_bytes,
    order=lambda p: split(p["splits"]),
    workspace_bytes=_of_splits,
    served=_flags_of_splits,
    workers=None,
    splits="splits",
    preferences=(
        Preference(parameters={"bm": 128, "bn": 64, "stages": 4}, share_of_peak=0.82),
        Preference(parameters={"stages": 4}, share_of_peak=0.815),
        Preference(parameters={"bn": 64, "slices": 8, "stages": 4}, share_of_peak=0.8),
        Preference(parameters={"bn": 32, "tn": 8, "slices": 8, "stages": 5}, share_of_peak=0.65),
    ),
)
_TALL_THREAD_TILE = _next(
    replace(_STREAM_K, rung=_SPLIT_K.rung),
    "tall-thread-tile",
    title="Tall thread tiles",
    idea="ten rows per thread: fewer floats are read for each multiply-add",
    tile=_TALL,
    workspace_bytes=partial(_of_workers, tile=_TALL),
    preferences=(Preference(share_of_peak=0.91),),
)
_REALIGNED = _next(
    _TALL_THREAD_TILE,
    "realigned",
    title="Realigned",
    idea="rows that bulk copies cannot take are first copied to where they can",
    arguments=(*_TALL_THREAD_TILE.arguments, "A", "B"),
    multiple_of=1,
    tile=partial(_TALL, narrows=True),
    warp=warps.realigned,
    order=lambda p: behind(p["workers"], streamed(p["band"], p["workers"])),
    workspace_bytes=_of_realigning_workers,
    served=_flags_and_counts_of_copies,
    copies=_realigned_copies,
    # copying A and B is one part in so many of multiplying them, or less
    preferences=(Preference(fewest_products=1024),),
)

LADDER: tuple[Variant, ...] = (
    _ONE_BLOCK,
    _NAIVE_UNCOALESCED,
    _NAIVE_COALESCED,
    _TILED,
    _COARSENED_1D,
    _COARSENED_2D,
    _VECTORIZED,
    _CONFLICT_FREE,
    _WARP_TILED,
    _DOUBLE_BUFFERED,
    _ASYNC_COPY,
    _WIDE_THREAD_TILE,
    _BULK_COPY,
    _FENCED,
    _RASTERISED,
    _STREAM_K,
    _SPLIT_K,
    _TALL_THREAD_TILE,
    _REALIGNED,
)

CPU = Reference(name="cpu", title="CPU", idea="SciPy's BLAS sgemm on the host")
CUBLAS = Reference(name="cublas", title="cuBLAS", idea="NVIDIA's library, float32 arithmetic")
BEST = Reference(
    name="best", title="Best", idea="the tuned rung and parameters for this shape and device"
)
REFERENCES: tuple[Reference, ...] = (BEST, CPU, CUBLAS)

BY_NAME: Mapping[str, Variant | Reference] = MappingProxyType(
    {variant.name: variant for variant in LADDER}
    | {reference.name: reference for reference in REFERENCES}
)


def find(name: str) -> Variant | Reference:
    """The rung or reference of that name; raises UnknownNameError with the nearest one."""
    if name not in BY_NAME:
        raise UnknownNameError("variant", name, BY_NAME)
    return BY_NAME[name]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A rung with all of its parameters, or a reference (without any).

    `stands_for` is the name under which it was asked for, where that was another.
    """

    variant: Variant | Reference
    parameters: Mapping[str, int] = field(default_factory=dict)
    stands_for: Reference | None = None

    @property
    def label(self) -> str:
        if self.stands_for is not None:
            return self.stands_for.name
        if isinstance(self.variant, Reference):
            return self.variant.name
        return self.variant.label(self.parameters)


def parse_selection(text: str) -> Selection:
    """The selection that `text` names: "tiled", "tiled:tile=16", "coarsened-1d:bk=8,tm=8".

    Raises UnknownNameError or InputError with the remedy.
    """
    variant, chosen = parse_settings(text)
    if isinstance(variant, Reference):
        return Selection(variant=variant)
    return Selection(variant=variant, parameters=variant.resolve(chosen))


def parse_settings(text: str) -> tuple[Variant | Reference, dict[str, int]]:
    """What `text` names, and the legal values that it gives to parameters, each by itself."""
    name, colon, settings = text.strip().lower().replace("_", "-").partition(":")
    variant = find(name)
    pairs = [_parse_setting(text, one) for one in settings.split(",")] if colon else []
    chosen = dict(pairs)
    if len(chosen) < len(pairs):
        raise InputError(f"{text!r}: a parameter is given twice: give each one value")
    if isinstance(variant, Variant):
        variant.check_values(chosen)
    elif chosen:
        raise InputError(f"{text!r}: {name} is a reference and has no parameters")
    return variant, chosen


def _parse_setting(text: str, setting: str) -> tuple[str, int]:
    name, _, value = setting.partition("=")
    try:
        return name.strip(), int(value)
    except ValueError:
        raise InputError(
            f"{text!r}: {setting!r} is no setting: write name=integer, as in tiled:tile=16"
        ) from None


def whole_ladder() -> tuple[Selection, ...]:
    """Every rung with its default parameters, then the references."""
    rungs = tuple(Selection(variant=v, parameters=v.defaults) for v in LADDER)
    return rungs + tuple(Selection(variant=reference) for reference in REFERENCES)
