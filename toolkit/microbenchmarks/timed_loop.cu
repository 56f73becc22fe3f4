// Every warp notes its SM's clock before and after `rounds` rounds of a body.
// Warps whose number has a bit of `idle` leave at once: 3 leaves one scheduler's warps.
extern "C" __global__ void __launch_bounds__($threads) $name(
    long long* clocks, unsigned* sink, const int* offsets, char* memory, int rounds, int idle)
{
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp & idle) return;
    $setup
    __syncthreads();
    const long long start = clock64();
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
        $body
    }
    const long long stop = clock64();
    const unsigned slot = blockIdx.x * (blockDim.x / 32) + warp;
    if (lane == 0) clocks[2 * slot] = start, clocks[2 * slot + 1] = stop;
    unsigned kept = 0;
    $keep
    sink[(blockIdx.x * blockDim.x + threadIdx.x) & 0xffff] = kept;
}
