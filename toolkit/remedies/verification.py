"""Comparison of what the same blocks of a kernel and of its edited version write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, lcm, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.errors import LaunchError, UnavailableError
from analysis.records.counters import InstructionCounts
from toolkit.execution.simulator import prepared
from toolkit.launch.element_types import epsilon, is_real, parts
from toolkit.launch.launch import Execution, buffer_labels, buffers_of
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.variable_names import is_of_user
from toolkit.remedies.edit import Edit
from toolkit.remedies.kernel_launch import KernelLaunch
from toolkit.sass.faults import describe
from toolkit.sass.machine import FaultError, run_blocks
from toolkit.sass.module_variables import outputs_of
from toolkit.sass.schedule_facts import schedule_facts
from toolkit.sass.space import PAGE_BYTES, Buffer
from toolkit.sass.statistics import instruction_counts
from toolkit.sass.translate import addresses_of

# Warp instructions that the compared blocks of one version execute: about 0.2 s of one core.
MOST_INSTRUCTIONS = 2_000_000
PATIENCE = 10  # times as many: an edited kernel that executes more is taken to hang
MOST_BLOCKS, LEAST_BLOCKS = 40, 4
AT_THE_ENDS = 4
# Units in the last place that rounding may change, relative to the largest value nearby: FP32 sums
# of a few hundred terms in another order differ by less.
MOST_ULPS = 128
SMALL = 2.0**-10  # of the largest value of a page: below, differences are relative to this

Ranges = tuple[range, ...]


@dataclass(frozen=True, kw_only=True)
class Pages:
    """Written pages of a buffer by number, and the content of the others."""

    label: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    content: NDArray[np.uint8]
    written: Mapping[int, NDArray[np.uint8]]

    def page(self, number: int) -> NDArray[np.uint8]:
        start = number * PAGE_BYTES
        return self.written.get(number, self.content[start : start + PAGE_BYTES])


@dataclass(frozen=True, kw_only=True)
class Written:
    """Pages that blocks wrote. `stored_bytes`: of their plain stores to global memory.

    The number shows stores of values that memory held before, which pages do not.
    """

    pages: tuple[Pages, ...]
    stored_bytes: int


@dataclass(frozen=True, kw_only=True)
class OutputComparison:
    """Comparison of what `blocks` of the `of` blocks wrote before and after an edit.

    `error`: largest difference relative to the value (to `SMALL` of the largest value of its page
    if that is more); inf for integers, and where only one is finite. `bound`: the most that
    rounding explains. Of arrays of several types, both are of the one that differs most, relative
    to its bound. `place`: the first element that differs by more, else the first different
    one, with both values; empty if all bytes are equal.
    """

    blocks: int
    of: int
    error: float
    bound: float
    place: str = ""

    @property
    def is_equal(self) -> bool:
        return not self.place

    @property
    def is_rounding(self) -> bool:
        return not self.is_equal and self.error <= self.bound

    @property
    def text(self) -> str:
        return f"{self.blocks:,} of {self.of:,} blocks compared"


def compared_blocks(before: KernelLaunch, after: KernelLaunch, executed: int) -> Ranges | None:
    """Pairs of ranges are compared: the blocks of `before`. None if all blocks take too long.

    `executed`: warp instructions of all blocks.
    """
    blocks = prod(before.grid)
    if executed <= MOST_INSTRUCTIONS:
        return (range(blocks),)
    units = _threads_of_unit(before, after) // prod(before.block)
    whole = blocks // units
    most = min(MOST_BLOCKS, whole, MOST_INSTRUCTIONS * whole // executed)
    if most < min(LEAST_BLOCKS, whole):
        return None
    ends = min(AT_THE_ENDS, most // 2)
    random = np.random.default_rng(0).choice(whole, size=most - ends, replace=False)
    chosen = {*range(ends // 2), *range(whole - (ends - ends // 2), whole), *map(int, random)}
    return tuple(range(unit * units, (unit + 1) * units) for unit in sorted(chosen))


def same_work(blocks: Ranges, before: KernelLaunch, after: KernelLaunch) -> Ranges:
    """The blocks of `after` with the threads of these blocks of `before`."""
    if before.grid == after.grid:
        return blocks
    old, new = prod(before.block), prod(after.block)
    return tuple(range(one.start * old // new, one.stop * old // new) for one in blocks)


def _threads_of_unit(before: KernelLaunch, after: KernelLaunch) -> int:
    """Threads of the smallest group of whole blocks of both launches."""
    if before.grid == after.grid:
        return prod(before.block)
    return lcm(prod(before.block), prod(after.block))


def written_by(launch: KernelLaunch, kernel: Kernel, blocks: Ranges) -> Written:
    """Return what some blocks write. Raises as `simulate` does.

    Raises UnavailableError if they wait for blocks that are not among them, or execute very many
    instructions.
    """
    translated, bound, _ = prepared(
        kernel, launch.geometry, launch.arguments, device=launch.device, setup=launch.setup
    )
    waits = bound.blocks_meet or schedule_facts(kernel).waits
    if waits and blocks != (range(launch.geometry.blocks),):
        raise UnavailableError("blocks wait for each other, and not all of them are compared")
    bound = replace(bound, leaves_bounds=launch.allow_out_of_bounds)
    most = min(PATIENCE * MOST_INSTRUCTIONS, launch.max_instructions)
    try:
        runs = run_blocks(bound, list(blocks), max_instructions=most)
    except FaultError as error:
        raise LaunchError(describe(error.fault, translated, bound)) from None
    labels, arrays = buffer_labels(launch.arguments, kernel.declared), buffers_of(launch.arguments)
    first = len(bound.buffers) - len(arrays)
    found = [
        _pages_of_buffer(buffer, labels[position], array.dtype, array.shape)
        for buffer, (position, array) in zip(bound.buffers[first:], arrays.items(), strict=True)
    ]
    by_address = {buffer.address: buffer for buffer in bound.buffers}
    for symbol, address in addresses_of(kernel).items():
        if is_of_user(symbol):
            buffer = by_address[address]
            values = outputs_of(kernel, {symbol: buffer.data}, launch.setup.symbols)
            (array,) = values.values()
            found.append(_pages_of_buffer(buffer, buffer.name, array.dtype, array.shape))
    stored = sum(_stored_bytes(instruction_counts(translated, run.counts)) for run in runs)
    return Written(pages=tuple(found), stored_bytes=stored)


def _stored_bytes(instructions: Sequence[InstructionCounts]) -> int:
    return sum(
        one.predicated * one.bytes_per_lane
        for one in instructions
        if (one.space, one.action) == ("global", "store")
    )


def _pages_of_buffer(
    buffer: Buffer, label: str, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> Pages:
    assert buffer.shared is not None, "buffers are not bound in place"
    content, state = buffer.shared
    return Pages(
        label=label,
        dtype=dtype,
        shape=shape,
        content=content,
        written={
            int(page): buffer.data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]
            for page in np.flatnonzero(state)
        },
    )


def written_by_all(launch: KernelLaunch, kernel: Kernel, execution: Execution) -> Written:
    """All pages of the buffers and of the variables after a launch of all blocks."""
    labels = buffer_labels(launch.arguments, kernel.declared)
    arrays = zip(buffers_of(launch.arguments), execution.outputs, strict=True)
    outputs = [(labels[position], output) for position, output in arrays]
    outputs += [(f"variable `{name}`", value) for name, value in execution.symbols.items()]
    found = []
    for label, output in outputs:
        content = np.ascontiguousarray(output).reshape(-1).view(np.uint8)
        pages = range(-(-content.size // PAGE_BYTES))
        found.append(
            Pages(
                label=label,
                dtype=output.dtype,
                shape=output.shape,
                content=content,
                written={k: content[k * PAGE_BYTES : (k + 1) * PAGE_BYTES] for k in pages},
            )
        )
    return Written(pages=tuple(found), stored_bytes=_stored_bytes(execution.instructions))


def compared(before: Written, after: Written, edit: Edit, blocks: int, of: int) -> OutputComparison:
    """The comparison of what `blocks` blocks wrote.

    An edit of the grid or the block must store as many bytes: where blocks write the values that
    memory held before, missing blocks would not be noticed.
    """
    old_bytes, new_bytes = before.stored_bytes, after.stored_bytes
    if (edit.grid or edit.block) and old_bytes != new_bytes:
        place = f"{new_bytes:,} bytes stored instead of {old_bytes:,}"
        return OutputComparison(blocks=blocks, of=of, error=inf, bound=0.0, place=place)
    worst, place, is_beyond = (0.0, inf), "", False
    for old, new in _in_both(before.pages, after.pages):
        for page in sorted({*old.written, *new.written}):
            a, b = old.page(page), new.page(page)
            if np.array_equal(a, b):
                continue
            of_page, of_rounding = _error(old.dtype, a, b), _bound(old.dtype)
            if not place or (of_page > of_rounding and not is_beyond):
                place, is_beyond = _place(old, page, a, b), of_page > of_rounding
            worst = max(worst, (of_page, of_rounding), key=_relative_to_bound)
    error, bound = worst
    return OutputComparison(blocks=blocks, of=of, error=error, bound=bound, place=place)


def _relative_to_bound(found: tuple[float, float]) -> tuple[float, float]:
    """Order of errors with their bounds: by their ratio, of equal ones by the smaller bound."""
    error, bound = found
    return error / bound if bound else inf if error else 0.0, -bound


def _in_both(before: Sequence[Pages], after: Sequence[Pages]) -> list[tuple[Pages, Pages]]:
    """The buffers and variables of both versions.

    A variable that only one version has is left out: a kernel of a header is edited there, and
    cannot use what the file that includes the header declares.
    """
    known = {one.label: one for one in after}
    return [(one, known[one.label]) for one in before if one.label in known]


def _whole_elements(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of the elements of a page; bytes if elements lie across the ends of pages."""
    return dtype if PAGE_BYTES % dtype.itemsize == 0 else np.dtype(np.uint8)


