"""Errors of a competitor on a GPU, on all classes of inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from analysis.product_errors import DATA_CLASSES
from analysis.records.profile import Record
from kernels.selection import find
from toolkit.gpu.gpu_launch import GpuLaunch
from toolkit.gpu.launch import InAChild, Task
from toolkit.rungs.arguments import position_of_c
from toolkit.rungs.data_workload import data_workload


def with_errors(record: Record, competitor: InAChild, task: Task, seed: int) -> Record:
    """The record with its errors on all classes of inputs, at its shape.

    The competitor is launched once for each class, and has the inputs of `task` again afterwards.
    """
    position, found = position_of_c(find(record.variant)), []
    launch: Callable[..., GpuLaunch] = task.launch
    for name in DATA_CLASSES:
        workload = data_workload(name, record.shape, seed)
        places = workload.places()
        make = partial(launch, workload=partial(data_workload, name))
        elements = competitor.elements_with(make, position, places)
        found.append(workload.error_of(elements, *places))
    competitor.elements_with(task.launch, position, places)
    return replace(record, errors=tuple(found))
