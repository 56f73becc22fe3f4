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
