"""The recipe of a product on a device: the path that `plan_for` chooses, and copies for it.

Paths take matrices with a leading dimension, transposed or not, and batches of them that lie one
after the other. An operand with other strides is copied first. If the output has such strides, the
product goes to a matrix of its own, and from there to the output.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from operator import itemgetter

import numpy as np

from analysis.argument_types import checked
from analysis.devices import Device
from analysis.errors import InputError, UnavailableError
from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES, LARGEST_DIMENSION
from kernels import paths, split_paths
from kernels.path_loops import OLDEST, capability
from kernels.path_times import basis, candidates, plan_for
from kernels.paths import PathLaunch, Plan
from kernels.product import Product, side_by_side
from reports.text import seconds
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.product.operands import WIDEST_BYTES, Layout, Operand
from toolkit.product.recipe import (
    Argument,
    Buffer,
    BufferPlace,
    Map,
    Precision,
    Recipe,
    RecipeStep,
    Scalar,
    Value,
)
from toolkit.rungs.arguments import L2_PROMOTION_BYTES

COPY_FILE, COPY_ENTRY = "strided_copy.cu", "strided_copy"
COPY_TILE, COPY_THREADS = 32, 256  # rows and columns of a tile, threads of a block
MOST_COPY_BLOCKS = 2**16  # each takes several tiles then
COMPILERS = 4  # that run side by side
OLDEST_OF_EARLY_STARTS = 90  # architectures whose launches may overlap


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Place where the kernels find an operand."""

    caller: Buffer
    original: Operand  #: as the caller stored it
    buffer: Buffer
    operand: Operand

    @property
    def is_copy(self) -> bool:
        return self.buffer != self.caller

    def copy_bytes(self, batches: int) -> int:
        return FLOAT_BYTES * self.operand.span(batches) if self.is_copy else 0


def recipe_for(layout: Layout, device: Device, precision: Precision = "fp32") -> Recipe:
    """The launches that compute a product on a device.

    Raises CompileError or UnavailableError without machine code of a kernel, UnavailableError for a
    device that lacks a precision, and ShapeError for a batch that no grid takes.
    """
    batches = layout.batches
    a = _place(layout.a, batches, "A", "copy of A")
    b = _place(layout.b, batches, "B", "copy of B")
    c = _place(layout.c, batches, "C", "product", is_output=True)
    product = _product(a.operand, b.operand, c.operand, batches)
    plan, note = _plan(device, product, precision)
    copied = [place for place in (a, b) if place.is_copy]
    copier, *images = _compiled(plan, device, with_copier=bool(copied) or c.is_copy)
    buffers: dict[str, Buffer] = {"A": a.buffer, "B": b.buffer, "C": c.buffer}
    buffers["workspace"] = "workspace"
    steps = [
        _copying(copier, (one.caller, one.original), (one.buffer, one.operand), batches, _AS_IT_IS)
        for one in copied
    ]
    factors = _AS_IT_IS if c.is_copy else _OF_CALL
    may_start_early = int(device.sm_arch.removeprefix("sm_")) >= OLDEST_OF_EARLY_STARTS
    for launch, image in zip(plan.launches, images, strict=True):
        steps.append(_step(launch, image, buffers, factors, may_start_early))
    if c.is_copy:
        copy, output = (c.buffer, c.operand), (c.caller, c.original)
        steps.append(_copying(copier, copy, output, batches, _OF_CALL))
    return Recipe(
        steps=tuple(steps),
        workspace_bytes=plan.workspace_bytes,
        zeroed_bytes=plan.zeroed_bytes,
        copies_bytes=(a.copy_bytes(batches), b.copy_bytes(batches), c.copy_bytes(batches)),
        note=note,
    )


@checked
def explain_choice(product: Product, device: Device, count: int = 3) -> str:
    """Name the path that computes a product on a device, the next ones, and what that rests on.

    It needs no GPU. A path is written with its parameters and the time that is estimated for it.
    `count` is the number of paths. Raises InputError if it is below 1, and UnavailableError for a
    device before sm_80.

    >>> from analysis.devices import find_device
    >>> print(explain_choice(Product(m=1, n=4096, k=4096), find_device("h100-sxm"), count=1))
    ... # doctest: +ELLIPSIS
    1x4096x4096 NN on NVIDIA H100 SXM5 80 GB: few-rows:1,splits=...
    estimated by closed forms, ...; no product was timed on NVIDIA H100 SXM5 80 GB
    """
    if count < 1:
        raise InputError(f"count = {count}: give 1 or more")
    _check_device(device)
    found = sorted(candidates(device, product), key=itemgetter(0))[:count]
    told = [f"{make(product, *rest).label}, {seconds(time_s)}" for time_s, make, rest in found]
    lines = [f"{product} on {device.name}: {told[0]}", *(f"then {one}" for one in told[1:])]
    return "\n".join([*lines, basis(device)])


def _plan(device: Device, product: Product, precision: Precision) -> tuple[Plan, str]:
    """The launches of a product, and a note if its precision is another one than asked for."""
    note = ""
    if precision == "fp32x":
        found = split_paths.plan_for(device, product)
        if isinstance(found, Plan):
            return found, ""
        note = f'matmul: {product} is computed with precision = "fp32": {found}'
    _check_device(device)
    return plan_for(device, product), note


def _check_device(device: Device) -> None:
    if capability(device) < OLDEST:
        raise UnavailableError(
            f"matmul needs sm_{OLDEST} or later, and {device.name} is {device.sm_arch}: take the "
            "product of the arrays' own library"
        )


