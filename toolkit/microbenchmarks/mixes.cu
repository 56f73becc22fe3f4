// Loads and stores together, as many of each as the macros say, in regions that L2 holds or that it does not.

// Each thread loads LOADS and stores STORES pieces of 16 bytes per round. `in_mask` and `out_mask` are the pieces of the
// two regions, less one: powers of two. Loads pass L1, and stores do not wait for them.
extern "C" __global__ void mix(uint4* out, const uint4* in, unsigned in_mask, unsigned out_mask, unsigned rounds)
{
    const unsigned threads = gridDim.x * blockDim.x, id = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0;
    for (unsigned k = 0; k < rounds; ++k) {
        uint4 v[LOADS + 1];
#pragma unroll
        for (int j = 0; j < LOADS; ++j) v[j] = __ldcg(in + ((k * LOADS + j) * threads + id & in_mask));
#pragma unroll
        for (int j = 0; j < STORES; ++j)
            out[(k * STORES + j) * threads + id & out_mask] = make_uint4(k, id, j, 1);
#pragma unroll
        for (int j = 0; j < LOADS; ++j) sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
    }
    if (sum == 12345) out[0].x = sum;  // never true, and the compiler does not know
}

// One warp loads `lines` lines of `in` one after the other, stores to `stored` lines of `out`, 1 or 32 words each, and
// loads those of `in` again, or with AGAIN_STORED those of `out`: clocks[0] are of these last loads.
extern "C" __global__ void load_again(long long* clocks, unsigned* out, const unsigned* in, unsigned lines, unsigned stored)
{
    const unsigned lane = threadIdx.x;
    unsigned at = lane;
    for (unsigned k = 0; k < lines; ++k) {
        unsigned x;
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(in + at + 32 * k));
        at += x;
    }
    for (unsigned k = 0; k < stored; ++k)
        if (lane < WORDS) asm volatile("st.global.u32 [%0], %1;" : : "l"(out + 32 * k + at), "r"(0));
    __syncwarp();
    const unsigned* from = AGAIN_STORED ? out : in;
    const long long start = clock64();
    for (unsigned k = 0; k < lines; ++k) {
        unsigned x;
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(from + at + 32 * k));
        at += x;
    }
    clocks[0] = clock64() - start;
    clocks[1] = at;
}

// The same with lanes in 32 rows of 1 KiB: a load or a store of a warp is of 32 lines, of which it accesses one sector each, and
// no two warps access the same one. `row_mask`: rows of a region, less one.
extern "C" __global__ void mix_columns(PART* out, const PART* in, unsigned row_mask, unsigned rounds)
{
    const unsigned warp = threadIdx.x / 32 * gridDim.x + blockIdx.x, lane = threadIdx.x % 32;
    const unsigned warps = gridDim.x * (blockDim.x / 32), of_row = 1024 / sizeof(PART), of_sector = of_row / 32;
    unsigned sum = 0;
#pragma unroll 1
    for (unsigned k = 0; k < rounds; ++k) {
        const unsigned column = k * warps + warp, row = column / 32 * 32 + lane, at = column % 32 * of_sector;
        unsigned v[LOADS + 1];
#pragma unroll
        for (int j = 0; j < LOADS; ++j) v[j] = in[(row + 32 * j & row_mask) * of_row + at];
        if (STORES) out[(row & row_mask) * of_row + at] = k;
#pragma unroll
        for (int j = 0; j < LOADS; ++j) sum ^= v[j];
    }
    if (sum == 12345) out[0] = sum;  // never true, and the compiler does not know
}
