"""The recipe of a product on a device: the rung that the ladder chooses, and copies for it.

A rung takes matrices that are stored row by row without gaps. An operand that is stored otherwise
is copied before the rung runs. The product then goes to a matrix of its own, and from there to the
output, if that is stored otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.resources import files

import numpy as np

from analysis.devices import Device
from analysis.geometry import ceil_div
from analysis.problem import FLOAT_BYTES, Gemm
from kernels.variant import FACTORS, Variant
from toolkit.launch.launch import Argument as LaunchArgument
from toolkit.launch.tensor_map import TensorMap
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.product.operands import WIDEST_BYTES, Layout, Operand
from toolkit.product.recipe import Argument, Buffer, Factor, Map, Pointer, Recipe, Step, Value
from toolkit.rungs.arguments import rung_arguments
from toolkit.rungs.best import best_for

COPY_FILE, COPY_ENTRY = "strided_copy.cu", "strided_copy"
COPY_TILE, COPY_THREADS = 32, 256  # rows and columns of a tile, threads of a block
MOST_COPY_BLOCKS = 2**16  # each takes several tiles then


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where the rung finds an operand."""

    buffer: Buffer
    operand: Operand
    caller: Buffer
    original: Operand  #: as the caller stored it

    @property
    def is_copy(self) -> bool:
        return self.buffer != self.caller

    def copy_bytes(self, batches: int) -> int:
        return FLOAT_BYTES * self.operand.span(batches) if self.is_copy else 0


def recipe_for(layout: Layout, device: Device) -> Recipe:
    """The launches that compute a product on a device.

    Raises ShapeError for a product that no rung takes, CompileError or UnavailableError without
    machine code of a kernel.
    """
    shape = Gemm(m=layout.m, n=layout.n, k=layout.k)
    selection = best_for(device, shape)
    variant, parameters = selection.variant, selection.parameters
    assert isinstance(variant, Variant)
    by_floats = variant.bulk_tiles is None and variant.multiple_of == 1
    batches = layout.batches
    a = _place(layout.a, "A", "copy of A", batches, by_floats)
    b = _place(layout.b, "B", "copy of B", batches, by_floats)
    c = _place(layout.c, "C", "product", batches, by_floats)
    copied = [place for place in (a, b) if place.is_copy]
    with ThreadPoolExecutor(1) as pool:  # compilers run side by side
        copier = pool.submit(_copier, device) if copied or c.is_copy else None
        kernel = compile_kernel(
            variant.source,
            variant.entry,
            target=device,
            name=variant.file,
            defines=variant.macros(parameters),
            options=(),
        )
        copier_image = copier.result() if copier else b""
    geometry = variant.geometry(parameters, shape)
    product = Step(
        image=kernel.image,
        entry=kernel.symbol,
        grid=geometry.grid,
        block=geometry.block,
        shared_bytes=geometry.dynamic_shared_bytes,
        arguments=_arguments(variant, parameters, shape, (a, b, c)),
        repeats=batches,
    )
    steps = [_copy(copier_image, place, batches) for place in copied]
    steps += [product]
    steps += [_copy_back(copier_image, c, batches)] if c.is_copy else []
    return Recipe(
        steps=tuple(steps),
        workspace_bytes=variant.workspace(parameters, shape) or 0,
        zeroed=_zeroed(variant, parameters, shape),
        copies_bytes=(a.copy_bytes(batches), b.copy_bytes(batches), c.copy_bytes(batches)),
    )


def _place(operand: Operand, caller: Buffer, copy: Buffer, batches: int, by_floats: bool) -> _Place:
    is_taken = operand.pitch == operand.columns and (
        by_floats or operand.alignment(batches) == WIDEST_BYTES
    )
    place = operand if is_taken else _without_gaps(operand)
    return _Place(
        buffer=caller if is_taken else copy, operand=place, caller=caller, original=operand
    )


