"""The dispatcher: which rung, with which parameters, serves a shape on a device.

A configuration that was tuned there comes first, or one of a neighbouring shape; then a rule. None
of them needs padding: what a rung cannot take as it is, another does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from analysis.devices import Device
from analysis.problem import Gemm
from kernels.registry import BEST, Selection, Variant, find, parse_selection
from toolkit.tuned import selection_of, tuned_for

# By preference where nothing was tuned.
GENERAL = ("wide-thread-tile:fence=1", "double-buffered", "coarsened-2d")
# Rungs of bulk copies by what an element of a tile takes (docs/against_cublas.md), the first 1.
STREAMS = {"stream-k": 1.0, "tall-thread-tile": 0.96}
# And of blocks that share k, the narrow tile for narrow C.
SPLITS = {
    "split-k:bm=128,bn=64,stages=4": 1.0,
    "split-k:stages=4": 1.01,
    "split-k:bn=64,slices=8,stages=4": 1.1,
}
LEAST_K_OF_A_SPLIT = 64  # a phase
# Copying A and B is one part in so many of multiplying them, at least: M·N / (M + N).
FEWEST_PRODUCTS_OF_A_COPY = 1024


def best_for(device: Device, shape: Gemm) -> Selection:
    """The rung and the parameters to launch, under the name "best".

    Raises RecordError where a file of tuned configurations is damaged, or names what the ladder
    no longer has.
    """
    entry = tuned_for(device, shape)
    found = None if entry is None else selection_of(entry)
    if found is not None and entry is not None and entry.problem != shape:
        found = _with_splits_for(device, shape, found)
    if found is None or not _takes(found, device, shape):
        found = by_rule(device, shape)
    return Selection(variant=found.variant, parameters=found.parameters, stands_for=BEST)


def by_rule(device: Device, shape: Gemm) -> Selection:
    """What should serve a shape on a device on which nothing was tuned."""
    for candidate in (*_of_bulk_copies(device, shape), *map(parse_selection, GENERAL)):
        if _takes(candidate, device, shape):
            return candidate
    raise AssertionError("coarsened-2d takes every shape on every device")


def _of_bulk_copies(device: Device, shape: Gemm) -> Iterator[Selection]:
    """Those for sm_90: a grid that does not fill the device splits K."""
    workers = min(_legal("stream-k", "workers"), key=lambda n: abs(n - 2 * device.sm_count))
    costs = {f"{name}:workers={workers}": cost for name, cost in STREAMS.items()}
    streams = [one for one in _cheapest_first(costs, shape) if _takes(one, device, shape)]
    if all(_tiles(one, shape) < device.sm_count for one in streams):
        for one in _cheapest_first(SPLITS, shape):
            yield _with_splits_for(device, shape, one)
    yield from streams
    if shape.c_elements >= FEWEST_PRODUCTS_OF_A_COPY * (shape.m + shape.n):
        yield parse_selection(f"realigned:workers={workers}")


def _with_splits_for(device: Device, shape: Gemm, selection: Selection) -> Selection:
    """As many blocks for a tile as find SMs and enough of K, each: what a neighbour had may not."""
    if "splits" not in selection.parameters:
        return selection
    most = min(device.sm_count // _tiles(selection, shape), shape.k // LEAST_K_OF_A_SPLIT)
    splits = max(n for n in _legal("split-k", "splits") if n <= max(most, 1))
    return replace(selection, parameters={**selection.parameters, "splits": splits})


def _legal(name: str, parameter: str) -> tuple[int, ...]:
    return _variant(name).parameters[parameter].legal


def _tiles(selection: Selection, shape: Gemm) -> int:
    variant = selection.variant
    assert isinstance(variant, Variant)
    return variant.tile_grid(selection.parameters, shape).tiles


def _cheapest_first(costs: Mapping[str, float], shape: Gemm) -> list[Selection]:
    selections = {name: parse_selection(name) for name in costs}
    names = sorted(
        costs, key=lambda name: costs[name] * _elements_of_tiles(selections[name], shape)
    )
    return [selections[name] for name in names]


def _elements_of_tiles(selection: Selection, shape: Gemm) -> int:
    variant = selection.variant
    assert isinstance(variant, Variant)
    tiling = variant.tiling(selection.parameters)
    return _tiles(selection, shape) * tiling.block_m * tiling.block_n


def _variant(name: str) -> Variant:
    variant = find(name)
    assert isinstance(variant, Variant)
    return variant


def _takes(selection: Selection, device: Device, shape: Gemm) -> bool:
    variant = selection.variant
    assert isinstance(variant, Variant)
    asked = variant.dynamic_shared_bytes(selection.parameters)
    return (
        variant.runs_on(int(device.sm_arch.removeprefix("sm_")))
        and asked <= device.shared_bytes_per_block_optin
        and variant.executed(shape) == shape
    )
