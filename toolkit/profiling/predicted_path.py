"""Predicted time of `toolkit.matmul` with another precision, which has several launches."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from analysis.devices import Device
from analysis.errors import ToolkitError
from analysis.l2_state import L2State
from analysis.records.profile import Record
from kernels import split_paths
from kernels.product import Product
from kernels.selection import Selection
from kernels.variant import Reference
from toolkit.execution.path_time import predicted_time
from toolkit.profiling.plan import RunPlan
from toolkit.rungs.matrices import Workload

# All blocks of the products are executed: 2048 x 2048 x 2048 takes about 10 s of processor time.
MOST_FLOP = 2e10


class PredictionTarget(Protocol):
    """Device that launches are predicted for, and what they find in L2."""

    device: Device
    l2: L2State


def with_predicted_path(
    record: Record, selection: Selection, plan: RunPlan, workload: Workload, bench: PredictionTarget
) -> Record:
    """The record with a predicted time, or with a note on why there is none.

    Unchanged for references that the user did not name or that are single kernels, and where
    float32's own kernels compute the product.
    """
    variant = selection.variant
    is_single = not isinstance(variant, Reference) or variant.precision is None
    if is_single or not plan.explicit:
        return record
    shape = record.shape
    product = Product(m=shape.m, n=shape.n, k=shape.k)
    path = split_paths.plan_for(bench.device, product)
    if isinstance(path, str):
        return record
    if shape.flop > MOST_FLOP:
        return record.noted(
            "not predicted: all blocks of its launches would have to be executed, which takes "
            "minutes"
        )
    operands = {
        "A": workload.a.reshape(-1),
        "B": workload.b.reshape(-1),
        "C": np.zeros(shape.c_elements, np.float32),
    }
    try:
        predicted = predicted_time(path, product, operands, bench.device, bench.l2)
    except ToolkitError as error:
        return record.noted(f"not predicted: {error}")
    return replace(record, predicted=predicted)
