"""The launch that a competitor of a comparison is: a rung or cuBLAS, on the matrices of a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from analysis.geometry import Geometry
from analysis.problem import Gemm
from kernels.selection import Selection, find
from kernels.variant import Variant
from toolkit.gpu.gpu_launch import GpuLaunch
from toolkit.gpu.launch import Task
from toolkit.launch.host_resources import sparse_zeros
from toolkit.launch.launch import buffers_of
from toolkit.rungs.arguments import position_of_c, rung_arguments
from toolkit.rungs.matrices import Workload

LAUNCHES = 3  # before it is timed: a fault may take what an earlier launch left
# A minute to open the GPU, compile and copy; a kernel slower than this is none that anyone times.
START_S = 60.0
SLOWEST_FLOP_PER_S = 1e10
# Of one launch of a kernel that is loaded: what the driver may do first, such as to load cuBLAS.
LAUNCH_GRACE_S = 20.0


def task_of_product(selection: Selection, problem: Gemm, executed: Gemm, seed: int) -> Task:
    """The product of `problem`, padded to `executed`, by a rung or by cuBLAS."""
    variant, parameters = selection.variant, selection.parameters
    launches_s = LAUNCHES * executed.flop / SLOWEST_FLOP_PER_S
    workspace, source = None, ""
    if isinstance(variant, Variant):
        workspace, source = variant.workspace(parameters, executed), variant.source
    return Task(
        launch=partial(
            launch_of_product,
            variant.name,
            dict(parameters),
            source=source,
            problem=problem,
            executed=executed,
            seed=seed,
        ),
        limit_s=START_S + launches_s,
        launch_limit_s=LAUNCH_GRACE_S + launches_s,
        buffer_bytes=executed.matrix_bytes + (workspace or 0),
    )


def launch_of_product(
    name: str,
    parameters: Mapping[str, int],
    *,
    source: str | bytes,
    problem: Gemm,
    executed: Gemm,
    seed: int,
    workload: Callable[[Gemm, int], Workload] = Workload,
) -> GpuLaunch:
    """C = 1·A·B + 0·C by a rung, whose text or machine code is `source`, or by cuBLAS."""
    variant = find(name)
    a, b = workload(problem, seed).padded(executed)
    matrices = a, b, sparse_zeros((executed.m, executed.n), np.float32)
    if not isinstance(variant, Variant):
        sizes = map(np.int32, (executed.m, executed.n, executed.k))
        one = Geometry.of(1, 1)  # cuBLAS chooses its own
        return GpuLaunch(
            source="",
            name="",
            kernel=name,
            geometry=one,
            arguments=[*matrices, *sizes],
            inputs=(0, 1),
            unwritten=(position_of_c(variant),),
        )
    arguments = rung_arguments(variant, parameters, executed, matrices)
    return GpuLaunch(
        source=source,
        name=variant.file,
        kernel=variant.entry,
        defines=variant.macros(parameters),
        geometry=variant.geometry(parameters, executed),
        arguments=arguments,
        inputs=tuple(k for k, x in buffers_of(arguments).items() if x is a or x is b),
        unwritten=(position_of_c(variant),),
    )
