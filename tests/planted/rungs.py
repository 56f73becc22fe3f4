"""The sanitizer's checks of a rung on random matrices, whose C is not written before."""

import numpy as np

from toolkit.execution.sanitizer import check
from toolkit.rungs.arguments import rung_arguments


def check_rung(code, variant, shape, parameters):
    executed = variant.executed(shape)
    geometry = variant.geometry(parameters, executed)
    rng = np.random.default_rng(1)
    a = rng.random((executed.m, executed.k), dtype=np.float32)
    b = rng.random((executed.k, executed.n), dtype=np.float32)
    c = np.full((executed.m, executed.n), np.nan, np.float32)
    return check(
        code,
        grid=geometry.grid,
        block=geometry.block,
        arguments=rung_arguments(variant, parameters, executed, (a, b, c)),
        dynamic_shared_bytes=geometry.dynamic_shared_bytes,
        unwritten=[2],
    )
