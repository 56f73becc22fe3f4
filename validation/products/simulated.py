"""The launches of a path on the simulator, on arrays that are stored as the product says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.problem import FLOAT_BYTES
from kernels.paths import PathLaunch, Plan, Pointer
from kernels.product import Product
from toolkit.execution.path_time import arguments_of
from toolkit.execution.simulate import simulate
from toolkit.launch.tensor_map import TensorMap
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import compile_kernel

Floats = NDArray[np.float32]


def compiled(launch: PathLaunch) -> Kernel:
    """Machine code of a launch, as `matmul` compiles it for an H200."""
    return compile_kernel(
        launch.source,
        launch.entry,
        target="sm_90",
        name=launch.file,
        defines=dict(launch.defines),
        options=(),
    )


def simulate_plan(
    plan: Plan, product: Product, operands: Mapping[str, Floats]
) -> dict[str, Floats]:
    """The buffers "A", "B", "C" and "workspace" after all launches of a plan.

    `operands` are the flat buffers of A, B and C, and the workspace if one is given: NaN behind the
    bytes that must be zero otherwise, so that nothing is read that no launch wrote.
    """
    buffers = dict(operands)
    if "workspace" not in buffers:
        size = plan.workspace_bytes // FLOAT_BYTES + 1
        buffers["workspace"] = np.full(size, np.nan, np.float32)
        buffers["workspace"][: plan.zeroed_bytes // FLOAT_BYTES] = 0
    for launch in plan.launches:
        _run(launch, product, buffers)
    return buffers


def _run(launch: PathLaunch, product: Product, buffers: dict[str, Floats]) -> None:
    arguments = arguments_of(launch, product, buffers)
    execution = simulate(
        compiled(launch),
        grid=launch.grid,
        block=launch.block,
        dynamic_shared_bytes=launch.dynamic_shared_bytes,
        arguments=arguments,
        blocks="all",
        predict=False,
    )
    plain = [one for one in arguments if isinstance(one, np.ndarray)]
    seen: list[Floats] = []  # each buffer once, a map's own only if it is no argument
    for argument in arguments:
        array = argument.array if isinstance(argument, TensorMap) else argument
        is_shared = array is not argument and any(array is other for other in plain)
        is_seen = is_shared or any(array is other for other in seen)
        if isinstance(array, np.ndarray) and not is_seen:
            seen.append(array)
    results: dict[int, Any] = dict(zip(map(id, seen), execution.outputs, strict=True))
    for one, argument in zip(launch.arguments, arguments, strict=True):
        if isinstance(one, Pointer):
            begin = one.offset_bytes // FLOAT_BYTES
            whole = buffers[one.of].copy() if begin else results[id(argument)]
            whole[begin:] = results[id(argument)]
            buffers[one.of] = whole
