// What kernels of mma.sync do with tiles, in rounds of each warp: COPIES copies of BYTES per lane to shared memory, LOADS
// matrices of 512 bytes from there, PRODUCTS products, and STORES stores of WIDTH bytes per lane.
//
// A copy takes rows of ROW bytes, and stores them APART bytes from lane to lane, with PAD more bytes between rows; a store has rows of 4 lanes; rows are PITCH bytes apart, and the columns of a row follow each other,
// STEP bytes apart. Each warp has 8 rows of memory to itself, which it goes through again and again.

enum { REGION = 8 * PITCH, STAGES = 4, PLACE = 32 * APART + 32 * BYTES / ROW * PAD };

extern "C" __global__ __launch_bounds__(512) void tiles(long long* noted, char* memory, int rounds)
{
    extern __shared__ __align__(128) char shared[];
    constexpr int ALL = COPIES ? COPIES : 1, ROOM = STAGES * ALL * PLACE > LOADS * 512 ? STAGES * ALL * PLACE : LOADS * 512;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    char* const own = memory + size_t(blockIdx.x * warps + warp) * REGION;
    const unsigned base = unsigned(__cvta_generic_to_shared(shared)) + warp * ROOM;
    const char* const from = own + lane * BYTES / ROW * PITCH + lane * BYTES % ROW;
    char* const to = own + lane / 4 * PITCH + lane % 4 * WIDTH;
    float sums[8][4] = {};
    unsigned a[4] = {lane, lane, lane, lane}, matrix[8][4] = {}, column = 0, stored = 0;
    for (unsigned k = threadIdx.x; k < warps * ROOM / 4; k += blockDim.x) ((unsigned*)shared)[k] = 0;
    __syncthreads();
    const long long start = clock64();
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int k = 0; k < COPIES; ++k) {
            const unsigned place = base + (round % STAGES * ALL + k) * PLACE + lane * APART + lane * BYTES / ROW * PAD;
#if FIRST_LEVEL
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from + column), "n"(BYTES) : "memory");
#else
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from + column) : "memory");
#endif
            column = (column + ROW) % PITCH;
        }
        if (COPIES) asm volatile("cp.async.commit_group;\ncp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                : "=r"(matrix[k % 8][0]), "=r"(matrix[k % 8][1]), "=r"(matrix[k % 8][2]), "=r"(matrix[k % 8][3])
                : "r"(base + k * 512 + lane * 16)
                : "memory");
#pragma unroll
        for (int k = 0; k < PRODUCTS; ++k)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                         "{%0, %1, %2, %3};"
                : "+f"(sums[k % 8][0]), "+f"(sums[k % 8][1]), "+f"(sums[k % 8][2]), "+f"(sums[k % 8][3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[0]), "r"(a[1]));
#pragma unroll
        for (int k = 0; k < STORES; ++k) {
            if (WIDTH == 4) asm volatile("st.global.u32 [%0], %1;" ::"l"(to + stored), "r"(round) : "memory");
            if (WIDTH == 8) asm volatile("st.global.v2.u32 [%0], {%1, %1};" ::"l"(to + stored), "r"(round) : "memory");
            stored = (stored + STEP) % PITCH;
        }
    }
    const long long stop = clock64();
    unsigned kept = 0;
    for (int k = 0; k < 8; ++k)
        for (int j = 0; j < 4; ++j) kept ^= matrix[k][j] ^ __float_as_uint(sums[k][j]);
    if (lane == 0) {
        noted[2 * (blockIdx.x * warps + warp)] = start;
        noted[2 * (blockIdx.x * warps + warp) + 1] = stop;
    }
    if (kept == 12345) noted[0] = kept;  // never true, and the compiler does not know
}
