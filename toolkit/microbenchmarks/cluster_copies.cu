// Bulk copies from L2 in clusters of CLUSTER blocks, one block per SM, FLIGHT steps of each in flight. In a step each block
// receives COMMON bytes that the cluster shares and OWN bytes of its own. The common bytes are copied by the first block
// for all, or, if IS_SPLIT, each block copies its part of them to all. A cluster has a ring of lines of its own, and so
// has each block; memory holds zeros.

enum { PIECE = COMMON + OWN };

__device__ unsigned arrived;  // in all launches of this module with as many blocks

__device__ void grid_barrier()  // of all blocks, which are resident; one thread of each
{
    const unsigned until = (atomicAdd(&arrived, 1) / BLOCKS + 1) * BLOCKS;
    while (*(volatile unsigned*)&arrived < until) {}
}

__device__ unsigned shared_address(const void* of) { return (unsigned)__cvta_generic_to_shared(of); }

__device__ void await(unsigned barrier, unsigned parity)
{
    asm volatile("{.reg .pred over; again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1; @!over bra again;}"
                 :: "r"(barrier), "r"(parity) : "memory");
}

__device__ void expect(unsigned barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(PIECE) : "memory");
}

__device__ void arrive_at(unsigned barrier, unsigned rank)
{
    asm volatile("{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there];}"
                 :: "r"(barrier), "r"(rank) : "memory");
}

__device__ void copy(unsigned to, const char* from, unsigned bytes, unsigned barrier, bool is_for_all)
{
    if (is_for_all)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1], %2, [%3], %4;"
                     :: "r"(to), "l"(from), "r"(bytes), "r"(barrier), "h"((short)((1 << CLUSTER) - 1)) : "memory");
    else
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

extern "C" __global__ __cluster_dims__(CLUSTER) __launch_bounds__(32) void cluster_copies(
    long long* noted, const char* memory, unsigned common_ring, unsigned own_ring, int steps)
{
    extern __shared__ __align__(128) char room[];
    __shared__ unsigned long long full[FLIGHT], empty[FLIGHT];
    const unsigned rank = blockIdx.x % CLUSTER, cluster = blockIdx.x / CLUSTER;
    const bool is_source = IS_SPLIT || rank == 0;
    const unsigned part = IS_SPLIT ? COMMON / CLUSTER : COMMON, within = IS_SPLIT ? rank * part : 0;
    const char* common = memory + size_t(cluster) * common_ring + within;
    const char* own = memory + size_t(BLOCKS / CLUSTER) * common_ring + size_t(blockIdx.x) * own_ring;
    if (threadIdx.x == 0) {
        for (int f = 0; f < FLIGHT; ++f) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(full + f)));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(empty + f)), "r"(CLUSTER));
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (int f = 0; f < FLIGHT; ++f) expect(shared_address(full + f));
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (threadIdx.x == 0) {
        grid_barrier();
        const long long start = clock64();
        unsigned common_at = 0, own_at = 0;
        for (int k = 0; k < steps + FLIGHT; ++k) {
            const int slot = k % FLIGHT;
            const unsigned barrier = shared_address(full + slot), parity = k / FLIGHT + 1 & 1;
            if (k >= FLIGHT) {
                await(barrier, parity);
                if (k < steps) expect(barrier);
                if (COMMON) {  // else nothing keeps blocks of a cluster in step
                    for (unsigned r = 0; r < (IS_SPLIT ? CLUSTER : 1); ++r) arrive_at(shared_address(empty + slot), r);
                    if (is_source) await(shared_address(empty + slot), parity);
                }
            }
            if (k >= steps) continue;
            const unsigned to = shared_address(room) + slot * PIECE;
            if (COMMON && is_source) copy(to + within, common + common_at, part, barrier, CLUSTER > 1);
            if (OWN) copy(to + COMMON, own + own_at, OWN, barrier, false);
            common_at += COMMON;
            if (common_at >= common_ring) common_at = 0;
            own_at += OWN;
            if (own_at >= own_ring) own_at = 0;
        }
        noted[2 * blockIdx.x] = clock64() - start;
        if (*(volatile int*)room) noted[2 * blockIdx.x + 1] = 1;  // never true: the memory holds zeros
    }
    __syncwarp();
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
