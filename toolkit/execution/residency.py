"""Number of resident blocks of a launch. Blocks that wait for each other depend on it."""

from __future__ import annotations

from analysis.comparison.accuracy import device_of
from analysis.devices import Device
from analysis.errors import InputError
from analysis.geometry import Geometry
from analysis.occupancy import occupancy
from toolkit.execution.traffic import Residence
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.machine import Bound


def residence_of(device: Device, kernel: Kernel, geometry: Geometry) -> Residence:
    """Number of blocks resident on one SM of a device. Raises InputError if none fits."""
    found = occupancy(
        device,
        threads_per_block=geometry.threads_per_block,
        registers_per_thread=kernel.resources.registers_per_thread,
        shared_bytes_per_block=kernel.resources.static_shared_bytes + geometry.dynamic_shared_bytes,
    )
    return Residence(device=device, blocks_per_sm=found.blocks_per_sm)


def most_resident(device: Device | None, kernel: Kernel, bound: Bound) -> int:
    """Number of clusters resident on `device`, or on a device of the kernel's architecture."""
    device = device or device_of(kernel.architecture)
    if device is None:
        return bound.clusters
    try:
        blocks = device.sm_count * residence_of(device, kernel, bound.geometry).blocks_per_sm
    except InputError:  # no block fits: the prediction reports it
        return bound.clusters
    return max(1, min(blocks // bound.cluster_blocks, bound.clusters))