def _without_gaps(operand: Operand) -> Operand:
    """The operand by rows. The matrices of a batch begin at multiples of `WIDEST_BYTES`."""
    unit = WIDEST_BYTES // FLOAT_BYTES
    batch = -(-operand.rows * operand.columns // unit) * unit if operand.batch else 0
    return Operand(operand.rows, operand.columns, operand.columns, 1, batch, WIDEST_BYTES)


def _arguments(
    variant: Variant, parameters: Mapping[str, int], shape: Gemm, places: Sequence[_Place]
) -> tuple[Argument, ...]:
    """Arguments of a rung; alpha is 1 and beta 0 if C is not the output.

    Each launch of a batch takes the next matrix.
    """
    stand_ins = [
        np.broadcast_to(np.float32(0), (place.operand.rows, place.operand.columns))
        for place in places
    ]
    size_bytes = variant.workspace(parameters, shape)
    workspace = np.broadcast_to(np.float32(0), (max((size_bytes or 0) // FLOAT_BYTES, 1),))
    starts = {
        id(array): Pointer(place.buffer, step_bytes=FLOAT_BYTES * place.operand.batch)
        for array, place in zip(stand_ins, places, strict=True)
    }
    starts[id(workspace)] = Pointer("workspace")
    a, b, c = stand_ins
    values = rung_arguments(variant, parameters, shape, (a, b, c), workspace=workspace)
    return tuple(
        Factor(role)  # type: ignore[arg-type]
        if role in FACTORS and not places[2].is_copy
        else _argument(value, starts)
        for role, value in zip(variant.arguments, values, strict=True)
    )


def _argument(value: LaunchArgument, starts: Mapping[int, Pointer]) -> Argument:
    if isinstance(value, np.generic):
        return Value(value.tobytes())
    if not isinstance(value, TensorMap):
        return starts[id(value)]
    tiling, start = value.tiling, starts[id(value.array)]
    return Map(
        replace(start, offset_bytes=value.offset),
        tiling.shape,
        tiling.pitches_bytes[:-1],
        tiling.box,
        tiling.swizzle,
        tiling.l2_promotion,
    )


def _zeroed(
    variant: Variant, parameters: Mapping[str, int], shape: Gemm
) -> tuple[tuple[int, int], ...]:
    if variant.sharing is None or not variant.workspace(parameters, shape):
        return ()
    tiling, tiles = variant.tiling(parameters), variant.tile_grid(parameters, shape)
    words = variant.sharing.ready_words(tiling, parameters, tiles, shape, False)
    return tuple((one.offset, FLOAT_BYTES * one.count) for one in words)


def _copier(device: Device) -> bytes:
    source = files("toolkit.product").joinpath(COPY_FILE).read_text(encoding="utf-8")
    return compile_kernel(source, COPY_ENTRY, target=device, name=COPY_FILE, options=()).image


def _copy(image: bytes, place: _Place, batches: int) -> Step:
    """The copy of an operand to the place where the rung reads it."""
    return _copying(
        image,
        (place.caller, place.original),
        (place.buffer, place.operand),
        batches if place.operand.batch else 1,
        (_float(1.0), _float(0.0)),
    )


def _copy_back(image: bytes, place: _Place, batches: int) -> Step:
    """alpha times the product, plus beta times the output, to the output."""
    return _copying(
        image,
        (place.buffer, place.operand),
        (place.caller, place.original),
        batches,
        (Factor("alpha"), Factor("beta")),
    )


def _copying(
    image: bytes,
    source: tuple[Buffer, Operand],
    target: tuple[Buffer, Operand],
    batches: int,
    factors: tuple[Argument, Argument],
) -> Step:
    (from_buffer, read), (to_buffer, written) = source, target
    tiles = batches * ceil_div(read.rows, COPY_TILE) * ceil_div(read.columns, COPY_TILE)
    sizes = (read.rows, read.columns, batches)
    strides = (
        read.row, read.column, read.batch, written.row, written.column, written.batch
    )  # fmt: skip
    return Step(
        image=image,
        entry=COPY_ENTRY,
        grid=(min(tiles, MOST_COPY_BLOCKS), 1, 1),
        block=(COPY_THREADS, 1, 1),
        shared_bytes=0,
        arguments=(
            Pointer(from_buffer),
            Pointer(to_buffer),
            *(Value(np.int32(size).tobytes()) for size in sizes),
            *(Value(np.int64(stride).tobytes()) for stride in strides),
            *factors,
        ),
    )


def _float(value: float) -> Value:
    return Value(np.float32(value).tobytes())
