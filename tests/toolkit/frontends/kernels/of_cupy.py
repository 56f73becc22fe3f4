"""Kernels of CuPy: `python -m toolkit simulate of_cupy.py:scale -g 4 -b 256 -a f32[1000] ...`."""

import cupy

scale = cupy.RawKernel(
    r"""
extern "C" __global__ void scale(float *x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
""",
    "scale",
)

module = cupy.RawModule(
    code=r"""
#include <cupy/complex.cuh>
template <typename T> __global__ void conjugate(complex<T> *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = conj(x[i]);
}
""",
    name_expressions=["conjugate<float>"],
)

squared = cupy.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared")

norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
