// Local memory that L1 does not keep: loads that depend on each other. Loops are not unrolled in full,
// because NVRTC took minutes for 1,536 steps.

// Fill WORDS words of local memory, then follow them: clocks of each block per step.
extern "C" __global__ void follow_words(long long *clocks, unsigned *sink)
{
    unsigned next[WORDS];
#pragma unroll 1
    for (int i = 0; i < WORDS; i++) next[i] = (i + sink[0] + 1) % WORDS;
    unsigned at = 0;
    const long long start = clock64();
#pragma unroll 16
    for (int step = 0; step < WORDS; step++) at = next[at];
    const long long stop = clock64();
    if (at == WORDS + 1) sink[0] = at;  // never true, and the compiler does not know
    if (threadIdx.x == 0) clocks[blockIdx.x] = stop - start;
}
