// Kernels of kinds that the corpus and validation/traffic lack, for times: stores with a stride, wide
// vectors, arithmetic without much memory, and special functions.

#define EXPORT extern "C" __global__ void

EXPORT strided_store(float* out, const float* in, int n, int stride)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[size_t(i) * stride] = in[i];
}

EXPORT saxpy_wide(float4* y, const float4* x, float a, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float4 v = x[i];
    float4 w = y[i];
    w.x += a * v.x, w.y += a * v.y, w.z += a * v.z, w.w += a * v.w;
    y[i] = w;
}

EXPORT polynomial(float* out, const float* in, int n)  // 256 dependent multiply-adds
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = in[i];
    float sum = 0.0f;
#pragma unroll 16
    for (int k = 0; k < 256; ++k) sum = fmaf(sum, x, 0.5f);
    out[i] = sum;
}

EXPORT oscillators(float* out, const float* in, int n)  // special functions
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i], sum = 0.0f;
#pragma unroll 4
    for (int k = 0; k < 32; ++k) {
        sum += __sinf(x) * __expf(-x);
        x += 0.125f;
    }
    out[i] = sum;
}

EXPORT remainders(unsigned* out, const unsigned* in, int n, unsigned divisor)  // integer division
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = in[i];
    for (int k = 0; k < 8; ++k) x = x * 2654435761u % (divisor + k);
    out[i] = x;
}

EXPORT wander(unsigned* out, const unsigned* next, int n, int steps)  // chains of dependent loads
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned at = i;
    for (int k = 0; k < steps; ++k) at = next[at];
    out[i] = at;
}
