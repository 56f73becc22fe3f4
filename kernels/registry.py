"""The ladder: every rung with its source, parameters, geometry, constraints and closed forms.

Adding a rung is one `.cu` file in kernels/sgemm/ and one `Variant` in `LADDER`, with the
addresses of its first warp in kernels/warps.py where no earlier rung's serve; the launcher, the
checks, the closed forms, the commands and the report follow from its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import product
from types import MappingProxyType

from analysis.access import AccessCounts, Tiling, access_counts
from analysis.errors import InputError, ShapeError, UnknownNameError
from analysis.geometry import Geometry, ceil_div
from analysis.problem import Gemm
from analysis.result import Pattern
from kernels import warps

Parameters = Mapping[str, int]

MAX_GRID_Y = 65_535  # CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A compile-time integer of a kernel, passed as a macro of the same name in capitals."""

    default: int
    legal: tuple[int, ...]
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A relation between parameters: `holds` decides, `text` explains."""

    text: str
    holds: Callable[[Parameters], bool]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One rung: a kernel, and everything the toolkit knows of it without running it.

    `rows_along_x` says that threadIdx.x and blockIdx.x run along the rows of C. `flat_block`
    launches a one-dimensional block. `multiple_of` is what N and K must be multiples of; the
    launcher pads with zeros. `max_extent` bounds M and N.
    """

    name: str
    rung: int
    title: str
    idea: str
    file: str
    entry: str
    tiling: Callable[[Parameters], Tiling]
    warp: Callable[[Tiling, Gemm], warps.WarpAccesses]
    parameters: Mapping[str, Parameter] = field(default_factory=lambda: MappingProxyType({}))
    constraints: tuple[Constraint, ...] = ()
    rows_along_x: bool = False
    flat_block: bool = False
    multiple_of: int = 1
    max_extent: int | None = None

    @property
    def source(self) -> str:
        """The CUDA C++ text of the kernel."""
        return files("kernels").joinpath("sgemm", self.file).read_text(encoding="utf-8")

    @property
    def defaults(self) -> dict[str, int]:
        return {name: parameter.default for name, parameter in self.parameters.items()}

    def parameter_sets(self) -> list[dict[str, int]]:
        """Every legal combination of the parameters, defaults among them."""
        legal = [parameter.legal for parameter in self.parameters.values()]
        sets = [dict(zip(self.parameters, values, strict=True)) for values in product(*legal)]
        return [
            chosen
            for chosen in sets
            if all(constraint.holds(chosen) for constraint in self.constraints)
        ]

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

    def executed(self, problem: Gemm) -> Gemm:
        """The shape that is launched: N and K padded to what the rung needs."""

        def padded(extent: int) -> int:
            return ceil_div(extent, self.multiple_of) * self.multiple_of

        return Gemm(m=problem.m, n=padded(problem.n), k=padded(problem.k))

    def geometry(self, parameters: Parameters, problem: Gemm) -> Geometry:
        """Grid and block of one launch at the executed shape `problem`."""
        tiling = self.tiling(parameters)
        along_m = ceil_div(problem.m, tiling.block_m)
        along_n = ceil_div(problem.n, tiling.block_n)
        threads_m = tiling.block_m // tiling.thread_m
        threads_n = tiling.block_n // tiling.thread_n
        if self.rows_along_x:
            grid_x, blocks_y, block = along_m, along_n, (threads_m, threads_n, 1)
        else:
            grid_x, blocks_y, block = along_n, along_m, (threads_n, threads_m, 1)
        grid_z = ceil_div(blocks_y, MAX_GRID_Y)
        return Geometry(
            grid=(grid_x, ceil_div(blocks_y, grid_z), grid_z),
            block=(tiling.threads_per_block, 1, 1) if self.flat_block else block,
        )

    def tile_of_c(self, parameters: Parameters, problem: Gemm, block: int) -> tuple[range, range]:
        """The rows and columns of C that a block computes, empty for one beyond C.

        `block` is its linear index in the grid, x fastest.
        """
        tiling = self.tiling(parameters)
        y, x = divmod(block, self.geometry(parameters, problem).grid[0])  # z carries y on
        row, column = (x, y) if self.rows_along_x else (y, x)
        return (
            _part(row, tiling.block_m, problem.m),
            _part(column, tiling.block_n, problem.n),
        )

    def access_counts(
        self, parameters: Parameters, problem: Gemm, *, reads_c: bool = False
    ) -> AccessCounts:
        """Closed-form counts of one launch at the executed shape `problem`."""
        return access_counts(self.tiling(parameters), problem, reads_c=reads_c)

    def patterns(self, parameters: Parameters, problem: Gemm) -> tuple[Pattern, ...]:
        """What the first warp of the grid asks of the memory system, one pattern per access."""
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


