"""The dispatcher: which rung, with which parameters, serves a shape on a device.

A configuration that was tuned there comes first, or one of a neighbouring shape; then a rule. None
of them needs padding: what a rung cannot take as it is, another does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from analysis.devices import Device
from analysis.geometry import ceil_div
from analysis.problem import Gemm
from kernels.registry import BEST, SPLIT_DEPTH, Selection, Variant, find, parse_selection
from toolkit.tuned import selection_of, tuned_for

# By preference where nothing was tuned.
GENERAL = ("wide-thread-tile:fence=1", "double-buffered", "coarsened-2d")
# Rungs of bulk copies by the share of peak at which their phases multiply, once they run.
STREAMS = {"stream-k": 0.88, "tall-thread-tile": 0.91}
SPLITS = {
    "split-k:bm=128,bn=64,stages=4": 0.82,
    "split-k:stages=4": 0.815,
    "split-k:bn=64,slices=8,stages=4": 0.8,
    "split-k:bn=32,tn=8,slices=8,stages=5": 0.65,
}
# What comes to that: a start, and the sums that blocks leave for each other. These and the shares
# are of products whose times docs/against_cublas.md has.
START_CLOCKS, SUMS_OF_SPLITS_CLOCKS = 3_500, 5_000
SUMS_OF_WORKERS_CLOCKS, SUM_OF_A_WORKER_CLOCKS = 12_000, 1_750  # one after the other
# Copying A and B is one part in so many of multiplying them, at least: M·N / (M + N).
FEWEST_PRODUCTS_OF_A_COPY = 1024


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
    """What should serve a shape on a device on which nothing was tuned."""
    for candidate in (*_of_bulk_copies(device, shape), *map(parse_selection, GENERAL)):
        if _takes(candidate, device, shape):
            return candidate
    raise AssertionError("coarsened-2d takes every shape on every device")


def _of_bulk_copies(device: Device, shape: Gemm) -> Iterator[Selection]:
    """Those for sm_90, the fastest first, as far as an estimate goes."""
    workers = min(_legal("stream-k", "workers"), key=lambda n: abs(n - 2 * device.sm_count))
    shares = {f"{name}:workers={workers}": share for name, share in STREAMS.items()} | SPLITS
    candidates = [
        (_split_for(device, shape, parse_selection(name)), share) for name, share in shares.items()
    ]
    candidates.sort(key=lambda one: _clocks(one[0], one[1], device, shape))
    yield from (selection for selection, share in candidates)
    if shape.c_elements >= FEWEST_PRODUCTS_OF_A_COPY * (shape.m + shape.n):
        yield parse_selection(f"realigned:workers={workers}")


def _split_for(device: Device, shape: Gemm, selection: Selection) -> Selection:
    """As many blocks for a tile as find SMs and phases: what a neighbour had may not."""
    if "splits" not in selection.parameters:
        return selection
    most = min(device.sm_count // _tiles(selection, shape), ceil_div(shape.k, SPLIT_DEPTH))
    splits = max(n for n in _legal("split-k", "splits") if n <= max(most, 1))
    return replace(selection, parameters={**selection.parameters, "splits": splits})


def _clocks(selection: Selection, share: float, device: Device, shape: Gemm) -> float:
    """Of the SM that is busy the longest."""
    tiles, elements = _tiles(selection, shape), _tile_elements(selection)
    if "workers" in selection.parameters:  # all SMs take as much
        turns, products = 1, tiles * elements * shape.k / device.sm_count
        of_sums = _sums_of_workers(tiles, selection.parameters["workers"])
    else:  # an SM takes a block at a time
        splits = selection.parameters["splits"]
        depth = ceil_div(ceil_div(shape.k, SPLIT_DEPTH), splits) * SPLIT_DEPTH
        turns, products = ceil_div(tiles * splits, device.sm_count), elements * depth
        of_sums = SUMS_OF_SPLITS_CLOCKS if splits > 1 else 0
    return of_sums + turns * (START_CLOCKS + products / device.fp32_lanes_per_sm / share)


def _sums_of_workers(tiles: int, workers: int) -> float:
    """Whoever ends a tile of those that fill no turn adds the sums of all who share it."""
    dealt_out = tiles % workers
    if not dealt_out:
        return 0
    return SUMS_OF_WORKERS_CLOCKS + SUM_OF_A_WORKER_CLOCKS * workers / dealt_out


def _legal(name: str, parameter: str) -> tuple[int, ...]:
    return _variant(name).parameters[parameter].legal


def _tiles(selection: Selection, shape: Gemm) -> int:
    variant = selection.variant
    assert isinstance(variant, Variant)
    return variant.tile_grid(selection.parameters, shape).tiles


def _tile_elements(selection: Selection) -> int:
    variant = selection.variant
    assert isinstance(variant, Variant)
    tiling = variant.tiling(selection.parameters)
    return tiling.block_m * tiling.block_n


def _variant(name: str) -> Variant:
    variant = find(name)
    assert isinstance(variant, Variant)
    return variant


def _takes(selection: Selection, device: Device, shape: Gemm) -> bool:
    variant = selection.variant
    assert isinstance(variant, Variant)
    asked = variant.geometry(selection.parameters, shape).dynamic_shared_bytes
    return (
        variant.runs_on(int(device.sm_arch.removeprefix("sm_")))
        and asked <= device.shared_bytes_per_block_optin
        and variant.executed(shape) == shape
    )
