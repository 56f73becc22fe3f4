// Lines of L2 that several SMs read. A block per SM, in groups of `sharers` blocks; each group has a ring of `ring` bytes,
// around which its blocks read in the same order. A block begins `lag` bytes ahead of the one before, and `delay` clocks
// after it. Blocks of a group are neighbours, or `groups` apart where `groups` is not 0.

enum { PIECE = 16384 };

__device__ unsigned arrived;

__device__ void grid_barrier(unsigned blocks)  // all blocks of this launch; all are resident
{
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned until = (atomicAdd(&arrived, 1) / blocks + 1) * blocks;
        while (*(volatile unsigned*)&arrived < until) {}
    }
    __syncthreads();
}

struct Place { unsigned group, rank; };

__device__ Place place(unsigned sharers, unsigned groups)
{
    if (groups) return {blockIdx.x % groups, blockIdx.x / groups};
    return {blockIdx.x / sharers, blockIdx.x % sharers};
}

__device__ void wait_for(long long clocks)
{
    const long long from = clock64();
    while (clock64() - from < clocks) {}
}

// Loads of 128 bits past L1, four of each warp in flight: 64 bytes of each thread in a step.
extern "C" __global__ __launch_bounds__(1024) void loads(
    long long* noted, const char* memory, unsigned ring, int sharers, int groups, unsigned lag, int delay, int steps)
{
    const Place me = place(sharers, groups);
    const char* base = memory + size_t(me.group) * ring;
    const unsigned step = 64 * blockDim.x;
    unsigned at = me.rank * lag % ring, sum = 0;
    const unsigned mine = threadIdx.x / 32 * 2048 + threadIdx.x % 32 * 16;
    grid_barrier(gridDim.x);
    wait_for((long long)me.rank * delay);
    __syncthreads();
    const long long start = clock64();
    for (int k = 0; k < steps; ++k) {
        unsigned v[4];
#pragma unroll
        for (int f = 0; f < 4; ++f) {
            asm volatile("{.reg .b32 y, z, w; ld.global.cg.v4.u32 {%0, y, z, w}, [%1];}"
                         : "=r"(v[f]) : "l"(base + at + mine + 512 * f));
        }
        const unsigned zero = v[0] | v[1] | v[2] | v[3];  // the memory holds zeros
        at += step + zero;
        if (at >= ring) at -= ring;
        sum += zero;
    }
    __syncthreads();
    const long long stop = clock64();
    if (threadIdx.x == 0) noted[2 * blockIdx.x] = stop - start;
    if (sum > 0) noted[2 * blockIdx.x + 1] = sum;  // never true, and the compiler does not know
}

__device__ unsigned shared_address(const void* of) { return (unsigned)__cvta_generic_to_shared(of); }

__device__ void await(unsigned barrier, unsigned phase)
{
    asm volatile("{.reg .pred over; again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1; @!over bra again;}"
                 :: "r"(barrier), "r"(phase) : "memory");
}

#if MULTICAST > 1
#define CLUSTER __cluster_dims__(MULTICAST)
#define TO_ALL ".multicast::cluster"
#else
#define CLUSTER
#define TO_ALL ""
#endif

// Bulk copies of 16 KiB, FLIGHT of them in flight. In a cluster of MULTICAST blocks each copies its part of a piece to all.
extern "C" __global__ CLUSTER __launch_bounds__(32) void copies(
    long long* noted, const char* memory, unsigned ring, int sharers, int groups, unsigned lag, int delay, int steps)
{
    extern __shared__ __align__(128) char room[];
    __shared__ unsigned long long full[FLIGHT];
    const Place me = place(sharers, groups);
    const unsigned part = PIECE / MULTICAST, within = blockIdx.x % MULTICAST * part;
    const char* base = memory + size_t(me.group) * ring + within;
    unsigned at = me.rank / MULTICAST * lag % ring;
    if (threadIdx.x == 0) {
        for (int f = 0; f < FLIGHT; ++f)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(full + f)));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    grid_barrier(gridDim.x);
    wait_for((long long)me.rank / MULTICAST * delay);
    const long long start = clock64();
    if (threadIdx.x == 0)
        for (int k = 0; k < steps + FLIGHT; ++k) {
            const unsigned barrier = shared_address(full + k % FLIGHT);
            if (k >= FLIGHT) await(barrier, k / FLIGHT + 1 & 1);
            if (k >= steps) continue;
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(PIECE) : "memory");
            const unsigned to = shared_address(room) + k % FLIGHT * PIECE + within;
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" TO_ALL " [%0], [%1], %2, [%3]"
#if MULTICAST > 1
                         ", %4;" :: "r"(to), "l"(base + at), "r"(part), "r"(barrier), "h"((short)((1 << MULTICAST) - 1))
#else
                         ";" :: "r"(to), "l"(base + at), "r"(part), "r"(barrier)
#endif
                         : "memory");
            at += PIECE;
            if (at >= ring) at -= ring;
        }
    __syncwarp();
    const long long stop = clock64();
#if MULTICAST > 1
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
#endif
    if (threadIdx.x == 0) noted[2 * blockIdx.x] = stop - start;
    if (*(volatile int*)room) noted[2 * blockIdx.x + 1] = 1;  // never true: the memory holds zeros
}
