// Copies past L1 to rows of shared memory: 16 bytes a lane, rows of ROW bytes that are 2,048 apart in memory. They are
// stored SHARED_PITCH apart, SHIFT bytes from the start, and with SWIZZLE the pieces of 16 bytes of a row trade places.
// A lane copies LANE_BYTES of a row by copies that follow each other, so that a copy of the warp takes 16 of each of them.
enum { COPIES = 8, PITCH = 2048, ROWS = COPIES * 512 / ROW, OF_LANE = LANE_BYTES / 16 };

extern "C" __global__ __launch_bounds__(256) void copies(long long* noted, char* memory, int rounds)
{
    extern __shared__ __align__(1024) char shared[];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    unsigned to[COPIES];
    const char* from[COPIES];
    for (int j = 0; j < COPIES; ++j) {
        const unsigned piece = (j / OF_LANE * 32 + lane) * OF_LANE + j % OF_LANE;
        const unsigned row = piece / (ROW / 16), byte = piece % (ROW / 16) * 16;
        const unsigned place = row * SHARED_PITCH + (SWIZZLE ? byte ^ (row % (ROW / 16)) << 4 : byte) + SHIFT;
        to[j] = unsigned(__cvta_generic_to_shared(shared)) + warp * (ROWS * SHARED_PITCH + 128) + place;
        from[j] = memory + size_t(blockIdx.x * warps + warp) * ROWS * PITCH + row * PITCH + byte;
    }
    __syncthreads();
    const long long start = clock64();
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int j = 0; j < COPIES; ++j)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to[j]), "l"(from[j] + round % TURNS * ROW) : "memory");
        asm volatile("cp.async.commit_group;\ncp.async.wait_group 3;" ::: "memory");
    }
    const long long stop = clock64();
    if (lane == 0) {
        noted[2 * (blockIdx.x * warps + warp)] = start;
        noted[2 * (blockIdx.x * warps + warp) + 1] = stop;
    }
}
