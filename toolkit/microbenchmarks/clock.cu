// A load on every SM for a time: each block notes its clocks, its nanoseconds and its batches of work.
// KIND: 0 nothing, 1 FFMA, 2 mma.sync, 3 wgmma, 4 reads of DRAM, 5 wgmma and reads of DRAM. After each batch
// warps that compute wait until `period` clocks have passed since its begin; 0: no pause.
#ifndef KIND
#define KIND 0
#endif
#define MULTIPLIES (KIND == 3 || KIND == 5)
#define READS(warp) (KIND == 4 || (KIND == 5 && warp >= 4))

__device__ unsigned long long nanoseconds_now()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

extern "C" __global__ void __launch_bounds__(256) load(
    long long* out, const uint4* words, unsigned long long count, long long duration, int period, unsigned* sink)
{
    extern __shared__ __align__(1024) char tile[];
    const unsigned warp = threadIdx.x / 32;
    uint4 a = words[threadIdx.x], b = words[threadIdx.x + 256];
    float d[128];
#pragma unroll
    for (int i = 0; i < 128; ++i) d[i] = i + (a.x & 7);
#if MULTIPLIES
    for (int i = threadIdx.x; i < 49152 / 16; i += blockDim.x) ((uint4*)tile)[i] = words[i];
    const unsigned long long of_a = ((unsigned)__cvta_generic_to_shared(tile) & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
    const unsigned long long of_b = of_a + (16384 >> 4);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    const unsigned long long begin = nanoseconds_now();
    const long long from = clock64();
    unsigned long long now = begin, at = blockIdx.x * blockDim.x + threadIdx.x;
    long long batches = 0;
    do {
        const long long started = clock64();
        if (READS(warp)) {
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                const uint4 x = __ldcs(words + at);
                a.x ^= x.x ^ x.y ^ x.z ^ x.w;
                at += gridDim.x * blockDim.x;
                if (at >= count) at -= count;
            }
        } else if (KIND == 1) {
#pragma unroll
            for (int j = 0; j < 8; ++j)
#pragma unroll
                for (int i = 0; i < 16; ++i) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(d[i]) : "f"(d[20]), "f"(d[21]));
        } else if (KIND == 2) {
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int i = 0; i < 32; i += 4)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                                 "{%8, %9}, {%0, %1, %2, %3};"
                        : "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
                        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
        }
#if MULTIPLIES
        else {
            PRODUCTS
        }
#endif
        if (!READS(warp))
            while (clock64() - started < period) {}
        ++batches;
        now = nanoseconds_now();
    } while (__syncthreads_or(threadIdx.x == 0 && (long long)(now - begin) < duration));  // all agree
    const long long clocks = clock64() - from;
    if (threadIdx.x == 0) {
        out[3 * blockIdx.x] = clocks;
        out[3 * blockIdx.x + 1] = now - begin;
        out[3 * blockIdx.x + 2] = batches;
    }
    unsigned kept = a.x;
#pragma unroll
    for (int i = 0; i < 128; ++i) kept ^= __float_as_uint(d[i]);
    sink[threadIdx.x] = kept;
}
