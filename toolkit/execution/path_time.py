"""Predicted time of a product whose path has several launches (kernels/paths.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.devices import Device
from analysis.errors import UnavailableError
from analysis.l2_state import L2State
from analysis.problem import FLOAT_BYTES
from analysis.timing.in_turn import in_turn
from analysis.timing.predicted import Explanation, Predicted
from kernels.paths import Factor, PathLaunch, Plan, Pointer, TensorMapOf
from kernels.product import Product
from toolkit.execution.simulator import Simulator
from toolkit.launch.launch import launch_geometry
from toolkit.launch.tensor_map import TensorMap
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.rungs.arguments import L2_PROMOTION_BYTES

Floats = NDArray[np.float32]


def predicted_time(
    plan: Plan,
    product: Product,
    operands: Mapping[str, Floats],
    device: Device,
    l2: L2State,
    explanation: Explanation = Explanation.EFFECTS,
) -> Predicted:
    """The predicted time of a call on a device, all of its launches together.

    `operands` are the flat buffers of A, B and C. The first launch finds L2 in the state `l2`, the
    others find what they read, as far as L2 holds it. If the launches are of several kernels, none
    finds its code in the instruction cache. No launch sees what one before wrote: the
    workspace is zero, which stands for operands that need no special treatment. Raises as
    `simulate` does.
    """
    workspace = np.zeros(plan.workspace_bytes // FLOAT_BYTES + 1, np.float32)
    buffers = {**operands, "workspace": workspace}
    parts: list[tuple[str, Predicted]] = []
    code_stays = len({(launch.file, launch.entry) for launch in plan.launches}) == 1
    for launch in plan.launches:
        kernel = compile_kernel(
            launch.source,
            launch.entry,
            target=device,
            name=launch.file,
            defines=dict(launch.defines),
            options=(),
        )
        simulator = Simulator(
            device=device,
            blocks="representative",
            outputs=False,
            sums_decide=False,
            explanation=explanation,
            l2=L2State.WARM if parts else l2,
            code_stays=code_stays,
        )
        geometry = launch_geometry(launch.grid, launch.block, launch.dynamic_shared_bytes)
        found = simulator.run(kernel, geometry, arguments_of(launch, product, buffers))
        if found.predicted is None:
            raise UnavailableError(f"{launch.entry}: {found.prediction_basis}")
        parts.append((launch.entry, found.predicted))
    return in_turn(parts, 2 * product.m * product.n * product.k)


def arguments_of(launch: PathLaunch, product: Product, buffers: Mapping[str, Floats]) -> list[Any]:
    """Arrays, tensor maps and numbers in the order of the parameters of a launch."""
    parts = {
        (one.of, one.offset_bytes): buffers[one.of][one.offset_bytes // FLOAT_BYTES :]
        for one in launch.arguments
        if isinstance(one, Pointer) and one.offset_bytes
    }
    arguments: list[Any] = []
    for one in launch.arguments:
        if isinstance(one, Pointer):
            arguments.append(parts.get((one.of, one.offset_bytes), buffers[one.of]))
        elif isinstance(one, TensorMapOf):
            arguments.append(
                TensorMap(
                    buffers[one.pointer.of],
                    one.box,
                    swizzle=one.swizzle_bytes,
                    l2_promotion=L2_PROMOTION_BYTES,
                    shape=one.shape,
                    pitches=one.pitches_bytes,
                    offset=one.pointer.offset_bytes,
                    dtype=one.dtype,
                )
            )
        elif isinstance(one, Factor):
            arguments.append(np.float32(getattr(product, one.name)))
        else:
            arguments.append(one)
    return arguments
