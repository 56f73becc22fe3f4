// The ring of stages between the producer and the consumers, also of a cluster: barriers by their shared addresses, and
// copies of pieces of 64 x 64 halves.

struct __align__(64) TensorMap { char opaque[128]; };

__device__ unsigned shared_address(const void* x) { return unsigned(__cvta_generic_to_shared(x)); }
__device__ unsigned rank_in_cluster()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
// All threads of the cluster, or of the block without one.
__device__ void wait_for_cluster()
{
    if (CLUSTER > 1)
        asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    else
        __syncthreads();
}

// All threads of the block but those of its first warp.
template <int BARRIER> __device__ void sync_threads()
{
    asm volatile("barrier.sync.aligned %0, %1;" :: "n"(BARRIER), "n"(384 - 32) : "memory");
}

__device__ void init(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}
__device__ void expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}
__device__ void wait(unsigned barrier, unsigned parity)
{
    asm volatile("{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again;}"
                 :: "r"(barrier), "r"(parity) : "memory");
}
// The lanes of a warp arrive at the barrier of each block of the cluster. Without .release.cluster, which would wait for
// all memory accesses: the products of the warp have ended.
__device__ void arrive_in_cluster(unsigned barrier)
{
    const unsigned lane = threadIdx.x % 32;
    if (CLUSTER == 1) {
        if (lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
    } else if (lane < CLUSTER) {
        asm volatile("{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there];}"
                     :: "r"(barrier), "r"(lane) : "memory");
    }
}

// One piece of a part: `inner` counts along stored rows, `outer` is the row.
__device__ void copy(unsigned to, const TensorMap* map, int inner, int outer, int part, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(map), "r"(inner), "r"(outer), "r"(part), "r"(barrier) : "memory");
}
// The same to the same place of all blocks of a cluster, each of which counts the bytes.
__device__ void copy_to_all(unsigned to, const TensorMap* map, int inner, int outer, int part, unsigned barrier)
{
    if (CLUSTER == 1) return copy(to, map, inner, outer, part, barrier);
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3, %4}], [%5], %6;"
                 :: "r"(to), "l"(map), "r"(inner), "r"(outer), "r"(part), "r"(barrier), "h"((unsigned short)((1 << CLUSTER) - 1)) : "memory");
}
__device__ void prefetch(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory"); }
