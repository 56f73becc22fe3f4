"""The list: launches of the kernels of `sources`, with sizes, operands, and what must come out.

The list was committed before any of them was predicted or measured. All of them are held out.
Operands are random numbers with a seed, as in the first list (`validation.timing.tensor_launches`);
grids, blocks and shared memory are those that the programs of the kernels choose for such sizes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from validation.timing.public_tensor.cuda_launches import cuda_launches
from validation.timing.public_tensor.launch import PublicTensorLaunch
from validation.timing.public_tensor.triton_launches import triton_launches

FAMILIES = ("mma", "wmma", "wgmma", "attention", "int8", "fp8", "tf32", "dmma", "scan", "four bits")


def launches(cubins: Path) -> tuple[PublicTensorLaunch, ...]:
    """The list, with machine code of the folder that `build` filled."""
    return tuple(replace(one, cubins=cubins) for one in (*cuda_launches(), *triton_launches()))
