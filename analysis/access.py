"""Closed-form access counts of a tiled matrix product, guards included.

A `Tiling` describes a kernel of the ladder. The tiling and the shape determine two counts for each
memory (global, shared) and direction (load, store): the floats that threads move (elements), and
the thread-level instructions. A float4 is four elements in one instruction, and so are four
neighbouring reads of shared memory that the compiler merges. Elements follow from the source. The
compiler chooses the widths, which the `Tiling` states.

Notation: a block computes a tile of C of BM×BN, in phases of depth BK; G_m×G_n blocks
cover C; P = ceil(K / BK) phases cover K.

| access          | elements                          | because                                |
|-----------------|-----------------------------------|----------------------------------------|
| global load A   | M·K·G_n                           | every column of blocks reads all of A  |
| global load B   | K·N·G_m                           | every row of blocks reads all of B     |
| global store C  | M·N                               | once; C is loaded too when beta ≠ 0    |
| shared store A  | G_m·G_n·P·BM·BK                   | zeros are stored outside the matrix    |
| shared load A   | threads·P·BK·TM                   | each thread reads TM values per k      |

B has the same formulas. Without shared memory BK, P and the shared rows vanish, and every thread
loads for its own TM×TN tile: the same formulas with G_m = ceil(M / TM), G_n = ceil(N / TN).

An asynchronous copy moves data from global to shared memory in one instruction, which counts as a
global load: no instruction stores to shared memory. Outside the matrices the same copies fill in
zeros, so that they count as global loads of whole tiles: G_m·G_n·P·BM·BK of A, and the same for B.

A bulk copy moves one tile of A or of B, and only the part inside the matrix: the elements are those
of the table, the instructions one per tile. If several slices of a block share a tile along k, each
thread reads and multiplies only its slice's part of every phase. These counts exclude the partial
sums that slices or blocks exchange.

A thread makes TM·TN multiply-adds per k. With shared memory, threads multiply whole tiles, with
zeros outside the matrices: threads·TM·TN·P·BK. Without shared memory, threads outside C exit at
once: M·N·K.

On tensor cores a warp multiplies tiles of C of WM×WN together, and each of its threads holds a part
of A and of B: the shared loads of A are warps·P·BK·WM, and a warp executes one instruction for each
16×8 elements of C, step in k and product of parts. FP32 units then multiply nothing, unless tiles
are scaled: each sum of a phase takes one multiply-add.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from types import MappingProxyType
from typing import Literal

from analysis.argument_types import check_fields, checked
from analysis.devices import TensorFormat
from analysis.errors import InputError
from analysis.geometry import WARP_SIZE, ceil_div, exact_div
from analysis.problem import FLOAT_BYTES, Gemm

# Shared memory, the same on every architecture since sm_50.
WORD_BYTES = 4
BANKS = 32
WAVEFRONT_BYTES = BANKS * WORD_BYTES

Space = Literal["global", "shared"]
Operation = Literal["load", "store"]
Operand = Literal["A", "B", "C", "scales of A", "scales of B"]


# How tiles are copied to shared memory: by loads through registers, by asynchronous copies of all
# threads, or by bulk copies that one thread issues.
Copies = Literal["loads", "asynchronous", "bulk"]


PRODUCT_M, PRODUCT_N = 16, 8  # elements of C of one mma.sync
PRODUCT_K: Mapping[TensorFormat, int] = MappingProxyType({"TF32": 8, "FP16": 16})


def multiply_adds_of(tensor_format: TensorFormat) -> int:
    """Number of multiply-adds of one mma.sync."""
    return PRODUCT_M * PRODUCT_N * PRODUCT_K[tensor_format]


@dataclass(frozen=True, kw_only=True)
class TensorProducts:
    """Products of floats on tensor cores: each float is a sum of parts of a shorter format."""

    format: TensorFormat  #: of the parts
    products: int  #: products of parts for each product of floats
    warp_m: int  #: rows of the tile of C of one warp
    warp_n: int  #: columns of the tile of C of one warp
    relative_error: float  #: upper bound of the error of one product of floats, relative to it
    #: Rows of a tile of A and columns of one of B have scales, which sums are multiplied by.
    is_scaled: bool = False


@dataclass(frozen=True, kw_only=True)
class Tiling:
    """Division of the product into tiles: per block, per phase and per thread.

    Widths are floats per instruction, as the compiler emits them. Raises InputError for a size, a
    width or a number below 1.
    """

    block_m: int  #: rows of the tile of C of one block
    block_n: int  #: columns of the tile of C of one block
    block_k: int | None = None  #: depth of a phase, None without shared memory
    thread_m: int = 1  #: rows of the tile of C of one thread
    thread_n: int = 1  #: columns of the tile of C of one thread

    global_width: int = 1
    global_load_a_width: int | None = None  #: None if it is `global_width`
    shared_store_a_width: int = 1
    shared_store_b_width: int = 1
    shared_load_a_width: int = 1
    shared_load_b_width: int = 1

    asynchronous: bool = False  #: copies to shared memory bypass registers
    #: Rows that are not multiples of `global_width` are moved in single floats. If False, the
    #: launcher pads matrices with zeros.
    narrows: bool = False
    bulk: bool = False  #: one copy moves a whole tile
    slices: int = 1  #: groups of threads, each of which computes a part of every phase
    leaves_sums: bool = False  #: slices or blocks exchange partial sums in memory
    stages: int = 1  #: phases that shared memory holds at the same time
    tensor: TensorProducts | None = None  #: None if FP32 units multiply

    def __post_init__(self) -> None:
        check_fields(self)
        for name, value in vars(self).items():
            if isinstance(value, int) and not isinstance(value, bool) and value < 1:
                raise InputError(f"Tiling: {name} = {value}: give 1 or more")

    @property
    def threads_per_block(self) -> int:
        """Threads that share one tile of C; raises InputError if the tiles do not divide evenly."""
        of_a_slice = exact_div(self.block_m, self.thread_m) * exact_div(self.block_n, self.thread_n)
        return of_a_slice * self.slices

    @property
    def product_error(self) -> float:
        """Upper bound of the error of one product before sums, relative to it: 0 of float32."""
        return self.tensor.relative_error if self.tensor else 0.0

    @property
    def depth(self) -> int:
        """Depth of a phase in shared memory; 0 without shared memory."""
        return self.block_k or 0

    @property
    def shared_bytes(self) -> int:
        """Shared memory of one tile of A and one of B, in bytes."""
        return FLOAT_BYTES * self.depth * (self.block_m + self.block_n)

    def global_widths(self, problem: Gemm) -> tuple[int, int]:
        """Floats per global instruction in A, and in B and C.

        Raises InputError if a vector would extend beyond its row.
        """
        width_a = self.global_load_a_width or self.global_width
        return self._along(problem.k, width_a), self._along(problem.n, self.global_width)

    def _along(self, row: int, width: int) -> int:
        if self.narrows and row % width:
            return 1
        exact_div(row, width)
        return width


@dataclass(frozen=True, kw_only=True)
class Access:
    """Accesses of all threads of a launch to one operand in one memory space."""

    space: Space
    operation: Operation
    operand: Operand
    elements: int
    instructions: int

    @property
    def bytes(self) -> int:
        return FLOAT_BYTES * self.elements


@dataclass(frozen=True, kw_only=True)
class AccessCounts:
    """All accesses of one launch."""

    problem: Gemm
    threads: int  #: number of launched threads, including idle ones
    accesses: tuple[Access, ...]
    tiling: Tiling
    #: of FP32 units, for the products, including those of zeros outside the matrices
    multiply_adds: int
    tensor_instructions: int = 0  #: of warps, for the products, likewise

    @property
    def tensor_multiply_adds(self) -> int:
        """Number of multiply-adds on tensor cores."""
        tensor = self.tiling.tensor
        return self.tensor_instructions * multiply_adds_of(tensor.format) if tensor else 0

    @property
    def has_edges(self) -> bool:
        """True if some tiles exceed the matrices, so that guards exclude lanes."""
        extents = (
            (self.problem.m, self.tiling.block_m),
            (self.problem.n, self.tiling.block_n),
            (self.problem.k, self.tiling.block_k or 1),
        )
        return any(extent % tile for extent, tile in extents)

    def select(
        self,
        space: Space | None = None,
        operation: Operation | None = None,
        operand: Operand | None = None,
    ) -> tuple[Access, ...]:
        """Accesses that match every given key."""
        return tuple(
            access
            for access in self.accesses
            if space in (None, access.space)
            and operation in (None, access.operation)
            and operand in (None, access.operand)
        )

    def elements(
        self,
        space: Space,
        operation: Operation | None = None,
        operand: Operand | None = None,
    ) -> int:
        """Floats moved by the whole launch."""
        return sum(access.elements for access in self.select(space, operation, operand))

    def instructions(
        self,
        space: Space,
        operation: Operation | None = None,
        operand: Operand | None = None,
    ) -> int:
        """Thread-level instructions of the whole launch; divide by 32 for full warps."""
        return sum(access.instructions for access in self.select(space, operation, operand))

    def bytes(self, space: Space, operation: Operation | None = None) -> int:
        """Bytes moved by the whole launch."""
        return FLOAT_BYTES * self.elements(space, operation)

    def per_c_element(self, space: Space, operation: Operation | None = None) -> Fraction:
        """Floats moved per element of C, averaged over C."""
        return Fraction(self.elements(space, operation), self.problem.c_elements)

    def instructions_per_c_element(
        self, space: Space, operation: Operation | None = None
    ) -> Fraction:
        """Thread-level instructions per element of C, averaged over C."""
        return Fraction(self.instructions(space, operation), self.problem.c_elements)


@checked
def access_counts(tiling: Tiling, problem: Gemm) -> AccessCounts:
    """Accesses of one launch of a kernel with the tiling `tiling`.

    C is not loaded (beta = 0). Derivation: the table at the head of this file. Raises InputError if
    a vector width does not divide the length of the rows: a vector never extends beyond its row.
    """
    width_a, width_b = tiling.global_widths(problem)
    blocks_m = ceil_div(problem.m, tiling.block_m)
    blocks_n = ceil_div(problem.n, tiling.block_n)
    blocks = blocks_m * blocks_n
    if tiling.block_k:
        products = _tiled_products(tiling, problem, blocks)
        reads_a, reads_b = blocks_n, blocks_m  # of each element
    else:
        products = _Products(multiply_adds=problem.m * problem.n * problem.k)
        reads_a = ceil_div(problem.n, tiling.thread_n)
        reads_b = ceil_div(problem.m, tiling.thread_m)
    loads_a, loads_b = problem.a_elements * reads_a, problem.b_elements * reads_b
    if tiling.asynchronous:
        loads_a, loads_b = products.tiles_a, products.tiles_b
    copies = blocks * ceil_div(problem.k, tiling.block_k or 1) if tiling.bulk else None
    return AccessCounts(
        problem=problem,
        threads=blocks * tiling.threads_per_block,
        accesses=(
            _access("global", "load", "A", loads_a, width_a, bulk_copies=copies),
            _access("global", "load", "B", loads_b, width_b, bulk_copies=copies),
            _access("global", "store", "C", problem.c_elements, width_b),
            *products.accesses,
        ),
        tiling=tiling,
        multiply_adds=products.multiply_adds,
        tensor_instructions=products.tensor_instructions,
    )


@dataclass(frozen=True, kw_only=True)
class _Products:
    """Products of a launch, and the accesses to shared memory that bring their operands."""

    multiply_adds: int  # of FP32 units
    tensor_instructions: int = 0
    tiles_a: int = 0  # elements of all tiles of A in all phases
    tiles_b: int = 0
    accesses: tuple[Access, ...] = ()


def _tiled_products(tiling: Tiling, problem: Gemm, blocks: int) -> _Products:
    """Products of `blocks` blocks whose tiles are in shared memory."""
    phases = ceil_div(problem.k, tiling.depth)
    depth = phases * tiling.depth
    readers = exact_div(blocks * tiling.threads_per_block, tiling.slices)  # threads, of one k
    multiply_adds = readers * tiling.thread_m * tiling.thread_n * depth
    rows_read, columns_read = readers * tiling.thread_m, readers * tiling.thread_n
    tensor_instructions, accesses = 0, list[Access]()
    if (tensor := tiling.tensor) is not None:
        warps = exact_div(readers, WARP_SIZE)
        of_one = multiply_adds_of(tensor.format)
        tensor_instructions = tensor.products * exact_div(multiply_adds, of_one)
        rows_read, columns_read = warps * tensor.warp_m, warps * tensor.warp_n
        multiply_adds = 0
        if tensor.is_scaled:
            multiply_adds = readers * tiling.thread_m * tiling.thread_n * phases
            accesses += _of_scales(tiling, blocks, phases, readers)
    tiles_a, tiles_b = blocks * depth * tiling.block_m, blocks * depth * tiling.block_n
    if not (tiling.asynchronous or tiling.bulk):
        accesses += [
            _access("shared", "store", "A", tiles_a, tiling.shared_store_a_width),
            _access("shared", "store", "B", tiles_b, tiling.shared_store_b_width),
        ]
    accesses += [
        _access("shared", "load", "A", depth * rows_read, tiling.shared_load_a_width),
        _access("shared", "load", "B", depth * columns_read, tiling.shared_load_b_width),
    ]
    return _Products(
        multiply_adds=multiply_adds,
        tensor_instructions=tensor_instructions,
        tiles_a=tiles_a,
        tiles_b=tiles_b,
        accesses=tuple(accesses),
    )


def _of_scales(tiling: Tiling, blocks: int, phases: int, readers: int) -> list[Access]:
    """Accesses to the scales of tiles of A and B, in shared memory."""
    # each thread stores one for each float4 of A, and for one of B
    stored_a = phases * (blocks * tiling.block_m * tiling.depth // 4)
    stored_b = phases * 4 * blocks * tiling.threads_per_block
    return [
        _access("shared", "store", "scales of A", stored_a, 1),
        _access("shared", "store", "scales of B", stored_b, 4),
        _access("shared", "load", "scales of A", phases * readers * tiling.thread_m, 4),
        _access("shared", "load", "scales of B", phases * readers * tiling.thread_n, 4),
    ]


def _access(
    space: Space,
    operation: Operation,
    operand: Operand,
    elements: int,
    width: int,
    *,
    bulk_copies: int | None = None,
) -> Access:
    """Access in instructions of `width` floats, or in a number of bulk copies."""
    return Access(
        space=space,
        operation=operation,
        operand=operand,
        elements=elements,
        instructions=exact_div(elements, width) if bulk_copies is None else bulk_copies,
    )


@dataclass(frozen=True, kw_only=True)
class TileLimit:
    """Largest square tile with one thread per element, and the limit that the next one exceeds."""

    width: int
    limiter: Literal["threads per block", "shared memory"]
    widest_by_threads: int
    widest_by_shared: int


@checked
def largest_square_tile(*, max_threads_per_block: int, shared_bytes_per_block: int) -> TileLimit:
    """Largest T for which T² threads and 2·T²·4 bytes of shared memory fit into one block.

    T is a power of two, so that tiles divide common sizes. Raises InputError if not even a 1×1 tile
    fits.
    """
    by_threads = _widest_power_of_two(max_threads_per_block)
    by_shared = _widest_power_of_two(shared_bytes_per_block // (2 * FLOAT_BYTES))
    return TileLimit(
        width=min(by_threads, by_shared),
        limiter="threads per block" if by_threads <= by_shared else "shared memory",
        widest_by_threads=by_threads,
        widest_by_shared=by_shared,
    )


def _widest_power_of_two(area: int) -> int:
    """The largest power of two whose square is at most `area`."""
    if area < 1:
        raise InputError(f"no tile fits into an area of {area} elements: give at least 1")
    return 1 << isqrt(area).bit_length() - 1


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """Cost of one access in the memory system, for the first warp of the grid."""

    space: Space
    operation: Operation
    operand: Operand
    instruction_bytes: int  #: per lane, as the compiler emits the access
    requests: int  #: of all warps of the launch, if all warps are full
    #: Lower bound on the time that a request occupies the load/store unit:
    #: `coalescing.global_cycles`, or the wavefronts of a shared request.
    cycles: int

    sectors: int | None = None  #: 32-byte sectors per global request
    ideal_sectors: int | None = None  #: fewest sectors that could hold the distinct bytes
    wavefronts: int | None = None  #: per shared request
    ideal_wavefronts: int | None = None  #: fewest wavefronts that could return the distinct bytes