def _place(
    operand: Operand, batches: int, caller: Buffer, copy: Buffer, *, is_output: bool = False
) -> _Place:
    is_taken = (
        operand.is_plain
        and operand.leading <= LARGEST_DIMENSION
        and _is_apart(operand, batches)
        and not (is_output and operand.is_transposed)
    )
    return _Place(
        caller=caller,
        original=operand,
        buffer=caller if is_taken else copy,
        operand=operand if is_taken else _by_rows(operand),
    )


def _is_apart(operand: Operand, batches: int) -> bool:
    """True if a distance between the matrices of a batch describes them to a `Product`."""
    if operand.batch == 0 or operand.batch >= operand.span(1):
        return True
    columns = operand.rows if operand.is_transposed else operand.columns
    return side_by_side(batches, operand.batch, columns, operand.leading)


def _by_rows(operand: Operand) -> Operand:
    """The operand by rows, each of which begins at a multiple of `WIDEST_BYTES`."""
    unit = WIDEST_BYTES // FLOAT_BYTES
    pitch = ceil_div(operand.columns, unit) * unit
    batch = operand.rows * pitch if operand.batch else 0
    return Operand(operand.rows, operand.columns, pitch, 1, batch, WIDEST_BYTES)


def _product(a: Operand, b: Operand, c: Operand, batches: int) -> Product:
    return Product(
        m=c.rows,
        n=c.columns,
        k=a.columns,
        transpose_a=a.is_transposed,
        transpose_b=b.is_transposed,
        lda=a.leading,
        ldb=b.leading,
        ldc=c.leading,
        batch=batches,
        stride_a=a.batch,
        stride_b=b.batch,
        stride_c=c.batch,
        alignments=(a.address_alignment, b.address_alignment, c.address_alignment),
    )


def _compiled(plan: Plan, device: Device, *, with_copier: bool) -> list[bytes]:
    """Machine code of the copy, empty without one, and of each launch."""

    def compiled(launch: PathLaunch) -> bytes:
        return compile_kernel(
            launch.source,
            launch.entry,
            target=device,
            name=launch.file,
            defines=dict(launch.defines),
            options=(),
        ).image

    def copier() -> bytes:
        source = files("toolkit.product").joinpath(COPY_FILE).read_text(encoding="utf-8")
        return compile_kernel(source, COPY_ENTRY, target=device, name=COPY_FILE, options=()).image

    # kernels of one file with the same macros are in the same machine code
    of_code = {(one.file, *sorted(one.defines.items())): one for one in plan.launches}
    with ThreadPoolExecutor(COMPILERS) as pool:
        first = pool.submit(copier) if with_copier else None
        images = dict(zip(of_code, pool.map(compiled, of_code.values()), strict=True))
    every = [images[one.file, *sorted(one.defines.items())] for one in plan.launches]
    return [first.result() if first else b"", *every]


_OF_CALL: dict[str, Argument] = {name: Scalar(name) for name in ("alpha", "beta")}
_AS_IT_IS: dict[str, Argument] = {
    name: Value(np.float32(value).tobytes()) for name, value in (("alpha", 1.0), ("beta", 0.0))
}


def _step(
    launch: PathLaunch,
    image: bytes,
    buffers: dict[str, Buffer],
    factors: dict[str, Argument],
    may_start_early: bool,
) -> RecipeStep:
    def converted(one: paths.Argument) -> Argument:
        if isinstance(one, paths.Pointer):
            return BufferPlace(buffers[one.of], one.offset_bytes)
        if isinstance(one, paths.Factor):
            return factors[one.name]
        if isinstance(one, np.generic):
            return Value(one.tobytes())
        start = BufferPlace(buffers[one.pointer.of], one.pointer.offset_bytes)
        return Map(
            start,
            one.shape,
            one.pitches_bytes,
            one.box,
            one.swizzle_bytes,
            L2_PROMOTION_BYTES,
            one.dtype,
        )

    return RecipeStep(
        image=image,
        entry=launch.entry,
        grid=launch.grid,
        block=(launch.block, 1, 1),
        shared_bytes=launch.dynamic_shared_bytes,
        arguments=tuple(map(converted, launch.arguments)),
        waits_itself=may_start_early and launch.waits_itself,
    )


def _copying(
    image: bytes,
    source: tuple[Buffer, Operand],
    target: tuple[Buffer, Operand],
    batches: int,
    factors: dict[str, Argument],
) -> RecipeStep:
    """target = alpha·source + beta·target, for all matrices of a batch, or for the shared one."""
    (from_buffer, read), (to_buffer, written) = source, target
    count = batches if written.batch else 1
    sizes = read.rows, read.columns, count
    tiles = ceil_div(read.rows, COPY_TILE) * ceil_div(read.columns, COPY_TILE) * count
    strides = (
        *(read.row, read.column, read.batch),
        *(written.row, written.column, written.batch),
    )
    return RecipeStep(
        image=image,
        entry=COPY_ENTRY,
        grid=(min(tiles, MOST_COPY_BLOCKS), 1, 1),
        block=(COPY_THREADS, 1, 1),
        shared_bytes=0,
        arguments=(
            BufferPlace(from_buffer),
            BufferPlace(to_buffer),
            *(Value(np.int32(size).tobytes()) for size in sizes),
            *(Value(np.int64(stride).tobytes()) for stride in strides),
            *factors.values(),
        ),
    )
