"""Binds a rung's launch to matrices that it uses in place, with what other blocks would write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.problem import FLOAT_BYTES
from kernels.variant import Copies, Words
from kernels.workspace import row_floats
from toolkit.execution.residency import most_resident
from toolkit.launch.checks import check_arguments
from toolkit.launch.host_resources import sparse_zeros
from toolkit.launch.launch import buffers_of
from toolkit.rungs.arguments import rung_arguments
from toolkit.rungs.launch import RungLaunch
from toolkit.rungs.matrices import Matrix
from toolkit.sass.bound_launch import BoundLaunch
from toolkit.sass.translate import Translated, bind


def bind_in_place(
    translated: Translated,
    launch: RungLaunch,
    a: Matrix,
    b: Matrix,
    c: Matrix,
    *,
    served: Sequence[Words] | None = None,
) -> BoundLaunch:
    """Launch with alpha = 1, beta = 0 that uses the matrices themselves, without copies.

    A and B may be read-only: a store to one of them is then a fault. With `served`, no block waits
    for another: these words are written to the workspace and say that all other blocks are done,
    and the workspace holds the copies of A and B that leading blocks would make.
    """
    size_bytes = launch.variant.workspace(launch.parameters, launch.executed)
    arrays = {"A": a, "B": b, "C": c}
    if size_bytes is not None:
        arrays["workspace"] = sparse_zeros((max(size_bytes // FLOAT_BYTES, 1),), np.float32)
        if served is not None:
            _copy_rows(arrays, launch.copies)
        for words in served or ():
            begin = words.offset // FLOAT_BYTES
            arrays["workspace"].view(np.uint32)[begin : begin + words.count] = words.value
    arguments = rung_arguments(
        launch.variant,
        launch.parameters,
        launch.executed,
        (a, b, c),
        workspace=arrays.get("workspace"),
    )
    check_arguments(translated.kernel.name, arguments, translated.kernel.parameters)
    bound, _ = bind(translated, launch.geometry, arguments, in_place=True)
    names = {
        f"argument {k}": next(name for name, known in arrays.items() if known is array)
        for k, array in buffers_of(arguments).items()
    }
    bound = replace(
        bound,
        buffers=[replace(one, name=names.get(one.name, one.name)) for one in bound.buffers],
        most_resident=most_resident(None, translated.kernel, bound),
    )
    return bound if served is None else replace(bound, blocks_meet=False, in_order=False)


def _copy_rows(arrays: Mapping[str, NDArray[Any]], copies: Copies) -> None:
    """Copy A and B to the workspace as leading blocks do, with rows padded to whole quads."""
    for name, begin in (("A", copies.a), ("B", copies.b)):
        if begin is None:
            continue
        rows, columns = arrays[name].shape
        pitch = row_floats(columns)
        first = begin // FLOAT_BYTES
        copy = arrays["workspace"][first : first + rows * pitch]
        copy.reshape(rows, pitch)[:, :columns] = arrays[name]
