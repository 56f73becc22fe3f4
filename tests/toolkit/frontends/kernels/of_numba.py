"""Kernels of Numba: `python -m toolkit simulate of_numba.py:saxpy -g 40 -b 256 -a f32=2 ...`."""

from numba import cuda, float32, jit


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


@cuda.jit
def stencil(x, out):
    row, column = cuda.grid(2)
    rows, columns = x.shape
    if 0 < row < rows - 1 and 0 < column < columns - 1:
        out[row, column] = (
            x[row - 1, column] + x[row + 1, column] + x[row, column - 1] + x[row, column + 1]
        ) * float32(0.25)


@cuda.jit
def sums(x, out):
    part = cuda.shared.array(256, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    part[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    width = cuda.blockDim.x // 2
    while width > 0:
        if t < width:
            part[t] += part[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


@cuda.jit
def scale(x, factor):
    i = cuda.grid(1)
    if i < x.shape[0]:
        for j in range(x.shape[1]):
            x[i, j] *= factor


@cuda.jit
def mistaken(x):
    x[0] = nothing  # noqa: F821


@cuda.jit(device=True)
def squared(x):
    return x * x


@jit(nopython=True)  # of the host, too
def halved(x):
    return x / 2


@cuda.jit
def half_squares(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = halved(squared(x[i]))
