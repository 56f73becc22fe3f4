// Loads of constants whose address is the same for all lanes, as loops with an index make them: in a uniform register
// (ULDC), or in a register of each lane (LDC).

__constant__ int zeros[16384];

constexpr int LINE_WORDS = 16, UNROLLED = 8;

// Clocks that each warp takes for `passes` times `groups` of 8 lines, of which it loads LOADS words each, one line after
// the other. Each block begins `delay` clocks after the block of its SM before it, as far as blocks are dealt in turn.
// Only blocks of SM `only_sm` work, or those of all SMs if it is negative. noted: clocks, and the SM, or -1.
extern "C" __global__ void walk_lines(long long* noted, float* sink, int groups, int passes, int delay, int sms,
                                      int only_sm)
{
    const unsigned warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    int sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (only_sm >= 0 && sm != only_sm) {
        if (threadIdx.x % 32 == 0) noted[2 * warp + 1] = -1;
        return;
    }
    const int of_lane = VECTOR ? threadIdx.x >> 10 : 0;
    float sum = 0;
    __syncthreads();
    long long start = clock64();
    while (clock64() - start < blockIdx.x / sms * delay) {}
    start = clock64();
#pragma unroll 1
    for (int pass = 0; pass < passes; ++pass)
#pragma unroll 1
        for (int group = 0; group < groups; ++group)
#pragma unroll
            for (int load = 0; load < UNROLLED * LOADS; ++load)
                sum += __int_as_float(zeros[group * UNROLLED * LINE_WORDS + load * (LINE_WORDS / LOADS) + of_lane]);
    const long long stop = clock64();
    if (threadIdx.x % 32 == 0) noted[2 * warp] = stop - start, noted[2 * warp + 1] = sm;
    if (sum != 0) *sink = sum;  // never true, and the compiler does not know
}
