// Additions and stores of warps to global memory that meet in L2, and loads of constants at addresses in registers.

// The k-th request of a warp adds at the 32 offsets of a row: rows differ by warp, by k, or not at all.
// Lanes with an offset below 0 take no part. KIND 0: integers, 1: floats, 2: compare-and-swap, 3: integers, whose old
// values are returned, 4: stores, 5: stores, before each of which the warp loads 512 bytes of its own.
extern "C" __global__ void add(char* memory, const int* offsets, int rows, int by_warp, int by_request, int times,
                               const float4* loaded, int pieces)
{
    const unsigned warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    unsigned old = 0, sum = 0;
    for (int k = 0; k < times; ++k) {
        const int offset = offsets[(warp * by_warp + k * by_request) % rows * 32 + threadIdx.x % 32];
        if (KIND == 5) {
            const float4 own = loaded[(size_t)((warp * times + k) % pieces) * 32 + threadIdx.x % 32];
            sum = unsigned(own.x + own.y + own.z + own.w);
        }
        if (offset < 0) continue;
        if (KIND == 0) asm volatile("red.global.add.u32 [%0], %1;" :: "l"(memory + offset), "r"(1) : "memory");
        if (KIND == 1) asm volatile("red.global.add.f32 [%0], %1;" :: "l"(memory + offset), "f"(1.0f) : "memory");
        if (KIND == 2) asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(memory + offset), "r"(k), "r"(k + 1) : "memory");
        if (KIND == 3) asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(memory + offset), "r"(1) : "memory");
        if (KIND >= 4) asm volatile("st.global.u32 [%0], %1;" :: "l"(memory + offset), "r"(sum) : "memory");
        sum += old;
    }
    if (sum == 12345u) *(unsigned*)memory = sum;  // never true, and the compiler does not know
}

__constant__ int zeros[16384];

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

// Clocks of `rounds` times 8 dependent loads, each 64 bytes behind the one before, within the first `bytes` of the
// constants. The addresses depend on the loads, which read zeros.
extern "C" __global__ void walk(long long* noted, int bytes, int rounds)
{
    int a = threadIdx.x;
    const long long start = clock64();
#pragma unroll 1
    for (int k = 0; k < rounds; ++k) {
#pragma unroll
        for (int i = 0; i < 8; ++i) a = (a + 16 + zeros[a]) & (bytes / 4 - 1);
    }
    const long long stop = clock64();
    noted[0] = stop - start;
    if (a < 0) noted[1] = a;
}

// Clocks that each warp of the first block takes for `rounds` times 8 loads, of a word in another line for each lane,
// at random places of all constants.
extern "C" __global__ void lines(long long* noted, int rounds)
{
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned place = 2654435761u * (blockIdx.x * 32 + warp + 1), sum = 0;
    __syncthreads();
    const long long start = clock64();
#pragma unroll 1
    for (int k = 0; k < rounds; ++k) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            place = place * 1664525u + 1013904223u;
            sum += zeros[(place >> 8) + 64 * lane & 16383];
        }
    }
    __syncthreads();
    const long long stop = clock64();
    if (blockIdx.x == 0 && lane == 0) noted[2 * warp] = stop - start;
    if (sum > 0) noted[2 * warp + 1] = sum;  // never true, and the compiler does not know
}
