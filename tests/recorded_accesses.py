"""Accesses to global memory of a rung of which all blocks are executed."""

from dataclasses import replace

import numpy as np

from toolkit.sass.machine import run_blocks


def all_recorded(executor):
    """Rows of `RecordedAccesses`, of all blocks, run together."""
    launch = executor.launch
    c = np.zeros((launch.executed.m, launch.executed.n), np.float32)
    bound = replace(executor.bound(launch.executed.k, c), most_accesses=1 << 22)
    (run,) = run_blocks(bound, [range(launch.geometry.blocks)], workers=1)
    return run.accesses.rows
