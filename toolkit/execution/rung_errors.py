"""Errors of a rung on classes of inputs, by executing a small product on the CPU."""

from __future__ import annotations

import numpy as np

from analysis.problem import Gemm
from analysis.product_errors import DATA_CLASSES, ProductError
from kernels.selection import Selection
from kernels.variant import Variant
from toolkit.execution.simulate import simulate
from toolkit.launch.launch import buffers_of
from toolkit.machine_code.kernel import Kernel
from toolkit.rungs.arguments import position_of_c, rung_arguments
from toolkit.rungs.data_workload import data_workload
from toolkit.rungs.launch import RungLaunch
from toolkit.rungs.matrices import Matrix, Workload

# A tile of C and a K at which sums are long: all ten classes take a rung a second or two.
LARGEST = Gemm(m=128, n=128, k=512)


def errors_of_rung(
    kernel: Kernel, selection: Selection, workload: Workload
) -> tuple[ProductError, ...]:
    """Error of a rung's machine code on each class of inputs, at no more than `LARGEST`."""
    variant, asked = selection.variant, workload.problem
    assert isinstance(variant, Variant)
    problem = Gemm(m=min(asked.m, LARGEST.m), n=min(asked.n, LARGEST.n), k=min(asked.k, LARGEST.k))
    launch = RungLaunch(variant=variant, parameters=selection.parameters, problem=problem)
    found = []
    for data in DATA_CLASSES:
        drawn = data_workload(data, problem, workload.seed)
        result = product_of_rung(kernel, launch, *drawn.padded(launch.executed))
        rows, columns = drawn.places()
        found.append(drawn.error_of(result[np.ix_(rows, columns)], rows, columns))
    return tuple(found)


def product_of_rung(kernel: Kernel, launch: RungLaunch, a: Matrix, b: Matrix) -> Matrix:
    """A·B by the machine code of a rung, every block executed; C is NaN before."""
    c = np.full((launch.executed.m, launch.executed.n), np.nan, np.float32)
    arguments = rung_arguments(launch.variant, launch.parameters, launch.executed, (a, b, c))
    execution = simulate(
        kernel,
        grid=launch.geometry.grid,
        block=launch.geometry.block,
        dynamic_shared_bytes=launch.geometry.dynamic_shared_bytes,
        arguments=arguments,
        predict=False,
    )
    place = list(buffers_of(arguments)).index(position_of_c(launch.variant))
    return np.asarray(execution.outputs[place], np.float32)
