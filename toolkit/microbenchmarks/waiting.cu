// Blocks that wait for other blocks through global memory.

// Two blocks hand a number to and fro. Each writes data before the flag, with a fence between if FENCES.
extern "C" __global__ void hand_over(long long* noted, int* memory, int rounds)
{
    volatile int* mine = memory + 64 * blockIdx.x;
    volatile int* other = memory + 64 * (1 - blockIdx.x);
    const long long start = clock64();
    for (int k = 1; k <= rounds; ++k) {
        if (blockIdx.x == 1) while (*other != k) {}
        if (FENCES) mine[32] = k, __threadfence();
        *mine = k;
        if (blockIdx.x == 0) while (*other != k) {}
        if (FENCES) __threadfence();
    }
    if (blockIdx.x == 0) noted[0] = clock64() - start;
}

// All blocks meet `rounds` times at a counter.
extern "C" __global__ void meet(long long* noted, unsigned* arrived, int rounds)
{
    const long long start = clock64();
    for (int k = 1; k <= rounds; ++k) {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(arrived, 1u);
            while (*(volatile unsigned*)arrived < k * gridDim.x) {}
            __threadfence();
        }
        __syncthreads();
    }
    if (threadIdx.x == 0 && blockIdx.x == 0) noted[0] = clock64() - start;
}

// The same by one thread of each block, which stores a word before if WRITES, reads that of its neighbour afterwards if
// READS, and has fences BEFORE and AFTER the meeting.
extern "C" __global__ void meet_and_pass(long long* noted, unsigned* arrived, unsigned* words, int rounds)
{
    unsigned mine = blockIdx.x;
    const long long start = clock64();
    for (int k = 1; k <= rounds; ++k) {
        unsigned* row = words + 8 * gridDim.x * (k & 1);
        if (WRITES) *(volatile unsigned*)(row + 8 * blockIdx.x) = mine;
        if (BEFORE) __threadfence();
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned*)arrived < k * gridDim.x) {}
        if (AFTER) __threadfence();
        if (READS) mine = *(volatile unsigned*)(row + 8 * ((blockIdx.x + 1) % gridDim.x));
    }
    if (blockIdx.x == 0) noted[0] = clock64() - start + (mine == 12345);
}

// One thread of each block, or all of a warp, loads a flag again and again; flags of blocks are `apart` words apart.
extern "C" __global__ void poll(long long* noted, unsigned* flags, int apart, int rounds)
{
    volatile unsigned* at = flags + blockIdx.x * apart;
    const long long start = clock64();
    for (int k = 0; k < rounds; ++k) at += *at;
    if (threadIdx.x == 0 && blockIdx.x == 0) noted[0] = clock64() - start + (at == nullptr);
}

// Threads of all blocks add to one number if ADDS, with the value before if RETURNS, and load it if LOADS, in turn.
extern "C" __global__ void add_and_load(long long* noted, unsigned* number, int rounds)
{
    unsigned sum = 0;
    const long long start = clock64();
    for (int k = 0; k < rounds; ++k) {
        if (ADDS && !RETURNS) atomicAdd(number, 1u);
        if (ADDS && RETURNS) sum += atomicAdd(number, 1u);
        if (LOADS) sum += *(volatile unsigned*)number;
    }
    if (sum == 12345) noted[1] = sum;
    if (blockIdx.x == 0) noted[0] = clock64() - start;
}

// The first block adds to a number, while those behind it load that number until it is `rounds`.
extern "C" __global__ void add_beside_polls(long long* noted, unsigned* number, int rounds)
{
    const long long start = clock64();
    if (blockIdx.x) {
        while (*(volatile unsigned*)number < rounds) {}
    } else {
        for (int k = 0; k < rounds;) k = atomicAdd(number, 1u) + 1;
        noted[0] = clock64() - start;
    }
}

// Each warp adds floats to 32 neighbours in shared memory: its own ones, or those of all warps.
extern "C" __global__ void shared_sums(long long* noted, int is_common, int rounds)
{
    __shared__ float sums[1024];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    sums[threadIdx.x] = 0;
    __syncthreads();
    float* at = &sums[lane + (is_common ? 0 : 32 * warp)];
    const long long start = clock64();
#pragma unroll 1
    for (int k = 0; k < rounds; ++k) atomicAdd(at, 1.0f);
    __syncthreads();
    noted[warp] = clock64() - start;
}

__constant__ float numbers[4096];

// Multiply-adds with COUNT numbers of constant memory, each in an instruction of its own.
extern "C" __global__ void constants_beside(long long* noted, float x, int rounds)
{
    float a = threadIdx.x, b = a + 1;
    __syncthreads();
    const long long start = clock64();
#pragma unroll 1
    for (int k = 0; k < rounds; ++k) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 2) a = a * x + numbers[i], b = b * x + numbers[i + 1];
    }
    const long long stop = clock64();
    noted[threadIdx.x / 32] = stop - start;
    if (a + b == 12345.0f) noted[0] = 0;
}
