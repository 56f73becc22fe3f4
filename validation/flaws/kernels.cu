// Kernels with one flaw each, and the same without it: FIXED is 0 or 1.

extern "C" __global__ void conflicts(float *out, const float *in, int n) {
    __shared__ float tile[32][32 + FIXED];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void few_blocks(float *y, const float *x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = 2 * x[i] + y[i];
}

extern "C" __global__ void fields(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[FIXED ? i : 8 * i];
}

extern "C" __global__ void scattered_stores(float *out, const float *in, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    out[FIXED ? y * n + x : x * n + y] = in[y * n + x];
}

extern "C" __global__ void doubles(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = in[i];
    for (int k = 0; k < 64; k++)
#if FIXED
        v = v * 1.000001f + 0.5f;
#else
        v = v * 1.000001 + 0.5;
#endif
    out[i] = v;
}

extern "C" __global__ void branches(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = in[i];
    if (FIXED ? (i / 32) % 2 : i % 2)
        for (int k = 0; k < 400; k++) v = v * 1.01f + 0.5f;
    else
        for (int k = 0; k < 400; k++) v = v * 0.99f - 0.5f;
    out[i] = v;
}

extern "C" __global__ void one_sum(float *sum, const float *in, int n) {
    float v = 0;
#if FIXED
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, v);
#else
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        v = in[i];
        atomicAdd(sum, v);
    }
#endif
}

extern "C" __global__ void bins(unsigned *out, const unsigned *in, int n) {
#if FIXED
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        atomicAdd(&own[in[i] & 255], 1u);
    __syncthreads();
    atomicAdd(&out[threadIdx.x], own[threadIdx.x]);
#else
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        atomicAdd(&out[in[i] & 255], 1u);
#endif
}

__constant__ float table[1024];
extern "C" __global__ void lookup(float *out, const int *at) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if FIXED
    __shared__ float own[1024];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) own[k] = table[k];
    __syncthreads();
#else
    const float *own = table;
#endif
    float v = 0;
    int first = at[i] & 1023;
    for (int k = 0; k < 64; k++) v += own[(first + 37 * k) & 1023];
    out[i] = v;
}

extern "C" __global__ void walk_rows(float *out, const float *in, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0;
    for (int k = 0; k < n; k++) v += in[FIXED ? k * n + row : row * n + k];
    out[row] = v;
}

extern "C" __global__ void in_local_memory(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if FIXED
    float v[16];
#pragma unroll
    for (int k = 0; k < 16; k++) v[k] = in[i] * k;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 16; k++) sum += v[k] * (k < n ? 1.0f : 0.5f);
#else
    float v[16];
    for (int k = 0; k < 16; k++) v[(k * n) & 15] = in[i] * k;
    float sum = 0;
    for (int k = 0; k < 16; k++) sum += v[(k + n) & 15];
#endif
    out[i] = sum;
}

extern "C" __global__ void barriers(float *out, const float *in) {
    __shared__ float part[1024];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = in[i];
    __syncthreads();
#if FIXED
    float v = part[threadIdx.x];
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = part[threadIdx.x];
        for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
        if (!threadIdx.x) out[blockIdx.x] = v;
    }
#else
    for (int d = 1; d < 1024; d *= 2) {
        if (threadIdx.x % (2 * d) == 0) part[threadIdx.x] += part[threadIdx.x + d];
        __syncthreads();
    }
    if (!threadIdx.x) out[blockIdx.x] = part[0];
#endif
}

extern "C" __global__ void gemv(float *out, const float *a, const float *x, int n) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float v = 0;
    for (int k = lane; k < n; k += 32) v += a[(size_t)warp * n + k] * x[k];
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
    if (!lane) out[warp] = v;
}

extern "C" __global__ void tail(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = in[i];
    for (int k = 0; k < 4000; k++) v = v * 1.0001f + 0.5f;
    out[i] = v;
}

extern "C" __global__ void single_floats(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if FIXED
    ((float4 *)out)[i] = ((const float4 *)in)[i];
#else
    out[i] = in[i];
#endif
}

extern "C" __global__ void one_load(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0;
#if FIXED
#pragma unroll 16
#else
#pragma unroll 1
#endif
    for (int k = 0; k < n; k++) v += in[k * 16384 + i];
    out[i] = v;
}

extern "C" __global__ void chases(int *out, const int *next, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int at[4];
    for (int j = 0; j < 4; j++) at[j] = (i * 4 + j) * 8191 & (n - 1);
#if FIXED
    for (int k = 0; k < 64; k++)
#pragma unroll
        for (int j = 0; j < 4; j++) at[j] = next[at[j]];
#else
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll 1
        for (int k = 0; k < 64; k++) at[j] = next[at[j]];
#endif
    out[i] = at[0] ^ at[1] ^ at[2] ^ at[3];
}

extern "C" __global__ void shared_chases(int *out, const int *next) {
    __shared__ int own[1024];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) own[k] = next[k];
    __syncthreads();
    int at[4];
    for (int j = 0; j < 4; j++) at[j] = threadIdx.x + 256 * j;
#if FIXED
    for (int k = 0; k < 512; k++)
#pragma unroll
        for (int j = 0; j < 4; j++) at[j] = own[at[j]];
#else
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll 1
        for (int k = 0; k < 512; k++) at[j] = own[at[j]];
#endif
    out[blockIdx.x * blockDim.x + threadIdx.x] = at[0] ^ at[1] ^ at[2] ^ at[3];
}

extern "C" __global__ void one_chain(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = in[i];
#if FIXED
    float part[4] = {v, v, v, v};
    for (int k = 0; k < 2048; k++)
#pragma unroll
        for (int j = 0; j < 4; j++) part[j] = part[j] * 0.999f + v;
    out[i] = part[0] + part[1] + part[2] + part[3];
#else
    float sum = v;
    for (int k = 0; k < 8192; k++) sum = sum * 0.999f + v;
    out[i] = sum;
#endif
}

extern "C" __global__ void exponentials(float *out, const float *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i], sum = 0;
#if FIXED
    float each = __expf(x), power = 1;
    for (int k = 1; k <= 256; k++) {
        power *= each;
        sum += power;
    }
#else
    for (int k = 1; k <= 256; k++) sum += __expf(x * k);
#endif
    out[i] = sum;
}

#if FIXED
typedef unsigned Word;
#else
typedef unsigned long long Word;
#endif
extern "C" __global__ void wide_integers(unsigned *out, const unsigned *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Word v = in[i];
    for (int k = 0; k < 512; k++) v = v * v + in[i];
    out[i] = (unsigned)(v >> (8 * sizeof(Word) - 32));  // needs all bits of v
}

extern "C" __global__ void triangle(float *out, const float *in, int n) {
    int first = FIXED ? blockIdx.x : 2 * blockIdx.x;
    for (int half = 0; half < 2; half++) {
        int row = FIXED && half ? n - 1 - first : first + (FIXED ? 0 : half);
        float v = in[threadIdx.x];
        for (int k = 0; k < row * 16; k++) v = v * 0.999f + 0.5f;
        out[row * blockDim.x + threadIdx.x] = v;
    }
}

extern "C" __global__ void
#if !FIXED
__launch_bounds__(256, 8)
#endif
    spills(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v[64];
#pragma unroll
    for (int k = 0; k < 64; k++) v[k] = in[i + k * n];
#pragma unroll 1
    for (int j = 0; j < n / 65536; j++)
#pragma unroll
        for (int k = 0; k < 64; k++) v[k] = v[k] * v[(k + 17) & 63] + v[(k + 41) & 63];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 64; k++) sum += v[k];
    out[i] = sum;
}
