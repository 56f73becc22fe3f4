"""Small kernels with one mistake each, their launches, and the remedies that are expected."""

import numpy as np

N = 1024
SHAPE = (N, N)
DEVICE = "h200"


def buffers():
    """An output of zeros, and random input."""
    values = np.random.default_rng(1).random(SHAPE, dtype=np.float32)
    return np.zeros_like(values), values


def transpose_of(tile="tile[32][32]", load="tile[threadIdx.y + j][threadIdx.x]", before=""):
    return f"""__global__ void transpose(float *out, const float *in, int n) {{
    __shared__ float {tile};
    {before}
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        {load} = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}}
"""


TRANSPOSE = transpose_of()
PADDED = transpose_of("tile[32][33]")
# The store through `flat` has rows of 32 elements, which padding would not change.
FLAT = transpose_of(
    load="flat[(threadIdx.y + j) * 32 + threadIdx.x]", before="float *flat = &tile[0][0];"
)
SQUARE = {"grid": (32, 32), "block": (32, 8)}

ACCIDENTAL = """__global__ void smooth(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    for (int k = 0; k < 16; k++)
        x = 0.5 * x + 0.1 * in[i] * x - 0.25;
    out[i] = x;
}
"""
# The product has all of its bits in FP64, as in an FMA of FP32: the sum is rounded to the same.
EXACT = """__global__ void scale(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    for (int k = 0; k < 16; k++)
        x = 0.75 * x + in[i];
    out[i] = x;
}
"""
FEW_BLOCKS = """__global__ void saxpy(float *y, const float *x, float a, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}
"""
WEIGHTS = """__global__ void dense(float *out, const float *in, const float *w, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i], sum = 0;
    for (int j = 0; j < n; j++) {
        for (int k = 0; k < 4; k++)
            sum += w[4 * j + FIRST + k] * x;
    }
    out[i] = sum;
}
"""
ALIASED = """__global__ void poly(float *out, const float *in, const float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 16; k++)
        out[i + k * n] = in[i + k * n] * c[k] + c[k + 1];
}
"""
SMALL_BLOCKS = """__global__ void scale(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] * 2;
}
"""
COLUMNS = """__global__ void sgemm(float *c, const float *a, const float *b, int n) {
    int row = blockIdx.x * 32 + threadIdx.x, col = blockIdx.y * 32 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < 64; k++)
        sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}
"""
COPY = """__global__ void copy(float4 *__restrict__ out, const float4 *__restrict__ in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}
"""
