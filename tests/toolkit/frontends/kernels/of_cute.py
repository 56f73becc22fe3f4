"""A kernel of the CuTe DSL: `simulate of_cute.py:compiled -g 4 -a f32[1000] ... -a 1000`."""

import cutlass
import numpy
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 256 + thread
    if i < n:
        c[i] = a[i] + b[i]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, n: cutlass.Int32):
    add_kernel(a, b, c, n).launch(grid=[(n + 255) // 256, 1, 1], block=[256, 1, 1])


arrays = [from_dlpack(numpy.zeros(1000, numpy.float32)) for _ in range(3)]
compiled = cute.compile(
    add, *arrays, 1000, options="--keep-cubin --generate-line-info --gpu-arch sm_90a"
)
without_cubin = cute.compile(add, *arrays, 1000, options="--gpu-arch sm_90a")
