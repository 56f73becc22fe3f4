// Stores to local memory that L1 does not keep, and the same stores to global memory.

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
