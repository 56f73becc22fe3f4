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
