"""The dispatcher: which rung, with which parameters, serves a shape on a device.

A configuration that was tuned there, or for a neighbouring shape, comes first; then a rule. None of
them needs padding: if a rung cannot take a shape as it is, another one can.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from analysis.devices import Device
from analysis.errors import UnavailableError
from analysis.geometry import ceil_div
from analysis.problem import Gemm
from kernels.ladder import BEST, LADDER
from kernels.selection import Selection
from kernels.variant import Preference, Variant
from toolkit.store.tuned import selection_of, tuned_for

# Clocks in addition to those of phases. They and the shares of peak of the ladder are from the
# products in docs/against_cublas.md.
START_CLOCKS = 3_500
SUMS_OF_SPLITS_CLOCKS = 5_000  # exchange of partial sums between splits
SUMS_OF_WORKERS_CLOCKS = 12_000  # exchange of partial sums between workers
SUM_OF_A_WORKER_CLOCKS = 1_750  # one worker after the other adds its partial sums
WORKERS_PER_SM = 2


def best_for(device: Device, shape: Gemm) -> Selection:
    """The rung and the parameters to launch, under the name "best".

    Raises RecordError where a file of tuned configurations is damaged, or names what the ladder
    no longer has.
    """
    entry = tuned_for(device, shape)
    found = by_rule(device, shape) if entry is None else selection_of(entry)
    if entry is not None and (entry.problem, entry.device) != (shape, device.name):
        found = _split_for(device, shape, found)
    if not _takes(found, device, shape):
        found = by_rule(device, shape)
    return Selection(variant=found.variant, parameters=found.parameters, stands_for=BEST)


def by_rule(device: Device, shape: Gemm) -> Selection:
    """Rung for a shape on a device on which nothing was tuned."""
    for candidate in _preferred(device, shape):
        if _takes(candidate, device, shape):
            return candidate
    raise AssertionError("one of them takes every shape on every device")


def _preferred(device: Device, shape: Gemm) -> Iterator[Selection]:
    """The fastest first, as far as an estimate goes, then those without one."""
    every = [
        (_split_for(device, shape, _selection(variant, preference, device)), preference)
        for variant in reversed(LADDER)
        for preference in variant.preferences
    ]
    estimated = [
        (_clocks(selection, preference.share_of_peak, device, shape), selection)
        for selection, preference in every
        if preference.share_of_peak is not None
    ]
    yield from (selection for _, selection in sorted(estimated, key=lambda one: one[0]))
    for selection, preference in every:
        is_enough = shape.c_elements >= preference.fewest_products * (shape.m + shape.n)
        if preference.share_of_peak is None and is_enough:
            yield selection


def _selection(variant: Variant, preference: Preference, device: Device) -> Selection:
    chosen = dict(preference.parameters)
    if (workers := _workers(variant)) is not None:
        wanted = WORKERS_PER_SM * device.sm_count
        legal = variant.parameters[workers].legal
        chosen[workers] = min(legal, key=lambda n: abs(n - wanted))
    return Selection(variant=variant, parameters=variant.resolve(chosen))


def _split_for(device: Device, shape: Gemm, selection: Selection) -> Selection:
    """Selection with as many blocks per tile as SMs and phases allow; a neighbour may have more."""
    variant = _variant(selection)
    if (name := _splits(variant)) is None:
        return selection
    depth = variant.tiling(selection.parameters).depth
    most = min(device.sm_count // _tiles(selection, shape), ceil_div(shape.k, depth))
    splits = max(n for n in variant.parameters[name].legal if n <= max(most, 1))
    return replace(selection, parameters={**selection.parameters, name: splits})


def _clocks(selection: Selection, share: float, device: Device, shape: Gemm) -> float:
    """Estimated clocks of the SM that is busy longest."""
    variant, parameters = _variant(selection), selection.parameters
    tiles, tiling = _tiles(selection, shape), variant.tiling(parameters)
    elements = tiling.block_m * tiling.block_n
    if (workers := _workers(variant)) is not None:  # all SMs take as much
        turns, products = 1, tiles * elements * shape.k / device.sm_count
        of_sums = _sums_of_workers(tiles, parameters[workers])
    else:  # an SM takes a block at a time
        name = _splits(variant)
        splits = parameters[name] if name else 1
        depth = ceil_div(ceil_div(shape.k, tiling.depth), splits) * tiling.depth
        turns, products = ceil_div(tiles * splits, device.sm_count), elements * depth
        of_sums = SUMS_OF_SPLITS_CLOCKS if splits > 1 else 0
    return of_sums + turns * (START_CLOCKS + products / device.fp32_lanes_per_sm / share)


def _sums_of_workers(tiles: int, workers: int) -> float:
    """Clocks to combine the tiles of an incomplete last wave.

    The block that finishes such a tile adds the partial sums of all blocks that share it.
    """
    dealt_out = tiles % workers
    if not dealt_out:
        return 0
    return SUMS_OF_WORKERS_CLOCKS + SUM_OF_A_WORKER_CLOCKS * workers / dealt_out


def _workers(variant: Variant) -> str | None:
    """Name of the parameter that is the number of workers, None if the rung has none."""
    return variant.sharing.workers if variant.sharing else None


def _splits(variant: Variant) -> str | None:
    """Name of the parameter that is the number of blocks per tile, None if the rung has none."""
    return variant.sharing.splits if variant.sharing else None


def _tiles(selection: Selection, shape: Gemm) -> int:
    return _variant(selection).tile_grid(selection.parameters, shape).tiles


def _variant(selection: Selection) -> Variant:
    assert isinstance(selection.variant, Variant)
    return selection.variant


def _takes(selection: Selection, device: Device, shape: Gemm) -> bool:
    variant = _variant(selection)
    try:
        variant.check_device(selection.parameters, device)
    except UnavailableError:
        return False
    return variant.executed(shape) == shape
