// Kernels at a roof: no edit makes them faster.

#define I (blockIdx.x * blockDim.x + threadIdx.x)

__device__ float4 operator*(float a, float4 b) {
    return make_float4(a * b.x, a * b.y, a * b.z, a * b.w);
}

__device__ float4 operator+(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// Threads move 16 bytes: with 4, too few bytes are on their way for the bandwidth of an H200.
extern "C" __global__ void copy(float4 *out, const float4 *in) { out[I] = in[I]; }

extern "C" __global__ void fill(float4 *out) { out[I] = make_float4(1, 2, 3, 4); }

extern "C" __global__ void triad(float4 *a, const float4 *b, const float4 *c) {
    a[I] = b[I] + 3 * c[I];
}

extern "C" __global__ void saxpy(float4 *y, const float4 *x, float a) { y[I] = a * x[I] + y[I]; }

extern "C" __global__ void padded_transpose(float *out, const float *in, int n) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void stencil(float4 *out, const float4 *in, int n) {
    int i = I;
    out[i] = i == 0 || i == n - 1 ? in[i] : 0.25f * in[i - 1] + 0.5f * in[i] + 0.25f * in[i + 1];
}

extern "C" __global__ void total(float *sum, const float4 *in, int n) {
    float v = 0;
#pragma unroll 8
    for (int k = I; k < n; k += gridDim.x * blockDim.x) {
        float4 x = in[k];
        v += x.x + x.y + (x.z + x.w);
    }
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) sum[I / 32] = v;
}

// Eight chains of each thread, of one operation.
#define CHAINS(T, OPERATION)                                    \
    T v[8], x = (T)in[I];                                       \
    _Pragma("unroll") for (int j = 0; j < 8; j++) v[j] = x + (T)j; \
    _Pragma("unroll 16") for (int k = 0; k < 1024; k++)         \
        _Pragma("unroll") for (int j = 0; j < 8; j++) v[j] = OPERATION; \
    T sum = v[0];                                               \
    _Pragma("unroll") for (int j = 1; j < 8; j++) sum = sum + v[j]; \
    out[I] = sum;

extern "C" __global__ void fp32(float *out, const float *in) { CHAINS(float, v[j] * x + x) }

extern "C" __global__ void fp64(double *out, const double *in) { CHAINS(double, v[j] * x + x) }

extern "C" __global__ void products(unsigned *out, const unsigned *in) {
    CHAINS(unsigned, v[j] * x + x)
}

extern "C" __global__ void logic(unsigned *out, const unsigned *in) {
    CHAINS(unsigned, (v[j] & x) ^ (v[j] >> 3))
}

extern "C" __global__ void sines(float *out, const float *in) { CHAINS(float, __sinf(v[j])) }

extern "C" __global__ void shared_reads(float *out, const float4 *in) {
    __shared__ float4 own[1024];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) own[k] = in[k];
    __syncthreads();
    float4 v[4] = {};
#pragma unroll 4
    for (int k = 0; k < 256; k++)
#pragma unroll
        for (int j = 0; j < 4; j++) v[j] = v[j] + own[(threadIdx.x + 32 * k + 256 * j) & 1023];
    float sum = 0;
    for (int j = 0; j < 4; j++) sum += v[j].x + v[j].y + (v[j].z + v[j].w);
    out[I] = sum;
}

extern "C" __global__ void l2_reads(float *out, const float4 *in, int n) {
    float v = 0;
    for (int round = 0; round < 16; round++)
#pragma unroll 8
        for (int k = I; k < n; k += gridDim.x * blockDim.x) {
            float4 x = __ldcg(in + ((k + round * 12345) & (n - 1)));
            v += x.x + x.y + (x.z + x.w);
        }
    out[I] = v;
}
