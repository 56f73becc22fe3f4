"""Number of resident blocks of a launch, on which blocks that wait for each other depend."""

from __future__ import annotations

from analysis.devices import Device, Limits, limits_of, most_sms
from analysis.errors import InputError
from analysis.geometry import Geometry
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.occupancy import occupancy
from toolkit.execution.traffic import Residence
from toolkit.machine_code.kernel import Kernel
from toolkit.sass.bound_launch import BoundLaunch


def residence_of(
    device: Device, kernel: Kernel, geometry: Geometry, l2: L2State = DEFAULT_L2
) -> Residence:
    """Number of blocks resident on one SM of a device. Raises InputError if none fits."""
    blocks_per_sm = _blocks_per_sm(device, kernel, geometry)
    return Residence(device=device, blocks_per_sm=blocks_per_sm, l2=l2)


def check_cooperative(device: Device | None, kernel: Kernel, bound: BoundLaunch) -> None:
    """Raise InputError for a cooperative launch whose blocks are not all resident at once.

    On `device`, or on the largest one that is known of the architecture.
    """
    most = most_resident(device, kernel, bound) * bound.cluster_blocks
    if bound.geometry.blocks > most:
        where = device.name if device else f"a GPU of {kernel.architecture}"
        raise InputError(
            f"{kernel.name}: a cooperative launch of {bound.geometry.blocks:,} blocks: {where} "
            f"holds at most {most:,} of them at the same time: launch so many, each of which loops "
            "over its part of the data"
        )


def most_resident(device: Device | None, kernel: Kernel, bound: BoundLaunch) -> int:
    """Number of clusters resident on `device`, or on the largest one of the architecture."""
    limits = device or limits_of(kernel.architecture)
    sms = device.sm_count if device else most_sms(kernel.architecture)
    if limits is None or not sms:
        return bound.clusters
    try:
        blocks = sms * _blocks_per_sm(limits, kernel, bound.geometry)
    except InputError:  # no block fits: the prediction reports it
        return bound.clusters
    return max(1, min(blocks // bound.cluster_blocks, bound.clusters))


def _blocks_per_sm(limits: Limits, kernel: Kernel, geometry: Geometry) -> int:
    found = occupancy(
        limits,
        threads_per_block=geometry.threads_per_block,
        registers_per_thread=kernel.resources.registers_per_thread,
        shared_bytes_per_block=kernel.resources.static_shared_bytes + geometry.dynamic_shared_bytes,
    )
    return found.blocks_per_sm
