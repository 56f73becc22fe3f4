"""Sizes of arrays that are not given, from the addresses and guards of a kernel.

A few blocks are executed with large empty arrays, and their values are followed
(`toolkit.execution.proof`). An array ends behind the highest address that does not depend on data
loaded from memory. An access whose address depends on data makes no array larger.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from analysis.errors import InputError, ToolkitError
from analysis.geometry import Geometry
from reports import text as words
from toolkit.execution.proof import (
    Proof,
    Prover,
    RunBlocks,
    TooManyClassesError,
    far_apart,
    index_of,
)
from toolkit.execution.representatives import PERIOD, regions
from toolkit.execution.simulator import prepared
from toolkit.launch.element_types import type_named
from toolkit.launch.host_resources import sparse_zeros
from toolkit.launch.launch import Argument, buffers_of
from toolkit.launch.proposed import Size
from toolkit.launch.setup import PLAIN, LaunchSetup
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.signature import Declared
from toolkit.sass.machine import Run, one_by_one, run_blocks
from toolkit.sass.origins import DATA, Origins
from toolkit.sass.regions import Flow, Regions

WINDOW_BYTES = 1 << 32  # of each array whose size is asked for
MOST_BLOCKS = 256  # that are followed
MOST_INSTRUCTIONS = 1 << 30
# Copies whose addresses are not followed.
_BULK = {"UBLKCP", "UBLKPF", "UBLKRED", "UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "STAS"}


@dataclass(frozen=True, kw_only=True)
class GuessedSizes:
    """Bytes of arrays by the position of the argument, and the positions that must be given.

    `needed` are arrays that only addresses reach which depend on data, and integer arrays that may
    be what these addresses depend on.
    """

    sizes: Mapping[int, int]
    needed: tuple[int, ...]


class TrialFailedError(InputError):
    """A launch with empty arrays fails, so that it does not tell their sizes."""


@dataclass(frozen=True, kw_only=True)
class GuessedArrays:
    """Arrays that are not given, by the position of the argument, and a note that lists them."""

    sizes: Mapping[int, Size]
    note: str


def guessed_arrays(
    kernel: Kernel,
    geometry: Geometry,
    arguments: Sequence[Argument | None],
    declared: Sequence[Declared],
    refused: Callable[[str, Sequence[int]], InputError],
    setup: LaunchSetup = PLAIN,
) -> GuessedArrays:
    """The arrays that stand for the arguments that are None, in a launch with this `setup`.

    Raises what `refused` makes of the reason and the positions of arrays that must be given; else
    as `guessed_sizes` does.
    """
    types = {k: type_named(declared[k].dtype or "") for k, x in enumerate(arguments) if x is None}
    try:
        found = guessed_sizes(kernel, geometry, arguments, types, setup)
    except TrialFailedError as error:
        named = words.listing([declared[k].text for k in types])
        raise refused(f"{error}: give {named}", tuple(types)) from error
    if found.needed:
        named = words.listing([declared[k].text for k in found.needed])
        why = f"addresses of {kernel.name} depend on data, which says no sizes: give {named}"
        raise refused(why, found.needed)
    sizes = {
        k: Size(dtype=types[k].name, count=size // types[k].itemsize)
        for k, size in sorted(found.sizes.items())
    }
    listed = ", ".join(f"{declared[k].name or f'argument {k}'} {x}" for k, x in sizes.items())
    return GuessedArrays(sizes=sizes, note=f"sizes guessed from addresses and guards: {listed}")


def guessed_sizes(
    kernel: Kernel,
    geometry: Geometry,
    arguments: Sequence[Argument | None],
    element_types: Mapping[int, np.dtype[np.generic]],
    setup: LaunchSetup = PLAIN,
) -> GuessedSizes:
    """Sizes of the arguments that are None, whose elements have `element_types`.

    Raises TrialFailedError where the launch cannot be followed, and as `simulate` does for
    arguments.
    """
    unknown = [k for k, one in enumerate(arguments) if one is None]
    if any(one.opcode in _BULK for one in kernel.instructions):
        return GuessedSizes(sizes={}, needed=tuple(unknown))
    empty = sparse_zeros((WINDOW_BYTES,), np.uint8)
    windows = [
        empty.view(element_types[k]) if one is None else one for k, one in enumerate(arguments)
    ]
    found, by_data, is_read, follows_data = _reached(kernel, geometry, windows, setup)
    sizes = {k: _rounded(found[k], element_types[k].itemsize) for k in unknown if found[k]}
    unreached = [k for k in unknown if k not in sizes]
    indices = [
        k
        for k in unknown
        if element_types[k].kind in "iu" and k in is_read and (follows_data or unreached or by_data)
    ]
    needed = sorted({*unreached, *indices})
    return GuessedSizes(
        sizes={k: size for k, size in sizes.items() if k not in needed}, needed=tuple(needed)
    )


def _rounded(size: int, element: int) -> int:
    return -(-size // element) * element


def _reached(
    kernel: Kernel, geometry: Geometry, arguments: Sequence[Argument], setup: LaunchSetup
) -> tuple[dict[int, int], set[int], set[int], bool]:
    """Bytes that are reached of each array; those that data and loads reach; if data decide."""
    translated, bound, _ = prepared(kernel, geometry, arguments, setup=setup)
    flow = Flow(translated.linked.instructions, translated.lowered)

    def run(blocks: Sequence[int], of: Regions | None) -> Sequence[Run]:
        bound.restore()
        return run_blocks(
            replace(bound, regions=of),
            one_by_one(blocks),
            max_instructions=MOST_INSTRUCTIONS,
        )

    prover = Prover(grid=geometry.grid, flow=flow, run=run, most=MOST_BLOCKS)
    try:
        try:
            runs = _all_extremes(prover.proof(), run)
        except TooManyClassesError:
            of = flow.regions(prover.branches)
            blocks = {b for one in regions(geometry.grid, PERIOD) for b in one.members}
            runs = [*prover.runs.values(), *run(sorted(blocks), of)]
    except ToolkitError as error:
        raise TrialFailedError(
            f"the sizes of arrays of {kernel.name} cannot be guessed, because it fails with empty "
            "ones"
        ) from error
    origins = [one.origins for one in runs if one.origins is not None]
    arrays = list(buffers_of(arguments))
    offset = len(bound.buffers) - len(arrays)
    reach = _joined(origins)[offset:]
    follows_data = any(
        (one.depends[name] == DATA).any() for one in origins for name in ("address", "branch")
    )
    return (
        {k: int(row["bytes"]) for k, row in zip(arrays, reach, strict=True)},
        {k for k, row in zip(arrays, reach, strict=True) if row["by_data"]},
        {k for k, row in zip(arrays, reach, strict=True) if row["is_read"]},
        bool(follows_data),
    )


def _joined(origins: Collection[Origins]) -> NDArray[np.void]:
    rows = [one.reach for one in origins]
    found = rows[0].copy()
    for row in rows:
        for name in found.dtype.names or ():
            found[name] = np.maximum(found[name], row[name])
    return found


def _all_extremes(proof: Proof, run: RunBlocks) -> list[Run]:
    """The followed blocks of a proof, and the ends of each class: there addresses are highest."""
    ends = set[int]()
    for number in range(len(proof.leaders)):
        blocks = np.flatnonzero(proof.class_of == number)
        if len(blocks):
            ends |= {*far_apart(blocks, proof.grid), *_corners(blocks, proof)}
    more = sorted(ends - set(proof.runs))
    return [*proof.runs.values(), *(run(more, proof.regions) if more else [])]


def _corners(blocks: NDArray[np.int64], proof: Proof) -> set[int]:
    """The blocks of a class that are farthest along each diagonal of the grid."""
    x, y, z = index_of(blocks, proof.grid)
    found = set[int]()
    for signs in product((-1, 1), repeat=3):
        distance = sum(
            sign * along / max(1, extent)
            for sign, along, extent in zip(signs, (x, y, z), proof.grid, strict=True)
        )
        found.add(int(blocks[np.argmax(distance)]))
    return found
