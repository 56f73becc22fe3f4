// Additions of warps to global memory that meet in L2, and loads of constants at addresses in registers.

// The k-th request of a warp adds at the 32 offsets of a row: rows differ by warp, by k, or not at all.
// Lanes with an offset below 0 take no part. KIND 0: integers, 1: floats.
extern "C" __global__ void add(char* memory, const int* offsets, int rows, int by_warp, int by_request, int times)
{
    const unsigned warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    for (int k = 0; k < times; ++k) {
        const int offset = offsets[(warp * by_warp + k * by_request) % rows * 32 + threadIdx.x % 32];
        if (offset < 0) continue;
        if (KIND == 0) asm volatile("red.global.add.u32 [%0], %1;" :: "l"(memory + offset), "r"(1) : "memory");
        if (KIND == 1) asm volatile("red.global.add.f32 [%0], %1;" :: "l"(memory + offset), "f"(1.0f) : "memory");
    }
}

__constant__ int zeros[512];

// Clocks that each warp takes for `rounds` times 8 loads, each at what the one before gave, in CHAINS chains.
// Warps whose number has a bit of `idle` leave at once.
extern "C" __global__ void load(long long* noted, const int* offsets, int rounds, int idle)
{
    const unsigned warp = threadIdx.x / 32;
    if (warp & idle) return;
    int a = offsets[threadIdx.x % 32], b = a, c = a, d = a;
    __syncwarp();
    const long long start = clock64();
#pragma unroll 1
    for (int k = 0; k < rounds; ++k) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            a += zeros[a];
            if (CHAINS == 4) b += zeros[b + 64], c += zeros[c + 128], d += zeros[d + 192];
        }
    }
    const long long stop = clock64();
    if (threadIdx.x % 32 == 0) noted[2 * warp] = stop - start;
    if (a + b + c + d < 0) noted[2 * warp + 1] = a;  // never true, and the compiler does not know
}
