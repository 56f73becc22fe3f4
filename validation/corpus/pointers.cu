// Calls through pointers that differ between the lanes of a warp, in loops and in each other; and
// loops whose lanes leave a region of the code by a branch (without a BREAK from sm_100 on).

typedef unsigned (*Step)(unsigned, unsigned);

__device__ __noinline__ unsigned looped(unsigned x, unsigned i)
{
#pragma unroll 1
    for (unsigned k = 0; k < (x & 3); ++k) i = i * 5 + k;
    return x ^ i;
}
__device__ __noinline__ unsigned returned(unsigned x, unsigned i)
{
    if (x & 1) return x + 7;
    return x * x ^ i;
}
__device__ __noinline__ unsigned added(unsigned x, unsigned i) { return x * 3 + i; }
__device__ __noinline__ unsigned subtracted(unsigned x, unsigned i) { return x - i * 9; }
__device__ const Step inner[4] = {looped, returned, added, subtracted};

__device__ __noinline__ unsigned calls_once(unsigned x, unsigned i) { return inner[x & 3](x, i) + 1; }
__device__ __noinline__ unsigned calls_twice(unsigned x, unsigned i)
{
    const unsigned y = inner[x >> 2 & 3](x, i);
    return inner[y & 3](y, x) ^ y;
}
__device__ __noinline__ unsigned calls_sometimes(unsigned x, unsigned i)
{
    if (x & 4) return inner[x >> 3 & 3](x, i);
    return x + i;
}
__device__ const Step outer[4] = {calls_once, calls_twice, calls_sometimes, added};

extern "C" __global__ void pointers_nested(unsigned* out, const unsigned* in, int n)
{
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    unsigned x = in[t];
#pragma unroll 1
    for (unsigned i = 0; i < 3; ++i) x = outer[(x >> 5) + i & 3](x, i) * 2654435761u;
    out[t] = x;
}

extern "C" __global__ void pointers_ragged(unsigned* out, const unsigned* in, int n)
{
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    unsigned x = in[t];
#pragma unroll 1
    for (unsigned i = 0; i < (in[t] & 7); ++i) x = outer[x + i & 3](x, i);
    out[t] = x;
}

// For sm_100 and later, lanes that have no turns left after a part of the second loop leave it by a
// branch and wait in a WARPSYNC for the others, which stand at a BSYNC.
extern "C" __global__ void left_for_a_barrier(unsigned* out, const unsigned* in)
{
    __shared__ unsigned shared[64];
    const unsigned t = threadIdx.x, lane = t & 31;
    const unsigned mask = t / 32 == 50 / 32 ? (1u << 18) - 1 : 0xffffffffu;
    unsigned x = in[t];
    for (unsigned i = 0, n = t % 4; i < n; ++i) x ^= i * 0x9e3779b9u;
    const unsigned long long y = __shfl_up_sync(mask, (unsigned long long)x << 7 | t, 5, 8);
    for (unsigned i = 0, n = lane & 3; i < n; ++i) x ^= i * 0x9e3779b9u;
    __syncthreads();
    if (t < 32) shared[t] = 0x1234u * t;
    __syncthreads();
    if ((x & 3) != 1) atomicMax(&shared[0], t);
    __syncthreads();
    out[t] = shared[0] + (unsigned)y;
}