def _bound(dtype: np.dtype[Any]) -> float:
    """Relative difference that rounding explains; of a struct, that of its least exact field."""
    leaves = (part.dtype for part in parts(np.zeros(1, _whole_elements(dtype))))
    return max((MOST_ULPS * epsilon(leaf) for leaf in leaves if is_real(leaf)), default=0.0)


def _error(dtype: np.dtype[Any], a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    """Largest relative difference of two pages; inf for integers and where one is not finite.

    Bytes between the fields of structs are no difference.
    """
    old, new = (parts(one.view(_whole_elements(dtype))) for one in (a, b))
    return max(map(_error_of, old, new))


def _error_of(old: NDArray[Any], new: NDArray[Any]) -> float:
    if not is_real(old.dtype):
        return 0.0 if np.array_equal(old, new) else inf
    return float(np.max(_relative_differences(old, new)))


def _relative_differences(old: NDArray[Any], new: NDArray[Any]) -> NDArray[np.float64]:
    """Of real numbers: 0 where only the bits of NaN or the sign of zero differ."""
    x, y = (one.astype(np.float64) for one in (old, new))
    largest = np.max(np.abs(x[np.isfinite(x)]), initial=0.0)
    # where all are zeros, any other number is far away
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.abs(x - y) / np.maximum(np.abs(x), SMALL * largest)
    found = np.where(np.isfinite(x) & np.isfinite(y), found, inf)
    return np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, found)


def _place(pages: Pages, page: int, a: NDArray[np.uint8], b: NDArray[np.uint8]) -> str:
    """The first element that differs: 'argument 0, float32[64] at [3]: 2.0 instead of 1.0'.

    Of real numbers it is the first one that differs by more than rounding, if there is any.
    """
    size = pages.dtype.itemsize
    offset = int(np.flatnonzero(a != b)[0])
    if is_real(pages.dtype) and PAGE_BYTES % size == 0:
        differences = _relative_differences(a.view(pages.dtype), b.view(pages.dtype))
        beyond = np.flatnonzero(differences > _bound(pages.dtype))
        offset = int(beyond[0]) * size if beyond.size else offset
    element = (page * PAGE_BYTES + offset) // size
    if PAGE_BYTES % size:
        return f"{pages.label}, element {element}"
    at = ", ".join(str(int(k)) for k in np.unravel_index(element, pages.shape))
    start = offset // size * size
    old, new = (_value(one, start, pages.dtype) for one in (a, b))
    return f"{pages.label} at [{at}]: {new} instead of {old}"


def _value(page: NDArray[np.uint8], start: int, dtype: np.dtype[Any]) -> str:
    return str(page[start : start + dtype.itemsize].view(dtype)[0])
