"""The dispatcher: which rung, with which parameters, serves a shape on a device.

A configuration that was tuned there comes first, or one of a neighbouring shape; then a rule. None
of them needs padding: what a rung cannot take as it is, another does.
"""

from __future__ import annotations

from analysis.devices import Device
from analysis.problem import Gemm
from kernels.registry import BEST, Selection, Variant, find, parse_selection
from toolkit.tuned import tuned_for

# By preference where nothing was tuned; on sm_90, a grid that does not fill the device splits K.
GENERAL = ("wide-thread-tile:fence=1", "double-buffered", "coarsened-2d")


def best_for(device: Device, shape: Gemm) -> Selection:
    """The rung and the parameters to launch, under the name "best".

    Raises RecordError where a file of tuned configurations is damaged.
    """
    found = tuned_for(device, shape)
    if found is None or not _takes(found, device, shape):
        found = by_rule(device, shape)
    return Selection(variant=found.variant, parameters=found.parameters, stands_for=BEST)


def by_rule(device: Device, shape: Gemm) -> Selection:
    """What should serve a shape on a device on which nothing was tuned."""
    for candidate in (*_of_bulk_copies(device, shape), *map(parse_selection, GENERAL)):
        if _takes(candidate, device, shape):
            return candidate
    raise AssertionError("coarsened-2d takes every shape on every device")


def _of_bulk_copies(device: Device, shape: Gemm) -> tuple[Selection, ...]:
    stream = find("stream-k")
    assert isinstance(stream, Variant)
    legal = stream.parameters["workers"].legal
    workers = min(legal, key=lambda n: abs(n - 2 * device.sm_count))  # two blocks per SM
    streamed = parse_selection(f"stream-k:workers={workers}")
    tiles = stream.tile_grid(streamed.parameters, shape).tiles
    return (streamed,) if tiles >= device.sm_count else (parse_selection("split-k"), streamed)


def _takes(selection: Selection, device: Device, shape: Gemm) -> bool:
    variant = selection.variant
    assert isinstance(variant, Variant)
    asked = variant.dynamic_shared_bytes(selection.parameters)
    return (
        variant.runs_on(int(device.sm_arch.removeprefix("sm_")))
        and asked <= device.shared_bytes_per_block_optin
        and variant.executed(shape) == shape
    )
