"""Loop rates of the paths' kernels, as the model of an SM predicts them: the numbers of `RATES`.

    python -m benchmarks.path_rates [--device h200]

A wave of blocks, from one to as many as fit on each SM, is predicted at K = 256 and at K = 512; the
difference is the time of the phases between. No GPU; each of the numbers takes up to a minute.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from analysis.devices import Device, find_device
from kernels.path_rates import RATES
from kernels.path_tiles import ANY_TILES, BULK_TILES, Tile
from kernels.paths import (
    Plan,
    any_layout,
    sliced,
)
from kernels.product import Product
from toolkit.execution.path_time import arguments_of
from toolkit.execution.simulate import simulate

DEPTHS = 256, 512
DOWN = 12  # tiles of a wave: 132 SMs are 12 x 11


def predicted_s(product: Product, plan: Plan, device: Device) -> float:
    """Predicted time of the first launch of a plan."""
    launch = plan.launches[0]
    sizes = {"A": product.a.span, "B": product.b.span, "C": product.c.span}
    sizes["workspace"] = max(plan.workspace_bytes // 4, 4)
    buffers = {name: np.zeros(size, np.float32) for name, size in sizes.items()}
    execution = simulate(
        launch.source,
        launch.entry,
        grid=launch.grid,
        block=launch.block,
        dynamic_shared_bytes=launch.dynamic_shared_bytes,
        arguments=arguments_of(launch, product, buffers),
        device=device,
        defines=launch.defines,
        blocks="representative",
        outputs=False,
    )
    assert execution.predicted is not None
    return execution.predicted.time_s


def clocks_of_phase(tile: Tile, blocks: int, device: Device) -> float:
    """Clocks in which an SM computes a phase of each of its `blocks`."""
    make = sliced if tile.is_bulk else any_layout
    across = device.sm_count // DOWN * blocks
    times = []
    for k in DEPTHS:
        product = Product(m=tile.bm * DOWN, n=tile.bn * across, k=k)
        times.append(predicted_s(product, make(product, tile, 1), device))
    phases = (DEPTHS[1] - DEPTHS[0]) // tile.bk
    return (times[1] - times[0]) * device.boost_clock_hz / phases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="h200")
    device = find_device(parser.parse_args().device)
    for tile in (*ANY_TILES, *BULK_TILES):
        name = f"{tile.name} bulk" if f"{tile.name} bulk" in RATES and tile.is_bulk else tile.name
        for blocks in range(1, len(RATES[name]) + 1):
            clocks = clocks_of_phase(tile, blocks, device)
            print(f"{name}, {blocks} per SM: {clocks:.0f} clocks", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
