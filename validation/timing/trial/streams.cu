// Streams through memory, short and long, plain and with a twist.

#define EXPORT extern "C" __global__ void

EXPORT read_stream(float* out, const float4* in, int n)  // stores only what never comes
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float4 v = in[i];
    if (v.x + v.y + v.z + v.w == -1.0f) out[0] = v.x;
}

EXPORT read_deep(float* out, const float4* in, int n)  // eight loads in flight, few blocks
{
    float sum = 0.0f;
    const int stride = gridDim.x * blockDim.x;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 7 * stride < n; i += 8 * stride) {
        float4 v[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) v[j] = in[i + j * stride];
#pragma unroll
        for (int j = 0; j < 8; ++j) sum += v[j].x + v[j].y + v[j].z + v[j].w;
    }
    for (; i < n; i += stride) sum += in[i].x + in[i].y + in[i].z + in[i].w;
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

EXPORT add_three(float* out, const float* a, const float* b, const float* c, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = a[i] + b[i] * c[i];
}

EXPORT fill_pairs(double2* out, double value, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = make_double2(value, value + i);
}

EXPORT copy_late(float* out, const float* in, int offset, int n)  // unaligned by offset elements
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i + offset];
}

EXPORT reverse_order(int* out, const int* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[n - 1 - i] = in[i];
}

EXPORT copy_pitched(float* out, const float* in, int width, int out_pitch, int in_pitch)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < width) out[size_t(blockIdx.y) * out_pitch + x] = in[size_t(blockIdx.y) * in_pitch + x];
}

EXPORT add_splits(float* out, const float* parts, int splits, int n)  // sums of a split K
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int s = 0; s < splits; ++s) sum += parts[size_t(s) * n + i];
    out[i] = sum;
}

EXPORT rotate_buffers(float* ring, int size, int rounds)  // three buffers, each from the one before
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    int from = 0;
    for (int k = 0; k < rounds; ++k) {
        const int to = from == 2 ? 0 : from + 1;
        ring[to * size + i] = ring[from * size + i] * 0.5f + k;
        from = to;
    }
}

EXPORT adam_step(float* weights, float* first, float* second, const float* grads, float rate, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float g = grads[i], m = 0.9f * first[i] + 0.1f * g;
    const float v = 0.999f * second[i] + 0.001f * g * g;
    first[i] = m, second[i] = v;
    weights[i] -= rate * m / (sqrtf(v) + 1e-8f);
}
