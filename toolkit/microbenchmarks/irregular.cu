// Loads and stores of parts of lines, in order or at random places, and lines that L1 still has when they are read again.

// Warps load words of LINES lines each, at random places of `mask` + 1 lines; neighbouring lanes share a line, and read
// its sectors in turn if SECTORS is more than one. Loads pass L1.
extern "C" __global__ void gather(unsigned* out, const char* memory, unsigned mask, int times)
{
    const unsigned lane = threadIdx.x % 32, group = lane * LINES / 32, sector = lane % (32 / LINES) % SECTORS;
    unsigned seed = 2654435761u * ((blockIdx.x * blockDim.x + threadIdx.x - lane) / 32 * LINES + group + 1), sum = 0;
    for (int k = 0; k < times; ++k) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            seed = seed * 1664525u + 1013904223u;
            const unsigned line = (seed ^ seed >> 15) & mask;
            unsigned value;
            asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(memory + size_t(line) * 128 + 32 * sector));
            sum += value;
        }
    }
    if (sum == 12345) out[0] = sum;  // never true, and the compiler does not know
}

// One word, or as much as WIDTH says, of each piece of `pitch` bytes is stored. The pieces are `mask` + 1; `step` is odd
// and gives their order. READS: the word is read before.
extern "C" __global__ void store_parts(char* memory, unsigned mask, int pitch, unsigned step)
{
    const unsigned threads = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i <= mask; i += threads) {
        char* at = memory + size_t(i * step & mask) * pitch;
        if (WIDTH == 4 && READS) *(unsigned*)at += 1;
        if (WIDTH == 4 && !READS) *(unsigned*)at = i;
        if (WIDTH == 16) *(uint4*)at = make_uint4(i, i, i, i);
        if (WIDTH == 32) *(uint4*)at = make_uint4(i, i, i, i), *(uint4*)(at + 16) = make_uint4(i, i, i, i);
    }
}

// The first warp loads a word that L1 has, again and again, each load's address from the one before. The others load
// lines that no one has loaded before, `apart` bytes from lane to lane, LINES loads of a warp at a time.
extern "C" __global__ void hits_beside_misses(long long* noted, const unsigned* memory, unsigned mask, int apart, int rounds)
{
    __shared__ volatile int is_over;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    is_over = 0;
    const unsigned* mine = memory + 32 * (blockIdx.x + 1);
    unsigned sum = *mine;
    __syncthreads();
    if (warp == 0) {
        unsigned at = sum;
        for (int k = 0; k < 64; ++k) at = mine[at];  // until the others are at work
        const long long start = clock64();
        for (int k = 0; k < rounds; ++k) at = mine[at];
        const long long stop = clock64();
        if (lane == 0) noted[blockIdx.x] = stop - start + at;
        is_over = 1;
    } else {
        unsigned place = (blockIdx.x * 31 + warp - 1) * (LINES * 32 * apart / 4);
        for (int k = 0; k < 64 * rounds && !is_over; ++k) {
#pragma unroll
            for (int i = 0; i < LINES; ++i) sum += memory[1 << 20 | ((place + (i * 32 + lane) * (apart / 4)) & mask)];
            place += gridDim.x * 31 * (LINES * 32 * apart / 4);
        }
    }
    if (sum == 12345) noted[0] = 0;  // never true, and the compiler does not know
}

// Each lane stores a word `behind` words behind its own one, if `behind` is not negative, and loads its own one, which L1
// had before, in turn. Lanes are `apart` words apart. The memory has zeros.
extern "C" __global__ void load_after_store(long long* noted, unsigned* memory, int apart, int behind, int rounds)
{
    unsigned* at = memory + threadIdx.x * apart;
    unsigned value;
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value) : "l"(at));
    at += value;
    __syncthreads();
    const long long start = clock64();
#pragma unroll 1
    for (int k = 0; k < rounds; ++k) {
        if (behind >= 0) asm volatile("st.global.u32 [%1], %0;" ::"r"(value), "l"(at + behind) : "memory");
        asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
        at += value;
    }
    const long long stop = clock64();
    if (threadIdx.x == 0) noted[0] = stop - start + value;
}

// Each warp loads LOADS words, SAME of them of one line that nobody has loaded before in this launch, then waits.
extern "C" __global__ void pending_loads(long long* noted, const unsigned* memory, unsigned mask, int rounds)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    unsigned place = (blockIdx.x * warps + warp) * (LOADS / SAME * 32), sum = 0;
    __syncthreads();
    const long long start = clock64();
#pragma unroll 1
    for (int k = 0; k < rounds; ++k) {
        unsigned value[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            const unsigned at = (place + i / SAME * 32 + (lane + i % SAME) % 32) & mask;
            asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value[i]) : "l"(memory + at));
        }
#pragma unroll
        for (int i = 0; i < LOADS; ++i) sum += value[i];
        place += gridDim.x * warps * (LOADS / SAME * 32);
    }
    __syncthreads();
    if (threadIdx.x == 0) noted[blockIdx.x] = clock64() - start;
    if (sum == 12345) noted[0] = 0;  // never true, and the compiler does not know
}

// How many of `lines` lines one warp finds in L1, in each of `passes` passes over them, by groups of 32 lines: the loads
// that take at most `most` clocks.
extern "C" __global__ void reuse(long long* found, const unsigned* memory, int lines, int passes, int most)
{
    unsigned zero = 0;
    for (int p = 0; p < passes; ++p)
        for (int group = 0; group < lines / 32; ++group) {
            int hits = 0;
            for (int i = 0; i < 32; ++i) {
                const unsigned* at = memory + (group * 32 + i) * 32 + threadIdx.x + zero;
                const long long start = clock64();
                zero += *at;
                if (zero) break;
                hits += clock64() - start <= most;
            }
            if (threadIdx.x == 0) found[p * (lines / 32) + group] = hits;
        }
}

// Clocks of each block for `rounds` times HITS loads of a table in L1 and MISSES loads of memory that is in L2, each of 32
// lines at random places. `mask`: lines of that memory - 1. The memory has zeros.
extern "C" __global__ void hits_and_misses(long long* noted, const unsigned* table, const unsigned* far, unsigned mask,
                                           int rounds)
{
    constexpr unsigned near_lines = 128;
    const unsigned lane = threadIdx.x % 32;
    unsigned sum = 0, x = 2654435761u * (blockIdx.x * blockDim.x + threadIdx.x + 1), y = x * 7 + 1;
    for (unsigned k = threadIdx.x; k < near_lines; k += blockDim.x) sum += table[k * 32];
    __syncthreads();
    const long long start = clock64();
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
        unsigned found[HITS + MISSES + 1];
#pragma unroll
        for (int k = 0; k < HITS; ++k) {
            x = x * 1664525u + 1013904223u;
            found[k] = table[(x >> 12 & near_lines - 1) * 32 + lane % 8];
        }
#pragma unroll
        for (int k = 0; k < MISSES; ++k) {
            y = y * 1664525u + 1013904223u;
            found[HITS + k] = far[size_t(y >> 8 & mask) * 32 + lane % 8];
        }
#pragma unroll
        for (int k = 0; k < HITS + MISSES; ++k) sum += found[k];
    }
    __syncthreads();
    const long long stop = clock64();
    if (threadIdx.x == 0) noted[blockIdx.x] = stop - start;
    if (sum > 0) noted[blockIdx.x] = sum;  // never true, and the compiler does not know
}