def _part(index: int, extent: int, end: int) -> range:
    """Piece number `index` of so many elements, as far as there are any."""
    return range(min(index * extent, end), min((index + 1) * extent, end))


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A well-known implementation of the same product, measured beside the ladder."""

    name: str
    title: str
    idea: str


def _power_of_two_tiles(meaning: str) -> Parameter:
    return Parameter(default=32, legal=(8, 16, 32), meaning=meaning)


def _tiling_2d(bk: int) -> Tiling:
    """128×128 elements of C per block, 8×8 per thread; the compiler merges reads by fours."""
    return Tiling(
        block_m=128,
        block_n=128,
        block_k=bk,
        thread_m=8,
        thread_n=8,
        shared_load_a_width=4,
        shared_load_b_width=4,
    )


_BK = {"bk": Parameter(default=8, legal=(8, 16), meaning="depth of a phase")}
_WIDTH = {"width": _power_of_two_tiles("width of the square block of threads")}

LADDER: tuple[Variant, ...] = (
    Variant(
        name="one-block",
        rung=1,
        title="One block",
        idea="one thread per element, all in a single block",
        file="01_one_block.cu",
        entry="sgemm_one_block",
        max_extent=32,
        tiling=lambda p: Tiling(block_m=32, block_n=32),
        warp=warps.one_thread_per_element,
    ),
    Variant(
        name="naive-uncoalesced",
        rung=2,
        title="Naive, uncoalesced",
        idea="a grid of blocks; neighbouring threads own neighbouring rows",
        file="02_naive_uncoalesced.cu",
        entry="sgemm_naive_uncoalesced",
        parameters=_WIDTH,
        rows_along_x=True,
        tiling=lambda p: Tiling(block_m=p["width"], block_n=p["width"]),
        warp=warps.uncoalesced,
    ),
    Variant(
        name="naive-coalesced",
        rung=3,
        title="Naive, coalesced",
        idea="neighbouring threads own neighbouring columns",
        file="03_naive_coalesced.cu",
        entry="sgemm_naive_coalesced",
        parameters=_WIDTH,
        tiling=lambda p: Tiling(block_m=p["width"], block_n=p["width"]),
        warp=warps.one_thread_per_element,
    ),
    Variant(
        name="tiled",
        rung=4,
        title="Tiled",
        idea="a block stages square tiles of A and B in shared memory",
        file="04_tiled.cu",
        entry="sgemm_tiled",
        parameters={"tile": _power_of_two_tiles("width of the square tiles and of the block")},
        tiling=lambda p: Tiling(
            block_m=p["tile"], block_n=p["tile"], block_k=p["tile"], shared_load_a_width=4
        ),
        warp=warps.tiled,
    ),
    Variant(
        name="coarsened-1d",
        rung=5,
        title="1D thread coarsening",
        idea="a thread computes TM elements of a column of C",
        file="05_coarsened_1d.cu",
        entry="sgemm_coarsened_1d",
        flat_block=True,
        parameters={
            "bk": Parameter(default=4, legal=(4, 8, 16), meaning="depth of a phase"),
            "tm": Parameter(default=16, legal=(4, 8, 16), meaning="elements of C per thread"),
        },
        constraints=(
            Constraint(
                text="bk * tm must be at least 64, so that every thread has something to copy",
                holds=lambda p: p["bk"] * p["tm"] >= 64,
            ),
        ),
        tiling=lambda p: Tiling(
            block_m=64, block_n=64, block_k=p["bk"], thread_m=p["tm"], shared_load_a_width=4
        ),
        warp=warps.coarsened,
    ),
    Variant(
        name="coarsened-2d",
        rung=6,
        title="2D thread coarsening",
        idea="a thread computes an 8x8 tile of C in registers",
        file="06_coarsened_2d.cu",
        entry="sgemm_coarsened_2d",
        flat_block=True,
        parameters=_BK,
        tiling=lambda p: _tiling_2d(p["bk"]),
        warp=warps.coarsened,
    ),
    Variant(
        name="vectorized",
        rung=7,
        title="Vectorized",
        idea="float4 copies, A transposed in shared memory",
        file="07_vectorized.cu",
        entry="sgemm_vectorized",
        flat_block=True,
        multiple_of=4,
        parameters=_BK,
        tiling=lambda p: replace(_tiling_2d(p["bk"]), global_width=4, shared_store_b_width=4),
        warp=warps.vectorized,
    ),
)

CPU = Reference(name="cpu", title="CPU", idea="SciPy's BLAS sgemm on the host")
CUBLAS = Reference(name="cublas", title="cuBLAS", idea="NVIDIA's library, float32 arithmetic")
REFERENCES: tuple[Reference, ...] = (CPU, CUBLAS)

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
    """A rung with all of its parameters, or a reference (without any)."""

    variant: Variant | Reference
    parameters: Mapping[str, int] = field(default_factory=dict)

    @property
    def label(self) -> str:
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
    name, _, settings = text.strip().lower().replace("_", "-").partition(":")
    variant = find(name)
    pairs = [_parse_setting(text, setting) for setting in settings.split(",") if setting]
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
