"""A program of PyCUDA, which is read and not run: `simulate of_pycuda.py:double -g 1 -b 32 ...`."""

import pycuda.autoinit  # noqa: F401
from pycuda.compiler import SourceModule

TEXT = """
#define TWICE(x) ((x) + (x))
__global__ void doubled(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = TWICE(x[i]);
}
"""


def main():
    module = SourceModule(TEXT, options=["-DUNUSED=1"])
    double = module.get_function("doubled")
    double(None, block=(32, 1, 1))


computed = SourceModule(f"// {TEXT}")
