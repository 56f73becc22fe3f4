// Loads of constants whose address is the same for all lanes, as loops with an index make them (ULDC).

__constant__ int zeros[16384];

constexpr int LINE_WORDS = 16, UNROLLED = 8;

// Clocks that each warp takes for `passes` times `groups` of 8 lines, of which it loads LOADS words each, one line after
// the other. Each block begins `delay` clocks after the block of its SM before it. noted: clocks, and the SM.
extern "C" __global__ void walk_lines(long long* noted, float* sink, int groups, int passes, int delay, int sms)
{
    const unsigned warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    int sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
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
                sum += __int_as_float(zeros[group * UNROLLED * LINE_WORDS + load * (LINE_WORDS / LOADS)]);
    const long long stop = clock64();
    if (threadIdx.x % 32 == 0) noted[2 * warp] = stop - start, noted[2 * warp + 1] = sm;
    if (sum != 0) *sink = sum;  // never true, and the compiler does not know
}

// Every thread sums the first WORDS words, a power of two, by an index that is the same for all. Values are zero.
extern "C" __global__ void sum_table(float* out)
{
    float sum = 0;
#pragma unroll 8
    for (int i = 0; i < WORDS; ++i) sum += __int_as_float(zeros[i & (WORDS - 1)]);
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
