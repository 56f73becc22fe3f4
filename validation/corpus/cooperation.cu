// Cooperation with parts of a block: tiles of a warp, named barriers, locks among lanes, pointers
// that may be to shared memory.

// Lanes name their own tile of 8; those of a warp come together only by their masks.
extern "C" __global__ void tile_votes(unsigned* out, const int* in)
{
    __shared__ int staged[32];
    const int t = threadIdx.x, value = in[t];
    const unsigned mask = 0xffu << (t & 24);
    unsigned* mine = out + 9 * t;
    int steps = 0;
    while (steps < (t * 7) % 5 && in[(t + steps) & 31] < 40) ++steps;
    staged[t] = steps;
    mine[0] = __ballot_sync(mask, value > 0);
    mine[1] = __any_sync(mask, value > 40) + 2 * __all_sync(mask, value < 30);
    mine[2] = __match_any_sync(mask, value & 1);
    int same;
    mine[3] = __match_all_sync(mask, value >> 5, &same);
    mine[4] = same;
    __syncwarp(mask);
    mine[5] = staged[t ^ 7];
    mine[6] = __shfl_sync(mask, value, t ^ 1);
    if (value & 1) staged[t] += 1;
    mine[7] = __popc(__ballot_sync(mask, 1));
    mine[8] = __shfl_down_sync(mask, value, 1, 8);
}

// Masks that lie in each other: every third lane.
extern "C" __global__ void interleaved_votes(unsigned* out, const int* in)
{
    const int t = threadIdx.x, value = in[t];
    const unsigned mask = t % 3 == 0 ? 0x49249249 : t % 3 == 1 ? 0x92492492 : 0x24924924;
    int sum = 0;
    for (int i = 0; i < t % 4; ++i) sum += in[i];
    out[3 * t] = __ballot_sync(mask, value > sum);
    out[3 * t + 1] = __any_sync(mask, value > 45);
    out[3 * t + 2] = __shfl_sync(mask, value, t < 3 ? t : t - 3);
}

__device__ __noinline__ int add_to(int* sum, int x) { return atomicAdd(sum, x); }
__device__ __noinline__ void largest_of(int* largest, int x) { atomicMax(largest, x); }
__device__ __noinline__ void add_to(float* sum, float x) { atomicAdd(sum, x); }
__device__ __noinline__ void add_to(double* sum, double x) { atomicAdd(sum, x); }
__device__ __noinline__ unsigned long long swap(
    unsigned long long* place, unsigned long long expected, unsigned long long x)
{
    return atomicCAS(place, expected, x);
}

// The function does not know whether its pointer is to shared or to global memory.
extern "C" __global__ void generic_atomics(int* out, float* sums, double* wide, unsigned long long* places)
{
    __shared__ int in_shared, largest, tickets;
    __shared__ float sum;
    __shared__ double wide_sum;
    __shared__ unsigned long long place;
    const int t = threadIdx.x;
    if (t == 0) in_shared = 0, largest = 0, tickets = 0, sum = 0, wide_sum = 0, place = 9;
    __syncthreads();
    add_to(t & 1 ? &in_shared : &out[0], t);
    largest_of(t & 2 ? &largest : &out[1], 3 * t);
    add_to(t & 4 ? &sum : &sums[0], (float)t);
    add_to(t & 8 ? &wide_sum : &wide[0], (double)t);
    swap(t == 7 ? &place : &places[2 + t], 9, t + 5);
    out[4 + t] = add_to(t < 20 ? &tickets : &out[2], 1);
    __syncthreads();
    if (t == 0) out[3] = in_shared + 10000 * largest, sums[1] = sum, wide[1] = wide_sum, places[1] = place;
}

// Two pairs of warps, each with a barrier whose number and size are in registers; one waits for both.
extern "C" __global__ void named_barriers(int* out, int first)
{
    __shared__ int staged[128];
    const int t = threadIdx.x, pair = t / 64;
    staged[t] = 3 * t;
    asm volatile("barrier.sync %0, %1;" ::"r"(first + pair), "r"(64 * first) : "memory");
    int sum = staged[t ^ 63];
    unsigned late;
    asm volatile("{ .reg .pred p; setp.gt.s32 p, %1, 70; barrier.red.popc.u32 %0, %2, 64, p; }"
        : "=r"(late)
        : "r"(t), "r"(first + pair));
    if (pair == 0) {
        asm volatile("barrier.arrive 5, %0;" ::"r"(128 * first) : "memory");
    } else {
        asm volatile("barrier.sync 5, 128;" ::: "memory");
        sum += staged[t - 64];
    }
    out[t] = sum + 1000 * late;
}

// Every lane takes the same lock: whoever has it must not wait for those that want it.
extern "C" __global__ void lane_lock(int* lock, int* counter)
{
    for (bool done = false; !done;)
        if (atomicCAS(lock, 0, 1) == 0) {
            *(volatile int*)counter = *(volatile int*)counter + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
}
