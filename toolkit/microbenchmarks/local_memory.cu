// Local memory that L1 does not keep: loads that depend on each other, and stores.

// Fill WORDS words of local memory, then follow them: clocks of each block per step.
extern "C" __global__ void follow_words(long long *clocks, unsigned *sink)
{
    unsigned next[WORDS];
    for (int i = 0; i < WORDS; i++) next[i] = (i + sink[0] + 1) % WORDS;
    unsigned at = 0;
    const long long start = clock64();
    for (int step = 0; step < WORDS; step++) at = next[at];
    const long long stop = clock64();
    if (at == WORDS + 1) sink[0] = at;  // never true, and the compiler does not know
    if (threadIdx.x == 0) clocks[blockIdx.x] = stop - start;
}

// Store WORDS words of local memory per thread, of which two are loaded.
extern "C" __global__ void fill_words(float *out, int first, int second)
{
    float words[WORDS];
    for (int i = 0; i < WORDS; i++) words[i] = i * 1.5f + first;
    out[blockIdx.x * blockDim.x + threadIdx.x] = words[first] + words[(second + threadIdx.x) % WORDS];
}

// The same bytes in global memory: each warp stores lines of its own, one after the other.
extern "C" __global__ void fill_lines(float *out, int first, int second)
{
    float *const own = out + (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 32 * WORDS + threadIdx.x % 32;
    for (int i = 0; i < WORDS; i++) own[32 * i] = i * 1.5f + first + second;
}

// Coherent loads of one number by all warps, LOADS each.
extern "C" __global__ void load_one(float *sink, const float *number)
{
    float sum = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < LOADS; i++) {
        float x;
        asm volatile("ld.relaxed." SCOPE ".global.f32 %0, [%1];" : "=f"(x) : "l"(number) : "memory");
        sum += x * sum;
    }
    if (sum == 12345.5f) *sink = sum;
}
