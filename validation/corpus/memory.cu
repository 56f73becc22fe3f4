// Memory spaces: constants, device variables, read-only and volatile loads, local arrays, spills.

__constant__ float weights[16] = {0.5f, -1.25f, 3, 0, 7.5f, -2, 0.125f, 9, 1, -1, 2, -4, 8, -16, 32, -64};
__constant__ int offsets[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ int table[32] = {31, 41, 59, 26, 53, 58, 97, 93, 23, 84, 62, 64, 33, 83, 27, 95, 2, 88, 41, 97, 16,
    93, 99, 37, 51, 5, 82, 9, 74, 94, 45, 92};
__device__ int launches;
__device__ float scratch[64];

extern "C" __global__ void constants(float* out, const float* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int k = 0; k < 8; ++k) sum += weights[k] * in[(i + offsets[k]) % n];
    out[i] = sum + weights[i % 16];
}

extern "C" __global__ void device_variables(int* out, int n)
{
    const int i = threadIdx.x;
    if (i < 64) scratch[i] = i * 0.5f;
    if (i == 0) atomicAdd(&launches, 5);
    __syncthreads();
    if (i < n) out[i] = table[i % 32] + (int)scratch[63 - i % 64] + *(volatile int*)&launches;
}

extern "C" __global__ void read_only(float* out, const float* __restrict__ a, const float4* __restrict__ b,
    const unsigned short* __restrict__ c, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float4 v = __ldg(&b[i]);
    out[i] = __ldg(&a[i]) + a[n - 1 - i] + v.x * v.w + __ldg(&c[i]);
}

extern "C" __global__ void cache_operators(float* out, const float* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = __ldcg(&in[i]) + __ldcs(&in[n - 1 - i]) + __ldlu(&in[i / 2]) + __ldcv(&in[i]);
    sum += ((const volatile float*)in)[i];
    __stcg(&out[3 * i], sum), __stcs(&out[3 * i + 1], -sum), __stwt(&out[3 * i + 2], 2 * sum);
    __threadfence_block();
}

// 33 floats that are indexed by data: local memory.
extern "C" __global__ void local_array(int* out, const int* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int counts[33];
    for (int k = 0; k < 33; ++k) counts[k] = 0;
    for (int k = 0; k < 40; ++k) counts[in[(i + k) % n] % 33] += k + 1;
    int best = 0;
    for (int k = 1; k < 33; ++k)
        if (counts[k] > counts[best]) best = k;
    out[i] = best * 1000 + counts[best];
}

// More live values than registers.
extern "C" __global__ void __maxnreg__(32) spills(float* out, const float* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v[48];
#pragma unroll
    for (int k = 0; k < 48; ++k) v[k] = in[(i + k * 7) % n];
#pragma unroll 1
    for (int round = 0; round < 2; ++round) {
#pragma unroll
        for (int k = 0; k < 48; ++k) v[k] = v[k] * 0.5f + v[(k * 5 + 1) % 48];
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 48; ++k) sum += v[k] * (k + 1);
    out[i] = sum;
}

// Bytes and doubles in local memory.
extern "C" __global__ void local_bytes(int* out, const int* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned char order[20];
    double value[6];
    for (int k = 0; k < 20; ++k) order[k] = k * 7 % 20;
    for (int k = 0; k < 6; ++k) value[k] = 0;
    for (int k = 0; k < 8; ++k) {
        const int a = (in[i] >> k) & 15, b = (in[i] >> (k + 3)) & 15;
        const unsigned char swapped = order[a];
        order[a] = order[b], order[b] = swapped;
        value[a % 6] += order[b];
    }
    out[i] = order[in[i] & 15] + (int)value[in[i] & 3] * 100;
}
